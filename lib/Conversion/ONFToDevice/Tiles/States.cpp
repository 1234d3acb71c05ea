//===- States.cpp - states of a fold over tiles ---------------------------===//
#include "lib/Conversion/ONFToDevice/Tiles/States.h"
#include "lib/Conversion/ONFToDevice/Tiles/Maps.h"
#include "lib/Conversion/ONFToDevice/Tiles/Names.h"
#include "mlir/Analysis/SliceAnalysis.h"

using namespace mlir;
using namespace moa;
using namespace moa::onf;

namespace moa::tiles {

States::States(const TileContext &context, ScalarCode &code, const FoldFacts &facts, const WarpgroupRows &rows,
               Masks &masks)
    : WarpgroupPart(context, code, rows), facts(facts), masks(masks), terms(context, code, facts, rows, masks),
      pivots(context, code, facts, rows), rescaling(context, code, facts, rows) {
  findBounds();
}

/// Evaluates the bounds of terms before all tiles, with clamped loads. If it is known which rows
/// see any key, their states start at the bound. Otherwise every tile's terms are combined with it.
void States::findBounds() {
  termBounds.assign(plan.folded.scalars.size(), Value());
  starts = termBounds;
  for (auto [k, scalar] : llvm::enumerate(plan.folded.scalars)) {
    Value bound = facts.termsOf(scalar.acc).bound;
    if (!bound)
      continue;
    Value ofRows = mapNearestRows("bound", {}, Over::rows(), {bound.getType()},
                                  [&](ValueRange) { return Values{code.eval(bound)}; })[0];
    bool isKnown = true;
    Value start =
        map(code, nameOfPartial(facts, scalar.acc), ofRows, Over::parts(), {bound.getType()},
            [&](ValueRange in, ValueRange at) {
              bindElement(at[0], Value());
              Value sees = masks.seesSome(), none = identity(code, AccOp(scalar.acc).getMonoid(), bound.getType());
              isKnown = sees != nullptr;
              return Values{isKnown ? arith::SelectOp::create(b, code.loc, sees, in[0], none).getResult() : none};
            })[0];
    (isKnown ? starts : termBounds)[k] = isKnown ? start : ofRows;
    if (!isKnown)
      start.getDefiningOp()->erase();
  }
}

Running States::initialise() {
  Running running;
  auto fill = [&](Value value, FragmentType type, const Twine &name) -> Value {
    return device::FillOp::create(b, code.named(name.str()), type, value, b.getStringAttr(name.str()));
  };
  for (auto [k, scalar] : llvm::enumerate(plan.folded.scalars)) {
    AccOp acc = scalar.acc;
    Type type = acc.getResult().getType();
    Value start = identity(code, acc.getMonoid(), type);
    Running::Scalar state;
    if (facts.isReference[k])
      state.reference = fill(start, typeOver(Over::rows(), type), nameOfReference(facts, acc));
    state.partial = starts[k] ? starts[k] : fill(start, typeOver(Over::parts(), type), nameOfPartial(facts, acc));
    running.scalars.push_back(state);
  }
  for (const Rescale &rescale : facts.rescales) {
    Value none;
    if (rescale.needsStarted)
      none = fill(code.constant(b.getBoolAttr(false)), typeOver(Over::rows(), b.getI1Type()), "started");
    running.started.push_back(none);
  }
  for (const Accumulator &accumulator : plan.folded.accumulators)
    running.sums.push_back(
        {fill(identity(code, Monoid::add, accumulator.type),
              typeOver(Over::tile(padded(accumulator.extents[0])), accumulator.type), AccOp(accumulator.acc).getName()),
         {},
         Value()});
  return running;
}

/// Returns the states of a pass. Those that depend on the mask alone come first, so that code that
/// differs between masked and full tiles is contiguous.
SmallVector<unsigned> States::statesOf(unsigned pass, const Tile &tile) {
  SmallVector<unsigned> numbers;
  for (auto [k, scalar] : llvm::enumerate(plan.folded.scalars))
    if (scalar.pass == pass)
      numbers.push_back(k);
  std::stable_partition(numbers.begin(), numbers.end(), [&](unsigned k) {
    AccOp acc = plan.folded.scalars[k].acc;
    Value term = facts.termsOf(acc).value;
    SetVector<Operation *> slice;
    (void)getBackwardSlice(term, &slice);
    return acc.getRefs().empty() && llvm::none_of(tile.elements, [&](const Element &element) {
             return element.value == term || slice.contains(element.value.getDefiningOp());
           });
  });
  return numbers;
}

/// Returns whether a state's terms are a constant t with t ⊕ x = t.
static bool isAbsorbing(AccOp acc) {
  auto constant = rows::getYielded(acc.getValue()).getDefiningOp<arith::ConstantOp>();
  auto truth = constant ? dyn_cast<BoolAttr>(constant.getValue()) : BoolAttr();
  return truth && acc.getRefs().empty() && acc.getMonoid() == (truth.getValue() ? Monoid::or_ : Monoid::and_);
}

/// Reduces the terms of a tile, and combines them with their bound if a thread holds any term.
Value States::reduceTile(AccOp acc, Tile &tile, Running &news, unsigned k) {
  Value reduced = terms.reduce(acc, facts.termsOf(acc).value, tile, news, k);
  if (!termBounds[k])
    return reduced;
  Values inputs{reduced, termBounds[k]};
  if (tile.presence) {
    Value present = masks.maskOf(*tile.presence, tile.first);
    inputs.push_back(device::ReduceOp::create(b, code.named("tile_has_keys"), typeOver(Over::parts(), b.getI1Type()),
                                              Monoid::or_, present));
  }
  return map(code, nameInTile(acc), inputs, Over::parts(), {elementOf(reduced)}, [&](ValueRange in, ValueRange) {
    Value all = code.combine(acc.getMonoid(), in[0], in[1]);
    return Values{in.size() == 2 ? all : arith::SelectOp::create(b, code.loc, in[2], all, in[0]).getResult()};
  })[0];
}

/// Merges a tile into the states of a pass.
void States::reducePass(unsigned pass, const Running &olds, Step &step, Tile &tile) {
  Running &news = step.next;
  for (unsigned k : statesOf(pass, tile)) {
    AccOp acc = plan.folded.scalars[k].acc;
    if (!tile.presence && isAbsorbing(acc)) {
      news.scalars[k].partial =
          device::FillOp::create(b, code.named(nameOfPartial(facts, acc)), olds.scalars[k].partial.getType(),
                                 code.eval(rows::getYielded(acc.getValue())));
      continue;
    }
    Value ofTile = reduceTile(acc, tile, news, k);
    int rescale = facts.rescaleOfScalar[k];
    news.scalars[k].partial =
        rescaling.merged(acc, olds.scalars[k].partial, rescale < 0 ? Value() : step.factors[rescale], ofTile);
    if (rescale >= 0)
      rescaling.addOthers(acc, step.coefficients[rescale], olds, news.scalars[k].partial);
  }
}

/// Finds the factor of a rescaling whose references have moved, and which rows have started.
void States::correct(unsigned number, const Running &olds, Step &step) {
  const Rescale &rescale = facts.rescales[number];
  Running &news = step.next;
  if (!facts.lazy) {
    Values values = rescaling.factor(number, olds, news);
    step.factors[number] = values.front();
    step.coefficients[number].assign(values.begin() + 1, values.end());
  }
  if (!olds.started[number])
    return;
  Values inputs{olds.started[number]};
  for (unsigned ref : rescale.refs)
    inputs.push_back(news.scalars[ref].reference);
  news.started[number] = map(code, "started", inputs, Over::rows(), {b.getI1Type()}, [&](ValueRange in, ValueRange) {
    Value ok = regular(code, rescale.acc, Values(in.drop_front()));
    for (auto [ref, value] : llvm::zip(rescale.refs, in.drop_front()))
      ok = code.both(ok, hasElements(code, plan.folded.scalars[ref].acc, value));
    return Values{ok ? b.createOrFold<arith::OrIOp>(code.loc, in[0], ok) : code.constant(b.getBoolAttr(true))};
  })[0];
}

Step States::startStep(const Running &olds) {
  return {olds, Values(facts.rescales.size()), SmallVector<Values>(facts.rescales.size()), Value(), Value()};
}

Step States::step(ValueRange scores, Value first, const Presence *presence, const Running &olds) {
  Tile tile{{}, first, presence};
  terms.addScores(scores, tile);
  Step step = startStep(olds);
  code.smallOperands.clear();
  pivots.shiftByRows(tile);
  for (unsigned pass = 0; pass != plan.folded.passes; ++pass) {
    reducePass(pass, olds, step, tile);
    if (facts.lazy && pass == 0)
      rescaleWhereNeeded(olds, step, tile);
    else if (!facts.lazy)
      moveReferences(pass, step.next, tile);
    for (auto [k, rescale] : llvm::enumerate(facts.rescales))
      if (rescale.pass == pass)
        correct(k, olds, step);
  }
  terms.findWeights(tile, step.next);
  if (step.mustMove)
    step.mustRescaleSums = withStates(step);
  return step;
}

/// Updates the references of a pass from the partials of a row's lanes.
void States::updateReferences(unsigned pass, Running &news, StringRef name) {
  for (auto [k, scalar] : llvm::enumerate(plan.folded.scalars))
    if (facts.isReference[k] && scalar.pass == pass)
      news.scalars[k].reference = joinLanes(scalar.acc, news.scalars[k].partial, name);
}

Value States::joinLanes(AccOp acc, Value partial, StringRef name) {
  Type type = acc.getResult().getType();
  return device::ReduceOp::create(b, code.named(name.empty() ? nameOfRow(acc) : name.str()),
                                  typeOver(Over::rows(), type), acc.getMonoid(), partial);
}

/// Updates the references of a pass, and shifts elements of rows with large references.
void States::moveReferences(unsigned pass, Running &news, Tile &tile) {
  updateReferences(pass, news);
  SmallVector<Pivot> found = pivots.findReferences(tile, pass);
  for (Pivot &pivot : found)
    pivot.reference = news.scalars[facts.numberOf(pivot.value)].reference;
  if (!found.empty())
    pivots.takeShifted(tile, found, pivots.shiftLarge(tile, found));
}

/// Emits conditional rescaling: new references and correction factors for the warps that must move,
/// the identity of ⊗ for the others. Elements of rows with large references are shifted.
void States::rescaleWhereNeeded(const Running &olds, Step &step, Tile &tile) {
  SmallVector<Pivot> found = pivots.findReferences(tile, 0);
  step.mustMove = device::AnyOp::create(b, code.named("rescale"), rescaling.mustRescale(olds, step.next, found));
  Values otherwise;
  for (auto [k, scalar] : llvm::enumerate(olds.scalars))
    if (facts.isReference[k])
      otherwise.push_back(scalar.reference);
  for (const Rescale &rescale : facts.rescales) {
    Type type = rows::getYielded(AccOp(rescale.acc).getRepair()).getType();
    otherwise.push_back(device::FillOp::create(b, code.named("correction"), typeOver(Over::rows(), type),
                                               identity(code, Monoid::mul, type)));
  }
  auto refer = [&](const Running &running) {
    for (Pivot &pivot : found)
      pivot.reference = running.scalars[facts.numberOf(pivot.value)].reference;
  };
  refer(olds);
  otherwise.append(pivots.valuesOf(found, tile));
  Values results = ifAny(code, step.mustMove, otherwise, [&] {
    Running moved = step.next;
    updateReferences(0, moved, "new_pivot");
    Values values;
    for (auto [k, scalar] : llvm::enumerate(moved.scalars))
      if (facts.isReference[k])
        values.push_back(scalar.reference);
    for (unsigned k = 0; k != facts.rescales.size(); ++k)
      values.push_back(rescaling.factor(k, olds, moved).front());
    refer(moved);
    if (!found.empty())
      values.append(pivots.shiftLarge(tile, found));
    return values;
  });
  unsigned next = 0;
  for (auto [k, scalar] : llvm::enumerate(step.next.scalars))
    if (facts.isReference[k])
      scalar.reference = results[next++];
  for (Value &factor : step.factors)
    factor = results[next++];
  pivots.takeShifted(tile, found, ValueRange(results).drop_front(next));
}

/// Returns the vote of warps that must move or have a state that is NaN. A warp with NaN has the
/// factor 1, which changes nothing. A vote that needs the states keeps their sums before it.
/// Without it ptxas moves the sums after the wait for the products, where nothing overlaps with
/// them.
Value States::withStates(const Step &step) {
  Values inputs{step.mustMove};
  for (auto [k, scalar] : llvm::enumerate(step.next.scalars))
    if (facts.rescaleOfScalar[k] >= 0 && isa<FloatType>(elementOf(scalar.partial)))
      inputs.push_back(scalar.partial);
  if (inputs.size() == 1)
    return step.mustMove;
  Value either = map(code, "must_rescale_sums", inputs, Over::parts(), {b.getI1Type()}, [&](ValueRange in, ValueRange) {
    Value any = in[0];
    for (Value state : in.drop_front())
      any = arith::OrIOp::create(b, code.loc, any,
                                 arith::CmpFOp::create(b, code.loc, arith::CmpFPredicate::UNO, state, state));
    return Values{any};
  })[0];
  return device::AnyOp::create(b, code.named("rescale_sums"), either);
}

void States::rescaleSums(Step &step) {
  Values sums;
  SmallVector<unsigned> which;
  for (auto [k, rescale] : llvm::enumerate(facts.rescaleOfAccumulator))
    if (rescale >= 0) {
      which.push_back(k);
      sums.push_back(step.next.sums[k].sum);
    }
  auto move = [&] {
    Values moved;
    for (auto [sum, k] : llvm::zip(sums, which))
      moved.push_back(rescaling.rescaled(plan.folded.accumulators[k].acc, sum,
                                         step.factors[facts.rescaleOfAccumulator[k]],
                                         Over::tile(padded(plan.folded.accumulators[k].extents[0]))));
    return moved;
  };
  Values moved = step.mustRescaleSums && !sums.empty() ? ifAny(code, step.mustRescaleSums, sums, move) : move();
  for (auto [sum, k] : llvm::zip(moved, which))
    step.next.sums[k].sum = sum;
}

Values States::conclude(const Running &olds) {
  Step step = startStep(olds);
  if (facts.lazy) {
    updateReferences(0, step.next);
    for (unsigned k = 0; k != facts.rescales.size(); ++k)
      step.factors[k] = rescaling.factor(k, olds, step.next, "last_correction").front();
    rescaleSums(step);
  }
  Values results;
  for (auto [k, scalar] : llvm::enumerate(plan.folded.scalars)) {
    Value partial = step.next.scalars[k].partial;
    if (int rescale = facts.rescaleOfScalar[k]; facts.lazy && rescale >= 0)
      partial = rescaling.rescaled(scalar.acc, partial, step.factors[rescale], Over::parts());
    results.push_back(facts.isReference[k] ? step.next.scalars[k].reference : joinLanes(scalar.acc, partial));
  }
  for (const Running::Sum &sum : step.next.sums)
    results.push_back(sum.sum);
  return results;
}

} // namespace moa::tiles
