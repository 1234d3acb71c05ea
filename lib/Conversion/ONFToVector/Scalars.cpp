//===- Scalars.cpp - expressions as scalars or row vectors ----------------===//
#include "lib/Conversion/ONFToVector/Emitter.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace moa;

namespace moa::rows {
using namespace moa::onf;

std::optional<Emitted> Emitter::findBound(Value value) {
  for (unsigned depth = stack.size(); depth-- > 0;) {
    auto found = stack[depth]->values.find(value);
    if (found != stack[depth]->values.end())
      return Emitted{found->second, depth};
    for (unsigned open : openContexts())
      if (Value known = stack[depth]->conditional.lookup({value, open}))
        return Emitted{known, depth, open};
  }
  return std::nullopt;
}

Emitted Emitter::remember(Value key, Value value, unsigned depth, unsigned known) {
  if (known)
    stack[depth]->conditional[{key, known}] = value;
  else
    stack[depth]->values[key] = value;
  return {value, depth, known};
}

StateBuffer *Emitter::findState(Value state, Emitted &where) {
  for (unsigned depth = stack.size(); depth-- > 0;) {
    Scope &scope = *stack[depth];
    where.depth = depth;
    where.context = 0;
    if (auto found = scope.states.find(state); found != scope.states.end())
      return &found->second;
    for (unsigned open : openContexts()) {
      where.context = open;
      auto found = scope.conditionalStates.find({state, open});
      if (found != scope.conditionalStates.end())
        return &found->second;
    }
  }
  return nullptr;
}

bool Emitter::isRow(Value value) {
  for (Value index : deps.of(value))
    if (auto bound = findBound(index))
      if (isa<VectorType>(bound->value.getType()))
        return true;
  return false;
}

Value Emitter::identityOf(AccOp acc, Type type) {
  return here().constant(type, getIdentityOf(acc, acc.getMonoid(), getElementTypeOrSelf(type)));
}

Value Emitter::combine(AccOp acc, Value state, Value term) {
  MonoidOp monoid = lookupMonoid(acc);
  // Use an FMA, as panels do, so that a recomputed sum has the same bits.
  auto product = term.getDefiningOp<arith::MulFOp>();
  if (!monoid && acc.getMonoid() == Monoid::add && product && product.getType() == state.getType())
    return math::FmaOp::create(here().b, here().loc, product.getLhs(), product.getRhs(), state);
  if (!monoid)
    return here().combine(acc.getMonoid(), state, term);
  Value result;
  scoped([&](Scope &scope) {
    scope.values[monoid.getBody().getArgument(0)] = state;
    scope.values[monoid.getBody().getArgument(1)] = term;
    result = value(monoid.getReturned());
  });
  bool isRow = isa<VectorType>(state.getType());
  return isRow ? here().splat(result, lanes) : result;
}

Correction Emitter::correctionOf(AccOp acc, ArrayRef<Value> olds, ArrayRef<Value> news, ArrayRef<Value> others,
                                 bool rows) {
  Correction result;
  scoped([&](Scope &scope) {
    for (unsigned k = 0; k != olds.size(); ++k) {
      scope.values[acc.getRepair().getArgument(2 * k)] = olds[k];
      scope.values[acc.getRepair().getArgument(2 * k + 1)] = news[k];
    }
    auto read = [&](Value v) { return rows ? rowValue(v) : value(v); };
    OperandRange values = acc.getRepair().front().getTerminator()->getOperands();
    result.factor = read(values.front());
    for (auto [coefficient, other] : llvm::zip_equal(values.drop_front(), others))
      result.added.push_back({read(coefficient), other});
  });
  return result;
}

Value Emitter::rescaled(AccOp acc, Value state, const Correction &correction, Value apply) {
  Build b = here();
  Value factor = correction.factor;
  if (acc.getCombine() == ScalarFn::select)
    return b.select(apply, b.select(factor, state, identityOf(acc, state.getType())), state);
  Monoid monoid = acc.getCombine() == ScalarFn::mul ? Monoid::mul : Monoid::add;
  Value moved = b.combine(monoid, state, factor);
  for (auto [coefficient, other] : correction.added)
    moved = math::FmaOp::create(b.b, loc, coefficient, other, moved);
  return b.select(apply, moved, state);
}

bool Emitter::isUniform(Value value) {
  return llvm::all_of(deps.of(value), [&](Value index) {
    auto bound = findBound(index);
    return bound && !isa<VectorType>(bound->value.getType());
  });
}

Value Emitter::splat(Emitted emitted) {
  if (isa<VectorType>(emitted.value.getType()))
    return emitted.value;
  Value &vector = stack[emitted.depth]->splats[emitted.value];
  if (!vector)
    vector = at(emitted.depth).splat(emitted.value, lanes);
  return vector;
}

Emitted Emitter::eval(Value value) {
  if (auto bound = findBound(value))
    return *bound;
  Operation *op = value.getDefiningOp();
  if (!op) {
    fail(kernel, "index used outside of its loop");
    return remember(value, at(0).index(0), 0);
  }
  if (auto load = dyn_cast<LoadOp>(op))
    return evalLoad(load);
  if (auto at = dyn_cast<AtOp>(op))
    return evalAt(at);
  if (auto fold = dyn_cast<FoldOp>(op))
    return evalFold(fold, value);
  if (auto extentOp = dyn_cast<onf::ExtentOp>(op))
    return remember(value, extent(extentOp.getExpr()), 0);
  return evalElementwise(op);
}

/// Returns a divisor that never traps, because code may run where its result is unused. Replaces 0
/// by 1. Also replaces −1 by 1 if the dividend is the least integer: the quotient wraps to the
/// dividend and the remainder is 0.
static Value safeDivisor(Build b, Value dividend, Value divisor, bool isSigned) {
  Type type = divisor.getType(), element = getElementTypeOrSelf(type);
  auto integer = [&](const APInt &value) { return b.constant(type, IntegerAttr::get(element, value)); };
  unsigned width = element.isIndex() ? 64 : element.getIntOrFloatBitWidth();
  APInt known;
  bool isKnown = matchPattern(divisor, m_ConstantInt(&known));
  Value traps;
  if (!isKnown || known.isZero())
    traps = b.eq(divisor, integer(APInt::getZero(width)));
  if (isSigned && (!isKnown || known.isAllOnes())) {
    Value isLeast = b.eq(dividend, integer(APInt::getSignedMinValue(width)));
    Value isMinusOne = b.eq(divisor, integer(APInt::getAllOnes(width)));
    traps = b.either(traps, b.both(isMinusOne, isLeast));
  }
  return traps ? b.select(traps, integer(APInt(width, 1)), divisor) : divisor;
}

/// Converts a float to an integer: towards zero, saturating, NaN to 0.
static Value toInteger(Build b, Value value, Type type, bool isSigned) {
  StringRef name = isSigned ? "llvm.fptosi.sat" : "llvm.fptoui.sat";
  return LLVM::CallIntrinsicOp::create(b.b, b.loc, type, b.b.getStringAttr(name), ValueRange{value}).getResult(0);
}

//===----------------------------------------------------------------------===//
// Contexts
//===----------------------------------------------------------------------===//

SmallVector<unsigned> Emitter::openContexts() const {
  SmallVector<unsigned> open;
  for (unsigned k = context; k != 0; k = contexts[k].parent)
    open.push_back(k);
  return open;
}

Emitted Emitter::evalWhere(Value value, Emitted condition, bool holds) {
  unsigned outer = context;
  auto same = [&](const Context &other) { return other.condition.value == condition.value && other.holds == holds; };
  bool known = llvm::any_of(openContexts(), [&](unsigned k) { return same(contexts[k]); });
  if (!known) {
    auto found = llvm::find_if(contexts, [&](const Context &other) { return same(other) && other.parent == outer; });
    context = found - contexts.begin();
    if (found == contexts.end())
      contexts.push_back({outer, condition, holds});
  }
  Emitted result = eval(value);
  context = outer;
  result.context = std::min(result.context, outer);
  return result;
}

Emitted Emitter::evalOperand(Operation *op, unsigned number, ArrayRef<Emitted> before) {
  Value operand = op->getOperand(number);
  if (!isOnDemand(op, number) || !onDemand.mayFault(operand))
    return eval(operand);
  bool holds = isa<arith::SelectOp>(op) ? number == 1 : isa<arith::AndIOp>(op);
  return evalWhere(operand, before.front(), holds);
}

Emitted Emitter::evalElementwise(Operation *op) {
  SmallVector<Emitted> operands;
  unsigned depth = 0, known = 0;
  bool row = false;
  for (unsigned k = 0; k != op->getNumOperands(); ++k) {
    operands.push_back(evalOperand(op, k, operands));
    depth = std::max(depth, operands.back().depth);
    known = std::max(known, operands.back().context);
    row |= isa<VectorType>(operands.back().value.getType());
  }
  if (!isMemoryEffectFree(op) || op->getNumRegions() != 0 || op->getNumResults() != 1 ||
      (row && !OpTrait::hasElementwiseMappableTraits(op))) {
    fail(op, "cannot be lowered to vector code");
    return remember(op->getResult(0), at(0).index(0), 0);
  }
  SmallVector<Value> values;
  for (Emitted operand : operands)
    values.push_back(row ? splat(operand) : operand.value);
  Build b = at(depth);
  if (isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp, arith::FloorDivSIOp, arith::CeilDivSIOp,
          arith::CeilDivUIOp>(op))
    values[1] = safeDivisor(b, values[0], values[1], !isa<arith::DivUIOp, arith::RemUIOp, arith::CeilDivUIOp>(op));
  if (isa<arith::FPToSIOp, arith::FPToUIOp>(op)) {
    Type type = op->getResult(0).getType();
    if (getElementTypeOrSelf(values[0]).getIntOrFloatBitWidth() < 32)
      values[0] = convert(b, values[0], b.b.getF32Type());
    Value result = toInteger(b, values[0], row ? rowType(type) : type, isa<arith::FPToSIOp>(op));
    return remember(op->getResult(0), result, depth, known);
  }
  if (isa<arith::TruncFOp, arith::IndexCastOp>(op)) {
    Value converted = convert(b, values[0], op->getResult(0).getType());
    return remember(op->getResult(0), converted, depth, known);
  }
  Operation *clone = b.b.clone(*op);
  clone->setOperands(values);
  if (row)
    clone->getResult(0).setType(rowType(op->getResult(0).getType()));
  return remember(op->getResult(0), clone->getResult(0), depth, known);
}

//===----------------------------------------------------------------------===//
// Symbols
//===----------------------------------------------------------------------===//

Value Emitter::slot(unsigned number, Type element) {
  Value &value = slots[number];
  if (value)
    return value;
  Build b = at(0);
  Value pointer = b.address(b.b.getI64Type(), arguments, b.index(number));
  if (isa<LLVM::LLVMPointerType>(element))
    return value = b.load(element, pointer, 8);
  return value = loadUniform(b, element, pointer);
}

Value Emitter::emitAtom(const SymExpr::Atom &atom) {
  if (atom.kind == SymExpr::Atom::Kind::Symbol) {
    if (auto number = block.getSymbolSlot(atom.text))
      return slot(*number, IndexType::get(kernel.getContext()));
    fail(kernel, "unknown symbol '" + atom.text + "'");
    return at(0).index(1);
  }
  Value lhs = extent(atom.lhs), rhs = extent(atom.rhs);
  Build b = at(0);
  rhs = safeDivisor(b, lhs, rhs, /*isSigned=*/false); // symbols are sizes
  Value quotient = b.b.createOrFold<arith::FloorDivSIOp>(loc, lhs, rhs);
  if (atom.kind == SymExpr::Atom::Kind::FloorDiv)
    return quotient;
  return b.sub(lhs, b.mul(quotient, rhs));
}

Value Emitter::emitTerm(const SymExpr::Monomial &monomial, int64_t coefficient) {
  Value product = at(0).index(coefficient);
  for (const auto &[atom, power] : monomial) {
    Value factor = emitAtom(*atom);
    for (unsigned k = 0; k != power; ++k)
      product = at(0).mul(factor, product);
  }
  return product;
}

Value Emitter::extent(const SymExpr &expr) {
  std::string text = expr.str();
  auto found = extents.find(text);
  if (found != extents.end())
    return found->second;
  Value sum = at(0).index(0);
  for (const auto &[monomial, coefficient] : expr.getTerms())
    sum = at(0).add(emitTerm(monomial, coefficient), sum);
  return extents[text] = sum;
}

Value Emitter::extent(StringRef text) {
  auto expr = SymExpr::parse(text);
  if (!expr) {
    fail(kernel, "invalid expression '" + text + "'");
    expr = SymExpr(0);
  }
  return extent(*expr);
}

//===----------------------------------------------------------------------===//
// Folds as values
//===----------------------------------------------------------------------===//

std::optional<unsigned> Emitter::rowDepth() const {
  for (unsigned depth = stack.size(); depth-- > 0;)
    if (stack[depth]->vectorNumber)
      return depth;
  return std::nullopt;
}

/// Evaluates captures before the region, except those that may read outside of their array: the
/// region evaluates these under its own conditions. Only the depth of their indices counts. For
/// example, a[l] in max/ [j < N] select(l < M, a[l] + b[j], 0).
unsigned Emitter::depthOfCaptures(Operation *op) {
  unsigned depth = 0;
  auto visit = [&](Value operand) {
    Emitted where;
    if (onDemand.mayFault(operand) && !findBound(operand) && !findState(operand, where)) {
      for (Value index : deps.of(operand))
        if (auto bound = findBound(index))
          depth = std::max(depth, bound->depth);
      return;
    }
    auto fold = operand.getDefiningOp<FoldOp>();
    if (!fold) {
      depth = std::max(depth, eval(operand).depth);
      return;
    }
    where = evalFold(fold, operand);
    depth = std::max(depth, where.depth);
    // A state stored for all rows of a tile is read per row.
    StateBuffer *state = findState(operand, where);
    if (state && state->tiled && !isUniform(operand))
      depth = std::max(depth, rowDepth().value_or(0));
  };
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (!op->isAncestor(operand.getParentBlock()->getParentOp()) &&
          (operand.getDefiningOp<FoldOp>() || !isa<ArrayType>(operand.getType())))
        visit(operand);
  });
  return depth;
}

