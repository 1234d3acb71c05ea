//===- Recomputation.h - reductions that the loops compute again -*- C++ -*-===//
//
// Nothing is stored but outputs, temporaries and the states of a tile of rows, so a
// reduction that a loop around it does not change is computed again for every index
// of that loop, and one that is needed at two places is computed at both.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_ANALYSIS_RECOMPUTATION_H
#define MOA_ANALYSIS_RECOMPUTATION_H

#include "dialects/ONF/IR/ONF.h"
#include "lib/Support/SymExpr.h"
#include "llvm/ADT/SetVector.h"

namespace moa {

/// The extent that a loop, a fold or a carried axis runs its index over.
llvm::StringRef getExtentOf(mlir::BlockArgument index);

/// The indices that the terms of a state depend on, its fold's and its own.
llvm::SetVector<mlir::BlockArgument> getTermIndices(onf::AccOp acc);

/// A text that is the same for states whose terms are the same function of
/// indices over the same extents, wherever they stand.
std::string describeTerms(onf::AccOp acc);

/// A reduction whose elements are computed more than once.
struct Recomputed {
  mlir::Location loc;
  std::string name;  ///< the user's definition, or how the reduction is written
  SymExpr times;     ///< per element, masks left out
  std::string where; ///< the loops that repeat it, or how many places there are
  double work = 0;   ///< terms that are evaluated, where a size that is not known is 4,096
  /// True if it is computed at least 16 times and takes 16 times the work of all reductions
  /// computed once. The pass then warns.
  bool explodes = false;
};

/// Returns them in the order of the kernel.
std::vector<Recomputed> findRecomputed(onf::KernelOp kernel);

} // namespace moa

#endif // MOA_ANALYSIS_RECOMPUTATION_H
