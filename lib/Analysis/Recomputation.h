//===- Recomputation.h - reductions computed more than once -----*- C++ -*-===//
//
// Only outputs, temporaries and the states of a tile of rows are stored. A reduction that is
// invariant in an enclosing loop is therefore recomputed in every iteration. A reduction that is
// needed at two places is computed at both.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_ANALYSIS_RECOMPUTATION_H
#define MOA_ANALYSIS_RECOMPUTATION_H

#include "dialects/ONF/IR/ONF.h"
#include "lib/Support/SymExpr.h"
#include "llvm/ADT/SetVector.h"

namespace moa {

/// Returns the extent of a loop, a fold or an axis of a state.
const SymExpr &getExtentOf(mlir::BlockArgument index);

/// Returns the indices that the terms of a state depend on, including those of its fold and its
/// axes.
llvm::SetVector<mlir::BlockArgument> getTermIndices(onf::AccOp acc);

/// Returns a key for the terms of a state. Two states have the same key if their terms are the same
/// function of indices over the same extents, wherever the states are.
std::string describeTerms(onf::AccOp acc);

struct Recomputed {
  mlir::Location loc;
  std::string name;  ///< the user's definition, or the text of the reduction
  SymExpr times;     ///< evaluations per element, ignoring masks
  std::string where; ///< the loops that repeat it, or the number of places
  double work = 0;   ///< evaluated terms; an unknown size counts as 4,096
  /// True if it is computed at least 16 times and takes at least 16 times the work of all
  /// reductions computed once each. Then the pass warns.
  bool explodes = false;
};

/// Returns the reductions that are computed more than once, in program order.
std::vector<Recomputed> findRecomputed(onf::KernelOp kernel);

} // namespace moa

#endif // MOA_ANALYSIS_RECOMPUTATION_H
