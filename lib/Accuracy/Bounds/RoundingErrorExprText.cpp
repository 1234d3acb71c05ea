//===- RoundingErrorExprText.cpp - bounds as text and JSON ----------------===//
#include "lib/Accuracy/Bounds/RoundingErrorExpr.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <limits>

using namespace moa;
using Atom = ErrorExpr::Atom;
using Kind = MagnitudeStatistic::Kind;

/// Prints a coefficient with three digits; JSON has all digits.
static std::string formatCoefficient(double value) {
  if (!std::isfinite(value))
    return "∞";
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.3g", value);
  return text;
}

static llvm::StringRef getKindName(Kind kind) {
  switch (kind) {
  case Kind::MaxAbs:
    return "maxabs";
  case Kind::MaxL2:
    return "maxL2";
  case Kind::MaxL1:
    return "maxL1";
  case Kind::MinAbs:
    return "minabs";
  case Kind::MinL2:
    return "minL2";
  }
  return "";
}

static llvm::StringRef getFunctionName(Atom::Kind kind) {
  // In the order of Atom::Kind.
  static constexpr llvm::StringLiteral names[] = {"statistic", "extent", "parameter", "tiny", "unknown", "exp",
                                                  "expm1",     "sqrt",   "recip",     "max",  "min",     "group"};
  static_assert(std::size(names) == size_t(Atom::Kind::Group) + 1);
  return names[size_t(kind)];
}

std::string ErrorExprText::name(const MagnitudeStatistic &statistic) const {
  if (statistic.axes.empty())
    return "|" + statistic.array + "|";
  std::string text = getKindName(statistic.kind).str() + "(" + statistic.array + "[";
  llvm::raw_string_ostream os(text);
  llvm::interleave(
      statistic.axes, os,
      [&](int axis) {
        os << (axis == MagnitudeStatistic::kExtreme ? "*" : axis == MagnitudeStatistic::kNorm ? ":" : indexName(axis));
      },
      ", ");
  return text + "])";
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

std::string ErrorExprText::writeAtom(const Atom &atom) {
  switch (atom.kind) {
  case Atom::Kind::Statistic:
    return name(atom.statistic);
  case Atom::Kind::Extent: {
    std::string text = atom.extent.str();
    return atom.extent.getSymbol() ? text : "|" + text + "|";
  }
  case Atom::Kind::Parameter:
    return atom.text;
  case Atom::Kind::Tiny:
    return "η";
  case Atom::Kind::Unknown:
    return "∞";
  case Atom::Kind::Recip:
    return "(1/(" + sum(atom.operands[0]) + "))";
  case Atom::Kind::Group:
    return "(" + sum(atom.operands[0]) + ")";
  default:
    std::string text = getFunctionName(atom.kind).str() + "(" + sum(atom.operands[0]);
    for (const ErrorExpr &operand : llvm::drop_begin(atom.operands))
      text += ", " + sum(operand);
    return text + ")";
  }
}

/// Returns the text of an atom. Long texts that occur again get a name.
std::string ErrorExprText::atom(const Atom &atom) {
  if (auto it = texts.find(atom.number); it != texts.end())
    return it->second;
  std::string text = writeAtom(atom);
  if (!atom.operands.empty() && uses[atom.number] > 1 && text.size() > 24) {
    std::string name = "t" + std::to_string(definitions->size() + 1);
    definitions->push_back(name + " = " + text);
    text = name;
  }
  return texts[atom.number] = text;
}

std::string ErrorExprText::product(const ErrorExpr::Factors &factors, double coefficient) {
  std::string text;
  std::string number = formatCoefficient(coefficient);
  if (number != "1" || factors.empty())
    text = number;
  std::string divisors;
  for (auto [factor, power] : factors) {
    std::string &side = power < 0 ? divisors : text;
    side += (power < 0 ? "/" : text.empty() ? "" : "·") + atom(*factor);
    if (std::abs(power) > 1)
      side += "^" + std::to_string(std::abs(power));
  }
  return (text.empty() ? "1" : text) + divisors;
}

std::string ErrorExprText::sum(const ErrorExpr &e) {
  if (e.isZero())
    return "0";
  std::string text;
  for (const auto &[factors, coefficient] : e.getTerms())
    text += (text.empty() ? "" : " + ") + product(factors, coefficient);
  return text;
}

std::vector<std::string> ErrorExprText::print(llvm::ArrayRef<ErrorExpr> expressions, std::vector<std::string> &lines) {
  definitions = &lines;
  auto count = [&](const ErrorExpr &e) {
    for (const auto &term : e.getTerms())
      for (auto [factor, power] : term.first)
        ++uses[factor->number];
  };
  std::set<unsigned> seen;
  for (const ErrorExpr &e : expressions) {
    count(e);
    for (const Atom *inner : e.collectAtoms())
      if (seen.insert(inner->number).second)
        for (const ErrorExpr &operand : inner->operands)
          count(operand);
  }
  std::vector<std::string> result;
  for (const ErrorExpr &e : expressions)
    result.push_back(sum(e));
  return result;
}

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

llvm::json::Object ErrorExprText::atomToJSON(const Atom &atom) const {
  llvm::json::Object object{{"atom", atom.number}, {"kind", getFunctionName(atom.kind)}};
  if (atom.kind == Atom::Kind::Unknown)
    object["reason"] = atom.text;
  if (atom.kind == Atom::Kind::Parameter)
    object["name"] = atom.text;
  if (atom.kind == Atom::Kind::Extent)
    object["expression"] = atom.extent.str();
  if (atom.kind != Atom::Kind::Statistic)
    return object;
  object["name"] = name(atom.statistic);
  object["array"] = atom.statistic.array;
  object["statistic"] = getKindName(atom.statistic.kind);
  llvm::json::Array axes;
  for (int axis : atom.statistic.axes)
    axes.push_back(axis == MagnitudeStatistic::kExtreme ? "extreme"
                   : axis == MagnitudeStatistic::kNorm  ? "norm"
                                                        : "index " + indexName(axis));
  object["axes"] = std::move(axes);
  return object;
}

llvm::json::Value ErrorExprText::toJSON(const ErrorExpr &e, llvm::json::Array &atoms,
                                        std::set<unsigned> &listed) const {
  for (const Atom *atom : e.collectAtoms()) {
    if (!listed.insert(atom->number).second)
      continue;
    llvm::json::Object object = atomToJSON(*atom);
    llvm::json::Array operands;
    for (const ErrorExpr &operand : atom->operands)
      operands.push_back(toJSON(operand, atoms, listed));
    if (!operands.empty())
      object["operands"] = std::move(operands);
    atoms.push_back(std::move(object));
  }
  llvm::json::Array terms;
  for (const auto &[factors, coefficient] : e.getTerms()) {
    llvm::json::Array list;
    for (auto [factor, power] : factors)
      list.push_back(llvm::json::Object{{"atom", factor->number}, {"power", power}});
    // JSON literals are read back as the same double.
    terms.push_back(llvm::json::Object{{"coefficient", coefficient}, {"factors", std::move(list)}});
  }
  return llvm::json::Object{{"terms", std::move(terms)}};
}
