//===- Pivots.cpp - exponents of large references -------------------------===//
#include "lib/Conversion/ONFToDevice/Tiles/Pivots.h"
#include "lib/Conversion/ONFToDevice/Tiles/Maps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <cmath>

using namespace mlir;
using namespace moa;
using namespace moa::onf;

namespace moa::tiles {

/// If a row's reference has a larger magnitude, differences are computed before they are scaled.
static constexpr float kLargeReference = 1024;

/// Returns whether only guards need an operation. Guards are evaluated before a tile's elements are
/// shifted.
static bool isOfGuard(Operation *op) {
  return isa<GuardOp>(op) ||
         (op->getNumRegions() == 0 && !isa<YieldOp>(op) && !op->use_empty() && llvm::all_of(op->getUsers(), isOfGuard));
}

/// Returns whether `user` reduces a value into states without references, directly or after a
/// maximum or minimum with another value. These are reduced before a tile's elements are shifted.
static bool isReducedBefore(Operation *user) {
  if (isa<YieldOp>(user)) {
    auto acc = dyn_cast<AccOp>(user->getParentOp());
    return acc && acc.getRefs().empty();
  }
  return isa<arith::MaximumFOp, arith::MinimumFOp>(user) &&
         llvm::all_of(user->getUsers(), [](Operation *next) { return isa<YieldOp>(next) && isReducedBefore(next); });
}

/// Returns whether a value depends on the row alone, and can be evaluated with clamped loads.
bool Pivots::isOfRowAlone(Value value) {
  rows::Dependence deps;
  if (anySource(value, [](Operation *op) { return isa<AccOp, FoldOp>(op); }))
    return false;
  return value.getType().isF32() && !deps.on(value, plan.keyIndex()) && canClamp(plan, value);
}

/// Returns the other operand of the exponents in which an element occurs. Null if there are
/// several, or if the element has another use, so that it cannot be replaced.
Value Pivots::pivotOf(const Element &element) {
  Value pivot;
  for (Operation *user : element.value.getUsers()) {
    if (isReducedBefore(user) || isOfGuard(user))
      continue;
    auto difference = dyn_cast<arith::SubFOp>(user);
    if (!difference || !isExponent(difference))
      return Value();
    Value other = difference.getLhs() == element.value ? difference.getRhs() : difference.getLhs();
    if (other == element.value || (pivot && other != pivot))
      return Value();
    pivot = other;
  }
  return pivot;
}

/// Returns the pivots of a tile's elements among the values that `isKnown` accepts. All uses of a
/// pivot in the fold are exponents of its elements, so that it can be replaced there.
SmallVector<Pivot> Pivots::findPivots(const Tile &tile, llvm::function_ref<bool(Value)> isKnown) {
  SmallVector<Pivot> pivots;
  for (auto [k, element] : llvm::enumerate(tile.elements)) {
    Value value = pivotOf(element);
    if (!value || !isKnown(value))
      continue;
    auto found = llvm::find_if(pivots, [&](const Pivot &pivot) { return pivot.value == value; });
    if (found == pivots.end())
      pivots.push_back({value, Value(), {unsigned(k)}});
    else
      found->elements.push_back(k);
  }
  llvm::erase_if(pivots, [&](const Pivot &pivot) {
    auto isOfElement = [&](Value value) {
      return llvm::any_of(pivot.elements, [&](unsigned k) { return tile.elements[k].value == value; });
    };
    bool hasIntegers =
        llvm::any_of(pivot.elements, [&](unsigned k) { return elementOf(tile.elements[k].fragment).isInteger(32); });
    return (hasIntegers && pivot.elements.size() != 1) || llvm::any_of(pivot.value.getUsers(), [&](Operation *user) {
             bool isInside = plan.fold->isProperAncestor(user);
             bool isExponentOf = isa<arith::SubFOp>(user) && isExponent(user->getResult(0)) &&
                                 (isOfElement(user->getOperand(0)) || isOfElement(user->getOperand(1)));
             bool isState = isa<AccOp>(user) || user == plan.fold.getBody().front().getTerminator();
             return isInside && !isState && !isExponentOf;
           });
  });
  return pivots;
}

Value isLarge(ScalarCode &code, Value value, bool finite) {
  auto less = [&](Value x, Value y, Location loc) -> Value {
    return arith::CmpFOp::create(code.b, loc, arith::CmpFPredicate::OLT, x, y);
  };
  Value size = math::AbsFOp::create(code.b, code.loc, value);
  Value large = less(code.constant(code.b.getF32FloatAttr(kLargeReference)), size, code.named("is_large"));
  return finite ? code.both(large, less(size, code.constant(code.b.getF32FloatAttr(INFINITY)), code.loc)) : large;
}

/// Returns an element x shifted by a large reference m: (x·rest − m)/rest, such that x·rest − 0 is
/// the difference from m. For integers it is x − n, with n the integer next to m/rest.
Value Pivots::shiftElement(const Element &element, Value reference) {
  Over over = Over::tile(plan.shape.keys);
  Type type = elementOf(element.fragment);
  Value inverse;
  if (element.rest)
    inverse = device::ReciprocalOp::create(b, code.named("inverse_scale"), element.rest, /*subnormals=*/true);
  if (type.isInteger(32)) {
    Value whole = map(code, "shift", reference, Over::rows(), {type}, [&](ValueRange in, ValueRange) {
      return Values{arith::FPToSIOp::create(b, code.loc, type, nearestMultiple(in[0], inverse))};
    })[0];
    return map(code, "scores", {element.fragment, whole}, over, {type},
               [&](ValueRange in, ValueRange) { return Values{arith::SubIOp::create(b, code.loc, in[0], in[1])}; })[0];
  }
  return map(code, "scores", {element.fragment, reference}, over, {type}, [&](ValueRange in, ValueRange) {
    Value x = element.rest ? code.combine(Monoid::mul, in[0], element.rest) : in[0];
    Value shifted = arith::SubFOp::create(b, code.loc, x, in[1]);
    if (inverse)
      shifted = code.combine(Monoid::mul, shifted, inverse);
    return Values{arith::SelectOp::create(b, code.loc, isLarge(code, in[1], true), shifted, in[0])};
  })[0];
}

/// Returns the integer next to m/rest for a large reference m, as a float, and 0 for others. It is
/// clamped to ±2^24: integer scores are smaller, so that all weights are 0 with any such number.
Value Pivots::nearestMultiple(Value reference, Value inverse) {
  Value quotient = inverse ? code.combine(Monoid::mul, reference, inverse) : reference;
  auto number = [&](float value) { return code.constant(b.getF32FloatAttr(value)); };
  quotient = arith::MaximumFOp::create(b, code.loc, quotient, number(-0x1p24f));
  quotient = arith::MinimumFOp::create(b, code.loc, quotient, number(0x1p24f));
  quotient = math::FloorOp::create(b, code.loc, code.combine(Monoid::add, quotient, number(0.5f)));
  Value none = number(0);
  return arith::SelectOp::create(b, code.loc, isLarge(code, reference, true), quotient, none);
}

/// Returns the replacement of a large reference m whose element was shifted: 0 or, for integers, m
/// − n·rest. `large` tells which references are large, or is null.
Value Pivots::shiftReference(const Element &element, Value reference, Value large) {
  bool isInteger = elementOf(element.fragment).isInteger(32);
  Value inverse;
  if (isInteger && element.rest)
    inverse = device::ReciprocalOp::create(b, code.named("inverse_scale"), element.rest, /*subnormals=*/true);
  Values inputs{reference};
  if (large)
    inputs.push_back(large);
  return map(code, "pivot", inputs, Over::rows(), {b.getF32Type()}, [&](ValueRange in, ValueRange) {
    Value rest = code.constant(b.getF32FloatAttr(0));
    if (isInteger) {
      Value whole = nearestMultiple(in[0], inverse);
      if (element.rest)
        whole = code.combine(Monoid::mul, whole, element.rest);
      rest = arith::SubFOp::create(b, code.loc, in[0], whole);
    }
    Value isReplaced = large ? in[1] : isLarge(code, in[0], true);
    return Values{arith::SelectOp::create(b, code.loc, isReplaced, rest, in[0])};
  })[0];
}

Values Pivots::valuesOf(ArrayRef<Pivot> pivots, const Tile &tile) {
  Values values;
  for (const Pivot &pivot : pivots)
    values.push_back(pivot.reference);
  for (const Pivot &pivot : pivots)
    for (unsigned k : pivot.elements)
      values.push_back(tile.elements[k].fragment);
  return values;
}

/// Emits a branch for warps that have rows with large references, which shifts elements and pivots.
/// Returns the pivots, then the elements.
Values Pivots::shiftLarge(const Tile &tile, ArrayRef<Pivot> pivots) {
  Values references;
  for (const Pivot &pivot : pivots)
    references.push_back(pivot.reference);
  Value large = map(code, "is_large", references, Over::rows(), {b.getI1Type()}, [&](ValueRange in, ValueRange) {
    Value any;
    for (Value reference : in)
      any = code.either(any, isLarge(code, reference, true));
    return Values{any};
  })[0];
  Value any = device::AnyOp::create(b, code.named("has_large"), large);
  return ifAny(code, any, valuesOf(pivots, tile), [&] {
    Values results, shifted;
    for (const Pivot &pivot : pivots) {
      for (unsigned k : pivot.elements)
        shifted.push_back(shiftElement(tile.elements[k], pivot.reference));
      results.push_back(
          shiftReference(tile.elements[pivot.elements[0]], pivot.reference, pivots.size() == 1 ? large : Value()));
    }
    results.append(shifted);
    return results;
  });
}

void Pivots::takeShifted(Tile &tile, ArrayRef<Pivot> pivots, ValueRange values) {
  for (auto [k, pivot] : llvm::enumerate(pivots)) {
    tile.pivots[pivot.value] = values[k];
    for (Operation *user : pivot.value.getUsers())
      if (plan.fold->isProperAncestor(user) && isa<arith::SubFOp>(user))
        code.smallOperands[user->getResult(0)] = user->getOperand(1) == pivot.value ? 1 : 0;
  }
  values = values.drop_front(pivots.size());
  for (const Pivot &pivot : pivots)
    for (unsigned k : pivot.elements) {
      tile.elements[k].fragment = values.front();
      values = values.drop_front();
    }
}

/// Shifts elements whose exponents subtract a value of the row that no tile changes. For example, a
/// log-sum-exp that a backward pass loads.
void Pivots::shiftByRows(Tile &tile) {
  SmallVector<Pivot> pivots =
      findPivots(tile, [&](Value value) { return isOfRowAlone(value) && !value.getDefiningOp<arith::ConstantOp>(); });
  llvm::erase_if(pivots, [&](const Pivot &pivot) {
    return llvm::any_of(pivot.elements,
                        [&](unsigned k) { return llvm::any_of(tile.elements[k].value.getUsers(), isReducedBefore); });
  });
  if (pivots.empty())
    return;
  for (Pivot &pivot : pivots)
    pivot.reference = mapNearestRows("pivot", {}, Over::rows(), {b.getF32Type()},
                                     [&](ValueRange) { return Values{code.eval(pivot.value)}; })[0];
  takeShifted(tile, pivots, shiftLarge(tile, pivots));
}

SmallVector<Pivot> Pivots::findReferences(const Tile &tile, unsigned pass) {
  return findPivots(tile, [&](Value value) {
    auto acc = value.getDefiningOp<AccOp>();
    return acc && value.getType().isF32() && acc->getParentOp() == plan.fold &&
           facts.isReference[facts.numberOf(value)] && plan.folded.scalars[facts.numberOf(value)].pass == pass;
  });
}

} // namespace moa::tiles
