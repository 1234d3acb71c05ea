//===- RoundingError.h - a-priori bounds on rounding errors -----*- C++ -*-===//
//
// A-priori forward error analysis: a bound on the rounding error of every result of a dnf kernel.
// It holds for all inputs. It is an expression over magnitude statistics of the inputs, all of
// which one pass over the inputs finds [docs/Accuracy/Bounds.md]:
//
//   auto analysis = RoundingErrorAnalysis::create(kernel);
//   FormatAssignment formats = *parseFormats("S.lhs:int8,S.rhs:int8");
//   ErrorBound bound = analysis.bound(0, formats);
//
// For a result O whose outermost contraction is P·V: |δO| ≤ relative·(|P|·|V|) + absolute. The
// measure |P|·|V| is O with absolute values pushed through sums, products and quotients down to the
// operands of that contraction. The `deep` bounds use the measure that pushes them through all
// contractions.
//
// The analysis runs once; formats are substituted afterwards.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_ACCURACY_ROUNDINGERROR_H
#define MOA_ACCURACY_ROUNDINGERROR_H

#include "lib/Accuracy/Bounds/RoundingErrorExpr.h"
#include "lib/Accuracy/Bounds/RoundingErrorFormats.h"
#include "lib/Accuracy/Bounds/RoundingErrorRules.h"
#include "llvm/Support/raw_ostream.h"

namespace moa {

struct ContractionOperand {
  std::string name; ///< "S.lhs": the definition of the contraction, and its side
  mlir::Location place;
  bool isComputed = false; ///< otherwise a parameter or a selection of parameters
  std::string array;       ///< the parameter, if it is one
  mlir::Type type;         ///< the type of the parameter, or the type it is rounded to
  static constexpr unsigned kParameters = 4;
  unsigned parameter = 0; ///< the first of its parameters: relative, of the row, absolute, and as multiples of η
  const OperandFormat *standard = nullptr; ///< the format without an assignment
};

/// The error bound of one result.
struct ErrorBound {
  ErrorExpr relative, absolute;
  ErrorExpr deepRelative, deepAbsolute;
  bool hasDeep = false; ///< true if the two measures differ
  /// The bound without the roundings of one source; the difference is its contribution.
  struct Contribution {
    std::string source;
    ErrorExpr relativeWithout, absoluteWithout;
  };
  std::vector<Contribution> contributions;
  /// Conditions, checked by evaluation, and assumptions.
  std::vector<ErrorFact> facts;
  /// The reasons if a bound is ∞.
  std::vector<std::string> reasons;
};

class RoundingErrorAnalysis {
public:
  static RoundingErrorAnalysis create(dnf::KernelOp kernel);
  RoundingErrorAnalysis(RoundingErrorAnalysis &&);
  RoundingErrorAnalysis &operator=(RoundingErrorAnalysis &&);
  ~RoundingErrorAnalysis();

  llvm::ArrayRef<ContractionOperand> operands() const;
  /// Returns the numbers of the indices of the result that statistics may keep.
  std::vector<std::string> freeIndices(unsigned result) const;
  /// Returns an error if an operand of the assignment does not exist.
  llvm::Error check(const FormatAssignment &formats) const;
  ErrorBound bound(unsigned result, const FormatAssignment &formats = {}) const;

  void print(llvm::raw_ostream &os, const FormatAssignment &formats = {}) const;
  llvm::json::Value toJSON(const FormatAssignment &formats = {}) const;
  /// Returns the value of kBoundsAttr.
  llvm::json::Value boundsToJSON() const;

  struct Impl;

private:
  explicit RoundingErrorAnalysis(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

/// Sets kBoundsAttr on `on`, a dnf kernel or the onf kernel lowered from it, unless it has no
/// bounds.
void setBounds(dnf::KernelOp kernel, mlir::Operation *on);

} // namespace moa

#endif // MOA_ACCURACY_ROUNDINGERROR_H
