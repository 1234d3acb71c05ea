//===- StreamK.cpp - stream-K split and persistent kernels ----------------===//
//
// A grid of T blocks, one per multiprocessor, takes ⌈T/S⌉ waves on S of them, and in the last wave
// only r = T mod S blocks run. If all blocks visit the same indices, a block can stop a fold at any
// of them and hand over its states to another block. The operations and their order stay the same,
// so that results have the same bits. Hence each of the last r blocks is split into two parts, f
// and 1 − f of its range. The first parts (`isFirst`) start the grid, next to the first of all
// other blocks; the second parts (`isSecond`) end it. With n = ⌈r/(S − r)⌉ and f = n/(n + 1), the r
// multiprocessors with a first part have done ⌊T/S⌋ + f waves when the other S − r have done n
// second parts each. These take n·(1 − f) = f, so that all end together.
//
// A second part never waits. If its first part is not done, it does the whole range itself. Blocks
// usually start in the order of their numbers, but nobody promises that.
//
// If an array, known on the device alone, decides whether a nest runs at an index, starting all
// blocks takes long even if none has work. Such a kernel is persistent: each multiprocessor has one
// block, which takes further numbers from a counter (dynamic tile scheduler). It takes the next
// number after its last tile, not sooner, because a block with two numbers would keep others from
// the last blocks.
//
// Splits inside of a tile are the idea of stream-K (Osama et al., PPoPP 2023), which adds partial
// sums in the end. Here the second part continues from the states of the first, because bits must
// not depend on the number of heads in a call.
//
//===----------------------------------------------------------------------===//
#include "dialects/Device/Transforms/Passes.h"
#include "lib/Conversion/ONFToDevice/Tiles/BlockOrder.h"
#include "lib/Conversion/ONFToDevice/Tiles/Maps.h"
#include "lib/Conversion/ONFToDevice/Tiles/Names.h"
#include "lib/Schedule/GpuMachine.h"

using namespace mlir;
using namespace moa;
using namespace moa::onf;

