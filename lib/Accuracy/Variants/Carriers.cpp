//===- Carriers.cpp - sums of values in e4m3 ------------------------------===//
#include "lib/Accuracy/Selection/Adapter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace moa::accuracy {

/// The largest number of e4m3.
static constexpr double kLargest = 448;
/// Weights of at most 1 are multiplied with it before they are rounded: what is above 2^-11 then
/// has all bits, and a lowering may be late with a maximum by a factor of 2^3. It is what 2^5.75 is
/// by lines between powers of two, of which 7/4 is their mean over a period too (law B7).
static constexpr double kWeightScale = 56, kWeightExponent = 5.75;
/// Parts of the keys whose extremes are found apart, and a multiple that values are filled up to.
static constexpr int64_t kKeyParts = 128, kMultiple = 16;
/// As many where few keys of each are read.
static constexpr int64_t kFewParts = 16;
/// How much larger values may be than the largest of a part of the keys: floats are as exact in
/// smaller steps.
static constexpr double kRoom = 2;
/// Keys that an index of a fold takes, so that their loads are in flight together.
static constexpr int64_t kAtOnce = 8;

//===----------------------------------------------------------------------===//
// The layout of rounded values
//===----------------------------------------------------------------------===//

/// The places of the axes of values in the rounded ones: those of other indices as they are,
/// then that of columns, then that of keys, which tensor cores want adjacent.
static Places getLayout(const Carrier &carrier) {
  unsigned rank = carrier.load.getArray().getType().getRank();
  Places places = placesWithout(rank, {carrier.keyAxis, carrier.axis});
  places[carrier.axis] = rank - 2;
  places[carrier.keyAxis] = rank - 1;
  return places;
}

/// The keys with what they are filled up with.
static SymExpr getFilled(const SymExpr &keys) {
  return SymExpr::floorDiv(keys + SymExpr(kMultiple - 1), SymExpr(kMultiple)) * SymExpr(kMultiple);
}

//===----------------------------------------------------------------------===//
// Rounding
//===----------------------------------------------------------------------===//

/// What nests over values read: elements, less their mean where there is one. Columns come last, so
/// that neighbours read neighbours.
struct Adapter::ValueReader {
  const Carrier &carrier;
  Mean mean;
  SmallVector<unsigned> others; // axes but those of keys and columns

  ValueReader(const Carrier &carrier) : carrier(carrier) {
    for (unsigned axis = 0; axis < rank(); ++axis)
      if (axis != carrier.keyAxis && axis != carrier.axis)
        others.push_back(axis);
  }
  BlockArgument array() const { return cast<BlockArgument>(carrier.load.getArray()); }
  ArrayType type() const { return cast<ArrayType>(array().getType()); }
  unsigned rank() const { return type().getRank(); }
  SymExpr keys() const { return type().getExtent(carrier.keyAxis); }
  /// Names and extents of a nest over the other axes and columns, with one of keys behind or in
  /// front of the latter.
  std::pair<SmallVector<Attribute>, SmallVector<Attribute>> list(StringRef key, const SymExpr &size,
                                                                 bool isLast) const {
    Builder b(type().getContext());
    SmallVector<Attribute> names, extents;
    for (unsigned axis : others) {
      names.push_back(b.getStringAttr("i" + Twine(axis)));
      extents.push_back(type().getShape()[axis]);
    }
    names.push_back(b.getStringAttr("d"));
    extents.push_back(type().getShape()[carrier.axis]);
    if (!key.empty()) {
      names.insert(names.end() - !isLast, b.getStringAttr(key));
      extents.insert(extents.end() - !isLast, b.getStringAttr(size.str()));
    }
    return {names, extents};
  }
  /// The indices of an element of the values, or of what lacks the keys' axis.
  SmallVector<Value> indexed(ValueRange outer, Value column, Value key) const {
    SmallVector<Value> indices(rank());
    for (auto [axis, index] : llvm::zip(others, outer))
      indices[axis] = index;
    indices[carrier.axis] = column;
    indices[carrier.keyAxis] = key;
    if (!key)
      indices.erase(indices.begin() + carrier.keyAxis);
    return indices;
  }
  Value read(Code &at, ValueRange outer, Value column, Value key) const {
    Value x = at.loadFloat(array(), indexed(outer, column, key));
    if (!mean.array)
      return x;
    return at.make<arith::SubFOp>(x, at.load(mean.array, indexed(outer, column, Value())));
  }
  /// The other axes, and that of columns behind them.
  Axes inScales() const {
    Axes axes(others.begin(), others.end());
    axes.push_back(carrier.axis);
    return axes;
  }
};

