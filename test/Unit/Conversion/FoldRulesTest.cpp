//===- FoldRulesTest.cpp - splits, rescales and their guards --------------===//
//
// The split is checked against the property it stands for: F = G ⊗ H with G
// free of the state and H free of the index, and F(x, d)·F(x₀, d₀) =
// F(x, d₀)·F(x₀, d) at random points.
//
//===----------------------------------------------------------------------===//
#include "lib/Conversion/DNFToONF/FoldRules.h"
#include "KernelBuilder.h"
#include "gtest/gtest.h"
#include <cmath>
#include <functional>
#include <random>

using namespace moa;
using namespace moa::test;

namespace {

/// Values of the inputs x, y, z, of the predicate p and of the states.
struct Point {
  double x, y, z, p;
  std::map<Expr, double> states;
};

class FoldRulesTest : public testing::Test {
protected:
  FoldRulesTest() : exprs(&getContext()), rules(exprs) {
    exprs.inputNames = {"x", "y", "z", "p"};
    j = exprs.freshIndex("j");
    n = exprs.freshIndex("n");
    f64 = typeNamed("f64");
    x = psi(0, j), y = psi(1, j), z = psi(2, n);
    p = exprs.psi(3, {exprs.index(j)}, typeNamed("i1"));
    m = state(Monoid::max, x);
    low = state(Monoid::min, x);
    s = state(Monoid::add, op("math.exp", {x}));
    c = state(Monoid::add, x);
  }
  Expr psi(int64_t input, int64_t index) { return exprs.psi(input, {exprs.index(index)}, f64); }
  Expr op(llvm::StringRef name, std::vector<Expr> v) { return exprs.op(name, v, v.back()->type); }
  Expr num(double value) { return exprs.floatConstant(value, f64); }
  Expr add(Expr a, Expr b) { return op("arith.addf", {a, b}); }
  Expr sub(Expr a, Expr b) { return op("arith.subf", {a, b}); }
  Expr mul(Expr a, Expr b) { return op("arith.mulf", {a, b}); }
  Expr div(Expr a, Expr b) { return op("arith.divf", {a, b}); }
  Expr neg(Expr a) { return op("arith.negf", {a}); }
  Expr exp(Expr a) { return op("math.exp", {a}); }
  Expr exp2(Expr a) { return op("math.exp2", {a}); }
  Expr log(Expr a) { return op("math.log", {a}); }
  Expr abs(Expr a) { return op("math.absf", {a}); }
  Expr pow(Expr a, Expr b) { return op("math.powf", {a, b}); }
  Expr select(Expr q, Expr a, Expr b) { return op("arith.select", {q, a, b}); }
  ExprAttr extent(llvm::StringRef symbol) { return ExprAttr::get(&getContext(), SymExpr::symbol(symbol)); }
  /// ⊕ over j of a body, with the body remembered for the rescale.
  Expr state(Monoid monoid, Expr body) {
    Expr reduce = exprs.reduce(monoid, extent("M"), j, body, nullptr, mlir::TypeAttr(), "j");
    bodies[reduce] = body;
    return reduce;
  }
  StateSet states(std::vector<Expr> list) {
    StateSet set;
    for (Expr e : list)
      set.insert(e);
    return set;
  }
  StateSet all() { return states({m, low, s, c}); }