namespace moa::tiles {

/// The least gain of a split is 1/kMostParts of the time. A split saves 1 − f of ⌊T/S⌋ + 1 waves,
/// which is 1/((⌊T/S⌋ + 1)·(n + 1)). Here n is (S − 1)/(S − r), not rounded, which needs no
/// division in a block.
static constexpr int64_t kMostParts = 100;
/// Registers of a thread that takes further block numbers while it copies tiles; with 24 it may
/// spill.
static constexpr int64_t kFindsRegisters = 32;
/// Threads of the kernel that clears the counters.
static constexpr int64_t kClearThreads = 128;

SymExpr StreamK::countBlocks() const {
  SymExpr blocks = context.rowTiles();
  for (unsigned axis = 0; axis + 1 < plan.nest.getExtents().size(); ++axis)
    blocks = context.extent(axis) * blocks;
  return blocks;
}

bool StreamK::isPersistent() const {
  return context.choice && plan.shape.shares != 0 && !plan.shape.takesTurns && !plan.product && plan.prologue.empty() &&
         registersIfPersistent().first >= launchRegisters();
}

/// Returns the registers per thread at launch, before the roles set theirs.
int64_t StreamK::launchRegisters() const {
  static const GpuMachine machine = llvm::cantFail(loadGpuMachine("sm_90a"));
  return machine.getLaunchRegisters(plan.shape.threads());
}

/// Returns the registers of a consumer and of the producer. The producer gets unused registers or,
/// in units of 8, registers of consumers.
std::pair<int64_t, int64_t> StreamK::registersIfPersistent() const {
  int64_t consumer = plan.shape.consumerRegisters, producer = plan.shape.producerRegisters,
          groups = plan.shape.warpgroups;
  int64_t lacks = std::max<int64_t>(kFindsRegisters - producer, 0);
  int64_t unused = launchRegisters() * (groups + 1) - groups * consumer - producer;
  int64_t less = llvm::divideCeil(std::max<int64_t>(lacks - unused, 0), 8 * groups) * 8;
  return {consumer - less, producer + std::max(lacks, less * groups)};
}

std::pair<int64_t, int64_t> StreamK::registersOfRoles() const {
  return isPersistent() ? registersIfPersistent()
                        : std::pair(plan.shape.consumerRegisters, plan.shape.producerRegisters);
}

/// Returns the number of counters: one per slot and, in persistent kernels, the tile scheduler's.
int64_t StreamK::countCounters() const { return plan.shape.shares + (isPersistent() ? 1 : 0); }

/// Returns the stored columns of a carried value.
static int64_t storedColumns(Over over, MLIRContext *context) {
  return over.kind == Over::Tile ? over.columns : typeOver(Over::parts(), Float32Type::get(context)).getShape()[1];
}

/// Returns the index space of each carried value.
static SmallVector<Over> oversOf(const Running &running) {
  SmallVector<Over> overs;
  for (const Running::Scalar &scalar : running.scalars) {
    if (scalar.reference)
      overs.push_back(Over::rows());
    overs.push_back(Over::parts());
  }
  for (Value started : running.started)
    if (started)
      overs.push_back(Over::rows());
  for (const Running::Sum &sum : running.sums)
    overs.push_back(Over::tile(cast<FragmentType>(sum.sum.getType()).getShape()[1]));
  return overs;
}

/// Creates the workspace arrays: the states of first parts, and the number of warps that have
/// stored theirs.
StreamK::StreamK(const TileContext &context, const FoldFacts &facts) : TilePart(context), facts(facts) {
  if (plan.shape.shares == 0)
    return;
  int64_t columns = 0, parts = storedColumns(Over::parts(), b.getContext());
  for (unsigned k = 0; k != plan.folded.scalars.size(); ++k)
    columns += (facts.isReference[k] ? 2 : 1) * parts;
  for (const Rescale &rescale : facts.rescales)
    columns += rescale.needsStarted ? parts : 0;
  for (const Accumulator &accumulator : plan.folded.accumulators)
    columns += padded(accumulator.extents[0]);
  SymExpr slots(plan.shape.shares), counters(countCounters());
  int64_t elements = plan.shape.rows() * columns;
  auto add = [&](StringRef name, ArrayRef<SymExpr> extents, Type element) {
    return program.addWorkspace(context.freshName(name), ArrayType::get(b.getContext(), extents, element));
  };
  Value states = add("partial_states", {slots, SymExpr(elements)}, b.getF32Type());
  workspace = {states, add("stored_warps", {counters}, b.getI32Type()), elements};
}

/// Returns the number of blocks to split, or 0, as an expression for hosts. `findBlock` computes
/// the same with comparisons, which take a block less time than three more 64-bit divisions.
SymExpr StreamK::countSplitBlocks() const {
  SymExpr all = countBlocks(), slots(plan.shape.shares), one(1);
  SymExpr rounds = SymExpr::floorDiv(all, slots), rest = SymExpr::mod(all, slots);
  // A negative extent is an empty range. Divided by a number that no extent reaches, it gives −1.
  const SymExpr &extent = plan.fold.getExtent();
  SymExpr keys = extent * (SymExpr::floorDiv(extent, SymExpr(int64_t(1) << 48)) + one);
  // Not 0 if there are a full wave, enough keys and enough to gain. ⌊2x/(x + 1)⌋ is then 1.
  SymExpr some = rounds * SymExpr::floorDiv(keys, SymExpr(leastSplitTiles * plan.shape.keys)) *
                 SymExpr::floorDiv(SymExpr(kMostParts) * (slots - rest), (rounds + one) * (slots + slots - one - rest));
  return rest * SymExpr::floorDiv(SymExpr(2) * some, some + one);
}

SymExpr StreamK::countGrid() const { return workspace ? countBlocks() + countSplitBlocks() : countBlocks(); }

void StreamK::emitClear(const IRMapping &arrays) {
  if (!workspace)
    return;
  OpBuilder::InsertionGuard guard(b);
  int64_t counters = countCounters(), blocks = llvm::divideCeil(counters, kClearThreads);
  auto kernel = beginKernel(b, plan.nest, program, Twine(context.number) + "_clear", blocks, kClearThreads);
  kernel->setAttr(device::kAlwaysAttr, b.getUnitAttr());
  ScalarCode code(b, arrays, plan.nest.getLoc());
  Value block = device::BlockOp::create(b, code.loc, b.getIndexType());
  Value thread = device::ThreadOp::create(b, code.loc, b.getIndexType());
  Value slot = arith::AddIOp::create(b, code.named("slot"),
                                     arith::MulIOp::create(b, code.loc, block, code.index(kClearThreads)), thread);
  Value exists = arith::CmpIOp::create(b, code.loc, arith::CmpIPredicate::slt, slot, code.index(counters));
  code.when(exists, [&] {
    device::StoreOp::create(b, code.loc, code.constant(b.getI32IntegerAttr(0)), workspace->storedWarps, slot);
  });
}

/// Returns the number of this block's tile of rows among all blocks without splits. Must agree with
/// `countSplitBlocks`, which determines the grid.
BlockNumber StreamK::findBlock(ScalarCode &code) {
  BlockNumber result;
  Value &block = result.number;
  if (!isPersistent())
    block = device::BlockOp::create(b, code.loc, b.getIndexType());
  if (!workspace)
    return result;
  auto less = [&](Value x, Value y) -> Value {
    return arith::CmpIOp::create(b, code.loc, arith::CmpIPredicate::slt, x, y);
  };
  auto minus = [&](Value x, Value y, StringRef name) -> Value {
    return arith::SubIOp::create(b, name.empty() ? code.loc : code.named(name), x, y);
  };
  // A grid has fewer than 2^31 blocks, so that divisions have 32 bits.
  Value all = code.narrow(code.symbol(countBlocks())), slots = code.index(plan.shape.shares);
  Value keys = code.symbol(plan.fold.getExtent());
  auto either = [&](Value x, Value y) -> Value { return arith::OrIOp::create(b, code.loc, x, y); };
  Value rest = code.narrow(arith::RemUIOp::create(b, code.named("rest"), all, slots)), one = code.index(1);
  result.others = code.narrow(minus(slots, rest, "others"));
  Value rounds = arith::DivUIOp::create(b, code.loc, all, slots);
  Value sum = arith::AddIOp::create(b, code.loc, result.others, code.index(plan.shape.shares - 1));
  Value gain = arith::MulIOp::create(b, code.loc, arith::AddIOp::create(b, code.loc, rounds, one), sum);
  Value most = arith::MulIOp::create(b, code.loc, result.others, code.index(kMostParts));
  Value gainsLittle = less(most, gain), isShort = less(keys, code.index(leastSplitTiles * plan.shape.keys));
  Value isFew = either(either(less(all, slots), isShort), gainsLittle);
  Value shared = code.narrow(arith::SelectOp::create(b, code.named("shared_blocks"), isFew, code.index(0), rest));
  if (isPersistent()) {
    Value blocks = arith::AddIOp::create(b, code.named("blocks"), all, shared);
    block = device::NextBlockOp::create(b, code.named("block"), b.getIndexType(), workspace->storedWarps, slots, blocks,
                                        plan.shape.shares);
  }
  result.isFirst = less(block, shared);
  result.isSecond = arith::CmpIOp::create(b, code.loc, arith::CmpIPredicate::sge, block, all);
  result.slot =
      code.narrow(arith::SelectOp::create(b, code.named("slot"), result.isFirst, block, minus(block, all, "")));
  Value front = minus(all, shared, ""), second = minus(block, shared, "");
  Value first = arith::AddIOp::create(b, code.loc, front, block);
  block = code.narrow(arith::SelectOp::create(b, code.named("number"), result.isFirst, first, second));
  return result;
}

/// Finds where this block begins and ends. Rings and ping-pong barriers count tiles from the first
/// one on. Hence a first part is a multiple of the period of their phases, or the whole range.
FoldPart StreamK::findPart(ScalarCode &code, const BlockNumber &block, Value numTiles) {
  Value zero = code.index(0);
  if (!workspace)
    return {zero, numTiles, Value(), Value()};
  Value unit = code.index(2 * plan.shape.stages), one = code.index(1);
  auto divide = [&](Value x, Value y) -> Value { return arith::DivUIOp::create(b, code.loc, x, y); };
  auto times = [&](Value x, Value y) -> Value { return arith::MulIOp::create(b, code.loc, x, y); };
  // Rounded up, because a longer second part costs n times as much of a multiprocessor. Only few
  // blocks are split, hence the branch.
  Value isPart = arith::OrIOp::create(b, code.loc, block.isFirst, block.isSecond);
  Value cut = code.branch(
      isPart, {b.getIndexType()},
      [&] {
        // n = ⌈r/(S − r)⌉ = ⌊(S − 1)/(S − r)⌋.
        Value parts = arith::DivUIOp::create(b, code.named("parts"), code.index(plan.shape.shares - 1), block.others);
        Value most = arith::AddIOp::create(b, code.loc, parts, one), whole = divide(times(numTiles, parts), most);
        Value more = arith::AddIOp::create(b, code.loc, whole, code.index(2 * plan.shape.stages - 1));
        return Values{arith::MinSIOp::create(b, code.named("cut"), times(divide(more, unit), unit), numTiles)};
      },
      [&] { return Values{numTiles}; })[0];
  cut = code.narrow(cut);
  Value signals = code.branch(
      block.isSecond, {b.getIndexType()},
      [&] {
        return Values{
            device::SignalsOp::create(b, code.named("signals"), b.getIndexType(), workspace->storedWarps, block.slot)};
      },
      [&] { return Values{zero}; })[0];
  Value isThere =
      arith::CmpIOp::create(b, code.loc, arith::CmpIPredicate::eq, signals, code.index(4 * plan.shape.warpgroups));
  Value begin = arith::SelectOp::create(b, code.named("begin"), isThere, cut, zero);
  if (isPersistent())
    begin = code.narrow(begin);
  Value end = code.narrow(arith::SelectOp::create(b, code.named("end"), block.isFirst, cut, numTiles));
  Value handsOver = arith::SelectOp::create(b, code.named("leaves"), block.isFirst, one, zero);
  return {begin, end, handsOver, block.slot};
}

Value FoldPart::readBegin(ScalarCode &code) const {
  return isOfSplit() ? device::KeptOp::create(code.b, code.named("begin"), begin).getResult() : begin;
}

/// Returns the place of an element of a carried value among the states of a part.
Value StreamK::placeOfState(ScalarCode &code, Value slot, Value row, int64_t before, Over over, ValueRange at) {
  int64_t columns = storedColumns(over, b.getContext());
  auto plus = [&](Value x, Value y) { return b.createOrFold<arith::AddIOp>(code.loc, x, y); };
  auto times = [&](Value x, int64_t y) { return b.createOrFold<arith::MulIOp>(code.loc, x, code.index(y)); };
  Value start = code.index(plan.shape.rows() * before), place = plus(times(slot, workspace->elements), start);
  place = plus(place, times(plus(row, at[0]), columns));
  return at.size() > 1 ? plus(place, at[1]) : place;
}

Running StreamK::loadStates(ScalarCode &code, const FoldPart &part, const WarpgroupRows &rows, const Running &inits,
                            Value begin) {
  if (!workspace)
    return inits;
  SmallVector<Type> types;
  Running running = inits;
  for (Value init : running.values())
    types.push_back(init.getType());
  Value isLater = arith::CmpIOp::create(b, code.loc, arith::CmpIPredicate::sgt, begin, code.index(0));
  Values values = code.branch(
      isLater, types,
      [&] {
        Value slot = device::KeptOp::create(b, code.named("slot"), part.slot);
        Value row = arith::MulIOp::create(b, code.named("offset"), rows.number, code.index(64));
        Values found;
        int64_t before = 0;
        SmallVector<std::string> names = namesOf(facts, running); // the first name is that of the loop index
        for (auto [type, over, name] : llvm::zip_equal(types, oversOf(running), ArrayRef(names).drop_front())) {
          Type element = cast<FragmentType>(type).getElementType();
          found.push_back(map(code, name, {}, over, {element}, [&](ValueRange, ValueRange at) {
            Value value = device::LoadOp::create(b, code.loc, b.getF32Type(), workspace->states,
                                                 placeOfState(code, slot, row, before, over, at));
            if (element.isInteger(1))
              value = arith::CmpFOp::create(b, code.loc, arith::CmpFPredicate::UNE, value,
                                            code.constant(b.getF32FloatAttr(0)));
            return Values{value};
          })[0]);
          before += storedColumns(over, b.getContext());
        }
        return found;
      },
      [&] { return running.values(); });
  return inits.with(values);
}

void StreamK::storeStates(ScalarCode &code, const FoldPart &part, const Running &running) {
  Value slot = device::KeptOp::create(b, code.named("slot"), part.slot);
  Value number = device::WarpgroupOp::create(b, code.named("warpgroup"), b.getIndexType(), /*again=*/true);
  Value row = arith::MulIOp::create(b, code.named("offset"), number, code.index(64));
  int64_t before = 0;
  Running states = running;
  for (auto [value, over] : llvm::zip_equal(states.values(), oversOf(running))) {
    // All lanes of a row have its reference; each stores its own copy.
    Over each = over.kind == Over::Rows ? Over::parts() : over;
    map(code, "", {value}, each, {}, [&](ValueRange in, ValueRange at) {
      Value stored = in[0];
      if (stored.getType().isInteger(1)) {
        Value zero = code.constant(b.getF32FloatAttr(0)), one = code.constant(b.getF32FloatAttr(1));
        stored = arith::SelectOp::create(b, code.loc, stored, one, zero);
      }
      device::StoreOp::create(b, code.loc, stored, workspace->states, placeOfState(code, slot, row, before, each, at));
      return Values();
    });
    before += storedColumns(over, b.getContext());
  }
  device::SignalOp::create(b, code.loc, workspace->storedWarps, slot);
}

} // namespace moa::tiles
