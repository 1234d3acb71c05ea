//===- TileLists.cpp - lists of the tiles that a block visits -------------===//
//
// If intervals do not tell which key tiles the rows of a block see, the guard is evaluated for
// whole tiles in three-valued logic (lib/Analysis/TilePredicate.h). This gives block-sparse
// attention. Terms of the guard that read memory enter by their ranges over tiles of rows and tiles
// of keys. A kernel launched before reads the arrays once and stores two numbers per tile in the
// workspace. The block then makes two lists: tiles that are or may be partially visible, and tiles
// that all its rows see in full.
//
//===----------------------------------------------------------------------===//
#include "lib/Conversion/ONFToDevice/TileKernel.h"
#include "lib/Schedule/GpuMachine.h"
#include "lib/Schedule/GpuSchedule.h"

using namespace mlir;
using namespace moa;
using namespace moa::onf;

namespace moa::tiles {

/// The least capacity of a list, which schedules assume, and the largest. All tiles beyond the
/// capacity are visited.
static constexpr int64_t kRoom = 2048, kMostRoom = 4096;
/// Threads per block of the range kernel.
static constexpr int64_t kRangeThreads = 32;

SymExpr tilesOf(const SymExpr &extent, int64_t size) {
  return SymExpr::floorDiv(extent + SymExpr(size - 1), SymExpr(size));
}

/// Returns whether a guard is exactly one interval of indices alone with a known full part. Each of
/// its conditions bounds the interval, also those that are not affine. For example, the bound may
/// depend on the row's block.
static bool isOneInterval(const TilePlan &plan) {
  auto pieces = plan.fold.getPieces();
  if (!pieces || pieces->size() != 1 || !cast<PieceAttr>((*pieces)[0]).getFull())
    return false;
  GuardOp guard = rows::getGuard(plan.fold);
  return !guard || !anySource(guard.getCondition(), [](Operation *op) { return isa<LoadOp, FoldOp>(op); });
}

/// Returns the guard as a tile predicate, if it excludes more than the intervals of the fold.
static std::optional<TilePredicate> readPredicate(const TilePlan &plan) {
  TilePredicate predicate(plan.nest, plan.fold);
  auto pieces = plan.fold.getPieces();
  if (predicate.needsPairs())
    return predicate;
  if (!predicate.isUseful() || (predicate.getTerms().empty() && pieces && pieces->size() == 1) || isOneInterval(plan))
    return std::nullopt;
  return predicate;
}

SmallVector<unsigned> axesOf(ArrayRef<Value> values, ForOp nest) {
  rows::Dependence deps;
  SmallVector<unsigned> axes;
  for (unsigned axis = 0; axis + 1 < nest.getExtents().size(); ++axis)
    if (llvm::any_of(values, [&](Value value) { return deps.on(value, nest.getBody().getArgument(axis)); }))
      axes.push_back(axis);
  return axes;
}

void TileKernel::findPredicate() {
  if (!plan.product)
    predicate = readPredicate(plan);
}

std::string TileKernel::freshName(StringRef wish) {
  SmallVector<StringRef> taken = program.getAllNames();
  std::string name = wish.str();
  for (unsigned k = 2; llvm::is_contained(taken, name); ++k)
    name = (wish + "_" + Twine(k)).str();
  return name;
}

/// Creates an array of the workspace for each term: two numbers per tile.
void TileKernel::makeRanges() {
  for (const TileTerm &term : predicate->getTerms()) {
    RangeArray range;
    range.axes = axesOf(llvm::to_vector(llvm::make_first_range(term.values)), plan.nest);
    SymExpr size = *SymExpr::parse(term.ofRow ? extent(plan.nest.getExtents().size() - 1) : plan.fold.getExtent());
    range.tiles = tilesOf(size, term.ofRow ? plan.shape.rows() : plan.shape.keys);
    SmallVector<SymExpr> extents;
    for (unsigned axis : range.axes)
      extents.push_back(*SymExpr::parse(extent(axis)));
    extents.push_back(range.tiles);
    extents.push_back(SymExpr(2));
    auto type = ArrayType::get(b.getContext(), extents, b.getI64Type());
    StringRef side =
        term.ofRow ? cast<StringAttr>(plan.nest.getNames().getValue().back()).getValue() : plan.fold.getName();
    range.array = program.addWorkspace(freshName((side + "_range").str()), type);
    ranges.push_back(std::move(range));
  }
}

/// Returns the place of a tile in an array over these axes and the tiles.
Value TileKernel::flatPlace(ScalarCode &code, const RangeArray &range, Value tile) {
  Value flat;
  for (unsigned axis : range.axes) {
    Value index = code.eval(plan.nest.getBody().getArgument(axis));
    flat = flat ? b.createOrFold<arith::AddIOp>(
                      code.loc, b.createOrFold<arith::MulIOp>(code.loc, flat, code.symbol(extent(axis))), index)
                : index;
  }
  if (flat)
    flat = b.createOrFold<arith::AddIOp>(
        code.loc, b.createOrFold<arith::MulIOp>(code.loc, flat, code.symbol(range.tiles.str())), tile);
  return flat ? flat : tile;
}

/// Returns the place of a tile's lower number in a term's array.
Value TileKernel::rangePlace(ScalarCode &code, const RangeArray &range, Value tile) {
  Value two = code.index(2);
  return b.createOrFold<arith::MulIOp>(code.loc, flatPlace(code, range, tile), two);
}

TileRange TileKernel::loadRange(ScalarCode &code, const RangeArray &range, Value tile) {
  Value place = rangePlace(code, range, tile);
  auto load = [&](Value at, StringRef name) -> Value {
    Value number = device::LoadOp::create(b, code.loc, b.getI64Type(), range.array, at);
    return arith::IndexCastOp::create(b, code.named(name), b.getIndexType(), number);
  };
  auto both = [&] {
    Value low = load(place, "least");
    return Values{low, load(b.createOrFold<arith::AddIOp>(code.loc, place, code.index(1)), "most")};
  };
  // The array has not been written if the nest is not selected.
  auto none = [&] { return Values(2, code.index(0)); };
  Type type = b.getIndexType();
  Values bounds = chosen ? code.branch(chosen, {type, type}, both, none) : both();
  return {bounds[0], bounds[1]};
}

//===----------------------------------------------------------------------===//
// The range kernel
//===----------------------------------------------------------------------===//

/// Returns Σ factor · value, with booleans as 0 and 1.
static Value evaluateTerm(ScalarCode &code, const TileTerm &term) {
  OpBuilder &b = code.b;
  Value sum;
  for (auto [value, factor] : term.values) {
    Value part = code.eval(value);
    if (part.getType().isInteger(1)) {
      Value zero = code.index(0), one = code.index(1);
      part = arith::SelectOp::create(b, code.loc, part, one, zero);
    } else if (!part.getType().isIndex()) {
      part = arith::IndexCastOp::create(b, code.loc, b.getIndexType(), part);
    }
    if (factor != 1)
      part = arith::MulIOp::create(b, code.loc, part, code.index(factor));
    sum = sum ? arith::AddIOp::create(b, code.loc, sum, part).getResult() : part;
  }
  return sum;
}

/// Stores the ranges of all terms of one side over one tile.
void TileKernel::writeRanges(ScalarCode &code, bool ofRow, Value tile) {
  unsigned last = plan.nest.getExtents().size() - 1;
  int64_t size = ofRow ? plan.shape.rows() : plan.shape.keys;
  Value index = ofRow ? Value(plan.rowIndex()) : Value(plan.keyIndex());
  Value first = arith::MulIOp::create(b, code.named("first"), tile, code.index(size));
  Value end = arith::AddIOp::create(b, code.loc, first, code.index(size));
  end = arith::MinSIOp::create(b, code.named("end"), end, code.symbol(ofRow ? extent(last) : plan.fold.getExtent()));
  SmallVector<unsigned> numbers;
  Values inits;
  std::vector<std::string> names{ofRow ? cast<StringAttr>(plan.nest.getNames().getValue().back()).str()
                                       : plan.fold.getName().str()};
  for (auto [k, term] : llvm::enumerate(predicate->getTerms())) {
    if (term.ofRow != ofRow)
      continue;
    numbers.push_back(k);
    inits.push_back(code.index(INT64_MAX));
    inits.push_back(code.index(INT64_MIN));
    names.insert(names.end(), {"least", "most"});
  }
  Values bounds = code.loop(first, end, inits, names, [&](Value i, ValueRange olds) {
    code.bind(index, i);
    Values news;
    for (auto [k, number] : llvm::enumerate(numbers)) {
      Value value = evaluateTerm(code, predicate->getTerms()[number]);
      news.push_back(arith::MinSIOp::create(b, code.loc, olds[2 * k], value));
      news.push_back(arith::MaxSIOp::create(b, code.loc, olds[2 * k + 1], value));
    }
    return news;
  });
  for (auto [k, number] : llvm::enumerate(numbers)) {
    const RangeArray &range = ranges[number];
    TileRange limited = TilePredicate::limit(b, code.loc, {bounds[2 * k], bounds[2 * k + 1]});
    // If a term does not depend on an axis, only index 0 of that axis stores its range.
    Value writes;
    for (unsigned axis : rangeAxes)
      if (!llvm::is_contained(range.axes, axis)) {
        Value zero = code.index(0), place = code.eval(plan.nest.getBody().getArgument(axis));
        writes = code.both(writes, arith::CmpIOp::create(b, code.loc, arith::CmpIPredicate::eq, place, zero));
      }
    auto write = [&] {
      Value place = rangePlace(code, range, tile);
      for (Value bound : {limited.low, limited.high}) {
        Value number = arith::IndexCastOp::create(b, code.loc, b.getI64Type(), bound);
        device::StoreOp::create(b, code.loc, number, range.array, place);
        place = b.createOrFold<arith::AddIOp>(code.loc, place, code.index(1));
      }
    };
    if (writes)
      code.when(writes, write);
    else
      write();
  }
}

/// Emits `body` under the condition and, if the nest's choice is over axes of terms, under the
/// choice too. The nest's loads may be in bounds only if the nest is selected.
void TileKernel::emitIfChosen(ScalarCode &code, Value condition, llvm::function_ref<void()> body) {
  bool isKnown = choice && llvm::all_of(*plan.nest.getChoiceAxes(),
                                        [&](int64_t axis) { return llvm::is_contained(rangeAxes, unsigned(axis)); });
  bool clamps = std::exchange(code.clampsLoads, false); // one element, which is in bounds
  Value both = isKnown ? code.both(code.eval(choice), condition) : condition;
  code.clampsLoads = clamps;
  both ? code.when(both, body) : body();
}

/// Binds the indices of these axes to the digits of a number, whose lowest digit is the last axis.
void TileKernel::bindAxes(ScalarCode &code, ArrayRef<unsigned> axes, Value number) {
  for (unsigned k = axes.size(); k-- > 0;) {
    StringRef name = cast<StringAttr>(plan.nest.getNames()[axes[k]]).getValue();
    code.bind(plan.nest.getBody().getArgument(axes[k]),
              k == 0 ? number : code.takeDigit(number, code.symbol(extent(axes[k])), name));
  }
}

/// Emits a kernel with a thread per tile of rows and per tile of keys, for every index of the axes
/// that terms depend on.
void TileKernel::emitRanges(const IRMapping &arrays) {
  bool ofRows = false, ofKeys = false;
  for (auto [term, range] : llvm::zip_equal(predicate->getTerms(), ranges)) {
    (term.ofRow ? ofRows : ofKeys) = true;
    for (unsigned axis : range.axes)
      if (!llvm::is_contained(rangeAxes, axis))
        rangeAxes.push_back(axis);
  }
  if (ranges.empty())
    return;
  llvm::sort(rangeAxes);
  unsigned last = plan.nest.getExtents().size() - 1;
  SymExpr rowTiles = tilesOf(*SymExpr::parse(extent(last)), plan.shape.rows());
  SymExpr keyTiles = tilesOf(*SymExpr::parse(plan.fold.getExtent()), plan.shape.keys);
  SymExpr positions = (ofRows ? rowTiles : SymExpr(0)) + (ofKeys ? keyTiles : SymExpr(0));
  SymExpr perIndex = tilesOf(positions, kRangeThreads), blocks = perIndex;
  for (unsigned axis : rangeAxes)
    blocks = *SymExpr::parse(extent(axis)) * blocks;
  OpBuilder::InsertionGuard guard(b);
  beginKernel(b, plan.nest, program, Twine(kernelNumber) + "_ranges", blocks.str(), kRangeThreads);
  ScalarCode code(b, arrays, plan.nest.getLoc());
  clampLoads(code);
  Value rest = device::BlockOp::create(b, code.loc, b.getIndexType());
  Value group = rangeAxes.empty() ? rest : code.takeDigit(rest, code.symbol(perIndex.str()), "group");
  bindAxes(code, rangeAxes, rest);
  Value thread = device::ThreadOp::create(b, code.loc, b.getIndexType());
  Value position = arith::AddIOp::create(b, code.named("tile"),
                                         arith::MulIOp::create(b, code.loc, group, code.index(kRangeThreads)), thread);
  auto isBelow = [&](const SymExpr &bound) -> Value {
    return arith::CmpIOp::create(b, code.loc, arith::CmpIPredicate::slt, position, code.symbol(bound.str()));
  };
  emitIfChosen(code, isBelow(positions), [&] {
    if (!ofRows || !ofKeys)
      return writeRanges(code, ofRows, position);
    code.branch(
        isBelow(rowTiles), {}, [&] { return writeRanges(code, true, position), Values(); },
        [&] {
          Value tile = arith::SubIOp::create(b, code.named("tile"), position, code.symbol(rowTiles.str()));
          return writeRanges(code, false, tile), Values();
        });
  });
}

/// Makes loads of the guard read the nearest element where its other conditions exclude them. This
/// can only widen a range.
void TileKernel::clampLoads(ScalarCode &code) {
  code.clampsLoads = true;
  for (auto [index, size] :
       llvm::zip(plan.nest.getBody().getArguments(), plan.nest.getExtents().getAsValueRange<StringAttr>()))
    code.indices[index] = *SymExpr::parse(size);
  code.indices[plan.keyIndex()] = *SymExpr::parse(plan.fold.getExtent());
}

//===----------------------------------------------------------------------===//
// The lists of a block
//===----------------------------------------------------------------------===//

/// Returns the bytes of shared memory that the block has left, after the rings so far and the
/// longest lists that follow. No other block of the multiprocessor could use them.
int64_t TileKernel::findFreeBytes() {
  static const GpuMachine machine = llvm::cantFail(loadGpuMachine("sm_90a"));
  constexpr int64_t others = 2048; // kept numbers, bits, counts, and the machine's own use
  int64_t bytes = others, residents = residentBlocks(plan.shape, machine);
  b.getBlock()->getParentOp()->walk([&](Operation *op) {
    if (auto ring = dyn_cast<device::SharedOp>(op))
      bytes += llvm::alignTo(ring.getType().getStages() * ring.getType().getStageBytes(), 1024);
    else if (isa<device::BarriersOp>(op))
      bytes += 1024; // up to the alignment of the next ring
  });
  int64_t lists = predicate && !listRoom ? 2 * 2 * kMostRoom : 0;
  return std::min(machine.shared / residents, machine.sharedPerBlock) - bytes - lists;
}

/// Returns the capacity of a list: more than the least if the block has room.
int64_t TileKernel::findListRoom() {
  int64_t room = listRoom = kRoom, free = findFreeBytes();
  while (room < kMostRoom && 2 * 2 * 2 * room <= free)
    room *= 2;
  return room;
}

/// Lists the tiles to visit: first those that may be partially visible, in `partialTiles` and from
/// `listedEnd` on, then those in `fullTiles`.
void TileKernel::collectTiles(ScalarCode &code) {
  Value size = code.index(plan.shape.keys), keys = code.symbol(plan.fold.getExtent());
  std::optional<int64_t> extent = getConstantIntValue(keys);
  listRoom = extent && *extent <= kRoom * plan.shape.keys ? kRoom : findListRoom();
  bool isShort = extent && *extent <= listRoom * plan.shape.keys;
  Value end = arith::AddIOp::create(b, code.loc, firstTile, code.index(listRoom));
  listedEnd = isShort ? endTile : arith::MinSIOp::create(b, code.named("listed_end"), endTile, end).getResult();
  Value all = statesRead ? hasAllRows(code) : Value();
  SmallVector<TileRange> found(ranges.size());
  if (!table.array) {
    Value rowTile = arith::DivUIOp::create(b, code.loc, firstRow, code.index(plan.shape.rows()));
    for (auto [k, term] : llvm::enumerate(predicate->getTerms()))
      if (term.ofRow)
        found[k] = loadRange(code, ranges[k], rowTile);
  }
  Type list = device::MembersType::get(b.getContext(), listRoom), index = b.getIndexType();
  auto collect =
      device::CollectOp::create(b, code.loc, TypeRange{list, list}, TypeRange{index, index}, firstTile, listedEnd);
  collect->setAttr("names", b.getStrArrayAttr({"partial_tiles", "full_tiles"}));
  {
    OpBuilder::InsertionGuard guard(b);
    Block &body = collect.getBody().emplaceBlock();
    Value tile = body.addArgument(index, code.named("tile"));
    b.setInsertionPointToStart(&body);
    code.open();
    bool clamped = code.clampsLoads;
    clampLoads(code);
    Value first = arith::MulIOp::create(b, code.named("first"), tile, size);
    Value tileEnd = arith::AddIOp::create(b, code.named("end"), first, size);
    Value one = code.index(1), keysEnd = arith::MinSIOp::create(b, code.loc, tileEnd, keys);
    Value last = arith::SubIOp::create(b, code.named("last"), keysEnd, one);
    TileTruth truth;
    if (table.array) {
      truth = readTable(code, tile);
    } else {
      for (auto [k, term] : llvm::enumerate(predicate->getTerms()))
        if (!term.ofRow)
          found[k] = loadRange(code, ranges[k], tile);
      truth = predicate->emit(
          {b, code.loc, [&](Value value) { return code.eval(value); }, {firstRow, lastRow}, {first, last}, found});
    }
    auto inverse = [&](Value x) {
      return b.createOrFold<arith::XOrIOp>(code.loc, x, code.constant(b.getBoolAttr(true)));
    };
    Value isWhole = arith::CmpIOp::create(b, code.loc, arith::CmpIPredicate::sle, tileEnd, keys);
    Value isFull = code.both(code.both(truth.always, isWhole), all);
    Value isNotFull = inverse(isFull), isPartial = code.both(inverse(truth.never), isNotFull);
    device::YieldOp::create(b, code.loc, ValueRange{isPartial, isFull});
    code.clampsLoads = clamped;
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

Value TileKernel::listedTile(ScalarCode &code, Value position, std::optional<bool> masked) {
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