  double value(Expr e, const Point &at) {
    if (auto it = at.states.find(e); it != at.states.end())
      return it->second;
    if (e->kind == ExprKind::Psi)
      return std::array<double, 4>{at.x, at.y, at.z, at.p}[e->id];
    if (e->kind == ExprKind::Const)
      return mlir::cast<mlir::FloatAttr>(e->value).getValueAsDouble();
    std::vector<double> v;
    for (Expr operand : e->operands)
      v.push_back(value(operand, at));
    llvm::StringRef name = e->op->getStringRef();
    static const std::map<std::string, std::function<double(const std::vector<double> &)>> table = {
        {"arith.addf", [](auto &v) { return v[0] + v[1]; }},
        {"arith.subf", [](auto &v) { return v[0] - v[1]; }},
        {"arith.mulf", [](auto &v) { return v[0] * v[1]; }},
        {"arith.divf", [](auto &v) { return v[0] / v[1]; }},
        {"arith.negf", [](auto &v) { return -v[0]; }},
        {"math.exp", [](auto &v) { return std::exp(v[0]); }},
        {"math.exp2", [](auto &v) { return std::exp2(v[0]); }},
        {"math.log", [](auto &v) { return std::log(v[0]); }},
        {"math.absf", [](auto &v) { return std::fabs(v[0]); }},
        {"math.tanh", [](auto &v) { return std::tanh(v[0]); }},
        {"math.sqrt", [](auto &v) { return std::sqrt(v[0]); }},
        {"math.powf", [](auto &v) { return std::pow(v[0], v[1]); }},
        {"arith.maximumf", [](auto &v) { return std::max(v[0], v[1]); }},
        {"arith.minimumf", [](auto &v) { return std::min(v[0], v[1]); }},
        {"arith.select", [](auto &v) { return v[0] != 0 ? v[1] : v[2]; }}};
    return table.at(name.str())(v);
  }

  Point random(std::mt19937 &engine) {
    std::uniform_real_distribution<double> positive(0.2, 2);
    Point at{positive(engine), positive(engine), positive(engine), double(engine() % 4 != 0), {}};
    for (Expr e : {m, low, s, c})
      at.states[e] = positive(engine);
    return at;
  }
  static bool near(double a, double b) {
    return std::fabs(a - b) <= 1e-10 * std::max({1.0, std::fabs(a), std::fabs(b)});
  }
  /// Whether F(x, d)·F(x₀, d₀) = F(x, d₀)·F(x₀, d) at many random points.
  bool separates(Expr f) {
    std::mt19937 engine(7);
    for (int k = 0; k < 200; ++k) {
      Point a = random(engine), b = random(engine);
      b.z = a.z;
      Point ab = a, ba = b;
      std::swap(ab.states, ba.states);
      if (!near(value(f, a) * value(f, b), value(f, ab) * value(f, ba)))
        return false;
    }
    return true;
  }
  /// F = G ⊗ H at random points, and each part reads only its own.
  void expectParts(Expr f, const Split &split, bool additive) {
    ASSERT_TRUE(split) << exprs.str(f);
    EXPECT_FALSE(rules.reads(split.g, all())) << exprs.str(split.g);
    EXPECT_FALSE(split.h->dependsOn(j)) << exprs.str(split.h);
    std::mt19937 engine(3);
    for (int k = 0; k < 50; ++k) {
      Point at = random(engine);
      double g = value(split.g, at), h = value(split.h, at);
      ASSERT_TRUE(near(value(f, at), additive ? g + h : g * h))
          << exprs.str(f) << " = " << exprs.str(split.g) << " with " << exprs.str(split.h);
    }
  }
  RescaleRule rescale(Expr body, std::vector<Expr> list, Monoid monoid = Monoid::add) {
    Expr t = state(monoid, body);
    return rules.rescale(t, body, states(list), {j}, [&](Expr e) { return bodies.at(e); });
  }

