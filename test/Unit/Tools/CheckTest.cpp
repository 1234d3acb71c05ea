//===- CheckTest.cpp - what moa-run --check takes for right ---------------===//
//
// Results of compiled kernels, as they are and with errors put in.
//
//===----------------------------------------------------------------------===//

#include "tools/moa-run/Check.h"
#include "lib/Support/HalfFloat.h"
#include "tools/moa-run/Arguments.h"
#include "gmock/gmock.h"
#include <cmath>
#include <cstdlib>
#include <limits>

using namespace moa;
using testing::HasSubstr;

namespace {

/// A kernel, the random arguments of one call, and the outputs of it.
struct Trial {
  Trial(Compilation made, const Words &words) : unit(std::move(made)) {
    if (!unit.ok())
      return;
    info = unit.kernels()[0];
    auto arguments = makeArguments(unit, info, words, /*seed=*/1);
    if (!arguments) {
      ADD_FAILURE() << llvm::toString(arguments.takeError());
      return;
    }
    call = std::move(*arguments);
    auto kernel = unit.load(info.name);
    std::string message;
    EXPECT_TRUE(kernel) << unit.renderDiagnostics();
    if (kernel) {
      EXPECT_EQ((*kernel)(call.getTensors(), call.scalars, &message), 0) << message;
    }
  }

  /// The errors of the outputs, of sampled rows or, for 0, of all.
  std::vector<OutputError> check(int64_t rows) {
    auto errors = checkOutputs(unit, info, call.getReferences(info), call.symbols, call.outputs, rows, 7);
    EXPECT_TRUE(errors) << unit.renderDiagnostics();
    return errors ? *errors : std::vector<OutputError>(1);
  }

