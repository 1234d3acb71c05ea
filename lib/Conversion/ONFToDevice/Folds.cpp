//===- Folds.cpp - folds, one index at a time -----------------------------===//
//
// For every index j that the pieces of the fold's domain leave to this row, each
// state takes the step t ← (c ⊗ t) ⊕ F of the definition of onf.acc.
//
//===----------------------------------------------------------------------===//
#include "dialects/MoA/IR/Monoid.h"
#include "lib/Conversion/ONFToDevice/ScalarCode.h"
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
      : code(code), b(code.b), fold(fold),
        accs(llvm::to_vector(fold.getBody().front().getOps<AccOp>())) {}
  void run();

private:
  struct State {
    Value memory;                 // of a state with axes
    int value = -1, started = -1; // positions among the loop's arguments
    int rest = -1;                // what rounding took from a long sum
  };
  Values initialise();
  Value identity(AccOp acc, Type type) {
    return code.constant(getIdentityOf(acc, acc.getMonoid(), type));
  }
  void overAxes(AccOp acc, llvm::function_ref<void(ValueRange)> body);
  std::pair<Value, Value> range();
  std::pair<Value, Value> interval(AffineMap lower, AffineMap upper);
  Values iterate(Value j, ValueRange args);
  void step(unsigned k, Values &next, ValueRange args);
  Values repairValues(AccOp acc, ValueRange olds, ValueRange news);
  Value advance(AccOp acc, Value old, Value factor, Value added, Value apply, Value ok);
  bool isLongSum(AccOp acc);
  Value product(AccOp acc, bool &isProduct, Value &x, Value &y);
  Value append(AccOp acc, Value state);
  void addCompensated(AccOp acc, const State &state, Values &next, ValueRange args, Value factor,
                      Value apply, Value ok);
  Value roundedOperand(AccOp acc, Value operand, bool isElement);

  ScalarCode &code;
  OpBuilder &b;
  FoldOp fold;
  SmallVector<AccOp> accs;
  SmallVector<State> states;
  std::vector<std::string> names; // of the index and the values carried
};

/// True if the value is an element as memory holds it, widened at most.
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

Value yielded(Region &region) {
  return cast<YieldOp>(region.front().back()).getValues()[0];
}