Emitted Emitter::evalFold(FoldOp fold, Value result) {
  Emitted where;
  if (StateBuffer *found = findState(result, where)) {
    StateBuffer state = *found;
    if (isa<ArrayType>(result.getType()))
      return {state.pointer, where.depth, where.context};
    unsigned row = std::max(where.depth, rowDepth().value_or(0));
    if (!stack[row]->vectorNumber) {
      fail(fold, "result used where no row is known");
      return {at(0).index(0), 0};
    }
    Value offset = at(row).mul(stack[row]->vectorNumber, lanes);
    Value value = loadState(at(row), state.element, true, state.pointer, offset);
    return remember(result, value, row, where.context);
  }
  bool mayFault = onDemand.mayFault(fold);
  unsigned depth = depthOfCaptures(fold), known = mayFault ? context : 0;
  if (mayFault)
    depth = depthOfLoad(depth, mayFault);
  outside(depth, [&] {
    SmallVector<StateBuffer> buffers = allocateStates(fold);
    Values finals = emitFold(fold, buffers);
    for (auto [value, final, buffer] : llvm::zip_equal(fold.getResults(), finals, buffers)) {
      if (final)
        remember(value, final, depth, known);
      else if (known)
        stack[depth]->conditionalStates[{value, known}] = buffer;
      else
        stack[depth]->states[value] = buffer;
    }
  });
  return {findBound(result).value_or(Emitted{}).value, depth, known};
}

