//===- Split.cpp - split-K: ranges in parts, over cores (rule R4) ---------===//
//
// A fold whose outermost factor is bound to cores runs in parts (split-K, as in flash decoding). A
// part has as many indices as the other factors of the fold and starts at a multiple of this
// length. Each part starts from the identity. Its states are merged into the total in the order of
// parts:
//
//   d = d₁ ⊛ d₂,   t = c(d₁, d)(t₁) ⊕ c(d₂, d)(t₂)
//
// If all rows fit one tile, a task is one part. It writes its states to the shared part of the
// workspace, and the tasks of a second nest merge them and finish the rows. Otherwise one task runs
// all parts of its rows. Both merge the same values in the same order, so results depend neither on
// the number of threads nor on the number of rows.
//
//===----------------------------------------------------------------------===//
#include "lib/Conversion/ONFToVector/Nest.h"

using namespace mlir;
using namespace moa;

namespace moa::rows {
using namespace moa::onf;

FoldOp NestEmitter::findSplit() {
  if (!laneIndex())
    return FoldOp();
  for (auto fold : nest.getBody().front().getOps<FoldOp>())
    if (isTileFold(fold)) {
      auto lift = fold.getLift();
      return lift && lift->getResource(0) == Resource::core ? fold : FoldOp();
    }
  return FoldOp();
}

/// Lays out the states of one part for all rows of a tile, one state after the other. Element
/// (vector v, flat carried index e) of a state is at (v·elements + e)·L.
void NestEmitter::planTotals() {
  int64_t vectors = tiles.back() / emitter.lanes;
  for (AccOp acc : getAccs(split)) {
    StateBuffer buffer = StateBuffer::of(acc);
    buffer.tiled = true;
    totals.push_back(buffer);
    offsets.push_back(partBytes);
    partBytes += llvm::alignTo(vectors * emitter.lanes * buffer.padded * storageBytes(buffer.element), 64);
  }
}

NestEmitter::Parts NestEmitter::partsOf(Emitter &e) {
  Value length = e.extent(split.getExtent());
  Value rows = e.extent(extentOf(tiles.size() - 1));
  Build b = e.at(0);
  Value count = b.ceilDiv(b.max(length, b.index(0)), split.getLift()->getTile());
  Value hasParts = b.slt(b.index(1), count), fitsTile = b.sle(rows, b.index(tiles.back()));
  return {count, b.both(fitsTile, hasParts)};
}

/// Returns the states of a part, stored at `base`.
SmallVector<StateBuffer> NestEmitter::totalsAt(Value base) {
  SmallVector<StateBuffer> result = totals;
  Build b = emitter.here();
  for (auto [buffer, offset] : llvm::zip_equal(result, offsets))
    buffer.pointer = b.address(b.b.getI8Type(), base, b.index(offset));
  return result;
}

Value NestEmitter::sharedPart(Value partNumber) {
  Value shared = emitter.slot(emitter.block.getSharedSlot(), LLVM::LLVMPointerType::get(nest.getContext()));
  Build b = emitter.here();
  return b.address(b.b.getI8Type(), shared, b.mul(partNumber, partBytes));
}

//===----------------------------------------------------------------------===//
// The merge
//===----------------------------------------------------------------------===//

/// Returns the offset of element `flat` of vector `v`.
static Value offsetOf(Build b, const StateBuffer &buffer, Value v, Value flat, int64_t lanes) {
  Value panel = b.div(v, buffer.panel);
  Value place = b.rem(v, buffer.panel);
  Value element = b.add(b.mul(panel, buffer.padded), flat);
  Value inPanel = b.mul(place, lanes);
  return b.add(b.mul(element, buffer.panel * lanes), inPanel);
}

namespace {

/// Merges one vector of rows of a part into the total.
class Merge {
public:
  Merge(Emitter &e, FoldOp fold, ArrayRef<StateBuffer> totals, ArrayRef<StateBuffer> rests, ArrayRef<StateBuffer> parts,
        Value v)
      : e(e), accs(getAccs(fold)), totals(totals), rests(rests), parts(parts), v(v) {}
  void run() {
    for (unsigned k = 0; k != accs.size(); ++k)
      merge(k);
  }

private:
  /// How one side (total or part) is rescaled; not at all if `factor` is null.
  struct Side {
    Correction correction;
    Value changed;
  };
  Side sideOf(AccOp acc, const llvm::DenseMap<unsigned, Value> &olds);
  Value follow(AccOp acc, Value state, const Side &side);
  void merge(unsigned k);
  Value mergeElement(unsigned k, Value flat, Value partFlat, const Side &total, const Side &part);

