//===- LayoutTest.cpp - where the elements of fragments are ---------------===//
#include "dialects/Device/IR/Device.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Diagnostics.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <set>

using namespace mlir;
using namespace moa;
using namespace moa::device;

namespace {

/// Numbers of a warp, of a lane in it, and of a register of its thread.
using Where = std::array<int64_t, 3>;

class LayoutTest : public testing::Test {
protected:
  LayoutTest() { context.loadDialect<DeviceDialect>(); }

  /// Null where the parser or the verifier refuses the text; `message` says
  /// why.
  LayoutAttr parse(const std::string &text) {
    message.clear();
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      message += diagnostic.str() + "\n";
      return success();
    });
    return dyn_cast_or_null<LayoutAttr>(parseAttribute("#device.layout<" + text + ">", &context));
  }

  static std::string print(Attribute attribute) {
    std::string text;
    llvm::raw_string_ostream os(text);
    attribute.print(os);
    return text;
  }

  /// Adds what the digits of `index` contribute to the numbers of the places.
  static void add(Where &where, ArrayRef<LayoutAttr::Digit> digits, int64_t index) {
    for (const LayoutAttr::Digit &digit : digits)
      where[static_cast<int64_t>(digit.place)] += index / digit.weight % digit.size * digit.stride;
  }

  static int64_t count(ArrayRef<LayoutAttr::Digit> digits) {
    int64_t product = 1;
    for (const LayoutAttr::Digit &digit : digits)
      product *= digit.size;
    return product;
  }

  /// Every place where the element is held, one per value of the replicas.
  static std::vector<Where> places(LayoutAttr layout, ArrayRef<int64_t> element) {
    Where first{0, 0, 0};
    for (auto [axis, index] : llvm::enumerate(element))
      add(first, layout.getDigits(axis), index);
    std::vector<Where> all;
    auto replicas = layout.getDigits(layout.getRank());
    for (int64_t k = 0; k < count(replicas); ++k) {
      all.push_back(first);
      add(all.back(), replicas, k);
    }
    return all;
  }

  MLIRContext context;
  std::string message;
};

/// Every element of an accumulator, by the formula of PTX ISA 8.0, 9.7.14.
Where ptxPlace(int64_t row, int64_t column) {
  int64_t warp = row / 16, r1 = row % 16 / 8;
  int64_t r2 = column / 8, r0 = column % 2;
  int64_t lane = 4 * (row % 8) + column % 8 / 2;
  return {warp, lane, 4 * r2 + 2 * r1 + r0};
}

TEST_F(LayoutTest, AccumulatorIsThatOfPTX) {
  for (int64_t columns = 8; columns <= 256; columns += 8) {
    SCOPED_TRACE(columns);
    LayoutAttr layout = LayoutAttr::getAccumulator(&context, columns);
    ASSERT_EQ(layout.getRank(), 2u);
    EXPECT_EQ(layout.getExtent(0), 64);
    EXPECT_EQ(layout.getExtent(1), columns);
    EXPECT_EQ(layout.getNumRegisters(), columns / 2);
    std::set<Where> taken;
    for (int64_t row = 0; row < 64; ++row) {
      for (int64_t column = 0; column < columns; ++column) {
        auto where = places(layout, {row, column});
        ASSERT_EQ(where.size(), 1u);
        auto [warp, lane, reg] = where[0];
        ASSERT_EQ(where[0], ptxPlace(row, column)) << row << " " << column;
        // The same, solved for the element.
        ASSERT_EQ(row, 16 * warp + 8 * (reg / 2 % 2) + lane / 4);
        ASSERT_EQ(column, 8 * (reg / 4) + 2 * (lane % 4) + reg % 2);
        ASSERT_TRUE(warp < 4 && lane < 32 && reg < columns / 2);
        ASSERT_TRUE(taken.insert(where[0]).second);
      }
    }
    EXPECT_EQ(taken.size(), size_t(4 * 32 * columns / 2));
  }
}

TEST_F(LayoutTest, SliceHoldsARowWhereItsElementsAre) {
  for (int64_t columns = 8; columns <= 256; columns += 8) {
    SCOPED_TRACE(columns);
    LayoutAttr whole = LayoutAttr::getAccumulator(&context, columns);
    LayoutAttr rows = whole.getSlice(0);
    ASSERT_EQ(rows.getRank(), 1u);
    EXPECT_EQ(rows.getExtent(0), 64);
    EXPECT_EQ(rows.getNumRegisters(), 2);
    // Rows do not depend on the number of columns.
    EXPECT_EQ(rows, LayoutAttr::getAccumulator(&context, 64).getSlice(0));
    std::set<Where> taken;
    for (int64_t row = 0; row < 64; ++row) {
      std::set<std::pair<int64_t, int64_t>> threads, holders;
      for (auto [warp, lane, reg] : places(rows, {row})) {
        EXPECT_EQ(reg, row / 8 % 2);
        EXPECT_TRUE(taken.insert({warp, lane, reg}).second);
        threads.insert({warp, lane});
      }
      EXPECT_EQ(threads.size(), 4u);
      for (int64_t column = 0; column < columns; ++column)
        for (auto [warp, lane, reg] : places(whole, {row, column}))
          holders.insert({warp, lane});
      EXPECT_EQ(threads, holders) << row;
    }
    EXPECT_EQ(taken.size(), 4u * 32 * 2);
  }
}

