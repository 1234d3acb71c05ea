//===- Rescaling.cpp - states relative to references ----------------------===//
#include "lib/Conversion/ONFToDevice/Tiles/Rescaling.h"
#include "lib/Conversion/ONFToDevice/Tiles/Maps.h"
#include "lib/Conversion/ONFToDevice/Tiles/Names.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <cmath>

using namespace mlir;
using namespace moa;
using namespace moa::onf;

namespace moa::tiles {

Value regular(ScalarCode &code, AccOp acc, ArrayRef<Value> refs) {
  Value ok;
  for (auto [ref, singular] : llvm::zip_equal(refs, acc.getSingular())) {
    auto value = dyn_cast<FloatAttr>(singular);
    if (value && !value.getValue().isNaN() && value.getType() == ref.getType())
      ok = code.both(ok, code.differs(ref, code.constant(value)));
  }
  return ok;
}

Value hasElements(ScalarCode &code, AccOp reference, Value value) {
  auto start = dyn_cast<FloatAttr>(getIdentity(reference.getMonoid(), value.getType()));
  return start && start.getValue().isInfinity() ? code.differs(value, code.constant(start)) : Value();
}

/// Binds the arguments of a rescaling to the references before and after. Returns whether one has
/// changed.
Value Rescaling::bindRescale(const Rescale &rescale, ValueRange before, ValueRange after) {
  Value changed;
  AccOp acc = rescale.acc;
  for (unsigned k = 0; k != rescale.refs.size(); ++k) {
    code.bind(acc.getRepair().getArgument(2 * k), before[k]);
    code.bind(acc.getRepair().getArgument(2 * k + 1), after[k]);
    Value moved = code.differs(before[k], after[k]);
    changed = code.either(changed, moved);
  }
  return changed;
}

/// Returns the correction factor c(d, d′) if the state has started and a reference has changed,
/// else the identity of ⊗. The coefficients of the `others` follow; they are 0 if the factor is the
/// identity.
Values Rescaling::factor(unsigned number, const Running &olds, const Running &news, StringRef name) {
  const Rescale &rescale = facts.rescales[number];
  AccOp acc = rescale.acc;
  Values inputs;
  for (const Running *running : {&olds, &news})
    for (unsigned ref : rescale.refs)
      inputs.push_back(running->scalars[ref].reference);
  if (olds.started[number])
    inputs.push_back(olds.started[number]);
  OperandRange yielded = acc.getRepair().front().getTerminator()->getOperands();
  SmallVector<Type> types(yielded.getTypes());
  unsigned count = rescale.refs.size();
  return mapNearestRows(name, inputs, Over::rows(), types, [&](ValueRange in) {
    ValueRange before = in.take_front(count), after = in.slice(count, count);
    Value apply = bindRescale(rescale, before, after);
    apply = code.both(apply, olds.started[number] ? in.back() : regular(code, acc, Values(before)));
    if (olds.started[number])
      apply = code.both(apply, regular(code, acc, Values(after)));
    Monoid combine = acc.getCombine() == ScalarFn::mul ? Monoid::mul : Monoid::add;
    Values values;
    for (auto [k, value] : llvm::enumerate(yielded)) {
      Value otherwise = identity(code, k ? Monoid::add : combine, value.getType());
      values.push_back(arith::SelectOp::create(b, code.loc, apply, code.eval(value), otherwise));
    }
    return values;
  });
}

/// Returns whether the correction factor, for the bound arguments, is within the schedule's bound
/// of 1. Exponentials are compared by their exponents.
Value Rescaling::isNearOne(AccOp acc) {
  Value factor = rows::getYielded(acc.getRepair());
  Operation *op = factor.getDefiningOp();
  auto compare = [&](arith::CmpFPredicate relation, Value x, double limit) -> Value {
    Value constant = code.constant(b.getF32FloatAttr(static_cast<float>(limit)));
    return arith::CmpFOp::create(b, code.named("is_near"), relation, x, constant);
  };
  double bound = plan.shape.rescaleBound;
  if (isa_and_nonnull<math::ExpOp, math::Exp2Op>(op)) {
    Value exponent = math::AbsFOp::create(b, code.loc, code.eval(op->getOperand(0)));
    return compare(arith::CmpFPredicate::OLE, exponent, isa<math::ExpOp>(op) ? bound * std::log(2.0) : bound);
  }
  Value value = code.eval(factor);
  Value isAtMost = compare(arith::CmpFPredicate::OLE, value, std::exp2(bound));
  return code.both(compare(arith::CmpFPredicate::OGE, value, std::exp2(-bound)), isAtMost);
}

/// Returns whether a rescaling from singular references is never near 1: its factor is 0, infinite
/// or NaN.
bool Rescaling::isFarFromSingular(const Rescale &rescale) {
  AccOp acc = rescale.acc;
  llvm::DenseMap<Value, double> known;
  for (auto [k, singular] : llvm::enumerate(acc.getSingular())) {
    auto value = dyn_cast<FloatAttr>(singular);
    if (!value)
      return false;
    known[acc.getRepair().getArgument(2 * k)] = value.getValueAsDouble();
    known[acc.getRepair().getArgument(2 * k + 1)] = 0;
  }
  auto factor = rescale.refs.size() == 1 ? valueWhere(rows::getYielded(acc.getRepair()), known) : std::nullopt;
  return factor && (*factor == 0 || !std::isfinite(*factor));
}

/// Returns whether references must move: some state, relative to the current references, may be off
/// by more than the bound. Within it, no terms are lost or overflow. Rescaling is exact in the
/// fold's meaning, whenever it happens. Piecewise linear powers of 2 have an error of their own,
/// which depends on the reference.
Value Rescaling::mustRescale(const Running &olds, const Running &news, ArrayRef<Pivot> pivots) {
  Value must;
  for (const Rescale &rescale : facts.rescales) {
    Values inputs;
    for (unsigned ref : rescale.refs)
      inputs.push_back(olds.scalars[ref].reference);
    for (unsigned ref : rescale.refs)
      inputs.push_back(news.scalars[ref].partial);
    if (must)
      inputs.push_back(must);
    must = mapNearestRows("must_rescale", inputs, Over::parts(), {b.getI1Type()}, [&](ValueRange in) {
      unsigned count = rescale.refs.size();
      Values before(in.take_front(count)), after;
      for (auto [k, ref] : llvm::enumerate(rescale.refs)) {
        Monoid monoid = AccOp(plan.folded.scalars[ref].acc).getMonoid();
        // A row with a large pivot moves in every tile, like a row without elements so far. nvcc
        // emits no branch for a select, but a slow one for a further `or`.
        if (llvm::any_of(pivots, [&, ref = ref](const Pivot &pivot) { return facts.numberOf(pivot.value) == ref; })) {
          Value none = identity(code, monoid, before[k].getType()), moves = isLarge(code, before[k], false);
          before[k] = arith::SelectOp::create(b, code.named("old_pivot"), moves, none, before[k]);
        }
        after.push_back(buildMonoid(b, code.named("tile_pivot"), monoid, before[k], in[count + k]));
      }
      Value changed = bindRescale(rescale, before, after);
      Value near = isNearOne(rescale.acc);
      if (!isFarFromSingular(rescale)) {
        near = code.both(near, regular(code, rescale.acc, before));
        // A row without elements so far has not started: no terms may be added to its states.
        for (auto [ref, value] : llvm::zip(rescale.refs, before))
          near = code.both(near, hasElements(code, plan.folded.scalars[ref].acc, value));
      }
      Value far = arith::XOrIOp::create(b, code.loc, near, code.constant(b.getBoolAttr(true)));
      Value result = code.both(changed, far);
      if (in.size() > 2 * count)
        result = arith::OrIOp::create(b, code.loc, result, in.back());
      return Values{result};
    })[0];
  }
  return must;
}

Value Rescaling::rescaled(AccOp acc, Value state, Value factor, Over over) {
  Monoid combine = acc.getCombine() == ScalarFn::mul ? Monoid::mul : Monoid::add;
  std::string name = over.kind == Over::Tile ? acc.getName().str() : nameOfPartial(facts, acc);
  return map(code, name, {state, factor}, over, {elementOf(state)},
             [&](ValueRange in, ValueRange) { return Values{code.combine(combine, in[0], in[1])}; })[0];
}

Value Rescaling::merged(AccOp acc, Value state, Value factor, Value part) {
  bool multiplies = factor && acc.getCombine() == ScalarFn::mul;
  bool fuses = multiplies && acc.getMonoid() == Monoid::add && isa<FloatType>(elementOf(state));
  if (factor && !fuses)
    state = rescaled(acc, state, factor, Over::parts());
  Values inputs{state, part};
  if (fuses)
    inputs.push_back(factor);
  return map(code, nameOfPartial(facts, acc), inputs, Over::parts(), {elementOf(state)},
             [&](ValueRange in, ValueRange) {
               if (fuses)
                 return Values{math::FmaOp::create(b, code.loc, in[0], in[2], in[1])};
               return Values{code.combine(acc.getMonoid(), in[0], in[1])};
             })[0];
}

/// Adds Σ cₖ·uₖ, which moves a sum of powers of differences to another center, as for a variance.
/// The update is linear, so that each lane adds its own partials of the uₖ.
void Rescaling::addOthers(AccOp acc, ValueRange coefficients, const Running &olds, Value &partial) {
  for (auto [other, coefficient] : llvm::zip(acc.getOthers(), coefficients))
    partial = map(code, nameOfPartial(facts, acc), {partial, coefficient, olds.scalars[facts.numberOf(other)].partial},
                  Over::parts(), {elementOf(partial)}, [&](ValueRange in, ValueRange) {
                    return Values{math::FmaOp::create(b, code.loc, in[1], in[2], in[0])};
                  })[0];
}

} // namespace moa::tiles
