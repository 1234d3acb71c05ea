//===- Intervals.h - index intervals of a predicate per tile ----*- C++ -*-===//
//
// Consider a tile d0 ≤ i ≤ d1 of the lane axis and a predicate p(i, j). This analysis derives the
// fold indices j that some lane of the tile needs (visit) and those that every lane needs (full),
// as pieces with symbolic bounds. A causal mask, for example, has one piece: tiles right of the
// diagonal are skipped, and those left of it need no mask. The union of the pieces counts:
//
//    { j | ∃ i ∈ [d0, d1]: p(i, j) }  ⊆  ∪ [max visitLower, min visitUpper)
//    [max fullLower, min fullUpper)   ⊆  { j | ∀ i ∈ [d0, d1]: p(i, j) }
//
// Visit bounds are the intersection of two sound projections:
// - the rational shadow of the conjunct (Fourier–Motzkin elimination, MLIR's Presburger library);
// - per atom, its extreme over i, taken at the monotone end of every occurrence of i. This is exact
//   through floored quotients, where the shadow is not.
//
// Full bounds are the complement of the projection of each negated atom. A condition e ≥ 0 without
// j becomes the upper bound (⌊e / 2^48⌋ + 1) · 2^48. As extents are below 2^48, this bound is ≤ 0
// exactly where the condition fails, and otherwise restricts nothing.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_ANALYSIS_INTERVALS_H
#define MOA_ANALYSIS_INTERVALS_H

#include "lib/Analysis/Predicate.h"
#include "mlir/IR/AffineMap.h"
#include "llvm/Support/Error.h"

namespace moa {

/// A predicate and the ranges of its indices. Expressions are over d0 = i, d1 = j and the symbols.
struct IntervalProblem {
  mlir::MLIRContext *context = nullptr;
  unsigned numSymbols = 0;
  PredicateRef predicate;
  /// 0 ≤ i < laneExtent; null if there is no lane axis.
  mlir::AffineExpr laneExtent;
  /// 0 ≤ j < foldExtent.
  mlir::AffineExpr foldExtent;
  /// Facts e ≥ 0 about the symbols, used to drop redundant bounds.
  llvm::SmallVector<mlir::AffineExpr> facts;
};

/// The bounds of one convex piece over (d0, d1)[symbols]. Lower bounds are inclusive, upper bounds
/// exclusive. The first lower bound is 0, the first upper bound the extent.
struct Interval {
  llvm::SmallVector<mlir::AffineExpr> visitLower, visitUpper;
  llvm::SmallVector<mlir::AffineExpr> fullLower, fullUpper;
  bool full = false;
};

/// Limit on the number of pieces: each costs tests per block.
constexpr unsigned maxPieces = 16;

/// Returns the pieces of a problem, ordered where their order can be proved; they may overlap. An
/// empty list means that no index is ever present. The error gives the reason if no piece is
/// useful: no affine bound, or too many pieces.
llvm::Expected<std::vector<Interval>> deriveIntervals(const IntervalProblem &problem);

/// Upper bounds of an interval: the bounds that depend on j's range, and expressions e without j.
/// The interval is empty unless each e ≥ 0.
struct UpperBounds {
  mlir::AffineMap bounds, conditions;
};

/// Separates upper bounds that stand for a condition from all others. For example, (M,
/// ((w - 1) floordiv 2^48 + 1) * 2^48) has the bound M and the condition w - 1.
UpperBounds splitConditions(mlir::AffineMap upper);

} // namespace moa

#endif // MOA_ANALYSIS_INTERVALS_H
