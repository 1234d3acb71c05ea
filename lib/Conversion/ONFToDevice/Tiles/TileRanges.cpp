//===- TileRanges.cpp - ranges of a guard's terms over tiles --------------===//
//
// If intervals do not tell which key tiles the rows of a block see, the guard is evaluated for
// whole tiles in three-valued logic (lib/Analysis/TilePredicate.h). This gives block-sparse
// attention. Terms of the guard that read memory enter by their ranges over tiles of rows and tiles
// of keys. A kernel launched before reads the arrays once and stores two numbers per tile in the
// workspace.
//
//===----------------------------------------------------------------------===//
#include "lib/Conversion/ONFToDevice/Tiles/GuardTiles.h"

using namespace mlir;
using namespace moa;
using namespace moa::onf;

namespace moa::tiles {

/// Threads per block of the range kernel.
static constexpr int64_t kRangeThreads = 32;

/// Returns whether a guard is exactly one interval of indices alone with a known full part. Each of
/// its conditions bounds the interval, also those that are not affine. For example, the bound may
/// depend on the row's block.
static bool isOneInterval(const TilePlan &plan) {
  auto pieces = plan.fold.getPieces();
  if (!pieces || pieces->size() != 1 || !cast<PieceAttr>((*pieces)[0]).getFull())
    return false;
  GuardOp guard = rows::getGuard(plan.fold);
  return !guard || !anySource(guard.getCondition(), [&](Operation *op) {
    return isa<FoldOp>(op) || (isa<LoadOp>(op) && !isUniform(plan, op->getResult(0)));
  });
}

std::optional<TilePredicate> readPredicate(const TilePlan &plan) {
  TilePredicate predicate(plan.nest, plan.fold);
  auto pieces = plan.fold.getPieces();
  if (predicate.needsPairs())
    return predicate;
  if (!predicate.isUseful() || (predicate.getTerms().empty() && pieces && pieces->size() == 1) || isOneInterval(plan))
    return std::nullopt;
  return predicate;
}

/// Creates an array of the workspace for each term: two numbers per tile.
TileRanges::TileRanges(const TileContext &context) : TilePart(context) {
  for (const TileTerm &term : context.predicate->getTerms()) {
    TileArray range;
    range.axes = axesOf(llvm::to_vector(llvm::make_first_range(term.values)), plan.nest);
    SymExpr size = term.ofRow ? context.rowExtent() : plan.fold.getExtent();
    range.tiles = tilesOf(size, term.ofRow ? plan.shape.rows() : plan.shape.keys);
    SmallVector<SymExpr> extents;
    for (unsigned axis : range.axes)
      extents.push_back(context.extent(axis));
    extents.push_back(range.tiles);
    extents.push_back(SymExpr(2));
    auto type = ArrayType::get(b.getContext(), extents, b.getI64Type());
    StringRef side =
        term.ofRow ? cast<StringAttr>(plan.nest.getNames().getValue().back()).getValue() : plan.fold.getName();
    range.array = program.addWorkspace(context.freshName((side + "_range").str()), type);
    for (unsigned axis : range.axes)
      if (!llvm::is_contained(rangeAxes, axis))
        rangeAxes.push_back(axis);
    ranges.push_back(std::move(range));
  }
  llvm::sort(rangeAxes);
}

Value TileRanges::flatPlace(ScalarCode &code, const TileArray &range, Value tile) {
  Value flat;
  for (unsigned axis : range.axes) {
    Value index = code.eval(plan.nest.getBody().getArgument(axis));
    flat = flat ? b.createOrFold<arith::AddIOp>(
                      code.loc, b.createOrFold<arith::MulIOp>(code.loc, flat, code.symbol(context.extent(axis))), index)
                : index;
  }
  if (flat)
    flat = b.createOrFold<arith::AddIOp>(code.loc,
                                         b.createOrFold<arith::MulIOp>(code.loc, flat, code.symbol(range.tiles)), tile);
  return flat ? flat : tile;
}

/// Returns the place of a tile's lower number in a term's array.
Value TileRanges::rangePlace(ScalarCode &code, const TileArray &range, Value tile) {
  Value two = code.index(2);
  return b.createOrFold<arith::MulIOp>(code.loc, flatPlace(code, range, tile), two);
}

TileRange TileRanges::load(ScalarCode &code, unsigned term, Value tile, Value chosen) {
  const TileArray &range = ranges[term];
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
void TileRanges::writeRanges(ScalarCode &code, bool ofRow, Value tile) {
  int64_t size = ofRow ? plan.shape.rows() : plan.shape.keys;
  Value index = ofRow ? Value(plan.rowIndex()) : Value(plan.keyIndex());
  Value first = arith::MulIOp::create(b, code.named("first"), tile, code.index(size));
  Value end = arith::AddIOp::create(b, code.loc, first, code.index(size));
  end = arith::MinSIOp::create(b, code.named("end"), end,
                               code.symbol(ofRow ? context.rowExtent() : plan.fold.getExtent()));
  SmallVector<unsigned> numbers;
  Values inits;
  std::vector<std::string> names{ofRow ? cast<StringAttr>(plan.nest.getNames().getValue().back()).str()
                                       : plan.fold.getName().str()};
  for (auto [k, term] : llvm::enumerate(context.predicate->getTerms())) {
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
      Value value = evaluateTerm(code, context.predicate->getTerms()[number]);
      news.push_back(arith::MinSIOp::create(b, code.loc, olds[2 * k], value));
      news.push_back(arith::MaxSIOp::create(b, code.loc, olds[2 * k + 1], value));
    }
    return news;
  });
  for (auto [k, number] : llvm::enumerate(numbers)) {
    const TileArray &range = ranges[number];
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

void TileRanges::emitIfChosen(ScalarCode &code, Value condition, llvm::function_ref<void()> body) {
  bool isKnown = context.choice && llvm::all_of(*plan.nest.getChoiceAxes(), [&](int64_t axis) {
                   return llvm::is_contained(rangeAxes, unsigned(axis));
                 });
  bool clamps = std::exchange(code.clampsLoads, false); // one element, which is in bounds
  Value both = isKnown ? code.both(code.eval(context.choice), condition) : condition;
  code.clampsLoads = clamps;
  both ? code.when(both, body) : body();
}

void TileRanges::bindAxes(ScalarCode &code, ArrayRef<unsigned> axes, Value number) {
  for (unsigned k = axes.size(); k-- > 0;) {
    StringRef name = cast<StringAttr>(plan.nest.getNames()[axes[k]]).getValue();
    code.bind(plan.nest.getBody().getArgument(axes[k]),
              k == 0 ? number : code.takeDigit(number, code.symbol(context.extent(axes[k])), name));
  }
}

/// Emits a kernel with a thread per tile of rows and per tile of keys, for every index of the axes
/// that terms depend on.
void TileRanges::emit(const IRMapping &arrays) {
  bool ofRows = false, ofKeys = false;
  for (const TileTerm &term : context.predicate->getTerms())
    (term.ofRow ? ofRows : ofKeys) = true;
  if (ranges.empty())
    return;
  SymExpr rowTiles = context.rowTiles(), keyTiles = context.keyTiles();
  SymExpr positions = (ofRows ? rowTiles : SymExpr(0)) + (ofKeys ? keyTiles : SymExpr(0));
  SymExpr perIndex = tilesOf(positions, kRangeThreads), blocks = perIndex;
  for (unsigned axis : rangeAxes)
    blocks = context.extent(axis) * blocks;
  OpBuilder::InsertionGuard guard(b);
  beginKernel(b, plan.nest, program, Twine(context.number) + "_ranges", blocks, kRangeThreads);
  ScalarCode code(b, arrays, plan.nest.getLoc());
  clampLoads(code, plan);
  Value rest = device::BlockOp::create(b, code.loc, b.getIndexType());
  Value group = rangeAxes.empty() ? rest : code.takeDigit(rest, code.symbol(perIndex), "group");
  bindAxes(code, rangeAxes, rest);
  Value thread = device::ThreadOp::create(b, code.loc, b.getIndexType());
  Value position = arith::AddIOp::create(b, code.named("tile"),
                                         arith::MulIOp::create(b, code.loc, group, code.index(kRangeThreads)), thread);
  auto isBelow = [&](const SymExpr &bound) -> Value {
    return arith::CmpIOp::create(b, code.loc, arith::CmpIPredicate::slt, position, code.symbol(bound));
  };
  emitIfChosen(code, isBelow(positions), [&] {
    if (!ofRows || !ofKeys)
      return writeRanges(code, ofRows, position);
    code.branch(
        isBelow(rowTiles), {}, [&] { return writeRanges(code, true, position), Values(); },
        [&] {
          Value tile = arith::SubIOp::create(b, code.named("tile"), position, code.symbol(rowTiles));
          return writeRanges(code, false, tile), Values();
        });
  });
}

GuardTiles::GuardTiles(const TileContext &context, const IRMapping &arrays) : ranges(context) {
  if (context.predicate->needsPairs())
    table.emplace(context, ranges);
  ranges.emit(arrays);
  if (table)
    table->emit(arrays);
}

} // namespace moa::tiles