  ExprContext exprs;
  FoldRules rules;
  int64_t j, n;
  mlir::Type f64;
  Expr x, y, z, p, m, low, s, c;
  std::map<Expr, Expr> bodies;
};

TEST_F(FoldRulesTest, ProductsQuotientsPowersAndExponentialsSplit) {
  for (Expr f : {exp(sub(x, m)),
                 mul(exp(sub(x, m)), y),
                 div(exp(sub(x, m)), s),
                 mul(x, m),
                 div(x, m),
                 div(m, x),
                 neg(mul(x, m)),
                 mul(div(x, m), div(x, m)),
                 pow(div(x, m), num(2)),
                 pow(mul(x, m), num(-3)),
                 exp2(sub(m, x)),
                 exp(add(sub(x, m), mul(num(2), sub(y, low)))),
                 exp(neg(sub(x, m))),
                 exp(div(sub(x, m), num(4))),
                 exp(sub(log(mul(abs(x), s)), m)),
                 select(p, exp(sub(x, m)), num(0)),
                 mul(select(p, div(x, s), num(0)), m),
                 x,
                 m,
                 mul(z, exp(sub(mul(x, z), m)))}) {
    expectParts(f, rules.splitMul(f, all(), {j}), false);
    EXPECT_TRUE(separates(f)) << exprs.str(f);
  }
}

TEST_F(FoldRulesTest, SumsDifferencesMultiplesAndLogarithmsSplitAdditively) {
  for (Expr f : {sub(x, m), add(x, add(m, y)), neg(sub(x, m)), mul(num(3), sub(x, m)), mul(sub(x, m), num(-3)),
                 div(sub(x, m), num(2)), log(mul(abs(x), s)), sub(log(div(abs(x), s)), m), x, m})
    expectParts(f, rules.splitAdd(f, all(), {j}), true);
}

TEST_F(FoldRulesTest, TheSubtermThatBlocksIsNamed) {
  Expr difference = sub(x, m), sum = add(x, m), half = num(0.5), one = num(1);
  Expr far = exprs.op(mlir::OperationName("arith.cmpf", &getContext()), mlir::DictionaryAttr::get(&getContext()),
                      {x, m}, typeNamed("i1"));
  std::vector<std::pair<Expr, Expr>> cases = {
      {difference, difference},
      {abs(difference), abs(difference)},
      {mul(y, mul(exp(sub(x, m)), sum)), sum},
      {exp(mul(x, m)), mul(x, m)},
      {op("math.tanh", {difference}), op("math.tanh", {difference})},
      {op("arith.maximumf", {x, m}), op("arith.maximumf", {x, m})},
      {exp(log(sum)), sum},
      // Of two negative factors the product has a logarithm, but they have none.
      {exp(log(mul(x, m))), log(mul(x, m))},
      {pow(difference, num(2)), difference},
      // A fractional power of a product of unknown sign is no product of powers.
      {pow(mul(x, m), half), pow(mul(x, m), half)},
      {pow(x, m), pow(x, m)},
      {select(far, exp(difference), num(0)), select(far, exp(difference), num(0))},
      {select(p, exp(difference), one), select(p, exp(difference), one)}};
  for (auto [f, blocked] : cases) {
    Split split = rules.splitMul(f, all(), {j});
    EXPECT_FALSE(split) << exprs.str(f);
    EXPECT_EQ(split.blocked, blocked) << exprs.str(f) << ": " << exprs.str(split.blocked);
  }
  for (Expr f : {difference, abs(difference), exp(mul(x, m)), op("math.tanh", {difference}),
                 op("arith.maximumf", {x, m}), pow(difference, num(2)), pow(x, m)})
    EXPECT_FALSE(separates(f)) << exprs.str(f);
}

TEST_F(FoldRulesTest, WhateverSplitsSeparates) {
  std::mt19937 engine(11);
  unsigned done = 0;
  for (unsigned k = 0; k < 4000; ++k) {
    std::function<Expr(unsigned)> make = [&](unsigned depth) -> Expr {
      Expr leaves[] = {x, y, z, m, low, s, num(2), num(0.5)};
      if (depth == 0)
        return leaves[engine() % 8];
      Expr a = make(depth - 1), b = make(engine() % depth);
      switch (engine() % 9) {
      case 0:
        return add(a, b);
      case 1:
        return sub(a, b);
      case 2:
      case 3:
        return mul(a, b);
      case 4:
        return div(a, b);
      case 5:
        return exp(op("math.tanh", {a}));
      case 6:
        return exp(sub(op("math.tanh", {b}), leaves[engine() % 6]));
      case 7:
        return pow(a, num(2));
      default:
        return select(p, a, num(0));
      }
    };
    Expr f = make(1 + engine() % 4);
    Split split = rules.splitMul(f, all(), {j});
    if (!split) {
      ASSERT_NE(split.blocked, nullptr);
      continue;
    }
    ++done;
    ASSERT_FALSE(rules.reads(split.g, all())) << exprs.str(f);
    ASSERT_FALSE(split.h->dependsOn(j)) << exprs.str(f);
    Point at = random(engine);
    double product = value(split.g, at) * value(split.h, at), expected = value(f, at);
    if (std::isfinite(product) && std::isfinite(expected) && std::fabs(expected) < 1e12) {
      ASSERT_NEAR(product, expected, 1e-9 * std::max(1.0, std::fabs(expected))) << exprs.str(f);
    }
  }
  EXPECT_GT(done, 400u);
}

TEST_F(FoldRulesTest, AMaximumRepairsAnExponential) {
  RescaleRule r = rescale(exp(sub(x, m)), {m});
  ASSERT_TRUE(r.valid());
  ASSERT_EQ(r.refs.size(), 1u);
  EXPECT_EQ(r.refs[0], m);
  EXPECT_EQ(r.singular[0], -kInf);
  EXPECT_TRUE(rescale(mul(exp(sub(x, m)), y), {m}).valid());
  EXPECT_TRUE(rescale(exp2(sub(x, m)), {m}).valid());
}

TEST_F(FoldRulesTest, AMinimumRepairsTheOtherDirection) {
  RescaleRule r = rescale(exp(sub(low, x)), {low});
  ASSERT_TRUE(r.valid());
  EXPECT_EQ(r.singular[0], kInf);
}

TEST_F(FoldRulesTest, AMagnitudeRepairsASquare) {
  Expr size = state(Monoid::max, abs(x)), q = div(x, size);
  RescaleRule r = rescale(mul(q, q), {size});
  ASSERT_TRUE(r.valid()) << r.reason;
  EXPECT_EQ(r.singular[0], 0);
}

TEST_F(FoldRulesTest, AStateThatIsNeverSingularSaysSo) {
  RescaleRule r = rescale(div(y, add(s, num(1))), {s});
  ASSERT_TRUE(r.valid()) << r.reason;
  EXPECT_TRUE(std::isnan(r.singular[0]));
}

TEST_F(FoldRulesTest, WithoutAStateThereIsNothingToRepair) {
  RescaleRule r = rescale(mul(x, y), {m});
  ASSERT_TRUE(r.valid());
  EXPECT_TRUE(r.refs.empty());
}

TEST_F(FoldRulesTest, FactorsThatMayGrowAreRefused) {
  // e^m grows with a maximum, e^(−low) with a minimum, s with every term.
  for (Expr f : {exp(add(x, m)), mul(y, s), exp(sub(x, low)), div(x, c), mul(x, m), exp(sub(x, c))}) {
    RescaleRule r = rescale(f, {m, low, s, c});
    EXPECT_FALSE(r.valid()) << exprs.str(f);
    EXPECT_EQ(r.reason, "its ratio is not known to stay within 1") << exprs.str(f);
  }
}

TEST_F(FoldRulesTest, TermsMustVanishWhereTheFactorIsSingular) {
  // Over y, a maximum of x of −∞ says nothing about the terms.
  Expr other = state(Monoid::add, exp(y));
  for (Expr f : {mul(y, exp(neg(m))), div(y, s), div(exp(sub(x, m)), other)}) {
    RescaleRule r = rescale(f, {m, s, other});
    EXPECT_FALSE(r.valid()) << exprs.str(f);
    EXPECT_EQ(r.reason, "terms do not vanish where it is singular") << exprs.str(f);
  }
  // Over x, a sum of e^x that is still 0 says that every term was.
  EXPECT_TRUE(rescale(div(exp(sub(x, m)), s), {m, s}).valid());
}

TEST_F(FoldRulesTest, MonoidsOverWhichProductsDoNotDistributeAreRefused) {
  for (Monoid monoid : {Monoid::mul, Monoid::max, Monoid::min}) {
    RescaleRule r = rescale(exp(sub(x, m)), {m}, monoid);
    if (!r.valid()) {
      EXPECT_FALSE(r.reason.empty());
      continue;
    }
    // Non-negative factors distribute over extremes; over products none does.
    EXPECT_NE(monoid, Monoid::mul);
  }
}

TEST_F(FoldRulesTest, TheRatioIsNewOverOld) {
  std::mt19937 engine(5);
  Expr size = state(Monoid::max, abs(x));
  for (Expr h : {exp(neg(m)), div(num(1), mul(size, size)), pow(size, num(-2)), exp2(neg(m)),
                 mul(exp(neg(m)), exp(low)), neg(size), num(3), exp(sub(low, m)), div(num(1), add(s, num(1)))}) {
    StateSet set = states({m, low, s, size});
    std::map<Expr, Expr> olds, news;
    Point at = random(engine), before = at, after = at;
    std::uniform_real_distribution<double> positive(0.2, 2);
    int64_t id = -100;
    for (Expr e : set) {
      olds[e] = exprs.psi(id--, {}, f64);
      news[e] = exprs.psi(id--, {}, f64);
      at.states[olds[e]] = before.states[e] = positive(engine);
      at.states[news[e]] = after.states[e] = positive(engine);
    }
    Expr ratio = rules.correctionFactor(h, set, [&](Expr e) { return olds.at(e); }, [&](Expr e) { return news.at(e); });
    EXPECT_FALSE(rules.reads(ratio, set));
    EXPECT_NEAR(value(ratio, at), value(h, after) / value(h, before), 1e-12) << exprs.str(h);
  }
}

TEST_F(FoldRulesTest, FactorsMultiplyToTheirProduct) {
  std::mt19937 engine(9);
  for (Expr e :
       {mul(mul(x, y), z), div(div(x, y), mul(z, m)), div(x, div(y, z)), x, div(num(1), x), mul(add(x, y), z)}) {
    llvm::SmallVector<FoldRules::Factor> factors = rules.factors(e);
    for (const FoldRules::Factor &factor : factors)
      EXPECT_FALSE(factor.base->isOp("arith.mulf") || factor.base->isOp("arith.divf"));
    Point at = random(engine);
    EXPECT_NEAR(value(rules.product(factors, f64), at), value(e, at), 1e-12) << exprs.str(e);
  }
}

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

TEST_F(FoldRulesTest, ReductionsThatDifferInTheNameOfTheIndexAreOne) {
  int64_t k = exprs.freshIndex("k");
  Expr other = exprs.reduce(Monoid::max, extent("M"), k, psi(0, k), nullptr, mlir::TypeAttr(), "k");
  EXPECT_EQ(other, m);
  auto [body, present] = exprs.open(m, k);
  EXPECT_EQ(body, psi(0, k));
  EXPECT_EQ(present, nullptr);
}

TEST_F(FoldRulesTest, NestedReductionsOpenToWhatTheyWereMadeOf) {
  int64_t k = exprs.freshIndex("k"), l = exprs.freshIndex("l");
  Expr element = exprs.psi(0, {exprs.index(j), exprs.index(k), exprs.index(l)}, f64);
  Expr inner = exprs.reduce(Monoid::add, extent("K"), k, element, nullptr, mlir::TypeAttr(), "k");
  Expr outer = exprs.reduce(Monoid::max, extent("M"), j, mul(inner, psi(1, j)), nullptr, mlir::TypeAttr(), "j");
  EXPECT_TRUE(outer->dependsOn(l));
  EXPECT_FALSE(outer->dependsOn(j));
  EXPECT_EQ(exprs.open(outer, j).first, mul(inner, psi(1, j)));
  // Putting an expression for an index below two binders leaves them alone.
  Expr moved = exprs.replace(outer, [&](Expr e) { return e == exprs.index(l) ? exprs.index(n) : nullptr; });
  EXPECT_TRUE(moved->dependsOn(n));
  EXPECT_FALSE(moved->dependsOn(l));
  EXPECT_EQ(moved->height, 2u);
}

} // namespace
