//===- Halves.cpp - operands in 16-bit floats -----------------------------===//
#include "lib/Accuracy/Variants/RowReader.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace moa::accuracy {

/// Powers of 2 that scale arrays to f16 are in 2^±kMost.
static constexpr int kMost = 63;
/// Factor of weights that are split: both floats of a weight above 2^-25 have all bits, and a
/// conditional rescale may be late by a factor of 2^3.
static constexpr double kSplitScale = 0x1p12;
/// Smallest sampled tolerances for 16 bits, for sums of two floats of f16, and of bf16; and the
/// smallest tolerance for every input for 16 bits.
static constexpr double kLeastOfHalves = 0x1p-12, kLeastOfSplit = 0x1p-20, kLeastOfWideSplit = 0x1p-16;
static constexpr double kLeastBound = 0x1p-7;

//===----------------------------------------------------------------------===//
// The plans
//===----------------------------------------------------------------------===//

static Type elementOf(Value array) { return cast<ArrayType>(array.getType()).getElementType(); }

/// Adds the plan of 16-bit floats and, without `bf16`, that of sums of two. Both need one fold
/// whose accumulators, if any, are sums of computed weights times elements of inputs. Inputs are of
/// f32; with `bf16` some may be of bf16, and remain.
bool Adapter::addHalvesPlan(std::string &why) {
  auto refuse = [&](const Twine &reason) {
    why = reason.str();
    return false;
  };
  onf::FoldOp outer = scores.front().outer;
  bool isAnyWide = false;
  auto fitsType = [&](Value array) {
    isAnyWide |= elementOf(array).isF32();
    return elementOf(array).isF32() || (options.bf16 && elementOf(array).isBF16());
  };
  for (const ScoreFold &score : scores) {
    for (const Operand *operand : {&score.row, &score.key})
      if (!fitsType(operand->array()))
        return refuse("'" + nameOf(*operand) + "' is not of f32, and inputs of other types have no plans of 16 bits" +
                      (isBound ? "; plans of 8 bits are for tolerances that say 'sampled'" : ""));
    if (score.outer != outer)
      return refuse("sums of products are in several folds, but plans of 16 bits need one fold");
  }
  anyWeightedSums = findWeightedSums(nest, onDemand, /*anyWeights=*/true);
  unsigned carried = 0;
  nest.walk([&](onf::AccOp acc) { carried += isa<ArrayType>(acc.getResult().getType()); });
  auto fits = [&](const WeightedSum &weighted) {
    return weighted.outer == outer && fitsType(weighted.load.getArray());
  };
  if (anyWeightedSums.size() != carried || !llvm::all_of(anyWeightedSums, fits))
    return refuse("a sum along an axis is not one of computed weights times elements of an input of f32");
  if (!isAnyWide)
    return refuse("inputs are of bf16, whose products are as fast on this processor as those of 8 bits");
  // f16 needs a power of 2 per head, so rows and keys need axes of their own, and weights of at
  // most 1. bf16 has the range of f32.
  Builder b(kernel.getContext());
  Plan plan;
  auto hasOwnAxes = [&](const ScoreFold &score) { return score.keyAxis && rowAxisOf(score); };
  auto isShare = [](const WeightedSum &weighted) { return weighted.isNormalised; };
  bool isScaled = !options.bf16 && options.uses("B4") && llvm::all_of(scores, hasOwnAxes);
  bool areShares = !options.bf16 && options.uses("B4") && llvm::all_of(anyWeightedSums, isShare);
  plan.sums = true;
  plan.half = isScaled ? Type(b.getF16Type()) : Type(b.getBF16Type());
  plan.sumHalf = areShares ? Type(b.getF16Type()) : Type(b.getBF16Type());
  if (allow(isBound ? kLeastBound : kLeastOfHalves))
    plans.push_back(plan);
  if (options.bf16) {
    if (plans.empty())
      return refuse("the tolerance is below the error of sums in bf16");
    return true;
  }
  plan.isSplit = true;
  if (!options.uses("B6")) {
    why = "law B6, of sums of two floats, is disabled";
    return !plans.empty();
  }
  if (!isBound && !allow(plan.half.isF16() && plan.sumHalf.isF16() ? kLeastOfSplit : kLeastOfWideSplit))
    return refuse("the tolerance is below the error of sums of two floats of 16 bits");
  plans.push_back(plan);
  return true;
}

//===----------------------------------------------------------------------===//
// Rounding
//===----------------------------------------------------------------------===//

static Value roundedTo(Code &code, Value x, Type element) { return code.widen(code.make<arith::TruncFOp>(element, x)); }

