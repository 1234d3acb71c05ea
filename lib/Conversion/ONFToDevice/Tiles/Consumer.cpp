//===- Consumer.cpp - a warpgroup that computes 64 rows -------------------===//
#include "lib/Conversion/ONFToDevice/Tiles/Consumer.h"
#include "lib/Conversion/ONFToDevice/Tiles/Names.h"

using namespace mlir;
using namespace moa;
using namespace moa::onf;

namespace moa::tiles {

/// Finds the rows of this warpgroup of the block.
static WarpgroupRows findRows(ScalarCode &code, const BlockRows &block) {
  OpBuilder &b = code.b;
  Value number = device::WarpgroupOp::create(b, code.named("warpgroup"), b.getIndexType(), /*again=*/false);
  Value offset = arith::MulIOp::create(b, code.named("warpgroup_row"), number, code.index(64));
  return {number, offset, arith::AddIOp::create(b, code.named("row_base"), block.first, offset)};
}

Consumer::Consumer(const TileContext &context, ScalarCode &code, const FoldFacts &facts, const Rings &rings,
                   TileOrder &order, const BlockRows &block, StreamK &streamK, const FoldPart &part)
    : BlockPart(context, code), facts(facts), rings(rings), order(order), streamK(streamK), part(part),
      rows(findRows(code, block)), contraction(context, code, rings, rows, awaitRows()),
      prologueSums(contraction.contractPrologue(block.first)), masks(context, code, rows),
      states(context, code, facts, rows, masks) {}

/// Waits for the rows. Returns those that the schedule keeps in registers.
Values Consumer::awaitRows() {
  Value zero = code.index(0);
  for (const Ring &ring : rings.rows)
    device::WaitOp::create(b, code.loc, ring.full, zero, zero);
  for (LoadOp load : facts.readOnce)
    code.eval(load);
  Values held;
  for (const Ring &ring : ArrayRef(rings.rows).take_front(plan.shape.holdsRows ? rings.rows.size() : 0)) {
    auto type = cast<RingType>(ring.tiles.getType());
    held.push_back(device::LoadFragmentOp::create(b, code.named("rows"),
                                                  typeOver(Over::tile(type.getColumns()), type.getElementType()),
                                                  ring.tiles, zero, rows.offset, zero, /*transposed=*/false));
  }
  return held;
}

void Consumer::run(llvm::function_ref<void(ValueRange)> end) {
  Running inits = states.initialise();
  for (auto [product, sum] : llvm::zip_equal(plan.prologue, prologueSums))
    if (product.joined)
      inits.sums[product.accumulator].sum = sum;
  Value start = part.readBegin(code);
  inits = streamK.loadStates(code, part, rows, inits, start);
  Value some = arith::CmpIOp::create(b, code.loc, arith::CmpIPredicate::sgt, part.end, start);
  SmallVector<Type> types;
  for (Value init : inits.values())
    types.push_back(init.getType());
  Values finals =
      code.branch(some, types, [&] { return runTiles(inits, start).values(); }, [&] { return inits.values(); });
  auto conclude = [&] {
    Values results = states.conclude(inits.with(finals));
    results.append(prologueSums);
    end(results);
    return Values();
  };
  if (!part.isOfSplit())
    return (void)conclude();
  Value kept = device::KeptOp::create(b, code.named("leaves"), part.handsOver), zero = code.index(0);
  Value handsOver = arith::CmpIOp::create(b, code.loc, arith::CmpIPredicate::ne, kept, zero);
  code.branch(handsOver, {}, [&] { return streamK.storeStates(code, part, inits.with(finals)), Values(); }, conclude);
}

/// Emits the loops over tiles, from position `start` on.
Running Consumer::runTiles(Running running, Value start) {
  Value one = code.index(1), second = b.createOrFold<arith::AddIOp>(code.loc, start, one);
  Value begin = b.createOrFold<arith::MaxSIOp>(code.named("end_masked"), order.numMasked, second);
  if (part.isOfSplit())
    begin = arith::MinSIOp::create(b, code.named("end_masked"), begin, part.end);
  for (auto [k, sum] : llvm::enumerate(running.sums))
    for (const rows::Factors &factors : plan.weights[k]) {
      if (multipliesAtOnce()) {
        sum.weights.push_back(Value());
        continue;
      }
      FragmentType type = typeOver(Over::tile(plan.shape.keys), factors.narrow);
      Value zero = code.constant(b.getFloatAttr(type.getElementType(), 0.0));
      sum.weights.push_back(device::FillOp::create(b, code.named(nameOfWeights(plan, k)), type, zero));
    }
  auto loop = [&](StringRef phase, Value from, Value to, std::optional<bool> masked) {
    // Divergent code must not overlap with products in flight.
    bool overlapped = masked && plan.shape.overlap && !(*masked && facts.readsMemory);
    Values results = code.loop(from, to, running.values(), namesOf(facts, running), [&](Value n, ValueRange args) {
      return iterate(n, running.with(args), masked, overlapped).values();
    });
    if (!results.empty())
      results[0].getDefiningOp()->setLoc(code.named(phase));
    running = running.with(results);
  };
  // The first tile is a loop, too, so that emitters may merge the three loops.
  loop("first", start, second, std::nullopt);
  loop("masked", second, begin, true);
  loop("full", begin, part.end, false);
  if (!multipliesAtOnce()) {
    Value last = arith::SubIOp::create(b, code.loc, part.end, one);
    multiply(last, "last_stage", running);
  }
  if (streamK.isPersistent())
    rings.complete(start, part.end, /*isProducer=*/false);
  return running;
}

/// Adds the products of the tile at a position to the accumulators.
void Consumer::multiply(Value n, StringRef stageName, Running &running) {
  contraction.startAccumulators(n, stageName, running);
  contraction.finishAccumulators(n, stageName, running);
}

/// Emits an iteration of `plan.product`. The weights are loaded before the previous tile is
/// contracted, because nothing may define registers of a contraction in flight.
Running Consumer::iterateProduct(Value n, const Running &olds, std::optional<bool> known) {
  bool isFirst = !known, isMasked = plan.product->isMasked && known.value_or(true);
  auto [stage, parity] = rings.stageOf(n);
  Running next = olds;
  Value last = arith::SubIOp::create(b, code.loc, n, code.index(1));
  if (isFirst)
    next.sums[0].weights = {Value()};
  device::WaitOp::create(b, code.loc, rings.weights.full, stage, parity);
  if (isMasked) { // both operands lose the same rows
    device::WaitOp::create(b, code.loc, rings.values[0].full, stage, parity);
    Value first = order.firstKeyAt(n, known);
    Presence presence = masks.findPresence(first);
    masks.clearUnseen(presence, first, stage, {{rings.weights.tiles, false}, {rings.values[0].tiles, false}});
  }
  Value weights = contraction.loadWeights(stage);
  if (!isFirst)
    multiply(last, "previous_stage", next);
  if (!isMasked)
    device::WaitOp::create(b, code.loc, rings.values[0].full, stage, parity);
  next.sums[0].weights = {weights};
  return next;
}

/// Emits the iteration of the tile at position n. Returns the states after it, and its weights. The
/// weights of the previous tile are multiplied here; if `overlapped`, while the states of this tile
/// are computed. Schedules without overlap multiply each tile's weights at its own end, so that
/// scores and weights never occupy registers together or across tiles. `known` is true if the tile
/// is masked. Without `known` the tile is the first one, which may be masked.
Running Consumer::iterate(Value n, const Running &olds, std::optional<bool> known, bool overlapped) {
  bool isFirst = !known, masked = known.value_or(true);
  if (plan.product)
    return iterateProduct(n, olds, known);
  auto [stage, parity] = rings.stageOf(n);
  Value first = order.firstKeyAt(n, known);
  Values scores = contraction.startScores(n, stage, parity);
  Running current = olds;
  for (Running::Sum &sum : current.sums)
    if (isFirst)
      sum.weights.assign(sum.weights.size(), Value());
  Value last = arith::SubIOp::create(b, code.loc, n, code.index(1));
  if (overlapped)
    contraction.startAccumulators(last, "previous_stage", current);
  contraction.awaitScores(scores, stage, overlapped ? contraction.countAccumulatorProducts() : 0);
  if (!overlapped && !isFirst && !multipliesAtOnce())
    multiply(last, "previous_stage", current);
  Presence presence;
  if (masked)
    presence = masks.findPresence(first, scores);
  Step step = states.step(scores, first, masked ? &presence : nullptr, current);
  // The next products read these rings. The loop of this wait also ends the region that ptxas
  // schedules freely, so that the wait for products in flight stays after the states.
  for (const Ring &ring : rings.values)
    device::WaitOp::create(b, code.loc, ring.full, stage, parity);
  if (overlapped)
    contraction.finishAccumulators(last, "previous_stage", step.next);
  if (masked && (!plan.fold.getBody().front().getOps<GuardOp>().empty() || hasRowsBeyond()))
    masks.clearUnseen(presence, first, stage, ringsOfValues());
  // Rescales the sums, before the weights are rounded. Before the first tile no state has started
  // and all factors are the identity, unless another block has handed over its states.
  if (!isFirst || part.isOfSplit())
    states.rescaleSums(step);
  contraction.packWeights(step.next);
  if (multipliesAtOnce())
    multiply(n, "stage", step.next);
  return step.next;
}

/// Returns whether the last tile may have rows of an accumulator's operand beyond the fold's range.
/// For example, the operand may be longer, or a step may not divide its axis.
bool Consumer::hasRowsBeyond() {
  SymExpr range = plan.fold.getExtent();
  return !SymExpr::mod(range, SymExpr(plan.shape.keys)).isZero() &&
         llvm::any_of(plan.valueOperands, [&](const TileOperand &operand) {
           SymExpr size = LoadOp(operand.load).getArray().getType().getExtent(operand.rowAxis);
           return !operand.isTransposed && SymExpr::floorDiv(size + operand.step - SymExpr(1), operand.step) != range;
         });
}

/// Returns the rings of the accumulators' operands. Keys are rows or, if elements have 8 bits
/// (true), columns.
SmallVector<std::pair<Value, bool>> Consumer::ringsOfValues() {
  SmallVector<std::pair<Value, bool>> list;
  for (auto [operand, ring] : llvm::zip(plan.valueOperands, rings.values))
    list.push_back({ring.tiles, operand.isTransposed});
  return list;
}

} // namespace moa::tiles
