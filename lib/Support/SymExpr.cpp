//===- SymExpr.cpp - symbolic integer expressions -------------------------===//
#include "lib/Support/SymExpr.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace moa;

bool SymExpr::MonomialLess::operator()(const Monomial &a, const Monomial &b) const {
  size_t n = std::min(a.size(), b.size());
  for (size_t i = 0; i < n; ++i) {
    if (a[i].first->text != b[i].first->text)
      return a[i].first->text < b[i].first->text;
    if (a[i].second != b[i].second)
      return a[i].second > b[i].second;
  }
  // Longer products first, so that the constant comes last.
  return a.size() > b.size();
}

SymExpr::SymExpr(int64_t value) { addTerm({}, value); }

SymExpr SymExpr::product(const Monomial &monomial) {
  SymExpr result;
  result.addTerm(monomial, 1);
  return result;
}

SymExpr SymExpr::symbol(llvm::StringRef name) {
  auto atom = std::make_shared<Atom>();
  atom->text = name.str();
  return fromAtom(std::move(atom));
}

void SymExpr::addTerm(const Monomial &monomial, int64_t coefficient) {
  if (coefficient == 0)
    return;
  auto [it, inserted] = terms.try_emplace(monomial, coefficient);
  if (inserted)
    return;
  it->second += coefficient;
  if (it->second == 0)
    terms.erase(it);
}

SymExpr SymExpr::operator+(const SymExpr &other) const {
  SymExpr result = *this;
  for (const auto &[monomial, coefficient] : other.terms)
    result.addTerm(monomial, coefficient);
  return result;
}

SymExpr SymExpr::operator-(const SymExpr &other) const {
  SymExpr result = *this;
  for (const auto &[monomial, coefficient] : other.terms)
    result.addTerm(monomial, -coefficient);
  return result;
}

static SymExpr::Monomial multiply(const SymExpr::Monomial &a, const SymExpr::Monomial &b) {
  SymExpr::Monomial result;
  size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    if (j == b.size() || (i < a.size() && a[i].first->text < b[j].first->text))
      result.push_back(a[i++]);
    else if (i == a.size() || b[j].first->text < a[i].first->text)
      result.push_back(b[j++]);
    else {
      result.emplace_back(a[i].first, a[i].second + b[j].second);
      ++i, ++j;
    }
  }
  return result;
}

SymExpr SymExpr::operator*(const SymExpr &other) const {
  SymExpr result;
  for (const auto &[m1, c1] : terms)
    for (const auto &[m2, c2] : other.terms)
      result.addTerm(multiply(m1, m2), c1 * c2);
  return result;
}

std::optional<SymExpr> SymExpr::divideExactly(const SymExpr &a, const SymExpr &b) {
  if (b.terms.size() != 1)
    return a == b ? std::optional<SymExpr>(SymExpr(1)) : std::nullopt;
  const auto &[divisor, divisorCoefficient] = *b.terms.begin();
  SymExpr result;
  for (const auto &[monomial, coefficient] : a.terms) {
    if (coefficient % divisorCoefficient != 0)
      return std::nullopt;
    Monomial rest;
    size_t j = 0;
    for (const auto &[atom, power] : monomial) {
      unsigned remove = 0;
      if (j < divisor.size() && divisor[j].first->text == atom->text)
        remove = divisor[j++].second;
      if (remove > power)
        return std::nullopt;
      if (power > remove)
        rest.emplace_back(atom, power - remove);
    }
    if (j != divisor.size())
      return std::nullopt;
    result.addTerm(rest, coefficient / divisorCoefficient);
  }
  return result;
}

static std::string operandText(const SymExpr &e) {
  std::string text = e.str();
  if (e.getSymbol() || e.getConstant())
    return text;
  return "(" + text + ")";
}

SymExpr SymExpr::fromDivision(bool isRemainder, const SymExpr &a, const SymExpr &b) {
  auto atom = std::make_shared<Atom>();
  atom->kind = isRemainder ? Atom::Kind::Mod : Atom::Kind::FloorDiv;
  atom->lhs = a;
  atom->rhs = b;
  atom->text = operandText(a) + (isRemainder ? "%" : "/") + operandText(b);
  return fromAtom(std::move(atom));
}

SymExpr SymExpr::floorDiv(const SymExpr &a, const SymExpr &b) {
  auto ca = a.getConstant(), cb = b.getConstant();
  if (ca && cb && *cb != 0)
    return SymExpr(llvm::divideFloorSigned(*ca, *cb));
  if (a.isZero() || (cb && *cb == 1))
    return a;
  if (!b.isZero())
    if (auto quotient = divideExactly(a, b))
      return *quotient;
  return fromDivision(/*isRemainder=*/false, a, b);
}

