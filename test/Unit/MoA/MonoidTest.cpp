//===- MonoidTest.cpp - the declared properties on random values ----------===//
#include "dialects/MoA/IR/Monoid.h"
#include "lib/Interpreter/Scalar.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinOps.h"
#include "gtest/gtest.h"
#include <cmath>
#include <random>

using namespace mlir;
using namespace moa;
using namespace moa::interp;

namespace {

constexpr Monoid kMonoids[] = {Monoid::add, Monoid::mul, Monoid::max, Monoid::min, Monoid::and_, Monoid::or_};

class MonoidTest : public testing::TestWithParam<Monoid> {
protected:
  MonoidTest() { context.loadDialect<MoADialect, arith::ArithDialect>(); }

  /// Booleans for the logical monoids, small integers otherwise: on them float
  /// arithmetic is exact, so equations are tested as equations.
  double draw() {
    if (isLogical(GetParam()))
      return engine() % 2;
    return double(int64_t(engine() % 41)) - 20;
  }
  double op(double x, double y) { return applyMonoid(GetParam(), x, y); }

  MLIRContext context;
  std::mt19937 engine{11};
};

TEST_P(MonoidTest, IsACommutativeMonoid) {
  double e = getIdentityValue(GetParam());
  for (int k = 0; k < 500; ++k) {
    double x = draw(), y = draw(), z = draw();
    EXPECT_EQ(op(e, x), x);
    EXPECT_EQ(op(x, e), x);
    EXPECT_EQ(op(x, y), op(y, x));
    EXPECT_EQ(op(op(x, y), z), op(x, op(y, z)));
  }
}

TEST_P(MonoidTest, MultiplicationDistributesWhereDeclared) {
  bool always = true, nonNegative = true;
  for (int k = 0; k < 500; ++k) {
    double a = int64_t(engine() % 41) - 20.0, x = draw(), y = draw();
    bool holds = a * op(x, y) == op(a * x, a * y);
    always &= holds;
    nonNegative &= holds || a < 0;
  }
  // Not declared means not true: there is a counterexample.
  EXPECT_EQ(always, mulDistributesOver(GetParam()));
  EXPECT_EQ(nonNegative, nonNegativeMulDistributesOver(GetParam()));
}

TEST_P(MonoidTest, AdditionDistributesWhereDeclared) {
  bool holds = true;
  for (int k = 0; k < 500; ++k) {
    double a = int64_t(engine() % 41) - 20.0, x = draw(), y = draw();
    holds &= a + op(x, y) == op(a + x, a + y);
  }
  EXPECT_EQ(holds, addDistributesOver(GetParam()));
}

TEST_P(MonoidTest, ANonNegativeFactorKeepsTheIdentity) {
  double e = getIdentityValue(GetParam());
  if (!nonNegativeMulDistributesOver(GetParam()))
    return;
  for (double a : {0.25, 1.0, 3.0})
    EXPECT_EQ(a * e, e);
}

/// The built IR, evaluated, is the function on values.
TEST_P(MonoidTest, BuildsWhatItApplies) {
  OpBuilder b(&context);
  Location loc = b.getUnknownLoc();
  for (Type type : {Type(b.getI1Type()), Type(b.getF32Type()), Type(b.getF64Type()), Type(b.getI32Type()),
                    Type(b.getIndexType())}) {
    if (!isDefinedOn(GetParam(), type))
      continue;
    OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
    Block *body = module->getBody();
    Value x = body->addArgument(type, loc), y = body->addArgument(type, loc);
    b.setInsertionPointToEnd(body);
    Value result = buildMonoid(b, loc, GetParam(), x, y);
    auto instr = instrOf(result.getDefiningOp());
    ASSERT_TRUE(instr.has_value());
    Form form = Form::of(type);
    for (int k = 0; k < 100; ++k) {
      Cell cells[2] = {fromDouble(draw(), form), fromDouble(draw(), form)}, out;
      ASSERT_EQ(perform(*instr, cells, out), nullptr);
      EXPECT_EQ(toDouble(out, form), op(toDouble(cells[0], form), toDouble(cells[1], form)));
      EXPECT_EQ(toDouble(combine(GetParam(), form, cells[0], cells[1]), form), toDouble(out, form));
    }
  }
}

TEST_P(MonoidTest, IdentityOfEveryType) {
  Builder b(&context);
  for (Type type :
       {Type(b.getI1Type()), Type(b.getI8Type()), Type(b.getI32Type()), Type(b.getI64Type()), Type(b.getIndexType())}) {
    if (!isDefinedOn(GetParam(), type))
      continue;
    Form form = Form::of(type);
    Cell e = identityOf(GetParam(), type);
    for (int k = 0; k < 100; ++k) {
      Cell x = ofInt(wrap(int64_t(engine()), form.width));
      EXPECT_EQ(combine(GetParam(), form, e, x).i, x.i);
    }
  }
}

TEST_P(MonoidTest, NaNStaysNaN) {
  if (isLogical(GetParam()))
    return;
  double e = getIdentityValue(GetParam());
  for (double x : {0.0, 1.0, e}) {
    EXPECT_TRUE(std::isnan(op(NAN, x)));
    EXPECT_TRUE(std::isnan(op(x, NAN)));
  }
}

INSTANTIATE_TEST_SUITE_P(All, MonoidTest, testing::ValuesIn(kMonoids),
                         [](const auto &info) { return stringifyMonoid(info.param).str(); });

} // namespace
