//===- TermText.cpp - terms as readable mathematics -----------------------===//
#include "lib/Validation/Term.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace moa;
using namespace moa::validation;

namespace {
enum Strength : unsigned { Loose, OrLevel, AndLevel, CompareLevel, SumLevel, ProductLevel, Tight };
}

/// The operator of remainders in texts, which terms represent as x − m·⌊x/m⌋.
static constexpr StringLiteral remainderName = "%";

static bool isDivision(Term term) {
  return term->is(TermKind::Quotient) || (term->is(TermKind::Scalar) && term->name == remainderName);
}

/// Finds c·(x − m·⌊x/m⌋) in a sum. Returns the quotient and c.
std::optional<std::pair<Term, int64_t>> TermContext::takeRemainder(Term sum) {
  for (auto [part, coefficient] : llvm::zip_equal(sum->operands, sum->coefficients))
    for (Term quotient : part->is(TermKind::Product) ? part->operands : ArrayRef<Term>(part)) {
      if (!quotient->is(TermKind::Quotient))
        continue;
      Term rest = remainder(quotient->operands[0], quotient->operands[1]);
      if (!rest->is(TermKind::Sum))
        continue;
      auto *it = llvm::find(rest->operands, part);
      if (it == rest->operands.end())
        continue;
      int64_t once = rest->coefficients[it - rest->operands.begin()];
      if (once == 0 || coefficient % once != 0)
        continue;
      // All parts of the remainder occur in the sum and cancel.
      Term left = combine(sum, rest, -(coefficient / once));
      SmallVector<std::pair<Term, int64_t>> parts;
      int64_t constant = 0;
      splitSum(left, parts, constant);
      if (parts.size() + rest->operands.size() == sum->operands.size())
        return std::make_pair(quotient, coefficient / once);
    }
  return std::nullopt;
}

/// Rewrites x − m·⌊x/m⌋ to remainders, for texts only.
Term TermContext::withRemainders(Term term) {
  if (auto it = readable.find(term); it != readable.end())
    return it->second;
  Term result = number(0), left = term;
  while (left->is(TermKind::Sum)) {
    auto taken = takeRemainder(left);
    if (!taken)
      break;
    auto [quotient, count] = *taken;
    Term x = quotient->operands[0], m = quotient->operands[1];
    left = combine(left, remainder(x, m), -count);
    Term text = scalar(remainderName, index_, {withRemainders(x), withRemainders(m)});
    result = combine(result, text, count);
  }
  DenseMap<Term, Term> with;
  for (Term operand : left->operands)
    if (Term other = withRemainders(operand); other != operand)
      with[operand] = other;
  left = substitute(left, with);
  result = left == number(0) || result != number(0) ? combine(result, left, 1) : left;
  return readable[term] = result;
}

std::string TermContext::nameOf(Term term) const {
  StringRef name = indexNames.lookup(term);
  if (!name.empty())
    return name.str();
  return term->value < 0 ? "j" + std::to_string(-term->value) : "i" + std::to_string(term->value);
}

/// Prints Σ coefficient · operand + constant, negative parts last.
void TermContext::printSum(llvm::raw_ostream &os, const Parts &parts, int64_t constant, unsigned depth) const {
  bool first = true;
  auto part = [&](Term operand, int64_t coefficient) {
    os << (coefficient < 0 ? (first ? "-" : " - ") : (first ? "" : " + "));
    first = false;
    uint64_t size = coefficient < 0 ? -uint64_t(coefficient) : coefficient;
    if (!operand)
      os << size;
    else if (size != 1)
      os << size << "*";
    if (operand)
      print(os, operand, size != 1 && isDivision(operand) ? Tight : ProductLevel, depth + 1);
  };
  for (bool negative : {false, true}) {
    for (auto [operand, coefficient] : parts)
      if ((coefficient < 0) == negative)
        part(operand, coefficient);
    if (constant != 0 && (constant < 0) == negative)
      part(nullptr, constant);
  }
  if (first)
    os << 0;
}

/// Prints e ≥ 0 or e = 0, with the negative parts of e moved to the other side.
void TermContext::printComparison(llvm::raw_ostream &os, Term term, unsigned depth) const {
  Parts parts, right, left;
  int64_t constant = 0;
  splitSum(term->operands[0], parts, constant);
  for (auto [operand, coefficient] : parts)
    (coefficient < 0 ? right : left).push_back({operand, coefficient < 0 ? -uint64_t(coefficient) : coefficient});
  bool isEqual = term->is(TermKind::Zero);
  if (isEqual || left.empty() || right.empty()) {
    bool isMost = !isEqual && left.empty();
    printSum(os, isMost ? right : left, 0, depth);
    os << (isEqual ? " == " : isMost ? " <= " : " >= ");
    Parts other = isMost || right.empty() ? Parts() : right;
    return printSum(os, other, isMost ? constant : -uint64_t(constant), depth);
  }
  printSum(os, right, constant < -1 ? -uint64_t(constant) : 0, depth);
  os << (constant == -1 ? " < " : " <= ");
  printSum(os, left, constant > 0 ? constant : 0, depth);
}