SymExpr SymExpr::mod(const SymExpr &a, const SymExpr &b) {
  auto ca = a.getConstant(), cb = b.getConstant();
  if (ca && cb && *cb != 0)
    return SymExpr(*ca - llvm::divideFloorSigned(*ca, *cb) * *cb);
  if (a.isZero() || (cb && (*cb == 1 || *cb == -1)))
    return SymExpr();
  if (!b.isZero() && divideExactly(a, b))
    return SymExpr();
  return fromDivision(/*isRemainder=*/true, a, b);
}

bool SymExpr::operator==(const SymExpr &other) const {
  if (terms.size() != other.terms.size())
    return false;
  MonomialLess less;
  for (auto a = terms.begin(), b = other.terms.begin(); a != terms.end(); ++a, ++b)
    if (a->second != b->second || less(a->first, b->first) || less(b->first, a->first))
      return false;
  return true;
}

namespace moa {
llvm::hash_code hash_value(const SymExpr &expr) {
  llvm::hash_code hash(0);
  for (const auto &[monomial, coefficient] : expr.getTerms()) {
    hash = llvm::hash_combine(hash, coefficient);
    for (const auto &[atom, power] : monomial)
      hash = llvm::hash_combine(hash, atom->text, power);
  }
  return hash;
}
} // namespace moa

std::optional<int64_t> SymExpr::getConstant() const {
  if (terms.empty())
    return 0;
  if (terms.size() == 1 && terms.begin()->first.empty())
    return terms.begin()->second;
  return std::nullopt;
}

std::optional<std::string> SymExpr::getSymbol() const {
  if (terms.size() != 1 || terms.begin()->second != 1)
    return std::nullopt;
  const Monomial &monomial = terms.begin()->first;
  if (monomial.size() != 1 || monomial[0].second != 1 || monomial[0].first->kind != Atom::Kind::Symbol)
    return std::nullopt;
  return monomial[0].first->text;
}

std::optional<int64_t> SymExpr::evaluate(llvm::function_ref<std::optional<int64_t>(llvm::StringRef)> value) const {
  int64_t sum = 0;
  for (const auto &[monomial, coefficient] : terms) {
    int64_t product = coefficient;
    for (const auto &[atom, power] : monomial) {
      std::optional<int64_t> v;
      if (atom->kind == Atom::Kind::Symbol) {
        v = value(atom->text);
      } else {
        auto a = atom->lhs.evaluate(value), b = atom->rhs.evaluate(value);
        if (!a || !b || *b == 0)
          return std::nullopt;
        v = atom->kind == Atom::Kind::FloorDiv ? llvm::divideFloorSigned(*a, *b)
                                               : *a - llvm::divideFloorSigned(*a, *b) * *b;
      }
      if (!v)
        return std::nullopt;
      for (unsigned i = 0; i < power; ++i)
        if (llvm::MulOverflow(product, *v, product))
          return std::nullopt;
    }
    if (llvm::AddOverflow(sum, product, sum))
      return std::nullopt;
  }
  return sum;
}

std::optional<int64_t> SymExpr::evaluate(const std::map<std::string, int64_t> &values) const {
  return evaluate([&](llvm::StringRef name) -> std::optional<int64_t> {
    auto found = values.find(name.str());
    return found == values.end() ? std::nullopt : std::optional<int64_t>(found->second);
  });
}

SymExpr SymExpr::substitute(llvm::function_ref<std::optional<SymExpr>(llvm::StringRef)> value) const {
  SymExpr sum;
  for (const auto &[monomial, coefficient] : terms) {
    SymExpr product(coefficient);
    for (const auto &[atom, power] : monomial) {
      SymExpr v = fromAtom(atom);
      if (atom->kind == Atom::Kind::Symbol) {
        if (auto replacement = value(atom->text))
          v = *replacement;
      } else {
        SymExpr a = atom->lhs.substitute(value), b = atom->rhs.substitute(value);
        v = atom->kind == Atom::Kind::FloorDiv ? floorDiv(a, b) : mod(a, b);
      }
      for (unsigned i = 0; i < power; ++i)
        product = product * v;
    }
    sum = sum + product;
  }
  return sum;
}

unsigned SymExpr::getDegree() const {
  unsigned most = 0;
  for (const auto &[monomial, coefficient] : terms) {
    unsigned degree = 0;
    for (const auto &[atom, power] : monomial) {
      unsigned left = atom->lhs.getDegree(), right = atom->rhs.getDegree();
      degree += power * (atom->kind == Atom::Kind::Symbol ? 1
                         : atom->kind == Atom::Kind::Mod  ? right
                                                          : left - std::min(left, right));
    }
    most = std::max(most, degree);
  }
  return most;
}

