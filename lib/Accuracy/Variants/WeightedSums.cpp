//===- WeightedSums.cpp - weighted sums in e4m3 ---------------------------===//
#include "lib/Accuracy/Selection/Adapter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace moa::accuracy {

static constexpr double kLargest = 448;
/// Factor of weights before they are rounded: weights above 2^-11 keep all bits, and a conditional
/// rescale may be late by a factor of 2^3. By lines between powers of 2, 2^kWeightExponent is 56,
/// and lines exceed powers there by their mean ratio (law B7).
static constexpr double kWeightScale = 56, kWeightExponent = 5.75;
/// Parts of the keys whose extremes are found in parallel; the same if few keys of each are read.
static constexpr int64_t kKeyParts = 128, kMultiple = 16;
static constexpr int64_t kFewParts = 16;
/// Headroom of a scale that is found from some of the keys; smaller steps cost floats no bits.
static constexpr double kRoom = 2;
static constexpr int64_t kAtOnce = 8;

//===----------------------------------------------------------------------===//
// The layout of rounded values
//===----------------------------------------------------------------------===//

/// Returns the axes of rounded values: others, columns, keys, which tensor cores need adjacent.
static Places getLayout(const WeightedSum &weighted) {
  unsigned rank = weighted.load.getArray().getType().getRank();
  Places places = placesWithout(rank, {weighted.keyAxis, weighted.axis});
  places[weighted.axis] = rank - 2;
  places[weighted.keyAxis] = rank - 1;
  return places;
}

static SymExpr getFilled(const SymExpr &keys) {
  return SymExpr::floorDiv(keys + SymExpr(kMultiple - 1), SymExpr(kMultiple)) * SymExpr(kMultiple);
}

//===----------------------------------------------------------------------===//
// Rounding
//===----------------------------------------------------------------------===//

/// Reads values less their mean. Columns come last, so that adjacent threads read adjacent
/// elements.
struct Adapter::ValueReader {
  const WeightedSum &weighted;
  Mean mean;
  SmallVector<unsigned> others;

  ValueReader(const WeightedSum &weighted) : weighted(weighted) {
    for (unsigned axis = 0; axis < rank(); ++axis)
      if (axis != weighted.keyAxis && axis != weighted.axis)
        others.push_back(axis);
  }
  BlockArgument array() const { return cast<BlockArgument>(weighted.load.getArray()); }
  ArrayType type() const { return cast<ArrayType>(array().getType()); }
  unsigned rank() const { return type().getRank(); }
  SymExpr keys() const { return type().getExtent(weighted.keyAxis); }
  /// Returns a nest's axes: others and columns, with keys before or after columns if `key` is
  /// given.
  std::pair<SmallVector<Attribute>, SmallVector<Attribute>> list(StringRef key, const SymExpr &size,
                                                                 bool isLast) const {
    Builder b(type().getContext());
    SmallVector<Attribute> names, extents;
    for (unsigned axis : others) {
      names.push_back(b.getStringAttr("i" + Twine(axis)));
      extents.push_back(type().getShape()[axis]);
    }
    names.push_back(b.getStringAttr("d"));
    extents.push_back(type().getShape()[weighted.axis]);
    if (!key.empty()) {
      names.insert(names.end() - !isLast, b.getStringAttr(key));
      extents.insert(extents.end() - !isLast, ExprAttr::get(b.getContext(), size));
    }
    return {names, extents};
  }
  SmallVector<Value> indexed(ValueRange outer, Value column, Value key) const {
    SmallVector<Value> indices(rank());
    for (auto [axis, index] : llvm::zip(others, outer))
      indices[axis] = index;
    indices[weighted.axis] = column;
    indices[weighted.keyAxis] = key;
    if (!key)
      indices.erase(indices.begin() + weighted.keyAxis);
    return indices;
  }
  Value read(Code &at, ValueRange outer, Value column, Value key) const {
    Value x = at.loadFloat(array(), indexed(outer, column, key));
    if (!mean.array)
      return x;
    return at.sub(x, at.load(mean.array, indexed(outer, column, Value())));
  }
  Axes inScales() const {
    Axes axes(others.begin(), others.end());
    axes.push_back(weighted.axis);
    return axes;
  }
};

/// Returns true if the scale may come from some keys. Larger values become NaN; without a mask they
/// make every sampled row NaN, so that the plan is not taken.
bool Adapter::areScalesOfPart(const WeightedSum &weighted) {
  return needsEstimates() && weighted.outer.getBody().getOps<onf::GuardOp>().empty();
}

/// Returns the key at offset `before + further` from the start of a part, at most the last key.
static Value placeOfKey(Code &code, const SymExpr &keys, Value part, Value before, int64_t further) {
  Value count = code.extent(keys), start = code.mul(part, count);
  start = code.floorDiv(start, code.index(kKeyParts));
  Value place = before ? code.add(start, before) : start;
  place = code.add(place, code.index(further));
  return code.min(place, code.sub(count, code.index(1)));
}

