//===- GpuCostModel.cpp - the default schedule of a GPU's kernels ---------===//
//
// Cycles of a multiprocessor for one tile: W consumers of 64 rows, BN keys, E = 64·W·BN pairs.
// Rates come from the machine description:
//
//    tensor   Σ W·(2·64·BN·columns / tensor_16 + 20), columns padded as in the rings; for 8 bits
//             padded to 32, with tensor_8; 20 cycles start a contraction
//    special  E · special functions per pair / special
//    issue    (E · operations per pair + 64·W · rescaled columns + W·128·100) / issue;
//             an integer operation counts issue / integer; a tile costs about 100
//             instructions of each thread in addition to its pairs
//    shared   (rows that are not in registers, keys and operands of states, as read by the
//             contractions of each consumer, and one write of a stage) / shared_bandwidth
//    copy     bytes of a stage / (l2_bandwidth / multiprocessors)
//    chain    the dependence chain of one consumer: its scores, its states and, without
//             overlap, its sums, and 500 cycles of waiting
//
// A block takes all registers of a multiprocessor, so one is resident. Consumers overlap, but not
// perfectly: the period of a tile is the 4-norm of tensor, special, issue, shared and chain, or the
// copy if that is longer. The stages leave exposed latency + copy − (stages − ½) periods of a copy.
//
// The cost per pair is the period divided by E, multiplied by these overheads:
// - pairs of partly filled or masked tiles;
// - the start of a block: 2000 cycles and one chain;
// - the tail of the grid: half a block per multiprocessor; exact if all extents are constant, or
//   the idle multiprocessors if there are few blocks;
// - 1 % for each 1 % of the registers beyond 95 %, where the estimate may be wrong and registers
//   spill.
//
// The constants 20, 100, 500 and the norm are fitted on an H200; see
// docs/Decisions/0013-cost-model-of-tiles.md for the data and the errors.
//
//===----------------------------------------------------------------------===//
#include "lib/Schedule/GpuSchedule.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

using namespace mlir;
using namespace moa;

// Assumed symbolic extents: keys of a fold, and rows of the whole nest. The number of rows per
// outer index counts as assumedKeys.
static constexpr double assumedKeys = 8192, assumedRows = 262144, assumedPart = 1024;
static constexpr double tileInstructions = 100, tileLatency = 500, contractionFill = 20, blockStart = 2000;

/// Returns the issue slots of a pair's operations.
static double issueSlots(const OperationCounts &counts, const GpuMachine &machine) {
  double integer = double(machine.issue) / machine.integer;
  // A load also computes an address and waits for memory.
  return counts.f32 * double(machine.issue) / machine.f32 + counts.special + counts.integer * integer +
         counts.loads * 4 * integer;
}

/// Returns the fraction of tiles that evaluate the guard. It is also the number of masked-out pairs
/// per pair. A block of rows meets (rows + keys) / keys partial tiles along an edge of the domain.
static double edgeShare(const TileFold &fold, const TileShape &shape) {
  double keys = fold.extent ? std::max<double>(*fold.extent, 1) : assumedKeys;
  return std::min(1.0, (shape.rows() + shape.keys) / keys);
}

/// Returns the wasted pairs per useful pair.
static double waste(const GpuNest &nest, const TileShape &shape) {
  const TileFold &fold = *nest.fold;
  auto padding = [](std::optional<int64_t> extent, int64_t tile, double assumed) {
    if (!extent || *extent < 1)
      return tile / (2 * assumed);
    return llvm::alignTo(*extent, tile) / double(*extent) - 1;
  };
  double rows = padding(nest.extents.back(), shape.rows(), assumedKeys);
  double keys = padding(fold.extent, shape.keys, assumedKeys);
  return rows + keys + (fold.guarded ? edgeShare(fold, shape) : 0);
}