  Compilation unit;
  KernelInfo info;
  Arguments call;
};

Trial tryFamily(const std::string &name, const Words &words, std::vector<std::string> settings = {}) {
  CompilerOptions options;
  options.settings = std::move(settings);
  options.optimization = 1;
  const char *root = std::getenv("MOA_SOURCE_ROOT");
  return Trial(Compiler(options).compileFile(std::string(root) + "/test/Families/" + name), words);
}

Trial tryText(const std::string &text, const Words &words) {
  CompilerOptions options;
  options.optimization = 1;
  options.accuracy.emplace().checksTolerances = false; // relative errors are found here, which no call shows beforehand
  return Trial(Compiler(options).compileText(text), words);
}

/// Every element of an output of bf16 by so many units in its last place, up and down.
void addUlps(HostArray &output, int ulps) {
  for (int64_t k = 0; k < output.getNumElements(); ++k) {
    double value = output.get(k), ulp = std::ldexp(1, std::ilogb(value) - 7);
    output.set(k, value + (k % 2 ? ulps : -ulps) * ulp);
  }
}

const Words kRotary = {{"B", "1"}, {"H", "1"}, {"N", "16"}, {"M", "60"}, {"scale", "0.25"}};

TEST(Check, BoundsTheRoundingOfComputedOperandsAndNoMore) {
  Trial trial = tryFamily("rotary_computed.moa", kRotary, {"D=16"});
  ASSERT_TRUE(trial.unit.ok()) << trial.unit.renderDiagnostics();
  OutputError right = trial.check(16)[0];
  // Rounded queries and keys alone make more than what the types allow.
  EXPECT_GT(right.relative, right.tolerance);
  EXPECT_TRUE(right.ok()) << right.relative << " > " << right.getBound();
  // As many roundings of 2^-9 at most as there are rounded operands: of Q, K and the weights.
  EXPECT_GT(right.operands, 0x1p-10);
  EXPECT_LT(right.operands, 3 * 0x1p-9);
  addUlps(trial.call.outputs[0], 4);
  OutputError error = trial.check(16)[0];
  EXPECT_FALSE(error.ok()) << error.relative << " <= " << error.getBound();
  EXPECT_FALSE(error.illConditioned());
}

TEST(Check, AddsNothingWhereOperandsAreRead) {
  // Two ulps are beyond the bound of the types, and no operand but the weights is rounded.
  Trial trial = tryFamily("scaled.moa", {{"B", "1"}, {"H", "2"}, {"N", "64"}, {"M", "200"}, {"scale", "0.125"}});
  ASSERT_TRUE(trial.unit.ok()) << trial.unit.renderDiagnostics();
  EXPECT_TRUE(trial.check(0)[0].ok());
  addUlps(trial.call.outputs[0], 2);
  OutputError error = trial.check(0)[0];
  EXPECT_FALSE(error.ok());
  EXPECT_LT(error.operands, 0x1p-9);
}

TEST(Check, ARightResultNeedsNoSecondReference) {
  Trial trial = tryText("kernel k[N, M](x : f32[N, M]) -> y : f32[N] { y = +/ x }\n", {{"N", "4"}, {"M", "50"}});
  ASSERT_TRUE(trial.unit.ok());
  OutputError error = trial.check(0)[0];
  EXPECT_TRUE(error.ok());
  EXPECT_EQ(error.operands, 0);
  EXPECT_EQ(error.conditioning, 0);
}

const char *const kTies = "kernel k[N](x : f32[N], y : f32[N]) -> (a : i32[N], b : bool[N]) {\n"
                          "  a = i32(x * y * 1000)\n"
                          "  b = x * y * 3.3 < y * x * 3.3 + 0.0000001 * x\n"
                          "}\n";

TEST(Check, IntegersMayDifferWhereARoundingDecides) {
  Trial trial = tryText(kTies, {{"N", "100000"}});
  ASSERT_TRUE(trial.unit.ok()) << trial.unit.renderDiagnostics();
  for (const OutputError &error : trial.check(0)) {
    EXPECT_TRUE(error.ok()) << error.name;
    EXPECT_GT(error.ties, 0) << error.name;
    EXPECT_EQ(error.relative, 0) << error.name;
  }
}

TEST(Check, IntegersDifferNowhereElse) {
  Trial trial = tryText(kTies, {{"N", "2000"}});
  ASSERT_TRUE(trial.unit.ok());
  HostArray &a = trial.call.outputs[0], &b = trial.call.outputs[1];
  a.set(17, a.get(17) + 1);
  OutputError error = trial.check(0)[0];
  EXPECT_FALSE(error.ok());
  EXPECT_EQ(error.maximum, 1);
  // A whole output off by one is no row of ties.
  for (int64_t k = 0; k < a.getNumElements(); ++k)
    a.set(k, a.get(k) + 1);
  EXPECT_LT(trial.check(0)[0].ties, 10);
  for (int64_t k = 0; k < b.getNumElements(); ++k)
    b.set(k, 1 - b.get(k));
  EXPECT_FALSE(trial.check(0)[1].ok());
}

TEST(Check, FindsElementsOfCatenations) {
  Trial trial = tryText("kernel k[N](x : f32[N, 4]) -> y : i32[2*N, 4] {\n"
                        "  y = cat(i32(x * 1000), i32(x * 500))\n}\n",
                        {{"N", "40"}});
  ASSERT_TRUE(trial.unit.ok()) << trial.unit.renderDiagnostics();
  EXPECT_TRUE(trial.check(16)[0].ok());
  HostArray &y = trial.call.outputs[0];
  for (int64_t k = 0; k < y.getNumElements(); ++k)
    y.set(k, y.get(k) + 1);
  OutputError error = trial.check(16)[0];
  EXPECT_FALSE(error.ok());
  EXPECT_EQ(error.rows, 16);
}

TEST(Check, SaysWhereValuesLeaveTheRangeOfF32) {
  Trial trial = tryText("kernel k[N](x : f32[N]) -> y : f32[N] { y = exp(x * 200) / exp(x * 200) }\n", {{"N", "300"}});
  ASSERT_TRUE(trial.unit.ok());
  for (int64_t rows : {0, 16}) {
    OutputError error = trial.check(rows)[0];
    EXPECT_FALSE(error.ok());
    EXPECT_THAT(error.note, HasSubstr("is NaN, and 1 in the reference; a value on the way there "
                                      "leaves the range of f32, 1.2e-38 to 3.4e+38"));
  }
  // A NaN that no overflow explains.
  Trial plain = tryText("kernel k[N](x : f32[N]) -> y : f32[N] { y = x * 2 }\n", {{"N", "30"}});
  ASSERT_TRUE(plain.unit.ok());
  plain.call.outputs[0].set(4, NAN);
  OutputError error = plain.check(0)[0];
  EXPECT_FALSE(error.ok());
  EXPECT_THAT(error.note, HasSubstr("y[4] is NaN, and "));
  EXPECT_THAT(error.note, testing::Not(HasSubstr("range")));
}

TEST(Check, AResultBeyondItsTypeIsAnInfinity) {
  Trial trial = tryText("kernel k[N](x : f32[N]) -> (y : f16[N], z : f32[N]) {\n"
                        "  y = x * 100000\n  z = x * 2e38\n}\n",
                        {{"N", "200"}});
  ASSERT_TRUE(trial.unit.ok());
  for (const OutputError &error : trial.check(0))
    EXPECT_TRUE(error.ok()) << error.name << ": " << error.note;
  trial.call.outputs[0].set(0, trial.call.outputs[0].get(0) > 0 ? -INFINITY : INFINITY);
  EXPECT_FALSE(trial.check(0)[0].ok());
}

const char *const kHeads = "kernel k[B, N, M](x : f32[B, N, M], w : f32[M, 4]) -> (y : f32[B, N, "
                           "4] within 1e-3 relative,\n"
                           "    z : f32[B, N] within 1e-3) { y = x +.* w\n  z = +/ x }\n";

TEST(Check, MeasuresRelativeTolerancesPerLeadingIndex) {
  Trial trial = tryText(kHeads, {{"B", "5"}, {"N", "20"}, {"M", "30"}});
  ASSERT_TRUE(trial.unit.ok()) << trial.unit.renderDiagnostics();
  OutputError right = trial.check(0)[0];
  ASSERT_TRUE(right.allowed);
  EXPECT_EQ(right.allowed->epsilon, 1e-3);
  EXPECT_TRUE(right.allowed->isRelative);
  EXPECT_FALSE(right.allowed->isSampled);
  EXPECT_TRUE(right.ok());
  EXPECT_LT(right.delivered.error, 1e-6);
  EXPECT_EQ(right.delivered.worst.size(), 1u);
  // One array is off by two permille, which is less than one of the whole result.
  HostArray &y = trial.call.outputs[0];
  for (int64_t k = 3 * 80; k < 4 * 80; ++k)
    y.set(k, y.get(k) * 1.002);
  OutputError wrong = trial.check(0)[0];
  EXPECT_NEAR(wrong.delivered.error, 2e-3, 1e-6);
  EXPECT_EQ(wrong.delivered.worst, std::vector<int64_t>{3});
  EXPECT_FALSE(wrong.keepsTolerance());
  EXPECT_FALSE(wrong.ok());
}

TEST(Check, SamplesRowsOfFewArraysForRelativeTolerances) {
  Trial trial = tryText(kHeads, {{"B", "50"}, {"N", "20"}, {"M", "30"}});
  ASSERT_TRUE(trial.unit.ok());
  // The last array is among them, and its error is not diluted by the others.
  HostArray &y = trial.call.outputs[0];
  for (int64_t k = 49 * 80; k < 50 * 80; ++k)
    y.set(k, y.get(k) * 1.002);
  std::vector<OutputError> errors = trial.check(16);
  EXPECT_EQ(errors[0].rows, 16);
  EXPECT_NEAR(errors[0].delivered.error, 2e-3, 1e-6);
  EXPECT_EQ(errors[0].delivered.worst, std::vector<int64_t>{49});
  EXPECT_EQ(errors[1].rows, 16);
  EXPECT_TRUE(errors[1].ok());
}

TEST(Check, MeasuresOtherTolerancesByMagnitudes) {
  Trial trial = tryText(kHeads, {{"B", "5"}, {"N", "20"}, {"M", "30"}});
  ASSERT_TRUE(trial.unit.ok());
  const HostArray &x = trial.call.arrays[0];
  HostArray &z = trial.call.outputs[1];
  double magnitude = 0;
  for (int64_t m = 0; m < 30; ++m)
    magnitude += std::fabs(x.get((2 * 20 + 7) * 30 + m));
  EXPECT_TRUE(trial.check(0)[1].ok());
  z.set(2 * 20 + 7, z.get(2 * 20 + 7) + 0.01 * magnitude);
  OutputError error = trial.check(0)[1];
  EXPECT_NEAR(error.delivered.error, 0.01, 1e-6);
  EXPECT_EQ(error.delivered.worst, (std::vector<int64_t>{2, 7}));
  EXPECT_FALSE(error.keepsTolerance());
}

TEST(Check, KeepsTheBoundOfTheTypesUnderALargeTolerance) {
  // Nothing is spent, so an error that the types do not explain is one.
  Trial trial = tryText("kernel k[N](x : f32[N]) -> y : f32[N] within 0.5 { y = x * 3 }\n", {{"N", "40"}});
  ASSERT_TRUE(trial.unit.ok());
  EXPECT_TRUE(trial.check(0)[0].ok());
  HostArray &y = trial.call.outputs[0];
  y.set(4, y.get(4) * 1.1);
  OutputError error = trial.check(0)[0];
  EXPECT_TRUE(error.keepsTolerance());
  EXPECT_FALSE(error.ok());
}

TEST(Delivered, NothingByNothingIsNoError) {
  ComparedElements elements{{{0}, {1}}, {0, 1}, {0, 1}};
  EXPECT_EQ(getRelativeError(elements, 0).error, 0);
  EXPECT_EQ(getComponentwiseError(elements, {0, 0}, 0).error, 0);
  elements.found[0] = 1e-30;
  EXPECT_EQ(getComponentwiseError(elements, {0, 1}, 1e-29).error, 0);
  EXPECT_EQ(getRelativeError(elements, 1e-29).error, 0);
  EXPECT_EQ(getRelativeError(elements, 0).error, 1e-30);
  DeliveredError error = getComponentwiseError(elements, {0, 1}, 0);
  EXPECT_TRUE(std::isinf(error.error));
  EXPECT_EQ(error.worst, std::vector<int64_t>{0});
  EXPECT_FALSE(error <= (AllowedError{1e300, false, false}));
}

TEST(Delivered, WhatIsNoNumberIsLeftToTheComparison) {
  ComparedElements elements{{{0}, {1}, {2}}, {NAN, INFINITY, 2}, {1, INFINITY, 1}};
  EXPECT_EQ(getRelativeError(elements, 0).error, 1);
  EXPECT_EQ(getComponentwiseError(elements, {1, 1, 4}, 0).error, 0.25);
}

TEST(Delivered, ScalarsAndVectorsAreOneArray) {
  EXPECT_EQ(getErrorAxes(0), 0u);
  EXPECT_EQ(getErrorAxes(1), 1u);
  EXPECT_EQ(getErrorAxes(4), 2u);
  ComparedElements elements{{{}}, {3}, {2}};
  EXPECT_EQ(getRelativeError(elements, 0).error, 0.5);
  EXPECT_TRUE(getRelativeError(elements, 0).worst.empty());
}

TEST(Delivered, KnowsTheLeastNumberOfEveryType) {
  EXPECT_EQ(getLeastPositive("f32"), std::numeric_limits<float>::denorm_min());
  EXPECT_EQ(getLeastPositive("f64"), std::numeric_limits<double>::denorm_min());
  EXPECT_EQ(getLeastPositive("f16"), fromFloat16(1));
  EXPECT_EQ(getLeastPositive("bf16"), fromBFloat16(1));
}

} // namespace