/// Whether the scale may be that of some keys, where every row of the sample sees all keys: a value
/// beyond it becomes NaN, and so do all rows, and no plan is taken.
bool Adapter::areScalesOfPart(const Carrier &carrier) {
  return needsEstimates() && carrier.outer.getBody().getOps<onf::GuardOp>().empty();
}

/// The key so far behind the first one of a part, or the last one.
static Value placeOfKey(Code &code, const SymExpr &keys, Value part, Value before, int64_t further) {
  Value count = code.extent(keys), start = code.make<arith::MulIOp>(part, count);
  start = code.make<arith::FloorDivSIOp>(start, code.index(kKeyParts));
  Value place = before ? code.make<arith::AddIOp>(start, before) : start;
  place = code.make<arith::AddIOp>(place, code.index(further));
  return code.make<arith::MinSIOp>(place, code.make<arith::SubIOp>(count, code.index(1)));
}

/// μ(d), and a scale(d) that |v(j, d) − μ(d)| are at most 448 times.
RoundedValues Adapter::addValueScales(const Carrier &carrier) {
  ValueReader reader(carrier);
  std::string name = kernel.getArrayName(reader.array().getArgNumber()).str();
  Builder b(kernel.getContext());
  RoundedValues values;
  if (carrier.total && options.uses("B3"))
    values.mean = reader.mean = addMean(reader.array(), carrier.keyAxis, /*ifLarge=*/true);
  size_t outer = reader.others.size();
  bool isPart = areScalesOfPart(carrier);
  auto where = [&](const Axes &axes) {
    return isPart ? whereReadFew(reader.array(), axes) : whereRead(reader.array(), axes);
  };
  SymExpr keys = reader.keys();
  // A part may reach into the next ones, so that nothing is asked of a key, and several are read at
  // once.
  SymExpr most = SymExpr::floorDiv(keys + SymExpr(kKeyParts * kAtOnce - 1), SymExpr(kKeyParts * kAtOnce));
  Extremes::Part all{kKeyParts, kAtOnce, most, [&](Code &in, Value part, Value step, int64_t k) {
                       return placeOfKey(in, keys, part, in.make<arith::MulIOp>(step, in.index(kAtOnce)), k);
                     }};
  Extremes::Part few{
      kFewParts, 2 * kAtOnce, SymExpr(kKeyParts / kFewParts / 2), [&](Code &in, Value part, Value step, int64_t k) {
        Value runs = in.make<arith::MulIOp>(part, in.index(kKeyParts / kFewParts));
        Value run = in.make<arith::AddIOp>(runs, in.make<arith::MulIOp>(step, in.index(2)));
        return placeOfKey(in, keys, in.make<arith::AddIOp>(run, in.index(k / kAtOnce)), Value(), k % kAtOnce);
      }};
  const Extremes::Part &part = isPart ? few : all;
  Extremes extremes = addExtremes(reader.array(), carrier.keyAxis, carrier.axis, part, where);
  Choice whereScales = where(reader.inScales());
  auto [names, extents] = reader.list("", {}, false);
  values.scale = editor.addTemporary(name + "_scale", extents, b.getF32Type());
  values.inverse = editor.addTemporary(name + "_inverse", extents, b.getF32Type());
  editor.addShortNest(names, extents, &whereScales, [&](Code &code, ValueRange at) {
    ValueRange others = at.take_front(outer);
    Value mean = reader.mean.array ? code.load(reader.mean.array, reader.indexed(others, at[outer], Value())) : Value();
    Value largest = code.fold("p", SymExpr(part.count / kAtOnce), [&](Code &in, Value p, Value &) {
      Value first = in.make<arith::MulIOp>(p, in.index(kAtOnce));
      return SmallVector<Code::Term>{
          {Monoid::max, "largest", extremes.largestOf(in, others, first, kAtOnce, at[outer], mean)}};
    })[0];
    if (isPart)
      largest = code.make<arith::MulFOp>(largest, code.real(kRoom));
    Value isZero = code.make<arith::CmpFOp>(arith::CmpFPredicate::OEQ, largest, code.real(0));
    auto either = [&](Value other) { return code.make<arith::SelectOp>(isZero, code.real(1), other); };
    Value most = code.real(kLargest);
    code.store(either(code.make<arith::DivFOp>(largest, most)), values.scale, at);
    code.store(either(code.make<arith::DivFOp>(most, largest)), values.inverse, at);
  });
  return values;
}

