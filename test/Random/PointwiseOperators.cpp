//===- PointwiseOperators.cpp - arithmetic, logic, masks ------------------===//
#include "Generator.h"
#include <cmath>

using namespace moa;
using namespace moa::random;

//===----------------------------------------------------------------------===//
// What is known of results
//===----------------------------------------------------------------------===//

Facts Generator::arithmetic(const std::string &op, const Node &x, const Node &y) const {
  const Facts &a = x.facts, &b = y.facts;
  Facts facts;
  bool real = x.kind == Kind::Float || y.kind == Kind::Float;
  auto whole = [](const Node &node) { return node.kind != Kind::Float || node.facts.integral; };
  facts.integral = real && whole(x) && whole(y) && op != "/";
  bool chooses = op == "min" || op == "max";
  facts.copied = real && chooses && (a.copied || x.kind != Kind::Float) && (b.copied || y.kind != Kind::Float);
  facts.absent = a.absent || b.absent;
  facts.infinite = a.infinite || b.infinite;
  facts.symbolic = a.symbolic && b.symbolic;
  if (chooses)
    facts.magnitude = std::max(a.magnitude, b.magnitude);
  else if (op == "*")
    facts.magnitude = a.magnitude * b.magnitude;
  else if (op == "/" || op == "%")
    facts.magnitude = real ? 2 * a.magnitude : std::max(a.magnitude, b.magnitude);
  else
    facts.magnitude = a.magnitude + b.magnitude;
  return facts;
}

/// `min(x, y)` and the like are calls, the others infix.
static std::string textOf(const std::string &op, const std::string &ranks = "") {
  if (op == "min" || op == "max")
    return op + (ranks.empty() ? "" : " @ " + ranks + " ") + "(#0, #1)";
  return "$0 " + op + (ranks.empty() ? " " : "@" + ranks + " ") + "$1";
}

static Kind join(const Node &x, const Node &y) {
  return x.kind == Kind::Float || y.kind == Kind::Float ? Kind::Float : Kind::Int;
}

/// An integer that meets a float is one that converts exactly.
static bool meet(const Generator &g, const Node &x, const Node &y) {
  if (x.kind == Kind::Bool || y.kind == Kind::Bool)
    return false;
  auto converts = [&](const Node &node) { return node.kind == Kind::Float || node.facts.magnitude <= g.exactLimit; };
  return join(x, y) == Kind::Int || (converts(x) && converts(y));
}

std::optional<NodeId> Generator::binary(Scope &scope, const std::string &op, NodeId x, NodeId y) {
  const Node &a = at(x), &b = at(y);
  if (!meet(*this, a, b) || (!a.shape.empty() && !b.shape.empty() && a.shape != b.shape))
    return std::nullopt;
  return add(scope, op, textOf(op), {x, y}, join(a, b), a.shape.empty() ? b.shape : a.shape, arithmetic(op, a, b));
}

std::optional<NodeId> Generator::rowwise(Scope &scope, const std::string &op, NodeId x, NodeId y) {
  const Node a = at(x), b = at(y);
  if (a.shape.empty() || !meet(*this, a, b) || b.shape != Shape(a.shape.begin(), a.shape.end() - 1))
    return std::nullopt;
  if (b.shape.empty())
    return binary(scope, op, x, y);
  Facts facts = arithmetic(op, a, b);
  if (chance(2, 3))
    return add(scope, op + " @", textOf(op, "(1,0)"), {x, y}, join(a, b), a.shape, facts);
  // As an index form with an open axis.
  std::string names;
  for (unsigned k = 0; k < b.shape.size(); ++k)
    names += "a" + std::to_string(k) + ", ";
  std::string subscripts = names.substr(0, names.size() - 2);
  std::string form = "([" + names + "_] $1[" + subscripts + "])";
  std::string text = op == "min" || op == "max" ? op + "(#0, " + form + ")" : "$0 " + op + " " + form;
  return add(scope, "open axis", text, {x, y}, join(a, b), a.shape, facts);
}

