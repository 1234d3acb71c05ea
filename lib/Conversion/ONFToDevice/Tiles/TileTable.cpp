//===- TileTable.cpp - a guard's tiles, from its pairs --------------------===//
//
// Ranges tell nothing about a guard that reads memory at every pair of a row and a key. For
// example, a mask array, or the ancestors in a tree. A kernel launched before evaluates the guard
// at the pairs of every tile that ranges leave open. It stores flags per 16 rows and tile of keys
// in the workspace: whether the guard holds anywhere, and whether it fails anywhere. So the block's
// lists of tiles are exact.
//
// The table has the same number of columns for any number of keys, so that its size is proportional
// to the rows alone. If there are more tiles, a column stands for several neighbours.
//
//===----------------------------------------------------------------------===//
#include "lib/Conversion/ONFToDevice/Tiles/GuardTiles.h"
#include "lib/Conversion/ONFToDevice/Tiles/Maps.h"

using namespace mlir;
using namespace moa;
using namespace moa::onf;

namespace moa::tiles {

/// Columns of the table. Up to 65,536 keys, each tile of 128 keys has its own.
static constexpr int64_t kColumns = 520;
/// Rows of an entry: those of a warp in a fragment.
static constexpr int64_t kStrip = 16;
/// Rows and threads of a block: one warpgroup.
static constexpr int64_t kRows = 64, kThreads = 128;
/// Columns that a warp evaluates at a time.
static constexpr int64_t kStep = 16;
/// Bits of an entry.
static constexpr int64_t kHolds = 1, kFails = 2;

TileTable::TileTable(const TileContext &context, TileRanges &ranges) : TilePart(context), ranges(ranges) {
  table.axes = axesOf(context.predicate->getGuard(), plan.nest);
  table.tiles = tilesOf(context.rowExtent(), kStrip);
  SmallVector<SymExpr> extents;
  for (unsigned axis : table.axes)
    extents.push_back(context.extent(axis));
  extents.push_back(table.tiles);
  extents.push_back(SymExpr(kColumns));
  auto type = ArrayType::get(b.getContext(), extents, b.getI8Type());
  table.array = program.addWorkspace(context.freshName("seen_tiles"), type);
}

SymExpr TileTable::tilesPerColumn() { return SymExpr::floorDiv(context.keyTiles(), SymExpr(kColumns)) + SymExpr(1); }

/// Returns the place of a strip's first column.
Value TileTable::tablePlace(ScalarCode &code, Value strip) {
  Value columns = code.index(kColumns);
  return b.createOrFold<arith::MulIOp>(code.loc, ranges.flatPlace(code, table, strip), columns);
}

TileTruth TileTable::read(ScalarCode &code, const BlockRows &block, Value tile) {
  Value column = arith::DivUIOp::create(b, code.named("column"), tile, code.symbol(tilesPerColumn()));
  Value strip = arith::DivUIOp::create(b, code.named("strip"), block.first, code.index(kStrip));
  Value last = arith::DivUIOp::create(b, code.loc, block.last, code.index(kStrip));
  Value bits;
  for (int64_t k = 0; k != plan.shape.rows() / kStrip; ++k) {
    Value next =
        arith::MinSIOp::create(b, code.loc, b.createOrFold<arith::AddIOp>(code.loc, strip, code.index(k)), last);
    Value place = b.createOrFold<arith::AddIOp>(code.loc, tablePlace(code, next), column);
    Value number = code.convert(device::LoadOp::create(b, code.loc, b.getI8Type(), table.array, place), b.getI32Type());
    bits = bits ? arith::OrIOp::create(b, code.named("seen"), bits, number).getResult() : number;
  }
  auto lacks = [&](int64_t bit) -> Value {
    Value masked = arith::AndIOp::create(b, code.loc, bits, code.constant(b.getI32IntegerAttr(bit)));
    return arith::CmpIOp::create(b, code.loc, arith::CmpIPredicate::eq, masked, code.constant(b.getI32IntegerAttr(0)));
  };
  return {lacks(kHolds), lacks(kFails)};
}

/// Returns, per row and lane, whether the guard holds, and whether it fails, at some key from
/// `first` on. Rows and keys are clamped to the last ones.
Values TileTable::evaluatePairs(ScalarCode &code, const BlockRows &block, Value first) {
  Type truth = b.getI1Type();
  Values seen = mapAtOnce(code, "seen", {}, Over::tile(kStep), {truth, truth}, [&](ValueRange, ValueRange at) {
    Value row = b.createOrFold<arith::AddIOp>(code.loc, block.first, at[0]);
    Value key = b.createOrFold<arith::AddIOp>(code.loc, first, at[1]);
    Value one = code.index(1), keys = code.symbol(plan.fold.getExtent());
    Value lastKey = arith::SubIOp::create(b, code.loc, keys, one);
    code.bind(plan.rowIndex(), arith::MinSIOp::create(b, code.named("row"), row, block.last));
    code.bind(plan.keyIndex(), arith::MinSIOp::create(b, code.named("key"), key, lastKey));
    Value holds = code.eval(context.predicate->getGuard());
    Value fails = arith::XOrIOp::create(b, code.loc, holds, code.constant(b.getBoolAttr(true)));
    return Values{holds, fails};
  });
  for (Value &side : seen)
    side = device::ReduceOp::create(b, code.named("seen"), typeOver(Over::parts(), truth), Monoid::or_, side);
  return seen;
}

Values TileTable::joinSeen(ScalarCode &code, ValueRange x, ValueRange y) {
  Values inputs(x);
  llvm::append_range(inputs, y);
  return map(code, "seen", inputs, Over::parts(), {b.getI1Type(), b.getI1Type()}, [&](ValueRange in, ValueRange) {
    auto either = [&](Value p, Value q) -> Value { return arith::OrIOp::create(b, code.loc, p, q); };
    return Values{either(in[0], in[2]), either(in[1], in[3])};
  });
}

/// Adds the pairs of a tile, a few columns at a time. A warp skips the rest after the guard has
/// both held and failed.
Values TileTable::addPairs(ScalarCode &code, const BlockRows &block, Value first, ValueRange olds) {
  Value steps = code.index(plan.shape.keys / kStep);
  return code.loop(code.index(0), steps, olds, {"step", "holds", "fails"}, [&](Value step, ValueRange seen) {
    Values known;
    for (Value side : seen)
      known.push_back(device::AnyOp::create(b, code.named("any"), side));
    Value open = map(code, "open", known, Over::parts(), {b.getI1Type()}, [&](ValueRange in, ValueRange) {
      Value both = arith::AndIOp::create(b, code.loc, in[0], in[1]);
      return Values{arith::XOrIOp::create(b, code.loc, both, code.constant(b.getBoolAttr(true)))};
    })[0];
    return ifAny(code, open, seen, [&] {
      Value start = arith::AddIOp::create(b, code.named("start"), first,
                                          arith::MulIOp::create(b, code.loc, step, code.index(kStep)));
      return joinSeen(code, seen, evaluatePairs(code, block, start));
    });
  });
}

/// Adds one tile to the flags of the tiles before it.
Values TileTable::addTile(ScalarCode &code, const BlockRows &block, Value tile, ValueRange olds) {
  Value keys = code.symbol(plan.fold.getExtent());
  Value first = arith::MulIOp::create(b, code.named("first"), tile, code.index(plan.shape.keys));
  if (!context.predicate->isUseful())
    return addPairs(code, block, first, olds);
  // If ranges decide the tile, none of its pairs is needed.
  clampLoads(code, plan);
  Value end =
      arith::MinSIOp::create(b, code.loc, arith::AddIOp::create(b, code.loc, first, code.index(plan.shape.keys)), keys);
  Value lastKey = arith::SubIOp::create(b, code.named("last"), end, code.index(1));
  SmallVector<TileRange> found;
  Value rowTile = arith::DivUIOp::create(b, code.loc, block.first, code.index(plan.shape.rows()));
  for (auto [k, term] : llvm::enumerate(context.predicate->getTerms()))
    found.push_back(ranges.load(code, k, term.ofRow ? rowTile : tile, Value()));
  TileTruth truth = context.predicate->emit(
      {b, code.loc, [&](Value value) { return code.eval(value); }, {block.first, block.last}, {first, lastKey}, found});
  code.clampsLoads = false;
  Value isKnown = b.createOrFold<arith::OrIOp>(code.named("is_known"), truth.never, truth.always);
  Values types(olds);
  return code.branch(
      isKnown, ValueRange(types).getTypes(),
      [&] {
        auto fill = [&](Value value) -> Value {
          return device::FillOp::create(b, code.named("seen"), typeOver(Over::parts(), b.getI1Type()), value);
        };
        return joinSeen(code, olds, {fill(truth.always), fill(truth.never)});
      },
      [&] { return addPairs(code, block, first, olds); });
}

/// Stores each warp's flags for its rows.
void TileTable::storeSeen(ScalarCode &code, const BlockRows &block, Values seen, Value column) {
  Value rowsEnd = code.symbol(context.rowExtent());
  for (Value &side : seen)
    side = device::AnyOp::create(b, code.named("any"), side);
  // The first of a warp's elements writes for all of them.
  map(code, "", seen, Over::parts(), {}, [&](ValueRange in, ValueRange at) {
    Value row = arith::AddIOp::create(b, code.loc, block.first, at[0]);
    auto isZero = [&](Value x) -> Value {
      return arith::CmpIOp::create(b, code.loc, arith::CmpIPredicate::eq, x, code.index(0));
    };
    Value isFirstRow = isZero(arith::RemUIOp::create(b, code.loc, at[0], code.index(kStrip)));
    Value writes = code.both(isZero(at[1]), isFirstRow);
    writes = code.both(writes, arith::CmpIOp::create(b, code.loc, arith::CmpIPredicate::slt, row, rowsEnd));
    code.when(writes, [&] {
      auto bit = [&](Value condition, int64_t number) -> Value {
        Value zero = code.constant(b.getI8IntegerAttr(0)), flag = code.constant(b.getI8IntegerAttr(number));
        return arith::SelectOp::create(b, code.loc, condition, flag, zero);
      };
      Value fails = bit(in[1], kFails), bits = arith::OrIOp::create(b, code.loc, bit(in[0], kHolds), fails);
      Value strip = arith::DivUIOp::create(b, code.loc, row, code.index(kStrip));
      device::StoreOp::create(b, code.loc, bits, table.array,
                              b.createOrFold<arith::AddIOp>(code.loc, tablePlace(code, strip), column));
    });
    return Values();
  });
}

/// Emits a kernel with a warpgroup per 64 rows and column of the table, for every index of the axes
/// that the guard depends on.
void TileTable::emit(const IRMapping &arrays) {
  SymExpr keyTiles = context.keyTiles();
  SymExpr perColumn = tilesPerColumn();
  SymExpr columns = SymExpr::floorDiv(keyTiles + perColumn - SymExpr(1), perColumn);
  SymExpr rowBlocks = tilesOf(context.rowExtent(), kRows);
  SymExpr blocks = rowBlocks * columns;
  for (unsigned axis : table.axes)
    blocks = context.extent(axis) * blocks;
  OpBuilder::InsertionGuard guard(b);
  beginKernel(b, plan.nest, program, Twine(context.number) + "_tiles", blocks, kThreads);
  ScalarCode code(b, arrays, plan.nest.getLoc());
  Value rest = device::BlockOp::create(b, code.loc, b.getIndexType());
  Value column = code.takeDigit(rest, code.symbol(columns), "column");
  Value rowBlock = table.axes.empty() ? rest : code.takeDigit(rest, code.symbol(rowBlocks), "block");
  ranges.bindAxes(code, table.axes, rest);
  Value first = arith::MulIOp::create(b, code.named("first_row"), rowBlock, code.index(kRows));
  Value one = code.index(1), rows = code.symbol(context.rowExtent()),
        lastOfAll = arith::SubIOp::create(b, code.loc, rows, one);
  Value lastOfBlock = arith::AddIOp::create(b, code.loc, first, code.index(kRows - 1));
  Value last = arith::MinSIOp::create(b, code.named("last_row"), lastOfBlock, lastOfAll);
  BlockRows block{first, last};
  Value count = code.symbol(perColumn);
  Value from = arith::MulIOp::create(b, code.named("from"), column, count);
  Value all = code.symbol(keyTiles);
  Value to = arith::MinSIOp::create(b, code.named("to"), arith::AddIOp::create(b, code.loc, from, count), all);
  Value nothing = device::FillOp::create(b, code.named("seen"), typeOver(Over::parts(), b.getI1Type()),
                                         code.constant(b.getBoolAttr(false)));
  ranges.emitIfChosen(code, Value(), [&] {
    Values seen = code.loop(from, to, {nothing, nothing}, {"tile", "holds", "fails"},
                            [&](Value tile, ValueRange olds) { return addTile(code, block, tile, olds); });
    storeSeen(code, block, seen, column);
  });
}

} // namespace moa::tiles