/// Returns the time of the last wave, in which some multiprocessors are idle, relative to the
/// whole. With a stream-K split of the last wave this is a fifth of a wave on average, otherwise
/// half.
static double tail(const GpuNest &nest, const TileShape &shape, const GpuMachine &machine) {
  if (nest.extents.empty())
    return 0;
  double sms = machine.multiprocessors, outer = 1;
  bool isKnown = true;
  for (std::optional<int64_t> extent : llvm::drop_end(nest.extents)) {
    isKnown &= extent.has_value();
    outer *= std::max<int64_t>(extent.value_or(1), 1);
  }
  // Without the number of rows, the total number is assumed, as rows and outer indices trade off.
  std::optional<int64_t> rows = nest.extents.back();
  bool isConstant = isKnown && rows;
  if (!isKnown || !rows)
    outer = std::max(outer, assumedRows / assumedKeys);
  double blocks =
      outer * (rows ? llvm::divideCeil(std::max<int64_t>(*rows, 1), shape.rows()) : assumedKeys / shape.rows());
  if (isConstant || blocks < sms)
    return std::ceil(blocks / sms) * sms / blocks - 1;
  return (shape.shares > 0 ? 0.2 : 0.5) * sms / blocks;
}

TileCost moa::tileCost(const GpuNest &nest, const TileShape &shape, const GpuMachine &machine) {
  const TileFold &fold = *nest.fold;
  TileCost cost;
  double groups = shape.warpgroups, keys = shape.keys, pairs = shape.rows() * keys;
  double scores = 0, sums = 0, bytes = 0, reads = 0;
  auto contraction = [&](const TileColumns &operand) {
    double rate = operand.bytes == 1 ? machine.tensor8 : machine.tensor16;
    bytes += keys * operand.columns * operand.bytes * operand.keyOperands;
    return operand.products * (2.0 * 64 * keys * operand.contracted() / rate + contractionFill);
  };
  double apart = 0; // columns of sums over a tile, which are added to the state in f32
  for (const TileColumns &depth : fold.depths) {
    scores += contraction(depth);
    reads += depth.products * ((shape.holdsRows ? 0 : 64) + keys) * double(depth.contracted() * depth.bytes);
  }
  for (const TileColumns &width : fold.widths) {
    sums += contraction(width);
    reads += double(width.products * keys * width.paddedBytes());
    apart += width.isSummedPerTile() ? width.padded() : 0;
  }
  double slots = issueSlots(fold.counts, machine), special = fold.counts.special;
  if (fold.guarded) {
    slots += edgeShare(fold, shape) * issueSlots(fold.guardCounts, machine);
    special += edgeShare(fold, shape) * fold.guardCounts.special;
  }
  // Weights are rounded in pairs; states and rescaling are per row.
  slots += 0.5 * fold.weights;
  double ofRows = 64 * (double(fold.rescaledColumns) + apart) + 128 * tileInstructions;
  cost.tensor = groups * (scores + sums);
  cost.special = pairs * special / machine.special;
  cost.issue = (pairs * slots + groups * ofRows) / machine.issue;
  cost.shared = (groups * reads + bytes) / machine.sharedBandwidth;
  cost.copy = bytes * machine.multiprocessors / machine.l2Bandwidth;
  cost.chain = scores + (cost.special + cost.issue) / groups + tileLatency + (shape.overlap ? 0 : sums);
  auto fourth = [](double x) { return x * x * x * x; };
  double busy = std::pow(
      fourth(cost.tensor) + fourth(cost.special) + fourth(cost.issue) + fourth(cost.shared) + fourth(cost.chain), 0.25);
  cost.period = std::max(busy, cost.copy);
  cost.exposed = std::max(0.0, machine.copyLatency + cost.copy - (shape.stages - 0.5) * cost.period);
  cost.period += cost.exposed;
  double tiles = (fold.extent ? std::max<double>(*fold.extent, 1) : assumedKeys) / keys;
  double start = (blockStart + cost.chain) / (std::max(tiles, 1.0) * cost.period);
  int64_t limit = std::min(shape.consumerRegisters, machine.registersPerThread);
  // If products are awaited before anything else is computed, the estimate of registers is exact.
  double full = double(tileNeeds(fold, shape).registers()) / limit, free = shape.overlap ? 0.95 : 0.99;
  cost.perPair = cost.period / pairs * (1 + waste(nest, shape)) * (1 + start) * (1 + tail(nest, shape, machine)) *
                 (1 + std::max(0.0, full - free));
  return cost;
}

