//===- Witness.h - index conditions and proofs by witness -------*- C++ -*-===//
//
// Conditions on loop indices that compare integer expressions, and a sound, incomplete proof of the
// claim: for every index of some axes, there are indices of the other axes at which all conditions
// hold.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_ANALYSIS_WITNESS_H
#define MOA_ANALYSIS_WITNESS_H

#include "dialects/MoA/IR/MoA.h"
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace moa::detail {

/// A formula over atoms `expr ≥ 0`. Everything else is unknown, and an unknown formula is never
/// proved.
struct Condition {
  enum Kind { Unknown, True, NotNegative, And, Or };
  Kind kind = Unknown;
  SymExpr expr;
  std::vector<Condition> parts;

  static Condition notNegative(SymExpr expr);
  static Condition both(Condition a, Condition b);
  static Condition either(Condition a, Condition b);
  std::string text() const;
};

/// Loop indices by name, each with its extent: 0 ≤ index < extent.
using Variables = std::map<std::string, SymExpr>;

/// Returns the element of an integer array at an index if it is an expression of indices and
/// symbols.
std::optional<SymExpr> integerAt(mlir::Value array, llvm::ArrayRef<SymExpr> index);
/// Returns the element of a boolean array at an index, or its negation, as a condition.
Condition conditionAt(mlir::Value array, llvm::ArrayRef<SymExpr> index, bool negated = false);

/// Proves claims from the facts of the kernel: its `requires`, and symbols are at least 1.
class Witness {
public:
  explicit Witness(KernelOp kernel);
  /// Proves expr ≥ 0 for all values of the variables.
  bool isNotNegative(const SymExpr &expr, const Variables &all) const;
  /// Proves that for all values of `all` there are values of `some` at which every condition holds.
  bool exists(const std::vector<Condition> &conditions, const Variables &all, const Variables &some) const;
  /// Returns true if a % b == 0 is known.
  bool divides(const SymExpr &b, const SymExpr &a) const;

private:
  bool isNotNegative(const SymExpr &expr) const;
  bool holds(const Condition &condition, const Variables &all) const;
  std::vector<SymExpr> candidates(const SymExpr &extent, const Variables &all) const;

  std::vector<SymExpr> notNegative; // from the constraints
  std::vector<std::pair<SymExpr, SymExpr>> multiples;
};

SymExpr replaced(const SymExpr &expr, const Variables &values);
Condition replaced(const Condition &condition, const Variables &values);

} // namespace moa::detail

#endif // MOA_ANALYSIS_WITNESS_H
