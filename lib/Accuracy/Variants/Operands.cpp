//===- Operands.cpp - operands in 8-bit integers --------------------------===//
#include "lib/Accuracy/Selection/Adapter.h"
#include "lib/Accuracy/Variants/Exponents.h"
#include "lib/Accuracy/Variants/RowReader.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace moa::accuracy {

static constexpr double kSteps = 127;

/// Rows at equal distances that give the common scale, and the headroom for others. Among normal
/// numbers the maximum of a 512th is 4.4 deviations, and that of all 2^21 is 5.1. Headroom costs
/// accuracy.
static constexpr int64_t kScaleRows = 512;
/// Parts of these rows whose extremes are found in parallel.
static constexpr int64_t kScaleParts = 8;
static constexpr double kRoom = 1.25;
/// Heads with an element beyond this multiple of the limit, where it is clipped, skip the plan.
static constexpr double kBeyond = 1.25;

/// Elements per step of a fold, whose loads overlap.
static constexpr int64_t kAtOnce = 16;

/// Adds the mean of 64 keys (law B1 holds for any vector); with `ifLarge`, 0 where it is small.
Mean Adapter::addMean(BlockArgument keys, unsigned axis, bool ifLarge) {
  auto type = cast<ArrayType>(keys.getType());
  auto [names, extents] = editor.axesOf(keys, axis);
  std::string name = editor.nameOf(keys).str() + "_mean";
  Type element = type.getElementType(), single = editor.f32();
  bool isNarrow = !ifLarge && element.getIntOrFloatBitWidth() == 16;
  Mean mean{editor.addTemporary(name, extents, isNarrow ? element : single), axis};
  Choice where = whereReadFew(keys, axesWithout(type.getRank(), {axis}));
  editor.addShortNest(names, extents, &where, [&](Code &code, ValueRange others) {
    Value step = code.extent(SymExpr::floorDiv(type.getExtent(mean.axis), SymExpr(kSample)));
    Code::Values sums = code.fold("p", SymExpr(kSample / kAtOnce), [&](Code &at, Value p, Value &) {
      Value first = at.mul(p, at.index(kAtOnce)), sum, squares;
      for (int64_t k = 0; k < kAtOnce; ++k) {
        SmallVector<Value> indices(others);
        Value number = at.add(first, at.index(k));
        indices.insert(indices.begin() + mean.axis, at.mul(number, step));
        Value x = at.loadFloat(keys, indices), square = at.mul(x, x);
        sum = sum ? at.add(sum, x) : x;
        squares = squares ? at.add(squares, square) : square;
      }
      SmallVector<Code::State> terms{{Monoid::add, "sum", sum}};
      if (ifLarge)
        terms.push_back({Monoid::add, "squares", squares});
      return terms;
    });
    Value value = code.mul(sums[0], code.real(1.0 / kSample));
    if (!ifLarge)
      return code.store(value, mean.array, others);
    // Tensor cores add products of 8-bit floats with few bits, so a useless mean would cost
    // accuracy. It is 0 if it is less than half of the root mean square, which is expected of 64
    // elements of mean 0.
    Value factor = code.real(4.0 * kSample);
    Value square = code.mul(code.mul(value, value), factor);
    Value isLarge = code.compare(arith::CmpFPredicate::UGE, square, sums[1]);
    code.store(code.select(isLarge, value, code.real(0)), mean.array, others);
  });
  return mean;
}

const Mean *Adapter::findMean(const ScoreFold &score) {
  if (!score.keyAxis || !options.uses("B1"))
    return nullptr;
  auto found = means.find(score.key.array());
  if (found == means.end())
    found = means.try_emplace(score.key.array(), addMean(score.key.array(), *score.keyAxis)).first;
  return &found->second;
}

/// Returns true if a nest over the operand's rows has the indices of this nest.
bool Adapter::hasRowsOfNest(const Operand &operand) {
  onf::LoadOp load = operand.load;
  auto type = cast<ArrayType>(operand.array().getType());
  unsigned rank = operand.rank(), next = 0;
  if (!load.getSubscripts().isIdentity() || nest.getExtents().size() + 1 != rank)
    return false;
  for (unsigned axis = 0; axis < rank; ++axis) {
    if (axis == operand.axis)
      continue;
    if (load.getTerms()[axis] != nest.getBody().getArgument(next) || type.getShape()[axis] != nest.getExtents()[next])
      return false;
    ++next;
  }
  return true;
}

