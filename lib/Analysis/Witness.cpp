//===- Witness.cpp - index conditions and proofs by witness ---------------===//
#include "lib/Analysis/Witness.h"

using namespace mlir;
using namespace moa;
using namespace moa::detail;

//===----------------------------------------------------------------------===//
// Conditions
//===----------------------------------------------------------------------===//

Condition Condition::notNegative(SymExpr expr) {
  Condition result;
  result.kind = NotNegative;
  result.expr = std::move(expr);
  return result;
}

Condition Condition::both(Condition a, Condition b) {
  Condition result;
  result.kind = And;
  result.parts = {std::move(a), std::move(b)};
  return result;
}

Condition Condition::either(Condition a, Condition b) {
  Condition result = both(std::move(a), std::move(b));
  result.kind = Or;
  return result;
}

std::string Condition::text() const {
  switch (kind) {
  case Unknown:
    return "?";
  case True:
    return "true";
  case NotNegative:
    return expr.str() + " >= 0";
  default:
    break;
  }
  std::string text = kind == And ? "and(" : "or(";
  for (const Condition &part : parts)
    text += part.text() + ";";
  return text + ")";
}

SymExpr moa::detail::replaced(const SymExpr &expr, const Variables &values) {
  return expr.substitute([&](StringRef name) -> std::optional<SymExpr> {
    auto it = values.find(name.str());
    return it == values.end() ? std::nullopt : std::optional<SymExpr>(it->second);
  });
}

Condition moa::detail::replaced(const Condition &condition, const Variables &values) {
  Condition result = condition;
  result.expr = replaced(condition.expr, values);
  for (Condition &part : result.parts)
    part = replaced(part, values);
  return result;
}

//===----------------------------------------------------------------------===//
// Arrays at an index
//===----------------------------------------------------------------------===//

static std::vector<SymExpr> pick(ArrayRef<SymExpr> index, Attribute axes) {
  std::vector<SymExpr> result;
  for (int64_t axis : cast<DenseI64ArrayAttr>(axes).asArrayRef())
    result.push_back(index[axis]);
  return result;
}

static std::optional<SymExpr> combine(ScalarFn fn, ArrayRef<SymExpr> v) {
  switch (fn) {
  case ScalarFn::id:
    return v[0];
  case ScalarFn::neg:
    return -v[0];
  case ScalarFn::add:
    return v[0] + v[1];
  case ScalarFn::sub:
    return v[0] - v[1];
  case ScalarFn::mul:
    return v[0] * v[1];
  case ScalarFn::div:
  case ScalarFn::mod:
    if (v[1].isZero())
      return std::nullopt;
    return fn == ScalarFn::div ? SymExpr::floorDiv(v[0], v[1]) : SymExpr::mod(v[0], v[1]);
  default:
    return std::nullopt;
  }
}

std::optional<SymExpr> moa::detail::integerAt(Value array, ArrayRef<SymExpr> index) {
  Operation *op = array.getDefiningOp();
  if (!op || isa<FloatType>(cast<ArrayType>(array.getType()).getElementType()))
    return std::nullopt;
  if (auto constant = dyn_cast<ConstantOp>(op)) {
    auto value = dyn_cast<IntegerAttr>(constant.getValue());
    return value ? std::optional<SymExpr>(value.getInt()) : std::nullopt;
  }
  if (auto extent = dyn_cast<ExtentOp>(op))
    return extent.getExpr();
  if (isa<IotaOp>(op))
    return index[0];
  if (auto cast = dyn_cast<CastOp>(op))
    return cast.getImplicit() ? integerAt(cast.getInput(), index) : std::nullopt;
  auto map = dyn_cast<MapOp>(op);
  if (!map)
    return std::nullopt;
  std::vector<SymExpr> operands;
  for (auto [input, axes] : llvm::zip(map.getInputs(), map.getAxes())) {
    auto value = integerAt(input, pick(index, axes));
    if (!value)
      return std::nullopt;
    operands.push_back(*value);
  }
  return combine(map.getFn(), operands);
}

