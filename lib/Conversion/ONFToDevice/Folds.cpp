//===- Folds.cpp - folds, one index at a time -----------------------------===//
//
// For every index j that the fold's pieces leave to this row, each state takes the step t ← (c ⊗ t)
// ⊕ F, as onf.acc defines it.
//
//===----------------------------------------------------------------------===//
#include "dialects/MoA/IR/Monoid.h"
#include "lib/Analysis/Intervals.h"
#include "lib/Analysis/OnDemand.h"
#include "lib/Conversion/ONFToDevice/RowLanes.h"
#include "lib/Conversion/ONFToVector/Dependence.h"
#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace moa;
using namespace moa::onf;

namespace {

using Values = ScalarCode::Values;

class FoldWriter {
public:
  FoldWriter(ScalarCode &code, FoldOp fold)
      : code(code), b(code.b), fold(fold), isOverColumns(code.lanes && !code.lanes->getForm().isSerial(fold)),
        guard(rows::getGuard(fold)), onDemand(fold->getParentOfType<onf::KernelOp>()),
        accs(llvm::to_vector(fold.getBody().front().getOps<AccOp>())) {
    rows::Dependence deps;
    isAskedOnce = guard && !code.lanes && !deps.on(guard.getCondition(), fold.getBody().getArgument(0));
    isAlwaysPresent = !guard || isAskedOnce || (!isOverColumns && visitsPresent());
  }
  void run();

private:
  struct State {
    Value memory;                 // of a state with axes
    int value = -1, started = -1; // positions among the loop's arguments
    int rest = -1;                // compensation of a long sum
  };
  Values initialise();
  Value identity(AccOp acc, Type type) { return code.constant(getIdentityOf(acc, acc.getMonoid(), type)); }
  void overAxes(AccOp acc, llvm::function_ref<void(ValueRange)> body);
  bool visitsPresent();
  std::pair<Value, Value> range();
  std::pair<Value, Value> interval(AffineMap lower, AffineMap upper);
  Values iterate(ValueRange args);
  bool isCommutative();
  Values joinLanes(ValueRange finals);
  Values joined(ValueRange left, ValueRange right);
  /// The rescaling of a state because its references have changed.
  struct Change {
    Value ok, apply, factor, added; // as in `rescaled` and `advance`
  };
  Change findChange(unsigned k, ValueRange next, ValueRange args);
  void step(unsigned k, Values &next, ValueRange args);
  Value rescaled(AccOp acc, Value old, const Change &change);
  Values correctionValues(AccOp acc, ValueRange olds, ValueRange news);
  Value advance(AccOp acc, Value old, const Change &change);
  bool isLongSum(AccOp acc);
  Value product(AccOp acc, bool &isProduct, Value &x, Value &y);
  Value append(AccOp acc, Value state);
  Value combined(AccOp acc, Value x, Value y);
  void addCompensated(AccOp acc, const State &state, Values &next, ValueRange args, const Change &change);
  Value roundedOperand(AccOp acc, Value operand, bool isElement);

  ScalarCode &code;
  OpBuilder &b;
  FoldOp fold;
  bool isOverColumns; // lanes divide its indices among them
  GuardOp guard;
  OnDemand onDemand;
  /// The guard is the same for all indices, and threads need not stay together. It is then
  /// evaluated before the loop, so that loads of several steps can be in flight together.
  bool isAskedOnce;
  bool isAlwaysPresent; // at each index of the loop
  SmallVector<AccOp> accs;
  SmallVector<State> states;
  std::vector<std::string> names; // of the index and the carried values
};

/// Returns whether the value is an element of an array, at most widened.
bool isReadElement(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (isa<LoadOp>(op))
      return true;
    if (!isa<arith::ExtFOp, arith::ExtSIOp, arith::ExtUIOp>(op))
      return false;
    value = op->getOperand(0);
  }
  return false;
}

Value yielded(Region &region) { return cast<YieldOp>(region.front().back()).getValues()[0]; }

