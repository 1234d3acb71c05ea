//===- LayoutMapsTest.cpp - what follows from the digits of layouts -------===//
#include "dialects/Device/IR/LayoutMaps.h"
#include "mlir/AsmParser/AsmParser.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <map>
#include <random>
#include <set>

using namespace mlir;
using namespace moa;
using namespace moa::device;

namespace {

class LayoutMapsTest : public testing::Test {
protected:
  LayoutMapsTest() { context.loadDialect<DeviceDialect>(); }

  LayoutAttr parse(const std::string &text) {
    return cast<LayoutAttr>(parseAttribute("#device.layout<" + text + ">", &context));
  }
  FragmentType fragment(const std::string &layout, Type element) {
    LayoutAttr attr = parse(layout);
    return FragmentType::get(&context, {attr.getExtent(0), attr.getExtent(1)}, element, attr);
  }

  /// 16 by 32 elements, every warp with all of them or its own rows, with the digits of
  /// lanes and registers in a random order.
  LayoutAttr random(std::mt19937 &engine, bool replicated, bool pairs) {
    // Factors of 2 of each axis from the outermost in: of rows 4, of columns 5; lanes
    // take 5 of them, with one on the rows that warps split 3.
    std::vector<std::pair<unsigned, int64_t>> lanes, registers; // axis, weight
    std::vector<std::pair<unsigned, int64_t>> free;
    for (int64_t weight = 1; weight < (replicated ? 16 : 4); weight *= 2)
      free.emplace_back(0, weight);
    for (int64_t weight = pairs ? 2 : 1; weight < 32; weight *= 2)
      free.emplace_back(1, weight);
    std::shuffle(free.begin(), free.end(), engine);
    lanes.assign(free.begin(), free.begin() + 5);
    registers.assign(free.begin() + 5, free.end());
    if (pairs)
      registers.insert(registers.begin(), {1, 1});
    std::map<std::pair<unsigned, int64_t>, std::string> words;
    for (size_t k = 0; k < lanes.size(); ++k)
      words[lanes[k]] = "lane: 2 by " + std::to_string(1 << k);
    for (size_t k = 0; k < registers.size(); ++k)
      words[registers[k]] = "register: 2 by " + std::to_string(1 << k);
    std::string axes[2];
    for (unsigned axis = 0; axis < 2; ++axis)
      for (int64_t weight = 16; weight; weight /= 2)
        if (auto found = words.find({axis, weight}); found != words.end())
          axes[axis] += (axes[axis].empty() ? "" : ", ") + found->second;
    std::string warps = "warp: 4 by 1";
    if (!replicated)
      axes[0] = warps + ", " + axes[0];
    return parse("[" + axes[0] + "], [" + axes[1] + "]" + (replicated ? " replicas [" + warps + "]" : ""));
  }

