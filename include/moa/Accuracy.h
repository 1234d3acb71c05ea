//===- Accuracy.h - results that may be less accurate -----------*- C++ -*-===//
//
// Options of the passes that spend accuracy, and tolerances. docs/Accuracy/Guide.md says which
// variants there are, and what a tolerance promises.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_ACCURACY_H
#define MOA_ACCURACY_H

#include <cstdint>
#include <string>
#include <vector>

namespace moa {

/// The error that a result may have: `within 3e-2 relative sampled` in a specification.
struct AllowedError {
  double epsilon = 0;
  /// The L2 error relative to the norm, per index of all but the last two axes (of a vector, as a
  /// whole). Otherwise the error of each element, relative to its magnitude.
  bool isRelative = false;
  /// Estimated on a random sample with a stated confidence. Otherwise bounded for every input.
  bool isSampled = false;
};

/// Which variants of a kernel may be computed in place of the unmodified one, and how a variant is
/// chosen for each index of the axes before the rows (a head).
struct AccuracyOptions {
  /// Tolerances by result, in place of those of the specification: "O=3e-2,relative,sampled".
  std::vector<std::string> tolerances;
  /// Evaluate in each call the bounds of tolerances that hold for every input. A call returns
  /// Kernel::kNotShown if a bound exceeds its tolerance. Without, nothing is evaluated.
  bool checksTolerances = true;
  /// Add mixed-precision variants. They are also there if decisions are asked for or given.
  bool mixedPrecision = false;
  /// Rows and keys from which mixed-precision variants are tried, at least 256; 0: from where they
  /// pay by the cost models of a GPU and of a CPU with dot products of bytes.
  int64_t mixedPrecisionFrom = 256;
  /// On a GPU, multiply-adds of a head from which a few of its rows and keys, of at least 2,048,
  /// tell first whether the variant of 8 bits is tried; -1: where `mixedPrecisionFrom` is 0 and it
  /// pays.
  int64_t pilotFrom = -1;
  /// Use the variants of a GPU, whatever the target.
  bool variantsOfGpu = false;
  /// Rows and keys from which few keys may stand for many near them; 0: never. On a GPU it pays
  /// from kLowRankFrom.
  int64_t lowRankFrom = 0;
  static constexpr int64_t kLowRankFrom = 32768;
  /// Return the decisions, and the estimates behind them, as further results of a kernel.
  bool decisions = false;
  /// Decisions taken beforehand, the text of a file that moa-run --calibrate writes; empty: they
  /// are taken when a kernel runs.
  std::string plans;
  /// The file of `plans`, named in errors about it.
  std::string plansFile;
  /// Estimate the error of given decisions too, and replace those that exceed the tolerance.
  bool checksPlans = false;
  /// Warn, with the reason, if no variant can be used for any input size.
  bool warnsIfUnused = false;
};

} // namespace moa

#endif // MOA_ACCURACY_H
