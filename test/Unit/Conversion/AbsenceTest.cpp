//===- AbsenceTest.cpp - nothing, infinities and NaN at every level -------===//
//
// Emptiness decides the 0 of a weighted sum and the −∞ of a logarithm of a sum,
// not a zero sum; a row of present −∞ gives NaN; values that no row sees have no
// influence. At every level, with and without the rules.
//
//===----------------------------------------------------------------------===//
#include "KernelBuilder.h"
#include "llvm/ADT/StringExtras.h"
#include "gtest/gtest.h"
#include <cmath>
#include <functional>

using namespace moa;
using namespace moa::test;
using Fn = ScalarFn;
using K = KernelBuilder;

namespace {

const std::vector<std::vector<std::string>> kRuleSets = {{},     {"R0"}, {"R1"}, {"R2"},
                                                         {"R3"}, {"R5"}, {"R6"}, {"R0", "R1", "R2", "R3", "R5", "R6"}};

/// Checks the outputs at each level, under each set of disabled rules.
void atEveryLevel(std::vector<std::string> symbols, std::function<void(K &)> build, const KernelInputs &inputs,
                  std::function<void(const std::vector<Array> &)> check) {
  for (const std::vector<std::string> &disabled : kRuleSets) {
    SCOPED_TRACE("rules disabled: " + llvm::join(disabled, " "));
    K builder(symbols);
    build(builder);
    Levels levels(builder.finish(), disabled);
    ASSERT_TRUE(levels.valid());
    for (mlir::Operation *kernel :
         std::initializer_list<mlir::Operation *>{levels.getMoA(), levels.getDNF(), levels.getONF()}) {
      SCOPED_TRACE(kernel->getName().getStringRef().str());
      check(run(kernel, inputs));
      if (testing::Test::HasFatalFailure())
        return;
    }
  }
}

/// x : [N, M], present p : [N, M], v : [M, 2]; outputs Σ w v, log Σ e^x and w,
/// where w = e^(x − max x) / Σ e^(x − max x) over the present x.
void weighted(K &b) {
  Value x = b.input("x", {"N", "M"}), p = b.input("p", {"N", "M"}, "i1");
  Value v = b.input("v", {"M", "2"});
  Value s = b.mask(p, x, {0, 1});
  Value m = b.reduce(Monoid::max, s);
  Value e = b.map(Fn::exp, {b.map(Fn::sub, {s, m})});
  Value l = b.reduce(Monoid::add, e);
  Value w = b.map(Fn::div, {e, l});
  b.output(b.inner(w, v));
  b.output(b.map(Fn::add, {m, b.map(Fn::log, {l})}));
  b.output(w);
}

KernelInputs weightedInputs(int64_t n, int64_t m, std::vector<double> x, std::vector<double> p, std::vector<double> v) {
  KernelInputs inputs;
  inputs.symbols = {{"N", n}, {"M", m}};
  inputs.arrays = {{{n, m}, x}, {{n, m}, p}, {{m, 2}, v}};
  return inputs;
}

TEST(Absence, ARowThatSeesNothingIsZeroAndMinusInfinity) {
  auto inputs = weightedInputs(3, 2, {1, 2, 3, 4, 5, 6}, {0, 0, 1, 0, 0, 0}, {1, 2, 3, 4});
  atEveryLevel({"N", "M"}, weighted, inputs, [](const std::vector<Array> &out) {
    EXPECT_EQ(out[0].data, (std::vector<double>{0, 0, 1, 2, 0, 0}));
    EXPECT_EQ(out[1].data, (std::vector<double>{-kInf, 3, -kInf}));
    EXPECT_EQ(out[2].data, (std::vector<double>{0, 0, 1, 0, 0, 0}));
  });
}

TEST(Absence, ARangeOfNothingIsZeroAndMinusInfinity) {
  auto inputs = weightedInputs(2, 0, {}, {}, {});
  atEveryLevel({"N", "M"}, weighted, inputs, [](const std::vector<Array> &out) {
    EXPECT_EQ(out[0].data, (std::vector<double>{0, 0, 0, 0}));
    EXPECT_EQ(out[1].data, (std::vector<double>{-kInf, -kInf}));
  });
}

TEST(Absence, ARowOfPresentMinusInfinityIsNaN) {
  auto inputs = weightedInputs(2, 2, {-kInf, -kInf, -kInf, 7}, {1, 1, 1, 1}, {1, 2, 3, 4});
  atEveryLevel({"N", "M"}, weighted, inputs, [](const std::vector<Array> &out) {
    for (unsigned k : {0, 1})
      EXPECT_TRUE(std::isnan(out[0].data[k]));
    EXPECT_TRUE(std::isnan(out[1].data[0]));
    // One present number is enough for the others to weigh nothing.
    EXPECT_EQ(out[0].data[2], 3);
    EXPECT_EQ(out[0].data[3], 4);
    EXPECT_EQ(out[1].data[1], 7);
    EXPECT_EQ(out[2].data[2], 0);
    EXPECT_EQ(out[2].data[3], 1);
  });
}

TEST(Absence, OneMinusInfinityAloneIsNaNAndNotNothing) {
  auto inputs = weightedInputs(1, 2, {-kInf, 5}, {1, 0}, {1, 2, 3, 4});
  atEveryLevel({"N", "M"}, weighted, inputs, [](const std::vector<Array> &out) {
    EXPECT_TRUE(std::isnan(out[0].data[0]));
    EXPECT_TRUE(std::isnan(out[1].data[0]));
    EXPECT_EQ(out[2].data[1], 0);
  });
}

TEST(Absence, ScoresAndValuesThatNoRowSeesHaveNoInfluence) {
  for (double poison : {kNaN, kInf, -kInf}) {
    auto inputs =
        weightedInputs(2, 3, {1, poison, 2, 3, poison, poison}, {1, 0, 1, 1, 0, 0}, {1, 2, poison, poison, 3, 4});
    atEveryLevel({"N", "M"}, weighted, inputs, [](const std::vector<Array> &out) {
      double low = std::exp(-1.0) / (1 + std::exp(-1.0)), high = 1 - low;
      EXPECT_NEAR(out[0].data[0], low * 1 + high * 3, 1e-14);
      EXPECT_NEAR(out[0].data[1], low * 2 + high * 4, 1e-14);
      EXPECT_EQ(out[0].data[2], 1);
      EXPECT_EQ(out[0].data[3], 2);
      EXPECT_NEAR(out[1].data[0], 2 + std::log(1 + std::exp(-1.0)), 1e-14);
      EXPECT_EQ(out[1].data[1], 3);
    });
  }
}

TEST(Absence, ValuesThatAreSeenDoReachTheOutput) {
  auto inputs = weightedInputs(1, 2, {1, 2}, {1, 1}, {kNaN, 2, 3, kInf});
  atEveryLevel({"N", "M"}, weighted, inputs, [](const std::vector<Array> &out) {
    EXPECT_TRUE(std::isnan(out[0].data[0]));
    EXPECT_EQ(out[0].data[1], kInf);
  });
}

TEST(Absence, APresentNaNReachesTheOutput) {
  auto inputs = weightedInputs(2, 2, {1, kNaN, 1, 1}, {1, 1, 1, 1}, {1, 2, 3, 4});
  atEveryLevel({"N", "M"}, weighted, inputs, [](const std::vector<Array> &out) {
    EXPECT_TRUE(std::isnan(out[0].data[0]));
    EXPECT_TRUE(std::isnan(out[1].data[0]));
    EXPECT_EQ(out[0].data[2], 2);
    EXPECT_EQ(out[0].data[3], 3);
  });
}

TEST(Absence, LargeScoresDoNotOverflow) {
  auto inputs = weightedInputs(2, 3, {-1e300, 1e300, 1e300, -1e4, -1e4, -2e4}, {1, 1, 1, 1, 1, 1}, {1, 2, 3, 4, 5, 6});
  atEveryLevel({"N", "M"}, weighted, inputs, [](const std::vector<Array> &out) {
    EXPECT_EQ(out[0].data, (std::vector<double>{4, 5, 2, 3}));
    EXPECT_EQ(out[1].data[0], 1e300);
  });
}

TEST(Absence, ReductionsOfNothingAreIdentities) {
  auto build = [](K &b) {
    Value x = b.input("x", {"M"}), p = b.input("p", {"M"}, "i1");
    Value s = b.mask(p, x, {0});
    for (Monoid monoid : {Monoid::add, Monoid::mul, Monoid::max, Monoid::min})
      b.output(b.reduce(monoid, s));
    for (Monoid monoid : {Monoid::and_, Monoid::or_})
      b.output(b.reduce(monoid, b.mask(p, p, {0})));
  };
  KernelInputs inputs;
  inputs.symbols = {{"M", 2}};
  inputs.arrays = {{{2}, {3, 4}}, {{2}, {0, 0}}};
  atEveryLevel({"M"}, build, inputs, [](const std::vector<Array> &out) {
    std::vector<double> values;
    for (const Array &array : out)
      values.push_back(array.data[0]);
    EXPECT_EQ(values, (std::vector<double>{0, 1, -kInf, kInf, 1, 0}));
  });
}

/// m·√Σ(x/m)² with m = max |x| over the present x.
void scaledNorm(K &b) {
  Value x = b.input("x", {"N", "M"}), p = b.input("p", {"N", "M"}, "i1");
  Value s = b.mask(p, x, {0, 1});
  Value m = b.reduce(Monoid::max, b.map(Fn::abs, {s}));
  Value q = b.map(Fn::div, {s, m});
  b.output(b.map(Fn::mul, {m, b.map(Fn::sqrt, {b.reduce(Monoid::add, b.map(Fn::mul, {q, q}))})}));
}

TEST(Absence, TheScaledNormHasTheSameSingularRowsAtEveryLevel) {
  KernelInputs inputs;
  inputs.symbols = {{"N", 4}, {"M", 3}};
  inputs.arrays = {{{4, 3}, {0, 3e200, 4e200, 0, 0, 0, kNaN, 3, 4, kNaN, kInf, 1}},
                   {{4, 3}, {1, 1, 1, 1, 1, 1, 0, 1, 1, 0, 0, 0}}};
  atEveryLevel({"N", "M"}, scaledNorm, inputs, [](const std::vector<Array> &out) {
    EXPECT_NEAR(out[0].data[0] / 5e200, 1, 1e-14);
    // 0/0 in the specification, as it is written.
    EXPECT_TRUE(std::isnan(out[0].data[1]));
    EXPECT_NEAR(out[0].data[2], 5, 1e-14);
    // Over nothing m is −∞, the sum 0 and their product NaN.
    EXPECT_TRUE(std::isnan(out[0].data[3]));
  });
}

TEST(Absence, GatheredIndicesThatNoRowSeesAreNotRead) {
  // The index of an absent element lies outside the array.
  auto build = [](K &b) {
    Value x = b.input("x", {"N"}), t = b.input("t", {"M"}, "index");
    Value p = b.input("p", {"M"}, "i1");
    Value g = b.psi(x, {b.mask(p, t, {0})}, {0}, {{0}}, {"M"});
    b.output(b.reduce(Monoid::add, g));
  };
  KernelInputs inputs;
  inputs.symbols = {{"N", 2}, {"M", 3}};
  inputs.arrays = {{{2}, {5, 7}}, {{3}, {1, 99, 0}}, {{3}, {1, 0, 1}}};
  atEveryLevel({"N", "M"}, build, inputs, [](const std::vector<Array> &out) { EXPECT_EQ(out[0].data[0], 12); });
}

} // namespace
