//===- ScalarTest.cpp - rounding and scalar operations --------------------===//
#include "lib/Interpreter/Scalar.h"
#include "TestSupport.h"
#include "dialects/ONF/IR/ONF.h"

using namespace mlir;
using namespace moa;
using namespace moa::interp;
using namespace moa::test;

namespace {

TEST(RoundTo, Formats) {
  MLIRContext context;
  Builder b(&context);
  EXPECT_EQ(roundTo(1.0 + 0x1p-8, b.getBF16Type()), 1.0) << "ties to even";
  EXPECT_EQ(roundTo(1.0 + 3 * 0x1p-8, b.getBF16Type()), 1.0 + 0x1p-6);
  EXPECT_EQ(roundTo(1.0 + 0x1p-9 + 0x1p-40, b.getBF16Type()), 1.0);
  EXPECT_EQ(roundTo(1.0 + 0x1p-8 + 0x1p-40, b.getBF16Type()), 1.0 + 0x1p-7);
  EXPECT_EQ(roundTo(65519.0, b.getF16Type()), 65504.0);
  EXPECT_EQ(roundTo(65520.0, b.getF16Type()), kInf);
  EXPECT_EQ(roundTo(-1e6, b.getF16Type()), -kInf);
  EXPECT_EQ(roundTo(0x1p-24, b.getF16Type()), 0x1p-24) << "subnormal";
  EXPECT_EQ(roundTo(0x1p-25, b.getF16Type()), 0.0) << "tie to zero";
  EXPECT_EQ(roundTo(3e-46, b.getF32Type()), 0.0);
  EXPECT_TRUE(std::isnan(roundTo(kNaN, b.getBF16Type())));
  EXPECT_EQ(roundTo(0.1, b.getF64Type()), 0.1);
  EXPECT_EQ(roundTo(0.1, b.getIndexType()), 0.1);
}

TEST(RoundAtRandom, TakesNeighboursAsOftenAsTheyAreNear) {
  MLIRContext context;
  auto bf16 = cast<FloatType>(Builder(&context).getBF16Type());
  std::mt19937_64 engine(3);
  for (double value : {1.0, 1 + 0x1p-9, -(1 + 3 * 0x1p-9), 3e38, 0x1p-133 * 1.25}) {
    double quantum = std::max(std::ldexp(1, std::ilogb(value) - 7), 0x1p-133), sum = 0;
    constexpr int samples = 20000;
    for (int k = 0; k < samples; ++k) {
      double rounded = roundAtRandom(value, bf16, engine());
      EXPECT_EQ(rounded, roundTo(rounded, bf16));
      EXPECT_LT(std::fabs(rounded - value), quantum);
      sum += (rounded - value) / quantum;
    }
    EXPECT_NEAR(sum / samples, 0, 0.02) << value;
  }
}

TEST(RoundTo, AgreesWithTheHardwareOnFloats) {
  MLIRContext context;
  Type f32 = Builder(&context).getF32Type();
  std::mt19937_64 engine(7);
  for (int k = 0; k < 20000; ++k) {
    uint64_t bits = engine();
    double value;
    std::memcpy(&value, &bits, sizeof value);
    if (k % 2)
      value = std::ldexp(1 + (bits >> 12) * 0x1p-52, int(bits % 340) - 190);
    if (std::isnan(value))
      continue;
    EXPECT_EQ(roundTo(value, f32), double(static_cast<float>(value)));
  }
}

Cell calc(Code code, std::vector<Cell> v, unsigned width = 64, unsigned result = 64) {
  Instr instr;
  instr.code = code;
  instr.width = width;
  instr.resultWidth = result;
  Cell out = ofInt(0);
  const char *why = perform(instr, v.data(), out);
  EXPECT_EQ(why, nullptr);
  return out;
}
int64_t calc(Code code, int64_t a, int64_t b, unsigned width = 64) { return calc(code, {ofInt(a), ofInt(b)}, width).i; }

TEST(Scalar, IntegerDivisions) {
  EXPECT_EQ(calc(Code::FloorDivSI, -7, 2), -4);
  EXPECT_EQ(calc(Code::FloorDivSI, 7, -2), -4);
  EXPECT_EQ(calc(Code::CeilDivSI, -7, 2), -3);
  EXPECT_EQ(calc(Code::CeilDivSI, 7, 2), 4);
  EXPECT_EQ(calc(Code::DivSI, -7, 2), -3);
  EXPECT_EQ(calc(Code::RemSI, -7, 2), -1);
  EXPECT_EQ(calc(Code::ModI, -7, 2), 1);
  EXPECT_EQ(calc(Code::ModI, 7, -2), -1);
  EXPECT_EQ(calc(Code::DivUI, -1, 2, 8), 127);
  EXPECT_EQ(calc(Code::RemUI, -1, 16, 8), 15);
  int64_t lowest = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(calc(Code::FloorDivSI, lowest, -1), lowest);
  EXPECT_EQ(calc(Code::ModI, lowest, -1), 0);
  Instr division;
  division.code = Code::DivSI;
  division.width = 64;
  Cell operands[] = {ofInt(1), ofInt(0)}, out;
  EXPECT_STREQ(perform(division, operands, out), "division by zero");
}

TEST(Scalar, IntegersWrapAtTheirWidth) {
  EXPECT_EQ(calc(Code::AddI, 127, 1, 8), -128);
  EXPECT_EQ(calc(Code::MulI, int64_t(1) << 30, 4, 32), 0);
  EXPECT_EQ(calc(Code::SubI, 0, 1, 1), 1);
  EXPECT_EQ(calc(Code::ShlI, 1, 31, 32), std::numeric_limits<int32_t>::min());
  EXPECT_EQ(calc(Code::ShrSI, -8, 1, 32), -4);
  EXPECT_EQ(calc(Code::ShrUI, -8, 1, 32), 0x7ffffffc);
  EXPECT_EQ(calc(Code::MaxUI, -1, 1, 32), -1);
  EXPECT_EQ(calc(Code::NotI, {ofInt(1)}, 1).i, 0);
}

TEST(Scalar, Conversions) {
  EXPECT_EQ(calc(Code::FToSI, {ofFloat(-2.9)}, 0, 32).i, -2);
  EXPECT_EQ(calc(Code::FToSI, {ofFloat(1e30)}, 0, 32).i, std::numeric_limits<int32_t>::max());
  EXPECT_EQ(calc(Code::FToSI, {ofFloat(-kInf)}, 0, 64).i, std::numeric_limits<int64_t>::min());
  EXPECT_EQ(calc(Code::FToSI, {ofFloat(kNaN)}, 0, 64).i, 0);
  EXPECT_EQ(calc(Code::SIToF, {ofInt(1)}, 1, 0).f, -1.0);
  EXPECT_EQ(calc(Code::UIToF, {ofInt(1)}, 1, 0).f, 1.0);
  EXPECT_EQ(calc(Code::SignedToI, {ofInt(300)}, 64, 8).i, 44);
  EXPECT_EQ(calc(Code::UnsignedToI, {ofInt(-1)}, 8, 64).i, 255);
  EXPECT_EQ(calc(Code::FToBool, {ofFloat(kNaN)}, 0, 1).i, 1);
}

TEST(Scalar, FloatsKeepNaN) {
  EXPECT_TRUE(std::isnan(calc(Code::MaximumF, {ofFloat(1), ofFloat(kNaN)}).f));
  EXPECT_EQ(calc(Code::MaxNumF, {ofFloat(1), ofFloat(kNaN)}).f, 1);
  EXPECT_EQ(calc(Code::ModF, {ofFloat(-1), ofFloat(3)}).f, 2);
  EXPECT_EQ(calc(Code::RemF, {ofFloat(-1), ofFloat(3)}).f, -1);
}

TEST(Scalar, PowersOfTwoByLines) {
  auto power = onf::PiecewiseExp2Op::evaluate;
  for (int e = -14; e < 16; ++e) { // exact at powers of two, and on the line between them
    EXPECT_EQ(power(e), std::ldexp(1.0, e));
    EXPECT_EQ(power(e + 0.75), std::ldexp(1.75, e));
  }
  EXPECT_EQ(power(5.75), 56.0);
  EXPECT_EQ(power(8.75), 448.0);
  EXPECT_EQ(power(1 + 0x1p-8), 2.0) << "a multiple of 2^-6";
  EXPECT_EQ(power(1 + 0x1p-7), 2.0) << "ties to even";
  EXPECT_EQ(power(1 + 3 * 0x1p-7), 2.0 + 0x1p-4);
  EXPECT_EQ(power(-14.5), 0x1p-15) << "a line down to 0";
  EXPECT_EQ(power(-15.0), 0.0);
  EXPECT_EQ(power(-kInf), 0.0);
  EXPECT_TRUE(std::isnan(power(kNaN)));
  // As much above 2^y as law B7 says, in the mean and at most.
  double sum = 0, most = 0, least = 2;
  int count = 64 * 20;
  for (int k = 0; k < count; ++k) {
    double y = -10 + k / 64.0, ratio = power(y) / std::exp2(y);
    sum += ratio, most = std::max(most, ratio), least = std::min(least, ratio);
  }
  EXPECT_NEAR(sum / count, 1 / (2 * std::log(2.0) * std::log(2.0)), 1e-4);
  EXPECT_NEAR(most, 2 / (std::exp(1.0) * std::log(2.0)), 1e-4);
  EXPECT_EQ(least, 1.0);
}

TEST(Accumulator, SumsAreCompensated) {
  MLIRContext context;
  Accumulator sum(Monoid::add, Builder(&context).getF32Type());
  for (double x : {1e100, 1.0, -1e100})
    sum.add(ofFloat(x));
  EXPECT_EQ(sum.get().f, 1.0);
  sum.add(ofFloat(kInf));
  EXPECT_EQ(sum.get().f, kInf);
  sum.add(ofFloat(-kInf));
  EXPECT_TRUE(std::isnan(sum.get().f));
}

} // namespace
