//===- CostModel.cpp - the default schedule -------------------------------===//
//
// Cycles per pair (row, fold index) of one fold. A tile has rows = R·L rows, a block BN indices. I
// counts elements of inner reductions, C elements of states. An element has w bytes, and the
// second-level cache delivers B bytes per cycle.
//
//    shared   3·(I + C)·w / (rows·B)       data shared by all rows is staged per tile:
//                                          read, written, read again
//    states   (I + 2C)·w / (BN·B)          rows and states are swept once per block
//    panel    C/u·w·(1 − ⅗L1/panel) / B    the values of one register panel of rows
//                                          are read for every u elements of states
//    values   4·w·(1 − L1/tile) / B        written, read, rewritten, read
//    overhead 200 / (rows·BN)              per block and tile
//    waste    rows/4096 · (I + C)/(L·fma)  with a guard and 4096 indices per row, half a
//                                          tile's height is masked out; without a guard
//                                          a sixteenth, for the cores of the last tile
//
// A negative factor (1 − a/b) counts as 0. Register blocking u × v keeps u·v accumulators, v
// operands and one broadcast in registers.
//
//===----------------------------------------------------------------------===//
#include "lib/Schedule/NestShape.h"
#include "lib/Schedule/Schedule.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <limits>

using namespace mlir;
using namespace moa;

namespace {
struct Choice {
  int64_t registers = 1, lanes = 1;
  std::vector<int64_t> blocks;
  double cost = std::numeric_limits<double>::infinity();
};
} // namespace

static double missing(double have, double need) { return need > have ? 1 - have / need : 0; }

static double cost(const NestShape &nest, const FoldShape &fold, const Machine &machine, int64_t registers,
                   int64_t lanes, int64_t block) {
  RegisterBlock unit = registerBlock(machine);
  double w = nest.bits / 8, bandwidth = machine.l2BytesPerCycle;
  double rows = registers * lanes, inner = fold.inner, carried = fold.carried;
  double panel = block * double(unit.vectors * lanes) * w;
  double l1 = machine.l1Bytes;
  double shared = 3 * (inner + carried) * w / (rows * bandwidth);
  double states = (inner + 2 * carried) * w / (block * bandwidth);
  double panels = carried / unit.broadcasts * w * missing(0.6 * l1, panel) / bandwidth;
  double values = 4 * w * missing(l1, block * rows * w) / bandwidth;
  double overhead = 200 / (rows * block);
  double waste = rows / (fold.guarded ? 4096 : 65536) * (inner + carried) / (lanes * double(machine.fmaPerCycle));
  return shared + states + panels + values + overhead + waste;
}

/// Chooses the best block for each fold of the nest, for one tile of rows.
static Choice chooseBlocks(const NestShape &nest, const Machine &machine, int64_t registers, int64_t lanes,
                           bool bounded) {
  Choice choice{registers, lanes, {}, 0};
  for (const FoldShape &fold : nest.folds) {
    double best = std::numeric_limits<double>::infinity();
    int64_t bestBlock = 0;
    int64_t previous = 0;
    for (int64_t block : {8, 16, 32, 64, 96, 128, 192, 256, 384, 512}) {
      // A block larger than a constant extent wastes space.
      if (fold.extent && previous > 0 && previous >= *fold.extent)
        break;
      previous = block;
      int64_t need = workingSet(nest, fold, machine, registers, lanes, block).total();
      if (bounded && need > machine.l2Bytes / 2)
        break;
      double c = cost(nest, fold, machine, registers, lanes, block);
      if (c < best)
        best = c, bestBlock = block;
      if (!bounded)
        break;
    }
    if (bestBlock == 0)
      return Choice();
    choice.blocks.push_back(bestBlock);
    choice.cost += best;
  }
  if (nest.folds.empty())
    choice.cost = 200.0 / (registers * lanes) + registers * lanes / 64.0;
  return choice;
}

static Choice chooseNest(const NestShape &nest, const Machine &machine) {
  std::vector<int64_t> counts = machine.laneCounts(nest.bits);
  int64_t lanes = counts.back(), limit = std::numeric_limits<int64_t>::max();
  if (nest.laneExtent) {
    int64_t extent = std::max<int64_t>(1, *nest.laneExtent);
    for (int64_t count : llvm::reverse(counts))
      if (count >= extent)
        lanes = count;
    limit = llvm::divideCeil(extent, lanes);
  }
  if (nest.isShort)
    limit = 1;
  RegisterBlock unit = registerBlock(machine);
  Choice best;
  for (int64_t multiple = 1; multiple <= 6; ++multiple) {
    int64_t registers = std::min(multiple * unit.vectors, limit);
    Choice choice = chooseBlocks(nest, machine, registers, lanes, /*bounded=*/true);
    if (choice.cost < best.cost)
      best = std::move(choice);
  }
  // If nothing fits, try smaller tiles, and finally take the smallest one regardless.
  for (int64_t registers = std::min(unit.vectors, limit) - 1;
       registers >= 1 && best.cost == std::numeric_limits<double>::infinity(); --registers)
    best = chooseBlocks(nest, machine, registers, lanes, /*bounded=*/true);
  if (best.cost == std::numeric_limits<double>::infinity())
    best = chooseBlocks(nest, machine, 1, lanes, /*bounded=*/false);
  return best;
}

/// Returns the sequential blocks of one part of a split range (split-K over cores), or 0 for no
/// split. A range is split if the rows may fit one tile, so that only parts can use several cores.
/// A part costs one sweep of the states, which 2048 indices amortise.
static int64_t choosePart(const NestShape &nest, const FoldShape &fold, int64_t rows, int64_t block) {
  constexpr int64_t part = 2048;
  if (nest.isShort || nest.names.empty() || (nest.laneExtent && *nest.laneExtent > rows) ||
      (fold.extent && *fold.extent < 2 * part))
    return 0;
  return llvm::divideCeil(part, block);
}

Schedule moa::chooseSchedule(onf::KernelOp kernel, const Machine &machine) {
  Schedule schedule;
  schedule.kernel = kernel.getSymName().str();
  schedule.machine = machine.name;
  for (const NestShape &shape : nestShapes(kernel)) {
    Choice choice = chooseNest(shape, machine);
    NestSchedule nest;
    for (const std::string &name : shape.names)
      nest.axes.push_back({name, {{onf::Resource::core, 0}}});
    if (!nest.axes.empty()) {
      auto &factors = nest.axes.back().factors;
      factors.emplace_back(onf::Resource::register_, choice.registers);
      factors.emplace_back(onf::Resource::lane, choice.lanes);
    }
    for (auto [fold, block] : llvm::zip(shape.folds, choice.blocks)) {
      nest.folds.push_back({fold.name, {{onf::Resource::sequential, 0}, {onf::Resource::cache, block}}});
      auto &factors = nest.folds.back().factors;
      int64_t rows = choice.registers * choice.lanes;
      if (int64_t blocks = nest.folds.size() == 1 ? choosePart(shape, fold, rows, block) : 0) {
        factors.front().second = blocks;
        factors.insert(factors.begin(), {onf::Resource::core, 0});
      }
    }
    schedule.nests.push_back(std::move(nest));
  }
  return schedule;
}
