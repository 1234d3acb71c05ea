//===- Expression.cpp - integer expressions of a manifest -----------------===//
#include "lib/Runtime/Expression.h"
#include "lib/Runtime/Program.h"
#include <algorithm>
#include <cctype>

namespace moa::runtime {

bool Polynomial::Less::operator()(const Monomial &a, const Monomial &b) const {
  for (size_t k = 0; k < std::min(a.size(), b.size()); ++k) {
    if (a[k].first->text != b[k].first->text)
      return a[k].first->text < b[k].first->text;
    if (a[k].second != b[k].second)
      return a[k].second > b[k].second;
  }
  // Longer products first, so that the constant comes last.
  return a.size() > b.size();
}

// Unsigned arithmetic: a manifest may have any numbers.
static int64_t wrappedSum(int64_t a, int64_t b) { return int64_t(uint64_t(a) + uint64_t(b)); }
static int64_t wrappedProduct(int64_t a, int64_t b) { return int64_t(uint64_t(a) * uint64_t(b)); }

void Polynomial::addTerm(const Monomial &monomial, int64_t coefficient) {
  if (coefficient == 0)
    return;
  auto [it, inserted] = terms.try_emplace(monomial, coefficient);
  if (inserted)
    return;
  it->second = wrappedSum(it->second, coefficient);
  if (it->second == 0)
    terms.erase(it);
}

Polynomial Polynomial::symbol(const std::string &name) {
  auto atom = std::make_shared<Atom>();
  atom->text = name;
  Polynomial result;
  result.addTerm({{std::move(atom), 1u}}, 1);
  return result;
}

static bool isAlone(const Polynomial &p) {
  if (p.terms.size() != 1 || p.terms.begin()->second != 1 || p.terms.begin()->first.size() != 1)
    return false;
  const auto &[atom, power] = p.terms.begin()->first[0];
  return power == 1 && atom->kind == Polynomial::Atom::Symbol;
}

static std::string operandText(const Polynomial &p) {
  return isAlone(p) || p.constant() ? p.str() : "(" + p.str() + ")";
}

Polynomial Polynomial::divide(bool isRemainder, const Polynomial &a, const Polynomial &b) {
  auto atom = std::make_shared<Atom>();
  atom->kind = isRemainder ? Atom::Remainder : Atom::Quotient;
  atom->lhs = a;
  atom->rhs = b;
  atom->text = operandText(a) + (isRemainder ? "%" : "/") + operandText(b);
  Polynomial result;
  result.addTerm({{std::move(atom), 1u}}, 1);
  return result;
}

Polynomial Polynomial::plus(const Polynomial &other, int64_t sign) const {
  Polynomial result = *this;
  for (const auto &[monomial, coefficient] : other.terms)
    result.addTerm(monomial, wrappedProduct(sign, coefficient));
  return result;
}

static Polynomial::Monomial product(const Polynomial::Monomial &a, const Polynomial::Monomial &b) {
  Polynomial::Monomial result;
  size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    if (j == b.size() || (i < a.size() && a[i].first->text < b[j].first->text)) {
      result.push_back(a[i++]);
    } else if (i == a.size() || b[j].first->text < a[i].first->text) {
      result.push_back(b[j++]);
    } else {
      result.emplace_back(a[i].first, a[i].second + b[j].second);
      ++i, ++j;
    }
  }
  return result;
}

Polynomial Polynomial::times(const Polynomial &other) const {
  Polynomial result;
  for (const auto &[m1, c1] : terms)
    for (const auto &[m2, c2] : other.terms)
      result.addTerm(product(m1, m2), wrappedProduct(c1, c2));
  return result;
}

/// Prints a product. `leads` is true after a unary minus, which binds tighter than / and %.
static std::string monomialText(const Polynomial::Monomial &monomial, uint64_t magnitude, bool leads) {
  std::string text = magnitude != 1 || monomial.empty() ? std::to_string(magnitude) : "";
  bool single = monomial.size() == 1 && monomial[0].second == 1 && text.empty() && !leads;
  for (const auto &[atom, power] : monomial)
    for (unsigned k = 0; k < power; ++k)
      text += (text.empty() ? "" : "*") +
              (atom->kind == Polynomial::Atom::Symbol || single ? atom->text : "(" + atom->text + ")");
  return text;
}