Value Adapter::addShiftArray(const ScoreFold &score) {
  SmallVector<Attribute> extents(nest.getExtents().begin(), nest.getExtents().end());
  std::string name = editor.nameOf(score.row.array()).str() + "_shift";
  return editor.addTemporary(name, extents, editor.f32());
}

/// Stores c(i) = Σ_k row(i, k)·mean(k) at an index of the nest.
void Adapter::storeShift(Code &code, const ScoreFold &score, const Mean &mean, Value array, ValueRange indices) {
  IRMapping map;
  map.map(nest.getBody().getArguments(), indices);
  const SymExpr &extent = score.fold.getExtent();
  Value sum = code.fold("k", extent, [&](Code &at, Value k, Value &) {
    Value x = at.widen(loadAt(at, score.row, score.row.array(), k, map));
    IRMapping here = map;
    here.map(score.fold.getBody().getArgument(0), k);
    Value y = at.widen(loadAs(at, score.key.load, mean.array, placesWithout(score.key.rank(), {mean.axis}), here));
    return SmallVector<Code::State>{{Monoid::add, "shift", at.mul(x, y)}};
  })[0];
  code.store(sum, array, indices);
}

std::optional<unsigned> Adapter::rowAxisOf(const ScoreFold &score) {
  Value row = nest.getBody().front().getArguments().back();
  onf::LoadOp load = score.row.load;
  std::optional<unsigned> found;
  for (auto [axis, term] : llvm::enumerate(load.getTerms()))
    if (term == row) {
      if (found || load.getTerms().size() != score.row.rank() || load.getSubscripts().findAxis(axis) != axis)
        return std::nullopt;
      found = axis;
    }
  return found;
}

/// Magnitudes per part of the last axis; the last part overlaps the one before it.
static constexpr int64_t kPart = 128;
static_assert(kPart <= kFewest);

Value Adapter::addPartsOf(Value largest, ArrayRef<Attribute> otherNames, ArrayRef<Attribute> otherExtents,
                          const Choice &where) {
  auto type = cast<ArrayType>(largest.getType());
  unsigned last = type.getRank() - 1;
  SymExpr count = type.getExtent(last);
  SmallVector<Attribute> names(otherNames), extents(otherExtents);
  names.push_back(editor.text("p"));
  extents.push_back(editor.expr(SymExpr::floorDiv(count + SymExpr(kPart - 1), SymExpr(kPart))));
  std::string name = editor.nameOf(largest).str() + "_parts";
  Value parts = editor.addTemporary(name, extents, editor.f32());
  editor.addShortNest(names, extents, &where, [&](Code &code, ValueRange indices) {
    Value first = code.mul(indices.back(), code.index(kPart));
    Value length = code.index(kPart), latest = code.sub(code.extent(count), length);
    Value start = code.min(first, latest);
    Value most = code.fold("t", SymExpr(kPart), [&](Code &at, Value t, Value &) {
      SmallVector<Value> place = placed(indices.drop_back(), {start});
      return SmallVector<Code::State>{{Monoid::max, "largest", at.loadFrom(largest, place, t)}};
    })[0];
    code.store(most, parts, indices);
  });
  return parts;
}

Value Adapter::largestOfParts(Code &code, Value parts, ValueRange others, Value present) {
  auto type = cast<ArrayType>(parts.getType());
  return code.fold("p", type.getExtent(type.getRank() - 1), [&](Code &at, Value p, Value &there) {
    there = present;
    return SmallVector<Code::State>{{Monoid::max, "largest", at.load(parts, placed(others, {p}))}};
  })[0];
}

/// Returns the step of a magnitude and its inverse, which is 1 for a magnitude of 0; NaN stays NaN.
static std::pair<Value, Value> stepOf(Code &code, Value largest) {
  Value isZero = code.compare(arith::CmpFPredicate::OEQ, largest, code.real(0));
  Value steps = code.real(kSteps);
  Value quotient = code.div(steps, largest);
  Value inverse = code.select(isZero, code.real(1), quotient);
  return std::pair(Value(code.div(largest, steps)), inverse);
}

/// Returns the integer nearest to x·inverse (at most 127); adding 1.5·2^23 rounds.
static Value nearestInteger(Code &code, Value x, Value inverse) {
  Value scaled = code.mul(x, inverse), large = code.real(0x1.8p23);
  Value nearest = code.sub(code.add(scaled, large), large);
  auto whole = arith::FPToSIOp::create(code.b, code.loc, code.b.getI8Type(), nearest);
  whole->setAttr("moa.round", code.b.getUnitAttr());
  return code.toIndex(whole);
}

