//===- Witness.h - index conditions and proofs by witness -------*- C++ -*-===//
//
// Conditions on loop indices, as far as they are comparisons of integer
// expressions, and a sound, incomplete proof of "for every index of these axes
// there are indices of the others at which all conditions hold".
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

/// A formula over `expression ≥ 0`. What is no such comparison is unknown, and
/// an unknown formula is never proved.
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

/// Loop indices by name, each from 0 below its extent.
using Variables = std::map<std::string, SymExpr>;

/// The value of an integer array at an index, if it is an expression of
/// indices and symbols.
std::optional<SymExpr> integerAt(mlir::Value array, llvm::ArrayRef<SymExpr> index);
/// A boolean array at an index, or its negation, as a condition.
Condition conditionAt(mlir::Value array, llvm::ArrayRef<SymExpr> index, bool negated = false);

/// Facts of the kernel: `requires`, and symbols of at least 1.
class Witness {
public:
  explicit Witness(KernelOp kernel);
  /// e ≥ 0 for all values of the variables.
  bool isNotNegative(const SymExpr &expr, const Variables &all) const;
  /// For all `all` there are `some` such that every condition holds.
  bool exists(const std::vector<Condition> &conditions, const Variables &all,
              const Variables &some) const;
  /// True if a % b == 0 is known.
  bool divides(const SymExpr &b, const SymExpr &a) const;

private:
  bool isNotNegative(const SymExpr &expr) const;
  bool holds(const Condition &condition, const Variables &all) const;
  std::vector<SymExpr> candidates(const SymExpr &extent, const Variables &all) const;

  std::vector<SymExpr> notNegative; // from the constraints
  std::vector<std::pair<SymExpr, SymExpr>> multiples;
};

/// The expression with variables replaced.
SymExpr replaced(const SymExpr &expr, const Variables &values);
Condition replaced(const Condition &condition, const Variables &values);

} // namespace moa::detail

#endif // MOA_ANALYSIS_WITNESS_H
