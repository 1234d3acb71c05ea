//===- ReductionOperators.cpp - reductions, inner and outer products ------===//
#include "Generator.h"
#include <cmath>

using namespace moa;
using namespace moa::random;

Facts Generator::reduced(const std::string &monoid, Kind kind, Facts term, double terms) const {
  Facts facts = term;
  facts.absent = facts.selection = facts.symbolic = false;
  if (monoid == "+") {
    facts.magnitude = term.magnitude * std::max(terms, 1.0);
    facts.copied = false;
  } else if (monoid == "*") {
    facts.magnitude = term.magnitude <= 1 ? 1 : std::pow(term.magnitude, std::max(terms, 1.0));
    facts.copied = false;
  } else if (kind == Kind::Float) {
    facts.infinite = true;
  } else {
    facts.magnitude = 0x1p63; // over nothing
  }
  return facts;
}

static std::string pickMonoid(Generator &g, Kind kind) {
  static const char *const numbers[] = {"+", "+", "+", "*", "max", "max", "min"};
  static const char *const logic[] = {"and", "or"};
  return kind == Kind::Bool ? g.oneOf(logic) : g.oneOf(numbers);
}

std::optional<NodeId> Generator::reduceLast(Scope &scope, const std::string &monoid, NodeId x) {
  const Node node = at(x);
  if (node.shape.empty())
    return std::nullopt;
  Shape shape(node.shape.begin(), node.shape.end() - 1);
  unsigned axis = shape.size();
  Facts facts = reduced(monoid, node.kind, node.facts, boundOf(node.shape.back()));
  std::string last = chance(1, 2) ? std::to_string(axis) : "-1";
  std::string text = chance(2, 3)   ? monoid + "/ $0"
                     : chance(1, 2) ? monoid + "/ @ (1) $0"
                                    : "reduce(" + monoid + ", #0, " + last + ")";
  return add(scope, monoid + "/", text, {x}, node.kind, shape, facts);
}

static Kind pickKind(Generator &g) {
  unsigned k = g.pick(10);
  return k < 7 ? Kind::Float : k < 9 ? Kind::Int : Kind::Bool;
}

/// A monoid of the program for values of a kind.
static const OwnMonoid *pickOwnMonoid(Generator &g, Kind kind) {
  std::vector<const OwnMonoid *> fitting;
  for (const OwnMonoid &monoid : getOwnMonoids())
    if (monoid.kind == kind && !(monoid.onlyReal && g.exact))
      fitting.push_back(&monoid);
  return fitting.empty() ? nullptr : g.oneOf(fitting);
}

static Facts reducedByOwn(Generator &g, const OwnMonoid &monoid, const Facts &term, double terms) {
  if (!monoid.like.empty()) {
    Facts facts = g.reduced(monoid.like, monoid.kind, term, terms);
    if (monoid.onlyReal) {
      facts.integral = facts.copied = false;
      facts.infinite = true; // over nothing
      facts.magnitude += 8;
    }
    return facts;
  }
  Facts facts = g.reduced("+", monoid.kind, term, 1);
  facts.magnitude = 2 * facts.magnitude + 1;
  return facts;
}

static bool reduceByOwn(Generator &g, Scope &scope, NodeId x) {
  const Node node = g.at(x);
  const OwnMonoid *monoid = pickOwnMonoid(g, node.kind);
  if (!monoid)
    return false;
  int64_t rank = node.shape.size(), axis = g.pick(rank);
  Shape shape = node.shape;
  shape.erase(shape.begin() + axis);
  Facts facts = reducedByOwn(g, *monoid, node.facts, g.boundOf(node.shape[axis]));
  std::string place = std::to_string(g.chance(1, 3) ? axis - rank : axis);
  return bool(
      g.add(scope, "reduce own", "reduce(" + monoid->name + ", #0, " + place + ")", {x}, node.kind, shape, facts));
}