std::string Polynomial::str() const {
  std::string text;
  for (bool negative : {false, true})
    for (const auto &[monomial, coefficient] : terms) {
      if ((coefficient < 0) != negative)
        continue;
      if (negative)
        text += text.empty() ? "-" : " - ";
      else if (!text.empty())
        text += " + ";
      uint64_t magnitude = negative ? 0 - uint64_t(coefficient) : uint64_t(coefficient);
      text += monomialText(monomial, magnitude, negative && text == "-");
    }
  return terms.empty() ? "0" : text;
}

void Polynomial::forEachSymbol(const std::function<void(const std::string &)> &visit) const {
  for (const auto &[monomial, coefficient] : terms)
    for (const auto &[atom, power] : monomial)
      if (atom->kind == Atom::Symbol) {
        visit(atom->text);
      } else {
        atom->lhs.forEachSymbol(visit);
        atom->rhs.forEachSymbol(visit);
      }
}

bool Polynomial::mentions(const std::string &name) const {
  bool found = false;
  forEachSymbol([&](const std::string &other) { found |= other == name; });
  return found;
}

std::optional<int64_t> Polynomial::constant() const {
  if (terms.empty())
    return 0;
  if (terms.size() == 1 && terms.begin()->first.empty())
    return terms.begin()->second;
  return std::nullopt;
}

std::optional<Polynomial> Polynomial::solve(const std::string &name, const Polynomial &value) const {
  Polynomial rest;
  int64_t factor = 0;
  for (const auto &[monomial, coefficient] : terms) {
    bool isIt = monomial.size() == 1 && monomial[0].second == 1 && monomial[0].first->kind == Atom::Symbol &&
                monomial[0].first->text == name;
    if (isIt)
      factor = coefficient;
    else
      rest.addTerm(monomial, coefficient);
  }
  if (!factor || rest.mentions(name))
    return std::nullopt;
  Polynomial difference = value.plus(rest, -1);
  return factor == 1 ? difference : divide(/*isRemainder=*/false, difference, Polynomial(factor));
}

namespace {
/// Recursive descent over the compiler's grammar: sum := product ((+|-) product)*,
/// product := unary ((*|/|%) unary)*, unary := -unary | ( sum ) | integer | name.
class Parser {
public:
  explicit Parser(const std::string &source) : text(source) {}
  std::optional<Polynomial> run() {
    Polynomial result = sum();
    skip();
    return failed || at != text.size() ? std::nullopt : std::optional(std::move(result));
  }

private:
  void skip() {
    while (at < text.size() && text[at] == ' ')
      ++at;
  }
  bool eat(char letter) {
    skip();
    if (at >= text.size() || text[at] != letter)
      return false;
    ++at;
    return true;
  }
  Polynomial fail() {
    failed = true;
    at = text.size();
    return {};
  }
  Polynomial sum() {
    Polynomial value = product();
    while (!failed) {
      if (eat('+'))
        value = value.plus(product());
      else if (eat('-'))
        value = value.plus(product(), -1);
      else
        break;
    }
    return value;
  }
  Polynomial product() {
    Polynomial value = unary();
    while (!failed) {
      bool times = eat('*'), over = !times && eat('/');
      if (!times && !over && !eat('%'))
        break;
      Polynomial right = unary();
      value = times ? value.times(right) : Polynomial::divide(!over, value, right);
    }
    return value;
  }
  Polynomial unary() {
    if (++depth > 200)
      return fail();
    Polynomial value = primary();
    --depth;
    return value;
  }
  Polynomial primary() {
    if (eat('-'))
      return Polynomial().plus(unary(), -1);
    if (eat('(')) {
      Polynomial value = sum();
      return eat(')') ? value : fail();
    }
    skip();
    size_t begin = at;
    if (at < text.size() && std::isdigit(static_cast<unsigned char>(text[at]))) {
      uint64_t value = 0;
      for (; at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])); ++at)
        if (__builtin_mul_overflow(value, uint64_t(10), &value) ||
            __builtin_add_overflow(value, uint64_t(text[at] - '0'), &value))
          return fail();
      return Polynomial(int64_t(value));
    }
    auto isNameLetter = [](char letter) {
      auto byte = static_cast<unsigned char>(letter);
      return std::isalnum(byte) || byte >= 0x80 || letter == '_' || letter == '.' || letter == '[' || letter == ']';
    };
    while (at < text.size() && isNameLetter(text[at]))
      ++at;
    return at == begin ? fail() : Polynomial::symbol(text.substr(begin, at - begin));
  }

  const std::string &text;
  size_t at = 0;
  unsigned depth = 0;
  bool failed = false;
};
} // namespace

