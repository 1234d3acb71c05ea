//===- MathTerm.cpp - scalar operations as readable mathematics -----------===//
#include "lib/Support/MathTerm.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

using namespace moa;
using llvm::StringRef;

namespace {
struct Infix {
  StringRef operation, symbol;
  MathTerm::Strength strength;
  bool tightRight; // parentheses on the right: a − (b − c)
};
} // namespace

static const Infix infixes[] = {
    {"arith.addf", " + ", MathTerm::Sum, false},   {"arith.addi", " + ", MathTerm::Sum, false},
    {"arith.subf", " − ", MathTerm::Sum, true},    {"arith.subi", " − ", MathTerm::Sum, true},
    {"arith.mulf", "·", MathTerm::Product, false}, {"arith.muli", "·", MathTerm::Product, false},
    {"arith.divf", "/", MathTerm::Product, true},
};

StringRef moa::getComparison(bool isFloat, int64_t predicate) {
  static const StringRef integers[] = {" = ", " ≠ ", " < ", " ≤ ", " > ", " ≥ ", " < ", " ≤ ", " > ", " ≥ "};
  // Ordered, then unordered: eq, gt, ge, lt, le, ne; false, ord and uno, true.
  static const StringRef floats[] = {" ? ", " = ", " > ", " ≥ ", " < ", " ≤ ", " ≠ ", " ? ",
                                     " = ", " > ", " ≥ ", " < ", " ≤ ", " ≠ ", " ? ", " ? "};
  return isFloat ? floats[predicate] : integers[predicate];
}

/// Returns the name of a function in the language.
static StringRef getFunction(StringRef operation) {
  return llvm::StringSwitch<StringRef>(operation)
      .Cases({"arith.maximumf", "arith.maxnumf", "arith.maxsi", "arith.maxui"}, "max")
      .Cases({"arith.minimumf", "arith.minnumf", "arith.minsi", "arith.minui"}, "min")
      .Cases({"math.absf", "math.absi"}, "abs")
      .Case("math.powf", "pow")
      .Cases({"arith.remsi", "arith.remui"}, "rem")
      .Default(operation.split('.').second);
}

MathTerm moa::makeMathTerm(StringRef operation, llvm::ArrayRef<MathTerm> operands, bool isTruth, StringRef type,
                           int64_t predicate) {
  auto infix = [&](StringRef symbol, MathTerm::Strength strength, bool tightRight) {
    auto right = static_cast<MathTerm::Strength>(strength + (tightRight ? 1 : 0));
    return MathTerm{operands[0].at(strength) + symbol.str() + operands[1].at(right), strength};
  };
  for (const Infix &entry : infixes)
    if (entry.operation == operation)
      return infix(entry.symbol, entry.strength, entry.tightRight);
  if (operation == "arith.cmpi" || operation == "arith.cmpf")
    return infix(getComparison(operation == "arith.cmpf", predicate), MathTerm::Compare, true);
  if (operation == "arith.andi")
    return isTruth ? infix(" and ", MathTerm::And, false) : infix(" & ", MathTerm::Or, true);
  if (operation == "arith.ori")
    return isTruth ? infix(" or ", MathTerm::Or, false) : infix(" | ", MathTerm::Or, true);
  if (operation == "arith.xori")
    return isTruth ? infix(" ≠ ", MathTerm::Compare, true) : infix(" ^ ", MathTerm::Or, true);
  if (operation == "arith.floordivsi")
    return {"⌊" + operands[0].at(MathTerm::Product) + "/" + operands[1].at(MathTerm::Unary) + "⌋"};
  if (operation == "arith.negf")
    return {"−" + operands[0].at(MathTerm::Unary), MathTerm::Unary};
  if (operation == "arith.select")
    return {"(" + operands[0].text + " ? " + operands[1].text + " : " + operands[2].text + ")"};
  // Widening changes no value.
  for (StringRef widening : {"arith.extf", "arith.extsi", "arith.extui", "arith.sitofp", "arith.uitofp",
                             "arith.index_cast", "arith.index_castui"})
    if (operation == widening)
      return operands[0];
  std::string text = (operation == "arith.truncf" ? type : getFunction(operation)).str() + "(";
  for (const MathTerm &operand : operands)
    text += (&operand == operands.begin() ? "" : ", ") + operand.text;
  return {text + ")"};
}

std::string moa::formatNumber(double value) {
  if (std::isnan(value))
    return "NaN";
  if (std::isinf(value))
    return value < 0 ? "−∞" : "∞";
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%g", value);
  return text;
}

StringRef moa::getReductionSymbol(StringRef monoid) {
  return llvm::StringSwitch<StringRef>(monoid)
      .Case("add", "Σ")
      .Case("mul", "Π")
      .Case("and", "∀")
      .Case("or", "∃")
      .Default(monoid);
}