void FoldWriter::overAxes(AccOp acc, llvm::function_ref<void(ValueRange)> body) {
  if (code.lanes) {
    const SymExpr &extent = getSymExpr(acc.getExtents()[0]);
    code.lanes->overColumns(acc.getValue().front(), cast<StringAttr>(acc.getNames()[0]).getValue(), extent,
                            std::nullopt, {}, {}, [&](Value, ValueRange) {
                              body(code.lanes->getPlace());
                              return Values();
                            });
    return;
  }
  Values indices;
  std::function<void(unsigned)> nest = [&](unsigned axis) {
    if (axis == acc.getExtents().size())
      return body(indices);
    const SymExpr &extent = getSymExpr(acc.getExtents()[axis]);
    StringRef name = cast<StringAttr>(acc.getNames()[axis]).getValue();
    Value end = code.symbol(extent);
    code.loop(code.index(0), end, name, [&](Value index) {
      code.bind(acc.getValue().getArgument(axis), index);
      indices.push_back(index);
      nest(axis + 1);
      indices.pop_back();
    });
  };
  nest(0);
}

Values FoldWriter::initialise() {
  Values inits;
  for (AccOp acc : accs) {
    State state;
    if (auto array = dyn_cast<ArrayType>(acc.getResult().getType())) {
      SmallVector<int64_t> shape;
      for (const SymExpr &expr : acc.getExtents().getAsValueRange<ExprAttr>()) {
        auto extent = expr.getConstant();
        if (!extent) {
          acc.emitError("the state '") << acc.getName() << "' carries an axis of extent " << expr.str()
                                       << "; code for a GPU keeps states in registers and needs a constant";
          code.failed = true;
        }
        shape.push_back(extent.value_or(1));
      }
      auto type = MemRefType::get(shape, array.getElementType());
      Value zero = identity(acc, array.getElementType());
      auto clear = [&](ValueRange at) { memref::StoreOp::create(b, code.loc, zero, state.memory, at); };
      if (code.lanes) {
        const SymExpr &extent = getSymExpr(acc.getExtents()[0]);
        type = code.lanes->stateType(extent, array.getElementType());
        state.memory = memref::AllocaOp::create(b, code.named(acc.getName()), type);
        code.lanes->overState(extent, cast<StringAttr>(acc.getNames()[0]).getValue(), clear);
      } else {
        state.memory = memref::AllocaOp::create(b, code.named(acc.getName()), type);
        overAxes(acc, clear);
      }
    } else {
      state.value = inits.size();
      names.push_back(acc.getName().str());
      inits.push_back(identity(acc, acc.getResult().getType()));
      if (isLongSum(acc)) {
        state.rest = inits.size();
        names.push_back(acc.getName().str() + "_rest");
        inits.push_back(inits.back());
      }
    }
    // States with the same references start together.
    for (auto [other, known] : llvm::zip(accs, states))
      if (!acc.getRefs().empty() && llvm::equal(other.getRefs(), acc.getRefs()) &&
          other.getSingular() == acc.getSingular())
        state.started = known.started;
    if (!acc.getRefs().empty() && state.started < 0) {
      state.started = inits.size();
      inits.push_back(code.constant(b.getBoolAttr(false)));
      names.push_back(acc.getName().str() + "_started");
    }
    states.push_back(state);
  }
  return inits;
}

//===----------------------------------------------------------------------===//
// Ranges
//===----------------------------------------------------------------------===//

std::pair<Value, Value> FoldWriter::interval(AffineMap lower, AffineMap upper) {
  Values operands{code.row, code.row};
  for (Value bound : fold.getBounds())
    operands.push_back(code.eval(bound));
  Value low = code.index(0), high = code.symbol(fold.getExtent());
  if (auto values = affine::expandAffineMap(b, code.loc, lower, operands))
    for (Value value : *values)
      low = b.createOrFold<arith::MaxSIOp>(code.loc, low, value);
  auto [bounds, conditions] = splitConditions(upper);
  if (auto values = affine::expandAffineMap(b, code.loc, bounds, operands))
    for (Value value : *values)
      high = b.createOrFold<arith::MinSIOp>(code.loc, high, value);
  return {low, code.zeroUnless(conditions, operands, high)};
}

