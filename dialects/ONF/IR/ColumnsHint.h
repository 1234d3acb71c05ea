//===- ColumnsHint.h - the hint moa.columns ---------------------*- C++ -*-===//
//
// A hint like those of Hints.h: it does not change the meaning of a program.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_DIALECTS_ONF_IR_COLUMNSHINT_H
#define MOA_DIALECTS_ONF_IR_COLUMNSHINT_H

#include "llvm/ADT/StringRef.h"

namespace moa::onf {

/// On a nest: an integer, the number of columns of a block on a CPU. The nest's last two axes are
/// the columns and rows of sums of products, which are added up for a block of columns at once.
/// Also on a loop inside a nest, over columns of its rows (lib/Conversion/ONFToVector/Columns.h).
inline constexpr llvm::StringLiteral kColumnsAttr = "moa.columns";

} // namespace moa::onf

#endif // MOA_DIALECTS_ONF_IR_COLUMNSHINT_H