static bool makeReduction(Generator &g, Scope &scope) {
  Kind kind = pickKind(g);
  auto x = g.findArray(scope, kind, 1);
  if (!x)
    return false;
  if (g.chance(1, 6))
    return reduceByOwn(g, scope, *x);
  std::string monoid = pickMonoid(g, kind);
  if (monoid == "*" && kind == Kind::Float) {
    x = g.bounded(scope, *x, 1);
    if (!x)
      return false;
  }
  if (g.chance(1, 2))
    return bool(g.reduceLast(scope, monoid, *x));
  const Node node = g.at(*x);
  int64_t rank = node.shape.size(), axis = g.pick(rank);
  Shape shape = node.shape;
  shape.erase(shape.begin() + axis);
  Facts facts = g.reduced(monoid, kind, node.facts, g.boundOf(node.shape[axis]));
  std::string place = std::to_string(g.chance(1, 3) ? axis - rank : axis);
  return bool(g.add(scope, "reduce " + monoid, "reduce(" + monoid + ", #0, " + place + ")", {*x}, kind, shape, facts));
}

//===----------------------------------------------------------------------===//
// Functions of two scalars
//===----------------------------------------------------------------------===//

namespace {
struct ScalarFunction {
  std::string name;
  Kind from = Kind::Float, to = Kind::Float;
  Facts facts;
};
} // namespace

/// One that fits the operands of one kind, with the facts of its results.
static std::optional<ScalarFunction> pickFunction(Generator &g, const Node &x, const Node &y, bool contracts) {
  if (x.kind != y.kind)
    return std::nullopt;
  ScalarFunction fn;
  fn.from = x.kind;
  if (x.kind == Kind::Bool) {
    static const char *const logic[] = {"and", "or", "and", "!=", "=="};
    fn.name = g.oneOf(logic);
    fn.to = Kind::Bool;
    fn.facts.absent = x.facts.absent || y.facts.absent;
    return fn;
  }
  if (g.chance(1, 8) && g.isComparable(x) && g.isComparable(y)) {
    static const char *const comparisons[] = {"<", "<=", "==", ">="};
    fn.name = g.oneOf(comparisons);
    fn.to = Kind::Bool;
    fn.facts.absent = x.facts.absent || y.facts.absent;
    return fn;
  }
  // What an inner product applies is of the operands' type.
  if (x.kind == Kind::Int && !contracts && g.chance(1, 6)) {
    static const char *const bits[] = {"&", "|", "^"};
    fn.name = g.oneOf(bits);
    fn.facts = g.arithmetic("+", x, y);
    fn.facts.magnitude = 2 * fn.facts.magnitude + 1;
  } else {
    static const char *const numbers[] = {"*", "*", "*", "+", "-", "max", "min"};
    fn.name = g.oneOf(numbers);
    fn.facts = g.arithmetic(fn.name, x, y);
  }
  fn.to = x.kind;
  return fn;
}