/// Returns the operator of the language for an operation on integers, or an empty string.
static StringRef infixOf(Term term) {
  if (!term->type.isIndex() || term->operands.size() != 2)
    return "";
  return llvm::StringSwitch<StringRef>(term->name)
      .Case("and", " & ")
      .Case("or", " | ")
      .Case("xor", " ^ ")
      .Case("shl", " << ")
      .Case("shr", " >> ")
      .Default("");
}

void TermContext::print(llvm::raw_ostream &os, Term term, unsigned least, unsigned depth) const {
  if (depth > 24) {
    os << "…";
    return;
  }
  auto sub = [&](Term operand, unsigned strength = Loose) { print(os, operand, strength, depth + 1); };
  auto list = [&](StringRef open, ArrayRef<Term> operands, StringRef end) {
    os << open;
    llvm::interleave(operands, os, [&](Term operand) { sub(operand); }, ", ");
    os << end;
  };
  auto infix = [&](unsigned strength, StringRef op, ArrayRef<Term> operands) {
    bool closed = strength < least;
    os << (closed ? "(" : "");
    llvm::interleave(operands, os, [&](Term operand) { sub(operand, strength + 1); }, op);
    os << (closed ? ")" : "");
  };
  switch (term->kind) {
  case TermKind::Number:
    os << term->value;
    return;
  case TermKind::Symbol:
    os << term->name;
    return;
  case TermKind::Index:
    os << nameOf(term);
    return;
  case TermKind::Sum: {
    bool closed = SumLevel < least;
    os << (closed ? "(" : "");
    Parts parts;
    int64_t constant = 0;
    splitSum(term, parts, constant);
    printSum(os, parts, constant, depth);
    os << (closed ? ")" : "");
    return;
  }
  case TermKind::Product:
    return infix(ProductLevel, "*", term->operands);
  case TermKind::Quotient:
    return infix(ProductLevel, "/", term->operands);
  case TermKind::Load:
    os << (size_t(term->value) < inputNames.size() ? inputNames[term->value] : "?");
    if (!term->operands.empty())
      list("[", term->operands, "]");
    return;
  case TermKind::Constant:
    os << llvm::cast<FloatAttr>(term->attribute).getValueAsDouble();
    return;
  case TermKind::Truth:
    os << (term->value ? "true" : "false");
    return;
  case TermKind::NotNegative:
  case TermKind::Zero: {
    bool closed = CompareLevel < least;
    os << (closed ? "(" : "");
    printComparison(os, term, depth);
    os << (closed ? ")" : "");
    return;
  }
  case TermKind::Not:
    os << "not ";
    return sub(term->operands[0], Tight);
  case TermKind::And:
    return infix(AndLevel, " and ", term->operands);
  case TermKind::Or:
    return infix(OrLevel, " or ", term->operands);
  case TermKind::Select:
    return list("select(", term->operands, ")");
  case TermKind::Scalar:
    // The low bits of an unsigned element print as the element itself.
    if (term->name == "and" && term->operands[0]->is(TermKind::Load) &&
        unsignedInputs.count(term->operands[0]->value) && term->operands[1]->is(TermKind::Number))
      return print(os, term->operands[0], least, depth);
    if (term->name == remainderName)
      return infix(ProductLevel, " % ", term->operands);
    if (StringRef op = infixOf(term); !op.empty()) {
      bool closed = CompareLevel < least;
      os << (closed ? "(" : "");
      llvm::interleave(term->operands, os, [&](Term operand) { sub(operand, SumLevel); }, op);
      os << (closed ? ")" : "");
      return;
    }
    if (term->name == "wrap" && term->type.isIntOrIndex())
      os << "i" << term->type.getIntOrFloatBitWidth();
    else
      os << term->name;
    return list("(", term->operands, ")");
  case TermKind::Reduce:
    os << term->name << "{";
    sub(term->operands[0]);
    os << "<";
    sub(term->operands[1]);
    if (!term->operands[3]->isTrue()) {
      os << ", ";
      sub(term->operands[3]);
    }
    os << "} ";
    return sub(term->operands[2], ProductLevel);
  case TermKind::Apply:
    os << "f" << term->value;
    return list("(", term->operands, ")");
  }
}

std::string TermContext::str(Term term) {
  std::string text;
  llvm::raw_string_ostream os(text);
  print(os, withRemainders(term), Loose, 0);
  return text;
}
