//===- Epilogue.cpp - results of a tile kernel ----------------------------===//
#include "lib/Conversion/ONFToDevice/Tiles/Epilogue.h"
#include "dialects/Device/IR/LayoutMaps.h"
#include "lib/Conversion/ONFToDevice/Tiles/Maps.h"
#include "lib/Conversion/ONFToDevice/Tiles/TileOrder.h"

using namespace mlir;
using namespace moa;
using namespace moa::onf;

namespace moa::tiles {

static Value resultOf(const TilePlan &plan, AccOp acc) {
  SmallVector<AccOp> accs = rows::getAccs(plan.fold);
  return plan.fold.getResult(llvm::find(accs, acc) - accs.begin());
}

/// Returns the sum of an accumulator or, for higher numbers, of a prologue contraction.
static Value sumOf(const TilePlan &plan, unsigned number) {
  size_t accumulators = plan.folded.accumulators.size();
  return number < accumulators ? resultOf(plan, plan.folded.accumulators[number].acc)
                               : plan.prologue[number - accumulators].fold.getResult(0);
}

/// Returns the columns of such a sum.
static int64_t columnsOf(const TilePlan &plan, unsigned number) {
  size_t accumulators = plan.folded.accumulators.size();
  return number < accumulators ? plan.folded.accumulators[number].extents[0]
                               : plan.prologue[number - accumulators].right.columns;
}

/// Returns whether a value loads memory other than through the fold.
static bool readsOutside(const TilePlan &plan, Value value) {
  return anySource(value, [&](Operation *op) -> std::optional<bool> {
    if (op == plan.fold.getOperation())
      return std::nullopt;
    auto load = dyn_cast<LoadOp>(op);
    return load && load.getArray().getType().getRank() != 0;
  });
}

/// Returns whether anything before the fold loads memory, apart from the nest's predicate and from
/// prologue contractions.
static bool readsBeforeFold(const TilePlan &plan) {
  Value choices = onf::ForOp(plan.nest).getChoices();
  return plan.nest.getBody()
      .walk([&](LoadOp load) {
        bool inFold = plan.fold->isProperAncestor(load) || load.getArray() == choices ||
                      llvm::any_of(plan.prologue, [&](const TileProduct &contraction) {
                        return contraction.fold->isProperAncestor(load);
                      });
        return !inFold && load.getArray().getType().getRank() != 0 ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Returns the axis of an output along which the rows run, if TMA can store its tiles. An
/// accumulator's loop then writes the output axis by axis, the last axis last.
static std::optional<unsigned> findRowAxis(const TilePlan &plan, const Rings &rings, StoreOp store, Value loopIndex,
                                           unsigned accumulator) {
  Type element = store.getArray().getType().getElementType();
  unsigned rank = store.getArray().getType().getRank();
  Value row = plan.rowIndex();
  Value ring = rings.forResults(element);
  if (!ring || rank < 2 || rank > 5 ||
      cast<RingType>(ring.getType()).getColumns() < padded(columnsOf(plan, accumulator)) ||
      columnsOf(plan, accumulator) % 8 != 0 || !store.getSubscripts().isIdentity() ||
      store.getTerms().back() != loopIndex || !store.getValue().getType().isF32())
    return std::nullopt;
  auto kernel = store->getParentOfType<onf::KernelOp>();
  unsigned number = cast<BlockArgument>(store.getArray()).getArgNumber();
  if (kernel.isTemporary(number)) // launchers have TMA descriptors of outputs only
    return std::nullopt;
  std::optional<unsigned> rowAxis;
  rows::Dependence deps;
  for (unsigned axis = 0; axis < rank; ++axis) {
    Value term = store.getTerms()[axis];
    if (term == row && axis + 1 != rank)
      rowAxis = axis;
    else if (axis + 1 != rank && (deps.on(term, row) || deps.on(term, loopIndex)))
      return std::nullopt;
  }
  // Loads before the fold that only its terms use take the registers that a TMA store needs. For
  // example, ALiBi would spill in PTX.
  if (readsBeforeFold(plan) && !readsOutside(plan, store.getValue()))
    return std::nullopt;
  return rowAxis;
}

/// Returns the accumulators and prologue contractions that a loop reads, or else an accumulator
/// over whose axis it runs.
static SmallVector<unsigned> accumulatorsOf(const TilePlan &plan, ForOp loop) {
  SmallVector<unsigned> which;
  loop.walk([&](AtOp at) {
    for (auto [k, accumulator] : llvm::enumerate(plan.folded.accumulators))
      if (resultOf(plan, accumulator.acc) == at.getState() && !is_contained(which, k))
        which.push_back(k);
    for (auto [k, contraction] : llvm::enumerate(plan.prologue))
      if (!contraction.joined && contraction.fold.getResult(0) == at.getState() &&
          !is_contained(which, plan.folded.accumulators.size() + k))
        which.push_back(plan.folded.accumulators.size() + k);
  });
  const SymExpr &extent = getSymExpr(loop.getExtents()[0]);
  for (unsigned k = 0; which.empty(); ++k)
    if (extent == plan.folded.accumulators[k].extents[0])
      which.push_back(k);
  return which;
}

SmallVector<TileResult> planResults(ScalarCode &code, const TileContext &context, const Rings &rings) {
  const TilePlan &plan = context.plan;
  OpBuilder &b = context.b;
  SmallVector<TileResult> results;
  for (auto loop : plan.nest.getBody().getOps<ForOp>()) {
    SmallVector<unsigned> accumulators = accumulatorsOf(plan, loop);
    auto stores = llvm::to_vector(loop.getBody().front().getOps<StoreOp>());
    auto rowAxis = stores.size() == 1
                       ? findRowAxis(plan, rings, stores[0], loop.getBody().getArgument(0), accumulators[0])
                       : std::nullopt;
    if (!rowAxis)
      continue;
    Type element = stores[0].getArray().getType().getElementType();
    Value ring = rings.forResults(element);
    auto isStaged = [&](const TileResult &other) { return other.ring == ring; };
    bool isReused = llvm::any_of(results, isStaged);
    auto own = RingType::get(b.getContext(), 1, {plan.shape.rows(), padded(columnsOf(plan, accumulators[0]))}, element);
    if (isReused &&
        int64_t(llvm::alignTo(own.getStageBytes(), 1024)) <= findFreeBytes(context, longestListBytes(context))) {
      ring = device::SharedOp::create(b, code.named("result_ring"), own);
      isReused = false;
    }
    results.push_back({loop, stores[0], accumulators, *rowAxis, ring, isReused});
  }
  return results;
}

Value Epilogue::recall(Value number) {
  Operation *op = number.getDefiningOp();
  if (!op || getConstantIntValue(number) || isa<device::BlockOp>(op))
    return number;
  auto name = dyn_cast<NameLoc>(number.getLoc());
  Location place = name ? code.named(("kept_" + name.getName().getValue()).str()) : code.loc;
  recalled.push_back(device::KeptOp::create(b, place, number));
  return recalled.back();
}

Epilogue::Epilogue(const TileContext &context, ScalarCode &code, const BlockRows &block, ArrayRef<TileResult> results)
    : BlockPart(context, code), results(results) {
  for (BlockArgument axis : plan.nest.getBody().getArguments().drop_back())
    code.bind(axis, recall(code.eval(axis)));
  rows.number = device::WarpgroupOp::create(b, code.named("own_warpgroup"), b.getIndexType(), /*again=*/true);
  rows.offset = arith::MulIOp::create(b, code.named("own_warpgroup_row"), rows.number, code.index(64));
  rows.base = arith::AddIOp::create(b, code.named("own_row_base"), recall(block.first), rows.offset);
}

/// Binds the row and the fold's results: the states without axes to the first of `in`.
void Epilogue::bindFinals(ValueRange in, ValueRange at) {
  code.bind(plan.rowIndex(), arith::AddIOp::create(b, code.loc, rows.base, at[0]));
  for (auto [scalar, value] : llvm::zip(plan.folded.scalars, in))
    code.bind(resultOf(plan, scalar.acc), value);
}

/// Binds an element of a prologue contraction or an accumulator. An accumulator is also the result
/// of a contraction joined with it.
void Epilogue::bindSum(unsigned number, Value value) {
  code.bind(sumOf(plan, number), value);
  for (const TileProduct &contraction : plan.prologue)
    if (contraction.joined && contraction.accumulator == number)
      code.bind(contraction.joined, value);
}

/// Returns the states without axes, then these accumulators.
Values Epilogue::inputsOf(ValueRange finals, ArrayRef<unsigned> accumulators) {
  unsigned count = plan.folded.scalars.size();
  Values inputs(finals.take_front(count));
  for (unsigned number : accumulators)
    inputs.push_back(finals[count + number]);
  return inputs;
}

/// Returns the values of a store in a loop over a tile's columns. Elements outside of the output
/// may compute anything, but must not read memory. Quotients are products with the reciprocal,
/// which is computed once per row if the divisor is the row's.
Value Epilogue::mapResult(ValueRange finals, StoreOp store, ArrayRef<unsigned> accumulators, Value loopIndex) {
  unsigned count = plan.folded.scalars.size();
  int64_t extent = columnsOf(plan, accumulators[0]), columns = padded(extent);
  bool reads = readsOutside(plan, store.getValue()), isEager = reads && canClamp(plan, store.getValue());
  bool clamped = code.clampsLoads;
  code.reciprocals = true;
  code.scalesDivisors = store.getArray().getType().getElementType().isF32();
  Value values = map(code, "result", inputsOf(finals, accumulators), Over::tile(columns), {b.getF32Type()},
                     [&](ValueRange in, ValueRange at) {
                       bindFinals(in, at);
                       code.bind(loopIndex, at[1]);
                       for (auto [number, value] : llvm::zip(accumulators, in.drop_front(count)))
                         bindSum(number, value);
                       auto result = [&] { return Values{code.eval(store.getValue())}; };
                       // Without branches, so that all elements' loads are in flight at once.
                       if (isEager) {
                         BlockArgument row = plan.rowIndex();
                         Value one = code.index(1), end = code.symbol(context.rowExtent());
                         Value last = arith::SubIOp::create(b, code.loc, end, one);
                         code.bind(row, arith::MinSIOp::create(b, code.loc, code.eval(row), last));
                         if (columns != extent)
                           code.bind(loopIndex, arith::MinSIOp::create(b, code.loc, at[1], code.index(extent - 1)));
                         clampLoads(code, plan);
                         code.indices[loopIndex] = SymExpr(extent);
                         code.eager = true;
                       }
                       if (!reads || isEager)
                         return result();
                       return code.branch(isInside(at, extent), {b.getF32Type()}, result,
                                          [&] { return Values{code.constant(b.getF32FloatAttr(0))}; });
                     })[0];
  code.reciprocals = code.scalesDivisors = code.eager = false;
  code.clampsLoads = clamped;
  return values;
}

/// Returns whether the bound row exists, and the column is below the extent.
Value Epilogue::isInside(ValueRange at, int64_t extent) {
  BlockArgument row = plan.rowIndex();
  Value end = code.symbol(context.rowExtent());
  Value inside = arith::CmpIOp::create(b, code.named("row_exists"), arith::CmpIPredicate::slt, code.eval(row), end);
  if (at.size() > 1 && padded(extent) != extent)
    inside =
        code.both(inside, arith::CmpIOp::create(b, code.loc, arith::CmpIPredicate::slt, at[1], code.index(extent)));
  return inside;
}

/// Returns whether pairs of columns can be stored at once: even columns have even offsets, and the
/// next column is adjacent. This holds for temporaries with an even number of columns.
bool Epilogue::storesPairs(StoreOp store, Value loopIndex, unsigned accumulator) {
  auto kernel = store->getParentOfType<onf::KernelOp>();
  unsigned number = cast<BlockArgument>(store.getArray()).getArgNumber(), rank = store.getArray().getType().getRank();
  int64_t extent = columnsOf(plan, accumulator);
  if (!kernel.isTemporary(number) || !store.getArray().getType().getElementType().isF32() || rank == 0 ||
      !store.getSubscripts().isIdentity() || store.getTerms().back() != loopIndex || padded(extent) != extent ||
      store.getArray().getType().getExtent(rank - 1) != SymExpr(extent))
    return false;
  rows::Dependence deps;
  return llvm::none_of(store.getTerms().drop_back(), [&](Value term) { return deps.on(term, loopIndex); });
}

/// Emits the stores of a block for each row, or for each element of an accumulator.
void Epilogue::writeElements(ValueRange finals, Block &block, ArrayRef<unsigned> accumulators, Value loopIndex) {
  unsigned count = plan.folded.scalars.size();
  int64_t extent = accumulators.empty() ? 0 : columnsOf(plan, accumulators[0]);
  Over over = accumulators.empty() ? Over::rows() : Over::tile(padded(extent));
  SmallVector<StoreOp> rest;
  for (auto store : block.getOps<StoreOp>()) {
    // All values are computed first. With a branch around each, neither loads nor quotients of two
    // elements could overlap.
    Value value = store.getValue();
    bool isSum = isa_and_nonnull<AtOp>(value.getDefiningOp());
    if (accumulators.empty() || isSum || !value.getType().isF32() ||
        (readsOutside(plan, value) && !canClamp(plan, value))) {
      rest.push_back(store);
      continue;
    }
    Value values = mapResult(finals, store, accumulators, loopIndex);
    map(code, "", values, over, {}, [&](ValueRange in, ValueRange at) {
      bindFinals({}, at);
      code.bind(loopIndex, at[1]);
      code.bind(store.getValue(), in[0]);
      code.when(isInside(at, extent), [&] { code.store(store, storesPairs(store, loopIndex, accumulators[0])); });
      return Values();
    });
  }
  if (rest.empty())
    return;
  bool inPairs = llvm::all_of(rest, [&](StoreOp store) {
    return !accumulators.empty() && isa_and_nonnull<AtOp>(store.getValue().getDefiningOp()) &&
           storesPairs(store, loopIndex, accumulators[0]);
  });
  map(code, "", inputsOf(finals, accumulators), over, {}, [&](ValueRange in, ValueRange at) {
    bindFinals(in, at);
    if (!accumulators.empty()) {
      code.bind(loopIndex, at[1]);
      for (auto [number, value] : llvm::zip(accumulators, in.drop_front(count)))
        bindSum(number, value);
    }
    code.when(isInside(at, extent), [&] {
      for (auto store : rest)
        code.store(store, inPairs);
    });
    return Values();
  });
}

/// Stages a whole tile of an output in a ring and starts its bulk store. Only the warp that awaits
/// a store knows that the ring has been read. A barrier tells the other warps before they write the
/// next tile there.
void Epilogue::writeTile(ValueRange finals, const TileResult &result) {
  int64_t columns = padded(columnsOf(plan, result.accumulators[0]));
  StoreOp store = result.store;
  Type element = store.getArray().getType().getElementType();
  Value values = mapResult(finals, store, result.accumulators, result.loop.getBody().getArgument(0));
  Value rounded = map(code, "packed", values, Over::tile(columns), {element},
                      [&](ValueRange in, ValueRange) { return Values{code.convert(in[0], element)}; })[0];
  Values coordinates;
  for (auto [axis, term] : llvm::enumerate(store.getTerms().drop_back()))
    coordinates.push_back(axis == result.rowAxis ? rows.base : code.eval(term));
  Value array = program.getBody().getArgument(cast<BlockArgument>(store.getArray()).getArgNumber());
  Value row = arith::MulIOp::create(b, code.loc, rows.number, code.index(64)), stage = code.index(0);
  if (result.isReused)
    device::AwaitStoresOp::create(b, code.loc);
  if (result.isReused || device::isReadByWarps(result.ring))
    device::SyncWarpgroupOp::create(b, code.loc);
  device::StoreTileOp::create(b, code.loc, rounded, result.ring, stage, row, array, coordinates,
                              b.getI64IntegerAttr(result.rowAxis));
  if (&result == &results.back())
    device::AwaitStoresOp::create(b, code.loc);
}

void Epilogue::run(ValueRange finals) {
  Block &body = plan.nest.getBody().front();
  if (!body.getOps<StoreOp>().empty())
    writeElements(finals, body, {}, Value());
  for (auto loop : body.getOps<ForOp>()) {
    auto tile = llvm::find_if(results, [&](const TileResult &result) { return result.loop == loop; });
    if (tile != results.end())
      writeTile(finals, *tile);
    else
      writeElements(finals, loop.getBody().front(), accumulatorsOf(plan, loop), loop.getBody().getArgument(0));
  }
  for (device::KeptOp number : recalled)
    if (number->use_empty())
      number.erase();
}

} // namespace moa::tiles