  MLIRContext context;
};

TEST_F(LayoutMapsTest, PlacesAndElementsAreInverse) {
  LayoutAttr layout = parse("[warp: 2 by 2, register: 3 by 2, lane: 8 by 4], [register: 2 by 6, "
                            "lane: 4 by 1, register: 2 by 1] replicas [warp: 2 by 1]");
  LayoutMap map(layout);
  std::set<std::vector<int64_t>> elements;
  for (int64_t warp = 0; warp < 4; ++warp)
    for (int64_t lane = 0; lane < 32; ++lane)
      for (int64_t reg = 0; reg < 12; ++reg) {
        Where where{warp, lane, reg};
        Indices indices = map.getIndices(where);
        ASSERT_EQ(indices[0], warp / 2 * 24 + reg / 2 % 3 * 8 + lane / 4);
        ASSERT_EQ(indices[1], reg / 6 * 8 + lane % 4 * 2 + reg % 2);
        ASSERT_TRUE(map.getWhere(indices, where) == where);
        elements.insert({indices[0], indices[1]});
      }
  EXPECT_EQ(elements.size(), 48u * 16);
}

/// The figures of PTX ISA 8.6, 9.7.14.5.8 (m16n8k16 of 16 bits), written out for the
/// elements a0 … a7, b0 … b3, c0 … c3 of some lanes, in a warp with two tiles of each.
TEST_F(LayoutMapsTest, TilesOfTheFigures) {
  Type half = Float16Type::get(&context), f32 = Float32Type::get(&context);
  FragmentType a = fragment("[register: 2 by 8, register: 2 by 2, lane: 8 by 4], [register: 2 by "
                            "4, lane: 4 by 1, register: 2 by 1] replicas [warp: 4 by 1]",
                            half),
               b = fragment("[register: 2 by 2, lane: 4 by 1, register: 2 by 1], [register: 3 by "
                            "4, lane: 8 by 4] replicas [warp: 4 by 1]",
                            half),
               c = fragment("[register: 2 by 12, register: 2 by 2, lane: 8 by 4], [register: 3 by "
                            "4, lane: 4 by 1, register: 2 by 1] replicas [warp: 4 by 1]",
                            f32);
  std::string why;
  auto plan = getTileContraction(a, b, c, why);
  ASSERT_TRUE(plan) << why;
  EXPECT_EQ(plan->instruction->k, 16);
  EXPECT_THAT(plan->a.rowStarts, testing::ElementsAre(0, 16));
  EXPECT_THAT(plan->c.columnStarts, testing::ElementsAre(0, 8, 16));
  struct Element {
    int64_t lane, number, row, column;
  };
  auto check = [&](FragmentType type, const TileRegisters &tiles, std::vector<Element> list) {
    LayoutMap map(type.getLayout());
    for (size_t r = 0; r != tiles.rowStarts.size(); ++r)
      for (size_t s = 0; s != tiles.columnStarts.size(); ++s)
        for (const Element &e : list) {
          int64_t reg = tiles.registers[r][s][e.number];
          Indices at = map.getIndices({0, e.lane, reg});
          EXPECT_EQ(at[0], tiles.rowStarts[r] + e.row) << e.lane << " " << e.number;
          EXPECT_EQ(at[1], tiles.columnStarts[s] + e.column) << e.lane << " " << e.number;
        }
  };
  check(a, plan->a,
        {{0, 0, 0, 0},
         {0, 1, 0, 1},
         {0, 2, 8, 0},
         {0, 4, 0, 8},
         {0, 7, 8, 9},
         {1, 0, 0, 2},
         {4, 0, 1, 0},
         {31, 0, 7, 6},
         {31, 7, 15, 15}});
  check(b, plan->b,
        {{0, 0, 0, 0}, {0, 1, 1, 0}, {0, 2, 8, 0}, {0, 3, 9, 0}, {3, 1, 7, 0}, {4, 0, 0, 1}, {31, 3, 15, 7}});
  check(c, plan->c, {{0, 0, 0, 0}, {0, 1, 0, 1}, {0, 2, 8, 0}, {0, 3, 8, 1}, {5, 0, 1, 2}, {31, 3, 15, 7}});
}

/// Half of the depth: only m16n8k8 fits. A tile that is cut in another way fits none.
TEST_F(LayoutMapsTest, TheLargestInstructionThatFits) {
  Type half = BFloat16Type::get(&context), f32 = Float32Type::get(&context), f64 = Float64Type::get(&context);
  std::string all = " replicas [warp: 4 by 1]", why;
  FragmentType c = fragment("[register: 2 by 2, lane: 8 by 4], [lane: 4 by 1, register: 2 by 1]" + all, f32);
  for (int64_t steps : {1, 2, 3, 4}) {
    std::string count = std::to_string(steps);
    FragmentType a = fragment("[register: 2 by 2, lane: 8 by 4], [register: " + count +
                                  " by 4, lane: 4 by 1, register: 2 by 1]" + all,
                              half),
                 b = fragment("[register: " + count +
                                  " by 2, lane: 4 by 1, register: 2 by 1], "
                                  "[lane: 8 by 4]" +
                                  all,
                              half);
    auto plan = getTileContraction(a, b, c, why);
    ASSERT_TRUE(plan) << why;
    EXPECT_EQ(plan->instruction->k, steps % 2 ? 8 : 16);
    EXPECT_EQ(plan->b.rowStarts.size(), size_t(steps % 2 ? steps : steps / 2));
  }
  FragmentType x = fragment("[warp: 4 by 1, lane: 8 by 4], [register: 5 by 1, lane: 4 by 1]", f64),
               y = fragment("[register: 5 by 1, lane: 4 by 1], [lane: 8 by 4]" + all, f64),
               z = fragment("[warp: 4 by 1, lane: 8 by 4], [lane: 4 by 1, register: 2 by 1]", f64);
  auto plan = getTileContraction(x, y, z, why);
  ASSERT_TRUE(plan) << why;
  EXPECT_EQ(plan->a.columnStarts.size(), 5u);
}

/// Every register of every lane is read once, from the place that its element has.
TEST_F(LayoutMapsTest, MatricesHoldTheElements) {
  struct Case {
    const char *layout;
    int64_t count;
  };
  for (auto [text, count] : {Case{"[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, "
                                  "register: 2 by 1]",
                                  4},
                             {"[register: 6 by 2, lane: 4 by 1, register: 2 by 1], [register: 3 by 12, lane: 8 by 4] "
                              "replicas [warp: 4 by 1]",
                              2},
                             {"[register: 3 by 2, lane: 4 by 1, register: 2 by 1], [warp: 4 by 1, lane: 8 by 4]", 1},
                             {"[lane: 8 by 4], [warp: 4 by 1, register: 12 by 2, lane: 4 by 1, register: 2 by 1]", 4}})
    for (bool transposed : {false, true}) {
      SCOPED_TRACE(std::string(text) + (transposed ? " transposed" : ""));
      LayoutAttr layout = parse(text);
      LayoutMap map(layout);
      auto plan = getMatrixLoads(layout, transposed);
      ASSERT_TRUE(plan);
      EXPECT_EQ(plan->count, count);
      std::set<int64_t> read;
      for (const MatrixLoads::Load &load : plan->loads) {
        ASSERT_EQ(static_cast<int64_t>(load.pairs.size()), plan->count);
        for (int64_t matrix = 0; matrix < plan->count; ++matrix) {
          EXPECT_TRUE(read.insert(load.pairs[matrix]).second);
          int64_t row = load.row, column = load.column;
          for (unsigned bit = 0; bit < 2; ++bit) {
            row += (matrix >> bit & 1) * plan->steps[bit][0];
            column += (matrix >> bit & 1) * plan->steps[bit][1];
          }
          for (int64_t lane = 0; lane < 32; ++lane)
            for (int64_t e = 0; e < 2; ++e) {
              // What ldmatrix gives a lane, without and with .trans.
              int64_t r = plan->isTransposed ? lane % 4 * 2 + e : lane / 4,
                      c = plan->isTransposed ? lane / 4 : lane % 4 * 2 + e;
              Indices at = map.getIndices({0, lane, 2 * load.pairs[matrix] + e});
              ASSERT_EQ(at[transposed], row + r);
              ASSERT_EQ(at[!transposed], column + c);
            }
        }
      }
      EXPECT_EQ(static_cast<int64_t>(read.size()), layout.getNumRegisters() / 2);
    }
  EXPECT_FALSE(getMatrixLoads(parse("[warp: 4 by 1, lane: 16 by 2], [lane: 2 by 1, register: 2 by 1]"), false));
}

/// Between random layouts: the registers a plan lists are those that threads need, and
/// pairs move as one exactly where they stay together.
TEST_F(LayoutMapsTest, ConversionsOfRandomLayouts) {
  std::mt19937 engine(11);
  unsigned pairsKept = 0, still = 0;
  for (int round = 0; round < 60; ++round) {
    bool replicated = round % 3 == 0, packed = round % 2;
    LayoutAttr from = random(engine, replicated, packed), to = random(engine, replicated, packed);
    if (round == 7)
      from = to;
    std::string why;
    auto plan = getConversion(from, to, packed, why);
    ASSERT_TRUE(plan) << why;
    LayoutMap source(from), target(to);
    ASSERT_EQ(static_cast<int64_t>(plan->sources.size()) * plan->width, to.getNumRegisters());
    pairsKept += plan->width == 2;
    still += !plan->movesLanes;
    std::vector<std::set<int64_t>> needed(plan->sources.size());
    bool moves = false;
    for (int64_t warp = 0; warp < 4; ++warp)
      for (int64_t lane = 0; lane < 32; ++lane)
        for (int64_t reg = 0; reg < to.getNumRegisters(); ++reg) {
          Where where{warp, lane, reg};
          Where held = source.getWhere(target.getIndices(where), where);
          ASSERT_EQ(source.getIndices(held), target.getIndices(where));
          ASSERT_EQ(held.warp, warp);
          moves |= held.lane != lane;
          needed[reg / plan->width].insert(held.reg / plan->width);
          if (plan->width == 2) {
            ASSERT_EQ(held.reg % 2, reg % 2);
          }
        }
    EXPECT_EQ(moves, plan->movesLanes);
    for (auto [list, expected] : llvm::zip_equal(plan->sources, needed))
      EXPECT_THAT(list, testing::ElementsAreArray(expected));
  }
  EXPECT_GT(pairsKept, 10u);
  EXPECT_GE(still, 1u);
}

TEST_F(LayoutMapsTest, WhatLeavesAWarpIsNamed) {
  std::string why;
  LayoutAttr own = parse("[warp: 4 by 1, lane: 8 by 4], [lane: 4 by 1]"),
             all = parse("[register: 4 by 1, lane: 8 by 4], [lane: 4 by 1] replicas [warp: 4 by 1]");
  EXPECT_FALSE(getConversion(own, all, false, why));
  EXPECT_EQ(why, "element [8, 0] of warp 0 stands in warp 1");
  // The other way every warp has what it needs, in a register that depends on the warp.
  auto plan = getConversion(all, own, false, why);
  ASSERT_TRUE(plan);
  EXPECT_FALSE(plan->movesLanes);
  EXPECT_THAT(plan->sources[0], testing::ElementsAre(0, 1, 2, 3));
}

} // namespace
