//===- TermIntegers.cpp - polynomials over atoms --------------------------===//
#include "lib/Validation/Term.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace moa;
using namespace moa::validation;

/// Products of sums with more parts than this are not expanded.
static constexpr size_t maxParts = 64;

Term TermContext::number(int64_t value) { return unique(TermKind::Number, value, index_, "", {}, {}); }
Term TermContext::symbol(StringRef name) { return unique(TermKind::Symbol, 0, index_, name, {}, {}); }
Term TermContext::index(int64_t number) { return unique(TermKind::Index, number, index_, "", {}, {}); }
Term TermContext::freshIndex(StringRef name) {
  Term result = index(fresh++);
  nameIndex(result, name);
  return result;
}

void validation::splitSum(Term term, SmallVectorImpl<std::pair<Term, int64_t>> &parts, int64_t &constant) {
  if (term->is(TermKind::Number)) {
    constant = wrapAdd(constant, term->value);
  } else if (term->is(TermKind::Sum)) {
    for (auto [part, coefficient] : llvm::zip_equal(term->operands, term->coefficients))
      parts.push_back({part, coefficient});
    constant = wrapAdd(constant, term->value);
  } else {
    parts.push_back({term, 1});
  }
}

Term TermContext::makeSum(MutableArrayRef<std::pair<Term, int64_t>> parts, int64_t constant) {
  llvm::sort(parts, [](auto &a, auto &b) { return a.first->id < b.first->id; });
  SmallVector<Term> operands;
  SmallVector<int64_t> coefficients;
  for (auto [part, coefficient] : parts) {
    if (!operands.empty() && operands.back() == part)
      coefficients.back() = wrapAdd(coefficients.back(), coefficient);
    else if (operands.empty() || coefficients.back() != 0)
      operands.push_back(part), coefficients.push_back(coefficient);
    else
      operands.back() = part, coefficients.back() = coefficient;
  }
  if (!operands.empty() && coefficients.back() == 0)
    operands.pop_back(), coefficients.pop_back();
  if (operands.empty())
    return number(constant);
  if (operands.size() == 1 && coefficients[0] == 1 && constant == 0)
    return operands[0];
  return unique(TermKind::Sum, constant, index_, "", {}, operands, coefficients);
}

Term TermContext::combine(Term a, Term b, int64_t factor) {
  SmallVector<std::pair<Term, int64_t>> parts, others;
  int64_t constant = 0, other = 0;
  splitSum(a, parts, constant);
  splitSum(b, others, other);
  for (auto [part, coefficient] : others)
    parts.push_back({part, wrapMul(coefficient, factor)});
  return makeSum(parts, wrapAdd(constant, wrapMul(other, factor)));
}

Term TermContext::times(Term a, Term b) {
  SmallVector<Term> factors;
  for (Term part : {a, b}) {
    if (part->is(TermKind::Product))
      llvm::append_range(factors, part->operands);
    else
      factors.push_back(part);
  }
  llvm::sort(factors, [](Term x, Term y) { return x->id < y->id; });
  return unique(TermKind::Product, 0, index_, "", {}, factors);
}

Term TermContext::product(Term a, Term b) {
  SmallVector<std::pair<Term, int64_t>> left, right, parts;
  int64_t c = 0, d = 0;
  splitSum(a, left, c);
  splitSum(b, right, d);
  if (left.size() * right.size() > maxParts)
    return times(a, b);
  for (auto [x, m] : left) {
    parts.push_back({x, wrapMul(m, d)});
    for (auto [y, n] : right)
      parts.push_back({times(x, y), wrapMul(m, n)});
  }
  for (auto [y, n] : right)
    parts.push_back({y, wrapMul(n, c)});
  return makeSum(parts, wrapMul(c, d));
}

/// Divides e by a product f of atoms that all occur in e. Returns false if one does not.
static bool divideMonomial(Term e, Term f, SmallVectorImpl<Term> &rest) {
  ArrayRef<Term> have = e->is(TermKind::Product) ? e->operands : ArrayRef<Term>(e);
  ArrayRef<Term> need = f->is(TermKind::Product) ? f->operands : ArrayRef<Term>(f);
  rest.assign(have.begin(), have.end());
  for (Term factor : need) {
    auto it = llvm::find(rest, factor);
    if (it == rest.end())
      return false;
    rest.erase(it);
  }
  return true;
}

static int64_t floorDivide(int64_t a, int64_t b) {
  int64_t q = a / b;
  return (a % b != 0 && ((a < 0) != (b < 0))) ? q - 1 : q;
}

