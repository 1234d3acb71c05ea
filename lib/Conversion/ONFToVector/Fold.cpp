//===- Fold.cpp - folds, one index at a time ------------------------------===//
//
// The general lowering of a fold. Each index updates every state by t ← (c ⊗ t) ⊕ F, as onf.acc
// defines. Selects handle masked-out rows, singular references and states that have no term yet.
//
// Sums of floats that nothing in the fold reads are added up in blocks of kSumBlock indices, each
// from zero. A compensated sum adds up the blocks. The error is that of about kSumBlock additions
// for any range.
//
//===----------------------------------------------------------------------===//
#include "lib/Analysis/Intervals.h"
#include "lib/Conversion/ONFToVector/Emitter.h"
#include "mlir/Dialect/Affine/Utils.h"

using namespace mlir;
using namespace moa;

namespace moa::rows {
using namespace moa::onf;

//===----------------------------------------------------------------------===//
// Ranges
//===----------------------------------------------------------------------===//

std::pair<Value, Value> Emitter::interval(FoldOp fold, AffineMap lower, AffineMap upper, Value first, Value last) {
  SmallVector<Value> operands{first, last};
  for (Value bound : fold.getBounds())
    operands.push_back(value(bound));
  Build b = here();
  Value low = b.index(0), high = extent(fold.getExtent());
  if (auto values = affine::expandAffineMap(b.b, loc, lower, operands))
    for (Value value : *values)
      low = b.max(low, value);
  auto [bounds, conditions] = splitConditions(upper);
  if (auto values = affine::expandAffineMap(b.b, loc, bounds, operands))
    for (Value value : *values)
      high = b.min(high, value);
  if (auto values = affine::expandAffineMap(b.b, loc, conditions, operands))
    for (Value value : *values) {
      Value holds = arith::CmpIOp::create(b.b, loc, arith::CmpIPredicate::sge, value, b.index(0));
      high = arith::SelectOp::create(b.b, loc, holds, high, b.index(0));
    }
  return {low, high};
}

std::pair<Value, Value> Emitter::hull(FoldOp fold, Value first, Value last) {
  Value extentValue = extent(fold.getExtent());
  Build b = here();
  auto inPart = [&](Value low, Value high) -> std::pair<Value, Value> {
    if (fold != part.fold)
      return {low, high};
    return {here().max(low, part.lower), here().min(high, part.upper)};
  };
  if (!fold.getPieces())
    return inPart(b.index(0), extentValue);
  Value low = extentValue, high = b.index(0);
  for (auto piece : fold.getPieces()->getAsRange<PieceAttr>()) {
    auto [from, to] = interval(fold, piece.getVisitLower(), piece.getVisitUpper(), first, last);
    low = b.min(low, from);
    high = b.max(high, to);
  }
  return inPart(low, high);
}

//===----------------------------------------------------------------------===//
// States
//===----------------------------------------------------------------------===//

StateBuffer StateBuffer::of(AccOp acc) {
  StateBuffer buffer;
  buffer.element = acc.getResult().getType();
  if (auto array = dyn_cast<ArrayType>(buffer.element))
    buffer.element = array.getElementType();
  for (const SymExpr &extent : acc.getExtents().getAsValueRange<ExprAttr>()) {
    buffer.extents.push_back(extent.getConstant().value_or(0));
    buffer.padded *= buffer.extents.back();
  }
  return buffer;
}

SmallVector<StateBuffer> Emitter::allocateStates(FoldOp fold) {
  SmallVector<StateBuffer> buffers;
  for (AccOp acc : getAccs(fold)) {
    StateBuffer buffer;
    if (isa<ArrayType>(acc.getResult().getType())) {
      buffer = StateBuffer::of(acc);
      buffer.row = isRow(acc.getResult());
      buffer.pointer = scratchFor(buffer.element, buffer.padded * (buffer.row ? lanes : 1));
    }
    buffers.push_back(buffer);
  }
  return buffers;
}

namespace {

class FoldEmitter {
public:
  using Values = Emitter::Values;
  FoldEmitter(Emitter &e, FoldOp fold, ArrayRef<StateBuffer> buffers)
      : e(e), fold(fold), accs(getAccs(fold)), buffers(buffers) {}
  Values run();

private:
  struct State {
    bool row = false, carried = false;
    int state = -1, started = -1; // positions among the loop's arguments
    bool split = false;           // summed in blocks: `state` holds the block's sum
    int sum = -1, rest = -1;      // positions of the sum so far and of its compensation
    Value sumBuffer, restBuffer;  // or their storage
  };
  struct Rescale {
    Correction correction; // its factor is null if there are no references
    Value apply, ok;       // null `apply`: never; null `ok`: always
  };
  Values initialValues();
  Values iterate(Value j, ValueRange args);
  void step(unsigned k, Values &next, ValueRange args, Value present);
  void stepCarried(unsigned k, const Rescale &rescale);
  bool splits(AccOp acc);
  Values startBlocks(Values inits);
  Values runBlock(Value from, Value to, ValueRange args);
  Values mergeBlock(ValueRange before, ValueRange after);
  std::pair<Value, Value> addBlock(Value sum, Value rest, Value block, const Rescale &rescale);
  void finishBlocks(Values &finals);
  Rescale rescaleOf(unsigned k, ValueRange olds, ValueRange news, Value ok);
  void overCarried(AccOp acc, llvm::function_ref<void(Value flat)> body);
  Value advance(AccOp acc, bool row, Value old, const Rescale &rescale);
  /// Returns the offset of element `flat` of a state with axes.
  Value offsetOf(const StateBuffer &buffer, Value flat) { return e.here().mul(flat, buffer.row ? e.lanes : 1); }
  Value match(Value value, bool row) { return row ? e.here().splat(value, e.lanes) : value; }

