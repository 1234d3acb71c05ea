//===- RoundingErrorExpr.cpp - bounds as expressions ----------------------===//
#include "lib/Accuracy/Bounds/RoundingErrorExpr.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <limits>

using namespace moa;
using Atom = ErrorExpr::Atom;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// Products of sums with more terms than this are not expanded.
static constexpr size_t kMaxTerms = 24;
/// Errors of reductions with more terms than this become one factor.
static constexpr size_t kMostOfSum = 256;

//===----------------------------------------------------------------------===//
// Sums of products
//===----------------------------------------------------------------------===//

bool ErrorExpr::FactorsLess::operator()(const Factors &a, const Factors &b) const {
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(), [](const auto &x, const auto &y) {
    return std::make_pair(x.first->number, x.second) < std::make_pair(y.first->number, y.second);
  });
}

ErrorExpr::ErrorExpr(double value) {
  if (value != 0)
    terms[{}] = value;
}

ErrorExpr::ErrorExpr(const Atom *atom, int power) { terms[power == 0 ? Factors() : Factors{{atom, power}}] = 1; }

void ErrorExpr::add(const Factors &factors, double coefficient) {
  if (coefficient != 0)
    terms[factors] += coefficient;
}

ErrorExpr ErrorExpr::operator+(const ErrorExpr &other) const {
  ErrorExpr result = *this;
  return result += other;
}

ErrorExpr &ErrorExpr::operator+=(const ErrorExpr &other) {
  if (&other == this)
    return *this += ErrorExpr(other);
  for (const auto &[factors, coefficient] : other.terms)
    add(factors, coefficient);
  return *this;
}

static ErrorExpr::Factors multiply(const ErrorExpr::Factors &a, const ErrorExpr::Factors &b) {
  std::map<unsigned, std::pair<const Atom *, int>> powers;
  for (const ErrorExpr::Factors *side : {&a, &b})
    for (auto [atom, power] : *side) {
      auto &entry = powers[atom->number];
      entry.first = atom;
      entry.second += power;
    }
  ErrorExpr::Factors result;
  for (const auto &[number, entry] : powers)
    if (entry.second != 0)
      result.push_back(entry);
  return result;
}

/// Returns the sum as one factor. Terms of underflow keep their factor η outside.
static ErrorExpr makeFactor(const ErrorExpr &e) {
  ErrorExprPool &pool = *e.getTerms().rbegin()->first.front().first->pool;
  ErrorExpr rest, small;
  for (const auto &[factors, coefficient] : e.getTerms()) {
    ErrorExpr product(coefficient);
    bool isTiny = false;
    for (auto [atom, power] : factors) {
      bool isFirst = atom->kind == Atom::Kind::Tiny;
      isTiny |= isFirst;
      product = product * ErrorExpr(atom, power - isFirst);
    }
    (isTiny ? small : rest) += product;
  }
  ErrorExpr result = pool.group(rest);
  if (small.isZero())
    return result;
  ErrorExpr factor = pool.group(small);
  return result + pool.tiny() * factor;
}

ErrorExpr ErrorExpr::operator*(const ErrorExpr &other) const {
  bool isLarge = terms.size() * other.terms.size() > kMaxTerms;
  if (isLarge && terms.size() > 2 && other.terms.size() > 1)
    return makeFactor(*this) * other;
  if (isLarge && terms.size() > 1 && other.terms.size() > 2)
    return *this * makeFactor(other);
  ErrorExpr result;
  for (const auto &[a, x] : terms)
    for (const auto &[b, y] : other.terms)
      result.add(multiply(a, b), x * y);
  return result;
}

std::optional<double> ErrorExpr::getConstant() const {
  if (terms.empty())
    return 0.0;
  if (terms.size() == 1 && terms.begin()->first.empty())
    return terms.begin()->second;
  return std::nullopt;
}

bool ErrorExpr::isUnknown() const {
  return llvm::any_of(collectAtoms(), [](const Atom *atom) { return atom->kind == Atom::Kind::Unknown; });
}

