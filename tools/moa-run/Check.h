//===- Check.h - results against the reference interpreter ------*- C++ -*-===//
#ifndef MOA_TOOLS_MOA_RUN_CHECK_H
#define MOA_TOOLS_MOA_RUN_CHECK_H

#include "Delivered.h"
#include "Progress.h"
#include "Values.h"
#include <algorithm>

namespace moa {

using SymbolValues = std::map<std::string, int64_t>;

/// Roundings that a machine may make where the interpreter makes one.
constexpr double kRoundings = 4;

/// How far one output is from the interpreter's.
struct OutputError {
  std::string name;
  int64_t rows = 0, allRows = 0; ///< compared, and how many there are
  double maximum = 0;            ///< of |x − reference|
  double relative = 0;           ///< L2 norm of the difference over the norm
  double tolerance = 0;          ///< on `relative`, of the element types
  /// How far the result moves, relatively, when computed operands of contractions are
  /// rounded as the language says; measured only where `relative` exceeds `tolerance`.
  double operands = 0;
  /// How far the reference itself moves, relatively, when each of its scalar
  /// operations is off by one rounding of the type that scores and statistics
  /// are computed in; measured only where `relative` exceeds the bound.
  double conditioning = 0;
  /// Elements, integers or booleans, that differ where a rounding of the floats that they
  /// come from decides; they are no part of `relative`.
  int64_t ties = 0;
  /// A NaN or an infinity that only one side has, or the wrong one; `note` says where.
  bool mismatch = false;
  std::string note;
  /// The tolerance that the output has, and its error in that measure over the rows that
  /// are compared.
  std::optional<AllowedError> allowed;
  DeliveredError delivered;
  /// What the tolerance says, relatively, where a pass may spend it.
  double spendable = 0;
  bool keepsTolerance() const { return !allowed || delivered <= *allowed; }
  /// Where the language's own roundings move a result by more than a sixteenth, nothing
  /// can be said of it, and the bound stays there.
  static constexpr double kMostOfOperands = 1.0 / 16;
  double getBound() const {
    return std::max(tolerance + std::min(operands, kMostOfOperands), spendable);
  }
  /// True where an error beyond the tolerance is within four roundings per
  /// operation: the problem amplifies rounding so far that no evaluation in that
  /// type does better. It fails nevertheless; this says where to look.
  bool illConditioned() const {
    return relative > getBound() && relative <= kRoundings * conditioning;
  }
  /// Where no pass spends accuracy, a result with a tolerance keeps the bound of its types too.
  bool ok() const { return !mismatch && relative <= getBound() && keepsTolerance(); }
};

/// Relative L2 error an output may have: that of the coarsest float type among
/// the output and the input arrays; 0 for integers and booleans.
double getTolerance(const KernelInfo &info, const ParameterInfo &output);

/// Compares every output with the interpreter on the denotational normal form:
/// `rows` rows (all leading axes fixed) chosen by `seed`, the first and the
/// last among them, or all rows when `rows` is 0 (then on the moa level). Where
/// an output misses its tolerance, the interpreter runs again with rounded operands, and in
/// Monte Carlo arithmetic to tell the kernel's error from the problem's conditioning. Empty
/// after an error of the interpreter, which is in the unit's diagnostics.
std::optional<std::vector<OutputError>> checkOutputs(Compilation &unit, const KernelInfo &info,
                                                     const std::vector<ReferenceArray> &inputs,
                                                     const SymbolValues &symbols,
                                                     const std::vector<Value> &outputs,
                                                     int64_t rows, uint64_t seed);

} // namespace moa

#endif // MOA_TOOLS_MOA_RUN_CHECK_H