/// The operands of a contraction of floats are rounded where some array has 16 bits.
static bool settleRounding(Generator &g, const Node &x, const Node &y, Facts &facts) {
  if (x.kind != Kind::Float || !g.hasNarrow)
    return true;
  for (const Node *operand : {&x, &y}) {
    bool kept = operand->facts.selection || (operand->facts.integral && operand->facts.magnitude <= g.narrowLimit);
    if (kept)
      continue;
    if (g.exact)
      return false;
    facts.integral = facts.copied = false;
    g.noteRounding(g.narrowRoundoff);
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Inner and outer products
//===----------------------------------------------------------------------===//

std::optional<NodeId> Generator::contract(Scope &scope, const std::string &monoid, const std::string &fn, NodeId x,
                                          NodeId y) {
  const Node a = at(x), b = at(y);
  if (a.shape.empty() || b.shape.empty() || a.kind != b.kind)
    return std::nullopt;
  size_t ca = std::min<size_t>(a.shape.size(), 2), cb = std::min<size_t>(b.shape.size(), 2);
  Shape fa(a.shape.begin(), a.shape.end() - ca), fb(b.shape.begin(), b.shape.end() - cb);
  if (a.shape.back() != b.shape[fb.size()] || (!fa.empty() && !fb.empty() && fa != fb))
    return std::nullopt;
  Shape shape = fa.empty() ? fb : fa;
  if (ca == 2)
    shape.push_back(a.shape[fa.size()]);
  if (cb == 2)
    shape.push_back(b.shape.back());
  Facts term = arithmetic(fn, a, b);
  if (!settleRounding(*this, a, b, term))
    return std::nullopt;
  Facts facts = reduced(monoid, a.kind, term, boundOf(a.shape.back()));
  std::string op = monoid + "." + fn;
  return add(scope, op, "$0 " + op + " $1", {x, y}, a.kind, shape, facts);
}

static bool makeContraction(Generator &g, Scope &scope) {
  Kind kind = pickKind(g);
  auto x = g.findArray(scope, kind, 1);
  if (!x)
    return false;
  const Shape shape = g.at(*x).shape;
  size_t cell = std::min<size_t>(shape.size(), 2);
  Shape other(shape.begin(), shape.end() - cell); // the frame
  if (g.chance(1, 2))
    other.clear();
  other.push_back(shape.back());
  if (g.chance(3, 4) || !other.empty())
    other.push_back(g.extent(scope));
  if (other.size() == 2 && g.chance(1, 4))
    other.pop_back();
  auto y = g.fit(scope, kind, other);
  if (!y)
    return false;
  std::string monoid = "+", fn = "*";
  if (kind == Kind::Bool) {
    monoid = pickMonoid(g, kind);
    fn = g.chance(1, 2) ? "and" : "or";
  } else if (g.chance(1, 4)) {
    static const char *const functions[] = {"+", "-", "*", "max", "min"};
    monoid = g.chance(1, 3) ? "+" : g.chance(1, 2) ? "max" : "min";
    fn = g.oneOf(functions);
  }
  return bool(g.contract(scope, monoid, fn, *x, *y));
}

static bool makeInner(Generator &g, Scope &scope) {
  Kind kind = pickKind(g);
  auto x = g.findArray(scope, kind, 1);
  if (!x)
    return false;
  const Shape shape = g.at(*x).shape;
  auto y = g.find(scope, [&](const Node &node) {
    return node.kind == kind && !node.shape.empty() && node.shape[0] == shape.back();
  });
  if (!y || g.chance(1, 3)) {
    Shape other = {shape.back()};
    for (unsigned k = g.pick(3); k > 0; --k)
      other.push_back(g.extent(scope));
    y = g.fit(scope, kind, other);
  }
  if (!y)
    return false;
  const Node a = g.at(*x), b = g.at(*y);
  auto fn = pickFunction(g, a, b, true);
  if (!fn || !settleRounding(g, a, b, fn->facts))
    return false;
  std::string monoid = pickMonoid(g, fn->to);
  if (monoid == "*" && fn->to == Kind::Float && fn->facts.magnitude > 1)
    monoid = "+";
  const OwnMonoid *own = g.chance(1, 8) ? pickOwnMonoid(g, fn->to) : nullptr;
  if (own)
    monoid = own->name;
  Shape result(a.shape.begin(), a.shape.end() - 1);
  result.insert(result.end(), b.shape.begin() + 1, b.shape.end());
  double terms = g.boundOf(shape.back());
  Facts facts = own ? reducedByOwn(g, *own, fn->facts, terms) : g.reduced(monoid, fn->to, fn->facts, terms);
  return bool(g.add(scope, own ? "inner own" : "inner", "inner(" + monoid + ", " + fn->name + ", #0, #1)", {*x, *y},
                    fn->to, result, facts));
}

static bool makeOuter(Generator &g, Scope &scope) {
  Kind kind = pickKind(g);
  auto x = g.findArray(scope, kind), y = g.findArray(scope, kind);
  if (!x || !y)
    return false;
  const Node a = g.at(*x), b = g.at(*y);
  auto fn = pickFunction(g, a, b, false);
  if (!fn || a.facts.symbolic || b.facts.symbolic)
    return false;
  Shape shape = a.shape;
  shape.insert(shape.end(), b.shape.begin(), b.shape.end());
  return bool(g.add(scope, "outer", "outer(" + fn->name + ", #0, #1)", {*x, *y}, fn->to, shape, fn->facts));
}

llvm::ArrayRef<Operator> moa::random::getReductionOperators() {
  static const Operator table[] = {{"reduction", 25, makeReduction},
                                   {"contraction", 14, makeContraction},
                                   {"inner", 8, makeInner},
                                   {"outer", 6, makeOuter}};
  return table;
}
