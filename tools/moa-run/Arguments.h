//===- Arguments.h - words of the command line as arguments -----*- C++ -*-===//
#ifndef MOA_TOOLS_MOA_RUN_ARGUMENTS_H
#define MOA_TOOLS_MOA_RUN_ARGUMENTS_H

#include "Values.h"
#include <map>

namespace moa {

/// Everything one call of the kernel takes.
struct Arguments {
  std::vector<Value> arrays; ///< inputs, in order
  std::vector<Value> outputs;
  std::vector<Scalar> scalars;
  std::vector<ParameterInfo> scalarInfos;
  std::map<std::string, int64_t> symbols;

  std::vector<const DLTensor *> getTensors();
  /// The inputs in the user's order, scalars as the kernel sees them.
  std::vector<ReferenceArray> getReferences(const KernelInfo &info) const;
  /// An error where an integer is too large for the interpreters, which take and give
  /// numbers as float64.
  llvm::Error checkForInterpreters(const KernelInfo &info) const;
  int64_t getInputBytes() const;
  int64_t getOutputBytes() const;

private:
  std::vector<DLTensor> tensors;
};

/// Words NAME=VALUE by name; the value of an array is a .npy file, of a scalar
/// a number, of a symbol an integer. `expectation` begins the error of a word
/// that is none.
using Words = std::map<std::string, std::string>;
llvm::Expected<Words> splitWords(const std::vector<std::string> &words,
                                 const llvm::Twine &expectation);

/// Reads files, makes what is missing from `seed` if there is one, and binds
/// the symbols. Empty after an error of the unit, which is in its diagnostics.
llvm::Expected<Arguments> makeArguments(Compilation &unit, const KernelInfo &info,
                                        const Words &words, std::optional<uint64_t> seed);

} // namespace moa

#endif // MOA_TOOLS_MOA_RUN_ARGUMENTS_H
