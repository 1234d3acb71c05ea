//===- Magnitude.h - magnitudes of sums, for error bounds -------*- C++ -*-===//
#ifndef MOA_INTERPRETER_MAGNITUDE_H
#define MOA_INTERPRETER_MAGNITUDE_H

#include "lib/Interpreter/Interpreter.h"

namespace moa {

/// Returns the magnitudes [Def 24] of elements of one output of a dnf.kernel. A magnitude is the
/// value with the absolute values of the terms of the outermost sums and of the operands around
/// them.
llvm::Expected<std::vector<double>> interpretMagnitudes(mlir::Operation *kernel, const KernelInputs &inputs,
                                                        unsigned output, llvm::ArrayRef<std::vector<int64_t>> indices);

} // namespace moa

#endif // MOA_INTERPRETER_MAGNITUDE_H
