//===- Operands.cpp - operands in fewer bits ------------------------------===//
#include "lib/Precision/Adapter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace moa::precision {

/// The largest magnitude of a rounded element, in steps.
static constexpr double kSteps = 127;

/// The mean of the keys over a part of them: any vector is as exact (law B1), and the mean of
/// all is no better where keys are alike. 0 where it is not large.
Mean Adapter::addMean(BlockArgument keys, unsigned axis, bool ifLarge) {
  auto type = cast<ArrayType>(keys.getType());
  SmallVector<Attribute> names, extents;
  for (auto [k, extent] : llvm::enumerate(type.getShape()))
    if (k != axis) {
      names.push_back(editor.text("i" + Twine(k)));
      extents.push_back(extent);
    }
  std::string name = kernel.getArrayName(keys.getArgNumber()).str() + "_mean";
  Mean mean{editor.addTemporary(name, extents, Builder(kernel.getContext()).getF32Type()), axis};
  editor.addNest(names, extents, &tried, [&](Code &code, ValueRange others) {
    Value count = code.extent(type.getExtent(mean.axis));
    Code::Values sums = code.fold("p", SymExpr(kSample), [&](Code &at, Value p, Value &) {
      SmallVector<Value> indices(others);
      Value place = at.make<arith::MulIOp>(p, count);
      indices.insert(indices.begin() + mean.axis, at.make<arith::FloorDivSIOp>(place, at.index(kSample)));
      Value x = at.loadFloat(keys, indices);
      SmallVector<Code::Term> terms{{Monoid::add, "sum", x}};
      if (ifLarge)
        terms.push_back({Monoid::add, "squares", at.make<arith::MulFOp>(x, x)});
      return terms;
    });
    Value value = code.make<arith::MulFOp>(sums[0], code.real(1.0 / kSample));
    if (!ifLarge)
      return code.store(value, mean.array, others);
    // Tensor cores add products of 8-bit floats with few bits, which a vector of no use would take: 0 where
    // the mean is less than half of the root mean square, as that of 64 elements without one is.
    Value square = code.make<arith::MulFOp>(code.make<arith::MulFOp>(value, value), code.real(4.0 * kSample));
    Value isLarge = code.make<arith::CmpFOp>(arith::CmpFPredicate::UGE, square, sums[1]); // or NaN
    code.store(code.make<arith::SelectOp>(isLarge, value, code.real(0)), mean.array, others);
  });
  return mean;
}

/// c(i) = Σ_k row(i, k) · mean(k), at every index of the nest.
Value Adapter::addShift(const Score &score, const Mean &mean) {
  SmallVector<Attribute> names(nest.getNames().begin(), nest.getNames().end());
  SmallVector<Attribute> extents(nest.getExtents().begin(), nest.getExtents().end());
  std::string name = kernel.getArrayName(score.row.array().getArgNumber()).str() + "_shift";
  Value array = editor.addTemporary(name, extents, Builder(kernel.getContext()).getF32Type());
  editor.addNest(names, extents, &tried, [&](Code &code, ValueRange indices) {
    IRMapping map;
    map.map(nest.getBody().getArguments(), indices);
    SymExpr extent = *SymExpr::parse(score.fold.getExtent());
    // The mean has no axis for j.
    Value sum = code.fold("k", extent, [&](Code &at, Value k, Value &) {
      Value x = at.widen(loadAt(at, score.row, score.row.array(), k, map));
      IRMapping here = map;
      here.map(score.fold.getBody().getArgument(0), k);
      Value y = loadAs(at, score.key.load, mean.array, placesWithout(score.key.rank(), {mean.axis}), here);
      return SmallVector<Code::Term>{{Monoid::add, "shift", at.make<arith::MulFOp>(x, y)}};
    })[0];
    code.store(sum, array, indices);
  });
  return array;
}

/// The axis of the row's operand that the rows of the nest run over, if it is one of its own.
std::optional<unsigned> Adapter::rowAxisOf(const Score &score) {
  Value row = nest.getBody().front().getArguments().back();
  onf::LoadOp load = score.row.load;
  std::optional<unsigned> found;
  for (auto [axis, term] : llvm::enumerate(load.getTerms()))
    if (term == row) {
      auto stride = cast<StringAttr>(load.getCoefficients()[axis]).getValue();
      if (found || load.getTerms().size() != score.row.rank() ||
          stride != (kernel.getArrayName(score.row.array().getArgNumber()) + ".s" + Twine(axis)).str())
        return std::nullopt;
      found = axis;
    }
  return found;
}

