//===- RoundingErrorWalk.h - errors of the definitions of dnf ---*- C++ -*-===//
#ifndef MOA_ACCURACY_ROUNDINGERRORWALK_H
#define MOA_ACCURACY_ROUNDINGERRORWALK_H

#include "lib/Accuracy/Bounds/RoundingError.h"

namespace moa {

/// The size of a rounding, substituted after the analysis.
struct ErrorParameter {
  std::string source; ///< its name in contributions
  double standard;
};

/// State shared by all walks over one kernel.
struct ErrorContext {
  explicit ErrorContext(dnf::KernelOp kernel);
  ErrorExpr parameter(const std::string &source, double standard);
  std::string arrayName(mlir::Value array) const;
  std::string resultName(dnf::OutputOp op) const;
  /// Replaces the indices of statistics by `to` of their numbers.
  ErrorExpr replaceIndices(const ErrorExpr &e, llvm::function_ref<int(int)> to);
  /// Returns the number of an index; `indices` maps it back.
  int indexNumber(mlir::Value index);
  /// Returns the number of an operation that is the origin of shared errors.
  int originNumber(mlir::Operation *origin);
  /// Returns the key of an error that is shared by values at these indices of its origin.
  std::string sharedKey(mlir::Operation *origin, llvm::ArrayRef<mlir::Value> indices);
  /// Describes a value in the user's words, with the line.
  std::string describe(mlir::Value value) const;
  /// Prefixes a reason with the place of `value`.
  std::string reasonAt(mlir::Value value, const std::string &what) const;

  dnf::KernelOp kernel;
  RoundingModel model;
  ErrorExprPool pool;
  ErrorRules rules;
  std::vector<ErrorParameter> parameters;
  std::vector<mlir::Value> indices;
  std::vector<mlir::Operation *> origins;
  std::vector<ContractionOperand> operands;
  /// The numbers of the operands of a contraction, and the parameter of its accumulation.
  struct Contraction {
    unsigned lhs, rhs;
    ErrorExpr accumulate;
    unsigned accumulateParameter;
  };
  std::map<mlir::Operation *, Contraction> contractions;
  /// Operations whose relation to a reduction does not hold at every use.
  std::set<mlir::Operation *> banned;
  bool isDouble; ///< whether the kernel computes in f64
};

/// One walk: computes the abstract values of all scalars that the outputs need.
class ErrorWalk {
public:
  explicit ErrorWalk(ErrorContext &context) : context(context), pool(context.pool), rules(context.rules) {}

  /// Returns the value of an output's element; `isShallow` uses the measure of the outermost
  /// contraction.
  ErrorValue output(dnf::OutputOp op, bool isShallow);
  /// Returns true if a relation had to be given up, so that the walk must be repeated.
  bool mustRepeat() const { return repeat; }

private:
  const ErrorValue &of(mlir::Value value);
  ErrorValue shallow(mlir::Value value);
  ErrorValue compute(mlir::Value value);
  ErrorValue computeArithmetic(mlir::Operation *op, bool isShallow);
  ErrorValue computeFunction(mlir::Operation *op);
  ErrorValue computeInteger(mlir::Operation *op);
  ErrorValue computeConversion(mlir::Operation *op);
  ErrorValue index(mlir::BlockArgument argument);
  ErrorValue element(dnf::PsiOp op);
  ErrorValue apply(dnf::ApplyOp op, ErrorValue value);
  ErrorValue sum(mlir::Operation *op, ErrorValue x, ErrorValue y, bool isDifference);
  ErrorValue product(mlir::Operation *op, ErrorValue x, ErrorValue y);
  ErrorValue power(mlir::Operation *op);
  ErrorValue remainder(mlir::Operation *op);
  ErrorExpr stepRounding(mlir::Value exponent, const ErrorExpr &rounding);
  ErrorValue extreme(mlir::Operation *op, bool isMax);
  ErrorValue select(mlir::Operation *op);
  ErrorValue reduce(dnf::ReduceOp op, bool isShallow);
  ErrorValue contraction(dnf::ReduceOp op, mlir::Operation *product, bool isShallow);
  ErrorValue plainSum(dnf::ReduceOp op, mlir::Value term, bool isShallow);
  ErrorExpr flushedFactors(mlir::Value value, std::set<unsigned> &facts);
  ErrorExpr largestIfHoisted(mlir::Value value, mlir::Value index);
  ErrorExpr timesHoisted(const ErrorExpr &amount, mlir::Value value, mlir::Value index, std::set<unsigned> &facts);
  ErrorValue roundOperand(unsigned number, mlir::Value value, mlir::Value index, ErrorValue x);
  /// Leaves the scope of an index: resolves requirements, shared errors and statistics that depend
  /// on it.
  ErrorValue leave(ErrorValue x, mlir::Value index, const SymExpr &extent, mlir::Value condition);
  ErrorValue share(ErrorValue x, mlir::Value value, const ErrorValue &partner);
  bool isBelowExtreme(mlir::Value element, mlir::Value extreme, Monoid monoid, mlir::Operation *op, ErrorValue &result);
  bool holdsExtreme(dnf::ReduceOp op, mlir::Value term);
  ErrorExpr countRescales(const ErrorValue &x);