TEST_F(LayoutTest, SliceOfColumns) {
  LayoutAttr columns = LayoutAttr::getAccumulator(&context, 64).getSlice(1);
  EXPECT_EQ(columns.getExtent(0), 64);
  EXPECT_EQ(columns.getNumRegisters(), 16);
  std::set<Where> taken;
  for (int64_t column = 0; column < 64; ++column) {
    auto where = places(columns, {column});
    EXPECT_EQ(where.size(), 32u); // 4 warps, 8 rows of lanes
    taken.insert(where.begin(), where.end());
  }
  EXPECT_EQ(taken.size(), 4u * 32 * 16);
  // The slice of a slice is the slice.
  EXPECT_EQ(columns.getSlice(0), columns);
}

/// A valid layout of random digits, shuffled over axes and replicas.
class RandomLayout {
public:
  explicit RandomLayout(unsigned seed) : engine(seed) {}

  std::string draw() {
    struct Digit {
      std::string place;
      int64_t size, stride;
    };
    std::vector<Digit> digits;
    const std::pair<const char *, int64_t> totals[] = {
        {"warp", 4}, {"lane", 32}, {"register", int64_t(1) << engine() % 8}};
    for (auto [place, total] : totals)
      for (int64_t stride = 1; stride < total;) {
        int64_t size = 2;
        while (stride * size < total && engine() % 2)
          size *= 2;
        digits.push_back({place, size, stride});
        stride *= size;
      }
    if (engine() % 3 == 0) { // sizes that are no power of two
      int64_t registers = totals[2].second;
      digits.push_back({"register", 3, registers});
      digits.push_back({"register", 5, 3 * registers});
    }
    if (engine() % 3 == 0)
      digits.push_back({"register", 1, int64_t(engine() % 7)});
    std::shuffle(digits.begin(), digits.end(), engine);
    unsigned rank = 1 + engine() % 4;
    std::vector<std::string> axes(rank + 1);
    for (const Digit &digit : digits) {
      std::string &axis = axes[engine() % axes.size()];
      axis += (axis.empty() ? "" : ", ") + digit.place + ": " + std::to_string(digit.size) + " by " +
              std::to_string(digit.stride);
    }
    std::string text;
    for (unsigned k = 0; k < rank; ++k)
      text += (k ? ", [" : "[") + axes[k] + "]";
    return axes[rank].empty() ? text : text + " replicas [" + axes[rank] + "]";
  }

private:
  std::mt19937 engine;
};

TEST_F(LayoutTest, RandomLayoutsArePrintedAsTheyWereRead) {
  RandomLayout random(7);
  for (int k = 0; k < 2000; ++k) {
    std::string text = random.draw();
    LayoutAttr layout = parse(text);
    ASSERT_TRUE(layout) << text << "\n" << message;
    ASSERT_EQ(print(layout), "#device.layout<" + text + ">");
    ASSERT_EQ(parseAttribute(print(layout), &context), layout);
  }
}

TEST_F(LayoutTest, RandomLayoutsAreBijections) {
  RandomLayout random(11);
  for (int k = 0; k < 60; ++k) {
    std::string text = random.draw();
    SCOPED_TRACE(text);
    LayoutAttr layout = parse(text);
    ASSERT_TRUE(layout);
    std::set<Where> taken;
    SmallVector<int64_t> element(layout.getRank(), 0);
    int64_t elements = 1;
    for (unsigned axis = 0; axis < layout.getRank(); ++axis)
      elements *= layout.getExtent(axis);
    for (int64_t number = 0; number < elements; ++number) {
      int64_t rest = number;
      for (unsigned axis = 0; axis < layout.getRank(); ++axis) {
        element[axis] = rest % layout.getExtent(axis);
        rest /= layout.getExtent(axis);
      }
      for (const Where &where : places(layout, element))
        ASSERT_TRUE(taken.insert(where).second);
    }
    size_t all = 4 * 32 * layout.getNumRegisters();
    EXPECT_EQ(taken.size(), all);
    for (auto [warp, lane, reg] : taken)
      ASSERT_TRUE(warp < 4 && lane < 32 && reg < layout.getNumRegisters());
  }
}

TEST_F(LayoutTest, RandomSlicesHoldAnIndexWhereItsElementsAre) {
  RandomLayout random(13);
  for (int k = 0; k < 300; ++k) {
    std::string text = random.draw();
    SCOPED_TRACE(text);
    LayoutAttr layout = parse(text);
    ASSERT_TRUE(layout);
    for (unsigned axis = 0; axis < layout.getRank(); ++axis) {
      LayoutAttr slice = layout.getSlice(axis);
      // A layout of its own right, of the axis alone.
      ASSERT_EQ(parse(print(slice).substr(strlen("#device.layout<"), print(slice).size() - 16)), slice)
          << print(slice) << message;
      ASSERT_EQ(slice.getRank(), 1u);
      ASSERT_EQ(slice.getExtent(0), layout.getExtent(axis));
      int64_t registers = 1;
      for (const LayoutAttr::Digit &digit : layout.getDigits(axis))
        if (digit.place == Place::register_)
          registers *= digit.size;
      EXPECT_EQ(slice.getNumRegisters(), registers);
      EXPECT_EQ(slice.getSlice(0), slice);
    }
  }
}

