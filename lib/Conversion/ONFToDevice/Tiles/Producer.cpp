//===- Producer.cpp - the warpgroup that copies tiles ---------------------===//
#include "lib/Conversion/ONFToDevice/Tiles/Producer.h"
#include "lib/Conversion/ONFToDevice/Tiles/Names.h"

using namespace mlir;
using namespace moa;
using namespace moa::onf;

namespace moa::tiles {

/// Copies a tile of a product's operand, from `first` along its rows and from `column`, if given.
void TmaCopies::copyAt(const TileOperand &operand, Value first, Value column, const Ring &ring, Value stage) {
  // Terms of the row are the same for all rows of the block.
  code.open();
  code.bind(plan.rowIndex(), block.first);
  Values coordinates;
  for (auto [axis, subscript] : llvm::enumerate(ArrayRef(operand.subscripts).drop_back())) {
    Value sum = axis == operand.rowAxis ? first : Value();
    auto plus = [&](Value part) { sum = sum ? b.createOrFold<arith::AddIOp>(code.loc, sum, part) : part; };
    for (auto &[term, factor] : subscript.terms)
      if (term != operand.moving) {
        Value times = code.symbol(factor);
        plus(b.createOrFold<arith::MulIOp>(code.loc, code.eval(term), times));
      }
    if (!sum || !subscript.constant.isZero())
      plus(code.symbol(subscript.constant));
    coordinates.push_back(sum);
  }
  code.close();
  Value array = program.getBody().getArgument(cast<BlockArgument>(LoadOp(operand.load).getArray()).getArgNumber());
  device::CopyOp::create(b, code.loc, array, coordinates, column, b.getI64IntegerAttr(operand.rowAxis),
                         ExprAttr::get(b.getContext(), 1), ring.tiles, stage, ring.full, stage);
}

/// Returns an index of an operand. A computed one is named after the axis, for example `g` in
/// K : T[B, G, M, D].
static Value coordinate(ScalarCode &code, LoadOp load, unsigned axis) {
  Value index = code.eval(load.getIndex(axis).getValue());
  if (auto symbol = load.getArray().getType().getExtent(axis).getSymbol())
    nameValue(code, index, llvm::StringRef(*symbol).lower());
  return index;
}

/// Finds the parts of a tile that lie in one page each. Parts after the last key start after the end of
/// a page, so they are zeros.
void TmaCopies::prepare(Value first) {
  SmallVector<const TileOperand *> operands;
  for (const auto *list : {&plan.keyOperands, &plan.valueOperands})
    for (const TileOperand &operand : *list)
      if (operand.page)
        operands.push_back(&operand);
  places.clear();
  if (operands.empty())
    return;
  Value end = code.symbol(plan.fold.getExtent()), one = code.index(1);
  Value last = arith::SubIOp::create(b, code.named("last_key"), end, one);
  // Operands with equal parts share what they load.
  llvm::MapVector<int64_t, SmallVector<const TileOperand *>> byRows;
  for (const TileOperand *operand : operands)
    byRows[partRows(plan, *operand)].push_back(operand);
  for (auto &[rows, list] : byRows)
    for (int64_t part = 0; part * rows < plan.shape.keys; ++part) {
      code.open();
      Value start =
          part == 0 ? first
                    : arith::AddIOp::create(b, code.named("part_start"), first, code.index(part * rows)).getResult();
      Value key = arith::MinSIOp::create(b, code.named("key"), start, last);
      Value exists = arith::CmpIOp::create(b, code.loc, arith::CmpIPredicate::sle, start, last);
      code.bind(plan.keyIndex(), key);
      for (const TileOperand *operand : list) {
        Value page = code.index(*operand->page);
        Value row = arith::SelectOp::create(b, code.named("page_row"), exists,
                                            arith::RemUIOp::create(b, code.loc, key, page), page);
        Values place;
        for (unsigned axis = 0; axis + 1 < operand->load.getArray().getType().getRank(); ++axis)
          place.push_back(axis == operand->rowAxis ? row : coordinate(code, operand->load, axis));
        places[operand->load].push_back(std::move(place));
      }
      code.close();
    }
}

void TmaCopies::copyPages(const TileOperand &operand, const Ring &ring, Value stage) {
  int64_t rows = partRows(plan, operand);
  Value array = program.getBody().getArgument(cast<BlockArgument>(operand.load.getArray()).getArgNumber());
  auto &parts = places[operand.load];
  for (auto [part, place] : llvm::enumerate(parts))
    device::CopyOp::create(b, code.loc, array, place, Value(), b.getI64IntegerAttr(operand.rowAxis),
                           ExprAttr::get(b.getContext(), operand.step), ring.tiles, stage, ring.full, stage,
                           parts.size() == 1 ? Value() : code.index(part * rows),
                           parts.size() == 1 ? IntegerAttr() : b.getI64IntegerAttr(rows));
}

void TmaCopies::copy(const TileOperand &operand, Value first, const Ring &ring, Value stage) {
  if (operand.page)
    return copyPages(operand, ring, stage);
  if (operand.moving)
    return copyAt(operand, first, Value(), ring, stage);
  Values coordinates;
  Value rows = operand.isTransposed ? code.index(0) : first;
  for (const auto &[term, factor] : operand.offset.terms)
    rows = b.createOrFold<arith::AddIOp>(code.loc, rows,
                                         b.createOrFold<arith::MulIOp>(code.loc, code.eval(term), code.symbol(factor)));
  for (unsigned axis = 0; axis + 1 < operand.load.getArray().getType().getRank(); ++axis)
    coordinates.push_back(axis == operand.rowAxis ? rows : coordinate(code, operand.load, axis));
  Value array = program.getBody().getArgument(cast<BlockArgument>(operand.load.getArray()).getArgNumber());
  device::CopyOp::create(b, code.loc, array, coordinates, operand.isTransposed ? first : Value(),
                         b.getI64IntegerAttr(operand.rowAxis), ExprAttr::get(b.getContext(), operand.step), ring.tiles,
                         stage, ring.full, stage);
}

void TmaCopies::copyLeft(Value first, const Ring &ring, Value stage) {
  const TileOperand &left = plan.product->left;
  copyAt(left, left.isTransposed ? first : block.first, left.isTransposed ? block.first : first, ring, stage);
}

Producer::Numbers Producer::numbersOf(Value n) {
  auto [stage, parity] = rings.stageOf(n);
  Value tile = order.tileAt(n, std::nullopt);
  Value free = arith::SubIOp::create(b, code.named("empty_parity"), code.index(1), parity);
  Value first = arith::MulIOp::create(b, code.named(nameOfFirstKey(plan)), tile, code.index(plan.shape.keys));
  return {stage, free, first};
}

void Producer::fill(const Numbers &at, ArrayRef<TileOperand> operands, ArrayRef<Ring> into) {
  for (auto [operand, ring] : llvm::zip_equal(operands, into)) {
    device::WaitOp::create(b, code.loc, ring.empty, at.stage, at.free);
    copies.copy(operand, at.first, ring, at.stage);
  }
}

void Producer::run() {
  // In a persistent kernel, the keys of the first tile arrive while consumers end the previous
  // block.
  Value start;
  if (isPersistent) {
    start = part.readBegin(code);
    Value some = arith::CmpIOp::create(b, code.loc, arith::CmpIPredicate::sgt, part.end, start);
    code.when(some, [&] { fill(numbersOf(start), plan.keyOperands, rings.keys); });
    device::AwaitConsumersOp::create(b, code.loc);
  }
  Value zero = code.index(0);
  for (auto [operand, ring] : llvm::zip_equal(plan.rowOperands, rings.rows))
    copies.copy(operand, block.first, ring, zero);
  for (auto [contraction, ring] : llvm::zip_equal(plan.prologue, rings.prologue))
    copies.copy(contraction.right, zero, ring, zero);
  if (!start)
    start = part.readBegin(code);
  code.loop(start, part.end, nameOfPosition(plan), [&](Value n) {
    Numbers at = numbersOf(n);
    copies.prepare(at.first);
    if (plan.product) {
      device::WaitOp::create(b, code.loc, rings.weights.empty, at.stage, at.free);
      copies.copyLeft(at.first, rings.weights, at.stage);
    }
    auto fillKeys = [&] { fill(at, plan.keyOperands, rings.keys); };
    if (isPersistent)
      code.when(arith::CmpIOp::create(b, code.loc, arith::CmpIPredicate::sgt, n, start), fillKeys);
    else
      fillKeys();
    fill(at, plan.valueOperands, rings.values);
  });
  if (isPersistent)
    rings.complete(start, part.end, /*isProducer=*/true);
}

} // namespace moa::tiles