std::optional<NodeId> Generator::unary(Scope &scope, const std::string &fn, NodeId x) {
  const Node node = at(x);
  Facts facts = node.facts;
  facts.selection = false;
  double m = facts.magnitude;
  Kind kind = node.kind;
  if (fn == "-" || fn == "abs") {
    // -x and |x| of the smallest integer wrap to it.
  } else if (fn == "floor" || fn == "ceil") {
    if (!isComparable(node) && kind == Kind::Float)
      return std::nullopt;
    facts.magnitude = m + 1;
    facts.integral |= kind == Kind::Float;
  } else {
    if (kind == Kind::Int && m > 64)
      return std::nullopt;
    kind = Kind::Float;
    facts.integral = facts.copied = false;
    if (fn == "exp" || fn == "exp2")
      facts.magnitude = std::exp(std::min(m, 20.0));
    else if (fn == "tanh" || fn == "sin" || fn == "cos" || fn == "erf" || fn == "sigmoid")
      facts.magnitude = 1;
    else
      facts.magnitude = m + 2;
  }
  std::string text = fn == "-" ? "-$0" : fn + "(#0)";
  return add(scope, fn, text, {x}, kind, node.shape, facts);
}

std::optional<NodeId> Generator::bounded(Scope &scope, NodeId x, double magnitude) {
  double m = at(x).facts.magnitude;
  if (m <= magnitude)
    return x;
  if (at(x).kind == Kind::Int) {
    if (at(x).facts.symbolic)
      return std::nullopt;
    int64_t modulus = std::max<int64_t>(1, magnitude);
    Facts facts = at(x).facts;
    facts.magnitude = modulus;
    return add(scope, "%", "$0 % " + std::to_string(modulus), {x}, Kind::Int, at(x).shape, facts);
  }
  if (!exact && magnitude >= 1 && chance(1, 2))
    return unary(scope, "tanh", x);
  int64_t limit = std::max<int64_t>(1, magnitude);
  NodeId high = literal(scope, limit), low = literal(scope, -limit);
  Facts facts = at(x).facts;
  facts.selection = facts.symbolic = false;
  auto below = add(scope, "min", "min(#0, #1)", {x, high}, Kind::Float, at(x).shape, facts);
  facts.magnitude = limit;
  facts.infinite = false;
  return below ? add(scope, "max", "max(#0, #1)", {*below, low}, Kind::Float, at(x).shape, facts) : below;
}

//===----------------------------------------------------------------------===//
// Predicates
//===----------------------------------------------------------------------===//

static std::optional<NodeId> compare(Generator &g, Scope &scope, const Shape *shape) {
  auto x = g.findComparable(scope, shape);
  if (!x)
    return std::nullopt;
  auto y = g.chance(1, 2) ? g.findComparable(scope, &g.at(*x).shape) : std::nullopt;
  NodeId other = y                                       ? *y
                 : g.at(*x).kind == Kind::Int || g.exact ? g.literal(scope, g.between(-2, 5))
                                                         : g.real(scope, double(g.between(-8, 8)) / 8);
  const Node a = g.at(*x), b = g.at(other);
  if (!meet(g, a, b))
    return std::nullopt;
  static const char *const operators[] = {"<", "<=", ">", ">=", "==", "!="};
  std::string op = g.oneOf(operators);
  Facts facts;
  facts.absent = a.facts.absent || b.facts.absent;
  facts.symbolic = a.facts.symbolic && b.facts.symbolic;
  return g.add(scope, op, "$0 " + op + " $1", {*x, other}, Kind::Bool, a.shape, facts);
}

std::optional<NodeId> Generator::predicate(Scope &scope, const Shape &shape) {
  if (chance(1, 3))
    if (auto made = compare(*this, scope, &shape))
      return made;
  return fit(scope, Kind::Bool, shape);
}

//===----------------------------------------------------------------------===//
// Rows of the table
//===----------------------------------------------------------------------===//

static bool makeArithmetic(Generator &g, Scope &scope) {
  static const char *const operators[] = {"+", "-", "*", "+", "*", "min", "max"};
  Kind kind = g.chance(1, 5) ? Kind::Int : Kind::Float;
  auto x = g.findArray(scope, kind);
  if (!x)
    return false;
  auto y = g.fitOrScalar(scope, g.chance(1, 6) ? Kind::Int : kind, g.at(*x).shape);
  if (!y)
    return false;
  std::string op = g.oneOf(operators);
  return bool(g.chance(1, 4) ? g.binary(scope, op, *y, *x) : g.binary(scope, op, *x, *y));
}

/// By 1/2 + |y|.
static bool makeQuotient(Generator &g, Scope &scope) {
  auto x = g.findArray(scope, Kind::Float);
  auto y = x ? g.fitOrScalar(scope, Kind::Float, g.at(*x).shape) : std::nullopt;
  if (!y || g.at(*y).facts.symbolic)
    return false;
  auto size = g.unary(scope, "abs", *y);
  auto divisor = size ? g.binary(scope, "+", *size, g.real(scope, 0.5)) : size;
  return divisor && g.binary(scope, "/", *x, *divisor);
}