  // RoundingErrorNorms.cpp
  using Norm = MagnitudeStatistic::Kind;
  std::optional<ErrorExpr> norm(Closure term, mlir::Value index, Norm kind, ErrorValue &rests);
  std::optional<ErrorExpr> normOfElement(dnf::PsiOp psi, const Closure &term, mlir::Value index, Norm kind);
  /// A relation |x| ≤ scale·y and ‖x‖ ≤ scale·y in the norm, over the indices of a reduction.
  struct Normalised {
    Norm norm; ///< MaxAbs, MaxL2 or MaxL1
    ErrorExpr scale;
    Closure reduction, place;
  };
  std::optional<Normalised> findNorm(const Closure &x, Closure y, bool isSquared,
                                     const std::set<mlir::Value, ValueLess> &candidates);
  std::optional<Normalised> findNormIn(const Closure &x, const Closure &reduction, bool isSquared,
                                       const std::set<mlir::Value, ValueLess> &candidates);
  std::optional<Normalised> findQuotient(const Closure &term, const std::set<mlir::Value, ValueLess> &candidates);
  std::optional<Normalised> findOver(Closure x, const Closure &y, bool isRoot,
                                     const std::set<mlir::Value, ValueLess> &candidates);
  /// Return lower bounds for a reduction over terms x: the least 2-norm over its whole range, and
  /// the least 2-norm of magnitudes, whose sum is at least that.
  std::optional<ErrorExpr> leastNorm(dnf::ReduceOp op, Closure x);
  std::optional<ErrorExpr> leastOfMagnitudes(dnf::ReduceOp op, mlir::Value term);
  /// Returns a lower bound on a sum of magnitudes or squares.
  std::optional<ErrorExpr> leastOfSum(dnf::ReduceOp op, mlir::Value term);
  /// Returns x, up to its sign, if the term is x²; a square is never negative.
  std::optional<Closure> findSquared(const Closure &square);
  ErrorExpr magnitude(const Closure &term);
  ErrorExpr least(const Closure &term);
  ErrorExpr atIndices(const ErrorExpr &own, const Closure &term);
  bool dependsOn(const Closure &term, mlir::Value index);
  /// Replace the indices of all statistics; an index without a replacement becomes the extreme over
  /// its axis.
  void substituteIndices(ErrorValue &x, llvm::function_ref<std::optional<mlir::Value>(mlir::Value)> to);
  ErrorExpr substituteIndices(const ErrorExpr &e, llvm::function_ref<std::optional<mlir::Value>(mlir::Value)> to);
  ErrorExpr sumRounding(const SymExpr &extent);

  ErrorContext &context;
  ErrorExprPool &pool;
  ErrorRules &rules;
  mlir::DenseMap<mlir::Value, std::shared_ptr<const ErrorValue>> values, shallowValues;
  bool repeat = false;
};

/// Returns true if the value is an element of a parameter, or a select of such elements.
bool isTakenAsItIs(mlir::Value value);

} // namespace moa

#endif // MOA_ACCURACY_ROUNDINGERRORWALK_H
