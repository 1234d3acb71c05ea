//===- Carriers.cpp - sums of values in e4m3 ------------------------------===//
#include "lib/Precision/Adapter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace moa::precision {

/// The largest number of e4m3.
static constexpr double kLargest = 448;
/// Weights of at most 1 are multiplied with it before they are rounded: what is above 2^-11 then has all bits, and a lowering
/// may be late with a maximum by a factor of 2^3. It is what 2^5.75 is by lines between powers of two, of which 7/4 is their
/// mean over a period too (law B7).
static constexpr double kWeightScale = 56, kWeightExponent = 5.75;
/// Parts of the keys whose extremes are found apart, and a multiple that values are filled up to.
static constexpr int64_t kKeyParts = 128, kMultiple = 16;
/// How much larger values may be than the largest of a part of the keys: floats are as exact in smaller steps.
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

/// v(j, d) − μ(d) = scale(d) · v̂(j, d), with |v̂| ≤ 448 or NaN, and 0 behind the last key.
RoundedValues Adapter::addRoundedValues(const Carrier &carrier) {
  auto array = cast<BlockArgument>(carrier.load.getArray());
  auto type = cast<ArrayType>(array.getType());
  std::string name = kernel.getArrayName(array.getArgNumber()).str();
  Builder b(kernel.getContext());
  unsigned rank = type.getRank();
  SymExpr keys = type.getExtent(carrier.keyAxis);
  RoundedValues values;
  if (carrier.total)
    values.mean = addMean(array, carrier.keyAxis, /*ifLarge=*/true);
  // Columns come last, so that neighbours read neighbours.
  SmallVector<unsigned> others;
  for (unsigned axis = 0; axis < rank; ++axis)
    if (axis != carrier.keyAxis && axis != carrier.axis)
      others.push_back(axis);
  auto list = [&](StringRef key, Attribute size, bool isLast) {
    SmallVector<Attribute> names, extents;
    for (unsigned axis : others) {
      names.push_back(editor.text("i" + Twine(axis)));
      extents.push_back(type.getShape()[axis]);
    }
    SmallVector<std::pair<Attribute, Attribute>> inner{{editor.text("d"), type.getShape()[carrier.axis]}};
    if (!key.empty())
      inner.insert(isLast ? inner.end() : inner.begin(), {editor.text(key), size});
    for (auto [called, extent] : inner) {
      names.push_back(called);
      extents.push_back(extent);
    }
    return std::pair(names, extents);
  };
  // The indices of an element of the values, or of what lacks the keys' axis.
  auto indexed = [&](ValueRange outer, Value column, Value key) {
    SmallVector<Value> indices(rank);
    for (auto [axis, index] : llvm::zip(others, outer))
      indices[axis] = index;
    indices[carrier.axis] = column;
    indices[carrier.keyAxis] = key;
    if (!key)
      indices.erase(indices.begin() + carrier.keyAxis);
    return indices;
  };
  auto read = [&](Code &at, ValueRange outer, Value column, Value key) {
    Value x = at.loadFloat(array, indexed(outer, column, key));
    if (!carrier.total)
      return x;
    return at.make<arith::SubFOp>(x, at.load(values.mean.array, indexed(outer, column, Value())));
  };
  size_t outer = others.size();
  // The scale may be that of some keys where every row of the sample sees all keys: a value beyond it becomes NaN, and so
  // do all rows, and no plan is taken.
  bool isPart = scalesOfPart() && carrier.outer.getBody().getOps<onf::GuardOp>().empty();
  Axes inParts(others.begin(), others.end());
  inParts.push_back(std::nullopt);
  inParts.push_back(carrier.axis);
  Axes inScales(others.begin(), others.end());
  inScales.push_back(carrier.axis);
  auto where = [&](const Axes &axes) { return isPart ? whereReadFew(array, axes) : whereRead(array, axes); };
  Choice whereParts = where(inParts), whereScales = where(inScales);
  Choice whereData = whereRead(array, partsOf(inScales));
  auto [partNames, partExtents] = list("p", editor.text(SymExpr(kKeyParts)), /*isLast=*/false);
  Value parts = editor.addTemporary(name + "_largest", partExtents, b.getF32Type());
  editor.addNest(partNames, partExtents, &whereParts, [&](Code &code, ValueRange at) {
    Value count = code.extent(keys), part = at[outer], column = at[outer + 1];
    Value start = code.make<arith::FloorDivSIOp>(code.make<arith::MulIOp>(part, count), code.index(kKeyParts));
    Value last = code.make<arith::SubIOp>(count, code.index(1));
    // A part may reach into the next ones, so that nothing is asked of a key, and several are read at once.
    SymExpr longest = isPart ? SymExpr(1)
                             : SymExpr::floorDiv(keys + SymExpr(kKeyParts * kAtOnce - 1), SymExpr(kKeyParts * kAtOnce));
    Value largest = code.fold("t", longest, [&](Code &in, Value t, Value &) {
      Value first = in.make<arith::AddIOp>(start, in.make<arith::MulIOp>(t, in.index(kAtOnce))), most;
      for (int64_t k = 0; k < kAtOnce; ++k) {
        Value key = in.make<arith::MinSIOp>(in.make<arith::AddIOp>(first, in.index(k)), last);
        Value size = in.make<math::AbsFOp>(read(in, at.take_front(outer), column, key));
        most = most ? in.make<arith::MaximumFOp>(most, size) : size;
      }
      return SmallVector<Code::Term>{{Monoid::max, "largest", most}};
    })[0];
    code.store(largest, parts, at);
  });
  auto [names, extents] = list("", {}, false);
  values.scale = editor.addTemporary(name + "_scale", extents, b.getF32Type());
  Value inverse = editor.addTemporary(name + "_inverse", extents, b.getF32Type());
  editor.addShortNest(names, extents, &whereScales, [&](Code &code, ValueRange at) {
    Value largest = code.fold("p", SymExpr(kKeyParts / kAtOnce), [&](Code &in, Value p, Value &) {
      Value first = in.make<arith::MulIOp>(p, in.index(kAtOnce)), most;
      for (int64_t k = 0; k < kAtOnce; ++k) {
        SmallVector<Value> indices(at);
        indices.insert(indices.begin() + outer, in.make<arith::AddIOp>(first, in.index(k)));
        Value part = in.load(parts, indices);
        most = most ? in.make<arith::MaximumFOp>(most, part) : part;
      }
      return SmallVector<Code::Term>{{Monoid::max, "largest", most}};
    })[0];
    if (isPart)
      largest = code.make<arith::MulFOp>(largest, code.real(kRoom));
    Value isZero = code.make<arith::CmpFOp>(arith::CmpFPredicate::OEQ, largest, code.real(0));
    auto either = [&](Value other) { return code.make<arith::SelectOp>(isZero, code.real(1), other); };
    Value most = code.real(kLargest);
    code.store(either(code.make<arith::DivFOp>(largest, most)), values.scale, at);
    code.store(either(code.make<arith::DivFOp>(most, largest)), inverse, at);
  });
  SymExpr filled = getFilled(keys);
  auto [dataNames, dataExtents] = list("j", editor.text(filled), /*isLast=*/true);
  values.data = editor.addTemporary(name + "_f8", dataExtents, Float8E4M3FNType::get(kernel.getContext()));
  editor.addNest(dataNames, dataExtents, &whereData, [&](Code &code, ValueRange at) {
    Value count = code.extent(keys), key = at.back(), zero = code.real(0);
    Value isKey = code.make<arith::CmpIOp>(arith::CmpIPredicate::slt, key, count);
    Value x = read(code, at.take_front(outer), at[outer], key);
    Value scaled = code.make<arith::MulFOp>(x, code.load(inverse, at.drop_back()));
    if (isPart) {
      Value fits = code.make<arith::CmpFOp>(arith::CmpFPredicate::OLE, code.make<math::AbsFOp>(scaled), code.real(kLargest));
      scaled = code.make<arith::SelectOp>(fits, scaled, code.real(NAN));
    }
    code.store(code.make<arith::SelectOp>(isKey, scaled, zero), values.data, at);
  });
  return values;
}

//===----------------------------------------------------------------------===//
// The sum
//===----------------------------------------------------------------------===//

/// The weight times `by`, once for all sums that take it; copy.totals is what the sum of them is then. With an exponent it is
/// 2 to that, of an exponential by lines between powers of two.
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
  Value weight = multiplyWeight(copy, carrier, kWeightScale, kWeightExponent);
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
    if (carrier.total) {
      Value mean = loadAs(code, carrier.load, values.mean.array, placesWithout(rank, {carrier.keyAxis}), here);
      sum = code.make<arith::AddFOp>(sum, code.make<arith::MulFOp>(mean, copy.totals[*carrier.total]));
    }
    at.getResult().replaceAllUsesExcept(sum, kept);
  }
}

} // namespace moa::precision
