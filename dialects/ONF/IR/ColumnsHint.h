//===- ColumnsHint.h - the hint moa.columns ---------------------*- C++ -*-===//
//
// A hint as those of Hints.h: a program means the same without it.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_DIALECTS_ONF_IR_COLUMNSHINT_H
#define MOA_DIALECTS_ONF_IR_COLUMNSHINT_H

#include "llvm/ADT/StringRef.h"

namespace moa::onf {

/// On a nest, an integer: its last two axes are columns and rows of sums of products, which a CPU
/// adds up for so many columns at once, or on a loop in a nest, over columns of its rows
/// (lib/Conversion/ONFToVector/Columns.h).
inline constexpr llvm::StringLiteral kColumnsAttr = "moa.columns";

} // namespace moa::onf

#endif // MOA_DIALECTS_ONF_IR_COLUMNSHINT_H