RowReader Adapter::readRows(Value array, unsigned axis, const Mean *mean, std::optional<unsigned> across) {
  RowReader rows{array, axis, mean, across, {}, {}, {}, {}};
  std::tie(rows.names, rows.extents) = editor.axesOf(array, axis);
  rows.scaleNames = rows.names, rows.scaleExtents = rows.extents;
  if (across)
    for (auto *list : {&rows.scaleNames, &rows.scaleExtents})
      list->erase(list->begin() + rows.place());
  return rows;
}

/// Adds the common scale of the rows along `across`, with inverse and limit, from 512 rows.
RoundedArray Adapter::addScaleOfPart(const RowReader &rows) {
  Type single = editor.f32();
  std::string name = editor.nameOf(rows.array).str();
  unsigned rank = rows.type().getRank();
  RoundedArray result;
  result.across = rows.across;
  result.scale = editor.addTemporary(name + "_scale", rows.scaleExtents, single);
  result.inverse = editor.addTemporary(name + "_inverse", rows.scaleExtents, single);
  result.limit = editor.addTemporary(name + "_limit", rows.scaleExtents, single);
  auto placeOf = [&](Code &code, Value number) {
    Value count = code.extent(rows.type().getExtent(*rows.across));
    Value divisor = code.index(kScaleRows);
    return code.floorDiv(code.mul(number, count), divisor);
  };
  Choice where = whereReadFew(rows.array, partsOf(axesWithout(rank, {rows.axis, *rows.across})));
  // Extremes of columns need not wait for the mean.
  Value some;
  Extremes extremes;
  if (rows.mean) {
    constexpr int64_t kEach = kScaleRows / kScaleParts;
    Extremes::Part part{kScaleParts, kAtOnce, SymExpr(kEach / kAtOnce), [&](Code &in, Value p, Value step, int64_t k) {
                          Value inPart = in.mul(step, in.index(kAtOnce));
                          Value first = in.add(in.mul(p, in.index(kEach)), inPart);
                          return placeOf(in, in.add(first, in.index(k)));
                        }};
    extremes = addExtremes(cast<BlockArgument>(rows.array), *rows.across, rows.axis, part,
                           [&](const Axes &axes) { return whereReadFew(rows.array, axes); });
  } else {
    SmallVector<Attribute> names(rows.scaleNames), extents(rows.scaleExtents);
    names.push_back(editor.text("s"));
    extents.push_back(editor.expr(kScaleRows));
    some = editor.addTemporary(name + "_some", extents, single);
    editor.addNest(names, extents, &where, [&](Code &code, ValueRange at) {
      code.store(rows.largestOf(code, rows.withRow(at.drop_back(), placeOf(code, at.back()))), some, at);
    });
  }
  editor.addShortNest(rows.scaleNames, rows.scaleExtents, &tried, [&](Code &code, ValueRange others) {
    Value present = isNeeded(code, where, others);
    Value largest =
        some ? largestOfParts(code, some, others, present)
             : code.fold("k", rows.type().getExtent(rows.axis), [&](Code &in, Value k, Value &there) {
                 there = present;
                 Value mean = rows.loadMean(in, others, k);
                 return SmallVector<Code::State>{
                     {Monoid::max, "largest", extremes.largestOf(in, others, Value(), extremes.parts, k, mean)}};
               })[0];
    largest = code.mul(largest, code.real(kRoom));
    code.store(largest, result.limit, others);
    auto [step, back] = stepOf(code, largest);
    code.store(step, result.scale, others);
    code.store(back, result.inverse, others);
  });
  return result;
}

void Adapter::addScaleOfAll(const RowReader &rows, RoundedArray &result) {
  unsigned rank = rows.type().getRank();
  Choice where = whereRead(rows.array, partsOf(axesWithout(rank, {rows.axis, *rows.across})));
  Value parts = addPartsOf(result.largest, rows.scaleNames, rows.scaleExtents, where);
  editor.addShortNest(rows.scaleNames, rows.scaleExtents, &tried, [&](Code &code, ValueRange others) {
    auto [step, back] = stepOf(code, largestOfParts(code, parts, others, isNeeded(code, where, others)));
    code.store(step, result.scale, others);
    code.store(back, result.inverse, others);
  });
}

