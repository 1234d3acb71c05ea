//===- MathText.h - normal forms as readable mathematics --------*- C++ -*-===//
#ifndef MOA_ANALYSIS_MATHTEXT_H
#define MOA_ANALYSIS_MATHTEXT_H

#include "mlir/IR/Operation.h"
#include <string>

namespace moa {

/// The definitions of a dnf.kernel, or the loops and folds of an onf.kernel
/// (lifted or not), as mathematics in UTF-8: one definition or statement a
/// line, the user's names for arrays and definitions. Empty for other ops.
std::string printMathematics(mlir::Operation *kernel);

} // namespace moa

#endif // MOA_ANALYSIS_MATHTEXT_H