/// x = scale · x̂ with |x̂| ≤ 127, the scale of a row, or of the rows along `across`, its largest
/// magnitude / 127, or 1; x less its mean where there is one.
Rounded Adapter::addRounded(Value array, unsigned axis, const Mean *mean, std::optional<unsigned> across) {
  auto type = cast<ArrayType>(array.getType());
  StringRef name = kernel.getArrayName(cast<BlockArgument>(array).getArgNumber());
  Builder b(kernel.getContext());
  SmallVector<Attribute> names, extents, all(type.getShape().begin(), type.getShape().end());
  for (auto [k, extent] : llvm::enumerate(all))
    if (k != axis) {
      names.push_back(editor.text("i" + Twine(k)));
      extents.push_back(extent);
    }
  std::string data = (name + "_i8").str(), scale = (name + "_scale").str();
  Rounded result;
  result.data = editor.addTemporary(data, all, b.getI8Type());
  result.across = across;
  // The axes of the scales, and those of the rows with that of `across` last.
  SmallVector<Attribute> scaleNames(names), scaleExtents(extents), lastNames(names), lastExtents(extents);
  unsigned place = across ? *across - (*across > axis) : 0;
  if (across)
    for (auto *list : {&scaleNames, &scaleExtents})
      list->erase(list->begin() + place);
  auto lastOf = [&](auto list) {
    auto moved = list[place];
    list.erase(list.begin() + place);
    list.push_back(moved);
    return list;
  };
  if (across)
    result.largest = editor.addTemporary((name + "_largest").str(), lastOf(extents), b.getF32Type());
  result.scale = editor.addTemporary(scale, scaleExtents, b.getF32Type());
  // The step of a magnitude and its inverse; a NaN remains one.
  auto stepOf = [&](Code &code, Value largest) {
    Value isZero = code.make<arith::CmpFOp>(arith::CmpFPredicate::OEQ, largest, code.real(0));
    Value steps = code.real(kSteps), one = code.real(1);
    Value step = code.make<arith::SelectOp>(isZero, one, code.make<arith::DivFOp>(largest, steps));
    return std::pair(step, Value(code.make<arith::SelectOp>(isZero, one, code.make<arith::DivFOp>(steps, largest))));
  };
  auto addRows = [&](bool isFirst) {
  editor.addNest(names, extents, &tried, [&](Code &code, ValueRange rowIndices) {
    auto element = [&](Code &at, Value k) {
      SmallVector<Value> indices(rowIndices);
      indices.insert(indices.begin() + axis, k);
      return indices;
    };
    auto read = [&](Code &at, Value k) {
      SmallVector<Value> indices = element(at, k);
      Value x = at.loadFloat(array, indices);
      if (!mean)
        return x;
      indices.erase(indices.begin() + mean->axis);
      return at.make<arith::SubFOp>(x, at.load(mean->array, indices));
    };
    Value inverse;
    SmallVector<Value> others(rowIndices);
    if (isFirst) {
      Value largest = code.fold("k", type.getExtent(axis), [&](Code &at, Value k, Value &) {
        Value x = read(at, k);
        return SmallVector<Code::Term>{{Monoid::max, "largest", at.make<math::AbsFOp>(x)}};
      })[0];
      if (across)
        return code.store(largest, result.largest, lastOf(others));
      auto [step, back] = stepOf(code, largest);
      code.store(step, result.scale, rowIndices);
      inverse = back;
    } else {
      others.erase(others.begin() + place);
      inverse = code.make<arith::DivFOp>(code.real(1), code.load(result.scale, others));
    }
    code.loops({editor.text("k")}, {all[axis]}, [&](Code &at, ValueRange k) {
      Value x = read(at, k[0]);
      Value scaled = at.make<arith::MulFOp>(x, inverse);
      Value nearest = at.make<math::FloorOp>(at.make<arith::AddFOp>(scaled, at.real(0.5)));
      nearest = at.make<arith::MaximumFOp>(at.make<arith::MinimumFOp>(nearest, at.real(kSteps)), at.real(-kSteps));
      auto whole = arith::FPToSIOp::create(at.b, at.loc, at.b.getI8Type(), nearest);
      whole->setAttr("moa.round", at.b.getUnitAttr());
      at.store(at.toIndex(whole), result.data, element(at, k[0]));
    });
  });
  };
  addRows(/*isFirst=*/true);
  if (!across)
    return result;
  editor.addNest(scaleNames, scaleExtents, &tried, [&](Code &code, ValueRange others) {
    Value largest = code.fold("i", type.getExtent(*across), [&](Code &at, Value i, Value &) {
      SmallVector<Value> indices(others);
      indices.push_back(i);
      return SmallVector<Code::Term>{{Monoid::max, "largest", at.load(result.largest, indices)}};
    })[0];
    code.store(stepOf(code, largest).first, result.scale, others);
  });
  addRows(/*isFirst=*/false);
  return result;
}

} // namespace moa::precision
