//===- Extremes.cpp - extremes of parts of an axis ------------------------===//
//
// A scale of an operand less its mean μ needs the largest |x − μ|. Rounding is monotonic, so this
// is max(|fl(max x − μ)|, |fl(min x − μ)|), bit for bit. So extremes do not wait for the mean, and
// one launch computes both.
//
//===----------------------------------------------------------------------===//
#include "lib/Accuracy/Selection/Adapter.h"

using namespace mlir;

namespace moa::accuracy {

Adapter::Extremes Adapter::addExtremes(BlockArgument array, unsigned along, unsigned column, const Extremes::Part &part,
                                       llvm::function_ref<Choice(const Axes &)> where) {
  auto type = cast<ArrayType>(array.getType());
  SmallVector<Attribute> names, extents;
  SmallVector<unsigned> others;
  Axes axes;
  for (auto [axis, extent] : llvm::enumerate(type.getShape()))
    if (axis != along && axis != column) {
      others.push_back(axis);
      axes.push_back(axis);
      names.push_back(editor.text("i" + Twine(axis)));
      extents.push_back(extent);
    }
  names.append({editor.text("p"), editor.text("d")});
  extents.append({editor.expr(part.count), type.getShape()[column]});
  axes.append({std::nullopt, column});
  std::string name = editor.nameOf(array).str();
  Type single = editor.f32();
  Extremes extremes;
  extremes.parts = part.count;
  extremes.high = editor.addTemporary(name + "_high", extents, single);
  extremes.low = editor.addTemporary(name + "_low", extents, single);
  Choice choice = where(axes);
  editor.addNest(names, extents, &choice, [&](Code &code, ValueRange at) {
    ValueRange outer = at.drop_back(2);
    Value number = at[outer.size()];
    Code::Values found = code.fold("t", part.steps, [&](Code &in, Value step, Value &) {
      Value high, low;
      for (int64_t k = 0; k < part.atOnce; ++k) {
        SmallVector<Value> indices(type.getRank());
        for (auto [axis, index] : llvm::zip(others, outer))
          indices[axis] = index;
        indices[column] = at.back();
        indices[along] = part.place(in, number, step, k);
        Value x = in.loadFloat(array, indices);
        high = high ? in.max(high, x) : x;
        low = low ? in.min(low, x) : x;
      }
      return SmallVector<Code::State>{{Monoid::max, "high", high}, {Monoid::min, "low", low}};
    });
    code.store(found[0], extremes.high, at);
    code.store(found[1], extremes.low, at);
  });
  return extremes;
}

Value Adapter::Extremes::largestOf(Code &code, ValueRange others, Value first, int64_t count, Value column,
                                   Value mean) const {
  Value most;
  for (int64_t k = 0; k < count; ++k) {
    Value part = first ? code.add(first, code.index(k)) : code.index(k);
    for (Value array : {high, low}) {
      Value x = code.load(array, placed(others, {part, column}));
      x = code.absolute(mean ? code.sub(x, mean) : x);
      most = most ? code.max(most, x) : x;
    }
  }
  return most;
}

} // namespace moa::accuracy