void SymExpr::collectSymbols(std::set<std::string> &names) const {
  for (const auto &[monomial, coefficient] : terms)
    for (const auto &[atom, power] : monomial) {
      if (atom->kind == Atom::Kind::Symbol) {
        names.insert(atom->text);
        continue;
      }
      atom->lhs.collectSymbols(names);
      atom->rhs.collectSymbols(names);
    }
}

/// Prints a product. `leads` is true after a unary minus, which binds tighter than / and %.
static std::string monomialText(const SymExpr::Monomial &monomial, int64_t magnitude, bool leads) {
  std::vector<std::string> factors;
  if (magnitude != 1 || monomial.empty())
    factors.push_back(std::to_string(magnitude));
  bool single = monomial.size() == 1 && monomial[0].second == 1 && factors.empty() && !leads;
  for (const auto &[atom, power] : monomial)
    for (unsigned i = 0; i < power; ++i)
      factors.push_back(atom->kind == SymExpr::Atom::Kind::Symbol || single ? atom->text : "(" + atom->text + ")");
  return llvm::join(factors, "*");
}

std::string SymExpr::str() const {
  if (terms.empty())
    return "0";
  std::string text;
  // Positive terms first: `M - N` rather than `-N + M`.
  for (bool negative : {false, true})
    for (const auto &[monomial, coefficient] : terms) {
      if ((coefficient < 0) != negative)
        continue;
      if (negative)
        text += text.empty() ? "-" : " - ";
      else if (!text.empty())
        text += " + ";
      text += monomialText(monomial, negative ? -coefficient : coefficient, negative && text == "-");
    }
  return text;
}

namespace {
/// Recursive descent over the grammar sum := product ((+|-) product)*,
/// product := unary ((*|/|%) unary)*, unary := -unary | ( sum ) | atom.
class Parser {
public:
  Parser(llvm::StringRef text) : rest(text) {}
  std::optional<SymExpr> run(std::string *error) {
    SymExpr result = sum();
    skip();
    if (message.empty() && !rest.empty())
      fail("unexpected '" + rest.take_front(1).str() + "'");
    if (message.empty())
      return result;
    if (error)
      *error = message;
    return std::nullopt;
  }

private:
  void skip() { rest = rest.ltrim(); }
  bool eat(char c) {
    skip();
    return rest.consume_front(llvm::StringRef(&c, 1));
  }
  SymExpr fail(std::string why) {
    if (message.empty())
      message = std::move(why);
    rest = "";
    return SymExpr();
  }
  SymExpr sum() {
    SymExpr value = product();
    while (message.empty()) {
      if (eat('+'))
        value = value + product();
      else if (eat('-'))
        value = value - product();
      else
        break;
    }
    return value;
  }
  SymExpr product() {
    SymExpr value = unary();
    while (message.empty()) {
      bool times = eat('*'), over = !times && eat('/');
      if (!times && !over && !eat('%'))
        break;
      SymExpr right = unary();
      if (times)
        value = value * right;
      else if (right.isZero())
        return fail("division by zero");
      else
        value = over ? SymExpr::floorDiv(value, right) : SymExpr::mod(value, right);
    }
    return value;
  }
  SymExpr unary() {
    if (++depth > 200)
      return fail("expression is nested too deeply");
    SymExpr value = primary();
    --depth;
    return value;
  }
  SymExpr primary() {
    if (eat('-'))
      return SymExpr(0) - unary();
    if (eat('(')) {
      SymExpr value = sum();
      if (!eat(')'))
        return fail("expected ')'");
      return value;
    }
    skip();
    if (rest.empty())
      return fail("unexpected end of expression");
    if (llvm::isDigit(rest.front())) {
      uint64_t value = 0;
      if (rest.consumeInteger(10, value))
        return fail("integer is too large");
      return SymExpr(static_cast<int64_t>(value));
    }
    llvm::StringRef name = rest.take_while([](char c) { return llvm::isAlnum(c) || c == '_' || c == '.' || c == '$'; });
    if (name.empty())
      return fail("unexpected '" + rest.take_front(1).str() + "'");
    rest = rest.drop_front(name.size());
    return SymExpr::symbol(name);
  }

  llvm::StringRef rest;
  std::string message;
  unsigned depth = 0;
};
} // namespace

std::optional<SymExpr> SymExpr::parse(llvm::StringRef text, std::string *error) { return Parser(text).run(error); }
