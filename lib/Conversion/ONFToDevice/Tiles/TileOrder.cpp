//===- TileOrder.cpp - the tiles of keys that a block visits --------------===//
#include "lib/Conversion/ONFToDevice/Tiles/TileOrder.h"
#include "lib/Analysis/Intervals.h"
#include "lib/Conversion/ONFToDevice/Tiles/Names.h"
#include "mlir/Dialect/Affine/Utils.h"

using namespace mlir;
using namespace moa;
using namespace moa::onf;

namespace moa::tiles {

static bool isZero(Value value) { return matchPattern(value, m_Zero()); }

/// Returns the larger or the smaller of two indices, without an op if they are the same symbol.
template <typename Op> static Value extreme(ScalarCode &code, Value x, Value y) {
  auto s = x.getDefiningOp<device::SymbolOp>(), t = y.getDefiningOp<device::SymbolOp>();
  return s && t && s.getExpr() == t.getExpr() ? x : code.b.createOrFold<Op>(code.loc, x, y);
}

std::pair<Value, Value> TileOrder::interval(AffineMap lower, AffineMap upper) {
  Values operands{block.first, block.last};
  for (Value bound : plan.fold.getBounds())
    operands.push_back(code.eval(bound));
  Value low = code.index(0), high = code.symbol(plan.fold.getExtent());
  if (auto values = affine::expandAffineMap(b, code.loc, lower, operands))
    for (Value value : *values)
      low = extreme<arith::MaxSIOp>(code, low, value);
  auto [bounds, conditions] = splitConditions(upper);
  if (auto values = affine::expandAffineMap(b, code.loc, bounds, operands))
    for (Value value : *values)
      high = extreme<arith::MinSIOp>(code, high, value);
  return {low, code.zeroUnless(conditions, operands, high)};
}

TileOrder::TileOrder(const TileContext &context, ScalarCode &code, const FoldFacts &facts, const BlockRows &block,
                     Value chosen)
    : BlockPart(context, code), facts(facts), block(block), chosen(chosen) {
  Value low = code.index(0), high = code.symbol(plan.fold.getExtent());
  if (plan.fold.getPieces()) {
    Value from, to;
    for (auto piece : plan.fold.getPieces()->getAsRange<PieceAttr>()) {
      auto [l, h] = interval(piece.getVisitLower(), piece.getVisitUpper());
      from = from ? extreme<arith::MinSIOp>(code, from, l) : l;
      to = to ? extreme<arith::MaxSIOp>(code, to, h) : h;
    }
    low = from ? from : code.index(0);
    high = to ? to : code.index(0);
    nameValue(code, low, "begin_any"); // keys that some row of the block sees
    nameValue(code, high, "end_any");
  }
  Value size = code.index(plan.shape.keys), zero = code.index(0);
  Value more = code.index(plan.shape.keys - 1);
  if (isZero(low)) {
    firstTile = zero;
    Value count = b.createOrFold<arith::MaxSIOp>(code.loc, high, zero);
    Value up = arith::AddIOp::create(b, code.loc, count, more);
    endTile = code.narrow(arith::DivUIOp::create(b, code.named("end_tile"), up, size));
    return;
  }
  // If there are no keys, the range of tiles must be empty, wherever its ends are.
  Value some = arith::CmpIOp::create(b, code.named("has_tiles"), arith::CmpIPredicate::slt, low, high);
  firstTile =
      arith::DivUIOp::create(b, code.named("first_tile"), arith::SelectOp::create(b, code.loc, some, low, zero), size);
  Value up = arith::AddIOp::create(b, code.loc, high, more);
  Value end =
      arith::DivUIOp::create(b, code.named("end_or_none"), arith::SelectOp::create(b, code.loc, some, up, zero), size);
  firstTile = code.narrow(firstTile);
  endTile = code.narrow(arith::SelectOp::create(b, code.named("end_tile"), some, end, firstTile));
}

Value TileOrder::firstKeyAt(Value position, std::optional<bool> masked) {
  Value size = code.index(plan.shape.keys), tile = tileAt(position, masked);
  return arith::MulIOp::create(b, code.named(nameOfFirstKey(plan)), tile, size);
}

/// Returns whether all rows of the block exist. Rows beyond the last may compute anything, but must
/// not read memory.
Value TileOrder::hasAllRows() {
  Value end = arith::AddIOp::create(b, code.loc, block.first, code.index(plan.shape.rows()));
  return arith::CmpIOp::create(b, code.named("has_all_rows"), arith::CmpIPredicate::sle, end,
                               code.symbol(context.rowExtent()));
}

IntervalOrder::IntervalOrder(const TileContext &context, ScalarCode &code, const FoldFacts &facts,
                             const BlockRows &block, Value chosen)
    : TileOrder(context, code, facts, block, chosen) {
  // The tiles of most products have zeros where the guard excludes elements.
  if (plan.product && !plan.product->isMasked) {
    firstFull = firstTile;
    endFull = endTile;
    numTiles = b.createOrFold<arith::SubIOp>(code.named("tiles"), endTile, firstTile);
    numMasked = code.index(0);
    return;
  }
  bool isGuarded = !plan.fold.getBody().front().getOps<GuardOp>().empty();
  Value low = code.index(0), high = code.symbol(plan.fold.getExtent());
  if (isGuarded) {
    high = low; // no tile is known to be full
    auto pieces = plan.fold.getPieces();
    if (pieces && pieces->size() == 1)
      if (auto piece = cast<PieceAttr>((*pieces)[0]); piece.getFull())
        std::tie(low, high) = interval(piece.getFullLower(), piece.getFullUpper());
    nameValue(code, low, "begin_all"); // keys that every row sees
    nameValue(code, high, "end_all");
  }
  Value zero = code.index(0), size = code.index(plan.shape.keys);
  auto at = [&](Value key, int64_t add, StringRef name) -> Value {
    if (isZero(key) && add < plan.shape.keys)
      return zero;
    auto larger = key.getDefiningOp<arith::MaxSIOp>();
    bool isPositive = larger && (isZero(larger.getLhs()) || isZero(larger.getRhs()));
    Value positive = isPositive ? key : b.createOrFold<arith::MaxSIOp>(code.loc, key, zero);
    Value sum = b.createOrFold<arith::AddIOp>(code.loc, positive, code.index(add));
    return arith::DivUIOp::create(b, code.named(name), sum, size);
  };
  // All operands are at least 0.
  auto between = [&](Value value, Value least, Value most, StringRef name) -> Value {
    Value up = isZero(least) ? value : b.createOrFold<arith::MaxSIOp>(code.loc, value, least);
    return isZero(up) ? up : arith::MinSIOp::create(b, code.named(name), up, most).getResult();
  };
  firstFull = between(at(low, plan.shape.keys - 1, "tile"), firstTile, endTile, "first_full");
  endFull = between(at(high, 0, "tile"), firstFull, endTile, "end_full");
  auto fullOnlyIf = [&](Value condition) {
    firstFull = arith::SelectOp::create(b, code.named("first_full"), condition, firstFull, endTile);
    endFull = arith::SelectOp::create(b, code.named("end_full"), condition, endFull, endTile);
  };
  if (Value ordered = scoresKeepOrder())
    fullOnlyIf(ordered);
  if (facts.statesRead)
    fullOnlyIf(hasAllRows());
  firstFull = code.narrow(firstFull);
  endFull = code.narrow(endFull);
  numTiles = b.createOrFold<arith::SubIOp>(code.named("tiles"), endTile, firstTile);
  Value full = b.createOrFold<arith::SubIOp>(code.loc, endFull, firstFull);
  numMasked = code.narrow(b.createOrFold<arith::SubIOp>(code.named("masked_tiles"), numTiles, full));
}

/// Returns whether the factors of integer scores keep the order: otherwise these have no full tiles.
/// Null: there are none.
Value IntervalOrder::scoresKeepOrder() {
  auto isRead = [&](auto pair) { return std::get<0>(pair).type.isIndex() && std::get<1>(pair).value; };
  auto integers = llvm::make_filter_range(llvm::zip(plan.folded.scores, facts.scaledScores), isRead);
  if (integers.empty())
    return Value();
  auto all = [&] {
    Value ordered;
    for (auto [score, product] : integers)
      ordered = code.both(ordered, keepsOrder(code, code.eval(product.factor)));
    return Values{ordered};
  };
  // The factor's loads may be in bounds only if the nest is selected.
  auto none = [&] { return Values{code.constant(b.getBoolAttr(false))}; };
  return chosen ? code.branch(chosen, {b.getI1Type()}, all, none)[0] : all()[0];
}

Value IntervalOrder::tileAt(Value position, std::optional<bool> masked) {
  if (!masked) {
    Value isMasked = arith::CmpIOp::create(b, code.loc, arith::CmpIPredicate::slt, position, numMasked);
    Value full = tileAt(position, false), partial = tileAt(position, true);
    return arith::SelectOp::create(b, code.named("tile"), isMasked, partial, full);
  }
  auto add = [&](Value x, Value y) { return b.createOrFold<arith::AddIOp>(code.loc, x, y); };
  auto sub = [&](Value x, Value y) { return b.createOrFold<arith::SubIOp>(code.loc, x, y); };
  if (!*masked)
    return add(firstFull, sub(position, numMasked));
  Value front = b.createOrFold<arith::SubIOp>(code.named("tiles_in_front"), firstFull, firstTile);
  if (isZero(front))
    return add(endFull, position);
  Value inFront = arith::CmpIOp::create(b, code.loc, arith::CmpIPredicate::slt, position, front);
  Value after = add(endFull, sub(position, front)), before = add(firstTile, position);
  return arith::SelectOp::create(b, code.named("tile"), inFront, before, after);
}

std::unique_ptr<TileOrder> orderTiles(const TileContext &context, ScalarCode &code, const FoldFacts &facts,
                                      const BlockRows &block, Value chosen, std::optional<GuardTiles> &guard) {
  if (guard)
    return std::make_unique<ListOrder>(context, code, facts, block, chosen, *guard);
  return std::make_unique<IntervalOrder>(context, code, facts, block, chosen);
}

} // namespace moa::tiles