/// Returns whether the row sees each index of its range: one piece, which is visited and full in
/// the same interval.
bool FoldWriter::visitsPresent() {
  if (!fold.getPieces() || !code.row || fold.getPieces()->size() != 1)
    return false;
  auto piece = cast<PieceAttr>((*fold.getPieces())[0]);
  auto ofRow = [&](AffineMap map) { // its first and last row are the same
    return map.replace(b.getAffineDimExpr(1), b.getAffineDimExpr(0), map.getNumDims(), map.getNumSymbols());
  };
  return piece.getFull() && ofRow(piece.getFullLower()) == ofRow(piece.getVisitLower()) &&
         ofRow(piece.getFullUpper()) == ofRow(piece.getVisitUpper());
}

/// Returns the hull of the pieces at this row, or the whole range.
std::pair<Value, Value> FoldWriter::range() {
  if (!fold.getPieces() || !code.row)
    return {code.index(0), code.symbol(fold.getExtent())};
  Value low, high;
  for (auto piece : fold.getPieces()->getAsRange<PieceAttr>()) {
    auto [from, to] = interval(piece.getVisitLower(), piece.getVisitUpper());
    low = low ? b.createOrFold<arith::MinSIOp>(code.loc, low, from) : from;
    high = high ? b.createOrFold<arith::MaxSIOp>(code.loc, high, to) : to;
  }
  if (low)
    return {low, high};
  Value none = code.index(0);
  return {none, none};
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

/// Returns the correction factor, then the coefficients of the `others`.
Values FoldWriter::correctionValues(AccOp acc, ValueRange olds, ValueRange news) {
  for (unsigned k = 0; k != olds.size(); ++k) {
    code.bind(acc.getRepair().getArgument(2 * k), olds[k]);
    code.bind(acc.getRepair().getArgument(2 * k + 1), news[k]);
  }
  Values values;
  for (Value value : acc.getRepair().front().getTerminator()->getOperands())
    values.push_back(code.eval(value));
  return values;
}

/// Rounds a computed operand of a product to the type of the other one.
Value FoldWriter::roundedOperand(AccOp acc, Value operand, bool isElement) {
  auto narrow = dyn_cast<FloatType>(*acc.getOperandType());
  Type type = operand.getType();
  if (isElement || !narrow || !isa<FloatType>(type) || narrow.getWidth() >= type.getIntOrFloatBitWidth())
    return operand;
  return code.convert(code.convert(operand, narrow), type);
}

/// Returns whether the rounding errors of a sum would exceed the promised bound.
bool FoldWriter::isLongSum(AccOp acc) {
  auto count = fold.getExtent().getConstant();
  if (isOverColumns)
    count = code.lanes->termsOf(fold.getExtent());
  return rows::isPureSum(acc) && acc.getExtents().empty() && (!count || *count > 256);
}

/// Returns F or, if it is a product, its factors in x and y.
Value FoldWriter::product(AccOp acc, bool &isProduct, Value &x, Value &y) {
  Value term = yielded(acc.getValue());
  auto product = term.getDefiningOp<arith::MulFOp>();
  auto quotient = term.getDefiningOp<arith::DivFOp>();
  bool rounds = acc.getOperandType() && (product || quotient);
  isProduct = rounds || product;
  if (!isProduct)
    return code.eval(term);
  Operation *op = term.getDefiningOp();
  x = code.eval(op->getOperand(0)), y = code.eval(op->getOperand(1));
  if (quotient && rounds) { // a / b is the product of a and 1 / b
    Value one = code.constant(cast<TypedAttr>(FloatAttr::get(y.getType(), 1.0)));
    y = arith::DivFOp::create(b, code.loc, one, y);
  }
  if (rounds) {
    x = roundedOperand(acc, x, isReadElement(op->getOperand(0)));
    y = roundedOperand(acc, y, !quotient && isReadElement(op->getOperand(1)));
  }
  return Value();
}

Value FoldWriter::combined(AccOp acc, Value x, Value y) {
  MonoidOp monoid = lookupMonoid(acc);
  if (!monoid)
    return code.combine(acc.getMonoid(), x, y);
  code.open();
  code.bind(monoid.getBody().getArgument(0), x);
  code.bind(monoid.getBody().getArgument(1), y);
  Value result = code.eval(monoid.getReturned());
  code.close();
  return result;
}

/// Returns state ⊕ F.
Value FoldWriter::append(AccOp acc, Value state) {
  Value term = yielded(acc.getValue());
  bool isSum = acc.getMonoid() == Monoid::add;
  bool rounds = acc.getOperandType() && isa_and_nonnull<arith::MulFOp, arith::DivFOp>(term.getDefiningOp());
  if (lookupMonoid(acc) || (!rounds && !(isSum && term.getDefiningOp<arith::MulFOp>())))
    return combined(acc, state, code.eval(term));
  bool isProduct;
  Value x, y;
  product(acc, isProduct, x, y);
  if (isSum)
    return math::FmaOp::create(b, code.loc, x, y, state);
  return code.combine(acc.getMonoid(), state, arith::MulFOp::create(b, code.loc, x, y));
}

/// Returns apply ? factor ⊗ old + added : old. Null conditions are true, a null factor is the
/// identity, and nothing is added if `added` is null.
Value FoldWriter::rescaled(AccOp acc, Value old, const Change &change) {
  if (!change.factor)
    return old;
  if (acc.getCombine() == ScalarFn::select) {
    Value kept = arith::SelectOp::create(b, code.loc, change.factor, old, identity(acc, old.getType()));
    return arith::SelectOp::create(b, code.loc, change.apply, kept, old);
  }
  Monoid combine = acc.getCombine() == ScalarFn::mul ? Monoid::mul : Monoid::add;
  Value moved = code.combine(combine, old, change.factor);
  if (change.added)
    moved = arith::AddFOp::create(b, code.loc, moved, change.added);
  if (!change.apply)
    return moved;
  return arith::SelectOp::create(b, code.loc, change.apply, moved, old);
}

/// Returns the rescaled state, ⊕ F where ok.
Value FoldWriter::advance(AccOp acc, Value old, const Change &change) {
  Value state = rescaled(acc, old, change);
  Value next = append(acc, state);
  return change.ok ? arith::SelectOp::create(b, code.loc, change.ok, next, state) : next;
}

/// Advances a long sum with compensation: rounding errors are summed separately.
void FoldWriter::addCompensated(AccOp acc, const State &state, Values &next, ValueRange args, const Change &change) {
  auto select = [&](Value x, Value y) -> Value {
    return change.ok ? arith::SelectOp::create(b, code.loc, change.ok, x, y).getResult() : x;
  };
  Value old = rescaled(acc, args[state.value], change), rest = rescaled(acc, args[state.rest], change);
  bool isProduct;
  Value x, y, term = product(acc, isProduct, x, y);
  if (isProduct)
    term = arith::MulFOp::create(b, code.loc, x, y);
  auto [sum, lost] = sumAndRest(code, old, term);
  next[state.value] = select(sum, old);
  next[state.rest] = select(arith::AddFOp::create(b, code.loc, rest, lost), rest);
  code.bind(acc.getResult(), next[state.value]);
}

FoldWriter::Change FoldWriter::findChange(unsigned k, ValueRange next, ValueRange args) {
  AccOp acc = accs[k];
  Change change;
  Value changed;
  Values olds, news;
  for (auto [ref, singular] : llvm::zip_equal(acc.getRefs(), acc.getSingular())) {
    unsigned number = llvm::find(accs, ref.getDefiningOp<AccOp>()) - accs.begin();
    olds.push_back(args[states[number].value]);
    news.push_back(next[states[number].value]);
    Value moved = code.differs(olds.back(), news.back());
    changed = code.either(changed, moved);
    auto value = dyn_cast<FloatAttr>(singular);
    if (value && !value.getValue().isNaN() && value.getType() == news.back().getType())
      change.ok = code.both(change.ok, code.differs(news.back(), code.constant(value)));
  }
  if (olds.empty())
    return change;
  change.apply = code.both(code.both(args[states[k].started], changed), change.ok);
  Values values = correctionValues(acc, olds, news);
  change.factor = values.front();
  for (auto [other, coefficient] : llvm::zip_equal(acc.getOthers(), ValueRange(values).drop_front())) {
    unsigned number = llvm::find(accs, other.getDefiningOp<AccOp>()) - accs.begin();
    Value term = arith::MulFOp::create(b, code.loc, coefficient, args[states[number].value]);
    change.added = change.added ? arith::AddFOp::create(b, code.loc, change.added, term).getResult() : term;
  }
  return change;
}

void FoldWriter::step(unsigned k, Values &next, ValueRange args) {
  AccOp acc = accs[k];
  const State &state = states[k];
  Change change = findChange(k, next, args);
  if (change.factor)
    next[state.started] = change.ok ? b.createOrFold<arith::OrIOp>(code.loc, args[state.started], change.ok)
                                    : code.constant(b.getBoolAttr(true));
  if (state.rest >= 0)
    return addCompensated(acc, state, next, args, change);
  if (!state.memory) {
    next[state.value] = advance(acc, args[state.value], change);
    code.bind(acc.getResult(), next[state.value]);
    return;
  }
  // Values that do not depend on the carried axes are computed once, unless a selection protects
  // their loads.
  if (Operation *term = yielded(acc.getValue()).getDefiningOp())
    for (OpOperand &operand : term->getOpOperands()) {
      Value value = operand.get();
      bool isProtected = isOnDemand(term, operand.getOperandNumber()) && onDemand.mayFault(value);
      if (value.getParentRegion() != &acc.getValue() && !isa<ArrayType>(value.getType()) && !isProtected)
        code.eval(value);
    }
  change.added = Value();
  // Selecting a factor of 1 once avoids a selection per element.
  if (change.factor && change.apply && acc.getCombine() == ScalarFn::mul) {
    Value one = code.constant(cast<TypedAttr>(FloatAttr::get(change.factor.getType(), 1.0)));
    change.factor = arith::SelectOp::create(b, code.loc, change.apply, change.factor, one);
    change.apply = Value();
  }
  overAxes(acc, [&](ValueRange at) {
    Value old = memref::LoadOp::create(b, code.loc, state.memory, at);
    Value value = advance(acc, old, change);
    memref::StoreOp::create(b, code.loc, value, state.memory, at);
  });
}

//===----------------------------------------------------------------------===//
// Lanes
//===----------------------------------------------------------------------===//

/// Joins the states of two parts of the range. Each state is rescaled to the joined references, as
/// if the right part's indices came after the left's, and both are combined.
Values FoldWriter::joined(ValueRange left, ValueRange right) {
  Values next(left);
  for (unsigned k = 0; k != accs.size(); ++k) {
    const State &state = states[k];
    // Each side binds its own references, hence the scope.
    auto changeOf = [&](ValueRange side) {
      code.open();
      Change change = findChange(k, next, side);
      code.close();
      return change;
    };
    Change x = changeOf(left), y = changeOf(right);
    auto sides = [&](int place) {
      Value ofRight = rescaled(accs[k], right[place], y), ofLeft = rescaled(accs[k], left[place], x);
      return std::pair(ofLeft, ofRight);
    };
    auto [first, second] = sides(state.value);
    if (state.rest >= 0) {
      auto [one, other] = sides(state.rest);
      auto [sum, lost] = sumAndRest(code, first, second);
      next[state.value] = sum;
      next[state.rest] = arith::AddFOp::create(b, code.loc, arith::AddFOp::create(b, code.loc, one, other), lost);
    } else {
      next[state.value] = combined(accs[k], first, second);
    }
  }
  for (const State &state : states)
    if (state.started >= 0)
      next[state.started] = b.createOrFold<arith::OrIOp>(code.loc, left[state.started], right[state.started]);
  return next;
}

/// Returns whether the order of two parts does not matter for the bits of their joined states.
bool FoldWriter::isCommutative() {
  return llvm::all_of(llvm::zip_equal(accs, states), [](auto pair) {
    AccOp acc = std::get<0>(pair);
    return acc.getRefs().empty() && acc.getMonoid() != Monoid::user && std::get<1>(pair).rest < 0;
  });
}

/// Joins the states of all lanes of a row. Unless the order does not matter, both lanes of a pair
/// combine the lower one's states with the other's in this order, so that they get the same bits.
Values FoldWriter::joinLanes(ValueRange finals) {
  Values own(finals);
  bool anyOrder = isCommutative();
  for (int64_t mask = 1; mask < code.lanes->getForm().lanes; mask *= 2) {
    Value isLower = anyOrder ? Value() : code.lanes->isLower(mask);
    Values left, right;
    for (Value value : own) {
      Value other = code.lanes->exchange(value, mask);
      if (anyOrder) {
        left.push_back(value);
        right.push_back(other);
        continue;
      }
      left.push_back(arith::SelectOp::create(b, code.loc, isLower, value, other));
      right.push_back(arith::SelectOp::create(b, code.loc, isLower, other, value));
    }
    own = joined(left, right);
  }
  return own;
}

/// Emits the steps of all states at the bound index.
Values FoldWriter::iterate(ValueRange args) {
  bool isSerial = code.lanes && !isOverColumns;
  auto steps = [&] {
    if (isSerial)
      code.lanes->beginStep(fold);
    Values next(args);
    for (unsigned k = 0; k != accs.size(); ++k)
      step(k, next, args);
    if (isSerial)
      code.lanes->endStep();
    return next;
  };
  if (isAlwaysPresent)
    return steps();
  return code.branch(code.eval(guard.getCondition()), args.getTypes(), steps, [&] { return Values(args); });
}

void FoldWriter::run() {
  names.push_back(fold.getName().str());
  Values inits = initialise();
  Values finals;
  if (isOverColumns) {
    finals = joinLanes(code.lanes->overColumns(fold.getBody().front(), fold.getName(), fold.getExtent(),
                                               fold.getPieces() ? std::optional(range()) : std::nullopt, inits,
                                               ArrayRef(names).drop_front(),
                                               [&](Value, ValueRange args) { return iterate(args); }));
  } else {
    if (code.lanes)
      code.lanes->enter(fold);
    auto all = [&] {
      auto [lower, upper] = range();
      return code.loop(lower, upper, inits, names, [&](Value j, ValueRange args) {
        code.bind(fold.getBody().getArgument(0), j);
        return iterate(args);
      });
    };
    finals = isAskedOnce ? code.branch(code.eval(guard.getCondition()), ValueRange(inits).getTypes(), all,
                                       [&] { return inits; })
                         : all();
    if (code.lanes)
      code.lanes->leave();
  }
  for (auto [state, result] : llvm::zip_equal(states, fold.getResults())) {
    Value value = state.memory ? state.memory : finals[state.value];
    if (state.rest >= 0)
      value = arith::AddFOp::create(b, code.loc, value, finals[state.rest]);
    code.bind(result, value);
  }
}

} // namespace

std::pair<Value, Value> moa::sumAndRest(ScalarCode &code, Value x, Value y) {
  OpBuilder &b = code.b;
  auto add = [&](Value u, Value v) -> Value { return arith::AddFOp::create(b, code.loc, u, v); };
  auto subtract = [&](Value u, Value v) -> Value { return arith::SubFOp::create(b, code.loc, u, v); };
  Value sum = add(x, y), added = subtract(sum, x), lostOfY = subtract(y, added);
  Value lost = add(subtract(x, subtract(sum, added)), lostOfY);
  Value zero = code.constant(cast<TypedAttr>(b.getZeroAttr(lost.getType())));
  return {sum, arith::SelectOp::create(b, code.loc, code.differs(lost, lost), zero, lost)};
}

void moa::emitFold(ScalarCode &code, FoldOp fold) {
  Location outer = code.loc;
  code.loc = withoutName(outer);
  FoldWriter(code, fold).run();
  code.loc = outer;
}
