//===- Kernel.h - interface shared by the kernel ops ------------*- C++ -*-===//
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
  std::vector<bool> areUnsigned; // of the results

  static llvm::Expected<Kernel> of(mlir::Operation *op);
};

llvm::Error makeError(const llvm::Twine &message);
/// Returns "file:line:column: ", or "" for an unknown location.
std::string locationText(mlir::Location loc);

/// Returns the value of an expression. The error names the expression and the symbol values.
llvm::Expected<int64_t> evaluate(const SymExpr &expr, const Symbols &symbols);
llvm::Expected<int64_t> evaluate(llvm::StringRef text, const Symbols &symbols);
/// Returns the extents of an array type. A negative extent is an error.
llvm::Expected<std::vector<int64_t>> evaluateShape(ArrayType type, const Symbols &symbols);

/// Returns true if every output is empty. Then nothing is computed, and a division by zero in a
/// constraint is no error.
bool writesNothing(const Kernel &kernel, const Symbols &symbols);

/// Checks the number, sizes and integer values of the arguments, and solves the symbols.
llvm::Expected<Symbols> bindInputs(mlir::Operation *op, const Kernel &kernel, const KernelInputs &inputs);

/// Converts unsigned results, which are kept sign-extended, to their values. `output` is the
/// result's number if `outputs` has one array only.
void makeUnsigned(const Kernel &kernel, std::vector<Array> &outputs, std::optional<unsigned> output = std::nullopt);

int64_t countOf(llvm::ArrayRef<int64_t> shape);
std::string indexText(llvm::ArrayRef<int64_t> index);

/// Advances to the next index in row-major order. Returns false after the last one.
inline bool nextIndex(llvm::MutableArrayRef<int64_t> index, llvm::ArrayRef<int64_t> shape) {
  for (size_t k = index.size(); k-- > 0;) {
    if (++index[k] < shape[k])
      return true;
    index[k] = 0;
  }
  return false;
}

llvm::Expected<std::vector<Array>> interpretMoA(mlir::Operation *op, const Kernel &kernel, const Symbols &symbols,
                                                const KernelInputs &inputs, const InterpretOptions &options);

/// Elements of one output to evaluate. Without a Sample, all outputs are evaluated as a whole.
struct Sample {
  unsigned output = 0;
  llvm::ArrayRef<std::vector<int64_t>> indices;
};

llvm::Expected<std::vector<Array>> interpretDNF(mlir::Operation *op, const Kernel &kernel, const Symbols &symbols,
                                                const KernelInputs &inputs, const InterpretOptions &options,
                                                const Sample *sample);
llvm::Expected<std::vector<Array>> interpretONF(mlir::Operation *op, const Kernel &kernel, const Symbols &symbols,
                                                const KernelInputs &inputs, const InterpretOptions &options,
                                                const Sample *sample);

} // namespace moa::interp

#endif // MOA_INTERPRETER_KERNEL_H
