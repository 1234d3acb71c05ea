//===- RoundingErrorWalk.h - errors of the definitions of dnf ---*- C++ -*-===//
#ifndef MOA_ANALYSIS_ROUNDINGERRORWALK_H
#define MOA_ANALYSIS_ROUNDINGERRORWALK_H

#include "lib/Analysis/RoundingError.h"

namespace moa {

/// A rounding whose size is put in after the analysis.
struct ErrorParameter {
  std::string source; ///< what contributions call it
  double standard;
};

/// Everything that the walks over one kernel share.
struct ErrorContext {
  ErrorContext(dnf::KernelOp kernel, const RoundingModel &model);
  ErrorExpr parameter(const std::string &source, double standard);
  /// The number of an index, and back.
  int indexNumber(mlir::Value index);
  /// The number of an operation that common errors come from.
  int originNumber(mlir::Operation *origin);
  /// The user's words for a value, with the line.
  std::string describe(mlir::Value value) const;
  /// 'where' in front of a reason.
  std::string reasonAt(mlir::Value value, const std::string &what) const;

  dnf::KernelOp kernel;
  RoundingModel model;
  ErrorExprPool pool;
  ErrorRules rules;
  std::vector<ErrorParameter> parameters;
  std::vector<mlir::Value> indices;
  std::vector<mlir::Operation *> origins;
  std::vector<ContractionOperand> operands;
  /// Of a contraction the numbers of its operands, and the parameter of its sums.
  struct Contraction {
    unsigned lhs, rhs;
    ErrorExpr accumulate;
    unsigned accumulateParameter;
  };
  std::map<mlir::Operation *, Contraction> contractions;
  /// Operations whose relation to a reduction does not hold everywhere.
  std::set<mlir::Operation *> banned;
  bool isDouble = false;
};

/// One walk: the abstract values of all scalars that the outputs need.
class ErrorWalk {
public:
  explicit ErrorWalk(ErrorContext &context)
      : context(context), pool(context.pool), rules(context.rules) {}

  /// An output's element; `isShallow` measures down to the outermost contraction only.
  ErrorValue output(dnf::OutputOp op, bool isShallow);
  /// Whether some relation had to be given up, so that the walk must be made anew.
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
  ErrorExpr stepRounding(mlir::Value exponent, const ErrorExpr &rounding);
  ErrorValue extreme(mlir::Operation *op, bool isMax);
  ErrorValue select(mlir::Operation *op);
  ErrorValue reduce(dnf::ReduceOp op, bool isShallow);
  ErrorValue contraction(dnf::ReduceOp op, mlir::Operation *product, bool isShallow);
  ErrorValue plainSum(dnf::ReduceOp op, mlir::Value term, bool isShallow);
  ErrorExpr flushedFactors(mlir::Value value, std::set<unsigned> &facts);
  ErrorExpr largestInFront(mlir::Value value, mlir::Value index);
  ErrorExpr timesBehind(const ErrorExpr &amount, mlir::Value value, mlir::Value index,
                        std::set<unsigned> &facts);
  ErrorValue roundOperand(unsigned number, mlir::Value value, mlir::Value index, ErrorValue x);
  /// Ends the scope of an index: requirements, common errors, statistics.
  ErrorValue leave(ErrorValue x, mlir::Value index, llvm::StringRef extent, mlir::Value condition);
  void require(ErrorValue &x, const RangeRequirement &requirement);
  ErrorValue share(ErrorValue x, mlir::Value value, const ErrorValue &beside);
  bool isBelowExtreme(mlir::Value element, mlir::Value extreme, Monoid monoid, mlir::Operation *op,
                      ErrorValue &result);
  bool holdsExtreme(dnf::ReduceOp op, mlir::Value term);
  ErrorExpr repairs(const ErrorValue &x);

  // RoundingErrorNorms.cpp
  using Norm = MagnitudeStatistic::Kind;
  std::optional<ErrorExpr> norm(Term term, mlir::Value index, Norm kind, ErrorValue &rests);
  std::optional<ErrorExpr> normOfElement(dnf::PsiOp psi, const Term &term, mlir::Value index,
                                         Norm kind);
  /// |x| ≤ scale·y and ‖x‖ ≤ scale·y in the norm, over the indices of a reduction.
  struct Normalised {
    Norm norm; ///< MaxAbs, MaxL2 or MaxL1
    ErrorExpr scale;
    Term reduction, place;
  };
  std::optional<Normalised> findNorm(const Term &x, Term y, bool isSquared,
                                     const std::set<mlir::Value, ValueLess> &candidates);
  std::optional<Normalised> findNormIn(const Term &x, const Term &reduction, bool isSquared,
                                       const std::set<mlir::Value, ValueLess> &candidates);
  std::optional<Normalised> findQuotient(const Term &term,
                                         const std::set<mlir::Value, ValueLess> &candidates);
  std::optional<Normalised> findOver(Term x, const Term &y, bool isRoot,
                                     const std::set<mlir::Value, ValueLess> &candidates);
  /// The least 2-norm of the terms that all of a reduction's range has; of its magnitudes, which
  /// their sum is not below.
  std::optional<ErrorExpr> leastNorm(dnf::ReduceOp op, Term x);
  std::optional<ErrorExpr> leastOfMagnitudes(dnf::ReduceOp op, mlir::Value term);
  /// What a sum of magnitudes or squares is not below.
  std::optional<ErrorExpr> leastOfSum(dnf::ReduceOp op, mlir::Value term);
  /// x, or its negative or magnitude, where the term is x², which is never negative.
  std::optional<Term> findSquared(const Term &square);
  ErrorExpr magnitude(const Term &term);
  ErrorExpr least(const Term &term);
  ErrorExpr atIndices(const ErrorExpr &own, const Term &term);
  bool dependsOn(const Term &term, mlir::Value index);
  /// The same facts at other indices, or of all.
  void substituteFacts(ErrorValue &x,
                       llvm::function_ref<std::optional<mlir::Value>(mlir::Value)> to);
  ErrorExpr substituteIndices(const ErrorExpr &e,
                              llvm::function_ref<std::optional<mlir::Value>(mlir::Value)> to);
  ErrorExpr sumRounding(llvm::StringRef extent);
  ErrorExpr extentOf(llvm::StringRef text);

  ErrorContext &context;
  ErrorExprPool &pool;
  ErrorRules &rules;
  mlir::DenseMap<mlir::Value, std::shared_ptr<const ErrorValue>> values, shallowValues;
  bool repeat = false;
};

/// Whether the value is a parameter's element or selected among such.
bool isTakenAsItIs(mlir::Value value);

} // namespace moa

#endif // MOA_ANALYSIS_ROUNDINGERRORWALK_H
