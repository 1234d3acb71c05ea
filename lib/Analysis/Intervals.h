//===- Intervals.h - index intervals of a predicate per tile ----*- C++ -*-===//
//
// For a tile d0 ≤ i ≤ d1 of the lane axis and a predicate p(i, j), the fold
// indices j that any lane of the tile needs (visit) and those that every lane
// needs (full), as pieces with symbolic bounds. The union of the pieces counts:
//
//   { j | ∃ i ∈ [d0, d1]: p(i, j) }  ⊆  ∪ [max visitLower, min visitUpper)
//   [max fullLower, min fullUpper)   ⊆  { j | ∀ i ∈ [d0, d1]: p(i, j) }
//
// Visit bounds come from two sound projections, intersected: the rational
// shadow of the conjunct (Fourier–Motzkin, MLIR's Presburger library) and, atom
// by atom, the monotone end of every occurrence of i, which is exact through
// floored quotients where the shadow is not. Full bounds are the complement of
// the projection of each negated atom. A condition e ≥ 0 free of j becomes the
// upper bound (⌊e / 2^48⌋ + 1) · 2^48, which is ≤ 0 exactly where it fails:
// extents are below 2^48.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_ANALYSIS_INTERVALS_H
#define MOA_ANALYSIS_INTERVALS_H

#include "lib/Analysis/Predicate.h"
#include "mlir/IR/AffineMap.h"
#include "llvm/Support/Error.h"

namespace moa {

/// A predicate with the box of its indices. Expressions are over d0 = i,
/// d1 = j and the symbols.
struct IntervalProblem {
  mlir::MLIRContext *context = nullptr;
  unsigned numSymbols = 0;
  PredicateRef predicate;
  /// 0 ≤ i < laneExtent; absent when there is no lane axis.
  mlir::AffineExpr laneExtent;
  /// 0 ≤ j < foldExtent.
  mlir::AffineExpr foldExtent;
  /// Facts e ≥ 0 about the symbols, used to drop redundant bounds.
  llvm::SmallVector<mlir::AffineExpr> facts;
};

/// The bounds of one convex piece over (d0, d1)[symbols]: lower bounds are
/// inclusive, upper bounds exclusive; the first of each is 0 or the extent.
struct Interval {
  llvm::SmallVector<mlir::AffineExpr> visitLower, visitUpper;
  llvm::SmallVector<mlir::AffineExpr> fullLower, fullUpper;
  bool full = false;
};

/// At most this many pieces are worth a test per block.
constexpr unsigned maxPieces = 16;

/// The pieces of a problem, ordered where the order can be proved; overlapping
/// pieces are legal. An empty list means that no index is ever present. The
/// error says why there are no useful pieces: nothing affine, or too many.
llvm::Expected<std::vector<Interval>> deriveIntervals(const IntervalProblem &problem);

} // namespace moa

#endif // MOA_ANALYSIS_INTERVALS_H
