//===- Check.h - results against the reference interpreter ------*- C++ -*-===//
#ifndef MOA_TOOLS_MOA_RUN_CHECK_H
#define MOA_TOOLS_MOA_RUN_CHECK_H

#include "Delivered.h"
#include "Progress.h"
#include "Values.h"
#include <algorithm>

namespace moa {

using SymbolValues = std::map<std::string, int64_t>;

/// Number of roundings of the machine per rounding of the interpreter.
constexpr double kRoundings = 4;

struct OutputError {
  std::string name;
  int64_t rows = 0, allRows = 0; ///< compared rows, and all rows
  double maximum = 0;            ///< of |x − reference|
  double relative = 0;           ///< L2 norm of the difference over the norm
  double tolerance = 0;          ///< on `relative`, of the element types
  /// Relative change of the result when computed operands of contractions are rounded as the
  /// language defines; measured only if `relative` exceeds `tolerance`.
  double operands = 0;
  /// Relative change of the reference when each of its scalar operations has one random error of a
  /// unit roundoff (of f64 if an input is f64, else of f32): the conditioning. It is measured only if `relative`
  /// exceeds the bound.
  double conditioning = 0;
  /// Number of differing integers or booleans that a rounding of the floats they depend on decides.
  /// They do not count in `relative`.
  int64_t ties = 0;
  /// True if one side has a NaN or infinity that the other has not; `note` gives the place.
  bool mismatch = false;
  std::string note;
  /// The tolerance of the output, and its error in that measure over the compared rows.
  std::optional<AllowedError> allowed;
  DeliveredError delivered;
  /// The tolerance as a relative error, if a pass may use mixed precision for it.
  double spendable = 0;
  bool keepsTolerance() const { return !allowed || delivered <= *allowed; }
  /// Cap on `operands`: if the language's own roundings change a result more, the comparison is
  /// meaningless.
  static constexpr double kMostOfOperands = 1.0 / 16;
  double getBound() const { return std::max(tolerance + std::min(operands, kMostOfOperands), spendable); }
  /// Returns true if an error beyond the bound is within four roundings per operation. Then the
  /// problem is ill-conditioned: no evaluation in that type is more accurate. The check fails
  /// nevertheless, with this explanation.
  bool illConditioned() const { return relative > getBound() && relative <= kRoundings * conditioning; }
  /// Without mixed precision, a result with a tolerance must also satisfy the bound of its types.
  bool ok() const { return !mismatch && relative <= getBound() && keepsTolerance(); }
};

/// Returns the allowed relative L2 error of an output: that of the coarsest float type among the
/// output and the input arrays; 0 for integers and booleans.
double getTolerance(const KernelInfo &info, const ParameterInfo &output);

/// Compares every output with the interpreter on the dnf level. Compares `rows` random rows (all
/// leading axes fixed), including the first and the last. If `rows` is 0, compares all rows, on the
/// moa level. If an output exceeds its tolerance, the interpreter runs again with rounded operands,
/// and in Monte Carlo arithmetic to separate the kernel's error from the problem's conditioning.
/// Returns nothing after an error of the interpreter, which is in the compilation's diagnostics.
std::optional<std::vector<OutputError>> checkOutputs(Compilation &compilation, const KernelInfo &info,
                                                     const std::vector<ReferenceArray> &inputs,
                                                     const SymbolValues &symbols, const std::vector<HostArray> &outputs,
                                                     int64_t rows, uint64_t seed);

} // namespace moa

#endif // MOA_TOOLS_MOA_RUN_CHECK_H