/// Returns the cost of short blocks, which visit few tiles and mostly wait: for their start, a copy
/// and the chain of each tile. `residents` blocks overlap on a multiprocessor. The period is that
/// latency divided by their number, or the time of the busiest unit or of the copies if longer.
static TileCost shortCost(const GpuNest &nest, const TileShape &shape, int64_t residents, const GpuMachine &machine) {
  const TileFold &fold = *nest.fold;
  TileCost cost = tileCost(nest, shape, machine);
  double indices = fold.isProduct ? *fold.visited : 0.5 * (*fold.visited + shape.rows());
  double tiles = std::ceil(indices / shape.keys);
  TileNeeds needs = tileNeeds(fold, shape);
  double bytes = needs.rowBytes + tiles * needs.stageBytes;
  cost.copy = bytes * machine.multiprocessors / machine.l2Bandwidth;
  cost.exposed = machine.copyLatency * std::ceil(tiles / shape.stages);
  cost.chain *= tiles;
  double busy = tiles * std::max({cost.tensor, cost.special, cost.issue, cost.shared});
  cost.period = std::max({busy, cost.copy, (blockStart + cost.exposed + cost.chain) / residents});
  cost.perPair = cost.period / (shape.rows() * indices);
  return cost;
}

/// Returns the cost of a block that folds one part of a split range: its keys are read once, from
/// memory. `residents` blocks overlap their starts on a multiprocessor.
static TileCost partCost(const GpuNest &nest, const TileShape &shape, int64_t residents, const GpuMachine &machine) {
  TileCost cost = tileCost(nest, shape, machine);
  TileNeeds needs = tileNeeds(*nest.fold, shape);
  double tiles = std::ceil(assumedPart / shape.keys);
  double perCycle = 1000.0 * machine.memoryBandwidth / machine.clock; // bytes
  cost.copy = (needs.rowBytes + tiles * needs.stageBytes) * machine.multiprocessors / perCycle;
  cost.chain *= tiles;
  cost.exposed = machine.copyLatency;
  double busy = tiles * std::max({cost.tensor, cost.special, cost.issue, cost.shared});
  cost.period = std::max({busy, cost.copy, cost.chain / residents}) + (blockStart + cost.exposed) / residents;
  cost.perPair = cost.period / (shape.rows() * assumedPart);
  return cost;
}

static void addShortShapes(const GpuNest &nest, const GpuMachine &machine,
                           std::vector<std::pair<TileShape, TileCost>> &shapes) {
  bool isPart = nest.fold->isPart;
  TileShape shape;
  shape.warpgroups = 1;
  shape.rescaleBound = isPart ? nest.fold->rescaleBound : shape.rescaleBound;
  for (shape.keys = 64; shape.keys <= 128; shape.keys *= 2)
    for (shape.stages = isPart ? 2 : 1; shape.stages <= 4; ++shape.stages)
      for (int64_t residents = isPart ? 1 : 2; residents <= 8; ++residents) {
        shape.overlap = shape.stages > 1;
        assignRegisters(shape, *nest.fold, machine, residents);
        bool fits = residentBlocks(shape, machine) == residents &&
                    residents * (tileNeeds(*nest.fold, shape).bytes() + 1024) <= machine.shared;
        if (llvm::Error error = checkTileShape(*nest.fold, shape, machine, "")) {
          llvm::consumeError(std::move(error));
          continue;
        }
        if (fits)
          shapes.emplace_back(shape, isPart ? partCost(nest, shape, residents, machine)
                                            : shortCost(nest, shape, residents, machine));
      }
}

