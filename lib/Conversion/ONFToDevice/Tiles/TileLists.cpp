//===- TileLists.cpp - lists of the tiles that a block visits -------------===//
//
// The guard is evaluated for each tile in three-valued logic (lib/Analysis/TilePredicate.h), with the
// ranges of its terms or the table of its pairs. The block makes two lists: tiles that are or may be
// partially visible, and tiles that all its rows see in full.
//
//===----------------------------------------------------------------------===//
#include "lib/Conversion/ONFToDevice/Tiles/Rings.h"
#include "lib/Conversion/ONFToDevice/Tiles/TileOrder.h"

using namespace mlir;
using namespace moa;
using namespace moa::onf;

namespace moa::tiles {

/// The least capacity of a list, which schedules assume, and the largest. All tiles beyond the
/// capacity are visited.
static constexpr int64_t kRoom = 2048, kMostRoom = 4096;

int64_t longestListBytes(const TileContext &context) { return context.predicate ? 2 * 2 * kMostRoom : 0; }

/// Returns the capacity of a list: more than the least if the block has room.
static int64_t findListRoom(const TileContext &context) {
  int64_t room = kRoom, free = findFreeBytes(context, 0);
  while (room < kMostRoom && 2 * 2 * 2 * room <= free)
    room *= 2;
  return room;
}

ListOrder::ListOrder(const TileContext &context, ScalarCode &code, const FoldFacts &facts, const BlockRows &block,
                     Value chosen, GuardTiles &guard)
    : TileOrder(context, code, facts, block, chosen) {
  if (chosen) // not selected: nobody has written the ranges
    endTile = arith::SelectOp::create(b, code.named("end_tile"), chosen, endTile, firstTile);
  Value size = code.index(plan.shape.keys), keys = code.symbol(plan.fold.getExtent());
  std::optional<int64_t> constant = getConstantIntValue(keys);
  listRoom = constant && *constant <= kRoom * plan.shape.keys ? kRoom : findListRoom(context);
  bool isShort = constant && *constant <= listRoom * plan.shape.keys;
  Value end = arith::AddIOp::create(b, code.loc, firstTile, code.index(listRoom));
  listedEnd = isShort ? endTile : arith::MinSIOp::create(b, code.named("listed_end"), endTile, end).getResult();
  Value all = facts.statesRead ? hasAllRows() : Value();
  SmallVector<TileRange> found = loadRowRanges(guard);
  Type list = device::MembersType::get(b.getContext(), listRoom), index = b.getIndexType();
  auto collect =
      device::CollectOp::create(b, code.loc, TypeRange{list, list}, TypeRange{index, index}, firstTile, listedEnd);
  collect->setAttr("names", b.getStrArrayAttr({"partial_tiles", "full_tiles"}));
  {
    OpBuilder::InsertionGuard insertion(b);
    Block &body = collect.getBody().emplaceBlock();
    Value tile = body.addArgument(index, code.named("tile"));
    b.setInsertionPointToStart(&body);
    code.open();
    device::YieldOp::create(b, code.loc, classify(guard, tile, size, keys, found, all));
    code.close();
  }
  partialTiles = collect.getLists()[0];
  fullTiles = collect.getLists()[1];
  numListed = collect.getCounts()[0];
  Value masked = numListed;
  if (!isShort)
    masked = arith::AddIOp::create(b, code.loc, masked, arith::SubIOp::create(b, code.loc, endTile, listedEnd));
  numMasked = code.narrow(masked);
  numTiles = code.narrow(arith::AddIOp::create(b, code.named("tiles"), masked, collect.getCounts()[1]));
}

/// Returns the ranges of the terms over the block's rows. Those over keys are loaded for each tile.
SmallVector<TileRange> ListOrder::loadRowRanges(GuardTiles &guard) {
  SmallVector<TileRange> found(context.predicate->getTerms().size());
  if (guard.table)
    return found;
  Value rowTile = arith::DivUIOp::create(b, code.loc, block.first, code.index(plan.shape.rows()));
  for (auto [k, term] : llvm::enumerate(context.predicate->getTerms()))
    if (term.ofRow)
      found[k] = guard.ranges.load(code, k, rowTile, chosen);
  return found;
}

/// Returns whether some rows of the block may see a tile, but not all in full, and whether all see
/// it in full. Tiles have `size` of the `keys`; `all` tells whether all rows exist, null: irrelevant.
Values ListOrder::classify(GuardTiles &guard, Value tile, Value size, Value keys, SmallVector<TileRange> &found,
                           Value all) {
  bool clamped = code.clampsLoads;
  clampLoads(code, plan);
  Value first = arith::MulIOp::create(b, code.named("first"), tile, size);
  Value tileEnd = arith::AddIOp::create(b, code.named("end"), first, size);
  Value one = code.index(1), keysEnd = arith::MinSIOp::create(b, code.loc, tileEnd, keys);
  Value last = arith::SubIOp::create(b, code.named("last"), keysEnd, one);
  TileTruth truth;
  if (guard.table) {
    truth = guard.table->read(code, block, tile);
  } else {
    for (auto [k, term] : llvm::enumerate(context.predicate->getTerms()))
      if (!term.ofRow)
        found[k] = guard.ranges.load(code, k, tile, chosen);
    auto evaluate = [&](Value value) { return code.eval(value); };
    truth = context.predicate->emit({b, code.loc, evaluate, {block.first, block.last}, {first, last}, found});
  }
  auto inverse = [&](Value x) {
    return b.createOrFold<arith::XOrIOp>(code.loc, x, code.constant(b.getBoolAttr(true)));
  };
  Value isWhole = arith::CmpIOp::create(b, code.loc, arith::CmpIPredicate::sle, tileEnd, keys);
  Value isFull = code.both(code.both(truth.always, isWhole), all);
  Value isNotFull = inverse(isFull), isPartial = code.both(inverse(truth.never), isNotFull);
  code.clampsLoads = clamped;
  return {isPartial, isFull};
}

Value ListOrder::tileAt(Value position, std::optional<bool> masked) {
  Value most = code.index(listRoom - 1);
  auto member = [&](Value list, Value place) -> Value {
    return device::MemberOp::create(b, code.named("tile"), b.getIndexType(), list,
                                    arith::MinSIOp::create(b, code.loc, place, most));
  };
  Value full, partial;
  if (!masked || !*masked) {
    Value place =
        arith::SubIOp::create(b, code.loc, position, device::KeptOp::create(b, numMasked.getLoc(), numMasked));
    if (!masked)
      place = arith::MaxSIOp::create(b, code.loc, place, code.index(0));
    full = member(fullTiles, place);
  }
  if (!masked || *masked) {
    partial = member(partialTiles, position);
    if (listedEnd != endTile) {
      // Rarely needed, so that both stay out of the registers.
      Value count = device::KeptOp::create(b, numListed.getLoc(), numListed);
      Value rest = arith::SubIOp::create(b, code.loc, position, count);
      Value after = arith::AddIOp::create(b, code.loc, device::KeptOp::create(b, listedEnd.getLoc(), listedEnd), rest);
      Value isListed = arith::CmpIOp::create(b, code.loc, arith::CmpIPredicate::slt, position, count);
      partial = arith::SelectOp::create(b, code.named("tile"), isListed, partial, after);
    }
  }
  if (masked)
    return *masked ? partial : full;
  Value isMasked = arith::CmpIOp::create(b, code.loc, arith::CmpIPredicate::slt, position, numMasked);
  return arith::SelectOp::create(b, code.named("tile"), isMasked, partial, full);
}

} // namespace moa::tiles

int64_t moa::tileListBytes(const TilePlan &plan) {
  // Two lists of 16-bit numbers, and the counts of the warps.
  return !plan.product && tiles::readPredicate(plan) ? 2 * 2 * tiles::kRoom + 32 * 4 : 0;
}