Emitted Emitter::evalAt(AtOp at) {
  if (auto fold = at.getState().getDefiningOp<FoldOp>()) {
    Emitted where = evalFold(fold, at.getState());
    unsigned depth = where.depth, known = where.context;
    StateBuffer state;
    if (StateBuffer *found = findState(at.getState(), where))
      state = *found;
    SmallVector<Emitted> indices;
    bool across = false; // the lanes run along an axis of the state
    for (Value index : at.getIndices()) {
      indices.push_back(eval(index));
      depth = std::max(depth, indices.back().depth);
      known = std::max(known, indices.back().context);
      across |= isa<VectorType>(indices.back().value.getType());
    }
    // A state that is equal in all rows is read from the first.
    bool first = state.row && (across || (state.tiled && !rowDepth()));
    if (first && !isUniform(at.getState())) {
      fail(at, "result used where no row is known");
      return {this->at(0).index(0), 0};
    }
    if (state.tiled && !first)
      depth = std::max(depth, *rowDepth());
    Build b = this->at(depth);
    auto match = [&](Value x) { return across ? b.splat(x, lanes) : x; };
    Value flat = match(b.index(0));
    for (auto [index, size] : llvm::zip_equal(indices, state.extents)) {
      Value place = match(index.value);
      flat = b.add(b.mul(flat, match(b.index(size))), place);
    }
    Value offset = flat;
    if (state.tiled) {
      Value v = first ? b.index(0) : stack[*rowDepth()]->vectorNumber, p = b.index(state.panel);
      Value panel = b.div(v, p);
      Value lane = b.mul(b.rem(v, p), lanes);
      flat = b.add(match(b.mul(panel, state.padded)), flat);
      Value inPanel = match(lane);
      offset = b.add(b.mul(flat, match(b.index(state.panel * lanes))), inPanel);
    } else if (state.row) {
      offset = b.mul(flat, match(b.index(lanes)));
    }
    Value value = loadState(b, state.element, state.row && !first, state.pointer, offset);
    return remember(at.getResult(), value, depth, known);
  }
  fail(at, "expects the result of a fold");
  return remember(at.getResult(), this->at(0).index(0), 0);
}

} // namespace moa::rows
