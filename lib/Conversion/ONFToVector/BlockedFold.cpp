//===- BlockedFold.cpp - folds in blocks of keys --------------------------===//
#include "lib/Conversion/ONFToVector/BlockedFold.h"

using namespace mlir;
using namespace moa;

namespace moa::rows {
using namespace moa::onf;

/// Most terms of a sum of i8 products that fit i32, or that f32 represents exactly. A product is at
/// most 2¹⁴.
static constexpr int64_t kMostByteTerms = (int64_t(1) << 17) - 1, kMostFloatTerms = 1 << 10;

bool emitBlockedFold(Emitter &emitter, FoldOp fold, Value laneIndex, int64_t vectorsPerTile,
                     const ONFToVectorOptions &options) {
  ONFToVectorOptions known = options;
  // 32-bit lanes of vectors of 128, 256 or 512 bits.
  bool isVector = emitter.lanes == 4 || emitter.lanes == 8 || emitter.lanes == 16;
  known.byteDots &= isVector;
  if (!isVector || (options.bf16Dots == Bf16Dots::tiles && emitter.lanes != 16))
    known.bf16Dots = Bf16Dots::none;
  auto plan = planFold(fold, laneIndex, emitter.deps, emitter.onDemand, nullptr,
                       {known.byteDots ? kMostByteTerms : kMostFloatTerms, /*asFloats=*/false});
  if (!plan)
    return false;
  BlockedFold(emitter, fold, laneIndex, vectorsPerTile, std::move(*plan), known).emit();
  return true;
}

BlockedFold::BlockedFold(Emitter &emitter, FoldOp fold, Value laneIndex, int64_t vectors, FoldPlan plan,
                         const ONFToVectorOptions &options)
    : e(emitter), fold(fold), laneIndex(laneIndex), key(fold.getBody().getArgument(0)), guard(getGuard(fold)),
      plan(std::move(plan)), options(options), repeated(fold->getParentOfType<onf::KernelOp>()) {
  shape.lanes = e.lanes;
  shape.vectors = vectors;
  chooseShape();
}

/// Chooses the register tile and the block of keys. There are 32 vector registers with 512-bit
/// vectors, else 16. A register tile needs RI·RJ sums, RI vectors of rows and a broadcast scalar:
/// 24 + 3 + 1 of 32, or 12 + 3 + 1 of 16. With 96 keys per block, the panel P[96][48] of f32 takes
/// 18 KB of a 32 KB L1 cache and leaves room for streamed operands. On Zen 4 this is faster than
/// blocks of 64 or 128 keys.
void BlockedFold::chooseShape() {
  Type type = Float32Type::get(fold.getContext());
  if (!plan.scores.empty() && !plan.scores.front().isInteger())
    type = plan.scores.front().type;
  else if (!plan.accumulators.empty())
    type = plan.accumulators.front().type;
  bool wide = shape.lanes * type.getIntOrFloatBitWidth() >= 512;
  shape.RI = shape.vectors % 3 == 0 ? 3 : shape.vectors % 2 == 0 ? 2 : 1;
  shape.RJ = wide || shape.RI == 1 ? 8 : 4;
  shape.BN = 96;
  if (auto lift = fold.getLift())
    if (int64_t size = lift->getSize(Resource::cache); size > 1)
      shape.BN = size;
  int64_t widest = 1;
  for (const Score &score : plan.scores)
    widest = std::max(widest, score.extent);
  for (const Accumulator &accumulator : plan.accumulators) {
    int64_t size = 1;
    for (int64_t extent : accumulator.extents)
      size *= extent;
    widest = std::max(widest, size);
  }
  // The same block size as in Fold.cpp gives sums of columns the bits of a single column's sum.
  if (e.columns)
    shape.BN = kSumBlock;
  // Limit a block of keys of one operand to 256 KB.
  int64_t bytes = type.getIntOrFloatBitWidth() / 8;
  int64_t limit = std::max<int64_t>((256 * 1024) / (widest * bytes), 1);
  shape.BN = std::min(shape.BN, std::max(limit, shape.RJ));
  shape.unit = 2;
  // 2 × 2 tiles of 16 rows and 16 keys.
  if (usesTiles()) {
    shape.RI = shape.vectors % 2 == 0 ? 2 : 1;
    shape.unit = kTileDepth;
  }
  shape.BN = llvm::alignTo(std::min<int64_t>(shape.BN, 4096), std::max(shape.RJ, shape.unit));
}

//===----------------------------------------------------------------------===//
// Scratch memory
//===----------------------------------------------------------------------===//

void BlockedFold::allocateScore(const Score &score) {
  Builder b(fold.getContext());
  int64_t width = shape.panelWidth();
  ScoreBuffers buffers;
  buffers.bytes = score.isInteger() && options.byteDots;
  buffers.bf16 = isBf16(score);
  bool isPacked = buffers.bytes || buffers.bf16;
  buffers.operand = isPacked ? b.getI32Type() : score.isInteger() ? b.getF32Type() : score.type;
  buffers.sum = score.value && score.isInteger() ? score.value.getType() : buffers.bf16 ? score.type : buffers.operand;
  buffers.depth = buffers.bytes  ? llvm::divideCeil(score.extent, 4)
                  : buffers.bf16 ? llvm::alignTo(score.extent, shape.unit) / 2
                                 : score.extent;
  buffers.keyStride = llvm::alignTo(score.extent, buffers.bf16 ? std::max(shape.lanes, shape.unit) : shape.lanes);
  int64_t rows = shape.vectors * shape.lanes;
  buffers.rows = e.scratchFor(buffers.operand, rows * buffers.depth);
  Type keyType = buffers.bytes ? Type(b.getI8Type()) : buffers.bf16 ? Type(b.getBF16Type()) : buffers.operand;
  buffers.keys = e.scratchFor(keyType, shape.BN * buffers.keyStride);
  buffers.scores = e.scratchFor(buffers.sum, shape.BN * width);
  if (buffers.bytes)
    buffers.bias = e.scratchFor(buffers.operand, rows);
  scores.push_back(buffers);
}

void BlockedFold::allocateAccumulator(const Accumulator &accumulator) {
  AccumulatorBuffers buffers;
  buffers.bf16 = isBf16(accumulator);
  int64_t unit = std::max(shape.lanes, shape.RJ), outer = 1;
  for (int64_t extent : ArrayRef<int64_t>(accumulator.extents).drop_back())
    outer *= extent;
  buffers.lastPadded = llvm::alignTo(accumulator.extents.back(), unit);
  buffers.padded = outer * buffers.lastPadded;
  Builder b(fold.getContext());
  buffers.keys = e.scratchFor(buffers.bf16 ? Type(b.getBF16Type()) : accumulator.type, shape.BN * buffers.padded);
  if (buffers.bf16)
    buffers.packed = e.scratchFor(b.getI32Type(), shape.BN / 2 * buffers.padded);
  buffers.state = e.scratchFor(accumulator.type, shape.vectors * shape.lanes * buffers.padded);
  auto length = fold.getExtent().getConstant();
  if (e.columns && (!length || *length > kSumBlock))
    buffers.rest = e.scratchFor(accumulator.type, shape.vectors * shape.lanes * buffers.padded);
  buffers.factor = e.scratchFor(accumulator.type, shape.panelWidth());
  accumulators.push_back(buffers);
  Value started;
  if (!accumulator.acc.getRefs().empty())
    started = e.scratchFor(booleanType(), shape.vectors * shape.lanes);
  accumulatorStarted.push_back(started);
  if (accumulator.operand == operands.size())
    operands.push_back({e.scratchFor(accumulator.type, shape.BN * shape.panelWidth()), Value()});
  RowOperands &rows = operands[accumulator.operand];
  (buffers.bf16 ? rows.bf16 : rows.floats) = true;
  if (buffers.bf16 && !rows.packed)
    rows.packed = e.scratchFor(b.getI32Type(), shape.BN / 2 * shape.panelWidth());
}

void BlockedFold::allocate() {
  int64_t rows = shape.vectors * shape.lanes, width = shape.panelWidth();
  for (const Score &score : plan.scores)
    allocateScore(score);
  for (const Accumulator &accumulator : plan.accumulators)
    allocateAccumulator(accumulator);
  for (Scalar &scalar : plan.scalars) {
    ScalarBuffers buffers;
    buffers.state = e.scratchFor(scalar.acc.getResult().getType(), rows);
    if (!scalar.acc.getRefs().empty())
      buffers.started = e.scratchFor(booleanType(), rows);
    if (isPureSum(scalar.acc))
      buffers.rest = e.scratchFor(scalar.acc.getResult().getType(), rows);
    scalars.push_back(buffers);
  }
  for (auto &[value, pass] : plan.kept)
    kept.push_back(e.scratchFor(value.getType(), shape.BN * width));
  for (Value value : plan.keyValues)
    keyValues.push_back(e.scratchFor(value.getType(), llvm::alignTo(shape.BN, shape.lanes)));
  for (LoadOp load : plan.rowLoads)
    rowLoads.push_back(e.scratchFor(load.getResult().getType(), shape.BN * width));
  for (LoadOp load : plan.guardLoads)
    guardLoads.push_back(e.scratchFor(load.getResult().getType(), shape.BN * shape.lanes));
  if (guard) {
    masks = e.scratchFor(booleanType(), rows * shape.BN);
    anyOfKey = e.scratchFor(booleanType(), shape.BN);
    anyOfRow = e.scratchFor(booleanType(), rows);
  }
}

/// Stores a vector `repeats` times in a row.
void BlockedFold::fillBuffer(Value pointer, Value vector, int64_t repeats) {
  Value end = e.here().index(repeats * shape.lanes), start = e.here().index(0);
  e.loop(start, end, shape.lanes, [&](Value offset) { store(vector, pointer, offset); });
}

void BlockedFold::initialise() {
  Build b = e.here();
  Value none = b.constant(e.rowType(booleanType()), b.b.getBoolAttr(false));
  for (auto [scalar, buffers] : llvm::zip_equal(plan.scalars, scalars)) {
    AccOp acc = scalar.acc;
    Type type = e.rowType(acc.getResult().getType());
    fillBuffer(buffers.state, e.identityOf(acc, type), shape.vectors);
    if (buffers.started)
      fillBuffer(buffers.started, none, shape.vectors);
    if (buffers.rest)
      fillBuffer(buffers.rest, b.identity(Monoid::add, type), shape.vectors);
  }
  for (auto [accumulator, buffers, started] : llvm::zip_equal(plan.accumulators, accumulators, accumulatorStarted)) {
    Value zero = b.identity(Monoid::add, e.rowType(accumulator.type));
    fillBuffer(buffers.state, zero, shape.vectors * buffers.padded);
    if (buffers.rest)
      fillBuffer(buffers.rest, zero, shape.vectors * buffers.padded);
    if (started)
      fillBuffer(started, none, shape.vectors);
  }
}

/// Adds the compensations of sums over blocks to the sums.
void BlockedFold::addRests() {
  auto add = [&](Type type, Value state, Value rest, Value size) {
    e.loop(e.here().index(0), size, shape.lanes, [&](Value offset) {
      Value lost = load(type, rest, offset), sum = load(type, state, offset);
      store(e.here().combine(Monoid::add, sum, lost), state, offset);
    });
  };
  Value rows = e.here().mul(vectors, shape.lanes);
  for (auto [scalar, buffers] : llvm::zip_equal(plan.scalars, scalars))
    if (buffers.rest)
      add(scalar.acc.getResult().getType(), buffers.state, buffers.rest, rows);
  for (auto [accumulator, buffers] : llvm::zip_equal(plan.accumulators, accumulators))
    if (buffers.rest)
      add(accumulator.type, buffers.state, buffers.rest, e.here().mul(rows, buffers.padded));
}

/// Makes the final states readable from the code for rows.
void BlockedFold::publish() {
  Scope &scope = e.top();
  SmallVector<AccOp> accs = getAccs(fold);
  auto resultOf = [&](AccOp acc) -> Value { return fold.getResult(llvm::find(accs, acc) - accs.begin()); };
  for (auto [scalar, buffers] : llvm::zip_equal(plan.scalars, scalars)) {
    StateBuffer state;
    state.pointer = buffers.state;
    state.element = scalar.acc.getResult().getType();
    state.tiled = true;
    scope.states[resultOf(scalar.acc)] = state;
  }
  for (auto [accumulator, buffers] : llvm::zip_equal(plan.accumulators, accumulators)) {
    StateBuffer state;
    state.pointer = buffers.state;
    state.element = accumulator.type;
    state.tiled = true;
    state.panel = shape.RI;
    state.padded = buffers.padded;
    state.extents.assign(accumulator.extents.begin(), accumulator.extents.end());
    state.extents.back() = buffers.lastPadded;
    scope.states[resultOf(accumulator.acc)] = state;
  }
  for (Value result : fold.getResults())
    e.deps.add(result, laneIndex);
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

void BlockedFold::emit() {
  allocate();
  configureTiles();
  Build b = e.here();
  Value panels = b.ceilDiv(e.tile.rows, shape.panelWidth());
  vectors = b.mul(panels, shape.RI);
  initialise();
  for (unsigned k = 0; k != scores.size(); ++k)
    stageRows(k);
  Value one = b.index(1), lastRow = b.sub(b.add(e.tile.base, e.tile.rows), one);
  auto [lower, upper] = e.hull(fold, e.tile.base, lastRow);
  Value from = e.here().mul(e.here().div(lower, shape.BN), shape.BN);
  e.loop(from, upper, shape.BN, [&, lower = lower, upper = upper](Value base) {
    Build b = e.here();
    first = b.max(base, lower);
    count = b.sub(b.min(b.add(base, shape.BN), upper), first);
    emitBlock(first, count);
  });
  releaseTiles();
  addRests();
  publish();
}

/// Returns whether a piece of the fold meets the block or, with `full`, covers all of it.
Value BlockedFold::piecesCover(bool full) {
  if (!fold.getPieces())
    return e.here().truth(!full);
  Value low = e.tile.base, found = e.here().truth(false);
  Build b = e.here();
  Value one = b.index(1), high = b.sub(b.add(e.tile.base, e.tile.rows), one);
  for (auto piece : fold.getPieces()->getAsRange<PieceAttr>()) {
    if (full && !piece.getFull())
      continue;
    auto [from, to] = full ? e.interval(fold, piece.getFullLower(), piece.getFullUpper(), low, high)
                           : e.interval(fold, piece.getVisitLower(), piece.getVisitUpper(), low, high);
    Build at = e.here();
    Value end = at.add(first, count);
    Value endsInTime = full ? at.sle(end, to) : at.slt(first, to);
    Value startsInTime = full ? at.sle(from, first) : at.slt(from, end);
    found = at.either(found, at.both(startsInTime, endsInTime));
  }
  return found;
}

void BlockedFold::emitBlock(Value firstKey, Value numKeys) {
  Build b = e.here();
  Value isWhole = b.eq(numKeys, b.index(shape.BN));
  if (!guard) {
    e.when(isWhole, [&] { emitBody(true); }, [&] { emitBody(false); });
    return;
  }
  e.when(piecesCover(false), [&] { emitMaskedBlock(firstKey, numKeys); });
}

void BlockedFold::emitMaskedBlock(Value firstKey, Value numKeys) {
  Build b = e.here();
  Value isWhole = b.eq(numKeys, b.index(shape.BN));
  Value known = b.both(isWhole, piecesCover(true));
  Type i1 = booleanType();
  Values allAny = e.branch(
      known, {i1, i1}, [&]() -> Values { return {e.here().truth(true), e.here().truth(true)}; },
      [&]() -> Values {
        auto [all, any] = evaluateMasks();
        return {all, any};
      });
  e.when(
      e.here().both(isWhole, allAny[0]), [&] { emitBody(true); }, [&] { e.when(allAny[1], [&] { emitBody(false); }); });
}

/// Evaluates the guard for each key and row of the block. Stores the masks, the keys that some row
/// sees and the rows that see some key. Returns whether all, and whether any, pairs are present.
std::pair<Value, Value> BlockedFold::evaluateMasks() {
  Build b = e.here();
  Value zero = b.index(0), none = b.truth(false), yes = b.truth(true);
  e.loop(zero, count, 1, [&](Value j) { store(none, anyOfKey, j); });
  Value noRow = b.constant(e.rowType(booleanType()), b.b.getBoolAttr(false));
  Value allRows = b.constant(e.rowType(booleanType()), b.b.getBoolAttr(true));
  Values result = e.loop(zero, vectors, 1, {yes, none}, [&](Value v, ValueRange args) {
    bindRows(e, e.top(), laneIndex, v);
    Value base = e.here().mul(v, shape.BN * shape.lanes);
    for (auto [read, buffer] : llvm::zip_equal(plan.guardLoads, guardLoads))
      e.stageLoad(read, key, first, count, buffer, shape.lanes);
    Values rows = e.loop(zero, count, 1, {allRows, noRow}, [&](Value j, ValueRange seen) {
      e.top().values[key] = e.here().add(first, j);
      for (auto [read, buffer] : llvm::zip_equal(plan.guardLoads, guardLoads))
        e.top().values[read.getResult()] = load(read.getResult().getType(), buffer, e.here().mul(j, shape.lanes));
      Value present = e.rowValue(guard.getCondition());
      Build b = e.here();
      store(present, masks, b.add(base, b.mul(j, shape.lanes)));
      Value some = load(booleanType(), anyOfKey, j, false);
      store(b.either(some, b.any(present)), anyOfKey, j);
      return Values{b.both(seen[0], present), b.either(seen[1], present)};
    });
    Build b = e.here();
    store(rows[1], anyOfRow, b.mul(v, shape.lanes));
    return Values{b.both(args[0], b.all(rows[0])), b.either(args[1], b.any(rows[1]))};
  });
  return {result[0], result[1]};
}

void BlockedFold::emitBody(bool isWhole) {
  Value dynamic = count;
  whole = isWhole;
  masked = !whole && guard;
  if (whole)
    count = e.here().index(shape.BN);
  stageKeys();
  Build b = e.here();
  Value panels = b.div(vectors, shape.RI);
  e.loop(b.index(0), panels, 1, [&](Value number) { emitPanel(number); });
  count = dynamic;
}

} // namespace moa::rows
