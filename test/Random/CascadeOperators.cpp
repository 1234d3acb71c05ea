//===- CascadeOperators.cpp - reductions of what reductions are made of ---===//
//
// What the fold rules are for: terms that refer to a reduction over their own range.
//
//===----------------------------------------------------------------------===//
#include "Generator.h"
#include <cmath>

using namespace moa;
using namespace moa::random;

static std::optional<NodeId> findRows(Generator &g, Scope &scope, double magnitude) {
  auto x = g.findArray(scope, Kind::Float, 1);
  auto small = x ? g.bounded(scope, *x, magnitude) : x;
  return small && !g.at(*small).facts.symbolic ? small : std::nullopt;
}

static void limit(Generator &g, NodeId id, double magnitude) {
  double &known = g.program.nodes[id].facts.magnitude;
  known = std::min(known, magnitude);
}

/// exp(x - max/ x) and its kin.
static std::optional<NodeId> shifted(Generator &g, Scope &scope, NodeId x) {
  static const char *const functions[] = {"exp", "exp", "exp2"};
  bool up = g.chance(3, 4);
  auto m = g.reduceLast(scope, up ? "max" : "min", x);
  if (!m)
    return m;
  std::optional<NodeId> d;
  if (up) {
    d = g.rowwise(scope, "-", x, *m);
  } else {
    auto difference = g.rowwise(scope, "-", x, *m);
    d = difference ? g.unary(scope, "-", *difference) : difference;
  }
  auto e = d ? g.unary(scope, g.oneOf(functions), *d) : d;
  if (e)
    limit(g, *e, 1);
  return e;
}

/// e / +/ e, or +/ e, or the logarithm of that with what was taken off.
static bool makeExponential(Generator &g, Scope &scope) {
  auto x = findRows(g, scope, 30);
  auto e = x ? shifted(g, scope, *x) : x;
  if (!e)
    return false;
  auto sum = g.reduceLast(scope, "+", *e);
  if (!sum || g.chance(1, 3))
    return bool(sum);
  if (g.chance(1, 3)) {
    auto log = g.unary(scope, "log", *sum);
    auto m = log ? g.reduceLast(scope, "max", *x) : log;
    auto total = m ? g.binary(scope, "+", *m, *log) : m;
    return bool(total);
  }
  auto p = g.rowwise(scope, "/", *e, *sum);
  if (!p)
    return false;
  limit(g, *p, 1);
  // Weights of a sum.
  auto v = g.chance(1, 2) ? g.fit(scope, Kind::Float, {g.at(*p).shape.back(), g.extent(scope)})
                          : g.fit(scope, Kind::Float, g.at(*p).shape);
  if (!v)
    return true;
  if (g.rank(*v) == 2 && g.at(*v).shape[0] == g.at(*p).shape.back() && g.chance(2, 3)) {
    g.contract(scope, "+", "*", *p, *v);
  } else if (g.at(*v).shape == g.at(*p).shape) {
    if (auto product = g.binary(scope, "*", *p, *v))
      g.reduceLast(scope, "+", *product);
  }
  return true;
}

/// softmax, logsumexp and mean of the prelude.
static bool makePreludeRow(Generator &g, Scope &scope) {
  auto x = findRows(g, scope, 30);
  if (!x)
    return false;
  const Node &node = g.at(*x);
  static const char *const functions[] = {"softmax", "softmax", "logsumexp", "mean"};
  std::string fn = g.oneOf(functions);
  Facts facts = node.facts;
  facts.integral = facts.copied = facts.selection = false;
  facts.infinite = true;
  Shape shape = node.shape;
  if (fn == "softmax") {
    facts.magnitude = 1;
  } else {
    facts.absent = false;
    facts.magnitude += 10;
    shape.pop_back();
  }
  return bool(g.add(scope, fn, fn + "(#0)", {*x}, Kind::Float, shape, facts));
}