bool ErrorExpr::isDominatedBy(const ErrorExpr &other) const {
  return llvm::all_of(terms, [&](const auto &term) {
    auto it = other.terms.find(term.first);
    return it != other.terms.end() && term.second <= it->second;
  });
}

ErrorExpr ErrorExpr::filter(llvm::function_ref<bool(const Factors &)> keep) const {
  ErrorExpr result;
  for (const auto &[factors, coefficient] : terms)
    if (keep(factors))
      result.add(factors, coefficient);
  return result;
}

static void collect(const ErrorExpr &e, std::set<unsigned> &seen, std::vector<const Atom *> &atoms) {
  for (const auto &term : e.getTerms())
    for (auto [atom, power] : term.first)
      if (seen.insert(atom->number).second) {
        for (const ErrorExpr &operand : atom->operands)
          collect(operand, seen, atoms);
        atoms.push_back(atom);
      }
}

std::vector<const Atom *> ErrorExpr::collectAtoms() const {
  std::set<unsigned> seen;
  std::vector<const Atom *> atoms;
  collect(*this, seen, atoms);
  return atoms;
}

//===----------------------------------------------------------------------===//
// Atoms
//===----------------------------------------------------------------------===//

/// Returns the key of an expression whose atoms are interned.
static std::string keyOf(const ErrorExpr &e) {
  std::string key;
  llvm::raw_string_ostream os(key);
  for (const auto &[factors, coefficient] : e.getTerms()) {
    os << llvm::format("%a", coefficient);
    for (auto [atom, power] : factors)
      os << "*" << atom->number << "^" << power;
    os << "+";
  }
  return key;
}

ErrorExpr ErrorExprPool::intern(Atom atom, const std::string &key) {
  const Atom *&entry = known[key];
  if (!entry) {
    atom.number = atoms.size();
    atom.pool = this;
    atoms.push_back(std::move(atom));
    entry = &atoms.back();
  }
  return ErrorExpr(entry);
}

static Atom makeAtom(Atom::Kind kind) {
  Atom atom;
  atom.kind = kind;
  atom.number = 0;
  atom.pool = nullptr;
  return atom;
}

ErrorExpr ErrorExprPool::statistic(MagnitudeStatistic statistic) {
  // A norm along no axis is a magnitude.
  bool normed = llvm::is_contained(statistic.axes, MagnitudeStatistic::kNorm);
  using Kind = MagnitudeStatistic::Kind;
  if (!normed)
    statistic.kind = statistic.kind == Kind::MinAbs || statistic.kind == Kind::MinL2 ? Kind::MinAbs : Kind::MaxAbs;
  std::string key = "s" + std::to_string(int(statistic.kind)) + statistic.array;
  for (int axis : statistic.axes)
    key += "," + std::to_string(axis);
  Atom atom = makeAtom(Atom::Kind::Statistic);
  atom.statistic = std::move(statistic);
  return intern(std::move(atom), key);
}

ErrorExpr ErrorExprPool::extent(const SymExpr &extent) {
  if (auto value = extent.getConstant())
    return Expr(std::abs(double(*value)));
  Atom atom = makeAtom(Atom::Kind::Extent);
  atom.extent = extent;
  return intern(std::move(atom), "n" + extent.str());
}

ErrorExpr ErrorExprPool::parameter(unsigned number, const std::string &name) {
  Atom atom = makeAtom(Atom::Kind::Parameter);
  atom.parameter = number;
  atom.text = name;
  return intern(std::move(atom), "p" + std::to_string(number));
}

ErrorExpr ErrorExprPool::tiny() { return intern(makeAtom(Atom::Kind::Tiny), "t"); }

ErrorExpr ErrorExprPool::unknown(const std::string &reason) {
  Atom atom = makeAtom(Atom::Kind::Unknown);
  atom.text = reason;
  return intern(std::move(atom), "u" + reason);
}

ErrorExpr ErrorExprPool::function(Atom::Kind kind, std::vector<Expr> operands) {
  std::string key = "f" + std::to_string(int(kind));
  for (const Expr &operand : operands)
    key += "(" + keyOf(operand) + ")";
  Atom atom = makeAtom(kind);
  atom.operands = std::move(operands);
  return intern(std::move(atom), key);
}

