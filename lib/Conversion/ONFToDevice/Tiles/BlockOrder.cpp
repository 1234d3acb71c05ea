//===- BlockOrder.cpp - the rows that a block computes --------------------===//
#include "lib/Conversion/ONFToDevice/Tiles/BlockOrder.h"

using namespace mlir;
using namespace moa;
using namespace moa::onf;

namespace moa::tiles {

static Value divide(ScalarCode &code, Value x, Value y, StringRef name = "") {
  return arith::DivUIOp::create(code.b, name.empty() ? code.loc : code.named(name), x, y);
}

static Value remainder(ScalarCode &code, Value x, Value y, StringRef name = "") {
  return arith::RemUIOp::create(code.b, name.empty() ? code.loc : code.named(name), x, y);
}

/// Returns a tile of rows, counted from the last one if the schedule goes down.
static Value placeTile(ScalarCode &code, const TileContext &context, Value number) {
  if (!context.plan.shape.descending)
    return number;
  Value one = code.index(1), count = code.symbol(context.rowTiles()),
        last = arith::SubIOp::create(code.b, code.loc, count, one);
  return arith::SubIOp::create(code.b, code.named("tile"), last, number);
}

static StringRef nameOfAxis(const TileContext &context, unsigned axis) {
  return cast<StringAttr>(context.plan.nest.getNames()[axis]).getValue();
}

/// Returns the tile of rows and the outer index of a block. Outer indices go through the `count`
/// tiles of rows in waves whose key operands fit into `groupBytes`, so that the L2 cache holds them.
static std::pair<Value, Value> orderInWaves(ScalarCode &code, const TileContext &context, Value block, Value count) {
  const TilePlan &plan = context.plan;
  OpBuilder &b = context.b;
  int64_t rank = plan.nest.getExtents().size();
  SymExpr outer(1);
  for (int64_t axis = 0; axis + 1 < rank; ++axis)
    outer = outer * context.extent(axis);
  int64_t bytesPerKey = 0;
  for (const auto *operands : {&plan.keyOperands, &plan.valueOperands})
    for (const TileOperand &operand : *operands)
      bytesPerKey += operand.columns * operand.getBytes();
  Value one = code.index(1), all = code.symbol(outer);
  Value keys = b.createOrFold<arith::MaxSIOp>(code.loc, code.symbol(plan.fold.getExtent()), one);
  Value bytes = arith::MulIOp::create(b, code.loc, keys, code.index(bytesPerKey));
  Value fitting = divide(code, code.index(plan.shape.groupBytes), bytes);
  Value size = b.createOrFold<arith::MinSIOp>(code.named("per_wave"),
                                              b.createOrFold<arith::MaxSIOp>(code.loc, fitting, one), all);
  Value perWave = arith::MulIOp::create(b, code.named("blocks_per_wave"), size, count);
  Value start = arith::MulIOp::create(b, code.named("wave_start"), divide(code, block, perWave), size);
  Value left = arith::SubIOp::create(b, code.loc, all, start);
  Value members = arith::MinSIOp::create(b, code.named("wave_size"), size, left);
  Value within = remainder(code, block, perWave, "block_in_wave");
  Value tile = placeTile(code, context, divide(code, within, members, plan.shape.descending ? "" : "tile"));
  return {tile, arith::AddIOp::create(b, code.named(rank == 2 ? nameOfAxis(context, 0) : "outer_index"), start,
                                      remainder(code, within, members))};
}

BlockRows bindBlock(ScalarCode &code, const TileContext &context, Value block) {
  const TilePlan &plan = context.plan;
  OpBuilder &b = context.b;
  int64_t rank = plan.nest.getExtents().size();
  Block &body = plan.nest.getBody().front();
  // At most the number of blocks, so that divisions have 32 bits.
  Value count = code.symbol(context.rowTiles()), tile, rest;
  if (auto symbol = count.getDefiningOp<device::SymbolOp>())
    symbol->setLoc(code.named("row_tiles"));
  count = code.narrow(count);
  if (rank == 1) {
    tile = placeTile(code, context, block);
  } else if (plan.shape.groupBytes == 0) {
    tile = placeTile(code, context, remainder(code, block, count, plan.shape.descending ? "" : "tile"));
    rest = divide(code, block, count, rank == 2 ? nameOfAxis(context, 0) : "");
  } else {
    std::tie(tile, rest) = orderInWaves(code, context, block, count);
  }
  Value first = arith::MulIOp::create(b, code.named("first_" + nameOfAxis(context, rank - 1).str()), tile,
                                      code.index(plan.shape.rows()));
  first = code.narrow(first);
  Value end = arith::AddIOp::create(b, code.loc, first, code.index(plan.shape.rows() - 1));
  Value one = code.index(1), rows = code.symbol(context.rowExtent()),
        lastOfAll = arith::SubIOp::create(b, code.loc, rows, one);
  Value last = arith::MinSIOp::create(b, code.named("last_" + nameOfAxis(context, rank - 1).str()), end, lastOfAll);
  for (int64_t axis = rank - 2; axis > 0; --axis) {
    Value radix = code.symbol(context.extent(axis));
    if (!context.predicate) // tile lists leave few registers
      radix = code.narrow(radix);
    if (Operation *op = radix.getDefiningOp(); op && !getConstantIntValue(radix))
      op->setLoc(code.named(("num_" + nameOfAxis(context, axis)).str()));
    code.bind(body.getArgument(axis), code.narrow(remainder(code, rest, radix, nameOfAxis(context, axis))));
    rest = divide(code, rest, radix, axis == 1 ? nameOfAxis(context, 0) : StringRef("outer_index"));
  }
  if (rank > 1)
    code.bind(body.getArgument(0), code.narrow(rest));
  return {first, last};
}

} // namespace moa::tiles
