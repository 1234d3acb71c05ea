//===- Predicate.h - quasi-affine predicates on two indices -----*- C++ -*-===//
//
// A predicate on a lane index i and a fold index j, written with and, or, not
// over quasi-affine atoms and over unknowns (facts that are no arithmetic of
// the two indices, such as an element of an array). It is the input of the
// interval derivation and knows nothing of any operation.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_ANALYSIS_PREDICATE_H
#define MOA_ANALYSIS_PREDICATE_H

#include "mlir/IR/AffineExpr.h"
#include "llvm/ADT/SmallVector.h"
#include <memory>
#include <optional>
#include <vector>

namespace moa {

struct Predicate;
using PredicateRef = std::shared_ptr<const Predicate>;

/// A node of the predicate. Atoms are quasi-affine expressions over d0 = i,
/// d1 = j and symbols; floordiv, ceildiv and mod by positive constants are
/// allowed inside them.
struct Predicate {
  enum class Kind { Constant, NonNegative, Zero, Unknown, And, Or, Not };
  Kind kind = Kind::Constant;
  bool value = true;           // Constant
  mlir::AffineExpr expression; // NonNegative: e ≥ 0; Zero: e = 0
  unsigned unknown = 0;        // Unknown: equal numbers are equal facts
  llvm::SmallVector<PredicateRef, 2> operands;

  static PredicateRef constant(bool value);
  static PredicateRef nonNegative(mlir::AffineExpr e);
  static PredicateRef zero(mlir::AffineExpr e);
  static PredicateRef makeUnknown(unsigned number);
  static PredicateRef conjunction(PredicateRef a, PredicateRef b);
  static PredicateRef disjunction(PredicateRef a, PredicateRef b);
  static PredicateRef negation(PredicateRef a);
  /// (a ∧ ¬b) ∨ (¬a ∧ b).
  static PredicateRef exclusive(const PredicateRef &a, const PredicateRef &b);
};

/// One convex term of the disjunctive form: every expression ≥ 0 and every
/// unknown with its sign.
struct Conjunct {
  llvm::SmallVector<mlir::AffineExpr> nonNegative;
  llvm::SmallVector<std::pair<unsigned, bool>> unknowns;
};

/// The predicate as a disjunction of conjuncts: negation by De Morgan, e ≠ 0 as
/// e ≥ 1 or e ≤ −1, e = 0 as two inequalities. Conjuncts that contradict
/// themselves in plain sight are dropped, and a conjunct whose parts hold all
/// parts of another is absorbed by it. Nothing when more than `limit` conjuncts
/// stand at any moment.
std::optional<std::vector<Conjunct>> toDisjunction(const PredicateRef &predicate, unsigned limit);

/// Σ coefficient · atom + constant, where an atom is a dimension, a symbol or
/// a floordiv by a positive constant; equal atoms are gathered.
struct LinearForm {
  llvm::SmallVector<std::pair<mlir::AffineExpr, int64_t>> terms;
  int64_t constant = 0;
};

/// The linear form of a quasi-affine expression; nothing when a coefficient
/// leaves the range in which later arithmetic is safe, or a divisor is not a
/// positive constant.
std::optional<LinearForm> linearize(mlir::AffineExpr e);

} // namespace moa

#endif // MOA_ANALYSIS_PREDICATE_H
