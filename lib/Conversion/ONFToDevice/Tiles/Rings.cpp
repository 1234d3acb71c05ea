//===- Rings.cpp - rings of stages in shared memory -----------------------===//
#include "lib/Conversion/ONFToDevice/Tiles/Rings.h"
#include "lib/Conversion/ONFToDevice/Tiles/Names.h"
#include "lib/Schedule/GpuMachine.h"
#include "lib/Schedule/GpuSchedule.h"
#include <numeric>

using namespace mlir;
using namespace moa;
using namespace moa::onf;

namespace moa::tiles {

int64_t partRows(const TilePlan &plan, const TileOperand &operand) { return std::gcd(*operand.page, plan.shape.keys); }

Ring Rings::make(StringRef name, int64_t stages, int64_t height, int64_t columns, Type element, bool withEmpty,
                 bool isOdd, int64_t copies) {
  Ring ring;
  int64_t bytes = element.getIntOrFloatBitWidth() / 8;
  auto type = RingType::get(b.getContext(), stages, {height, padded(columns, bytes)}, element);
  auto named = [&](const char *what) { return code.named(name.str() + what); };
  ring.tiles = device::SharedOp::create(b, named("_ring"), type);
  ring.full = device::BarriersOp::create(b, named("_full"), BarriersType::get(b.getContext(), stages, copies), isOdd);
  // One arrival per consumer warp.
  if (withEmpty)
    ring.empty = device::BarriersOp::create(b, named("_empty"),
                                            BarriersType::get(b.getContext(), stages, 4 * plan.shape.warpgroups));
  return ring;
}

/// Makes a ring per operand. Rows have one stage, which is never empty, and one phase per block.
SmallVector<Ring> Rings::makeAll(ArrayRef<TileOperand> operands, int64_t stages, int64_t size, bool withEmpty,
                                 bool isOdd, const char *role) {
  auto countOperands = [&](Value array) {
    int64_t count = 0;
    for (const auto *list : {&plan.rowOperands, &plan.keyOperands, &plan.valueOperands})
      count += llvm::count_if(*list, [&](const TileOperand &other) { return LoadOp(other.load).getArray() == array; });
    return count;
  };
  SmallVector<Ring> list;
  for (const TileOperand &operand : operands) {
    auto [across, along] =
        operand.isTransposed ? std::pair(padded(operand.columns), size) : std::pair(size, operand.columns);
    // An array that is several operands has a ring for each.
    std::string name = nameOfArray(context, operand).str();
    if (countOperands(operand.load.getArray()) > 1)
      name += role;
    int64_t copies = operand.page ? size / partRows(plan, operand) : 1;
    list.push_back(make(name, stages, across, along, operand.load.getResult().getType(), withEmpty, isOdd, copies));
  }
  return list;
}

Rings::Rings(const TileContext &context, ScalarCode &code, bool isPersistent)
    : BlockPart(context, code), rows(makeAll(plan.rowOperands, 1, plan.shape.rows(), false, isPersistent, "_rows")),
      keys(makeAll(plan.keyOperands, plan.shape.stages, plan.shape.keys, true, false, "_keys")),
      values(makeAll(plan.valueOperands, plan.shape.stages, plan.shape.keys, true, false, "_values")) {
  auto typeOf = [](LoadOp load) { return load.getResult().getType(); };
  for (const TileProduct &contraction : plan.prologue)
    prologue.push_back(make(nameOfArray(context, contraction.right), 1, padded(contraction.length),
                            contraction.right.columns, typeOf(contraction.right.load), /*withEmpty=*/false));
  if (plan.product) {
    const TileOperand &left = plan.product->left;
    auto [across, along] = left.isTransposed ? std::pair(plan.shape.keys, plan.shape.rows())
                                             : std::pair(plan.shape.rows(), plan.shape.keys);
    weights = make(nameOfArray(context, left), plan.shape.stages, across, along, typeOf(left.load),
                   /*withEmpty=*/true);
  }
  if (Type element = getResultElement(plan)) {
    auto type = RingType::get(b.getContext(), 1, {plan.shape.rows(), getResultColumns(plan)}, element);
    results = device::SharedOp::create(b, code.named("result_ring"), type);
  }
  if (plan.shape.takesTurns)
    turns =
        device::BarriersOp::create(b, code.named("turns"), BarriersType::get(b.getContext(), plan.shape.warpgroups, 4));
}

std::pair<Value, Value> Rings::stageOf(Value n, StringRef name) const {
  Value stages = code.index(plan.shape.stages);
  Value stage = arith::RemUIOp::create(b, code.named(name), n, stages);
  Value round = arith::DivUIOp::create(b, code.loc, n, stages);
  Value parity = arith::RemUIOp::create(b, code.named("parity"), round, code.index(2));
  return {stage, parity};
}

void Rings::complete(Value start, Value end, bool isProducer) const {
  Value unit = code.index(2 * plan.shape.stages), more = code.index(2 * plan.shape.stages - 1);
  Value units = arith::DivUIOp::create(b, code.loc, arith::AddIOp::create(b, code.loc, end, more), unit);
  Value whole = arith::MulIOp::create(b, code.named("whole"), units, unit);
  if (isProducer) // consumers call this only if there is a tile
    whole = arith::SelectOp::create(
        b, code.loc, arith::CmpIOp::create(b, code.loc, arith::CmpIPredicate::sgt, end, start), whole, end);
  code.loop(end, whole, "n", [&](Value n) {
    auto [stage, parity] = stageOf(n);
    Value free = isProducer ? arith::SubIOp::create(b, code.loc, code.index(1), parity).getResult() : parity;
    for (const auto *list : {&keys, &values})
      for (const Ring &ring : *list) {
        device::WaitOp::create(b, code.loc, isProducer ? ring.empty : ring.full, stage, free);
        device::ArriveOp::create(b, code.loc, isProducer ? ring.full : ring.empty, stage);
      }
  });
}

Value Rings::forResults(Type element) const {
  for (const Ring &ring : rows)
    if (cast<RingType>(ring.tiles.getType()).getElementType() == element)
      return ring.tiles;
  return results && cast<RingType>(results.getType()).getElementType() == element ? results : Value();
}

void Rings::eraseUnused() {
  if (results && results.use_empty())
    results.getDefiningOp()->erase();
}

int64_t findFreeBytes(const TileContext &context, int64_t lists) {
  static const GpuMachine machine = llvm::cantFail(loadGpuMachine("sm_90a"));
  constexpr int64_t others = 2048; // kept numbers, bits, counts, and the machine's own use
  int64_t bytes = others, residents = residentBlocks(context.plan.shape, machine);
  context.b.getBlock()->getParentOp()->walk([&](Operation *op) {
    if (auto ring = dyn_cast<device::SharedOp>(op))
      bytes += llvm::alignTo(ring.getType().getStages() * ring.getType().getStageBytes(), 1024);
    else if (isa<device::BarriersOp>(op))
      bytes += 1024; // up to the alignment of the next ring
  });
  return std::min(machine.shared / residents, machine.sharedPerBlock) - bytes - lists;
}

} // namespace moa::tiles