void FoldWriter::overAxes(AccOp acc, llvm::function_ref<void(ValueRange)> body) {
  Values indices;
  std::function<void(unsigned)> nest = [&](unsigned axis) {
    if (axis == acc.getExtents().size())
      return body(indices);
    StringRef extent = cast<StringAttr>(acc.getExtents()[axis]).getValue();
    StringRef name = cast<StringAttr>(acc.getNames()[axis]).getValue();
    code.loop(code.index(0), code.symbol(extent), name, [&](Value index) {
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
      for (Attribute text : acc.getExtents()) {
        auto expr = SymExpr::parse(cast<StringAttr>(text).getValue());
        auto extent = expr ? expr->getConstant() : std::nullopt;
        if (!extent) {
          acc.emitError("the state '")
              << acc.getName() << "' carries an axis of extent "
              << cast<StringAttr>(text).getValue()
              << "; code for a GPU keeps states in registers and needs a constant";
          code.failed = true;
        }
        shape.push_back(extent.value_or(1));
      }
      auto type = MemRefType::get(shape, array.getElementType());
      state.memory = memref::AllocaOp::create(b, code.named(acc.getName()), type);
      Value zero = identity(acc, array.getElementType());
      overAxes(acc, [&](ValueRange at) {
        memref::StoreOp::create(b, code.loc, zero, state.memory, at);
      });
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
  if (auto values = affine::expandAffineMap(b, code.loc, upper, operands))
    for (Value value : *values)
      high = b.createOrFold<arith::MinSIOp>(code.loc, high, value);
  return {low, high};
}

/// The hull of the pieces at this row, or the whole range.
std::pair<Value, Value> FoldWriter::range() {
  if (!fold.getPieces() || !code.row)
    return {code.index(0), code.symbol(fold.getExtent())};
  Value low, high;
  for (auto piece : fold.getPieces()->getAsRange<PieceAttr>()) {
    auto [from, to] = interval(piece.getVisitLower(), piece.getVisitUpper());
    low = low ? b.createOrFold<arith::MinSIOp>(code.loc, low, from) : from;
    high = high ? b.createOrFold<arith::MaxSIOp>(code.loc, high, to) : to;
  }
  return low ? std::pair(low, high) : std::pair(code.index(0), code.index(0));
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

/// The factor of a repair, and what it multiplies the others with.
Values FoldWriter::repairValues(AccOp acc, ValueRange olds, ValueRange news) {
  for (unsigned k = 0; k != olds.size(); ++k) {
    code.bind(acc.getRepair().getArgument(2 * k), olds[k]);
    code.bind(acc.getRepair().getArgument(2 * k + 1), news[k]);
  }
  Values values;
  for (Value value : acc.getRepair().front().getTerminator()->getOperands())
    values.push_back(code.eval(value));
  return values;
}

/// A computed operand of a product rounds to the type of the other one.
Value FoldWriter::roundedOperand(AccOp acc, Value operand, bool isElement) {
  auto narrow = dyn_cast<FloatType>(*acc.getOperandType());
  Type type = operand.getType();
  if (isElement || !narrow || !isa<FloatType>(type) ||
      narrow.getWidth() >= type.getIntOrFloatBitWidth())
    return operand;
  return code.convert(code.convert(operand, narrow), type);
}

/// Whether roundings of the sum would grow with the range beyond what is promised.
bool FoldWriter::isLongSum(AccOp acc) {
  auto extent = SymExpr::parse(fold.getExtent());
  auto count = extent ? extent->getConstant() : std::nullopt;
  return rows::isPureSum(acc) && acc.getExtents().empty() && (!count || *count > 256);
}

/// F, whose factors x and y are given instead where it is a product.
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

/// state ⊕ F.
Value FoldWriter::append(AccOp acc, Value state) {
  Value term = yielded(acc.getValue());
  bool isSum = acc.getMonoid() == Monoid::add;
  bool rounds = acc.getOperandType() && isa_and_nonnull<arith::MulFOp, arith::DivFOp>(term.getDefiningOp());
  if (MonoidOp monoid = lookupMonoid(acc)) {
    Value value = code.eval(term);
    code.open();
    code.bind(monoid.getBody().getArgument(0), state);
    code.bind(monoid.getBody().getArgument(1), value);
    Value result = code.eval(monoid.getReturned());
    code.close();
    return result;
  }
  if (!rounds && !(isSum && term.getDefiningOp<arith::MulFOp>()))
    return code.combine(acc.getMonoid(), state, code.eval(term));
  bool isProduct;
  Value x, y;
  product(acc, isProduct, x, y);
  if (isSum)
    return math::FmaOp::create(b, code.loc, x, y, state);
  return code.combine(acc.getMonoid(), state,
                      arith::MulFOp::create(b, code.loc, x, y));
}

/// (apply ? factor ⊗ old + added : old) ⊕ F where ok, old elsewhere. Null conditions are
/// true; a null factor is the identity, and nothing is added where `added` is null.
Value FoldWriter::advance(AccOp acc, Value old, Value factor, Value added, Value apply, Value ok) {
  Value repaired = old;
  if (factor && acc.getCombine() == ScalarFn::select) {
    Value kept = arith::SelectOp::create(b, code.loc, factor, old, identity(acc, old.getType()));
    repaired = arith::SelectOp::create(b, code.loc, apply, kept, old);
  } else if (factor) {
    Monoid combine = acc.getCombine() == ScalarFn::mul ? Monoid::mul : Monoid::add;
    Value moved = code.combine(combine, old, factor);
    if (added)
      moved = arith::AddFOp::create(b, code.loc, moved, added);
    repaired = arith::SelectOp::create(b, code.loc, apply, moved, old);
  }
  Value next = append(acc, repaired);
  return ok ? arith::SelectOp::create(b, code.loc, ok, next, repaired) : next;
}

/// As advance, of a long sum: what the addition rounds off is added up beside it
/// (the sum and the error of D. E. Knuth, The Art of Computer Programming 2, 4.2.2).
void FoldWriter::addCompensated(AccOp acc, const State &state, Values &next, ValueRange args,
                                Value factor, Value apply, Value ok) {
  auto add = [&](Value x, Value y) -> Value { return arith::AddFOp::create(b, code.loc, x, y); };
  auto subtract = [&](Value x, Value y) -> Value {
    return arith::SubFOp::create(b, code.loc, x, y);
  };
  auto select = [&](Value c, Value x, Value y) -> Value {
    return c ? arith::SelectOp::create(b, code.loc, c, x, y).getResult() : x;
  };
  Value old = args[state.value], rest = args[state.rest];
  if (factor) {
    old = select(apply, code.combine(Monoid::mul, old, factor), old);
    rest = select(apply, code.combine(Monoid::mul, rest, factor), rest);
  }
  bool isProduct;
  Value x, y, term = product(acc, isProduct, x, y);
  if (isProduct)
    term = arith::MulFOp::create(b, code.loc, x, y);
  Value sum = add(old, term), added = subtract(sum, old);
  Value lost = add(subtract(old, subtract(sum, added)), subtract(term, added));
  // What is not finite loses nothing.
  lost = select(code.differs(lost, lost), identity(acc, lost.getType()), lost);
  next[state.value] = select(ok, sum, old);
  next[state.rest] = select(ok, add(rest, lost), rest);
  code.bind(acc.getResult(), next[state.value]);
}

void FoldWriter::step(unsigned k, Values &next, ValueRange args) {
  AccOp acc = accs[k];
  const State &state = states[k];
  Value ok, changed, factor, added, apply;
  Values olds, news;
  for (auto [ref, singular] : llvm::zip_equal(acc.getRefs(), acc.getSingular())) {
    unsigned number = llvm::find(accs, ref.getDefiningOp<AccOp>()) - accs.begin();
    olds.push_back(args[states[number].value]);
    news.push_back(next[states[number].value]);
    Value moved = code.differs(olds.back(), news.back());
    changed = changed ? b.createOrFold<arith::OrIOp>(code.loc, changed, moved) : moved;
    auto value = dyn_cast<FloatAttr>(singular);
    if (value && !value.getValue().isNaN() && value.getType() == news.back().getType())
      ok = code.both(ok, code.differs(news.back(), code.constant(value)));
  }
  if (!olds.empty()) {
    Value started = args[state.started];
    apply = code.both(code.both(started, changed), ok);
    Values values = repairValues(acc, olds, news);
    factor = values.front();
    for (auto [other, coefficient] : llvm::zip_equal(acc.getOthers(), ValueRange(values).drop_front())) {
      unsigned number = llvm::find(accs, other.getDefiningOp<AccOp>()) - accs.begin();
      Value term = arith::MulFOp::create(b, code.loc, coefficient, args[states[number].value]);
      added = added ? arith::AddFOp::create(b, code.loc, added, term).getResult() : term;
    }
    next[state.started] = ok ? b.createOrFold<arith::OrIOp>(code.loc, started, ok)
                             : code.constant(b.getBoolAttr(true));
  }
  if (state.rest >= 0)
    return addCompensated(acc, state, next, args, factor, apply, ok);
  if (!state.memory) {
    next[state.value] = advance(acc, args[state.value], factor, added, apply, ok);
    code.bind(acc.getResult(), next[state.value]);
    return;
  }
  // What does not depend on the carried axes is computed once.
  Value term = yielded(acc.getValue());
  for (Value operand : term.getDefiningOp() ? term.getDefiningOp()->getOperands()
                                            : OperandRange(nullptr, 0))
    if (operand.getParentRegion() != &acc.getValue() && !isa<ArrayType>(operand.getType()))
      code.eval(operand);
  overAxes(acc, [&](ValueRange at) {
    Value old = memref::LoadOp::create(b, code.loc, state.memory, at);
    Value value = advance(acc, old, factor, Value(), apply, ok);
    memref::StoreOp::create(b, code.loc, value, state.memory, at);
  });
}

Values FoldWriter::iterate(Value j, ValueRange args) {
  code.bind(fold.getBody().getArgument(0), j);
  auto steps = [&] {
    Values next(args);
    for (unsigned k = 0; k != accs.size(); ++k)
      step(k, next, args);
    return next;
  };
  auto guards = fold.getBody().front().getOps<GuardOp>();
  if (guards.empty())
    return steps();
  Value present = code.eval((*guards.begin()).getCondition());
  return code.branch(present, args.getTypes(), steps, [&] { return Values(args); });
}

void FoldWriter::run() {
  names.push_back(fold.getName().str());
  Values inits = initialise();
  auto [lower, upper] = range();
  Values finals = code.loop(lower, upper, inits, names, [&](Value j, ValueRange args) {
    return iterate(j, args);
  });
  for (auto [state, result] : llvm::zip_equal(states, fold.getResults())) {
    Value value = state.memory ? state.memory : finals[state.value];
    if (state.rest >= 0)
      value = arith::AddFOp::create(b, code.loc, value, finals[state.rest]);
    code.bind(result, value);
  }
}

} // namespace

void moa::emitFold(ScalarCode &code, FoldOp fold) { FoldWriter(code, fold).run(); }