TEST_F(LayoutTest, ThreadPartsHoldAnElementWhereItsThreadsAre) {
  RandomLayout random(17);
  for (int k = 0; k < 300; ++k) {
    std::string text = random.draw();
    SCOPED_TRACE(text);
    LayoutAttr layout = parse(text);
    ASSERT_TRUE(layout);
    for (unsigned axis = 0; axis < layout.getRank(); ++axis) {
      LayoutAttr part = layout.getThreadPart(axis);
      ASSERT_EQ(part.getRank(), layout.getRank());
      int64_t threads = 1, registers = 1;
      for (const LayoutAttr::Digit &digit : layout.getDigits(axis))
        (digit.place == Place::register_ ? registers : threads) *= digit.size;
      for (unsigned other = 0; other < layout.getRank(); ++other)
        EXPECT_EQ(part.getExtent(other), other == axis ? threads : layout.getExtent(other));
      EXPECT_EQ(part.getNumRegisters() * registers, layout.getNumRegisters());
      EXPECT_EQ(part.getThreadPart(axis), part);
      // What is left of the other axes stands where it stood.
      if (layout.getRank() == 2) {
        EXPECT_EQ(part.getSlice(1 - axis), layout.getSlice(1 - axis));
      }
    }
  }
  // Of the accumulator: row 16·warp + 8·r + lane/4, and lane mod 4.
  LayoutAttr part = LayoutAttr::getAccumulator(&context, 128).getThreadPart(1);
  for (int64_t row = 0; row < 64; ++row)
    for (int64_t lane = 0; lane < 4; ++lane) {
      std::vector<Where> where = places(part, {row, lane});
      ASSERT_EQ(where.size(), 1u);
      EXPECT_EQ(where[0], (Where{row / 16, row % 8 * 4 + lane, row / 8 % 2}));
    }
}

TEST_F(LayoutTest, Refusals) {
  const std::pair<const char *, const char *> cases[] = {
      {"[warp: 4 by 1, register: 2 by 2], [lane: 32 by 1]",
       "expects the digits of register to count without a gap (C1), but got "
       "stride 2 "
       "where 1 numbers stand below it"},
      {"[warp: 4 by 1], [lane: 8 by 8, lane: 4 by 1]",
       "expects the digits of lane to count without a gap (C1), but got stride "
       "8 where 4"},
      {"[warp: 4 by 1], [lane: 8 by 2, lane: 4 by 1]",
       "expects the digits of lane to count without a gap (C1), but got stride "
       "2 where 4"},
      {"[warp: 2 by 1, warp: 2 by 1], [lane: 32 by 1]",
       "expects the digits of warp to count without a gap (C1), but got stride "
       "1 where 2"},
      {"[warp: 4 by 1], [lane: 32 by 1, register: -2 by 1]",
       "expects the digits of register to count without a gap (C1)"},
      {"[warp: 4 by 1], [lane: 32 by 1, register: 0 by 1]",
       "expects the digits of register to count without a gap (C1)"},
      {"[warp: 4 by 1], [lane: 16 by 1]", "expects 32 values of lane (C2), but got 16"},
      {"[warp: 4 by 1], [lane: 64 by 1]", "expects 32 values of lane (C2), but got 64"},
      {"[warp: 8 by 1], [lane: 32 by 1]", "expects 4 values of warp (C2), but got 8"},
      {"[lane: 32 by 1]", "expects 4 values of warp (C2), but got 1"},
      {"", "expects 4 values of warp (C2), but got 1"},
      {"[core: 4 by 1]", "expects warp, lane or register, but got 'core'"}};
  for (auto [text, expected] : cases) {
    EXPECT_FALSE(parse(text)) << text;
    EXPECT_THAT(message, testing::HasSubstr(expected)) << text;
  }
}

TEST_F(LayoutTest, FragmentsHaveTheExtentsOfTheirLayout) {
  LayoutAttr layout = LayoutAttr::getAccumulator(&context, 64);
  Type f32 = Float32Type::get(&context);
  std::string said;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    said = diagnostic.str();
    return success();
  });
  auto make = [&](ArrayRef<int64_t> shape) {
    return FragmentType::getChecked([&] { return emitError(UnknownLoc::get(&context)); }, &context, shape, f32, layout);
  };
  EXPECT_TRUE(make({64, 64}));
  for (const std::vector<int64_t> &shape : std::vector<std::vector<int64_t>>{{64}, {64, 32}, {64, 64, 1}}) {
    said.clear();
    EXPECT_FALSE(make(shape));
    EXPECT_THAT(said, testing::HasSubstr("the tile's axes and extents (C1)"));
  }
}

} // namespace