/// Adds x̂ with x = scale·x̂ and |x̂| ≤ 127, for x less its mean if there is one. The scale is the
/// largest magnitude of a row (or of the rows along `across`) / 127. A known scale is kept.
/// `also` adds code to the nest that reads the rows.
RoundedArray Adapter::addRounded(Value array, unsigned axis, const Mean *mean, std::optional<unsigned> across,
                                 llvm::function_ref<void(Code &, ValueRange)> also) {
  RoundedArray result = roundedArrays.lookup({array, axis});
  bool isKnown = bool(result.scale);
  if (isKnown)
    across = result.across;
  RowReader rows = readRows(array, axis, mean, across);
  auto type = rows.type();
  std::string name = editor.nameOf(array).str();
  Builder b(kernel.getContext());
  SmallVector<Attribute> all(type.getShape().begin(), type.getShape().end());
  result.data = editor.addTemporary(name + "_i8", all, b.getI8Type());
  result.across = across;
  // A sampled scale is checked after rounding, except in a pilot.
  bool isChecked = isKnown ? bool(result.limit) : across && needsEstimates();
  if (across && (!isKnown || isChecked))
    result.largest = editor.addTemporary(name + "_largest", rows.lastOf(rows.extents), editor.f32());
  auto storeRow = [&](Code &code, ValueRange row, Value inverse) {
    code.loops({editor.text("k")}, {all[axis]}, [&](Code &at, ValueRange k) {
      at.store(nearestInteger(at, rows.read(at, row, k[0]), inverse), result.data, rows.indicesOf(row, k[0]));
    });
  };
  Choice where = whereRead(array, axesWithout(type.getRank(), {axis}));
  if (!isKnown && !isChecked) {
    result.scale = editor.addTemporary(name + "_scale", rows.scaleExtents, editor.f32());
    if (across)
      result.inverse = editor.addTemporary(name + "_inverse", rows.scaleExtents, editor.f32());
    editor.addNest(rows.names, rows.extents, &where, [&](Code &code, ValueRange row) {
      Value largest = rows.largestOf(code, row);
      if (also)
        also(code, row);
      if (across)
        return code.store(largest, result.largest, rows.lastOf(SmallVector<Value>(row)));
      auto [step, inverse] = stepOf(code, largest);
      code.store(step, result.scale, row);
      storeRow(code, row, inverse);
    });
    if (!across)
      return result;
    addScaleOfAll(rows, result);
  } else if (!isKnown) {
    RoundedArray scale = addScaleOfPart(rows);
    result.scale = scale.scale, result.inverse = scale.inverse, result.limit = scale.limit;
  }
  editor.addNest(rows.names, rows.extents, &where, [&](Code &code, ValueRange row) {
    if (isChecked)
      code.store(rows.largestOf(code, row), result.largest, rows.lastOf(SmallVector<Value>(row)));
    if (also && (isKnown || isChecked))
      also(code, row);
    storeRow(code, row, code.load(result.inverse, rows.withoutRow(row)));
  });
  if (!isChecked)
    return result;
  // The comparison is false for NaN; infinity exceeds the largest f32.
  Choice whereParts = whereRead(array, partsOf(axesWithout(type.getRank(), {axis, *across})));
  Value parts = addPartsOf(result.largest, rows.scaleNames, rows.scaleExtents, whereParts);
  result.beyond = editor.addTemporary(name + "_beyond", rows.scaleExtents, editor.i32());
  editor.addShortNest(rows.scaleNames, rows.scaleExtents, &tried, [&](Code &code, ValueRange others) {
    Value factor = code.real(kBeyond), most = code.mul(code.load(result.limit, others), factor);
    most = code.min(most, code.real(std::numeric_limits<float>::max()));
    Value largest = largestOfParts(code, parts, others, isNeeded(code, whereParts, others));
    Value is = code.compare(arith::CmpFPredicate::OLE, largest, most);
    Value beyond = code.index(1), within = code.index(0);
    code.store(code.select(is, within, beyond), result.beyond, others);
  });
  return result;
}

/// Adds means and scales that few elements determine before anything is rounded, so that the pilot
/// can use them. Under a mask the plan finds scales of values from all keys, and the pilot its own.
void Adapter::addScales() {
  auto add = [&](const Operand &operand, const Mean *mean, std::optional<unsigned> across) {
    RoundedArray &known = roundedArrays[{operand.array(), operand.axis}];
    if (across && !known.scale)
      known = addScaleOfPart(readRows(operand.array(), operand.axis, mean, across));
  };
  for (const ScoreFold &score : scores) {
    const Mean *mean = findMean(score);
    if (!hasCommonScales(score))
      continue;
    add(score.key, mean, score.keyAxis);
    add(score.row, nullptr, rowAxisOf(score));
  }
  for (const WeightedSum &weighted : weightedSums)
    if (plans[0].sums && areScalesOfPart(weighted) && !roundedValues.lookup(weighted.load.getArray()).scale)
      roundedValues[weighted.load.getArray()] = addValueScales(weighted);
}