/// v(j, d) − μ(d) = scale(d) · v̂(j, d), with |v̂| ≤ 448 or NaN, and 0 behind the last key. Scales
/// that are known already are kept.
RoundedValues Adapter::addRoundedValues(const Carrier &carrier) {
  RoundedValues values = roundedValues.lookup(carrier.load.getArray());
  if (!values.scale)
    values = addValueScales(carrier);
  ValueReader reader(carrier);
  reader.mean = values.mean;
  std::string name = kernel.getArrayName(reader.array().getArgNumber()).str();
  bool isPart = areScalesOfPart(carrier);
  size_t outer = reader.others.size();
  SymExpr keys = reader.keys();
  auto [names, extents] = reader.list("j", getFilled(keys), /*isLast=*/true);
  values.data = editor.addTemporary(name + "_f8", extents, Float8E4M3FNType::get(kernel.getContext()));
  Choice where = whereRead(reader.array(), partsOf(reader.inScales()));
  editor.addNest(names, extents, &where, [&](Code &code, ValueRange at) {
    Value count = code.extent(keys), key = at.back(), zero = code.real(0);
    Value isKey = code.make<arith::CmpIOp>(arith::CmpIPredicate::slt, key, count);
    Value x = reader.read(code, at.take_front(outer), at[outer], key);
    Value scaled = code.make<arith::MulFOp>(x, code.load(values.inverse, at.drop_back()));
    if (isPart) {
      Value fits =
          code.make<arith::CmpFOp>(arith::CmpFPredicate::OLE, code.make<math::AbsFOp>(scaled), code.real(kLargest));
      scaled = code.make<arith::SelectOp>(fits, scaled, code.real(NAN));
    }
    code.store(code.make<arith::SelectOp>(isKey, scaled, zero), values.data, at);
  });
  return values;
}

//===----------------------------------------------------------------------===//
// The sum
//===----------------------------------------------------------------------===//

