//===- GpuScheduleTest.cpp - GPUs, shapes of tiles, their cost ------------===//
#include "lib/Schedule/GpuSchedule.h"
#include "dialects/Device/IR/Device.h"
#include "lib/Schedule/Lifting.h"
#include "gtest/gtest.h"
#include <random>

using namespace mlir;
using namespace moa;

namespace {

template <typename T> std::string errorOf(llvm::Expected<T> value) {
  return value ? "" : llvm::toString(value.takeError());
}
std::string errorOf(llvm::Error error) { return llvm::toString(std::move(error)); }

GpuMachine h200() { return llvm::cantFail(loadGpuMachine("h200")); }

//===----------------------------------------------------------------------===//
// Machines
//===----------------------------------------------------------------------===//

TEST(GpuMachines, RoundTripAndNames) {
  ASSERT_FALSE(knownGpuMachines().empty());
  for (const GpuMachine &machine : knownGpuMachines()) {
    std::string text = printGpuMachine(machine);
    EXPECT_EQ(printGpuMachine(llvm::cantFail(parseGpuMachine(text))), text);
    EXPECT_EQ(llvm::cantFail(loadGpuMachine(machine.architecture)).architecture, machine.architecture);
    for (const auto &[key, source] : machine.sources)
      EXPECT_GT(source.size(), 10u) << key;
  }
  EXPECT_EQ(h200().architecture, "sm_90a");
}

TEST(GpuMachines, LaunchRegisters) {
  // A block's threads share the registers of a multiprocessor in eights.
  GpuMachine machine = h200();
  EXPECT_EQ(machine.getLaunchRegisters(256), 256);
  EXPECT_EQ(machine.getLaunchRegisters(384), 168);
  EXPECT_EQ(machine.getLaunchRegisters(512), 128);
  EXPECT_EQ(machine.getLaunchRegisters(640), 96);
}

TEST(GpuMachines, BadDescriptions) {
  std::string good = printGpuMachine(h200());
  auto with = [&](StringRef from, StringRef to) {
    std::string text = good;
    size_t at = text.find(from.str());
    EXPECT_NE(at, std::string::npos) << from.str();
    return errorOf(parseGpuMachine(text.replace(at, from.size(), to.str())));
  };
  auto expect = [&](StringRef from, StringRef to, StringRef message) {
    std::string error = with(from, to);
    EXPECT_NE(error.find(message.str()), std::string::npos) << "got '" << error << "'";
  };
  expect("\"special\": {", "\"specials\": {", "unknown quantity 'specials'");
  expect("\"value\": 132", "\"value\": 0", "positive integer as the value of 'multiprocessors'");
  expect("\"value\": 132", "\"value\": \"132\"", "positive integer");
  expect("\"unit\": \"MHz\"", "\"unit\": \"GHz\"", "expects 'clock' in MHz, but got GHz");
  expect("\"unit\": \"SM\"", "\"units\": \"SM\"", "unknown key 'units' in 'multiprocessors'");
  expect("\"name\": \"h200\"", "\"name\": \"\"", "strings 'name' and 'architecture'");
  expect("\"value\": 1980", "\"value\": 1000", "no sustained clock above the clock");
  expect("\"value\": 1024", "\"value\": 4096", "no more threads per block than per SM");
  expect("\"value\": 232448", "\"value\": 999999", "no more shared memory per block");
  expect("\"value\": 24,", "\"value\": 512,", "least_registers up to most_registers");
  expect("\"value\": 64, \"unit\": \"rows/warpgroup\"", "\"value\": 32, \"unit\": \"rows/warpgroup\"",
         "64 rows per warpgroup");
  size_t at = good.find("\"source\": \"") + 11;
  std::string text = good;
  text.erase(at, text.find('"', at) - at);
  EXPECT_NE(errorOf(parseGpuMachine(text)).find("expects a source for 'multiprocessors'"), std::string::npos);
  EXPECT_NE(errorOf(parseGpuMachine("{")), "");
  EXPECT_NE(errorOf(parseGpuMachine("[]")).find("object"), std::string::npos);
  EXPECT_NE(errorOf(loadGpuMachine("/none.json")).find("known are h200 (sm_90a)"), std::string::npos);
}

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

/// One score, one accumulator: Σ_j exp(s_ij − max) v_jd, with five operations per pair.
GpuNest weightedSum(int64_t depth, int64_t width, bool guarded = false) {
  GpuNest nest;
  nest.axes = {"b", "h", "n"};
  nest.folds = {"m"};
  nest.extents = {std::nullopt, std::nullopt, std::nullopt};
  TileFold fold;
  fold.hasPieces = guarded;
  fold.depths = {depth};
  fold.widths = {width};
  fold.rescaledColumns = paddedColumns(width);
  fold.states = 2;
  fold.canGroup = true;
  fold.mostRescaleBound = 64;
  fold.rescaleBound = 8;
  fold.counts.f32 = 4;
  fold.counts.special = 1;
  fold.guarded = guarded;
  fold.guardCounts.integer = guarded ? 4 : 0; // one comparison, as causal has
  nest.fold = fold;
  return nest;
}

TileShape shapeOf(int64_t warpgroups, int64_t keys, int64_t stages = 2) {
  TileShape shape;
  shape.warpgroups = warpgroups;
  shape.keys = keys;
  shape.stages = stages;
  assignRegisters(shape, TileFold(), h200());
  return shape;
}

TEST(TileShapes, Needs) {
  TileNeeds needs = tileNeeds(*weightedSum(128, 128).fold, shapeOf(2, 128));
  EXPECT_EQ(needs.rowBytes, 128 * 128 * 2);
  EXPECT_EQ(needs.stageBytes, 128 * (128 + 128) * 2);
  EXPECT_EQ(needs.bytes(), 32768 + 2 * 65536 + 3 * 1024);
  EXPECT_EQ(needs.sums, 64);
  EXPECT_EQ(needs.scores, 64);
  EXPECT_EQ(needs.weights, 32);
  // Columns come in units of 64; both scores of two are held.
  GpuNest nest = weightedSum(72, 40);
  nest.fold->depths.push_back(8);
  needs = tileNeeds(*nest.fold, shapeOf(1, 64, 3));
  EXPECT_EQ(needs.rowBytes, 64 * (128 + 64) * 2);
  EXPECT_EQ(needs.stageBytes, 64 * (128 + 64 + 64) * 2);
  EXPECT_EQ(needs.stages, 3);
  EXPECT_EQ(needs.sums, 32);
  EXPECT_EQ(needs.scores, 2 * 32);
}

TEST(TileShapes, SumsOfProducts) {
  // Three products of two operands on each side: what they add up of a tile is apart.
  GpuNest nest = weightedSum(128, 128);
  TileShape shape = shapeOf(2, 64);
  TileNeeds one = tileNeeds(*nest.fold, shape);
  TileCost single = tileCost(nest, shape, h200());
  for (TileColumns *columns : {&nest.fold->depths[0], &nest.fold->widths[0]}) {
    columns->products = 3;
    columns->rowOperands = columns->keyOperands = 2;
  }
  nest.fold->weights = 2;
  TileNeeds needs = tileNeeds(*nest.fold, shape);
  EXPECT_EQ(needs.rowBytes, 2 * one.rowBytes);
  EXPECT_EQ(needs.stageBytes, 2 * one.stageBytes);
  EXPECT_EQ(needs.otherBytes, 2 * one.otherBytes);
  EXPECT_EQ(needs.sums, one.sums);
  EXPECT_EQ(needs.apart, one.sums);
  EXPECT_EQ(needs.scores, one.scores);
  EXPECT_EQ(needs.weights, 2 * one.weights);
  EXPECT_EQ(needs.registers(), one.registers() + needs.apart + one.weights);
  EXPECT_EQ(errorOf(checkTileShape(*nest.fold, shape, h200(), "it")), "");
  TileCost cost = tileCost(nest, shape, h200());
  EXPECT_DOUBLE_EQ(cost.tensor, 3 * single.tensor);
  EXPECT_GT(cost.issue, single.issue);
  EXPECT_DOUBLE_EQ(cost.copy, 2 * single.copy);
}

TEST(TileShapes, WithoutOverlapScoresAndProductsShareRegisters) {
  GpuNest nest = weightedSum(128, 128);
  nest.fold->depths[0] = nest.fold->widths[0] = TileColumns(128, 1);
  TileShape shape = shapeOf(3, 128);
  TileNeeds beside = tileNeeds(*nest.fold, shape);
  EXPECT_EQ(beside.registers(), 64 + 64 + 64 + 16 + beside.others);
  EXPECT_NE(errorOf(checkTileShape(*nest.fold, shape, h200(), "it")), "");
  shape.overlap = false;
  TileNeeds after = tileNeeds(*nest.fold, shape);
  EXPECT_LE(after.registers(), 160);
  EXPECT_GE(after.registers(), 64 + 64 + 16);
  EXPECT_EQ(errorOf(checkTileShape(*nest.fold, shape, h200(), "it")), "");
  // All but one of several weights stand beside the scores.
  nest.fold->weights = 2;
  EXPECT_EQ(tileNeeds(*nest.fold, shape).others, after.others + after.weights);
}

// Products of 8 bits run in three warpgroups without overlap, of 16 bits in two with it.
TEST(TileShapes, ThreeWarpgroupsForBytes) {
  GpuNest nest = weightedSum(128, 128);
  TileShape chosen = rankTileShapes(nest, h200()).front().first;
  EXPECT_TRUE(chosen.overlap);
  EXPECT_EQ(chosen.warpgroups, 2);
  EXPECT_FALSE(chosen.takesTurns);
  nest.fold->depths[0] = nest.fold->widths[0] = TileColumns(128, 1);
  chosen = rankTileShapes(nest, h200()).front().first;
  EXPECT_FALSE(chosen.overlap);
  EXPECT_EQ(chosen.warpgroups, 3);
  EXPECT_TRUE(chosen.takesTurns);
}

// Of few rows the blocks do not fill the device, so that what counts is the time of one.
TEST(TileShapes, SmallBlocksForFewRows) {
  GpuNest nest = weightedSum(128, 128);
  nest.extents = {std::nullopt, 128};
  nest.fold->extent = 1024;
  EXPECT_EQ(rankTileShapes(nest, h200()).front().first.warpgroups, 1);
  // Of many they do, and several warpgroups of a block fill each other's gaps.
  for (auto &extents : {std::vector<std::optional<int64_t>>{std::nullopt, 32768}, {4096, 128}}) {
    nest.extents = extents;
    EXPECT_GT(rankTileShapes(nest, h200()).front().first.warpgroups, 1);
  }
}

// A last round is shared where blocks are alike, the call has a workspace, and each has a
// multiprocessor for itself.
TEST(TileShapes, SharesOfALastRound) {
  GpuNest nest = weightedSum(128, 128);
  auto shares = [&] { return rankTileShapes(nest, h200()).front().first.shares; };
  EXPECT_EQ(shares(), 0);
  nest.fold->canShare = true;
  EXPECT_EQ(shares(), 0);
  nest.fold->hasWorkspace = true;
  EXPECT_EQ(shares(), 132);
  nest.fold->extent = 2048; // 16 tiles of 128
  EXPECT_EQ(shares(), 132);
  nest.fold->extent = 255; // of any size fewer
  EXPECT_EQ(shares(), 0);
  nest.fold->extent.reset();
  nest.fold->visited = 128; // short blocks, several of which share a multiprocessor
  EXPECT_EQ(shares(), 0);
  nest.fold->visited.reset();
  nest.fold->canShare = false;
  EXPECT_EQ(shares(), 0);
}

TEST(TileShapes, RegistersOfARole) {
  auto registers = [](int64_t warpgroups) {
    TileShape shape = shapeOf(warpgroups, 64);
    return std::make_pair(shape.consumerRegisters, shape.producerRegisters);
  };
  using Pair = std::pair<int64_t, int64_t>;
  EXPECT_EQ(registers(1), Pair(256, 40));
  EXPECT_EQ(registers(2), Pair(240, 24));
  EXPECT_EQ(registers(3), Pair(160, 32));
  EXPECT_EQ(registers(4), Pair(112, 32));
}

TEST(TileShapes, RowsAreThoseOfAccumulators) {
  MLIRContext context;
  context.loadDialect<device::DeviceDialect, onf::ONFDialect>();
  NestSchedule schedule = makeTileSchedule(weightedSum(64, 64), shapeOf(3, 128));
  std::vector<std::pair<std::string, int64_t>> factors, digits;
  for (auto [resource, size] : ArrayRef(schedule.axes.back().factors).drop_front(2))
    factors.emplace_back(onf::stringifyResource(resource).str(), size);
  // From the outermost digit in.
  auto layout = device::LayoutAttr::getAccumulator(&context, 128);
  for (const auto &digit : layout.getDigits(0))
    digits.emplace_back(device::stringifyPlace(digit.place).str(), digit.size);
  EXPECT_EQ(factors, digits);
  // Guarded digits and rows correspond one to one, for every extent.
  for (const std::vector<int64_t> &sizes :
       {std::vector<int64_t>{0, 1, 4, 2, 8}, {0, 3, 4, 2, 8}, {0, 128}, {0, 2, 128}}) {
    SmallVector<int64_t> resources(sizes.size(), 0);
    EXPECT_EQ(errorOf(verifyBijection(onf::AxisAttr::get(&context, resources, sizes))), "");
  }
}

TEST(TileShapes, WhatTheMachineCannotDo) {
  GpuMachine machine = h200();
  TileFold fold = *weightedSum(128, 128).fold;
  auto expect = [&](const TileShape &shape, StringRef message) {
    std::string error = errorOf(checkTileShape(fold, shape, machine, "nest 0"));
    EXPECT_NE(error.find(message.str()), std::string::npos) << "got '" << error << "'";
  };
  EXPECT_EQ(errorOf(checkTileShape(fold, shapeOf(2, 128), machine, "nest 0")), "");
  expect(shapeOf(5, 16), "5 consumer warpgroups, 320 rows, but one copy of 'h200' has at most 256");
  expect(shapeOf(2, 128, 1), "asks for 1 stage, but to overlap it takes at least 2");
  expect(shapeOf(2, 24), "tiles of 24 indices");
  expect(shapeOf(2, 512), "tiles of 512 indices");
  expect(shapeOf(2, 128, 4), "needs 297984 bytes of shared memory (32768 of rows, 4 x 65536 of "
                             "stages, 3072 of barriers, lists and alignment), but a block of 'h200' "
                             "has 232448");
  expect(shapeOf(3, 128), "needs about 188 registers in each thread of a consumer (64 of sums, 64 "
                          "of scores, 32 of weights, 28 of states and addresses), but it has 160");
  TileShape shape = shapeOf(2, 128);
  shape.consumerRegisters = 236;
  expect(shape, "asks for 236 registers per thread, but 'h200' has multiples of 8 from 24 to 256");
  shape.consumerRegisters = 256;
  expect(shape, "asks for 536 registers over its warpgroups (2 x 256 and 24), but a block of 384 "
                "threads has 504");
  shape.consumerRegisters = 160;
  expect(shape, "starts with 168, which consumers can only raise and the producer only lower");
  shape = shapeOf(2, 128);
  shape.producerRegisters = 176;
  expect(shape, "asks for 240 registers of a consumer and 176 of the producer");
  TileFold scores = fold;
  scores.widths.clear();
  scores.depths.front().columns = 64;
  EXPECT_NE(errorOf(checkTileShape(scores, shapeOf(3, 256), machine, "nest 0"))
                .find("nest 0 has contractions of 256 columns, which take about 160 registers in "
                      "each thread, but a block of 512 "
                      "threads starts with 128"),
            std::string::npos);
  EXPECT_EQ(errorOf(checkTileShape(scores, shapeOf(3, 128), machine, "nest 0")), "");
  shape = shapeOf(2, 128);
  shape.groupBytes = 4096;
  fold.canGroup = false;
  expect(shape, "groups of 4096 bytes, but it has one axis, with nothing to group");
  fold.canGroup = true;
  EXPECT_EQ(errorOf(checkTileShape(fold, shape, machine, "nest 0")), "");
  shape = shapeOf(2, 128);
  shape.rescaleBound = fold.mostRescaleBound + 1;
  expect(shape, "factor of 2^65, but this fold allows exponents up to 64");
  shape = shapeOf(2, 128);
  shape.shares = 132;
  expect(shape, "asks for shares, but its blocks visit different indices, its fold is a product of "
                "arrays or follows one, or a state is neither f32 nor bool");
  fold.page = 8;
  expect(shapeOf(2, 128), "tiles of 128 keys in 16 pages, but a producer copies at most 8 pages per tile");
}

/// A consumer of a product waits for a tile before it frees the stage of the previous one: with one
/// stage it never ends.
TEST(TileShapes, ProductsHoldTwoStages) {
  GpuMachine machine = h200();
  GpuNest nest = weightedSum(64, 64);
  TileFold &fold = *nest.fold;
  fold.isProduct = true;
  fold.guarded = false;
  fold.depths.clear();
  fold.states = fold.rescaledColumns = 0;
  TileShape shape = shapeOf(1, 64, 1);
  shape.overlap = false;
  for (auto [extent, needed] : {std::pair<int64_t, int64_t>{64, 1}, {128, 2}, {1024, 2}}) {
    fold.extent = fold.visited = extent;
    shape.stages = needed;
    EXPECT_EQ(errorOf(checkTileShape(fold, shape, machine, "nest 0")), "");
    shape.stages = needed - 1;
    std::string error = errorOf(checkTileShape(fold, shape, machine, "nest 0"));
    const char *why = needed == 2 ? "asks for 1 stage, but a product waits for each tile before it "
                                    "frees the stage of the "
                                    "previous one: ask for at least 2"
                                  : "asks for 0 stages, but it takes at least 1";
    EXPECT_NE(error.find(why), std::string::npos) << "got '" << error << "'";
    auto ranking = rankTileShapes(nest, machine);
    EXPECT_FALSE(ranking.empty());
    for (const auto &[proposed, cost] : ranking)
      EXPECT_GE(proposed.stages, extent <= proposed.keys ? 1 : 2);
  }
}

//===----------------------------------------------------------------------===//
// The cost model
//===----------------------------------------------------------------------===//

TileShape best(const GpuNest &nest) { return rankTileShapes(nest, h200()).front().first; }

void expectShape(const GpuNest &nest, int64_t warpgroups, int64_t keys) {
  TileShape shape = best(nest);
  EXPECT_EQ(shape.warpgroups, warpgroups);
  EXPECT_EQ(shape.keys, keys);
  EXPECT_EQ(shape.stages, 2);
  EXPECT_EQ(shape.descending, nest.fold->hasPieces);
  EXPECT_TRUE(shape.overlap);
  EXPECT_EQ(shape.rescaleBound, nest.fold->rescaleBound);
  // Of an L2 of 50 MB, what leaves room for rows.
  EXPECT_EQ(shape.groupBytes, nest.fold->hasPieces ? 36 << 20 : 0);
}

TEST(TileCosts, ShapesThatWereMeasuredBest) {
  // benchmarks/gpu: two consumers at 128 columns, three at 64.
  expectShape(weightedSum(128, 128), 2, 128);
  expectShape(weightedSum(128, 128, true), 2, 128);
  expectShape(weightedSum(64, 64), 3, 128);
  expectShape(weightedSum(64, 64, true), 3, 128);
  expectShape(weightedSum(256, 256), 2, 64);
  // A window's two bounds, and ALiBi's distances, leave room for 64 indices: 1.09 and
  // 1.07 times the speed of 128, which spill.
  GpuNest window = weightedSum(64, 64, true), distances = window;
  window.fold->guardCounts.integer = 9;
  expectShape(window, 3, 64);
  distances.fold->counts.integer = 8;
  GpuMachine machine = h200();
  auto refused = [&](int64_t keys) {
    return errorOf(checkTileShape(*distances.fold, shapeOf(3, keys), machine, "nest 0"));
  };
  EXPECT_NE(refused(128).find("registers in each thread of a consumer"), std::string::npos);
  EXPECT_EQ(refused(64), "");
}

TEST(TileCosts, TheMeasuredLadder) {
  // At 64 columns, two consumers ran at 0.76 to 0.80 of the speed of three; at 128
  // columns, code without overlap at 0.85 of that with it. The formula ranks; it is
  // allowed a tenth.
  GpuMachine machine = h200();
  auto cost = [&](const GpuNest &nest, const TileShape &shape) { return tileCost(nest, shape, machine).perPair; };
  GpuNest narrow = weightedSum(64, 64), wide = weightedSum(128, 128);
  double ratio = cost(narrow, shapeOf(3, 128)) / cost(narrow, shapeOf(2, 128));
  EXPECT_GT(ratio, 0.70);
  EXPECT_LT(ratio, 0.88);
  TileShape serial = shapeOf(2, 128);
  serial.overlap = false;
  ratio = cost(wide, shapeOf(2, 128)) / cost(wide, serial);
  EXPECT_GT(ratio, 0.77);
  EXPECT_LT(ratio, 0.94);
}

TEST(TileCosts, PartsFollowTheCounts) {
  GpuMachine machine = h200();
  GpuNest nest = weightedSum(128, 128);
  TileShape shape = shapeOf(2, 128);
  TileCost cost = tileCost(nest, shape, machine);
  // Two products of 2·128·128·128 at 4096 flop per cycle; an exponential per pair.
  EXPECT_DOUBLE_EQ(cost.tensor, 2.0 * (2.0 * 128 * 128 * 128) / 4096 + 4 * 20);
  EXPECT_DOUBLE_EQ(cost.special, 128.0 * 128 / 16);
  EXPECT_DOUBLE_EQ(cost.copy, 128.0 * 256 * 2 * 132 / 5120);
  EXPECT_GE(cost.period, cost.tensor);
  EXPECT_GE(cost.period, cost.copy);
  auto more = [&](auto change) {
    GpuNest changed = weightedSum(128, 128);
    change(*changed.fold);
    return tileCost(changed, shape, machine).perPair;
  };
  EXPECT_GT(more([](TileFold &f) { f.counts.special *= 4; }), cost.perPair);
  EXPECT_GT(more([](TileFold &f) { f.counts.f32 *= 4; }), cost.perPair);
  EXPECT_GT(more([](TileFold &f) { f.counts.loads = 1; }), cost.perPair);
  EXPECT_GT(more([](TileFold &f) { f.depths.push_back(128); }), cost.perPair);
  EXPECT_GT(more([](TileFold &f) { f.guarded = true; }), cost.perPair);
  // More stages hide more of a copy.
  TileShape serial = shapeOf(2, 128, 1);
  serial.overlap = false;
  EXPECT_GT(tileCost(nest, serial, machine).exposed, 0);
  EXPECT_EQ(tileCost(nest, shapeOf(2, 128, 2), machine).exposed, 0);
}

TEST(TileCosts, ConstantExtents) {
  // 64 rows do not fill more than one warpgroup, 32 keys not more than a small tile.
  GpuNest few = weightedSum(64, 64);
  few.extents.back() = 64;
  EXPECT_EQ(best(few).warpgroups, 1);
  GpuNest narrow = weightedSum(64, 64);
  narrow.fold->extent = 32;
  EXPECT_LE(best(narrow).keys, 32);
}

TEST(TileCosts, EveryFoldGetsWhatFits) {
  // Several scores, several accumulators, any depths: what is ranked can be run, in
  // order of cost, and the same comes out twice.
  std::mt19937 random(5);
  GpuMachine machine = h200();
  unsigned withShapes = 0;
  for (unsigned round = 0; round < 200; ++round) {
    GpuNest nest = weightedSum(8 + 8 * (random() % 32), 8 + 8 * (random() % 32), random() % 2);
    for (unsigned k = random() % 3; k > 0; --k)
      nest.fold->depths.push_back(8 + 8 * (random() % 32));
    for (unsigned k = random() % 3; k > 0; --k) {
      nest.fold->widths.push_back(8 + 8 * (random() % 16));
      ++nest.fold->weights;
    }
    nest.fold->states = random() % 5;
    auto shapes = rankTileShapes(nest, machine), again = rankTileShapes(nest, machine);
    withShapes += !shapes.empty();
    ASSERT_EQ(shapes.size(), again.size());
    for (auto [k, entry] : llvm::enumerate(shapes)) {
      EXPECT_EQ(errorOf(checkTileShape(*nest.fold, entry.first, machine, "")), "");
      EXPECT_TRUE(std::isfinite(entry.second.perPair) && entry.second.perPair > 0);
      EXPECT_TRUE(k == 0 || shapes[k - 1].second.perPair <= entry.second.perPair);
      EXPECT_EQ(entry.first.keys, again[k].first.keys);
    }
  }
  EXPECT_GT(withShapes, 100u);
}

TEST(TileCosts, Threads) {
  GpuNest nest;
  nest.axes = {"n"};
  nest.extents = {std::nullopt};
  EXPECT_EQ(chooseThreads(nest, h200()), 128);
  nest.extents = {64};
  EXPECT_EQ(chooseThreads(nest, h200()), 64);
  nest.extents = {3};
  EXPECT_LE(chooseThreads(nest, h200()), 64);
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

TEST(GpuSchedules, RoundTripAndShapes) {
  GpuNest rows;
  rows.axes = {"n"};
  rows.extents = {std::nullopt};
  rows.folds = {"m"};
  rows.why = "no contraction";
  std::vector<GpuNest> nests = {weightedSum(64, 64, true), rows};
  Schedule schedule = chooseGpuSchedule("f", nests, h200());
  EXPECT_EQ(errorOf(checkGpuSchedule("f", nests, schedule, h200())), "");
  std::string text = printSchedule(schedule);
  Schedule again = llvm::cantFail(parseSchedule(text));
  EXPECT_EQ(printSchedule(again), text);
  auto shape = tileShapeOf(again.nests[0]);
  ASSERT_TRUE(shape.has_value());
  TileShape expected = best(nests[0]);
  EXPECT_EQ(shape->warpgroups, expected.warpgroups);
  EXPECT_EQ(shape->keys, expected.keys);
  EXPECT_EQ(shape->stages, expected.stages);
  EXPECT_EQ(shape->consumerRegisters, expected.consumerRegisters);
  EXPECT_EQ(shape->producerRegisters, expected.producerRegisters);
  EXPECT_EQ(shape->descending, true);
  EXPECT_EQ(shape->groupBytes, 36 << 20);
  EXPECT_EQ(shape->rescaleBound, 8);
  EXPECT_FALSE(tileShapeOf(again.nests[1]).has_value());
  EXPECT_EQ(threadsOf(again.nests[1]), 128);
}

TEST(GpuSchedules, BadSchedules) {
  GpuNest rows;
  rows.axes = {"r"};
  rows.extents = {std::nullopt};
  rows.folds = {"k"};
  rows.why = "no contraction";
  std::vector<GpuNest> nests = {weightedSum(128, 128), rows};
  std::string good = printSchedule(chooseGpuSchedule("f", nests, h200()));
  auto with = [&](StringRef from, StringRef to) -> std::string {
    std::string text = good;
    size_t at = text.find(from.str());
    EXPECT_NE(at, std::string::npos) << from.str();
    auto schedule = parseSchedule(text.replace(at, from.size(), to.str()));
    if (!schedule)
      return llvm::toString(schedule.takeError());
    return errorOf(checkGpuSchedule("f", nests, *schedule, h200()));
  };
  auto expect = [&](StringRef from, StringRef to, StringRef message) {
    std::string error = with(from, to);
    EXPECT_NE(error.find(message.str()), std::string::npos) << "got '" << error << "' for " << to.str();
  };
  EXPECT_EQ(with("\"shared\": 128", "\"shared\": 48"), "");
  EXPECT_EQ(with("\"order\": \"ascending\"", "\"order\": \"descending\""), "");
  EXPECT_EQ(with("\"thread\": 128", "\"thread\": 1024"), "");
  EXPECT_EQ(with("\"group\": 0", "\"group\": 37748736"), "");
  EXPECT_EQ(with("\"lazy\": 8", "\"lazy\": 0"), "");
  expect("\"block\": 0, \"warpgroup\"", "\"block\": 0, \"sequential\": 2, \"warpgroup\"",
         "\"warp\": 4, \"register\": 2, \"lane\": 8 and nothing else");
  expect("\"block\": 0, \"thread\"", "\"block\": 0, \"sequential\": 2, \"thread\"",
         "has the factor 'sequential', but blocks take several rows in turn only");
  expect("\"warpgroup\": 2", "\"warpgroups\": 2",
         "unknown key 'warpgroups' in axis 'n'; known "
         "are name, block, sequential, warpgroup, warp, register, "
         "lane, thread");
  expect("\"warp\": 4", "\"warp\": 2", "axis 'n' of nest 0 has warpgroups, whose rows are");
  expect("\"lane\": 8", "\"lane\": 8, \"thread\": 2", "and nothing else");
  expect("\"stage\": 2, ", "", "fold 'm' of nest 0 needs its stages");
  expect("\"shared\": 128", "\"shared\": 20", "tiles of 20 indices");
  expect("\"shared\": 128", "\"shared\": 0", "from 1 to 16777216 for 'shared'");
  expect("\"block\": 0", "\"block\": 2", "expects 0, the rest");
  expect("\"consumer\": 240", "\"consumer\": 0", "from 1 to 16777216 for 'consumer'");
  expect("\"overlap\": true", "\"overlap\": 1", "true or false for 'overlap'");
  expect("\"ascending\"", "\"random\"", "'order'");
  expect("\"group\": 0", "\"groups\": 0", "unknown key 'groups' in 'pipeline'");
  expect(", \"lazy\": 8", "", "for 'lazy'");
  expect("\"lazy\": 8", "\"lazy\": 100", "up to a factor of 2^100");
  expect("\"thread\": 128", "\"thread\": 100", "100 threads per block, but 'h200' has multiples");
  expect("\"thread\": 128", "\"thread\": 2048", "multiples of 32 up to 1024");
  expect("\"thread\": 128", "\"warpgroup\": 2, \"warp\": 4, \"register\": 2, \"lane\": 8",
         "nest 1 asks for warpgroups, but it runs with one thread per row: no contraction");
  expect("\"name\": \"b\", \"block\": 0", "\"name\": \"b\", \"block\": 0, \"thread\": 32",
         "expects only the factor 'block' on axis 'b'");
  expect("\"name\": \"b\"", "\"name\": \"x\"", "expects the axes of nest 0 <b h n>");
  expect("\"name\": \"m\"", "\"name\": \"k\"", "expects the folds of nest 0 <m>");
  expect("\"machine\": \"h200\"", "\"machine\": \"b200\"", "it is for the machine 'b200'");
  expect("\"kernel\": \"f\"", "\"kernel\": \"g\"", "is for kernel 'g', not 'f'");
}

} // namespace
