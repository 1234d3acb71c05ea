//===- RoundingErrorRules.h - errors of scalar operations -------*- C++ -*-===//
//
// The abstract values of the rounding error analysis and its transfer function for each operation
// [docs/Accuracy/Bounds.md, Def 28 and Lemmas E1 to E9].
//
//===----------------------------------------------------------------------===//
#ifndef MOA_ACCURACY_ROUNDINGERRORRULES_H
#define MOA_ACCURACY_ROUNDINGERRORRULES_H

#include "lib/Accuracy/Bounds/RoundingErrorExpr.h"
#include "lib/Accuracy/Bounds/RoundingErrorFormats.h"
#include "lib/Accuracy/Bounds/RoundingErrorTerms.h"

namespace moa {

/// An error ε shared by several values, |ε| ≤ bound: the error of one value at one index. Keeping
/// it separate lets correlated errors cancel, as that of the maximum in a softmax.
struct SharedError {
  double coefficient = 0;
  ErrorExpr bound;
  mlir::Operation *origin = nullptr;
  std::vector<mlir::Value> indices; ///< the indices of that value
};

/// The abstract value of a scalar x and of the computed x̂. Let x° be the majorant of x: x with
/// absolute values pushed through sums and products. Then
///
///    |x̂ − x| ≤ e^relative·(x° + absolute) − x°, and |x̂ − x| ≤ distance if that is set.
///
/// If `tight`, x° is |x|, and x̂ = r·x + β with |ln r| ≤ relative, |β| ≤ e^relative·absolute. Both
/// hold after removing the shared errors: factors e^(Σ c·ε) if `exponential`, otherwise a sum Σ
/// c·ε.
struct ErrorValue {
  ErrorExpr relative, absolute, magnitude; ///< x° ≤ magnitude
  ErrorExpr least;                         ///< |x| ≥ least; 0 if nothing is known
  std::optional<ErrorExpr> distance;
  bool tight = true, nonnegative = false, nonpositive = false;
  std::optional<double> constant;
  bool exponential = false;
  std::map<std::string, SharedError> shared;
  std::set<mlir::Value, ValueLess> indices; ///< the indices that x depends on
  std::set<unsigned> facts;                 ///< the conditions and assumptions of the bounds
  std::vector<RangeRequirement> requirements;

  bool isExact() const { return relative.isZero() && absolute.isZero() && shared.empty(); }
};

/// Adds factor times the shared errors of `from`; errors with the coefficient 0 are removed.
void combineShared(std::map<std::string, SharedError> &into, const std::map<std::string, SharedError> &from,
                   double factor);
bool haveSameShared(const ErrorValue &x, const ErrorValue &y);

/// A condition `value` ≤ limit, which evaluation checks, or an assumption without a value. For a
/// contraction operand, the value is its magnitude and the limit that of its format.
struct ErrorFact {
  std::string text;
  std::optional<ErrorExpr> value;
  double limit = 0;
  std::optional<unsigned> operand = std::nullopt; ///< the number of a contraction operand
  bool operator==(const ErrorFact &other) const {
    return text == other.text && value == other.value && limit == other.limit && operand == other.operand;
  }
};

/// The transfer functions. Each takes values by copy and returns the value of the operation.
class ErrorRules {
public:
  explicit ErrorRules(ErrorExprPool &pool) : pool(pool) {}

  ErrorValue exact(const ErrorExpr &magnitude) const;
  ErrorValue constant(double value) const;
  ErrorValue add(ErrorValue x, ErrorValue y);
  ErrorValue negate(ErrorValue x);
  /// `bound` is a bound on the magnitude of the result that does not follow from those of x and y.
  ErrorValue multiply(ErrorValue x, ErrorValue y, bool isSquare = false,
                      const std::optional<ErrorExpr> &bound = std::nullopt);
  ErrorValue divide(ErrorValue x, ErrorValue y, const std::string &what,
                    const std::optional<ErrorExpr> &bound = std::nullopt);
  ErrorValue absolute(ErrorValue x);
  ErrorValue exponential(ErrorValue x, double base, const ErrorExpr &rescales, const std::string &what);
  ErrorValue logarithm(ErrorValue x, double factor, const std::string &what);
  ErrorValue squareRoot(ErrorValue x, const std::string &what);
  ErrorValue reciprocalRoot(ErrorValue x, const std::string &what);
  ErrorValue power(ErrorValue x, double exponent, const std::string &what);
  /// A function f with |f′| ≤ slope, |f| ≤ bound and, if `odd`, condition number |x·f′/f| ≤ 1.
  ErrorValue bounded(ErrorValue x, double slope, double bound, bool odd, const ErrorExpr &rounding);
  ErrorValue extreme(ErrorValue x, ErrorValue y);
  ErrorValue step(ErrorValue x); ///< floor, ceil and other steps
  ErrorValue select(ErrorValue x, ErrorValue y);
  /// max or min over any number of elements.
  ErrorValue reduceExtreme(ErrorValue x);
  ErrorValue reduceProduct(ErrorValue x, const ErrorExpr &extent, const std::string &what);
  /// A rounding to a float type by a cast of the specification.
  ErrorValue round(ErrorValue x, const OperandFormat &format);
  ErrorValue unknown(const std::string &reason);

  /// Adds one rounding by the given bound on |ln|, and underflow.
  ErrorValue rounded(ErrorValue x, const ErrorExpr &rounding);
  /// Converts all errors to an absolute one, without shared errors. Keeps the magnitudes and the sign of x.
  ErrorValue toAbsolute(ErrorValue x);
  /// Converts the shared errors to relative or absolute ones.
  ErrorValue collapse(ErrorValue x);
  void addAbsolute(ErrorValue &x, const ErrorExpr &amount);
  /// Returns x / least, where x is an absolute error.
  ErrorExpr quotient(const ErrorExpr &x, const ErrorExpr &least, const std::string &what, std::set<unsigned> &rests);
  /// Returns a bound on |x̂ − x| over all indices.
  ErrorExpr distance(const ErrorValue &x);
  /// Makes the error of x a shared error ε with the coefficient 1, and without indices.
  ErrorValue makeShared(ErrorValue x, mlir::Operation *origin, const std::string &key);
  /// Adds the indices, facts and requirements of `from`.
  static void merge(ErrorValue &into, const ErrorValue &from);
  unsigned fact(ErrorFact fact);
  /// Adds the condition that x does not overflow, unless that follows from its magnitude.
  void limitMagnitude(ErrorValue &x);

  ErrorExpr arithmetic, exponentialRounding, tanhRounding, powerRounding, functionRounding;
  double tinyValue = 0x1p-126, overflow = 0x1p127;
  std::vector<ErrorFact> facts;
  ErrorExprPool &pool;

private:
  ErrorExpr width(const ErrorValue &x) const;
  ErrorExpr distanceWithoutShared(ErrorValue x);
  /// Returns 1 / least, which is unknown if least is 0.
  ErrorExpr reciprocal(const ErrorExpr &least, const std::string &what);
  /// Converts the error of a divisor or of the argument of a logarithm to a relative one.
  ErrorValue toRelative(ErrorValue x, const std::string &what);
  ErrorExpr absorb(const ErrorExpr &e, std::set<unsigned> &rests);
};

} // namespace moa

#endif // MOA_ACCURACY_ROUNDINGERRORRULES_H