static Condition comparison(ScalarFn fn, const SymExpr &a, const SymExpr &b) {
  SymExpr one(1);
  auto atLeast = [](const SymExpr &x, const SymExpr &y) { return Condition::notNegative(x - y); };
  switch (fn) {
  case ScalarFn::le:
    return atLeast(b, a);
  case ScalarFn::lt:
    return atLeast(b, a + one);
  case ScalarFn::ge:
    return atLeast(a, b);
  case ScalarFn::gt:
    return atLeast(a, b + one);
  case ScalarFn::eq:
    return Condition::both(atLeast(a, b), atLeast(b, a));
  case ScalarFn::ne:
    return Condition::either(atLeast(a, b + one), atLeast(b, a + one));
  default:
    return Condition();
  }
}

static ScalarFn negation(ScalarFn fn) {
  switch (fn) {
  case ScalarFn::le:
    return ScalarFn::gt;
  case ScalarFn::lt:
    return ScalarFn::ge;
  case ScalarFn::ge:
    return ScalarFn::lt;
  case ScalarFn::gt:
    return ScalarFn::le;
  case ScalarFn::eq:
    return ScalarFn::ne;
  case ScalarFn::ne:
    return ScalarFn::eq;
  default:
    return fn;
  }
}

Condition moa::detail::conditionAt(Value array, ArrayRef<SymExpr> index, bool negated) {
  if (auto constant = array.getDefiningOp<ConstantOp>()) {
    auto value = dyn_cast<IntegerAttr>(constant.getValue());
    Condition result;
    if (value && value.getValue().isZero() == negated)
      result.kind = Condition::True;
    return result;
  }
  auto map = array.getDefiningOp<MapOp>();
  if (!map)
    return Condition();
  auto operand = [&](unsigned k, bool negate) {
    return conditionAt(map.getInputs()[k], pick(index, map.getAxes()[k]), negate);
  };
  ScalarFn fn = map.getFn();
  switch (fn) {
  case ScalarFn::id:
    return operand(0, negated);
  case ScalarFn::not_:
    return operand(0, !negated);
  case ScalarFn::and_:
  case ScalarFn::or_:
    return (fn == ScalarFn::and_) != negated ? Condition::both(operand(0, negated), operand(1, negated))
                                             : Condition::either(operand(0, negated), operand(1, negated));
  default:
    break;
  }
  if (map.getInputs().size() != 2)
    return Condition();
  auto a = integerAt(map.getInputs()[0], pick(index, map.getAxes()[0]));
  auto b = integerAt(map.getInputs()[1], pick(index, map.getAxes()[1]));
  if (!a || !b)
    return Condition();
  return comparison(negated ? negation(fn) : fn, *a, *b);
}

//===----------------------------------------------------------------------===//
// Proofs
//===----------------------------------------------------------------------===//

Witness::Witness(KernelOp kernel) {
  for (StringRef text : kernel.getRequires().getAsValueRange<StringAttr>()) {
    for (StringRef op : {"==", "<=", ">="}) {
      auto [left, right] = text.split(op);
      auto a = SymExpr::parse(left), b = SymExpr::parse(right);
      if (left.size() == text.size() || !a || !b)
        continue;
      if (op != "<=")
        notNegative.push_back(*a - *b);
      if (op != ">=")
        notNegative.push_back(*b - *a);
      const auto &terms = a->getTerms();
      if (op != "==" || !b->isZero() || terms.size() != 1 || terms.begin()->first.size() != 1)
        continue;
      const SymExpr::Atom &atom = *terms.begin()->first[0].first;
      if (atom.kind == SymExpr::Atom::Kind::Mod)
        multiples.emplace_back(atom.lhs, atom.rhs);
    }
  }
}

bool Witness::divides(const SymExpr &b, const SymExpr &a) const {
  if (!b.isZero() && SymExpr::mod(a, b).isZero())
    return true;
  return llvm::is_contained(multiples, std::make_pair(a, b));
}