/// Integer / and % by something that is not 0.
static bool makeDivision(Generator &g, Scope &scope) {
  auto x = g.findArray(scope, Kind::Int);
  if (!x)
    return false;
  std::string op = g.chance(1, 2) ? "/" : "%";
  const Node node = g.at(*x);
  Facts facts = node.facts;
  std::vector<Need> needs;
  if (g.chance(1, 3)) {
    auto y = g.fit(scope, Kind::Int, node.shape);
    if (!y || g.at(*y).facts.symbolic)
      return false;
    facts.absent |= g.at(*y).facts.absent;
    facts.magnitude = std::max(facts.magnitude, 5.0);
    return bool(g.add(scope, op, "$0 " + op + " (abs($1) % 4 + 1)", {*x, *y}, Kind::Int, node.shape, facts));
  }
  if (g.chance(1, 3)) {
    SymExpr divisor = g.extent(scope);
    facts.magnitude = std::max(facts.magnitude, g.boundOf(divisor));
    return bool(
        g.add(scope, op, "$0 " + op + " (" + divisor.str() + ")", {*x}, Kind::Int, node.shape, facts, {{divisor, 1}}));
  }
  static const char *const divisors[] = {"2", "3", "(-2)", "7", "(-1)", "16"};
  facts.magnitude = std::max(facts.magnitude, 16.0);
  return bool(g.add(scope, op, "$0 " + op + " " + g.oneOf(divisors), {*x}, Kind::Int, node.shape, facts));
}

static bool makeBits(Generator &g, Scope &scope) {
  auto x = g.findArray(scope, Kind::Int);
  if (!x || g.at(*x).facts.symbolic)
    return false;
  const Node node = g.at(*x);
  Facts facts = node.facts;
  auto y = g.fitOrScalar(scope, Kind::Int, node.shape);
  if (!y)
    return false;
  facts.absent |= g.at(*y).facts.absent;
  double both = std::max(facts.magnitude, g.at(*y).facts.magnitude);
  switch (g.pick(6)) {
  case 0:
    facts.magnitude += 1;
    return bool(g.add(scope, "~", "~$0", {*x}, Kind::Int, node.shape, facts));
  case 1:
    facts.magnitude *= 128;
    return bool(g.add(scope, "<<", "$0 << ($1 & 7)", {*x, *y}, Kind::Int, node.shape, facts));
  case 2:
    return bool(g.add(scope, ">>", "$0 >> ($1 & 15)", {*x, *y}, Kind::Int, node.shape, facts));
  default: {
    static const char *const operators[] = {"&", "|", "^"};
    std::string op = g.oneOf(operators);
    facts.magnitude = 2 * both + 1;
    return bool(g.add(scope, op, "$0 " + op + " $1", {*x, *y}, Kind::Int, node.shape, facts));
  }
  }
}

static bool makeUnary(Generator &g, Scope &scope) {
  static const char *const functions[] = {"-", "abs", "floor", "ceil"};
  auto x = g.findArray(scope, g.chance(1, 4) ? Kind::Int : Kind::Float);
  return x && g.unary(scope, g.oneOf(functions), *x);
}

/// Elementary functions where they are defined and of moderate size.
static bool makeElementary(Generator &g, Scope &scope) {
  auto x = g.findArray(scope, g.chance(1, 8) ? Kind::Int : Kind::Float);
  auto small = x ? g.bounded(scope, *x, 6) : x;
  if (!small || g.at(*small).facts.symbolic)
    return false;
  static const char *const total[] = {"exp", "exp2", "tanh", "sin", "cos", "erf"};
  static const char *const positive[] = {"log", "log2", "sqrt", "rsqrt"};
  if (g.chance(2, 3))
    return bool(g.unary(scope, g.oneOf(total), *small));
  auto size = g.unary(scope, "abs", *small);
  auto above = size ? g.binary(scope, "+", *size, g.real(scope, 0.25)) : size;
  return above && g.unary(scope, g.oneOf(positive), *above);
}

static bool makePower(Generator &g, Scope &scope) {
  auto x = g.findArray(scope, Kind::Float);
  auto small = x ? g.bounded(scope, *x, 4) : x;
  auto size = small ? g.unary(scope, "abs", *small) : small;
  auto base = size ? g.binary(scope, "+", *size, g.real(scope, 0.5)) : size;
  if (!base || g.at(*base).facts.symbolic)
    return false;
  Facts facts = g.at(*base).facts;
  facts.magnitude = 100;
  facts.integral = facts.copied = false;
  static const char *const exponents[] = {"2", "0.5", "(-1.5)", "3", "0"};
  return bool(g.add(scope, "pow", std::string("pow(#0, ") + g.oneOf(exponents) + ")", {*base}, Kind::Float,
                    g.at(*base).shape, facts));
}

