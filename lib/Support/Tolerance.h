//===- Tolerance.h - the error that a result may have -----------*- C++ -*-===//
//
// The tolerance `within` of a result; docs/Spec.md, Def 24, defines its measures.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_SUPPORT_TOLERANCE_H
#define MOA_SUPPORT_TOLERANCE_H

#include "llvm/ADT/StringRef.h"
#include <cmath>
#include <optional>
#include <string>

namespace moa {

/// The words after the number of a tolerance, in this order. They are not reserved.
inline constexpr llvm::StringLiteral kRelativeWord = "relative", kSampledWord = "sampled";

inline bool isEpsilon(double value) { return std::isfinite(value) && value > 0; }

/// Prints a positive number with the fewest digits that round-trip, but at most `digits`. For
/// example `3e-2`, `1.9e-3`, `2.5`.
std::string getNumberText(double value, unsigned digits = 17);

/// Says why a sampled tolerance must be relative, and how to write it.
inline constexpr llvm::StringLiteral kSampledIsRelative =
    "a sample estimates the error in the norm of a result: write 'relative sampled'";

struct Tolerance {
  double epsilon = 0;
  /// The L2 error relative to the norm, per index of the leading axes; otherwise the error of each
  /// element, relative to its magnitude.
  bool isRelative = false;
  /// Estimated on a random sample with a stated confidence; otherwise bounded for every input.
  /// Only relative tolerances are sampled.
  bool isSampled = false;

  /// Prints, for example, `3e-2 relative sampled`.
  std::string str() const;
};

/// Parses `3e-2,relative,sampled`, the form of options. Returns nothing for another text and sets
/// `why`.
std::optional<Tolerance> parseTolerance(llvm::StringRef text, std::string &why);

} // namespace moa

#endif // MOA_SUPPORT_TOLERANCE_H
