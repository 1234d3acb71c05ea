//===- Arguments.h - arguments from the command line ------------*- C++ -*-===//
#ifndef MOA_TOOLS_MOA_RUN_ARGUMENTS_H
#define MOA_TOOLS_MOA_RUN_ARGUMENTS_H

#include "Values.h"
#include <map>

namespace moa {

struct Arguments {
  std::vector<HostArray> arrays; ///< inputs, in order
  std::vector<HostArray> outputs;
  std::vector<Scalar> scalars;
  std::vector<ParameterInfo> scalarInfos;
  std::map<std::string, int64_t> symbols;

  std::vector<const DLTensor *> getTensors();
  /// Returns the inputs in the user's order; scalars are rounded to the kernel's types.
  std::vector<ReferenceArray> getReferences(const KernelInfo &info) const;
  /// Returns an error if an integer is too large for the interpreters, whose numbers are float64.
  llvm::Error checkForInterpreters(const KernelInfo &info) const;
  int64_t getInputBytes() const;
  int64_t getOutputBytes() const;

private:
  std::vector<DLTensor> tensors;
};

/// The words NAME=VALUE by name. The value is a .npy file for an array, a number for a scalar, an
/// integer for a symbol. `expectation` begins the error for any other word.
using Words = std::map<std::string, std::string>;
llvm::Expected<Words> splitWords(const std::vector<std::string> &words, const llvm::Twine &expectation);

/// Reads files, generates missing arrays from `seed` if there is one, and binds the symbols. The
/// error is empty if it is the compilation's, which is in its diagnostics.
llvm::Expected<Arguments> makeArguments(Compilation &compilation, const KernelInfo &info, const Words &words,
                                        std::optional<uint64_t> seed);

} // namespace moa

#endif // MOA_TOOLS_MOA_RUN_ARGUMENTS_H