  Emitter &e;
  FoldOp fold;
  SmallVector<AccOp> accs;
  ArrayRef<StateBuffer> buffers;
  SmallVector<State> states;
};

Emitter::Values FoldEmitter::initialValues() {
  Values inits;
  for (auto [acc, buffer] : llvm::zip_equal(accs, buffers)) {
    State state;
    state.carried = !acc.getExtents().empty();
    // A buffer for rows may hold a state that is equal in all of them.
    state.row = state.carried ? buffer.row : e.isRow(acc.getResult());
    Type element = state.carried ? buffer.element : acc.getResult().getType();
    Value identity = e.identityOf(acc, e.typeOf(element, state.row));
    if (state.carried) {
      overCarried(acc, [&, &buffer = buffer](Value flat) {
        Value offset = offsetOf(buffer, flat);
        e.storeState(e.here(), identity, buffer.pointer, offset);
      });
    } else {
      state.state = inits.size();
      inits.push_back(identity);
    }
    if (!acc.getRefs().empty()) {
      state.started = inits.size();
      Build b = e.here();
      inits.push_back(b.constant(e.typeOf(b.b.getI1Type(), state.row), b.b.getBoolAttr(false)));
    }
    states.push_back(state);
  }
  return inits;
}

/// Runs `body` for each index of the carried axes, in row-major order.
void FoldEmitter::overCarried(AccOp acc, llvm::function_ref<void(Value)> body) {
  std::function<void(unsigned, Value)> nest = [&](unsigned axis, Value flat) {
    if (axis == acc.getExtents().size())
      return body(flat);
    Value size = e.extent(getSymExpr(acc.getExtents()[axis]));
    e.loop(e.here().index(0), size, 1, [&](Value index) {
      e.top().values[acc.getValue().getArgument(axis)] = index;
      Build b = e.here();
      nest(axis + 1, b.add(b.mul(flat, size), index));
    });
  };
  nest(0, e.here().index(0));
}

/// Returns the old state, corrected if needed, ⊕ F where `rescale.ok`. A null condition means true;
/// a null factor means no correction.
Value FoldEmitter::advance(AccOp acc, bool row, Value old, const Rescale &rescale) {
  Value term = e.evalTerm(acc), rescaled = old;
  if (rescale.correction.factor)
    rescaled = e.rescaled(acc, old, rescale.correction, rescale.apply);
  Value next = e.combine(acc, rescaled, match(term, row));
  return rescale.ok ? e.here().select(rescale.ok, next, rescaled) : next;
}

void FoldEmitter::stepCarried(unsigned k, const Rescale &rescale) {
  const StateBuffer &buffer = buffers[k];
  overCarried(accs[k], [&](Value flat) {
    Build b = e.here();
    Value offset = offsetOf(buffer, flat);
    Value old = e.loadState(b, buffer.element, buffer.row, buffer.pointer, offset);
    Value next = advance(accs[k], buffer.row, old, rescale);
    e.storeState(e.here(), next, buffer.pointer, offset);
  });
}

/// Returns the correction of state `k` as its references change from `before` to `after`, for rows
/// where `ok` holds and the references are regular.
FoldEmitter::Rescale FoldEmitter::rescaleOf(unsigned k, ValueRange before, ValueRange after, Value ok) {
  AccOp acc = accs[k];
  State &state = states[k];
  Build b = e.here();
  Value changed;
  SmallVector<Value> olds, news;
  for (auto [ref, singular] : llvm::zip_equal(acc.getRefs(), acc.getSingular())) {
    unsigned number = llvm::find(accs, ref.getDefiningOp<AccOp>()) - accs.begin();
    olds.push_back(match(before[states[number].state], state.row));
    news.push_back(match(after[states[number].state], state.row));
    changed = b.either(changed, b.differs(olds.back(), news.back()));
    ok = b.bothRegular(ok, news.back(), singular);
  }
  if (acc.getRefs().empty())
    return {{}, Value(), ok};
  SmallVector<Value> others;
  for (Value other : acc.getOthers()) {
    unsigned number = llvm::find(accs, other.getDefiningOp<AccOp>()) - accs.begin();
    others.push_back(match(before[states[number].state], state.row));
  }
  Value apply = b.both(b.both(before[state.started], changed), ok);
  return {e.correctionOf(acc, olds, news, others, state.row), apply, ok};
}

void FoldEmitter::step(unsigned k, Values &next, ValueRange args, Value present) {
  AccOp acc = accs[k];
  State &state = states[k];
  Rescale rescale = rescaleOf(k, args, next, present ? match(present, state.row) : Value());
  if (!acc.getRefs().empty()) {
    Build b = e.here();
    Value started = args[state.started];
    next[state.started] =
        rescale.ok ? b.either(started, rescale.ok) : b.constant(started.getType(), b.b.getBoolAttr(true));
  }
  if (state.carried)
    return stepCarried(k, rescale);
  Value value = advance(acc, state.row, args[state.state], rescale);
  next[state.state] = value;
  e.top().values[acc.getResult()] = value;
}

Emitter::Values FoldEmitter::iterate(Value j, ValueRange args) {
  e.top().values[fold.getBody().getArgument(0)] = j;
  unsigned depth = e.depth();
  auto steps = [&](Value present) {
    Values next(args);
    for (unsigned k = 0; k != accs.size(); ++k)
      step(k, next, args, present);
    return next;
  };
  GuardOp guard = getGuard(fold);
  if (!guard)
    return steps(Value());
  Value present = e.value(guard.getCondition());
  bool row = isa<VectorType>(present.getType());
  return e.branch(
      e.here().any(present), args.getTypes(),
      [&] {
        e.top().guardedFrom = depth;
        e.top().present = row ? present : Value();
        return steps(row ? present : Value());
      },
      [&] { return Values(args); });
}

//===----------------------------------------------------------------------===//
// Blocks of a sum
//===----------------------------------------------------------------------===//

bool FoldEmitter::splits(AccOp acc) {
  auto length = fold.getExtent().getConstant();
  bool isShort = length && *length <= kSumBlock;
  return !isShort && isPureSum(acc);
}

/// Returns the arguments of the loop over blocks: those of the loop over indices, then the sums and
/// their compensations.
Emitter::Values FoldEmitter::startBlocks(Values inits) {
  for (unsigned k = 0; k != accs.size(); ++k) {
    State &state = states[k];
    state.split = splits(accs[k]);
    if (!state.split)
      continue;
    if (!state.carried) {
      state.sum = inits.size();
      state.rest = state.sum + 1;
      inits.append(2, inits[state.state]);
      continue;
    }
    const StateBuffer &buffer = buffers[k];
    int64_t size = buffer.padded * (buffer.row ? e.lanes : 1);
    state.sumBuffer = e.scratchFor(buffer.element, size);
    state.restBuffer = e.scratchFor(buffer.element, size);
    Value zero = e.here().identity(Monoid::add, e.typeOf(buffer.element, buffer.row));
    overCarried(accs[k], [&](Value flat) {
      Value offset = offsetOf(buffer, flat);
      for (Value pointer : {state.sumBuffer, state.restBuffer})
        e.storeState(e.here(), zero, pointer, offset);
    });
  }
  return inits;
}

Emitter::Values FoldEmitter::runBlock(Value from, Value to, ValueRange args) {
  Values inits(args);
  unsigned count = inits.size();
  for (State &state : states) {
    if (!state.split)
      continue;
    count -= state.carried ? 0 : 2;
    Build b = e.here();
    if (!state.carried)
      inits[state.state] = b.identity(Monoid::add, inits[state.state].getType());
    if (state.started >= 0)
      inits[state.started] = b.constant(inits[state.started].getType(), b.b.getBoolAttr(false));
  }
  inits.truncate(count);
  Values after = e.loop(from, to, 1, inits, [&](Value j, ValueRange now) { return iterate(j, now); });
  return mergeBlock(args, after);
}

std::pair<Value, Value> FoldEmitter::addBlock(Value sum, Value rest, Value block, const Rescale &rescale) {
  Build b = e.here();
  if (Value factor = rescale.correction.factor)
    for (Value *part : {&sum, &rest})
      *part = b.select(rescale.apply, b.combine(Monoid::mul, *part, factor), *part);
  return b.addCompensated(sum, rest, block);
}

Emitter::Values FoldEmitter::mergeBlock(ValueRange before, ValueRange after) {
  Values next(before);
  std::copy(after.begin(), after.end(), next.begin());
  for (unsigned k = 0; k != accs.size(); ++k) {
    State &state = states[k];
    if (!state.split)
      continue;
    Rescale rescale = rescaleOf(k, before, after, Value());
    if (state.started >= 0)
      next[state.started] = e.here().either(before[state.started], after[state.started]);
    if (!state.carried) {
      std::tie(next[state.sum], next[state.rest]) =
          addBlock(before[state.sum], before[state.rest], after[state.state], rescale);
      continue;
    }
    const StateBuffer &buffer = buffers[k];
    overCarried(accs[k], [&](Value flat) {
      Build b = e.here();
      Value offset = offsetOf(buffer, flat);
      auto read = [&](Value pointer) { return e.loadState(b, buffer.element, buffer.row, pointer, offset); };
      Value term = read(buffer.pointer), oldRest = read(state.restBuffer), oldSum = read(state.sumBuffer);
      auto [sum, rest] = addBlock(oldSum, oldRest, term, rescale);
      e.storeState(b, sum, state.sumBuffer, offset);
      e.storeState(b, rest, state.restBuffer, offset);
      e.storeState(b, b.identity(Monoid::add, sum.getType()), buffer.pointer, offset);
    });
  }
  return next;
}

void FoldEmitter::finishBlocks(Values &finals) {
  for (unsigned k = 0; k != accs.size(); ++k) {
    State &state = states[k];
    if (state.split && !state.carried)
      finals[state.state] = e.here().combine(Monoid::add, finals[state.sum], finals[state.rest]);
    if (!state.split || !state.carried)
      continue;
    const StateBuffer &buffer = buffers[k];
    overCarried(accs[k], [&](Value flat) {
      Build b = e.here();
      Value offset = offsetOf(buffer, flat);
      Value sum = e.loadState(b, buffer.element, buffer.row, state.sumBuffer, offset);
      Value rest = e.loadState(b, buffer.element, buffer.row, state.restBuffer, offset);
      e.storeState(b, b.combine(Monoid::add, sum, rest), buffer.pointer, offset);
    });
  }
}

Emitter::Values FoldEmitter::run() {
  Values inits = initialValues();
  Value first, last;
  for (Scope *scope : e.stack)
    if (scope->vectorNumber)
      std::tie(first, last) = std::tie(scope->firstRow, scope->lastRow);
  bool lifted = first && isa<onf::KernelOp>(fold->getParentOp()->getParentOp());
  auto wholeAxis = [&] {
    Value end = e.extent(fold.getExtent()), start = e.here().index(0);
    return std::make_pair(start, end);
  };
  auto [lower, upper] = lifted ? e.hull(fold, first, last) : wholeAxis();
  Values finals;
  if (llvm::none_of(accs, [&](AccOp acc) { return splits(acc); })) {
    finals = e.loop(lower, upper, 1, inits, [&](Value j, ValueRange args) { return iterate(j, args); });
  } else {
    inits = startBlocks(inits);
    Build b = e.here();
    Value start = b.mul(b.div(lower, kSumBlock), kSumBlock);
    finals = e.loop(start, upper, kSumBlock, inits, [&, lower = lower, upper = upper](Value base, ValueRange args) {
      Build b = e.here();
      Value to = b.min(b.add(base, kSumBlock), upper), from = b.max(base, lower);
      return runBlock(from, to, args);
    });
    finishBlocks(finals);
  }
  Values results;
  for (State &state : states)
    results.push_back(state.carried ? Value() : finals[state.state]);
  return results;
}

} // namespace

//===----------------------------------------------------------------------===//
// Terms
//===----------------------------------------------------------------------===//

Value Emitter::round(Build b, Value value, Type narrow) {
  Type type = getElementTypeOrSelf(value);
  auto to = dyn_cast<FloatType>(narrow);
  if (!to || !isa<FloatType>(type) || to.getWidth() >= type.getIntOrFloatBitWidth())
    return value;
  return convert(b, convert(b, value, to), type);
}

Value Emitter::evalTerm(AccOp acc) {
  Value term = getYielded(acc.getValue());
  auto product = term.getDefiningOp<arith::MulFOp>();
  auto quotient = term.getDefiningOp<arith::DivFOp>();
  if (!roundsOperands(acc) || (!product && !quotient))
    return value(term);
  Operation *op = term.getDefiningOp();
  Values factors;
  for (Value factor : op->getOperands())
    factors.push_back(isRow(term) ? rowValue(factor) : value(factor));
  Build b = here();
  // A state that is equal in all rows may be bound as a row vector.
  if (llvm::any_of(factors, [](Value x) { return isa<VectorType>(x.getType()); }))
    for (Value &factor : factors)
      factor = b.splat(factor, lanes);
  Type type = factors[0].getType();
  if (quotient) // a / b is rounded as a · (1 / b)
    factors[1] = arith::DivFOp::create(b.b, loc, b.constant(type, FloatAttr::get(term.getType(), 1.0)), factors[1]);
  for (unsigned k : {0, 1})
    if ((quotient && k == 1) || !getReadElement(op->getOperand(k)))
      factors[k] = round(b, factors[k], *acc.getOperandType());
  return arith::MulFOp::create(b.b, loc, factors[0], factors[1]);
}

Emitter::Values Emitter::emitFold(FoldOp fold, ArrayRef<StateBuffer> buffers) {
  return FoldEmitter(*this, fold, buffers).run();
}

} // namespace moa::rows