/// Attention: weights of scores that two arrays give, under a mask.
static bool makeAttention(Generator &g, Scope &scope) {
  auto q = findRows(g, scope, 4);
  if (!q || g.rank(*q) < 2)
    return false;
  const Shape shape = g.at(*q).shape;
  Shape keys(shape.begin(), shape.end() - 2);
  if (g.chance(1, 3))
    keys.clear();
  SymExpr count = g.extent(scope);
  Shape values = keys;
  keys.push_back(count);
  keys.push_back(shape.back());
  values.push_back(count);
  values.push_back(g.extent(scope));
  auto k = g.fit(scope, Kind::Float, keys), v = g.fit(scope, Kind::Float, values);
  auto small = k ? g.bounded(scope, *k, 4) : k;
  if (!small || !v || g.at(*small).facts.symbolic || g.at(*small).shape != keys)
    return false;
  Shape turned = keys;
  std::swap(turned[turned.size() - 1], turned[turned.size() - 2]);
  auto t = g.add(scope, "transpose", "transpose(#0)", {*small}, Kind::Float, turned, g.at(*small).facts);
  auto s = t ? g.contract(scope, "+", "*", *q, *t) : t;
  auto scores = s ? g.bounded(scope, *s, 30) : s;
  if (!scores)
    return false;
  if (g.chance(1, 2)) {
    auto p = g.predicate(scope, g.at(*scores).shape);
    if (!p)
      return false;
    Facts facts = g.at(*scores).facts;
    facts.absent = true;
    scores = g.add(scope, "mask", "mask(#0, #1)", {*p, *scores}, Kind::Float, g.at(*scores).shape, facts);
    if (!scores)
      return false;
  }
  Facts facts = g.at(*scores).facts;
  facts.integral = facts.copied = facts.selection = false;
  facts.magnitude = 1;
  auto weights = g.add(scope, "softmax", "softmax(#0)", {*scores}, Kind::Float, g.at(*scores).shape, facts);
  auto o = weights ? g.contract(scope, "+", "*", *weights, *v) : weights;
  if (o)
    limit(g, *o, 2 * g.at(*v).facts.magnitude);
  return bool(o);
}

/// (x - mean) and its square, and x scaled by that.
static bool makeVariance(Generator &g, Scope &scope) {
  auto x = findRows(g, scope, 30);
  if (!x)
    return false;
  const Node node = g.at(*x);
  Facts facts = node.facts;
  facts.integral = facts.copied = facts.selection = facts.absent = false;
  Shape rows(node.shape.begin(), node.shape.end() - 1);
  auto mean = g.add(scope, "mean", "mean(#0)", {*x}, Kind::Float, rows, facts);
  auto d = mean ? g.rowwise(scope, "-", *x, *mean) : mean;
  auto square = d ? g.binary(scope, "*", *d, *d) : d;
  if (!square)
    return false;
  auto variance = g.chance(1, 2) ? g.reduceLast(scope, "+", *square)
                                 : g.add(scope, "mean", "mean(#0)", {*square}, Kind::Float, rows, g.at(*square).facts);
  if (!variance || g.chance(1, 3))
    return bool(variance);
  auto above = g.binary(scope, "+", *variance, g.real(scope, 0.125));
  auto factor = above ? g.unary(scope, "rsqrt", *above) : above;
  if (factor)
    limit(g, *factor, 3);
  return factor && g.rowwise(scope, "*", *d, *factor);
}

/// Sums and products of differences to, and multiples of, a reduction of the range;
/// exact where the values are.
static bool makeLinear(Generator &g, Scope &scope) {
  static const char *const monoids[] = {"+", "max", "min", "+"};
  static const char *const operators[] = {"-", "*", "+", "min", "max"};
  auto x = findRows(g, scope, 20);
  auto m = x ? g.reduceLast(scope, g.oneOf(monoids), *x) : x;
  auto d = m ? g.rowwise(scope, g.oneOf(operators), *x, *m) : m;
  if (!d)
    return false;
  if (g.chance(1, 2)) {
    auto y = g.fit(scope, Kind::Float, g.at(*d).shape);
    auto product = y ? g.binary(scope, "*", *d, *y) : y;
    if (product)
      d = product;
  } else if (g.chance(1, 2)) {
    auto y = g.fit(scope, Kind::Float, {g.at(*d).shape.back(), g.extent(scope)});
    return y && g.contract(scope, "+", "*", *d, *y);
  }
  return bool(g.reduceLast(scope, g.oneOf(monoids), *d));
}

/// x / max/ |x|.
static bool makeNormalised(Generator &g, Scope &scope) {
  auto x = findRows(g, scope, 100);
  auto size = x ? g.unary(scope, "abs", *x) : x;
  auto m = size ? g.reduceLast(scope, g.chance(1, 2) ? "max" : "+", *size) : size;
  auto above = m ? g.binary(scope, g.chance(1, 2) ? "max" : "+", *m, g.real(scope, 0.5)) : m;
  auto q = above ? g.rowwise(scope, "/", *x, *above) : above;
  if (!q)
    return false;
  limit(g, *q, 200);
  if (g.chance(1, 2))
    if (auto square = g.binary(scope, "*", *q, *q))
      g.reduceLast(scope, "+", *square);
  return true;
}

llvm::ArrayRef<Operator> moa::random::getCascadeOperators() {
  static const Operator table[] = {{"exponential", 12, makeExponential, true}, {"prelude row", 8, makePreludeRow, true},
                                   {"attention", 8, makeAttention, true},      {"variance", 5, makeVariance, true},
                                   {"linear cascade", 10, makeLinear},         {"normalised", 5, makeNormalised, true}};
  return table;
}