void Adapter::takeScales(const Adapter &whole) {
  for (auto [part, array] : origins) {
    if (auto mean = whole.means.find(array); mean != whole.means.end())
      means[part] = mean->second;
    for (const auto &[key, known] : whole.roundedArrays)
      if (key.first == array) {
        RoundedArray &own = roundedArrays[{part, key.second}];
        own.scale = known.scale, own.inverse = known.inverse, own.across = known.across;
      }
    if (auto values = whole.roundedValues.find(array); values != whole.roundedValues.end())
      roundedValues[part] = values->second;
  }
}

//===----------------------------------------------------------------------===//
// Errors that a sample can miss
//===----------------------------------------------------------------------===//

/// The share of rows that 32 picks miss with a probability of 5 %. Small rows are less often
/// picked, but their scores are small too.
static const double kMissed = 1 - std::pow(0.05, 1.0 / 32);

/// Returns true if score errors of a plan are measured. They are not if errors of operands are at
/// most about those of f16 and only relative errors of scores matter (Exponents.h).
bool Adapter::asksScores(const Plan &plan) {
  auto isExponent = [&](const ScoreFold &score) { return !findExponents(score, nest).paths.empty(); };
  bool isCoarse = !plan.half || (plan.half.isBF16() && !plan.isSplit);
  return isCoarse || llvm::any_of(scores, isExponent);
}

/// Stores |factors · row|² of the sampled rows, or of all rows of the nest, with the factors on the
/// way to an exponential. It reads the original rows, so that it does not wait for copies.
Value Adapter::addReach(const ScoreFold &score, bool ofSample) {
  Value array = editor.addTemporary(base() + "_reach", picked.extents, editor.f32());
  SmallVector<Value> ofKeys = addFactorsOfKeys(score);
  editor.addShortNest(picked.names, picked.extents, &sampled, [&](Code &code, ValueRange indices) {
    Value row = ofSample ? code.toIndex(code.load(picked.numbers, indices)) : indices.back();
    IRMapping map = mapIndices(indices.drop_back(), row);
    Value square = code.fold("k", score.fold.getExtent(), [&](Code &in, Value k, Value &) {
      Value x = in.widen(loadAt(in, score.row, score.row.array(), k, map));
      return SmallVector<Code::State>{{Monoid::add, "square", in.mul(x, x)}};
    })[0];
    auto largest = [&](const ExponentPath &, unsigned way) {
      return largestOfParts(code, ofKeys[way], indices.drop_back(), Value());
    };
    code.store(timesFactors(code, square, score, nest, map, largest), array, indices);
  });
  return array;
}

/// Returns, for each path with factors of the key, their largest squares per part of the keys.
SmallVector<Value> Adapter::addFactorsOfKeys(const ScoreFold &score) {
  SmallVector<Value> parts;
  SmallVector<Attribute> heads(picked.names.begin(), std::prev(picked.names.end())), names(picked.names),
      extents(picked.extents);
  names.back() = editor.text("m"), extents.back() = score.outer.getExtentAttr();
  onf::FoldOp outer = score.outer;
  for (const ExponentPath &way : findExponents(score, nest).paths) {
    if (way.ofKey.isOne()) {
      parts.push_back(Value());
      continue;
    }
    Value squares = editor.addTemporary(base() + "_of_keys", extents, editor.f32());
    editor.addNest(names, extents, &sampled, [&](Code &code, ValueRange indices) {
      IRMapping map = mapIndices(indices.drop_back(), code.index(0));
      map.map(outer.getBody().getArgument(0), indices.back());
      code.store(squareOfKey(code, way, map), squares, indices);
    });
    parts.push_back(addPartsOf(squares, heads, ArrayRef<Attribute>(picked.extents).drop_back(), sampled));
  }
  return parts;
}