/// Adds μ(d) and a scale(d) such that |v(j, d) − μ(d)| ≤ 448·scale(d).
RoundedValues Adapter::addValueScales(const WeightedSum &weighted) {
  ValueReader reader(weighted);
  std::string name = editor.nameOf(reader.array()).str();
  RoundedValues values;
  if (weighted.total && options.uses("B3"))
    values.mean = reader.mean = addMean(reader.array(), weighted.keyAxis, /*ifLarge=*/true);
  size_t outer = reader.others.size();
  bool isPart = areScalesOfPart(weighted);
  auto where = [&](const Axes &axes) {
    return isPart ? whereReadFew(reader.array(), axes) : whereRead(reader.array(), axes);
  };
  SymExpr keys = reader.keys();
  // A part may reach into the next one, so that no key needs a guard.
  SymExpr most = SymExpr::floorDiv(keys + SymExpr(kKeyParts * kAtOnce - 1), SymExpr(kKeyParts * kAtOnce));
  Extremes::Part all{kKeyParts, kAtOnce, most, [&](Code &in, Value part, Value step, int64_t k) {
                       return placeOfKey(in, keys, part, in.mul(step, in.index(kAtOnce)), k);
                     }};
  Extremes::Part few{kFewParts, 2 * kAtOnce, SymExpr(kKeyParts / kFewParts / 2),
                     [&](Code &in, Value part, Value step, int64_t k) {
                       Value runs = in.mul(part, in.index(kKeyParts / kFewParts));
                       Value run = in.add(runs, in.mul(step, in.index(2)));
                       return placeOfKey(in, keys, in.add(run, in.index(k / kAtOnce)), Value(), k % kAtOnce);
                     }};
  const Extremes::Part &part = isPart ? few : all;
  Extremes extremes = addExtremes(reader.array(), weighted.keyAxis, weighted.axis, part, where);
  Choice whereScales = where(reader.inScales());
  auto [names, extents] = reader.list("", {}, false);
  values.scale = editor.addTemporary(name + "_scale", extents, editor.f32());
  values.inverse = editor.addTemporary(name + "_inverse", extents, editor.f32());
  editor.addShortNest(names, extents, &whereScales, [&](Code &code, ValueRange at) {
    ValueRange others = at.take_front(outer);
    Value mean = reader.mean.array ? code.load(reader.mean.array, reader.indexed(others, at[outer], Value())) : Value();
    Value largest = code.fold("p", SymExpr(part.count / kAtOnce), [&](Code &in, Value p, Value &) {
      Value first = in.mul(p, in.index(kAtOnce));
      return SmallVector<Code::State>{
          {Monoid::max, "largest", extremes.largestOf(in, others, first, kAtOnce, at[outer], mean)}};
    })[0];
    if (isPart)
      largest = code.mul(largest, code.real(kRoom));
    Value isZero = code.compare(arith::CmpFPredicate::OEQ, largest, code.real(0));
    auto either = [&](Value other) { return code.select(isZero, code.real(1), other); };
    Value most = code.real(kLargest);
    code.store(either(code.div(largest, most)), values.scale, at);
    code.store(either(code.div(most, largest)), values.inverse, at);
  });
  return values;
}

/// Adds v̂ with v(j, d) − μ(d) = scale(d)·v̂(j, d), |v̂| ≤ 448 or NaN, and 0 in the padding.
RoundedValues Adapter::addRoundedValues(const WeightedSum &weighted) {
  RoundedValues values = roundedValues.lookup(weighted.load.getArray());
  if (!values.scale)
    values = addValueScales(weighted);
  ValueReader reader(weighted);
  reader.mean = values.mean;
  std::string name = editor.nameOf(reader.array()).str();
  bool isPart = areScalesOfPart(weighted);
  size_t outer = reader.others.size();
  SymExpr keys = reader.keys();
  auto [names, extents] = reader.list("j", getFilled(keys), /*isLast=*/true);
  values.data = editor.addTemporary(name + "_f8", extents, Float8E4M3FNType::get(kernel.getContext()));
  Choice where = whereRead(reader.array(), partsOf(reader.inScales()));
  editor.addNest(names, extents, &where, [&](Code &code, ValueRange at) {
    Value count = code.extent(keys), key = at.back(), zero = code.real(0);
    Value isKey = code.compare(arith::CmpIPredicate::slt, key, count);
    Value x = reader.read(code, at.take_front(outer), at[outer], key);
    Value scaled = code.mul(x, code.load(values.inverse, at.drop_back()));
    if (isPart) {
      Value limit = code.real(kLargest);
      Value fits = code.compare(arith::CmpFPredicate::OLE, code.absolute(scaled), limit);
      scaled = code.select(fits, scaled, code.real(NAN));
    }
    code.store(code.select(isKey, scaled, zero), values.data, at);
  });
  return values;
}

