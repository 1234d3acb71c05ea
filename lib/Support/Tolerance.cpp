//===- Tolerance.cpp - the error that a result may have -------------------===//
#include "lib/Support/Tolerance.h"
#include "lib/Support/Shorten.h"
#include "lib/Support/ToleranceLimit.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

namespace moa {

/// Shortens `1.900e-03` to `1.9e-3`; without the exponent if it is small and not negative.
static std::string shortForm(llvm::StringRef text) {
  auto [mantissa, power] = text.split('e');
  int exponent = 0;
  power.ltrim('+').getAsInteger(10, exponent);
  if (mantissa.contains('.'))
    mantissa = mantissa.rtrim('0').rtrim('.');
  std::string digits = mantissa.str();
  bool isPlain = exponent >= 0 && exponent < 6;
  if (!isPlain)
    return digits + "e" + std::to_string(exponent);
  llvm::erase(digits, '.');
  if (int(digits.size()) <= exponent + 1)
    return digits.append(exponent + 1 - digits.size(), '0');
  return digits.insert(exponent + 1, ".");
}

std::string getNumberText(double value, unsigned digits) {
  if (!std::isfinite(value) || value == 0)
    return value == 0 ? "0" : std::isnan(value) ? "NaN" : "inf";
  std::string text;
  for (unsigned k = 0; k < digits; ++k) {
    text.clear();
    llvm::raw_string_ostream(text) << llvm::format("%.*e", int(k), value);
    double back = 0;
    if (!llvm::StringRef(text).getAsDouble(back) && back == value)
      break;
  }
  return shortForm(text);
}

std::string Tolerance::str() const {
  std::string text = getNumberText(epsilon);
  if (isRelative)
    text += " " + kRelativeWord.str();
  if (isSampled)
    text += " " + kSampledWord.str();
  return text;
}

std::optional<std::string> whyNotKept(const Tolerance &tolerance, unsigned precision, llvm::StringRef type) {
  double unit = std::ldexp(1.0, -int(precision)), largest = unit / (1 + unit);
  if (tolerance.isSampled || tolerance.epsilon >= largest)
    return std::nullopt;
  return "no result of " + type.str() + " is within " + getNumberText(tolerance.epsilon) +
         " for every input, as rounding to " + type.str() + " alone is off by up to " + getNumberText(largest, 2) +
         "; allow that much, have a result with more bits, or say 'relative sampled'";
}

std::optional<Tolerance> parseTolerance(llvm::StringRef text, std::string &why) {
  llvm::SmallVector<llvm::StringRef> words;
  text.split(words, ',');
  Tolerance result;
  llvm::StringRef number = words.front().trim();
  if (number.getAsDouble(result.epsilon) || !isEpsilon(result.epsilon)) {
    why = "is a positive, finite number, but '" + shorten(number, 40) + "' is none";
    return std::nullopt;
  }
  llvm::ArrayRef<llvm::StringRef> rest = llvm::ArrayRef(words).drop_front();
  auto take = [&](llvm::StringRef word) {
    bool isThere = !rest.empty() && rest.front().trim() == word;
    rest = rest.drop_front(isThere);
    return isThere;
  };
  result.isRelative = take(kRelativeWord);
  result.isSampled = take(kSampledWord);
  if (rest.empty() && result.isSampled && !result.isRelative) {
    why = "is ',sampled' without ',relative', but " + kSampledIsRelative.str();
    return std::nullopt;
  }
  if (rest.empty())
    return result;
  why = "is a number, optionally followed by ',relative' and ',sampled', in this order, but it ends "
        "in '," +
        shorten(rest.front(), 40) + "'";
  return std::nullopt;
}

} // namespace moa