/// Returns the power of 2 that scales a magnitude to [2^14, 2^15), and its inverse. Both are NaN if
/// there is no such power, so that the plan is not taken.
static std::pair<Value, Value> powerOf(Code &code, Value largest) {
  Value x = largest, power = code.real(1), inverse = code.real(1);
  auto step = [&](arith::CmpFPredicate predicate, double limit, int exponent) {
    Value is = code.compare(predicate, x, code.real(limit));
    auto times = [&](Value value, int by) {
      Value product = code.mul(value, code.real(std::ldexp(1.0, by)));
      return code.select(is, product, value);
    };
    x = times(x, exponent);
    power = times(power, exponent);
    inverse = times(inverse, -exponent);
  };
  for (int e = (kMost + 1) / 2; e > 0; e /= 2)
    step(arith::CmpFPredicate::OLT, std::ldexp(1.0, kTopOfF16 + 1 - e), e);
  for (int e = (kMost + 1) / 2; e > 0; e /= 2)
    step(arith::CmpFPredicate::OGE, std::ldexp(1.0, kTopOfF16 + e), -e);
  Value fits = code.compare(arith::CmpFPredicate::OLT, x, code.real(std::ldexp(1.0, kTopOfF16 + 1)));
  auto orNaN = [&](Value value) { return code.select(fits, value, code.real(NAN)); };
  Value inverseOrNaN = orNaN(inverse), powerOrNaN = orNaN(power);
  return std::pair(powerOrNaN, inverseOrNaN);
}

/// Stores a row times `power` (null: 1), and its rounding errors in `to.rest`, if present.
static void storeHalf(Code &code, const RowReader &rows, ValueRange row, Value power, const RoundedArray &to) {
  Type element = elementOf(to.data);
  code.loops({code.b.getStringAttr("k")}, {rows.type().getShape()[rows.axis]}, [&](Code &at, ValueRange k) {
    Value x = rows.read(at, row, k[0]);
    if (power)
      x = at.mul(x, power);
    at.store(x, to.data, rows.indicesOf(row, k[0]));
    if (to.rest)
      at.store(at.sub(x, roundedTo(at, x, element)), to.rest, rows.indicesOf(row, k[0]));
  });
}

/// Adds a copy of an array in 16 bits, unless it has that type.
/// - f16: x·2^e with one e for all rows along `axis` and `across`; `scale` is 2^-e, and `largest`
///   has the magnitude of each row along `axis`.
/// - bf16: x; `scale` has the magnitude of each row.
/// With `hasRest`, `rest` has the rounding errors in the same type.
RoundedArray Adapter::addHalf(Value array, unsigned axis, unsigned across, Type element, bool hasRest) {
  bool isScaled = element.isF16();
  RowReader rows = readRows(array, axis, nullptr, isScaled ? std::optional(across) : std::nullopt);
  std::string name = editor.nameOf(array).str();
  SmallVector<Attribute> all(rows.type().getShape().begin(), rows.type().getShape().end());
  std::string suffix = isScaled ? "_f16" : "_bf16";
  RoundedArray result;
  result.data = elementOf(array) != element ? editor.addTemporary(name + suffix, all, element) : array;
  if (hasRest)
    result.rest = editor.addTemporary(name + suffix + "_rest", all, element);
  isScaled ? fillF16(rows, name, result) : fillBf16(rows, name, result);
  return result;
}

void Adapter::fillBf16(const RowReader &rows, StringRef name, RoundedArray &result) {
  const ScoreFold &first = scores[0];
  bool isCopied = result.data != rows.array;
  bool isRow = plans[0].half && rows.array == first.row.array() && rows.axis == first.row.axis;
  bool isKey = llvm::any_of(
      scores, [&](const ScoreFold &score) { return rows.array == score.key.array() && rows.axis == score.key.axis; });
  bool isMeasured = needsEstimates() && (isRow || isKey);
  if (!isCopied && !isMeasured)
    return;
  Choice where = whereRead(rows.array, axesWithout(rows.type().getRank(), {rows.axis}));
  if (isMeasured)
    result.scale = editor.addTemporary(name + "_largest", rows.extents, editor.f32());
  editor.addNest(rows.names, rows.extents, &where, [&](Code &code, ValueRange row) {
    if (isMeasured)
      code.store(rows.largestOf(code, row), result.scale, row);
    if (isCopied)
      storeHalf(code, rows, row, Value(), result);
  });
}

