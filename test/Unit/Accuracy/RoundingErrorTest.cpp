//===- RoundingErrorTest.cpp - bounds as expressions, and their rules -----===//
#include "lib/Accuracy/Bounds/RoundingErrorRules.h"
#include "gtest/gtest.h"
#include <cmath>
#include <random>

using namespace moa;

namespace {

class RoundingErrorTest : public testing::Test {
protected:
  RoundingErrorTest() : rules(pool) {
    rules.arithmetic = ErrorExpr(0x1p-24);
    rules.exponentialRounding = ErrorExpr(0x1p-22);
    rules.tanhRounding = ErrorExpr(4e-6);
    rules.functionRounding = ErrorExpr(0x1p-20);
  }
  ErrorExpr statistic(const std::string &array) {
    return pool.statistic({array, MagnitudeStatistic::Kind::MaxAbs, {-1}});
  }
  /// The value with x for every statistic and 100 for every symbol.
  double value(const ErrorExpr &e, double x = 3) {
    auto statistics = [&](const MagnitudeStatistic &) { return std::optional<double>(x); };
    auto symbols = [](llvm::StringRef) { return std::optional<int64_t>(100); };
    return ErrorExprPool::evaluate(e, {statistics, symbols});
  }
  /// A value below `magnitude` with a relative and an absolute error.
  ErrorValue make(double magnitude, double relative, double absolute) {
    ErrorValue x = rules.exact(ErrorExpr(magnitude));
    x.relative = ErrorExpr(relative);
    x.absolute = ErrorExpr(absolute);
    return x;
  }
  double limit(const ErrorValue &x) { return value(rules.distance(x)); }