ErrorExpr ErrorExprPool::exp(const Expr &e) {
  auto constant = e.getConstant();
  if (constant && std::isfinite(std::exp(*constant)))
    return Expr(std::exp(*constant));
  return function(Atom::Kind::Exp, {e});
}

ErrorExpr ErrorExprPool::expm1(const Expr &e) {
  auto constant = e.getConstant();
  if (constant && std::isfinite(std::expm1(*constant)))
    return Expr(std::expm1(*constant));
  return function(Atom::Kind::Expm1, {e});
}

ErrorExpr ErrorExprPool::sqrt(const Expr &e) {
  if (auto constant = e.getConstant())
    return Expr(std::sqrt(*constant));
  auto isSquare = [](const auto &factor) { return factor.second % 2 == 0; };
  if (e.getTerms().size() == 1 && llvm::all_of(e.getTerms().begin()->first, isSquare)) {
    const auto &[factors, coefficient] = *e.getTerms().begin();
    Expr root(std::sqrt(coefficient));
    for (auto [atom, power] : factors)
      root = root * Expr(atom, power / 2);
    return root;
  }
  return function(Atom::Kind::Sqrt, {e});
}

ErrorExpr ErrorExprPool::recip(const Expr &e) {
  if (e.getTerms().size() != 1)
    return function(Atom::Kind::Recip, {e});
  const auto &[factors, coefficient] = *e.getTerms().begin();
  Expr result(1 / coefficient);
  for (auto [atom, power] : factors)
    result = result * Expr(atom, -power);
  return result;
}

ErrorExpr ErrorExprPool::max(const Expr &a, const Expr &b) {
  if (a.isDominatedBy(b))
    return b;
  if (b.isDominatedBy(a))
    return a;
  auto x = a.getConstant(), y = b.getConstant();
  if (x && y)
    return Expr(std::max(*x, *y));
  return function(Atom::Kind::Max, {a, b});
}

ErrorExpr ErrorExprPool::min(const Expr &a, const Expr &b) {
  if (a.isDominatedBy(b) || b.isUnknown())
    return a;
  if (b.isDominatedBy(a) || a.isUnknown())
    return b;
  return function(Atom::Kind::Min, {a, b});
}

ErrorExpr ErrorExprPool::group(const Expr &e) { return e.terms.size() <= 1 ? e : function(Atom::Kind::Group, {e}); }

//===----------------------------------------------------------------------===//
// Substitution and value
//===----------------------------------------------------------------------===//

static ErrorExpr power(ErrorExprPool &pool, const ErrorExpr &base, int exponent) {
  ErrorExpr result(1), factor = exponent < 0 ? pool.recip(base) : base;
  for (int k = 0; k < std::abs(exponent); ++k)
    result = result * factor;
  return result;
}

namespace moa {
/// One substitution; every atom is replaced only once.
class ErrorSubstitution {
public:
  ErrorSubstitution(ErrorExprPool &pool, llvm::function_ref<std::optional<ErrorExpr>(const Atom &)> replace)
      : pool(pool), replace(replace) {}