void Adapter::fillF16(const RowReader &rows, StringRef name, RoundedArray &result) {
  unsigned rank = rows.type().getRank();
  Choice where = whereRead(rows.array, axesWithout(rank, {rows.axis}));
  Type single = editor.f32();
  result.across = rows.across;
  result.largest = editor.addTemporary(name + "_largest", rows.lastOf(rows.extents), single);
  result.scale = editor.addTemporary(name + "_unit", rows.scaleExtents, single);
  Value power = editor.addTemporary(name + "_power", rows.scaleExtents, single);
  editor.addNest(rows.names, rows.extents, &where, [&](Code &code, ValueRange row) {
    code.store(rows.largestOf(code, row), result.largest, rows.lastOf(SmallVector<Value>(row)));
  });
  Choice whereParts = whereRead(rows.array, partsOf(axesWithout(rank, {rows.axis, *rows.across})));
  Value parts = addPartsOf(result.largest, rows.scaleNames, rows.scaleExtents, whereParts);
  editor.addShortNest(rows.scaleNames, rows.scaleExtents, &tried, [&](Code &code, ValueRange others) {
    Value most = largestOfParts(code, parts, others, isNeeded(code, whereParts, others));
    auto [up, down] = powerOf(code, most);
    code.store(up, power, others);
    code.store(down, result.scale, others);
  });
  editor.addNest(rows.names, rows.extents, &where, [&](Code &code, ValueRange row) {
    storeHalf(code, rows, row, code.load(power, rows.withoutRow(row)), result);
  });
}

void Adapter::addHalves(const Plan &plan) {
  auto add = [&](Value array, unsigned axis, unsigned across, Type element) {
    RoundedArray &known = half(array, axis, across, element);
    bool hasRest = llvm::any_of(plans, [&](const Plan &other) {
      return other.isSplit && other.half == plan.half && other.sumHalf == plan.sumHalf;
    });
    if (!known.data)
      known = addHalf(array, axis, across, element, hasRest);
  };
  for (const ScoreFold &score : scores) {
    add(score.row.array(), score.row.axis, halfRowAxis(score), plan.half);
    add(score.key.array(), score.key.axis, halfKeyAxis(score), plan.half);
  }
  for (const WeightedSum &weighted : anyWeightedSums)
    add(weighted.load.getArray(), weighted.axis, weighted.keyAxis, plan.sumHalf);
}

//===----------------------------------------------------------------------===//
// Copies of the nest
//===----------------------------------------------------------------------===//

/// Returns true if all other terms of a load's address are defined before the fold.
static bool isFreeOf(onf::LoadOp load, ArrayRef<Value> indices, onf::FoldOp outer, IRMapping &map) {
  return llvm::all_of(load.getTerms(), [&](Value term) {
    Operation *op = map.lookupOrDefault(term).getDefiningOp();
    return llvm::is_contained(indices, term) || !op || !outer->isAncestor(op);
  });
}

/// Returns (x + x′)·(y + y′) ≈ x·y′ + x′·y + x·y. The large product comes last, because tensor
/// cores truncate summands relative to the sum.
static Value addProducts(Code &code, ArrayRef<Value> x, ArrayRef<Value> y, Operation *product) {
  code.b.setInsertionPointAfter(product);
  Value xy = code.mul(x[0], y[1]), yx = code.mul(x[1], y[0]);
  Value small = code.add(yx, xy);
  return code.add(small, product->getResult(0));
}

/// Marks a sum of a plan as not recomputed elsewhere.
static void noteAlone(onf::AccOp acc) { acc->setAttr(onf::kAloneAttr, BoolAttr::get(acc.getContext(), true)); }

/// Rewrites Σ row·key to Σ row16·key16 · (2^-e of the row) · (2^-e of the key).
void Adapter::halveScore(Copy &copy, unsigned number, const Plan &plan, ValueRange rowIndices) {
  const ScoreFold &score = scores[number];
  RoundedArray row = halfOfRow(score, plan.half);
  RoundedArray key = halfOfKey(score, plan.half);
  auto fold = cast<onf::FoldOp>(copy.map.lookup(score.fold.getOperation()));
  auto outer = cast<onf::FoldOp>(fold->getParentOp());
  auto replace = [&](onf::LoadOp old, const RoundedArray &by, bool isGathered) {
    auto load = cast<onf::LoadOp>(copy.map.lookup(old.getOperation()));
    Code code(kernel, OpBuilder(load), load.getLoc());
    SmallVector<Value> indices(rowIndices), floats;
    indices.push_back(fold.getBody().getArgument(0));
    for (Value data : {by.data, plan.isSplit ? by.rest : Value()})
      if (data) {
        Value x = isGathered ? code.load(gatheredHalves.lookup({data, number}), indices)
                             : loadAs(code, old, data, placesWithout(old.getArray().getType().getRank(), {}), copy.map);
        floats.push_back(x.getType() == load.getType() ? x : code.widen(x));
      }
    load.getResult().replaceAllUsesWith(floats[0]);
    load.erase();
    return floats;
  };
  bool isSample = !rowIndices.empty();
  Value index = score.fold.getBody().getArgument(0), j = score.outer.getBody().getArgument(0);
  bool isFree =
      isFreeOf(score.row.load, index, outer, copy.map) && isFreeOf(score.key.load, {index, j}, outer, copy.map);
  if (plan.half.isF16()) {
    Operation *scaled = score.scaled ? copy.map.lookup(score.scaled.getOperation()) : nullptr;
    Code after(kernel, OpBuilder(fold), fold.getLoc());
    scaled ? after.b.setInsertionPoint(scaled) : after.b.setInsertionPointAfter(fold);
    Code front(kernel, isFree ? OpBuilder(outer) : after.b, fold.getLoc());
    Value rowUnit = loadScale(front, score.row, row, copy.map), keyUnit = loadScale(front, score.key, key, copy.map);
    Value unit = front.mul(rowUnit, keyUnit);
    Value sum = fold.getResult(0);
    if (scaled) {
      unsigned place = scaled->getOperand(0) == sum;
      scaled->setOperand(place, front.mul(scaled->getOperand(place), unit));
    } else {
      Value product = after.mul(sum, unit);
      sum.replaceAllUsesExcept(product, product.getDefiningOp());
      copy.map.map(score.fold.getResult(0), product);
    }
  }
  auto rows = replace(score.row.load, row, isSample), keys = replace(score.key.load, key, false);
  if (plan.half.isBF16() && (row.data != score.row.array() || key.data != score.key.array()))
    noteAlone(*fold.getBody().getOps<onf::AccOp>().begin());
  if (!plan.isSplit)
    return;
  auto acc = *fold.getBody().getOps<onf::AccOp>().begin();
  auto product = getTerm(acc).getDefiningOp<arith::MulFOp>();
  Code code(kernel, OpBuilder(acc), acc.getLoc());
  Value sum = addProducts(code, rows, keys, product);
  product.getResult().replaceAllUsesExcept(sum, sum.getDefiningOp());
}