//===----------------------------------------------------------------------===//
// The sum
//===----------------------------------------------------------------------===//

/// Returns the weight times `by`, shared by all sums that use it. With `exponent` the weight is an
/// exponential, and the product 2^exponent times it by lines between powers of 2. copy.totals gets
/// the sum of the unscaled weights.
Value Adapter::multiplyWeight(Copy &copy, const WeightedSum &weighted, double by, std::optional<double> exponent) {
  auto acc = cast<onf::AccOp>(copy.map.lookup(weighted.acc.getOperation()));
  auto outer = cast<onf::FoldOp>(acc->getParentOp());
  Code fold(kernel, OpBuilder(acc), acc.getLoc());
  Value plain = copy.map.lookup(weighted.weight), &weight = copy.weights[plain];
  if (!weight) {
    if (Operation *op = plain.getDefiningOp()) // before all its uses
      fold.b.setInsertionPointAfter(op);
    Operation *power = plain.getDefiningOp();
    if (exponent) {
      double times = isa<math::ExpOp>(power) ? 1 / std::log(2.0) : 1;
      weight = fold.make<onf::PiecewiseExp2Op>(power->getOperand(0), APFloat(times), APFloat(*exponent));
    } else {
      weight = fold.mul(plain, fold.real(by));
    }
  }
  // The sum of weights uses the same product.
  if (weighted.total && !copy.totals.count(*weighted.total)) {
    auto last = cast<onf::YieldOp>(outer.getBody().front().getTerminator());
    auto total = last.getValues()[*weighted.total].getDefiningOp<onf::AccOp>();
    Value sum = outer.getResult(*weighted.total);
    if (total.getResult().hasOneUse()) {
      total.getValue().front().getTerminator()->setOperand(0, weight);
      Code after(kernel, OpBuilder(outer), acc.getLoc());
      after.b.setInsertionPointAfter(outer);
      Value divided = after.mul(sum, after.real(1 / by));
      sum.replaceAllUsesExcept(divided, divided.getDefiningOp());
      sum = divided;
    }
    copy.totals[*weighted.total] = sum;
  }
  return weight;
}

/// Rewrites Σ w·v to (Σ e4m3(ŵ)·v̂)·scale/56 + μ·Σ ŵ/56, where ŵ is near 56·w (laws B3, B7).
void Adapter::roundWeightedSum(Copy &copy, const WeightedSum &weighted) {
  const RoundedValues &values = roundedValues[weighted.load.getArray()];
  auto acc = cast<onf::AccOp>(copy.map.lookup(weighted.acc.getOperation()));
  auto outer = cast<onf::FoldOp>(acc->getParentOp());
  auto yield = cast<onf::YieldOp>(acc.getValue().front().getTerminator());
  Operation *product = yield.getValues()[0].getDefiningOp();
  Code term(kernel, OpBuilder(product), acc.getLoc());
  Value weight =
      multiplyWeight(copy, weighted, kWeightScale, options.uses("B7") ? std::optional(kWeightExponent) : std::nullopt);
  Value value = term.make<arith::ExtFOp>(term.b.getF32Type(),
                                         loadAs(term, weighted.load, values.data, getLayout(weighted), copy.map));
  product->replaceAllUsesWith(ValueRange{term.mul(weight, value)});
  product->erase();
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*yield->getBlock())))
    if (isOpTriviallyDead(&op))
      op.erase();
  acc.setOperandTypeAttr(TypeAttr::get(Float8E4M3FNType::get(kernel.getContext())));
  unsigned rank = weighted.load.getArray().getType().getRank();
  Places scalePlaces = placesWithout(rank, {weighted.keyAxis, weighted.axis});
  scalePlaces[weighted.axis] = rank - 2;
  for (Operation *user : llvm::to_vector(outer.getResult(weighted.result).getUsers())) {
    auto at = cast<onf::AtOp>(user);
    Code code(kernel, OpBuilder(at), at.getLoc());
    code.b.setInsertionPointAfter(at);
    IRMapping here = copy.map;
    here.map(weighted.acc.getValue().getArgument(0), at.getIndices()[0]);
    Value scale = loadAs(code, weighted.load, values.scale, scalePlaces, here);
    Value back = code.mul(scale, code.real(1 / kWeightScale));
    Value sum = code.mul(at.getResult(), back);
    SmallPtrSet<Operation *, 2> kept{sum.getDefiningOp()};
    if (values.mean.array) {
      Value mean = loadAs(code, weighted.load, values.mean.array, placesWithout(rank, {weighted.keyAxis}), here);
      sum = code.add(sum, code.mul(mean, copy.totals[*weighted.total]));
    }
    at.getResult().replaceAllUsesExcept(sum, kept);
  }
}

} // namespace moa::accuracy
