//===- Tiles.cpp - block setup and producer of tile kernels ---------------===//
#include "lib/Analysis/Intervals.h"
#include "lib/Conversion/ONFToDevice/TileKernel.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Affine/Utils.h"

using namespace mlir;
using namespace moa;
using namespace moa::onf;

namespace moa::tiles {

//===----------------------------------------------------------------------===//
// The block
//===----------------------------------------------------------------------===//

std::string TileKernel::tiles() {
  return tilesOf(*SymExpr::parse(extent(plan.nest.getExtents().size() - 1)), plan.shape.rows()).str();
}

Ring TileKernel::makeRing(ScalarCode &code, StringRef name, int64_t stages, int64_t rows, int64_t columns, Type element,
                          bool withEmpty, bool isOdd) {
  MLIRContext *context = b.getContext();
  Ring ring;
  int64_t bytes = element.getIntOrFloatBitWidth() / 8;
  auto type = RingType::get(context, stages, {rows, padded(columns, bytes)}, element);
  auto named = [&](const char *what) { return code.named(name.str() + what); };
  ring.tiles = device::SharedOp::create(b, named("_ring"), type);
  ring.full = device::BarriersOp::create(b, named("_full"), BarriersType::get(context, stages, 1), isOdd);
  // One arrival per consumer warp.
  if (withEmpty)
    ring.empty =
        device::BarriersOp::create(b, named("_empty"), BarriersType::get(context, stages, 4 * plan.shape.warpgroups));
  return ring;
}

void TileKernel::bindBlock(ScalarCode &code) {
  int64_t rank = plan.nest.getExtents().size();
  Block &body = plan.nest.getBody().front();
  auto nameOf = [&](unsigned axis) { return cast<StringAttr>(plan.nest.getNames()[axis]).getValue(); };
  Value block = findBlock(code);
  // At most the number of blocks, so that divisions have 32 bits.
  Value count = code.symbol(tiles()), tile, rest;
  if (auto symbol = count.getDefiningOp<device::SymbolOp>())
    symbol->setLoc(code.named("row_tiles"));
  count = code.narrow(count);
  auto divide = [&](Value x, Value y, StringRef name) -> Value {
    return arith::DivUIOp::create(b, name.empty() ? code.loc : code.named(name), x, y);
  };
  auto remainder = [&](Value x, Value y, StringRef name) -> Value {
    return arith::RemUIOp::create(b, name.empty() ? code.loc : code.named(name), x, y);
  };
  bool descending = plan.shape.descending;
  auto place = [&](Value number) { return descending ? fromLast(code, number) : number; };
  if (rank == 1 || plan.shape.groupBytes == 0) {
    tile = place(rank == 1 ? block : remainder(block, count, descending ? "" : "tile"));
    rest = rank == 1 ? Value() : divide(block, count, rank == 2 ? nameOf(0) : "");
  } else {
    // Outer indices go through the tiles of rows in waves whose key operands fit into `groupBytes`,
    // so that the L2 cache holds them.
    SymExpr outer(1);
    for (int64_t axis = 0; axis + 1 < rank; ++axis)
      outer = outer * *SymExpr::parse(extent(axis));
    int64_t bytesPerKey = 0;
    for (const auto *operands : {&plan.keyOperands, &plan.valueOperands})
      for (const TileOperand &operand : *operands)
        bytesPerKey += operand.columns * operand.getBytes();
    Value one = code.index(1), all = code.symbol(outer.str());
    Value keys = b.createOrFold<arith::MaxSIOp>(code.loc, code.symbol(plan.fold.getExtent()), one);
    Value bytes = arith::MulIOp::create(b, code.loc, keys, code.index(bytesPerKey));
    Value fitting = divide(code.index(plan.shape.groupBytes), bytes, "");
    Value size = b.createOrFold<arith::MinSIOp>(code.named("per_wave"),
                                                b.createOrFold<arith::MaxSIOp>(code.loc, fitting, one), all);
    Value perWave = arith::MulIOp::create(b, code.named("blocks_per_wave"), size, count);
    Value start = arith::MulIOp::create(b, code.named("wave_start"), divide(block, perWave, ""), size);
    Value left = arith::SubIOp::create(b, code.loc, all, start);
    Value members = arith::MinSIOp::create(b, code.named("wave_size"), size, left);
    Value within = remainder(block, perWave, "block_in_wave");
    tile = place(divide(within, members, descending ? "" : "tile"));
    rest = arith::AddIOp::create(b, code.named(rank == 2 ? nameOf(0) : "outer_index"), start,
                                 remainder(within, members, ""));
  }
  firstRow =
      arith::MulIOp::create(b, code.named("first_" + nameOf(rank - 1).str()), tile, code.index(plan.shape.rows()));
  firstRow = code.narrow(firstRow);
  Value end = arith::AddIOp::create(b, code.loc, firstRow, code.index(plan.shape.rows() - 1));
  Value one = code.index(1), rows = code.symbol(extent(rank - 1)), last = arith::SubIOp::create(b, code.loc, rows, one);
  lastRow = arith::MinSIOp::create(b, code.named("last_" + nameOf(rank - 1).str()), end, last);
  for (int64_t axis = rank - 2; axis > 0; --axis) {
    Value radix = code.symbol(extent(axis));
    if (!predicate) // tile lists leave few registers
      radix = code.narrow(radix);
    if (Operation *op = radix.getDefiningOp(); op && !getConstantIntValue(radix))
      op->setLoc(code.named(("num_" + nameOf(axis)).str()));
    code.bind(body.getArgument(axis), code.narrow(remainder(rest, radix, nameOf(axis))));
    rest = divide(rest, radix, axis == 1 ? nameOf(0) : StringRef("outer_index"));
  }
  if (rank > 1)
    code.bind(body.getArgument(0), code.narrow(rest));
}

/// Rebinds the block's numbers for the epilogue: they are reread from shared memory, and the
/// warpgroup's number is computed again. Hence none of them takes a register while the tiles run.
void TileKernel::recallBlock(ScalarCode &code) {
  auto recall = [&](Value number) -> Value {
    Operation *op = number.getDefiningOp();
    if (!op || getConstantIntValue(number) || isa<device::BlockOp>(op))
      return number;
    auto name = dyn_cast<NameLoc>(number.getLoc());
    Location place = name ? code.named(("kept_" + name.getName().getValue()).str()) : code.loc;
    recalled.push_back(device::KeptOp::create(b, place, number));
    return recalled.back();
  };
  for (BlockArgument axis : plan.nest.getBody().getArguments().drop_back())
    code.bind(axis, recall(code.eval(axis)));
  warpgroup = device::WarpgroupOp::create(b, code.named("own_warpgroup"), b.getIndexType(),
                                          /*again=*/true);
  Value offset = arith::MulIOp::create(b, code.named("own_warpgroup_row"), warpgroup, code.index(64));
  rowBase = arith::AddIOp::create(b, code.named("own_row_base"), recall(firstRow), offset);
}

Value TileKernel::fromLast(ScalarCode &code, Value number) {
  Value one = code.index(1), count = code.symbol(tiles()), last = arith::SubIOp::create(b, code.loc, count, one);
  return arith::SubIOp::create(b, code.named("tile"), last, number);
}

static bool isZero(Value value) { return matchPattern(value, m_Zero()); }

/// Returns the larger or the smaller of two indices, without an op if they are the same symbol.
template <typename Op> static Value extreme(ScalarCode &code, Value x, Value y) {
  auto s = x.getDefiningOp<device::SymbolOp>(), t = y.getDefiningOp<device::SymbolOp>();
  return s && t && s.getExpr() == t.getExpr() ? x : code.b.createOrFold<Op>(code.loc, x, y);
}

std::pair<Value, Value> TileKernel::interval(ScalarCode &code, AffineMap lower, AffineMap upper) {
  Values operands{firstRow, lastRow};
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

/// Names a computed value that has no name.
static void nameValue(ScalarCode &code, Value value, StringRef name) {
  Operation *op = value.getDefiningOp();
  if (op && !isa<NameLoc>(op->getLoc()) && !isa<device::SymbolOp>(op) && !getConstantIntValue(value))
    op->setLoc(code.named(name));
}

/// Finds the tiles of keys that some row of the block needs.
void TileKernel::findRange(ScalarCode &code) {
  Value low = code.index(0), high = code.symbol(plan.fold.getExtent());
  if (plan.fold.getPieces()) {
    Value from, to;
    for (auto piece : plan.fold.getPieces()->getAsRange<PieceAttr>()) {
      auto [l, h] = interval(code, piece.getVisitLower(), piece.getVisitUpper());
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

/// Finds the tiles of keys that every row of the block sees, a contiguous part of the others.
void TileKernel::findFullRange(ScalarCode &code) {
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
        std::tie(low, high) = interval(code, piece.getFullLower(), piece.getFullUpper());
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
  // Scores of integers have no full tiles unless their factor keeps the order.
  auto isRead = [&](auto pair) { return std::get<0>(pair).type.isIndex() && std::get<1>(pair).value; };
  auto integers = llvm::make_filter_range(llvm::zip(plan.folded.scores, scaledScores), isRead);
  if (!integers.empty()) {
    auto all = [&] {
      Value ordered;
      for (auto [score, product] : integers)
        ordered = code.both(ordered, keepsOrder(code, code.eval(product.factor)));
      return Values{ordered};
    };
    // The factor's loads may be in bounds only if the nest is selected.
    auto none = [&] { return Values{code.constant(b.getBoolAttr(false))}; };
    Value ordered = chosen ? code.branch(chosen, {b.getI1Type()}, all, none)[0] : all()[0];
    firstFull = arith::SelectOp::create(b, code.named("first_full"), ordered, firstFull, endTile);
    endFull = arith::SelectOp::create(b, code.named("end_full"), ordered, endFull, endTile);
  }
  if (statesRead) {
    Value all = hasAllRows(code);
    firstFull = arith::SelectOp::create(b, code.named("first_full"), all, firstFull, endTile);
    endFull = arith::SelectOp::create(b, code.named("end_full"), all, endFull, endTile);
  }
  firstFull = code.narrow(firstFull);
  endFull = code.narrow(endFull);
  numTiles = b.createOrFold<arith::SubIOp>(code.named("tiles"), endTile, firstTile);
  Value full = b.createOrFold<arith::SubIOp>(code.loc, endFull, firstFull);
  numMasked = code.narrow(b.createOrFold<arith::SubIOp>(code.named("masked_tiles"), numTiles, full));
}

/// Returns the tile at a position: first the masked tiles, before and after the full ones, then the
/// full tiles. `masked` is true or false if the kind of the tile is known.
Value TileKernel::tileAt(ScalarCode &code, Value position, std::optional<bool> masked) {
  if (predicate)
    return listedTile(code, position, masked);
  if (!masked) {
    Value isMasked = arith::CmpIOp::create(b, code.loc, arith::CmpIPredicate::slt, position, numMasked);
    Value full = tileAt(code, position, false), partial = tileAt(code, position, true);
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

/// Returns the first key of the tile at a position.
Value TileKernel::firstKeyAt(ScalarCode &code, Value position, std::optional<bool> masked) {
  Value size = code.index(plan.shape.keys), tile = tileAt(code, position, masked);
  return arith::MulIOp::create(b, code.named("first_" + plan.fold.getName().str()), tile, size);
}

/// Returns whether all rows of the block exist. Rows beyond the last may compute anything, but must
/// not read memory.
Value TileKernel::hasAllRows(ScalarCode &code) {
  Value end = arith::AddIOp::create(b, code.loc, firstRow, code.index(plan.shape.rows()));
  return arith::CmpIOp::create(b, code.named("has_all_rows"), arith::CmpIPredicate::sle, end,
                               code.symbol(extent(plan.nest.getExtents().size() - 1)));
}

/// Returns the stage and the parity of the block's n-th tile.
std::pair<Value, Value> TileKernel::stageOf(ScalarCode &code, Value n, StringRef name) {
  Value stages = code.index(plan.shape.stages);
  Value stage = arith::RemUIOp::create(b, code.named(name), n, stages);
  Value round = arith::DivUIOp::create(b, code.loc, n, stages);
  Value parity = arith::RemUIOp::create(b, code.named("parity"), round, code.index(2));
  return {stage, parity};
}

/// Copies a tile of a product's operand, from `first` along its rows and from `column`, if given.
void TileKernel::copyAt(ScalarCode &code, const TileOperand &operand, Value first, Value column, const Ring &ring,
                        Value stage) {
  // Terms of the row are the same for all rows of the block.
  code.open();
  code.bind(plan.rowIndex(), firstRow);
  Values coordinates;
  for (auto [axis, subscript] : llvm::enumerate(ArrayRef(operand.subscripts).drop_back())) {
    Value sum = axis == operand.rowAxis ? first : Value();
    auto plus = [&](Value part) { sum = sum ? b.createOrFold<arith::AddIOp>(code.loc, sum, part) : part; };
    for (auto &[term, factor] : subscript.terms)
      if (term != operand.moving) {
        Value times = code.symbol(factor.str());
        plus(b.createOrFold<arith::MulIOp>(code.loc, code.eval(term), times));
      }
    if (!sum || !subscript.constant.isZero())
      plus(code.symbol(subscript.constant.str()));
    coordinates.push_back(sum);
  }
  code.close();
  Value array = program.getBody().getArgument(cast<BlockArgument>(LoadOp(operand.load).getArray()).getArgNumber());
  device::CopyOp::create(b, code.loc, array, coordinates, column, b.getI64IntegerAttr(operand.rowAxis), StringAttr(),
                         ring.tiles, stage, ring.full, stage);
}

/// Returns an index of an operand. A computed one is named after the axis, for example `g` in
/// K : T[B, G, M, D].
static Value coordinate(ScalarCode &code, LoadOp load, unsigned axis, Value term) {
  Value index = code.eval(term);
  std::string symbol = load.getArray().getType().getShape()[axis].str();
  bool isWord = llvm::all_of(symbol, [](char c) { return llvm::isAlnum(c) || c == '_'; });
  if (isWord && !llvm::isDigit(symbol.front()))
    nameValue(code, index, llvm::StringRef(symbol).lower());
  return index;
}

void TileKernel::copy(ScalarCode &code, const TileOperand &operand, Value first, const Ring &ring, Value stage) {
  if (operand.moving)
    return copyAt(code, operand, first, Value(), ring, stage);
  Values coordinates;
  Value rows = operand.isTransposed ? code.index(0) : first;
  for (auto [axis, term] : llvm::enumerate(operand.load.getTerms().drop_back()))
    coordinates.push_back(axis == operand.rowAxis ? rows : coordinate(code, operand.load, axis, term));
  Value array = program.getBody().getArgument(cast<BlockArgument>(operand.load.getArray()).getArgNumber());
  device::CopyOp::create(b, code.loc, array, coordinates, operand.isTransposed ? first : Value(),
                         b.getI64IntegerAttr(operand.rowAxis),
                         operand.step == SymExpr(1) ? StringAttr() : b.getStringAttr(operand.step.str()), ring.tiles,
                         stage, ring.full, stage);
}

/// Creates the rings of prologue contractions, and that of the weights of `plan.product`.
void TileKernel::makeProductRings(ScalarCode &code) {
  auto nameOf = [&](LoadOp load) { return program.getAllNames()[cast<BlockArgument>(load.getArray()).getArgNumber()]; };
  auto typeOf = [](LoadOp load) { return load.getResult().getType(); };
  for (const TileProduct &contraction : plan.prologue)
    prologueRings.push_back(makeRing(code, nameOf(contraction.right.load), 1, padded(contraction.length),
                                     contraction.right.columns, typeOf(contraction.right.load),
                                     /*withEmpty=*/false));
  if (!plan.product)
    return;
  const TileOperand &left = plan.product->left;
  auto [across, along] =
      left.isTransposed ? std::pair(plan.shape.keys, plan.shape.rows()) : std::pair(plan.shape.rows(), plan.shape.keys);
  weightRing = makeRing(code, nameOf(left.load), plan.shape.stages, across, along, typeOf(left.load),
                        /*withEmpty=*/true);
}

void TileKernel::produce(ScalarCode &code) {
  struct Numbers {
    Value stage, free, first;
  };
  auto numbersOf = [&](Value n) {
    auto [stage, parity] = stageOf(code, n);
    Value tile = tileAt(code, n, std::nullopt);
    Value free = arith::SubIOp::create(b, code.named("empty_parity"), code.index(1), parity);
    Value first =
        arith::MulIOp::create(b, code.named("first_" + plan.fold.getName().str()), tile, code.index(plan.shape.keys));
    return Numbers{stage, free, first};
  };
  auto fill = [&](const Numbers &at, ArrayRef<TileOperand> operands, ArrayRef<Ring> rings) {
    for (auto [operand, ring] : llvm::zip_equal(operands, rings)) {
      device::WaitOp::create(b, code.loc, ring.empty, at.stage, at.free);
      copy(code, operand, at.first, ring, at.stage);
    }
  };
  // In a persistent kernel, the keys of the first tile arrive while consumers end the previous
  // block.
  Value start;
  if (isPersistent()) {
    start = beginOfPart(code);
    Value some = arith::CmpIOp::create(b, code.loc, arith::CmpIPredicate::sgt, foldPart.end, start);
    code.when(some, [&] { fill(numbersOf(start), plan.keyOperands, keyRings); });
    device::AwaitConsumersOp::create(b, code.loc);
  }
  Value zero = code.index(0);
  for (auto [operand, ring] : llvm::zip_equal(plan.rowOperands, rowRings))
    copy(code, operand, firstRow, ring, zero);
  for (auto [contraction, ring] : llvm::zip_equal(plan.prologue, prologueRings))
    copy(code, contraction.right, zero, ring, zero);
  if (!start)
    start = beginOfPart(code);
  code.loop(start, foldPart.end, nameOfPosition(), [&](Value n) {
    Numbers at = numbersOf(n);
    if (plan.product) {
      const TileOperand &left = plan.product->left;
      device::WaitOp::create(b, code.loc, weightRing.empty, at.stage, at.free);
      copyAt(code, left, left.isTransposed ? at.first : firstRow, left.isTransposed ? firstRow : at.first, weightRing,
             at.stage);
    }
    auto fillKeys = [&] { fill(at, plan.keyOperands, keyRings); };
    if (isPersistent())
      code.when(arith::CmpIOp::create(b, code.loc, arith::CmpIPredicate::sgt, n, start), fillKeys);
    else
      fillKeys();
    fill(at, plan.valueOperands, valueRings);
  });
  if (isPersistent())
    completeRings(code, start, /*isProducer=*/true);
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

/// Returns whether a load reads one element per block that is always in bounds. The subscript of
/// each axis is then an outer index of the nest with the extent of the axis.
bool TileKernel::isSameForBlock(LoadOp load) {
  auto type = load.getArray().getType();
  if (load.getTerms().size() != type.getRank() || load.getConstant() != "0")
    return false;
  auto kernel = load->getParentOfType<onf::KernelOp>();
  unsigned number = cast<BlockArgument>(load.getArray()).getArgNumber();
  StringRef name = kernel.getArrayName(number);
  Block::BlockArgListType outer = plan.nest.getBody().getArguments().drop_back();
  for (unsigned axis = 0; axis < type.getRank(); ++axis) {
    auto found = llvm::find(outer, load.getTerms()[axis]);
    if (found == outer.end() || extent(found - outer.begin()) != type.getExtent(axis).str() ||
        cast<StringAttr>(load.getCoefficients()[axis]).getValue() != (name + ".s" + Twine(axis)).str())
      return false;
  }
  return true;
}

LogicalResult TileKernel::run() {
  IRMapping arrays = mapArrays(plan.nest, program);
  b.setInsertionPointToEnd(&program.getBody().front());
  choice = onf::ForOp(plan.nest).buildChoice();
  findPredicate();
  if (predicate) {
    makeRanges();
    if (predicate->needsPairs())
      makeTable();
    emitRanges(arrays);
    if (table.array)
      emitTable(arrays);
  }
  planRescales();
  makePartArrays();
  if (foldPart.states)
    emitClear(arrays);
  SymExpr blocks = foldPart.states ? countBlocks() + countSplitBlocks() : countBlocks();
  beginKernel(b, plan.nest, program, Twine(kernelNumber), blocks.str(), plan.shape.threads());
  ScalarCode code(b, arrays, plan.nest.getLoc());
  code.approximate = true;
  code.isUniform = [this](Value value) {
    rows::Dependence deps;
    return !deps.on(value, plan.rowIndex()) && !deps.on(value, plan.keyIndex());
  };
  // Operations that the fold depends on, also outside of it.
  SetVector<Operation *> used;
  BackwardSliceOptions options;
  options.omitUsesFromAbove = false;
  (void)getBackwardSlice(plan.fold.getOperation(), &used, options);
  // Those that the states depend on, not the guard alone.
  SetVector<Operation *> ofStates;
  options.omitBlockArguments = true;
  for (AccOp acc : rows::getAccs(plan.fold))
    (void)getBackwardSlice(acc.getOperation(), &ofStates, options);
  llvm::DenseSet<Operation *> ofBounds = findLoadsOfBounds();
  plan.nest.walk([&](LoadOp load) {
    if ((!plan.fold->isProperAncestor(load) && !used.contains(load)) || ofBounds.contains(load))
      return;
    bool isOperand = false;
    for (const auto *list : {&plan.rowOperands, &plan.keyOperands, &plan.valueOperands})
      for (const TileOperand &operand : *list)
        isOperand |= isSameElement(operand.load, load);
    isOperand |= plan.product && plan.product->left.load == load;
    if (isOperand || load.getArray().getType().getRank() == 0)
      return;
    if (isSameForBlock(load))
      readOnce.push_back(load);
    else if (code.isUniform(load.getResult()) && !plan.fold->isProperAncestor(load))
      return; // before all tiles, at its original address
    else {
      readsMemory = true;
      statesRead |= ofStates.contains(load) || load->getParentOfType<AccOp>() ||
                    llvm::any_of(ofStates, [&](Operation *op) { return op->isProperAncestor(load); });
    }
  });
  auto nameOf = [&](Value array) {
    unsigned argument = cast<BlockArgument>(array).getArgNumber();
    return program.getAllNames()[argument];
  };
  auto countOperands = [&](Value array) {
    int64_t count = 0;
    for (const auto *list : {&plan.rowOperands, &plan.keyOperands, &plan.valueOperands})
      count += llvm::count_if(*list, [&](const TileOperand &other) { return LoadOp(other.load).getArray() == array; });
    return count;
  };
  auto rings = [&](ArrayRef<TileOperand> operands, SmallVectorImpl<Ring> &list, int64_t stages, int64_t rows,
                   bool withEmpty, const char *role) {
    bool isOdd = isPersistent() && !withEmpty; // one phase per block
    for (const TileOperand &operand : operands) {
      auto [across, along] =
          operand.isTransposed ? std::pair(padded(operand.columns), rows) : std::pair(rows, operand.columns);
      // An array that is several operands has a ring for each.
      std::string name = nameOf(operand.load.getArray()).str();
      if (countOperands(operand.load.getArray()) > 1)
        name += role;
      list.push_back(makeRing(code, name, stages, across, along, operand.load.getResult().getType(), withEmpty, isOdd));
    }
  };
  rings(plan.rowOperands, rowRings, 1, plan.shape.rows(), false, "_rows");
  rings(plan.keyOperands, keyRings, plan.shape.stages, plan.shape.keys, true, "_keys");
  rings(plan.valueOperands, valueRings, plan.shape.stages, plan.shape.keys, true, "_values");
  makeProductRings(code);
  if (Type element = getResultElement(plan)) {
    auto type = RingType::get(b.getContext(), 1, {plan.shape.rows(), getResultColumns(plan)}, element);
    resultRing = device::SharedOp::create(b, code.named("result_ring"), type);
  }
  if (plan.shape.takesTurns)
    turns =
        device::BarriersOp::create(b, code.named("turns"), BarriersType::get(b.getContext(), plan.shape.warpgroups, 4));
  planResults(code);
  findScaledScores(code);
  bindBlock(code);
  if (choice)
    chosen = code.eval(choice);
  findRange(code);
  if (chosen && predicate) // not selected: nobody has written the ranges
    endTile = arith::SelectOp::create(b, code.named("end_tile"), chosen, endTile, firstTile);
  predicate ? collectTiles(code) : findFullRange(code);
  findPart(code);
  // A block whose nest is not selected ends before it copies anything. Ping-pong kernels are an
  // exception: ptxas would order the code between two barriers in another way, which is slower.
  bool ends = chosen && !plan.shape.takesTurns;
  auto [consumer, producer] =
      isPersistent() ? registersOfRoles() : std::pair(plan.shape.consumerRegisters, plan.shape.producerRegisters);
  auto roles =
      device::SpecializeOp::create(b, code.loc, plan.shape.warpgroups, consumer, producer, ends ? chosen : Value());
  auto fill = [&](Region &region, llvm::function_ref<void()> body) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&region.emplaceBlock());
    code.open();
    chosen && !ends ? code.when(chosen, body) : body();
    code.close();
  };
  fill(roles.getConsumer(), [&] { consume(code); });
  fill(roles.getProducer(), [&] { produce(code); });
  if (resultRing && resultRing.use_empty())
    resultRing.getDefiningOp()->erase();
  return failure(code.failed);
}

} // namespace moa::tiles

LogicalResult moa::lowerTiles(const TilePlan &plan, device::ProgramOp program, unsigned number) {
  return tiles::TileKernel(plan, program, number).run();
}
