//===- ONF.h - the onf dialect ----------------------------------*- C++ -*-===//
#ifndef MOA_DIALECTS_ONF_IR_ONF_H
#define MOA_DIALECTS_ONF_IR_ONF_H

#include "dialects/MoA/IR/MoA.h"
#include "dialects/ONF/IR/LinearIndex.h"
#include "mlir/IR/AffineMap.h"
#include "mlir/IR/OpImplementation.h"

#include "dialects/ONF/IR/ONFDialect.h.inc"
#include "dialects/ONF/IR/ONFEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/ONF/IR/ONFAttrs.h.inc"
#include "dialects/ONF/IR/ONFInterfaces.h.inc"
#define GET_OP_CLASSES
#include "dialects/ONF/IR/ONFOps.h.inc"

namespace moa::onf {

/// Returns the symbol of an array's stride on an axis, in elements.
SymExpr getStride(llvm::StringRef array, unsigned axis);

/// A choice that is made only where another array has a given value; elsewhere it is a constant.
struct Refinement {
  mlir::Value of;     ///< the other array, over the same axes
  int64_t value = 0;  ///< its value where the choice is made
  mlir::Value inside; ///< the choice
  int64_t outside = 0;
};

/// Returns the refinement of a store of choices, `(p[i] = value ? inside : outside)` at q[i].
/// Returns nothing for any other store.
std::optional<Refinement> getRefinement(StoreOp store);

/// Returns the sides x, y of each equation that the kernel requires, and y, x.
llvm::SmallVector<std::pair<SymExpr, SymExpr>> getEquations(KernelOp kernel);

/// Returns whether groups · members = extent, by their values or because the kernel requires that
/// `groups` divides `extent` and `members` is the quotient.
bool isProduct(KernelOp kernel, const SymExpr &extent, const SymExpr &groups, const SymExpr &members);

} // namespace moa::onf

#endif // MOA_DIALECTS_ONF_IR_ONF_H