std::pair<Value, Value> Adapter::splitWeight(Copy &copy, Value weight, Type element) {
  auto &both = copy.split[weight];
  if (!both.first) {
    Code code(kernel, OpBuilder(weight.getDefiningOp()), weight.getLoc());
    code.b.setInsertionPointAfter(weight.getDefiningOp());
    both.first = roundedTo(code, weight, element);
    both.second = roundedTo(code, code.sub(weight, both.first), element);
  }
  return both;
}

/// Rewrites Σ w·v to 2^-e · Σ w16·v16, or to the sums of two floats (law B6).
void Adapter::halveWeightedSum(Copy &copy, const WeightedSum &weighted, const Plan &plan) {
  Type element = plan.sumHalf;
  RoundedArray values = half(weighted.load.getArray(), weighted.axis, weighted.keyAxis, element);
  auto acc = cast<onf::AccOp>(copy.map.lookup(weighted.acc.getOperation()));
  auto outer = cast<onf::FoldOp>(acc->getParentOp());
  auto load = cast<onf::LoadOp>(copy.map.lookup(weighted.load.getOperation()));
  unsigned rank = weighted.load.getArray().getType().getRank();
  Code code(kernel, OpBuilder(load), load.getLoc());
  auto read = [&](Value data) {
    Value x = loadAs(code, weighted.load, data, placesWithout(rank, {}), copy.map);
    return x.getType() == load.getType() ? x : code.widen(x);
  };
  double scale = plan.isSplit && element.isF16() ? kSplitScale : 1;
  if (plan.isSplit) {
    Operation *product = getTerm(acc).getDefiningOp();
    Value weight = scale == 1 ? copy.map.lookup(weighted.weight) : multiplyWeight(copy, weighted, scale);
    auto [first, second] = splitWeight(copy, weight, element);
    Value x = read(values.data), rest = read(values.rest);
    code.b.setInsertionPoint(product);
    Value whole = code.mul(first, x);
    Value sum = addProducts(code, {first, second}, {x, rest}, whole.getDefiningOp());
    product->replaceAllUsesWith(ValueRange{sum});
    product->erase();
    load.erase();
    acc.removeOperandTypeAttr();
  } else {
    load.getResult().replaceAllUsesWith(read(values.data));
    load.erase();
    acc.setOperandTypeAttr(TypeAttr::get(element));
  }
  if (element.isBF16())
    noteAlone(acc);
  if (!element.isF16())
    return;
  Code front(kernel, OpBuilder(outer), acc.getLoc());
  auto places = placesWithout(rank, {weighted.keyAxis, weighted.axis});
  Value unit = loadAs(front, weighted.load, values.scale, places, copy.map);
  if (scale != 1)
    unit = front.mul(unit, front.real(1 / scale));
  for (Operation *user : llvm::to_vector(outer.getResult(weighted.result).getUsers())) {
    auto at = cast<onf::AtOp>(user);
    Code after(kernel, OpBuilder(at), at.getLoc());
    after.b.setInsertionPointAfter(at);
    Value sum = after.mul(at.getResult(), unit);
    at.getResult().replaceAllUsesExcept(sum, sum.getDefiningOp());
  }
}

} // namespace moa::accuracy