/// Score errors near 1 change rows strongly in which several keys are near the maximum; with scores
/// so large, these rows are few. Rows with elements beyond the scale, and those that see such keys,
/// are few too.
Value Adapter::isUnseen(Code &code, ValueRange head, unsigned plan, Value present) {
  if (!asksScores(plans[plan - 1]))
    return Value();
  bool isHalf = bool(plans[plan - 1].half);
  // For 8 bits kMuch was found by experiment. For 16 bits, even if all missed rows have a relative
  // error as large as that of their scores, the result is within the tolerance.
  double much = kMuch;
  for (const NestResult &result : results)
    if (isHalf)
      much = std::min(much, result.allowed.epsilon / std::sqrt(kMissed));
  ScoreErrors errors = measureScores(code, head, plan, present);
  return either(code, errors.beyond, isOffBy(code, errors, much));
}

Value Adapter::either(Code &code, Value a, Value b) {
  return a && b ? Value(code.make<arith::OrIOp>(a, b)) : a ? a : b;
}

/// Returns whether the scores of some row have a standard error of at least `much`.
Value Adapter::isOffBy(Code &code, const ScoreErrors &errors, double much) {
  Value any;
  // Roundings are uniform within half a step: their mean square is step² / 12.
  for (Value square : errors.squares)
    any = either(code, any, code.compare(arith::CmpFPredicate::OGE, square, code.real(much * much * 12)));
  return any;
}

static double unitRoundoff(const Plan &plan) {
  if (plan.isSplit)
    return plan.half.isF16() ? 0x1p-21 : 0x1p-15;
  return plan.half.isF16() ? 0x1p-11 : 0x1p-8;
}

/// Returns, for each score, 12 times the largest variance of its errors, from the steps of keys;
/// and whether rows or keys have elements beyond their scales.
Adapter::ScoreErrors Adapter::measureScores(Code &code, ValueRange head, unsigned plan, Value present) {
  Type halfType = plans[plan - 1].half;
  ScoreErrors errors;
  for (auto [number, score] : llvm::enumerate(scores)) {
    RoundedArray keys = halfType ? halfOfKey(score, halfType) : rounded(score.key);
    Value squares = reach[number];
    const SymExpr &count = getSymExpr(picked.extents.back());
    const ScoreFold &of = score;
    auto addSquare = [&](Code &in, Value r, SmallVectorImpl<Code::State> &terms) {
      terms.push_back({Monoid::max, "reach", in.load(squares, placed(head, {r}))});
    };
    auto addSteps = [&](Code &in, Value m, SmallVectorImpl<Code::State> &terms) {
      IRMapping map = mapIndices(head, in.index(0));
      map.map(of.outer.getBody().getArgument(0), m);
      terms.push_back({Monoid::max, "step", loadScale(in, of.key, keys, map)});
      for (const Operand *operand : {&of.row, &of.key})
        if (RoundedArray limited = halfType ? RoundedArray() : rounded(*operand); limited.beyond)
          terms.push_back({Monoid::max, "beyond", in.toReal(in.toIndex(loadBeyond(in, *operand, limited, map)))});
    };
    using Add = llvm::function_ref<void(Code &, Value, SmallVectorImpl<Code::State> &)>;
    auto fold = [&](StringRef name, const SymExpr &extent, ArrayRef<Add> adds) {
      return code.fold(name, extent, [&](Code &in, Value index, Value &there) {
        there = present;
        SmallVector<Code::State> terms;
        for (Add add : adds)
          add(in, index, terms);
        return terms;
      });
    };
    // With one common step there is one fold only, which lanes can share.
    Code::Values most;
    if (keys.across) {
      auto addFirst = [&](Code &in, Value, SmallVectorImpl<Code::State> &terms) { addSteps(in, in.index(0), terms); };
      most = fold("r", count, {addSquare, addFirst});
    } else {
      most = fold("r", count, {addSquare});
      llvm::append_range(most, fold("m", score.outer.getExtent(), {addSteps}));
    }
    Value square = most[0];
    // The step of a key's largest element in 16 bits bounds that of its others. In f16 the loaded
    // value is a power of 2, and elements are below 2^(kTopOfF16 + 1) times it.
    Value step = most[1];
    if (halfType)
      step = code.mul(step,
                      code.real(unitRoundoff(plans[plan - 1]) * (keys.largest ? std::ldexp(1.0, kTopOfF16 + 1) : 1)));
    for (Value beyond : llvm::drop_begin(most, 2)) {
      Value is = code.compare(arith::CmpFPredicate::OGT, beyond, code.real(0));
      errors.beyond = either(code, errors.beyond, is);
    }
    errors.squares.push_back(code.mul(code.mul(step, step), square));
  }
  return errors;
}

} // namespace moa::accuracy