/// Proves expr ≥ 0, given that every symbol is at least 1: substitutes s + 1 for each symbol and
/// checks that no coefficient is negative. Quotients and remainders of expressions that are not
/// negative are not negative either.
bool Witness::isNotNegative(const SymExpr &expr) const {
  SymExpr shifted =
      expr.substitute([](StringRef name) -> std::optional<SymExpr> { return SymExpr::symbol(name) + SymExpr(1); });
  return llvm::all_of(shifted.getTerms(), [&](const auto &term) {
    if (term.second < 0)
      return false;
    return llvm::all_of(term.first, [&](const auto &factor) {
      const SymExpr::Atom &atom = *factor.first;
      return atom.kind == SymExpr::Atom::Kind::Symbol || (isNotNegative(atom.lhs) && isNotNegative(atom.rhs));
    });
  });
}

/// Returns the highest power of a variable; an occurrence inside a quotient counts as 2.
static unsigned degree(const SymExpr &expr, StringRef name) {
  unsigned highest = 0;
  for (const auto &[monomial, coefficient] : expr.getTerms())
    for (const auto &[atom, power] : monomial) {
      std::set<std::string> inside;
      if (atom->kind == SymExpr::Atom::Kind::Symbol) {
        highest = std::max(highest, atom->text == name ? power : 0);
        continue;
      }
      atom->lhs.collectSymbols(inside);
      atom->rhs.collectSymbols(inside);
      if (inside.count(name.str()))
        return 2;
    }
  return highest;
}

/// An expression of degree one in each variable takes its minimum at a corner.
bool Witness::isNotNegative(const SymExpr &expr, const Variables &all) const {
  for (const auto &[name, extent] : all) {
    unsigned power = degree(expr, name);
    if (power == 0)
      continue;
    if (power > 1)
      return false;
    for (const SymExpr &corner : {SymExpr(0), extent - SymExpr(1)})
      if (!isNotNegative(replaced(expr, {{name, corner}}), all))
        return false;
    return true;
  }
  if (isNotNegative(expr))
    return true;
  return llvm::any_of(notNegative, [&](const SymExpr &fact) { return isNotNegative(expr - fact); });
}

bool Witness::holds(const Condition &condition, const Variables &all) const {
  auto part = [&](const Condition &c) { return holds(c, all); };
  switch (condition.kind) {
  case Condition::Unknown:
    return false;
  case Condition::True:
    return true;
  case Condition::NotNegative:
    return isNotNegative(condition.expr, all);
  case Condition::And:
    return llvm::all_of(condition.parts, part);
  case Condition::Or:
    return llvm::any_of(condition.parts, part);
  }
  return false;
}

/// Returns candidates for a witness: both ends of the range, and each other index, from either end.
std::vector<SymExpr> Witness::candidates(const SymExpr &extent, const Variables &all) const {
  std::vector<SymExpr> result = {SymExpr(0), extent - SymExpr(1)};
  for (const auto &[name, other] : all)
    for (SymExpr e : {SymExpr::symbol(name), SymExpr::symbol(name) + extent - other})
      if (isNotNegative(e, all) && isNotNegative(extent - SymExpr(1) - e, all))
        result.push_back(e);
  return result;
}

static void collect(const Condition &condition, std::set<std::string> &names) {
  condition.expr.collectSymbols(names);
  for (const Condition &part : condition.parts)
    collect(part, names);
}

bool Witness::exists(const std::vector<Condition> &conditions, const Variables &all, const Variables &some) const {
  std::set<std::string> names;
  for (const Condition &condition : conditions)
    collect(condition, names);
  for (const auto &[name, extent] : some) {
    if (!names.count(name))
      continue;
    Variables rest = some;
    rest.erase(name);
    for (const SymExpr &candidate : candidates(extent, all)) {
      std::vector<Condition> chosen;
      for (const Condition &condition : conditions)
        chosen.push_back(replaced(condition, {{name, candidate}}));
      if (exists(chosen, all, rest))
        return true;
    }
    return false;
  }
  return llvm::all_of(conditions, [&](const Condition &c) { return holds(c, all); });
}