  ErrorExpr apply(const ErrorExpr &e) {
    ErrorExpr result;
    for (const auto &[factors, coefficient] : e.getTerms()) {
      // Keep a term without replacements, so that its groups are not expanded.
      if (llvm::all_of(factors, [&](auto &factor) { return of(*factor.first) == ErrorExpr(factor.first); })) {
        result.add(factors, coefficient);
        continue;
      }
      // A term with a factor 0 vanishes, even if other factors are unknown.
      ErrorExpr product(coefficient);
      for (auto [atom, exponent] : factors)
        product = product * power(pool, of(*atom), exponent);
      result += product;
    }
    return result;
  }

private:
  const ErrorExpr &of(const Atom &atom) {
    auto it = done.find(atom.number);
    if (it == done.end())
      it = done.emplace(atom.number, compute(atom)).first;
    return it->second;
  }
  ErrorExpr compute(const Atom &atom) {
    if (std::optional<ErrorExpr> other = replace(atom))
      return *other;
    if (atom.operands.empty())
      return ErrorExpr(&atom);
    ErrorExpr a = apply(atom.operands[0]);
    if (atom.operands.size() == 1 && a == atom.operands[0])
      return ErrorExpr(&atom);
    switch (atom.kind) {
    case Atom::Kind::Exp:
      return pool.exp(a);
    case Atom::Kind::Expm1:
      return pool.expm1(a);
    case Atom::Kind::Sqrt:
      return pool.sqrt(a);
    case Atom::Kind::Recip:
      return pool.recip(a);
    case Atom::Kind::Max:
      return pool.max(a, apply(atom.operands[1]));
    case Atom::Kind::Min:
      return pool.min(a, apply(atom.operands[1]));
    // A group that lost terms may be expanded.
    default:
      return a.getTerms().size() < atom.operands[0].getTerms().size() ? a : pool.group(a);
    }
  }
  ErrorExprPool &pool;
  llvm::function_ref<std::optional<ErrorExpr>(const Atom &)> replace;
  std::map<unsigned, ErrorExpr> done;
};
} // namespace moa

namespace {
/// One evaluation; every atom is evaluated only once.
class Evaluation {
public:
  Evaluation(const ErrorBindings &bindings, double tiny) : bindings(bindings), tiny(tiny) {}

  double sum(const ErrorExpr &e) {
    double total = 0;
    for (const auto &[factors, coefficient] : e.getTerms())
      total += product(factors, coefficient);
    return std::isnan(total) ? kInfinity : total;
  }

private:
  double product(const ErrorExpr::Factors &factors, double value) {
    for (auto [atom, exponent] : factors) {
      double base = of(*atom);
      // 1/∞ would be 0: an unknown divisor makes the term ∞.
      value *= std::isinf(base) ? kInfinity : std::pow(base, exponent);
    }
    return std::isnan(value) ? kInfinity : value; // 0 · ∞
  }
  double of(const Atom &atom) {
    auto it = done.find(atom.number);
    if (it == done.end())
      it = done.emplace(atom.number, compute(atom)).first;
    return it->second;
  }
  double compute(const Atom &atom) {
    switch (atom.kind) {
    case Atom::Kind::Statistic: {
      auto value = bindings.statistic(atom.statistic);
      return value && !std::isnan(*value) ? std::abs(*value) : kInfinity;
    }
    case Atom::Kind::Extent: {
      auto value = atom.extent.evaluate(bindings.symbol);
      return value ? std::abs(double(*value)) : kInfinity;
    }
    case Atom::Kind::Tiny:
      return tiny;
    case Atom::Kind::Parameter:
    case Atom::Kind::Unknown:
      return kInfinity;
    case Atom::Kind::Exp:
      return std::exp(sum(atom.operands[0]));
    case Atom::Kind::Expm1:
      return std::expm1(sum(atom.operands[0]));
    case Atom::Kind::Sqrt:
      return std::sqrt(sum(atom.operands[0]));
    case Atom::Kind::Recip:
      return 1 / sum(atom.operands[0]);
    case Atom::Kind::Max:
      return std::max(sum(atom.operands[0]), sum(atom.operands[1]));
    case Atom::Kind::Min:
      return std::min(sum(atom.operands[0]), sum(atom.operands[1]));
    case Atom::Kind::Group:
      return sum(atom.operands[0]);
    }
    return kInfinity;
  }
  const ErrorBindings &bindings;
  double tiny;
  std::map<unsigned, double> done;
};
} // namespace

ErrorExpr ErrorExprPool::compact(const Expr &e) { return e.getTerms().size() > kMostOfSum ? makeFactor(e) : e; }

ErrorExpr ErrorExprPool::substitute(const Expr &e, llvm::function_ref<std::optional<Expr>(const Atom &)> replace) {
  return ErrorSubstitution(*this, replace).apply(e);
}

double ErrorExprPool::evaluate(const Expr &e, const ErrorBindings &bindings, double tinyValue) {
  return Evaluation(bindings, tinyValue).sum(e) * (1 + 1e-6);
}
