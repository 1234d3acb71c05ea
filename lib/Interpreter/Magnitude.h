//===- Magnitude.h - what the error of a result is measured by --*- C++ -*-===//
#ifndef MOA_INTERPRETER_MAGNITUDE_H
#define MOA_INTERPRETER_MAGNITUDE_H

#include "lib/Interpreter/Interpreter.h"

namespace moa {

/// Of elements of one output of a dnf.kernel their magnitudes [Def 24]: the values with
/// the absolute values of the terms of the outermost sums, and of all around them.
llvm::Expected<std::vector<double>>
interpretMagnitudes(mlir::Operation *kernel, const KernelInputs &inputs, unsigned output,
                    llvm::ArrayRef<std::vector<int64_t>> indices);

} // namespace moa

#endif // MOA_INTERPRETER_MAGNITUDE_H
