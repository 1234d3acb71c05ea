//===- Kernel.h - what the three kernel ops have in common ------*- C++ -*-===//
#ifndef MOA_INTERPRETER_KERNEL_H
#define MOA_INTERPRETER_KERNEL_H

#include "dialects/MoA/IR/MoA.h"
#include "lib/Interpreter/Interpreter.h"

namespace moa::interp {

using Symbols = std::map<std::string, int64_t>;

/// Names, types and constraints of a moa, dnf or onf kernel.
struct Kernel {
  std::vector<std::string> symbols, constraints, argNames, resultNames;
  std::vector<ArrayType> argTypes, resultTypes;
  std::vector<bool> areUnsigned; // results

  static llvm::Expected<Kernel> of(mlir::Operation *op);
};

/// An error with this text.
llvm::Error makeError(const llvm::Twine &message);
/// "file:line:column: ", or nothing for an unknown location.
std::string locationText(mlir::Location loc);

/// The value of an expression; the error names the expression and the values.
llvm::Expected<int64_t> evaluate(const SymExpr &expr, const Symbols &symbols);
llvm::Expected<int64_t> evaluate(llvm::StringRef text, const Symbols &symbols);
/// Extents of an array type; an extent below 0 is an error.
llvm::Expected<std::vector<int64_t>> evaluateShape(ArrayType type, const Symbols &symbols);

/// Whether every output is empty: then nothing is computed, and what divides by
/// zero says nothing.
bool writesNothing(const Kernel &kernel, const Symbols &symbols);

/// Checks number, sizes and integer values of the arguments and solves the
/// symbols.
llvm::Expected<Symbols> bindInputs(mlir::Operation *op, const Kernel &kernel,
                                   const KernelInputs &inputs);

/// Gives the elements of unsigned results, which are kept with a sign, their values.
/// `output` says of which result a lone array is.
void makeUnsigned(const Kernel &kernel, std::vector<Array> &outputs,
                  std::optional<unsigned> output = std::nullopt);

/// Product of the extents.
int64_t countOf(llvm::ArrayRef<int64_t> shape);
/// "[1, 2, 3]".
std::string indexText(llvm::ArrayRef<int64_t> index);

/// Next index in row-major order; false after the last one.
inline bool nextIndex(llvm::MutableArrayRef<int64_t> index, llvm::ArrayRef<int64_t> shape) {
  for (size_t k = index.size(); k-- > 0;) {
    if (++index[k] < shape[k])
      return true;
    index[k] = 0;
  }
  return false;
}

llvm::Expected<std::vector<Array>> interpretMoA(mlir::Operation *op, const Kernel &kernel,
                                                const Symbols &symbols, const KernelInputs &inputs,
                                                const InterpretOptions &options);

/// Elements of outputs to evaluate; no value means all of every output.
struct Sample {
  unsigned output = 0;
  llvm::ArrayRef<std::vector<int64_t>> indices;
};

llvm::Expected<std::vector<Array>> interpretDNF(mlir::Operation *op, const Kernel &kernel,
                                                const Symbols &symbols, const KernelInputs &inputs,
                                                const InterpretOptions &options,
                                                const Sample *sample);
llvm::Expected<std::vector<Array>> interpretONF(mlir::Operation *op, const Kernel &kernel,
                                                const Symbols &symbols, const KernelInputs &inputs,
                                                const InterpretOptions &options,
                                                const Sample *sample);

} // namespace moa::interp

#endif // MOA_INTERPRETER_KERNEL_H