std::optional<Polynomial> Polynomial::parse(const std::string &text) { return Parser(text).run(); }

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

std::string Expression::append(const Polynomial &source, const Resolver &resolve, size_t depth) {
  if (depth + 4 > kDepth)
    return "is nested too deeply";
  if (source.terms.empty())
    ops.push_back({Op::Number, {}, 0});
  bool isFirst = true;
  for (const auto &[monomial, coefficient] : source.terms) {
    bool hasTerm = monomial.empty() || coefficient != 1;
    size_t base = depth + (isFirst ? 0 : 1);
    if (hasTerm)
      ops.push_back({Op::Number, {}, coefficient});
    for (const auto &[atom, power] : monomial)
      for (unsigned k = 0; k < power; ++k) {
        size_t here = base + (hasTerm ? 1 : 0);
        if (atom->kind == Polynomial::Atom::Symbol) {
          std::optional<Place> place = resolve(atom->text);
          if (!place)
            return "has the unknown symbol '" + atom->text + "'";
          ops.push_back({Op::Value, *place, 0});
        } else {
          if (std::string why = append(atom->lhs, resolve, here); !why.empty())
            return why;
          if (std::string why = append(atom->rhs, resolve, here + 1); !why.empty())
            return why;
          ops.push_back({atom->kind == Polynomial::Atom::Remainder ? Op::Modulo : Op::Divide, {}, 0});
        }
        if (hasTerm)
          ops.push_back({Op::Multiply, {}, 0});
        hasTerm = true;
      }
    if (!isFirst)
      ops.push_back({Op::Add, {}, 0});
    isFirst = false;
  }
  return "";
}

std::string Expression::compile(const Polynomial &source, const Resolver &resolve) {
  ops.clear();
  spelling = source.str();
  return append(source, resolve, 0);
}

std::string Expression::compile(const std::string &source, const Resolver &resolve) {
  std::optional<Polynomial> parsed = Polynomial::parse(source);
  std::string why = parsed ? compile(*parsed, resolve) : "is no expression";
  spelling = source;
  return why;
}

Checked Expression::evaluate(const Frame &frame) const {
  // Most expressions are a number or a symbol.
  if (ops.size() == 1)
    return {ops[0].kind == Op::Number ? ops[0].number : read(frame, ops[0].place), MOA_OK};
  // Without initial values, which would take longer than most evaluations. The first is not used.
  alignas(Checked) char room[sizeof(Checked) * (kDepth + 1)];
  Checked *top = reinterpret_cast<Checked *>(room);
  for (const Op &op : ops) {
    switch (op.kind) {
    case Op::Number:
      *++top = {op.number, MOA_OK};
      break;
    case Op::Value:
      *++top = {read(frame, op.place), MOA_OK};
      break;
    case Op::Add:
      --top, *top = moa_add(top[0], top[1]);
      break;
    case Op::Multiply:
      --top, *top = moa_multiply(top[0], top[1]);
      break;
    case Op::Divide:
      --top, *top = moa_floor_div(top[0], top[1]);
      break;
    case Op::Modulo:
      --top, *top = moa_floor_mod(top[0], top[1]);
      break;
    }
  }
  return *top;
}

std::optional<int64_t> Expression::constant() const {
  return ops.size() == 1 && ops[0].kind == Op::Number ? std::optional(ops[0].number) : std::nullopt;
}

} // namespace moa::runtime
