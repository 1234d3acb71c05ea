//===- FragmentsTest.cpp - the registers of a fragment --------------------===//
#include "lib/Conversion/DeviceToNVVM/Fragments.h"
#include "mlir/IR/BuiltinTypes.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace moa::device;
using moa::nvvm::getPlaces;

namespace {

struct FragmentsTest : testing::Test {
  FragmentsTest() { context.getOrLoadDialect<DeviceDialect>(); }
  MLIRContext context;
};

// By the formula of PTX ISA 8.0, 9.7.14: register e of the accumulator is in row
// 8·(e/2 mod 2) and column 8·(e/4) + e mod 2 behind the thread's first element.
TEST_F(FragmentsTest, AccumulatorIsThatOfPTX) {
  for (int64_t columns = 8; columns <= 256; columns += 8) {
    SCOPED_TRACE(columns);
    LayoutAttr layout = LayoutAttr::getAccumulator(&context, columns);
    auto places = getPlaces(layout);
    ASSERT_EQ(static_cast<int64_t>(places.size()), columns / 2);
    for (int64_t e = 0; e != columns / 2; ++e) {
      EXPECT_EQ(places[e].number, e);
      EXPECT_EQ(places[e].row, e / 2 % 2);
      EXPECT_EQ(places[e].indices[0], 8 * (e / 2 % 2));
      EXPECT_EQ(places[e].indices[1], 8 * (e / 4) + e % 2);
    }
    EXPECT_TRUE(moa::nvvm::hasNeighbours(layout));
  }
}

TEST_F(FragmentsTest, RowsAreNumberedAsInTheirSlice) {
  LayoutAttr layout = LayoutAttr::getAccumulator(&context, 64);
  auto whole = getPlaces(layout), rows = getPlaces(layout.getSlice(0));
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_FALSE(moa::nvvm::hasNeighbours(layout.getSlice(0)));
  for (const auto &place : whole)
    EXPECT_EQ(place.indices[0], rows[place.row].indices[0]);
  auto parts = getPlaces(layout.getThreadPart(1));
  ASSERT_EQ(parts.size(), rows.size());
  for (size_t k = 0; k != parts.size(); ++k)
    EXPECT_EQ(parts[k].indices[0], rows[k].indices[0]);
}

TEST_F(FragmentsTest, SixteenBitsArePacked) {
  LayoutAttr layout = LayoutAttr::getAccumulator(&context, 64);
  auto count = [&](Type element) {
    return moa::nvvm::countRegisters(FragmentType::get(&context, {64, 64}, element, layout));
  };
  EXPECT_EQ(count(Float32Type::get(&context)), 32);
  EXPECT_EQ(count(BFloat16Type::get(&context)), 16);
  EXPECT_EQ(count(Float16Type::get(&context)), 16);
  EXPECT_EQ(count(IntegerType::get(&context, 1)), 32);
  EXPECT_EQ(count(IntegerType::get(&context, 16)), 32);
}

} // namespace
