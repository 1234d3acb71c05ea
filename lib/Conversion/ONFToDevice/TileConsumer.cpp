//===- TileConsumer.cpp - consumer warpgroups of tile kernels -------------===//
#include "dialects/Device/IR/LayoutMaps.h"
#include "lib/Conversion/ONFToDevice/TileKernel.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace moa;
using namespace moa::onf;

namespace moa::tiles {

/// Returns the depth of a contraction of 8-bit operands: a multiple of 32 bytes, the step of an
/// instruction, which is often less than a ring's row. Null: the whole row.
static IntegerAttr depthOf(const TileOperand &operand) {
  LoadOp load = operand.load;
  int64_t bytes = operand.getBytes(), depth = llvm::alignTo(operand.columns, 32 / bytes);
  bool isWhole = bytes != 1 || depth == padded(operand.columns, bytes);
  return isWhole ? IntegerAttr() : Builder(load.getContext()).getI64IntegerAttr(depth);
}

/// Waits for turn n of a warpgroup (ping-pong). It comes when the previous warpgroup has passed its
/// turn n; for the first warpgroup, when the last one has passed turn n − 1. These are the phases n
/// and n − 1 of the warpgroup's barrier. Phase −1 counts as complete.
void TileKernel::awaitTurn(ScalarCode &code, Value n) {
  if (!turns)
    return;
  Value two = code.index(2), one = code.index(1);
  Value isFirst = arith::CmpIOp::create(b, code.loc, arith::CmpIPredicate::eq, warpgroup, code.index(0));
  Value after =
      arith::AddIOp::create(b, code.loc, n, arith::SelectOp::create(b, code.loc, isFirst, one, code.index(0)));
  device::WaitOp::create(b, code.loc, turns, warpgroup, arith::RemUIOp::create(b, code.named("turn"), after, two));
}

void TileKernel::passTurn(ScalarCode &code) {
  if (!turns)
    return;
  Value next = arith::AddIOp::create(b, code.loc, warpgroup, code.index(1));
  device::ArriveOp::create(
      b, code.loc, turns,
      arith::RemUIOp::create(b, code.named("next_warpgroup"), next, code.index(plan.shape.warpgroups)));
}

/// Emits an iteration of `plan.product`. The weights are loaded before the previous tile is
/// contracted, because nothing may define registers of a contraction in flight.
TileKernel::Running TileKernel::iterateProduct(ScalarCode &code, Value n, const Running &olds,
                                               std::optional<bool> known) {
  bool isFirst = !known, isMasked = plan.product->isMasked && known.value_or(true);
  auto [stage, parity] = stageOf(code, n);
  Running next = olds;
  Value last = arith::SubIOp::create(b, code.loc, n, code.index(1));
  if (isFirst)
    next.sums[0].weights = {Value()};
  device::WaitOp::create(b, code.loc, weightRing.full, stage, parity);
  if (isMasked) { // both operands lose the same rows
    device::WaitOp::create(b, code.loc, valueRings[0].full, stage, parity);
    Value first = firstKeyAt(code, n, known);
    Presence presence = findPresence(code, first);
    clearUnseen(code, presence, first, stage, {{weightRing.tiles, false}, {valueRings[0].tiles, false}});
  }
  auto ring = cast<RingType>(weightRing.tiles.getType());
  Value offset = arith::MulIOp::create(b, code.loc, warpgroup, code.index(64)), zero = code.index(0);
  bool isTransposed = plan.product->left.isTransposed;
  Value weights = device::LoadFragmentOp::create(
      b, code.named("weights"), typeOver(Over::tile(plan.shape.keys), ring.getElementType()), weightRing.tiles, stage,
      isTransposed ? zero : offset, isTransposed ? offset : zero, isTransposed);
  if (!isFirst) {
    startAccumulators(code, last, "previous_stage", next);
    finishAccumulators(code, last, "previous_stage", next);
  }
  if (!isMasked)
    device::WaitOp::create(b, code.loc, valueRings[0].full, stage, parity);
  next.sums[0].weights = {weights};
  return next;
}

/// Emits the prologue contractions, each of which is one contraction of the rows.
void TileKernel::contractPrologue(ScalarCode &code) {
  Value offset = arith::MulIOp::create(b, code.loc, warpgroup, code.index(64)), zero = code.index(0);
  for (auto [contraction, ring] : llvm::zip_equal(plan.prologue, prologueRings)) {
    auto isOfRows = [&](unsigned k) {
      const TileOperand &rows = plan.rowOperands[k];
      return contraction.length == rows.columns &&
             isSameTile(contraction.left, rows, contraction.fold.getBody().getArgument(0),
                        LoadOp(rows.load).getTerms().back());
    };
    unsigned k = 0;
    while (!isOfRows(k))
      ++k;
    device::WaitOp::create(b, code.loc, ring.full, zero, zero);
    Value sum = device::ContractOp::create(b, code.named(contraction.acc.getName()),
                                           typeOver(Over::tile(padded(contraction.right.columns)), b.getF32Type()),
                                           rowRings[k].tiles, offset, ring.tiles, zero, Value(), /*transposed=*/false,
                                           IntegerAttr());
    sum = device::AwaitOp::create(b, code.loc, sum.getType(), sum, 0);
    if (contraction.condition) {
      code.open(); // the same for all rows of the block
      code.bind(plan.rowIndex(), firstRow);
      Value holds = code.eval(contraction.condition);
      code.close();
      sum = map(code, "before", sum, Over::tile(padded(contraction.right.columns)), {b.getF32Type()},
                [&](ValueRange in, ValueRange) {
                  Value none = code.constant(b.getF32FloatAttr(0));
                  return Values{arith::SelectOp::create(b, code.loc, holds, in[0], none)};
                })[0];
    }
    prologueSums.push_back(sum);
  }
}

/// Emits the iteration of the tile at position n. Returns the states after it, and its weights. The
/// weights of the previous tile are multiplied here; if `overlapped`, while the states of this tile
/// are computed. Schedules without overlap multiply each tile's weights at its own end, so that
/// scores and weights never occupy registers together or across tiles. `known` is true if the tile
/// is masked. Without `known` the tile is the first one, which may be masked.
TileKernel::Running TileKernel::iterate(ScalarCode &code, Value n, const Running &olds, std::optional<bool> known,
                                        bool overlapped) {
  bool isFirst = !known, masked = known.value_or(true);
  if (plan.product)
    return iterateProduct(code, n, olds, known);
  int64_t accumulators = countProducts(plan.accumulatorTerms, 0);
  auto [stage, parity] = stageOf(code, n);
  Value first = firstKeyAt(code, n, known);
  Values scores;
  SmallVector<unsigned> lastReader(keyRings.size()); // score after which a ring's stage is free
  llvm::BitVector awaited(keyRings.size());
  for (auto [k, score] : llvm::enumerate(plan.folded.scores)) {
    Value sum;
    for (const ProductTerm &term : plan.scoreTerms[k]) {
      if (!awaited.test(term.key))
        device::WaitOp::create(b, code.loc, keyRings[term.key].full, stage, parity);
      awaited.set(term.key);
      lastReader[term.key] = k;
      if (k == 0 && !sum)
        awaitTurn(code, n);
      bool isHeld = plan.shape.holdsRows;
      Value rowOffset;
      if (!isHeld)
        rowOffset = arith::MulIOp::create(b, code.loc, warpgroup, code.index(64));
      sum = device::ContractOp::create(
          b, code.named(nameOfProducts(k)),
          typeOver(Over::tile(plan.shape.keys), score.type.isIndex() ? b.getI32Type() : score.type),
          isHeld ? heldRows[term.row] : rowRings[term.row].tiles, rowOffset, keyRings[term.key].tiles, stage, sum,
          /*transposed=*/true, depthOf(plan.rowOperands[term.row]));
    }
    scores.push_back(sum);
  }
  Running current = olds;
  for (Running::Sum &sum : current.sums)
    if (isFirst)
      sum.weights.assign(sum.weights.size(), Value());
  Value last = arith::SubIOp::create(b, code.loc, n, code.index(1));
  if (overlapped)
    startAccumulators(code, last, "previous_stage", current);
  for (auto [k, score] : llvm::enumerate(scores)) {
    int64_t pending = countProducts(plan.scoreTerms, k + 1) + (overlapped ? accumulators : 0);
    score = device::AwaitOp::create(b, code.loc, score.getType(), score, pending);
    for (auto [ring, reader] : llvm::zip_equal(keyRings, lastReader))
      if (reader == k)
        device::ArriveOp::create(b, code.loc, ring.empty, stage);
  }
  passTurn(code);
  if (!overlapped && !isFirst && !multipliesAtOnce()) {
    startAccumulators(code, last, "previous_stage", current);
    finishAccumulators(code, last, "previous_stage", current);
  }
  Presence presence;
  if (masked)
    presence = findPresence(code, first, scores);
  Tile tile{{}, first, masked ? &presence : nullptr};
  addScores(code, scores, tile);
  Step step = passes(code, tile, current);
  // The next products read these rings. The loop of this wait also ends the region that ptxas
  // schedules freely, so that the wait for products in flight stays after the states.
  for (const Ring &ring : valueRings)
    device::WaitOp::create(b, code.loc, ring.full, stage, parity);
  if (overlapped)
    finishAccumulators(code, last, "previous_stage", step.next);
  if (masked && (!plan.fold.getBody().front().getOps<GuardOp>().empty() || hasRowsBeyond()))
    clearUnseen(code, presence, first, stage, ringsOfValues());
  // Rescales the sums, before the weights are rounded. Before the first tile no state has started
  // and all factors are the identity, unless another block has handed over its states.
  if (!isFirst || foldPart.states)
    rescaleSums(code, step);
  packWeights(code, step.next);
  if (multipliesAtOnce()) {
    startAccumulators(code, n, "stage", step.next);
    finishAccumulators(code, n, "stage", step.next);
  }
  return step.next;
}

/// Returns the number of products of all sums from `from` on.
int64_t TileKernel::countProducts(ArrayRef<SmallVector<ProductTerm, 1>> terms, unsigned from) {
  int64_t count = 0;
  for (const auto &ofSum : terms.drop_front(from))
    count += ofSum.size();
  return count;
}

/// Rounds the weights of each accumulator. Missing ones are computed from the first ones.
void TileKernel::packWeights(ScalarCode &code, Running &running) {
  for (auto [number, factors, sum] : llvm::enumerate(plan.weights, running.sums)) {
    Value whole = sum.weights[0];
    Over over = Over::tile(plan.shape.keys);
    for (auto [k, weights] : llvm::enumerate(sum.weights)) {
      const rows::Factors &factor = factors[k];
      if (!weights)
        weights = map(code, "rest", whole, over, {elementOf(whole)}, [&](ValueRange in, ValueRange) {
          code.bind(factors[0].values[0], in[0]);
          return Values{code.eval(factor.values[0])};
        })[0];
      weights = map(code, nameOfWeights(number), weights, over, {factor.narrow},
                    [&](ValueRange in, ValueRange) { return Values{code.convert(in[0], factor.narrow)}; })[0];
    }
  }
}

/// Starts O + P · G of the tile at a position, whose G has been awaited. If a sum has several
/// products, or 8-bit operands, the products of one tile are summed separately. Tensor cores
/// truncate each product that they add, those of 8-bit floats some 13 bits below the sum so far.
/// Hence only few terms may share such a sum.
void TileKernel::startAccumulators(ScalarCode &code, Value n, StringRef stageName, Running &running) {
  Value stage = stageOf(code, n, stageName).first;
  for (auto [terms, sum] : llvm::zip_equal(plan.accumulatorTerms, running.sums)) {
    bool isApart = terms.size() > 1 || plan.valueOperands[terms.front().key].getBytes() == 1;
    Value &to = isApart ? sum.part : sum.sum;
    to = isApart ? Value() : to;
    for (const ProductTerm &term : terms)
      to = device::ContractOp::create(b, isApart ? code.named("part") : code.loc, sum.sum.getType(),
                                      sum.weights[term.row], Value(), valueRings[term.key].tiles, stage, to,
                                      plan.valueOperands[term.key].isTransposed,
                                      /*depth=*/IntegerAttr());
    sum.weights.assign(sum.weights.size(), Value());
  }
}

void TileKernel::finishAccumulators(ScalarCode &code, Value n, StringRef stageName, Running &running) {
  Value stage = stageOf(code, n, stageName).first;
  for (auto [k, sum] : llvm::enumerate(running.sums)) {
    Value &to = sum.part ? sum.part : sum.sum;
    to = device::AwaitOp::create(b, code.loc, to.getType(), to, countProducts(plan.accumulatorTerms, k + 1));
    llvm::SmallSetVector<unsigned, 2> rings;
    for (const ProductTerm &term : plan.accumulatorTerms[k])
      rings.insert(term.key);
    for (unsigned ring : rings)
      device::ArriveOp::create(b, code.loc, valueRings[ring].empty, stage);
    if (!sum.part)
      continue;
    auto type = cast<FragmentType>(sum.sum.getType());
    sum.sum = map(code, AccOp(plan.folded.accumulators[k].acc).getName(), {sum.sum, sum.part},
                  Over::tile(type.getShape()[1]), {type.getElementType()},
                  [&](ValueRange in, ValueRange) { return Values{code.combine(Monoid::add, in[0], in[1])}; })[0];
    sum.part = Value();
  }
  // An arrival alone does not wait until a fragment is in its registers; products that have read
  // them do.
  if (plan.product)
    device::ArriveOp::create(b, code.loc, weightRing.empty, stage);
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
std::optional<unsigned> TileKernel::findRowAxis(StoreOp store, Value loopIndex, unsigned accumulator) {
  Type element = store.getArray().getType().getElementType();
  unsigned rank = store.getArray().getType().getRank();
  Value row = plan.rowIndex();
  Value ring = ringFor(element);
  if (!ring || rank < 2 || rank > 5 || cast<RingType>(ring.getType()).getColumns() < padded(columnsOf(accumulator)) ||
      columnsOf(accumulator) % 8 != 0 || store.getTerms().size() != rank || store.getConstant() != "0" ||
      store.getTerms().back() != loopIndex || !store.getValue().getType().isF32())
    return std::nullopt;
  auto kernel = store->getParentOfType<onf::KernelOp>();
  unsigned number = cast<BlockArgument>(store.getArray()).getArgNumber();
  if (kernel.isTemporary(number)) // launchers have TMA descriptors of outputs only
    return std::nullopt;
  StringRef name = kernel.getArrayName(number);
  std::optional<unsigned> rowAxis;
  rows::Dependence deps;
  for (unsigned axis = 0; axis < rank; ++axis) {
    Value term = store.getTerms()[axis];
    if (cast<StringAttr>(store.getCoefficients()[axis]).getValue() != (name + ".s" + Twine(axis)).str())
      return std::nullopt;
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

/// Binds the row and the fold's results: the states without axes to the first of `in`.
void TileKernel::bindFinals(ScalarCode &code, ValueRange in, ValueRange at) {
  code.bind(plan.rowIndex(), arith::AddIOp::create(b, code.loc, rowBase, at[0]));
  for (auto [scalar, value] : llvm::zip(plan.folded.scalars, in))
    code.bind(resultOf(scalar.acc), value);
}

/// Binds an element of a prologue contraction or an accumulator. An accumulator is also the result
/// of a contraction joined with it.
void TileKernel::bindSum(ScalarCode &code, unsigned number, Value value) {
  code.bind(sumOf(number), value);
  for (const TileProduct &contraction : plan.prologue)
    if (contraction.joined && contraction.accumulator == number)
      code.bind(contraction.joined, value);
}

/// Returns the states without axes, then these accumulators.
Values TileKernel::inputsOf(ValueRange finals, ArrayRef<unsigned> accumulators) {
  unsigned count = plan.folded.scalars.size();
  Values inputs(finals.take_front(count));
  for (unsigned number : accumulators)
    inputs.push_back(finals[count + number]);
  return inputs;
}

/// Returns the values of a store in a loop over a tile's columns. Elements outside of the output
/// may compute anything, but must not read memory. Quotients are products with the reciprocal,
/// which is computed once per row if the divisor is the row's.
Value TileKernel::mapResult(ScalarCode &code, ValueRange finals, StoreOp store, ArrayRef<unsigned> accumulators,
                            Value loopIndex) {
  unsigned count = plan.folded.scalars.size();
  int64_t extent = columnsOf(accumulators[0]), columns = padded(extent);
  bool reads = readsOutside(plan, store.getValue()), isEager = reads && canClamp(store.getValue());
  bool clamped = code.clampsLoads;
  code.reciprocals = true;
  code.scalesDivisors = store.getArray().getType().getElementType().isF32();
  Value values = map(code, "result", inputsOf(finals, accumulators), Over::tile(columns), {b.getF32Type()},
                     [&](ValueRange in, ValueRange at) {
                       bindFinals(code, in, at);
                       code.bind(loopIndex, at[1]);
                       for (auto [number, value] : llvm::zip(accumulators, in.drop_front(count)))
                         bindSum(code, number, value);
                       auto result = [&] { return Values{code.eval(store.getValue())}; };
                       // Without branches, so that all elements' loads are in flight at once.
                       if (isEager) {
                         BlockArgument row = plan.rowIndex();
                         Value one = code.index(1), rows = code.symbol(this->extent(row.getArgNumber()));
                         Value last = arith::SubIOp::create(b, code.loc, rows, one);
                         code.bind(row, arith::MinSIOp::create(b, code.loc, code.eval(row), last));
                         if (columns != extent)
                           code.bind(loopIndex, arith::MinSIOp::create(b, code.loc, at[1], code.index(extent - 1)));
                         clampLoads(code);
                         code.indices[loopIndex] = SymExpr(extent);
                         code.eager = true;
                       }
                       if (!reads || isEager)
                         return result();
                       return code.branch(isInside(code, at, extent), {b.getF32Type()}, result,
                                          [&] { return Values{code.constant(b.getF32FloatAttr(0))}; });
                     })[0];
  code.reciprocals = code.scalesDivisors = code.eager = false;
  code.clampsLoads = clamped;
  return values;
}

/// Returns whether the bound row exists, and the column is below the extent.
Value TileKernel::isInside(ScalarCode &code, ValueRange at, int64_t extent) {
  BlockArgument row = plan.rowIndex();
  Value rows = code.symbol(this->extent(row.getArgNumber()));
  Value inside = arith::CmpIOp::create(b, code.named("row_exists"), arith::CmpIPredicate::slt, code.eval(row), rows);
  if (at.size() > 1 && padded(extent) != extent)
    inside =
        code.both(inside, arith::CmpIOp::create(b, code.loc, arith::CmpIPredicate::slt, at[1], code.index(extent)));
  return inside;
}

/// Returns whether pairs of columns can be stored at once: even columns have even offsets, and the
/// next column is adjacent. This holds for temporaries with an even number of columns.
bool TileKernel::storesPairs(StoreOp store, Value loopIndex, unsigned accumulator) {
  auto kernel = store->getParentOfType<onf::KernelOp>();
  unsigned number = cast<BlockArgument>(store.getArray()).getArgNumber(), rank = store.getArray().getType().getRank();
  int64_t extent = columnsOf(accumulator);
  if (!kernel.isTemporary(number) || !store.getArray().getType().getElementType().isF32() || rank == 0 ||
      store.getTerms().size() != rank || store.getConstant() != "0" || store.getTerms().back() != loopIndex ||
      padded(extent) != extent || store.getArray().getType().getExtent(rank - 1) != SymExpr(extent))
    return false;
  rows::Dependence deps;
  for (unsigned axis = 0; axis < rank; ++axis)
    if (cast<StringAttr>(store.getCoefficients()[axis]).getValue() !=
            (kernel.getArrayName(number) + ".s" + Twine(axis)).str() ||
        (axis + 1 != rank && deps.on(store.getTerms()[axis], loopIndex)))
      return false;
  return true;
}

/// Emits the stores of a block for each row, or for each element of an accumulator.
void TileKernel::writeElements(ScalarCode &code, ValueRange finals, Block &block, ArrayRef<unsigned> accumulators,
                               Value loopIndex) {
  unsigned count = plan.folded.scalars.size();
  int64_t extent = accumulators.empty() ? 0 : columnsOf(accumulators[0]);
  Over over = accumulators.empty() ? Over::rows() : Over::tile(padded(extent));
  SmallVector<StoreOp> rest;
  for (auto store : block.getOps<StoreOp>()) {
    // All values are computed first. With a branch around each, neither loads nor quotients of two
    // elements could overlap.
    Value value = store.getValue();
    bool isSum = isa_and_nonnull<AtOp>(value.getDefiningOp());
    if (accumulators.empty() || isSum || !value.getType().isF32() || (readsOutside(plan, value) && !canClamp(value))) {
      rest.push_back(store);
      continue;
    }
    Value values = mapResult(code, finals, store, accumulators, loopIndex);
    map(code, "", values, over, {}, [&](ValueRange in, ValueRange at) {
      bindFinals(code, {}, at);
      code.bind(loopIndex, at[1]);
      code.bind(store.getValue(), in[0]);
      code.when(isInside(code, at, extent), [&] { code.store(store, storesPairs(store, loopIndex, accumulators[0])); });
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
    bindFinals(code, in, at);
    if (!accumulators.empty()) {
      code.bind(loopIndex, at[1]);
      for (auto [number, value] : llvm::zip(accumulators, in.drop_front(count)))
        bindSum(code, number, value);
    }
    code.when(isInside(code, at, extent), [&] {
      for (auto store : rest)
        code.store(store, inPairs);
    });
    return Values();
  });
}

/// Returns the ring that stages tiles of an output: that of the rows, which have been read by then,
/// or the ring for results.
Value TileKernel::ringFor(Type element) {
  for (const Ring &ring : rowRings)
    if (cast<RingType>(ring.tiles.getType()).getElementType() == element)
      return ring.tiles;
  return resultRing && cast<RingType>(resultRing.getType()).getElementType() == element ? resultRing : Value();
}

/// Returns the accumulators and prologue contractions that a loop reads, or else an accumulator
/// over whose axis it runs.
SmallVector<unsigned> TileKernel::accumulatorsOf(ForOp loop) {
  SmallVector<unsigned> which;
  loop.walk([&](AtOp at) {
    for (auto [k, accumulator] : llvm::enumerate(plan.folded.accumulators))
      if (resultOf(accumulator.acc) == at.getState() && !is_contained(which, k))
        which.push_back(k);
    for (auto [k, contraction] : llvm::enumerate(plan.prologue))
      if (!contraction.joined && contraction.fold.getResult(0) == at.getState() &&
          !is_contained(which, plan.folded.accumulators.size() + k))
        which.push_back(plan.folded.accumulators.size() + k);
  });
  StringRef extent = cast<StringAttr>(loop.getExtents()[0]).getValue();
  for (unsigned k = 0; which.empty(); ++k)
    if (extent == std::to_string(plan.folded.accumulators[k].extents[0]))
      which.push_back(k);
  return which;
}

/// Finds the results that are stored by tiles. Each gets a ring of its own if the block has room,
/// so that no result waits for the store of the one before. The first of each type uses the ring of
/// `ringFor`.
void TileKernel::planResults(ScalarCode &code) {
  for (auto loop : plan.nest.getBody().getOps<ForOp>()) {
    SmallVector<unsigned> accumulators = accumulatorsOf(loop);
    auto stores = llvm::to_vector(loop.getBody().front().getOps<StoreOp>());
    auto rowAxis =
        stores.size() == 1 ? findRowAxis(stores[0], loop.getBody().getArgument(0), accumulators[0]) : std::nullopt;
    if (!rowAxis)
      continue;
    Type element = stores[0].getArray().getType().getElementType();
    Value ring = ringFor(element);
    auto isStaged = [&](const TileResult &other) { return other.ring == ring; };
    bool isReused = llvm::any_of(tileResults, isStaged);
    auto own = RingType::get(b.getContext(), 1, {plan.shape.rows(), padded(columnsOf(accumulators[0]))}, element);
    if (isReused && int64_t(llvm::alignTo(own.getStageBytes(), 1024)) <= findFreeBytes()) {
      ring = device::SharedOp::create(b, code.named("result_ring"), own);
      isReused = false;
    }
    tileResults.push_back({loop, stores[0], accumulators, *rowAxis, ring, isReused});
  }
}

/// Stages a whole tile of an output in a ring and starts its bulk store. Only the warp that awaits
/// a store knows that the ring has been read. A barrier tells the other warps before they write the
/// next tile there.
void TileKernel::writeTile(ScalarCode &code, ValueRange finals, const TileResult &result) {
  int64_t columns = padded(columnsOf(result.accumulators[0]));
  StoreOp store = result.store;
  Type element = store.getArray().getType().getElementType();
  Value values = mapResult(code, finals, store, result.accumulators, result.loop.getBody().getArgument(0));
  Value rounded = map(code, "packed", values, Over::tile(columns), {element},
                      [&](ValueRange in, ValueRange) { return Values{code.convert(in[0], element)}; })[0];
  Values coordinates;
  for (auto [axis, term] : llvm::enumerate(store.getTerms().drop_back()))
    coordinates.push_back(axis == result.rowAxis ? rowBase : code.eval(term));
  Value array = program.getBody().getArgument(cast<BlockArgument>(store.getArray()).getArgNumber());
  Value row = arith::MulIOp::create(b, code.loc, warpgroup, code.index(64)), stage = code.index(0);
  if (result.isReused)
    device::AwaitStoresOp::create(b, code.loc);
  if (result.isReused || device::isReadByWarps(result.ring))
    device::SyncWarpgroupOp::create(b, code.loc);
  device::StoreTileOp::create(b, code.loc, rounded, result.ring, stage, row, array, coordinates,
                              b.getI64IntegerAttr(result.rowAxis));
  if (&result == &tileResults.back())
    device::AwaitStoresOp::create(b, code.loc);
}

/// Emits the epilogue, for each row or each element of an accumulator.
void TileKernel::finish(ScalarCode &code, ValueRange finals) {
  recallBlock(code);
  Block &body = plan.nest.getBody().front();
  if (!body.getOps<StoreOp>().empty())
    writeElements(code, finals, body, {}, Value());
  for (auto loop : body.getOps<ForOp>()) {
    auto tile = llvm::find_if(tileResults, [&](const TileResult &result) { return result.loop == loop; });
    if (tile != tileResults.end())
      writeTile(code, finals, *tile);
    else
      writeElements(code, finals, loop.getBody().front(), accumulatorsOf(loop), loop.getBody().getArgument(0));
  }
  for (device::KeptOp number : recalled)
    if (number->use_empty())
      number.erase();
}

void TileKernel::consume(ScalarCode &code) {
  warpgroup = device::WarpgroupOp::create(b, code.named("warpgroup"), b.getIndexType(),
                                          /*again=*/false);
  Value offset = arith::MulIOp::create(b, code.named("warpgroup_row"), warpgroup, code.index(64));
  rowBase = arith::AddIOp::create(b, code.named("row_base"), firstRow, offset);
  Value zero = code.index(0);
  for (const Ring &ring : rowRings)
    device::WaitOp::create(b, code.loc, ring.full, zero, zero);
  for (LoadOp load : readOnce)
    code.eval(load);
  for (const Ring &ring : ArrayRef(rowRings).take_front(plan.shape.holdsRows ? rowRings.size() : 0)) {
    auto type = cast<RingType>(ring.tiles.getType());
    heldRows.push_back(device::LoadFragmentOp::create(b, code.named("rows"),
                                                      typeOver(Over::tile(type.getColumns()), type.getElementType()),
                                                      ring.tiles, zero, offset, zero, /*transposed=*/false));
  }
  contractPrologue(code);
  findBounds(code);
  Running inits = initialise(code);
  for (auto [contraction, sum] : llvm::zip_equal(plan.prologue, prologueSums))
    if (contraction.joined)
      inits.sums[contraction.accumulator].sum = sum;
  Value start = beginOfPart(code);
  inits = loadStates(code, inits, start);
  Value some = arith::CmpIOp::create(b, code.loc, arith::CmpIPredicate::sgt, foldPart.end, start);
  SmallVector<Type> types;
  for (Value init : inits.values())
    types.push_back(init.getType());
  Values finals = code.branch(
      some, types,
      [&] {
        Value one = code.index(1), second = b.createOrFold<arith::AddIOp>(code.loc, start, one);
        Value begin = b.createOrFold<arith::MaxSIOp>(code.named("end_masked"), numMasked, second);
        if (foldPart.states)
          begin = arith::MinSIOp::create(b, code.named("end_masked"), begin, foldPart.end);
        Running running = inits;
        for (auto [k, sum] : llvm::enumerate(running.sums))
          for (const rows::Factors &factors : plan.weights[k]) {
            if (multipliesAtOnce()) {
              sum.weights.push_back(Value());
              continue;
            }
            FragmentType type = typeOver(Over::tile(plan.shape.keys), factors.narrow);
            Value zero = code.constant(b.getFloatAttr(type.getElementType(), 0.0));
            sum.weights.push_back(device::FillOp::create(b, code.named(nameOfWeights(k)), type, zero));
          }
        auto run = [&](StringRef phase, Value from, Value to, std::optional<bool> masked) {
          // Divergent code must not overlap with products in flight.
          bool overlapped = masked && plan.shape.overlap && !(*masked && readsMemory);
          Values results = code.loop(from, to, running.values(), namesOf(running), [&](Value n, ValueRange args) {
            return iterate(code, n, running.with(args), masked, overlapped).values();
          });
          if (!results.empty())
            results[0].getDefiningOp()->setLoc(code.named(phase));
          running = running.with(results);
        };
        // The first tile is a loop, too, so that emitters may merge the three loops.
        run("first", start, second, std::nullopt);
        run("masked", second, begin, true);
        run("full", begin, foldPart.end, false);
        if (!multipliesAtOnce()) {
          Value last = arith::SubIOp::create(b, code.loc, foldPart.end, one);
          startAccumulators(code, last, "last_stage", running);
          finishAccumulators(code, last, "last_stage", running);
        }
        if (isPersistent())
          completeRings(code, start, /*isProducer=*/false);
        return running.values();
      },
      [&] { return inits.values(); });
  auto end = [&] {
    Values results = conclude(code, inits.with(finals));
    results.append(prologueSums);
    finish(code, results);
    return Values();
  };
  if (!foldPart.states)
    return (void)end();
  Value kept = device::KeptOp::create(b, code.named("leaves"), foldPart.handsOver);
  Value handsOver = arith::CmpIOp::create(b, code.loc, arith::CmpIPredicate::ne, kept, zero);
  code.branch(handsOver, {}, [&] { return storeStates(code, inits.with(finals)), Values(); }, end);
}

} // namespace moa::tiles