Term TermContext::quotient(Term a, Term b) {
  if (b->is(TermKind::Number) && b->value != 0 && b->value != -1) {
    if (b->value == 1)
      return a;
    // ⌊(c·e + f) / c⌋ = e + ⌊f / c⌋
    SmallVector<std::pair<Term, int64_t>> parts, whole, rest;
    int64_t constant = 0;
    splitSum(a, parts, constant);
    for (auto [part, coefficient] : parts) {
      bool divides = coefficient % b->value == 0;
      (divides ? whole : rest).push_back({part, divides ? coefficient / b->value : coefficient});
    }
    int64_t out = floorDivide(constant, b->value);
    if (rest.empty())
      return makeSum(whole, out);
    constant -= out * b->value;
    Term inner = makeSum(rest, constant);
    Term floor = unique(TermKind::Quotient, 0, index_, "", {}, {inner, b});
    whole.push_back({floor, 1});
    return makeSum(whole, out);
  }
  if (a->is(TermKind::Number) && a->value == 0)
    return a;
  // b is a monomial with coefficient 1 that divides every part of a.
  if (!b->is(TermKind::Number) && !b->is(TermKind::Sum)) {
    SmallVector<std::pair<Term, int64_t>> parts, whole;
    int64_t constant = 0;
    splitSum(a, parts, constant);
    for (auto [part, coefficient] : parts) {
      SmallVector<Term> rest;
      if (!divideMonomial(part, b, rest))
        break;
      Term left = rest.empty() ? number(1) : rest.front();
      for (Term factor : ArrayRef<Term>(rest).drop_front(!rest.empty()))
        left = times(left, factor);
      whole.push_back({left, coefficient});
    }
    if (constant == 0 && whole.size() == parts.size()) {
      Term result = number(0);
      for (auto [part, coefficient] : whole)
        result = combine(result, part, coefficient);
      return result;
    }
  }
  if (a == b)
    return number(1);
  return unique(TermKind::Quotient, 0, index_, "", {}, {a, b});
}

Term TermContext::remainder(Term a, Term b) { return difference(a, product(b, quotient(a, b))); }

/// Makes min, max, shifts and bitwise operations.
Term TermContext::integer(StringRef name, Term a, Term b) {
  bool shifts = name == "shl" || name == "shr";
  if (a->is(TermKind::Number) && b->is(TermKind::Number)) {
    int64_t x = a->value, y = b->value;
    if (shifts && y >= 0 && y < 64)
      return number(name == "shl" ? int64_t(uint64_t(x) << y) : x >> y);
    if (!shifts)
      return number(name == "min"   ? std::min(x, y)
                    : name == "max" ? std::max(x, y)
                    : name == "and" ? x & y
                    : name == "or"  ? x | y
                                    : x ^ y);
  }
  if (shifts)
    return b->is(TermKind::Number) && b->value == 0 ? a : scalar(name, index_, {a, b});
  if (name != "min" && name != "max")
    return bits(name, a, b);
  if (a == b)
    return a;
  if (a->is(TermKind::Number) || (!b->is(TermKind::Number) && b->id < a->id))
    std::swap(a, b);
  return scalar(name, index_, {a, b});
}

/// Operations on bits are associative and commutative. The operands are in order of their numbers,
/// each once, and in an exclusive or none that occurs twice; one number comes last.
Term TermContext::bits(StringRef name, Term a, Term b) {
  bool isAnd = name == "and", isXor = name == "xor";
  const int64_t identity = isAnd ? -1 : 0;
  int64_t constant = identity;
  SmallVector<Term> parts, left{a, b};
  while (!left.empty()) {
    Term next = left.pop_back_val();
    if (next->is(TermKind::Number))
      constant = isAnd ? constant & next->value : isXor ? constant ^ next->value : constant | next->value;
    else if (next->is(TermKind::Scalar) && next->name == name)
      left.append(next->operands.begin(), next->operands.end());
    else
      parts.push_back(next);
  }
  if (!isXor && constant == ~identity)
    return number(constant);
  llvm::sort(parts, [](Term x, Term y) { return x->id < y->id; });
  Term result = nullptr;
  for (size_t k = 0, end = 0; k < parts.size(); k = end) {
    while (end < parts.size() && parts[end] == parts[k])
      ++end;
    if (!isXor || (end - k) % 2)
      result = result ? scalar(name, index_, {result, parts[k]}) : parts[k];
  }
  if (!result || constant == identity)
    return result ? result : number(constant);
  return scalar(name, index_, {result, number(constant)});
}

static Term fromAtom(TermContext &terms, const SymExpr::Atom &atom) {
  if (atom.kind == SymExpr::Atom::Kind::Symbol)
    return terms.symbol(atom.text);
  Term a = terms.extent(atom.lhs), b = terms.extent(atom.rhs);
  return atom.kind == SymExpr::Atom::Kind::FloorDiv ? terms.quotient(a, b) : terms.remainder(a, b);
}

Term TermContext::extent(const SymExpr &expr) {
  Term result = number(0);
  for (const auto &[monomial, coefficient] : expr.getTerms()) {
    Term part = number(coefficient);
    for (const auto &[atom, power] : monomial)
      for (unsigned k = 0; k < power; ++k)
        part = product(part, fromAtom(*this, *atom));
    result = sum(result, part);
  }
  return result;
}

Term TermContext::extent(StringRef text) {
  Term &entry = extents[text];
  if (!entry) {
    int64_t value;
    if (!text.getAsInteger(10, value))
      entry = number(value);
    else if (llvm::all_of(text, [](char c) { return llvm::isAlnum(c) || c == '_'; }))
      entry = symbol(text);
    else if (auto expr = SymExpr::parse(text))
      entry = extent(*expr);
    else
      entry = symbol(text);
  }
  return entry;
}
