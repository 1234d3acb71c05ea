//===- Predicate.h - quasi-affine predicates on two indices -----*- C++ -*-===//
//
// A predicate on a lane index i and a fold index j: and, or, not over quasi-affine atoms and over
// unknowns. An unknown is a fact that is not arithmetic of the two indices, such as an element of
// an array. Predicates are the input of the interval derivation and independent of any operation.
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

/// A node of the predicate. Atoms are quasi-affine expressions over d0 = i, d1 = j and symbols.
/// They may contain floordiv, ceildiv and mod by positive constants.
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

/// One convex term of the disjunctive form: all expressions are ≥ 0, and each unknown has its
/// value.
struct Conjunct {
  llvm::SmallVector<mlir::AffineExpr> nonNegative;
  llvm::SmallVector<std::pair<unsigned, bool>> unknowns;
};

/// Returns the predicate as a disjunction of conjuncts. Negation uses De Morgan's laws; e ≠ 0
/// becomes e ≥ 1 or e ≤ −1, and e = 0 two inequalities. Conjuncts that contradict themselves
/// syntactically are dropped. A conjunct that contains all parts of another one is absorbed by it.
/// Returns nothing if there are more than `limit` conjuncts at any moment.
std::optional<std::vector<Conjunct>> toDisjunction(const PredicateRef &predicate, unsigned limit);

/// Σ coefficient · atom + constant. An atom is a dimension, a symbol or a floordiv by a positive
/// constant; equal atoms are combined.
struct LinearForm {
  llvm::SmallVector<std::pair<mlir::AffineExpr, int64_t>> terms;
  int64_t constant = 0;
};

/// Returns the linear form of a quasi-affine expression. Returns nothing if a coefficient leaves
/// the range in which later arithmetic is safe, or if a divisor is not a positive constant.
std::optional<LinearForm> linearize(mlir::AffineExpr e);

} // namespace moa

#endif // MOA_ANALYSIS_PREDICATE_H
