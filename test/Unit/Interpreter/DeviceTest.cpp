//===- DeviceTest.cpp - programs against the oracle -----------------------===//
#include "DeviceSupport.h"
#include "lib/Interpreter/DeviceLanes.h"
#include "lib/Interpreter/DeviceLayouts.h"
#include "lib/Interpreter/DeviceShared.h"

using namespace mlir;
using namespace moa;
using namespace moa::test;

namespace {

/// The largest relative error of the two outputs against dnf in float64.
double errorOf(const AttendSizes &sizes, const std::string &type, const std::string &text = kAttend) {
  MLIRContext context;
  Type element = type == "bf16"  ? Type(BFloat16Type::get(&context))
                 : type == "f16" ? Type(Float16Type::get(&context))
                                 : Type(Float32Type::get(&context));
  auto inputs = attendInputs(sizes, element);
  Compilation unit = compileAttend(sizes, type, text);
  auto got = unit.runDevice("attend", inputs);
  auto expected = unit.evaluate("attend", Level::DNF, inputs);
  if (!got || !expected) {
    ADD_FAILURE() << unit.renderDiagnostics();
    return INFINITY;
  }
  double worst = 0;
  for (auto [x, y] : llvm::zip_equal(*got, *expected)) {
    EXPECT_EQ(x.shape, y.shape);
    worst = std::max(worst, relativeError(x.data, y.data));
  }
  return worst;
}

bool hasTiles(const AttendSizes &sizes, const std::string &type) {
  Compilation unit = compileAttend(sizes, type);
  auto text = unit.print(Level::Device);
  return text && text->find("device.contract") != std::string::npos;
}

/// Every width that fills a whole number of instructions, queries in blocks of 128 and
/// of 192, keys in tiles of every size.
TEST(Device, EveryWidth) {
  for (int64_t width = 16; width <= 256; width += 16) {
    AttendSizes sizes;
    sizes.depth = sizes.width = width;
    std::string type = width % 32 ? "f16" : "bf16";
    SCOPED_TRACE(type + " " + std::to_string(width));
    EXPECT_TRUE(hasTiles(sizes, type));
    EXPECT_LE(errorOf(sizes, type), type == "f16" ? 4e-4 : 3e-3);
  }
}

TEST(Device, ValuesOfAnotherWidthThanKeys) {
  for (auto [depth, width] : {std::pair(64, 128), {192, 128}, {40, 24}, {128, 64}}) {
    AttendSizes sizes;
    sizes.depth = depth;
    sizes.width = width;
    SCOPED_TRACE(std::to_string(depth) + " and " + std::to_string(width));
    EXPECT_TRUE(hasTiles(sizes, "bf16"));
    EXPECT_LE(errorOf(sizes, "bf16"), 3e-3);
  }
}

TEST(Device, SizesThatNoTileDivides) {
  AttendSizes sizes;
  sizes.batch = 2;
  sizes.heads = 4;
  sizes.groups = 2;
  for (auto [queries, keys] : {std::pair(1, 1), {1, 300}, {129, 129}, {200, 70}, {65, 257}}) {
    sizes.queries = queries;
    sizes.keys = keys;
    SCOPED_TRACE(std::to_string(queries) + " by " + std::to_string(keys));
    EXPECT_LE(errorOf(sizes, "bf16"), 3e-3);
    EXPECT_LE(errorOf(sizes, "bf16", kTopLeft), 3e-3);
  }
}

TEST(Device, EmptyArrays) {
  for (auto [batch, queries, keys] : {std::tuple(0, 5, 7), {1, 0, 7}, {1, 5, 0}, {1, 0, 0}}) {
    AttendSizes sizes;
    sizes.batch = batch;
    sizes.queries = queries;
    sizes.keys = keys;
    for (const char *type : {"bf16", "f32"})
      EXPECT_EQ(errorOf(sizes, type), 0) << batch << " " << queries << " " << keys;
  }
}

/// Any order of turns gives the same bits.
TEST(Device, OrderOfTurns) {
  AttendSizes sizes;
  sizes.queries = 200;
  sizes.keys = 400;
  MLIRContext context;
  auto inputs = attendInputs(sizes, BFloat16Type::get(&context));
  for (const std::string &text : {kAttend, kTopLeft}) {
    Compilation unit = compileAttend(sizes, "bf16", text);
    auto first = unit.runDevice("attend", inputs);
    ASSERT_TRUE(first) << unit.renderDiagnostics();
    for (uint64_t seed = 1; seed <= 8; ++seed) {
      auto other = unit.runDevice("attend", inputs, {}, seed);
      ASSERT_TRUE(other) << unit.renderDiagnostics();
      for (auto [x, y] : llvm::zip_equal(*first, *other))
        EXPECT_TRUE(llvm::equal(x.data, y.data, sameBits)) << "seed " << seed;
    }
  }
}

/// The same program, given as text of its own level.
TEST(Device, ProgramsAsText) {
  AttendSizes sizes;
  MLIRContext context;
  auto inputs = attendInputs(sizes, BFloat16Type::get(&context));
  Compilation unit = compileAttend(sizes, "bf16");
  auto text = unit.print(Level::Device);
  ASSERT_TRUE(text);
  Compilation again = Compiler().compileText(*text, "attend.mlir");
  ASSERT_TRUE(again.ok()) << again.renderDiagnostics();
  auto first = unit.runDevice("attend", inputs), second = again.runDevice("attend", inputs);
  ASSERT_TRUE(first && second) << again.renderDiagnostics();
  for (auto [x, y] : llvm::zip_equal(*first, *second))
    EXPECT_TRUE(llvm::equal(x.data, y.data, sameBits));
  EXPECT_FALSE(again.evaluate("attend", Level::DNF, inputs));
  EXPECT_TRUE(again.ok());
}

TEST(Device, RefusesArgumentsThatDoNotFit) {
  AttendSizes sizes;
  MLIRContext context;
  auto inputs = attendInputs(sizes, BFloat16Type::get(&context));
  inputs[1].shape[2] = 79;
  Compilation unit = compileAttend(sizes, "bf16");
  EXPECT_FALSE(unit.runDevice("attend", inputs));
  EXPECT_NE(unit.renderDiagnostics().find("axis 2 of 'V' has extent 80, but 'M' is 79"), std::string::npos)
      << unit.renderDiagnostics();
}

TEST(Device, NoOtherInterpreterRunsAProgram) {
  AttendSizes sizes;
  Compilation unit = compileAttend(sizes, "bf16");
  DeviceProgram program(*unit.print(Level::Device));
  auto inputs = toInputs(attendInputs(sizes, BFloat16Type::get(program.get().getContext())));
  auto outputs = interpret(DeviceProgram::programOf(program.get()), inputs);
  ASSERT_FALSE(bool(outputs));
  EXPECT_NE(llvm::toString(outputs.takeError()).find("use runDevice"), std::string::npos);
}

/// The accumulator's layout is what the machine does, and its own inverse place by
/// place; rows are held by four lanes each.
TEST(Device, AccumulatorPlaces) {
  MLIRContext context;
  context.loadDialect<device::DeviceDialect>();
  for (int64_t columns : {8, 64, 128, 256}) {
    auto layout = device::LayoutAttr::getAccumulator(&context, columns);
    interp::LayoutTable table(layout);
    ASSERT_EQ(table.registers, columns / 2);
    EXPECT_FALSE(table.isReplicated);
    for (int64_t thread = 0; thread < 128; ++thread)
      for (int64_t reg = 0; reg < table.registers; ++reg) {
        auto [row, column] = interp::accumulatorPlace(thread, reg);
        int64_t place = thread * table.registers + reg;
        ASSERT_EQ(table.indices[0][place], row);
        ASSERT_EQ(table.indices[1][place], column);
        // Groups of eight registers are an operand of 16 columns.
        auto [i, j] = interp::operandPlace(thread, reg % 8);
        ASSERT_EQ(i, row);
        ASSERT_EQ(reg / 8 * 16 + j, column);
      }
    interp::LayoutTable rows(layout.getSlice(0));
    EXPECT_TRUE(rows.isReplicated);
    EXPECT_EQ(llvm::count(rows.isFirst, 1), 64);
  }
}

/// The swizzle is a bijection of every stage.
TEST(Device, PlacesInRings) {
  MLIRContext context;
  context.loadDialect<device::DeviceDialect>();
  for (int64_t columns : {64, 128, 256}) {
    interp::RingMemory ring(device::RingType::get(&context, 2, {48, columns}, BFloat16Type::get(&context)), "ring");
    std::vector<bool> taken(2 * 48 * columns);
    for (int64_t stage = 0; stage < 2; ++stage)
      for (int64_t row = 0; row < 48; ++row)
        for (int64_t column = 0; column < columns; ++column) {
          int64_t place = ring.placeOf(stage, row, column);
          ASSERT_FALSE(taken.at(place));
          taken[place] = true;
          // Bytes: 16-byte unit u of row r stands at u xor (r mod 8).
          ASSERT_EQ(2 * place % 128 / 16, (column % 64 / 8) ^ (row % 8));
        }
  }
}

//===----------------------------------------------------------------------===//
// Scalars in their own type
//===----------------------------------------------------------------------===//

double binary(interp::Code code, Type type, double x, double y) {
  interp::Instr instr;
  instr.code = code;
  interp::Lanes result;
  EXPECT_EQ(interp::compute(instr, type, {interp::Lanes(interp::ofFloat(x)), interp::Lanes(interp::ofFloat(y))},
                            interp::Mask(1), result),
            nullptr);
  return result[0].f;
}

TEST(Device, FloatsRoundToTheirType) {
  MLIRContext context;
  Type f32 = Float32Type::get(&context), bf16 = BFloat16Type::get(&context), f64 = Float64Type::get(&context);
  using interp::Code;
  EXPECT_EQ(binary(Code::AddF, f32, 16777216, 1), 16777216.0f);
  EXPECT_EQ(binary(Code::AddF, f64, 16777216, 1), 16777217);
  EXPECT_EQ(binary(Code::AddF, bf16, 256, 1), 256); // ties to even
  EXPECT_EQ(binary(Code::AddF, bf16, 256, 3), 260);
  EXPECT_EQ(binary(Code::MulF, f32, 3e38, 10), INFINITY);
  EXPECT_EQ(binary(Code::DivF, f32, 1, 3), 1.0f / 3.0f);
  std::mt19937 engine(7);
  std::normal_distribution<float> normal;
  for (int k = 0; k < 1000; ++k) {
    float x = normal(engine), y = normal(engine);
    volatile float sum = x + y, product = x * y, quotient = x / y;
    ASSERT_EQ(binary(Code::AddF, f32, x, y), sum);
    ASSERT_EQ(binary(Code::MulF, f32, x, y), product);
    ASSERT_EQ(binary(Code::DivF, f32, x, y), quotient);
  }
}

TEST(Device, ApproximateExp2FlushesSubnormals) {
  EXPECT_EQ(interp::approximateExp2(0), 1);
  EXPECT_EQ(interp::approximateExp2(-126), std::ldexp(1.0, -126));
  EXPECT_EQ(interp::approximateExp2(-126.5), 0);
  EXPECT_EQ(interp::approximateExp2(-INFINITY), 0);
  EXPECT_EQ(interp::approximateExp2(128), INFINITY);
  EXPECT_TRUE(std::isnan(interp::approximateExp2(NAN)));
  for (double x = -20; x < 20; x += 0.37)
    EXPECT_NEAR(interp::approximateExp2(x) / std::exp2(x), 1, std::ldexp(1.0, -22));
}

TEST(Device, ApproximateReciprocalFlushesSubnormals) {
  EXPECT_EQ(interp::approximateReciprocal(4), 0.25);
  EXPECT_EQ(interp::approximateReciprocal(3), 1.0f / 3.0f);
  EXPECT_EQ(interp::approximateReciprocal(std::ldexp(1.0, -127)), INFINITY);
  EXPECT_EQ(interp::approximateReciprocal(-std::ldexp(1.0, -127)), -INFINITY);
  EXPECT_EQ(interp::approximateReciprocal(std::ldexp(1.0, 127)), 0);
  EXPECT_TRUE(std::signbit(interp::approximateReciprocal(-INFINITY)));
  EXPECT_TRUE(std::isnan(interp::approximateReciprocal(NAN)));
}

} // namespace
