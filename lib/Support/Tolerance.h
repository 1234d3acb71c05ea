//===- Tolerance.h - the error that a result may have -----------*- C++ -*-===//
//
// What `within` says of a result, in the words of the language; docs/Spec.md, Def 24,
// has the measures.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_SUPPORT_TOLERANCE_H
#define MOA_SUPPORT_TOLERANCE_H

#include "llvm/ADT/StringRef.h"
#include <cmath>
#include <optional>
#include <string>

namespace moa {

/// The words behind the number of a tolerance, in their order. They are no reserved words.
inline constexpr llvm::StringLiteral kRelativeWord = "relative", kSampledWord = "sampled";

/// An epsilon is positive and finite.
inline bool isEpsilon(double value) { return std::isfinite(value) && value > 0; }

/// A positive number with the fewest digits that give it back, or with at most `digits`:
/// `3e-2`, `1.9e-3`, `2.5`.
std::string getNumberText(double value, unsigned digits = 17);

/// Why no tolerance is sampled without being relative, and the remedy.
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

  /// `3e-2 relative sampled`.
  std::string str() const;
};

/// `3e-2,relative,sampled`, as an option has it; nothing, and why, if it is none.
std::optional<Tolerance> parseTolerance(llvm::StringRef text, std::string &why);

} // namespace moa

#endif // MOA_SUPPORT_TOLERANCE_H
