//===- RoundingErrorRules.h - errors of scalar operations -------*- C++ -*-===//
//
// The abstract values of the rounding-error analysis and what each operation does
// to them [docs/Accuracy/Bounds.md, Def 28 and Lemmas E1 to E9].
//
//===----------------------------------------------------------------------===//
#ifndef MOA_ANALYSIS_ROUNDINGERRORRULES_H
#define MOA_ANALYSIS_ROUNDINGERRORRULES_H

#include "lib/Analysis/RoundingErrorExpr.h"
#include "lib/Analysis/RoundingErrorFormats.h"
#include "lib/Analysis/RoundingErrorTerms.h"

namespace moa {

/// An error that several values have in common: ε with |ε| ≤ bound, of one value at one
/// index.
struct SharedError {
  double coefficient = 0;
  ErrorExpr bound;
  mlir::Operation *origin = nullptr;
  std::vector<mlir::Value> indices; ///< the indices that the value is at
};

/// What is known of a scalar x and of x̂, which code computes for it. With x° the
/// majorant of x, the value with absolute values pushed through sums and products:
///   |x̂ − x| ≤ e^relative·(x° + absolute) − x°, and |x̂ − x| ≤ distance if that is set;
/// where `tight` x° is |x|, and x̂ = r·x + β with |ln r| ≤ relative, |β| ≤ e^relative·absolute.
/// Both after the common errors: those of an `exponential` are factors e^(Σ c·ε),
/// otherwise they are a sum Σ c·ε.
struct ErrorValue {
  ErrorExpr relative, absolute, magnitude; ///< x° ≤ magnitude
  ErrorExpr least;                         ///< |x| ≥ least; 0 if nothing is known
  std::optional<ErrorExpr> distance;
  bool tight = true, nonnegative = false, nonpositive = false;
  std::optional<double> constant;
  bool exponential = false;
  std::map<std::string, SharedError> shared;
  std::set<mlir::Value, ValueLess> indices; ///< that x depends on
  std::set<unsigned> facts;                 ///< what all this rests on
  std::vector<RangeRequirement> requirements;

  bool isExact() const { return relative.isZero() && absolute.isZero() && shared.empty(); }
};

/// What a bound rests on: `value` ≤ limit, which evaluation checks, or an assumption. Of an operand
/// the value is its magnitude, and the limit that of its format.
struct ErrorFact {
  std::string text;
  std::optional<ErrorExpr> value;
  double limit = 0;
  std::optional<unsigned> operand = std::nullopt; ///< the number of a contraction operand
  bool operator==(const ErrorFact &other) const {
    return text == other.text && value == other.value && limit == other.limit &&
           operand == other.operand;
  }
};

/// The rules. Each takes values by copy and returns the value of the operation.
class ErrorRules {
public:
  ErrorRules(ErrorExprPool &pool, const RoundingModel &model) : pool(pool), model(model) {}

  ErrorValue exact(const ErrorExpr &magnitude) const;
  ErrorValue constant(double value) const;
  ErrorValue add(ErrorValue x, ErrorValue y);
  ErrorValue negate(ErrorValue x);
  /// `bound` is one on the magnitude of the result that does not follow from those of x and y.
  ErrorValue multiply(ErrorValue x, ErrorValue y, bool isSquare = false,
                      const std::optional<ErrorExpr> &bound = std::nullopt);
  ErrorValue divide(ErrorValue x, ErrorValue y, const std::string &what,
                    const std::optional<ErrorExpr> &bound = std::nullopt);
  ErrorValue absolute(ErrorValue x);
  ErrorValue exponential(ErrorValue x, double base, const ErrorExpr &repairs,
                         const std::string &what);
  ErrorValue logarithm(ErrorValue x, double factor, const std::string &what);
  ErrorValue squareRoot(ErrorValue x, const std::string &what);
  ErrorValue reciprocalRoot(ErrorValue x, const std::string &what);
  ErrorValue power(ErrorValue x, double exponent, const std::string &what);
  /// A function with |f′| ≤ slope, |f| ≤ bound and, if `odd`, |x·f′/f| ≤ 1.
  ErrorValue bounded(ErrorValue x, double slope, double bound, bool odd, const ErrorExpr &rounding);
  ErrorValue extreme(ErrorValue x, ErrorValue y);
  ErrorValue step(ErrorValue x); ///< floor and its kin
  ErrorValue select(ErrorValue x, ErrorValue y);
  /// ⊕ over at most `extent` elements for max and min.
  ErrorValue reduceExtreme(ErrorValue x);
  ErrorValue reduceProduct(ErrorValue x, const ErrorExpr &extent, const std::string &what);
  /// Rounding to a float type, as a cast of the specification has it.
  ErrorValue round(ErrorValue x, const OperandFormat &format);
  ErrorValue unknown(const std::string &reason);

  /// One more rounding by the given bound on |ln|, and underflow.
  ErrorValue rounded(ErrorValue x, const ErrorExpr &rounding);
  /// No relative part and no common errors.
  ErrorValue toAbsolute(ErrorValue x);
  /// No common errors.
  ErrorValue collapse(ErrorValue x);
  /// An absolute error of the result.
  void addAbsolute(ErrorValue &x, const ErrorExpr &amount);
  /// x / least, where x is an absolute error.
  ErrorExpr quotient(const ErrorExpr &x, const ErrorExpr &least, const std::string &what,
                     std::set<unsigned> &rests);
  /// |x̂ − x| over all indices.
  ErrorExpr distance(const ErrorValue &x);
  /// Takes a common error out of x: its own errors become ε with the coefficient 1.
  ErrorValue makeShared(ErrorValue x, mlir::Operation *origin, const std::string &key);
  /// Union of what two values rest on and depend on.
  static void merge(ErrorValue &into, const ErrorValue &from);
  unsigned fact(ErrorFact fact);
  /// That x overflows nowhere is a condition, where it does not follow.
  void limitMagnitude(ErrorValue &x);

  ErrorExpr arithmetic, exponentialRounding, tanhRounding, powerRounding, functionRounding;
  double tinyValue = 0x1p-126, overflow = 0x1p127;
  std::vector<ErrorFact> facts;
  ErrorExprPool &pool;
  const RoundingModel &model;

private:
  ErrorExpr width(const ErrorValue &x) const;
  /// Errors of a divisor or of the argument of a logarithm as a relative one.
  ErrorValue toRelative(ErrorValue x, const std::string &what);
  ErrorExpr absorb(const ErrorExpr &e, std::set<unsigned> &rests);
};

} // namespace moa

#endif // MOA_ANALYSIS_ROUNDINGERRORRULES_H