/// The weight times `by`, once for all sums that take it; copy.totals is what the sum of them is
/// then. With an exponent it is 2 to that, of an exponential by lines between powers of two.
Value Adapter::multiplyWeight(Copy &copy, const Carrier &carrier, double by, std::optional<double> exponent) {
  auto acc = cast<onf::AccOp>(copy.map.lookup(carrier.acc.getOperation()));
  auto outer = cast<onf::FoldOp>(acc->getParentOp());
  Code fold(kernel, OpBuilder(acc), acc.getLoc());
  Value plain = copy.map.lookup(carrier.weight), &weight = copy.weights[plain];
  if (!weight) {
    if (Operation *op = plain.getDefiningOp()) // in front of all that it is part of
      fold.b.setInsertionPointAfter(op);
    Operation *power = plain.getDefiningOp();
    if (exponent) {
      double times = isa<math::ExpOp>(power) ? 1 / std::log(2.0) : 1;
      weight = fold.make<onf::PiecewiseExp2Op>(power->getOperand(0), APFloat(times), APFloat(*exponent));
    } else {
      weight = fold.make<arith::MulFOp>(plain, fold.real(by));
    }
  }
  // The sum of the weights takes the same ones, so that a lowering computes them once.
  if (carrier.total && !copy.totals.count(*carrier.total)) {
    auto last = cast<onf::YieldOp>(outer.getBody().front().getTerminator());
    auto total = last.getValues()[*carrier.total].getDefiningOp<onf::AccOp>();
    Value sum = outer.getResult(*carrier.total);
    if (total.getResult().hasOneUse()) {
      total.getValue().front().getTerminator()->setOperand(0, weight);
      Code behind(kernel, OpBuilder(outer), acc.getLoc());
      behind.b.setInsertionPointAfter(outer);
      Value divided = behind.make<arith::MulFOp>(sum, behind.real(1 / by));
      sum.replaceAllUsesExcept(divided, divided.getDefiningOp());
      sum = divided;
    }
    copy.totals[*carrier.total] = sum;
  }
  return weight;
}

/// Σ w·v becomes (Σ e4m3(ŵ)·v̂) · scale/56 + μ · Σ ŵ/56 with ŵ near 56·w (laws B3, B7).
void Adapter::roundCarrier(Copy &copy, const Carrier &carrier) {
  const RoundedValues &values = roundedValues[carrier.load.getArray()];
  auto acc = cast<onf::AccOp>(copy.map.lookup(carrier.acc.getOperation()));
  auto outer = cast<onf::FoldOp>(acc->getParentOp());
  auto yield = cast<onf::YieldOp>(acc.getValue().front().getTerminator());
  Operation *product = yield.getValues()[0].getDefiningOp();
  Code term(kernel, OpBuilder(product), acc.getLoc());
  Value weight =
      multiplyWeight(copy, carrier, kWeightScale, options.uses("B7") ? std::optional(kWeightExponent) : std::nullopt);
  Value value = term.make<arith::ExtFOp>(term.b.getF32Type(),
                                         loadAs(term, carrier.load, values.data, getLayout(carrier), copy.map));
  product->replaceAllUsesWith(ValueRange{term.make<arith::MulFOp>(weight, value)});
  product->erase();
  // What the sum read before is read by nothing, as far as it was read for the sum.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*yield->getBlock())))
    if (isOpTriviallyDead(&op))
      op.erase();
  acc.setOperandTypeAttr(TypeAttr::get(Float8E4M3FNType::get(kernel.getContext())));
  unsigned rank = carrier.load.getArray().getType().getRank();
  // The scale has the other axes, then the columns.
  Places scalePlaces = placesWithout(rank, {carrier.keyAxis, carrier.axis});
  scalePlaces[carrier.axis] = rank - 2;
  for (Operation *user : llvm::to_vector(outer.getResult(carrier.result).getUsers())) {
    auto at = cast<onf::AtOp>(user);
    Code code(kernel, OpBuilder(at), at.getLoc());
    code.b.setInsertionPointAfter(at);
    IRMapping here = copy.map;
    here.map(carrier.acc.getValue().getArgument(0), at.getIndices()[0]);
    Value scale = loadAs(code, carrier.load, values.scale, scalePlaces, here);
    Value back = code.make<arith::MulFOp>(scale, code.real(1 / kWeightScale));
    Value sum = code.make<arith::MulFOp>(at.getResult(), back);
    SmallPtrSet<Operation *, 2> kept{sum.getDefiningOp()};
    if (values.mean.array) {
      Value mean = loadAs(code, carrier.load, values.mean.array, placesWithout(rank, {carrier.keyAxis}), here);
      sum = code.make<arith::AddFOp>(sum, code.make<arith::MulFOp>(mean, copy.totals[*carrier.total]));
    }
    at.getResult().replaceAllUsesExcept(sum, kept);
  }
}

} // namespace moa::accuracy