std::vector<std::pair<TileShape, TileCost>> moa::rankTileShapes(const GpuNest &nest, const GpuMachine &machine) {
  std::vector<std::pair<TileShape, TileCost>> shapes;
  if (!nest.fold)
    return shapes;
  if (nest.fold->visited || nest.fold->isPart)
    addShortShapes(nest, machine, shapes);
  bool isShort = !shapes.empty();
  TileShape shape;
  // Later rows of a domain with edges often see more keys, so the longest blocks go first. The
  // group of outer indices is limited so that the second-level cache has room for rows.
  shape.descending = nest.fold->hasPieces && !nest.fold->visitsFewerLater;
  if (nest.fold->hasPieces && nest.fold->canGroup)
    shape.groupBytes = machine.l2Bytes * 18 / 25;
  shape.rescaleBound = nest.fold->rescaleBound;
  // With 8-bit products, the states take longer than the products, and warpgroups that compute them
  // at the same time compete for the same units. Without overlap there are registers for a third
  // warpgroup, which fills more gaps than overlap does.
  bool isNarrow = llvm::all_of(llvm::concat<const TileColumns>(nest.fold->depths, nest.fold->widths),
                               [](const TileColumns &c) { return c.bytes == 1; });
  auto add = [&] {
    if (shape.threads() > machine.threadsPerBlock)
      return;
    assignRegisters(shape, *nest.fold, machine);
    // Ping-pong between consumer warpgroups only helps if they compete for the special function
    // unit (benchmarks/gpu/PRECISION.md, "Twelfth series").
    shape.takesTurns = isNarrow && shape.warpgroups > 1 && nest.fold->counts.special > 0;
    // A split gains a few percent, which is not worth adding a workspace to a call.
    bool isLong = !nest.fold->extent || *nest.fold->extent >= leastSplitTiles * shape.keys;
    bool shares = nest.fold->canShare && nest.fold->hasWorkspace && isLong && residentBlocks(shape, machine) == 1;
    shape.shares = shares ? machine.multiprocessors : 0;
    if (llvm::Error error = checkTileShape(*nest.fold, shape, machine, ""))
      return llvm::consumeError(std::move(error));
    shapes.emplace_back(shape, tileCost(nest, shape, machine));
  };
  for (shape.warpgroups = 1; !isShort && shape.rows() <= machine.copyRows; ++shape.warpgroups)
    // Powers of two divide common extents.
    for (shape.keys = 16; shape.keys <= machine.tensorColumns; shape.keys *= 2)
      for (shape.stages = 2; shape.stages <= 4; ++shape.stages) {
        shape.overlap = true;
        add();
        shape.overlap = false;
        if (isNarrow)
          add();
      }
  // Among equal costs prefer fewer stages and smaller tiles.
  llvm::stable_sort(shapes, [](const auto &a, const auto &b) { return a.second.perPair < b.second.perPair; });
  return shapes;
}

std::string moa::printRanking(const GpuNest &nest, const GpuMachine &machine) {
  auto shapes = rankTileShapes(nest, machine);
  if (const FixedForm *fixed = nest.getFixed(); shapes.empty() && fixed)
    return fixed->text + "\n";
  if (shapes.empty())
    return "one thread per row, " + std::to_string(chooseThreads(nest, machine)) + " threads per block\n";
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "warpgroups keys stages overlap   tensor special  issue shared   copy  chain exposed  "
        "registers   bytes   cost\n";
  for (const auto &[shape, cost] : shapes) {
    TileNeeds needs = tileNeeds(*nest.fold, shape);
    os << llvm::format("%10d %4d %6d %7s %8.0f %7.0f %6.0f %6.0f %6.0f %6.0f %7.0f %6d/%3d %7d %6.3f\n",
                       int(shape.warpgroups), int(shape.keys), int(shape.stages), shape.overlap ? "yes" : "no",
                       cost.tensor, cost.special, cost.issue, cost.shared, cost.copy, cost.chain, cost.exposed,
                       int(needs.registers()), int(shape.consumerRegisters), int(needs.bytes()),
                       cost.perPair / shapes.front().second.perPair);
  }
  return text;
}

/// Chooses the threads t of a block by cost: 10/t for its start and t/1600 for rows that finish at
/// different times. The cost is scaled by the padding of rows and by the part of a multiprocessor
/// that small blocks leave empty.
int64_t moa::chooseThreads(const GpuNest &nest, const GpuMachine &machine) {
  int64_t best = 0;
  double least = 0;
  for (int64_t threads = 32; threads <= machine.threadsPerBlock; threads *= 2) {
    double resident = std::min<double>(machine.threads, machine.blocks * threads);
    double cost = machine.threads / resident * (1 + 10.0 / threads + threads / 1600.0);
    if (!nest.extents.empty() && nest.extents.back() && *nest.extents.back() > 0)
      cost *= llvm::alignTo(*nest.extents.back(), threads) / double(*nest.extents.back());
    if (best == 0 || cost < least)
      best = threads, least = cost;
  }
  return best;
}