  ErrorExprPool pool;
  ErrorRules rules;
};

TEST_F(RoundingErrorTest, EqualExpressionsAreOne) {
  ErrorExpr x = statistic("x"), y = statistic("y");
  EXPECT_EQ(x * (x + y), x * y + x * x);
  EXPECT_EQ(pool.exp(x + y), pool.exp(y + x));
  EXPECT_FALSE(pool.exp(x) == pool.exp(y));
  EXPECT_EQ(pool.max(x, x + y), x + y);
  EXPECT_EQ(pool.expm1(ErrorExpr()).getConstant(), 0.0);
}

TEST_F(RoundingErrorTest, EvaluatesUpwards) {
  ErrorExpr x = statistic("x");
  double exact = std::exp(3.0) * 2 + std::expm1(9.0);
  double found = value(ErrorExpr(2) * pool.exp(x) + pool.expm1(x * x));
  EXPECT_GE(found, exact);
  EXPECT_LE(found, exact * (1 + 2e-6));
  EXPECT_NEAR(value(pool.sqrt(x * x) + pool.recip(x)), 3 + 1 / 3.0, 1e-5);
  EXPECT_NEAR(value(pool.extent(*SymExpr::parse("M - 2*N"))), 100, 1e-3);
}

TEST_F(RoundingErrorTest, UnknownIsInfiniteUnlessMultipliedByZero) {
  ErrorExpr unknown = pool.unknown("no reason"), p = pool.parameter(0, "p");
  EXPECT_TRUE(std::isinf(value(unknown + statistic("x"))));
  EXPECT_TRUE((unknown * p).isUnknown());
  auto zero = [](const ErrorExpr::Atom &atom) -> std::optional<ErrorExpr> {
    if (atom.kind == ErrorExpr::Atom::Kind::Parameter)
      return ErrorExpr();
    return std::nullopt;
  };
  EXPECT_TRUE(pool.substitute(unknown * p, zero).isZero());
  EXPECT_EQ(pool.min(unknown, statistic("x")), statistic("x"));
  EXPECT_TRUE(std::isinf(value(statistic("x"), std::nan(""))));
}

TEST_F(RoundingErrorTest, LargeProductsStaySmall) {
  ErrorExpr product(1);
  for (int k = 0; k < 200; ++k)
    product = product * (statistic("x" + std::to_string(k)) + ErrorExpr(1));
  EXPECT_LT(product.collectAtoms().size(), 1000u);
  EXPECT_LT(product.getTerms().size(), 100u);
  EXPECT_NEAR(value(product, 0.01) / std::pow(1.01, 200), 1, 1e-5);
}

/// Each rule on values that are moved as far as they may be.
TEST_F(RoundingErrorTest, RulesBoundWhatTheyClaim) {
  std::mt19937 random(7);
  auto uniform = [&](double low, double high) { return std::uniform_real_distribution<double>(low, high)(random); };
  for (int trial = 0; trial < 2000; ++trial) {
    double x = uniform(0.5, 3), y = uniform(0.5, 3), l = uniform(0, 0.2), a = uniform(0, 0.05);
    auto move = [&](double v) { return v * std::exp(uniform(-l, l)) + uniform(-1, 1) * a; };
    double p = move(x), q = move(y);
    ErrorValue ex = make(3, l, a), ey = make(3, l, a);
    ex.least = ey.least = ErrorExpr(0.5);
    ex.nonnegative = ey.nonnegative = true;
    EXPECT_LE(std::abs(p + q - x - y), limit(rules.add(ex, ey)));
    EXPECT_LE(std::abs(p - q - (x - y)), limit(rules.add(ex, rules.negate(ey))));
    EXPECT_LE(std::abs(p * q - x * y), limit(rules.multiply(ex, ey)));
    EXPECT_LE(std::abs(p / q - x / y), limit(rules.divide(ex, ey, "y")));
    EXPECT_LE(std::abs(std::exp(p) - std::exp(x)), limit(rules.exponential(ex, std::exp(1.0), ErrorExpr(), "x")));
    EXPECT_LE(std::abs(std::log(p) - std::log(x)), limit(rules.logarithm(ex, 1, "x")));
    EXPECT_LE(std::abs(std::sqrt(p) - std::sqrt(x)), limit(rules.squareRoot(ex, "x")));
    EXPECT_LE(std::abs(1 / std::sqrt(p) - 1 / std::sqrt(x)), limit(rules.reciprocalRoot(ex, "x")));
    EXPECT_LE(std::abs(std::tanh(p) - std::tanh(x)), limit(rules.bounded(ex, 1, 1, true, rules.tanhRounding)));
    EXPECT_LE(std::abs(std::max(p, q) - std::max(x, y)), limit(rules.extreme(ex, ey)));
    EXPECT_LE(std::abs(std::floor(p) - std::floor(x)), limit(rules.step(ex)));
  }
}

TEST_F(RoundingErrorTest, CommonPivotsCancel) {
  ErrorValue score = make(10, 0, 0.01), top = score;
  mlir::Operation *origin = nullptr;
  top = rules.makeShared(std::move(top), origin, "top");
  ErrorValue e = rules.exponential(rules.add(score, rules.negate(top)), std::exp(1.0), ErrorExpr(), "s");
  EXPECT_TRUE(e.exponential);
  EXPECT_NEAR(value(rules.collapse(e).relative), 0.02, 1e-4);
  e.least = ErrorExpr(1);
  ErrorValue weight = rules.divide(e, e, "sum");
  EXPECT_TRUE(weight.shared.empty());
  EXPECT_NEAR(value(weight.relative), 0.02, 1e-4);
}

TEST_F(RoundingErrorTest, DivisorsThatMayCancelAreUnknown) {
  ErrorValue x = make(1, 0.1, 0), y = make(1, 0, 0.1);
  ErrorValue quotient = rules.divide(x, y, "'y'");
  EXPECT_TRUE((quotient.relative + quotient.absolute).isUnknown());
  y.absolute = pool.tiny();
  quotient = rules.divide(x, y, "'y'");
  EXPECT_FALSE(quotient.relative.isUnknown());
  EXPECT_FALSE(quotient.facts.empty()); // an assumption
}

TEST_F(RoundingErrorTest, ReadsFormats) {
  auto formats = parseFormats("S.lhs:int8, O.rhs:e4m3");
  ASSERT_TRUE(bool(formats));
  EXPECT_EQ(formats->at("S.lhs")->name, "int8");
  EXPECT_EQ(formats->at("O.rhs")->relative, 0x1p-4 + 0x1p-20);
  auto wrong = parseFormats("S.lhs:int7");
  ASSERT_FALSE(bool(wrong));
  EXPECT_NE(llvm::toString(wrong.takeError()).find("names no format"), std::string::npos);
  auto twice = parseFormats("S.lhs:int8,S.lhs:bf16");
  ASSERT_FALSE(bool(twice));
  EXPECT_NE(llvm::toString(twice.takeError()).find("has two formats"), std::string::npos);
}

} // namespace