  Emitter &e;
  SmallVector<AccOp> accs;
  ArrayRef<StateBuffer> totals, rests, parts;
  Value v;
  // By number of the state, for states without axes.
  llvm::DenseMap<unsigned, Value> before, added, after;
};

/// Returns how a state of one side is rescaled to the merged references. `olds` are that side's
/// states without axes before the merge.
Merge::Side Merge::sideOf(AccOp acc, const llvm::DenseMap<unsigned, Value> &olds) {
  if (acc.getRefs().empty())
    return {};
  auto numberOf = [&](Value state) -> unsigned {
    return llvm::find(accs, state.getDefiningOp<AccOp>()) - accs.begin();
  };
  Value changed;
  SmallVector<Value> oldRefs, news, others;
  for (Value ref : acc.getRefs()) {
    oldRefs.push_back(olds.lookup(numberOf(ref)));
    news.push_back(after[numberOf(ref)]);
    changed = e.here().either(changed, e.here().differs(oldRefs.back(), news.back()));
  }
  for (Value other : acc.getOthers())
    others.push_back(olds.lookup(numberOf(other)));
  return {e.correctionOf(acc, oldRefs, news, others, true), changed};
}

/// Returns c(state). A side without terms keeps the identity, because its reference may still be
/// singular. A side has no terms if its state and the states that c adds are identities.
Value Merge::follow(AccOp acc, Value state, const Side &side) {
  if (!side.correction.factor)
    return state;
  Build b = e.here();
  Value identity = e.identityOf(acc, state.getType()), hasTerms = b.differs(state, identity);
  for (auto [coefficient, other] : side.correction.added)
    hasTerms = b.either(hasTerms, b.differs(other, identity));
  return e.rescaled(acc, state, side.correction, b.both(side.changed, hasTerms));
}

Value Merge::mergeElement(unsigned k, Value flat, Value partFlat, const Side &total, const Side &part) {
  AccOp acc = accs[k];
  Build b = e.here();
  Value offset = offsetOf(b, totals[k], v, flat, e.lanes);
  Type element = totals[k].element;
  Value old = e.loadState(b, element, true, totals[k].pointer, offset);
  Value more = e.loadState(b, element, true, parts[k].pointer, offsetOf(b, parts[k], v, partFlat, e.lanes));
  Value sum = follow(acc, old, total), term = follow(acc, more, part), merged;
  if (rests[k].pointer) {
    Value rest = follow(acc, e.loadState(e.here(), element, true, rests[k].pointer, offset), total);
    std::tie(merged, rest) = e.here().addCompensated(sum, rest, term);
    e.storeState(e.here(), rest, rests[k].pointer, offset);
  } else {
    merged = e.combine(acc, sum, term);
  }
  e.storeState(e.here(), merged, totals[k].pointer, offset);
  if (acc.getExtents().empty()) {
    before[k] = old;
    added[k] = more;
    after[k] = merged;
  }
  return merged;
}

void Merge::merge(unsigned k) {
  AccOp acc = accs[k];
  Side total = sideOf(acc, before), part = sideOf(acc, added);
  std::function<void(unsigned, Value, Value)> over = [&](unsigned axis, Value flat, Value partFlat) {
    if (axis == acc.getExtents().size()) {
      mergeElement(k, flat, partFlat, total, part);
      return;
    }
    int64_t size = totals[k].extents[axis], partSize = parts[k].extents[axis];
    Value end = e.here().index(size), start = e.here().index(0);
    e.loop(start, end, 1, [&](Value index) {
      Build b = e.here();
      Value partPlace = b.add(b.mul(partFlat, partSize), index), place = b.add(b.mul(flat, size), index);
      over(axis + 1, place, partPlace);
    });
  };
  Value partStart = e.here().index(0), start = e.here().index(0);
  over(0, start, partStart);
}

} // namespace

/// Runs `body` for every element of every state. Its place is the same in all buffers.
void NestEmitter::overElements(ArrayRef<StateBuffer> buffers, llvm::function_ref<void(unsigned, Value)> body) {
  for (unsigned k = 0; k != buffers.size(); ++k) {
    Value end = emitter.here().mul(emitter.tile.vectors, buffers[k].padded), start = emitter.here().index(0);
    emitter.loop(start, end, 1, [&](Value place) { body(k, emitter.here().mul(place, emitter.lanes)); });
  }
}

void NestEmitter::mergeParts(Value base, Value from, Value to,
                             llvm::function_ref<SmallVector<StateBuffer>(Value)> partOf) {
  SmallVector<AccOp> accs = getAccs(split);
  SmallVector<StateBuffer> current = totalsAt(base), rests(current.size());
  for (auto [k, acc] : llvm::enumerate(accs))
    if (isPureSum(acc)) {
      rests[k] = current[k];
      rests[k].pointer = emitter.scratchFor(current[k].element, tiles.back() * current[k].padded);
    }
  overElements(current, [&](unsigned k, Value place) {
    Value identity = emitter.identityOf(accs[k], emitter.rowType(current[k].element));
    for (Value pointer : {current[k].pointer, rests[k].pointer})
      if (pointer)
        emitter.storeState(emitter.here(), identity, pointer, place);
  });
  emitter.loop(from, to, 1, [&](Value partNumber) {
    SmallVector<StateBuffer> part = partOf(partNumber);
    emitter.loop(emitter.here().index(0), emitter.tile.vectors, 1, [&](Value v) {
      bindRows(emitter, emitter.top(), laneIndex(), v);
      Merge(emitter, split, current, rests, part, v).run();
    });
  });
  overElements(current, [&](unsigned k, Value place) {
    if (!rests[k].pointer)
      return;
    Build b = emitter.here();
    auto read = [&](const StateBuffer &buffer) {
      return emitter.loadState(b, buffer.element, true, buffer.pointer, place);
    };
    Value rest = read(rests[k]), sum = read(current[k]);
    emitter.storeState(b, b.combine(Monoid::add, sum, rest), current[k].pointer, place);
  });
  for (auto [result, buffer] : llvm::zip_equal(split.getResults(), current)) {
    emitter.top().states[result] = buffer;
    emitter.deps.add(result, laneIndex());
  }
}

//===----------------------------------------------------------------------===//
// The two nests
//===----------------------------------------------------------------------===//

/// Emits the fold over one part. Returns where its states are.
SmallVector<StateBuffer> NestEmitter::emitPart(Value partNumber) {
  int64_t length = split.getLift()->getTile();
  Value lower = emitter.here().mul(partNumber, length);
  emitter.part = {split, lower, emitter.here().add(lower, length)};
  emitTileOf(split);
  emitter.part = {};
  SmallVector<StateBuffer> result;
  for (Value value : split.getResults())
    result.push_back(emitter.top().states.lookup(value));
  return result;
}

/// Emits the parts of one task. A task that has all parts of its rows also finishes them.
void NestEmitter::emitParts() {
  Value total = emitter.scratch(partBytes), last = emitter.tile.lastRow;
  Value one = emitter.here().index(1), end = emitter.here().add(emitter.tile.base, emitter.tile.rows);
  last = emitter.here().min(last, emitter.here().sub(end, one));
  auto [lower, upper] = emitter.hull(split, emitter.tile.base, last);
  int64_t length = split.getLift()->getTile();
  Build b = emitter.here();
  Value from = b.div(lower, length);
  Value to = b.ceilDiv(b.max(upper, b.index(0)), length);
  from = b.select(parts.taskPerPart, taskPart, from);
  to = b.select(parts.taskPerPart, b.add(taskPart, 1), to);
  Value base = b.select(parts.taskPerPart, sharedPart(task), total);
  mergeParts(base, from, to, [&](Value partNumber) { return emitPart(partNumber); });
  emitter.when(parts.taskPerPart, [] {}, [&] { finishTile(); });
}

/// Merges the parts that other tasks stored, and finishes the rows.
void NestEmitter::emitMerge() {
  Value base = emitter.scratch(partBytes);
  mergeParts(base, emitter.here().index(0), parts.count, [&](Value partNumber) {
    Build b = emitter.here();
    return totalsAt(sharedPart(b.add(b.mul(task, parts.count), partNumber)));
  });
  finishTile();
}

/// Emits the function that returns the bytes for parts; 0 unless all rows fit one tile.
void NestEmitter::emitShared(OpBuilder builder) {
  countTasks(builder, "_shared", [&](Emitter &counting, Value tasks) {
    Parts counted = partsOf(counting);
    Build b = counting.here();
    Value none = b.index(0);
    return b.select(counted.taskPerPart, b.mul(b.mul(tasks, counted.count), partBytes), none);
  });
}

std::string NestEmitter::getSharedText() {
  SymExpr bytes(partBytes);
  for (unsigned axis = 0; axis + 1 < tiles.size(); ++axis)
    bytes = bytes * SymExpr::floorDiv(extentOf(axis) + SymExpr(tileOf(axis) - 1), SymExpr(tileOf(axis)));
  int64_t length = split.getLift()->getTile();
  const SymExpr &range = split.getExtent();
  bytes = bytes * SymExpr::floorDiv(range + SymExpr(length - 1), SymExpr(length));
  return bytes.str() + " bytes where " + extentOf(tiles.size() - 1).str() + " <= " + std::to_string(tiles.back()) +
         " and " + range.str() + " > " + std::to_string(length);
}

} // namespace moa::rows
