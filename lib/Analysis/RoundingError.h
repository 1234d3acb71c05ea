//===- RoundingError.h - a-priori bounds on rounding errors -----*- C++ -*-===//
//
// For every result of a dnf kernel a bound on what rounding changes, sound for any
// inputs, as an expression over magnitude statistics of the inputs that one pass over
// them finds [docs/Accuracy/Bounds.md]:
//
//   auto analysis = RoundingErrorAnalysis::create(kernel);
//   FormatAssignment formats = *parseFormats("S.lhs:int8,S.rhs:int8");
//   ErrorBound bound = analysis.bound(0, formats);
//   double E = analysis.evaluate(bound.relative, bindings);
//
// |δO| ≤ relative·(|P|·|V|) + absolute for an O whose outermost contraction is P·V:
// the measure is the result with absolute values pushed through sums, products and
// quotients down to the operands of that contraction. `deep` is about the measure that
// pushes them further, through every contraction on the way.
//
// The analysis runs once; formats are put in afterwards.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_ANALYSIS_ROUNDINGERROR_H
#define MOA_ANALYSIS_ROUNDINGERROR_H

#include "lib/Analysis/RoundingErrorExpr.h"
#include "lib/Analysis/RoundingErrorFormats.h"
#include "lib/Analysis/RoundingErrorRules.h"
#include "llvm/Support/raw_ostream.h"

namespace moa {

/// A factor of the terms of a contraction.
struct ContractionOperand {
  std::string name; ///< "S.lhs": the definition that the contraction stands in, and a side
  mlir::Location place;
  bool isComputed = false; ///< otherwise a parameter or a selection of parameters
  std::string array;       ///< the parameter, if it is one
  mlir::Type type;         ///< of a parameter its own, else what it is rounded to
  static constexpr unsigned kParameters = 4;
  unsigned parameter =
      0; ///< the first of its parameters: relative, of the row, absolute, and as multiples of η
  const OperandFormat *standard = nullptr; ///< the format without an assignment
};

/// The bound of one result.
struct ErrorBound {
  ErrorExpr relative, absolute;
  ErrorExpr deepRelative, deepAbsolute;
  bool hasDeep = false; ///< the two measures differ
  /// E less what it is without the roundings of one source.
  struct Contribution {
    std::string source;
    ErrorExpr relativeWithout, absoluteWithout;
  };
  std::vector<Contribution> contributions;
  /// Checked by evaluation, or assumed.
  std::vector<ErrorFact> facts;
  /// Why a bound is ∞.
  std::vector<std::string> reasons;
};

/// Numbers of a bound.
struct ErrorNumbers {
  double relative, absolute, deepRelative, deepAbsolute;
  std::vector<double> contributions; ///< to `relative`, or of ∞ none
};

class RoundingErrorAnalysis {
public:
  static RoundingErrorAnalysis create(dnf::KernelOp kernel, const RoundingModel &model = {});
  RoundingErrorAnalysis(RoundingErrorAnalysis &&);
  RoundingErrorAnalysis &operator=(RoundingErrorAnalysis &&);
  ~RoundingErrorAnalysis();

  llvm::ArrayRef<ContractionOperand> operands() const;
  /// The names of the results.
  std::vector<std::string> results() const;
  /// The result's indices that statistics may keep, by number.
  std::vector<std::string> freeIndices(unsigned result) const;
  /// An error if an operand of the assignment does not exist.
  llvm::Error check(const FormatAssignment &formats) const;
  ErrorBound bound(unsigned result, const FormatAssignment &formats = {}) const;
  /// The statistics that the bound needs.
  std::vector<MagnitudeStatistic> statistics(const ErrorBound &bound) const;
  /// ∞ if a fact that can be checked does not hold.
  ErrorNumbers evaluate(const ErrorBound &bound, const ErrorBindings &bindings) const;

  void print(llvm::raw_ostream &os, const FormatAssignment &formats = {}) const;
  llvm::json::Value toJSON(const FormatAssignment &formats = {}) const;
  /// What kBoundsAttr holds.
  llvm::json::Value boundsToJSON() const;

  struct Impl;

private:
  explicit RoundingErrorAnalysis(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

/// Puts kBoundsAttr on a kernel of dnf, or on the one of onf that it becomes, if there are such
/// bounds.
void setBounds(dnf::KernelOp kernel, mlir::Operation *on);

} // namespace moa

#endif // MOA_ANALYSIS_ROUNDINGERROR_H