static bool makePrelude(Generator &g, Scope &scope) {
  auto x = g.findArray(scope, Kind::Float);
  auto small = x ? g.bounded(scope, *x, 30) : x;
  if (!small || g.at(*small).facts.symbolic)
    return false;
  static const char *const functions[] = {"sigmoid", "silu", "gelu", "softplus"};
  if (g.chance(3, 4))
    return bool(g.unary(scope, g.oneOf(functions), *small));
  Facts facts = g.at(*small).facts;
  facts.magnitude = 4;
  facts.integral = facts.copied = facts.selection = false;
  return bool(g.add(scope, "softcap", "softcap(#0, 4.0)", {*small}, Kind::Float, g.at(*small).shape, facts));
}

static bool makeRelu(Generator &g, Scope &scope) {
  auto x = g.findArray(scope, Kind::Float);
  if (!x || g.at(*x).facts.symbolic)
    return false;
  Facts facts = g.at(*x).facts;
  facts.selection = false;
  return bool(g.add(scope, "relu", "relu(#0)", {*x}, Kind::Float, g.at(*x).shape, facts));
}

static bool makeComparison(Generator &g, Scope &scope) { return bool(compare(g, scope, nullptr)); }

static bool makeLogic(Generator &g, Scope &scope) {
  auto p = g.findArray(scope, Kind::Bool);
  if (!p)
    return false;
  const Node node = g.at(*p);
  if (g.chance(1, 5))
    return bool(g.add(scope, "not", "not $0", {*p}, Kind::Bool, node.shape, node.facts));
  auto q = g.fitOrScalar(scope, Kind::Bool, node.shape);
  if (!q)
    return false;
  static const char *const operators[] = {"and", "or", "==", "!="};
  std::string op = g.oneOf(operators);
  Facts facts = node.facts;
  facts.absent |= g.at(*q).facts.absent;
  return bool(g.add(scope, op, "$0 " + op + " $1", {*p, *q}, Kind::Bool, node.shape, facts));
}

/// Of operands that may be absent, or of such that are not.
static bool makeSelectOf(Generator &g, Scope &scope, bool absent) {
  Kind kind = g.chance(1, 5) ? Kind::Int : Kind::Float;
  auto x = g.findArray(scope, kind);
  if (!x)
    return false;
  const Shape shape = g.at(*x).shape;
  auto p = g.chance(1, 6) ? std::optional<NodeId>(g.scalar(scope, Kind::Bool)) : g.predicate(scope, shape);
  auto y = g.fitOrScalar(scope, kind, shape);
  if (!p || !y)
    return false;
  const Facts a = g.at(*x).facts, b = g.at(*y).facts;
  Facts facts;
  facts.magnitude = std::max(a.magnitude, b.magnitude);
  facts.integral = a.integral && b.integral;
  facts.copied = a.copied && b.copied;
  facts.absent = a.absent || b.absent || g.at(*p).facts.absent;
  facts.infinite = a.infinite || b.infinite;
  if (facts.absent != absent)
    return false;
  return bool(g.add(scope, "select", "select(#0, #1, #2)", {*p, *x, *y}, kind, shape, facts));
}

static bool makeSelect(Generator &g, Scope &scope) { return makeSelectOf(g, scope, false); }
static bool makeAbsentSelect(Generator &g, Scope &scope) { return makeSelectOf(g, scope, true); }

static bool makeMask(Generator &g, Scope &scope) {
  Kind kind = g.chance(1, 6) ? g.chance(1, 2) ? Kind::Int : Kind::Bool : Kind::Float;
  auto x = g.findArray(scope, kind, 1);
  auto p = x ? g.predicate(scope, g.at(*x).shape) : std::nullopt;
  if (!p)
    return false;
  Facts facts = g.at(*x).facts;
  facts.absent = true;
  facts.symbolic = false;
  return bool(g.add(scope, "mask", "mask(#0, #1)", {*p, *x}, kind, g.at(*x).shape, facts));
}

static bool makeAddMask(Generator &g, Scope &scope) {
  auto x = g.findArray(scope, Kind::Float, 1);
  auto p = x ? g.predicate(scope, g.at(*x).shape) : std::nullopt;
  if (!p)
    return false;
  Facts facts = g.at(*x).facts;
  facts.absent = true;
  facts.copied = facts.selection = false;
  facts.magnitude += 1;
  return bool(
      g.add(scope, "addmask", "addmask(#0, select(#1, 1, -inf))", {*x, *p}, Kind::Float, g.at(*x).shape, facts));
}

/// `x - @(2,2) y` with a y that has no frame.
static bool makeRanked(Generator &g, Scope &scope) {
  static const char *const operators[] = {"+", "-", "*", "min", "max"};
  auto x = g.findArray(scope, Kind::Float, 2);
  if (!x)
    return false;
  unsigned rank = g.rank(*x), cell = 1 + g.pick(rank - 1);
  const Shape shape = g.at(*x).shape;
  std::string op = g.oneOf(operators);
  bool framed = g.chance(1, 2);
  Shape other = framed ? Shape(shape.begin(), shape.end() - cell) : Shape(shape.end() - cell, shape.end());
  auto y = g.fit(scope, Kind::Float, other);
  if (!y)
    return false;
  std::string ranks = "(" + std::to_string(cell) + "," + std::to_string(framed ? 0 : cell) + ")";
  return bool(
      g.add(scope, op + " @", textOf(op, ranks), {*x, *y}, Kind::Float, shape, g.arithmetic(op, g.at(*x), g.at(*y))));
}

static bool makeCast(Generator &g, Scope &scope) {
  auto x = g.findArray(scope, g.chance(1, 2) ? Kind::Int : Kind::Float);
  if (!x || g.at(*x).facts.symbolic)
    return false;
  const Node node = g.at(*x);
  Facts facts = node.facts;
  facts.selection = false;
  if (g.chance(1, 2)) {
    if (!g.isComparable(node))
      return false;
    static const char *const types[] = {"i8", "i16", "i32", "i64", "index"};
    std::string type = g.oneOf(types);
    facts.integral = facts.copied = false;
    facts.magnitude = type == "i8" ? 128 : std::min(facts.magnitude + 1, 0x1p63);
    return bool(g.add(scope, "cast " + type, type + "(#0)", {*x}, Kind::Int, node.shape, facts));
  }
  static const char *const types[] = {"f64", "f32", "bf16", "f16"};
  static const double limits[] = {0x1p50, 0x1p22, 0x1p8, 0x1p11};
  static const double roundoffs[] = {0, 0x1p-24, 0x1p-9, 0x1p-12};
  unsigned k = g.pick(4);
  if (k == 0) // a kernel that computes in f32 refuses a cast to f64
    return false;
  if (node.kind == Kind::Int) {
    facts.integral = facts.copied = true;
    if (facts.magnitude > std::min(limits[k], g.exactLimit))
      return false;
  } else if (!facts.copied && !(facts.integral && facts.magnitude <= limits[k])) {
    // What is rounded to the coarser type may be on either side of a tie.
    if (g.exact)
      return false;
    facts.integral = false;
    if (roundoffs[k] > g.computeRoundoff)
      g.noteRounding(roundoffs[k]);
  }
  if (k == 3 && facts.magnitude > 6e4)
    return false;
  // Rounding may leave the magnitude by half a unit.
  facts.magnitude *= 1 + (node.kind == Kind::Float ? roundoffs[k] * 2 : 0);
  facts.integral &= facts.magnitude <= limits[k] * 2;
  return bool(g.add(scope, std::string("cast ") + types[k], std::string(types[k]) + "(#0)", {*x}, Kind::Float,
                    node.shape, facts));
}

llvm::ArrayRef<Operator> moa::random::getPointwiseOperators() {
  static const Operator table[] = {{"arithmetic", 30, makeArithmetic},
                                   {"quotient", 6, makeQuotient, true},
                                   {"division", 5, makeDivision},
                                   {"bits", 5, makeBits},
                                   {"unary", 5, makeUnary},
                                   {"elementary", 12, makeElementary, true},
                                   {"power", 2, makePower, true},
                                   {"prelude", 5, makePrelude, true},
                                   {"relu", 2, makeRelu},
                                   {"comparison", 6, makeComparison},
                                   {"logic", 5, makeLogic},
                                   {"select", 8, makeSelect},
                                   {"absent select", 4, makeAbsentSelect},
                                   {"mask", 12, makeMask},
                                   {"addmask", 3, makeAddMask},
                                   {"ranked", 8, makeRanked},
                                   {"cast", 5, makeCast}};
  return table;
}
