//===- Copies.cpp - copies of loads and nests -----------------------------===//
#include "lib/Accuracy/Selection/Adapter.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;

namespace moa::accuracy {

Value copyOf(Code &at, Value value, IRMapping &map) {
  if (Value known = map.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  if (!op)
    return value;
  SetVector<Value> used(op->operand_begin(), op->operand_end());
  getUsedValuesDefinedAbove(op->getRegions(), used);
  for (Value operand : used)
    copyOf(at, operand, map);
  return at.b.clone(*op, map)->getResult(cast<OpResult>(value).getResultNumber());
}

Places placesWithout(unsigned rank, ArrayRef<unsigned> axes) {
  Places places;
  unsigned next = 0;
  for (unsigned axis = 0; axis < rank; ++axis)
    places.push_back(llvm::is_contained(axes, axis) ? std::nullopt : std::optional<unsigned>(next++));
  return places;
}

Axes axesWithout(unsigned rank, ArrayRef<unsigned> axes) {
  Axes others;
  for (unsigned axis = 0; axis < rank; ++axis)
    if (!llvm::is_contained(axes, axis))
      others.push_back(axis);
  return others;
}

Axes partsOf(Axes axes) {
  axes.push_back(std::nullopt);
  return axes;
}

Value loadAs(Code &at, onf::LoadOp load, Value array, const Places &places, IRMapping &map) {
  ArrayRef<onf::Subscript> from = load.getSubscripts().getAxes();
  // Terms of one axis are sorted by the axes of the new array; others come last.
  struct CopiedTerm {
    unsigned place, number;
    Value value;
  };
  SmallVector<CopiedTerm> list;
  for (auto [number, term] : llvm::enumerate(load.getTerms())) {
    bool isKept = llvm::any_of(llvm::zip_equal(from, places), [&, number = number](auto axis) {
      return std::get<1>(axis) && std::get<0>(axis).factors.count(number);
    });
    auto axis = load.getSubscripts().findAxis(number);
    if (isKept)
      list.push_back({axis ? *places[*axis] : unsigned(places.size()), unsigned(number), copyOf(at, term, map)});
  }
  llvm::stable_sort(list, [](const CopiedTerm &x, const CopiedTerm &y) { return x.place < y.place; });
  auto type = cast<ArrayType>(array.getType());
  std::vector<onf::Subscript> axes(type.getRank());
  for (auto [subscript, place] : llvm::zip_equal(from, places)) {
    if (!place)
      continue;
    axes[*place].constant = subscript.constant;
    for (auto [number, term] : llvm::enumerate(list))
      if (auto factor = subscript.factors.find(term.number); factor != subscript.factors.end())
        axes[*place].factors[number] = factor->second;
  }
  auto terms = llvm::map_to_vector(list, [](const CopiedTerm &term) { return term.value; });
  return at.make<onf::LoadOp>(type.getElementType(), array, terms, onf::SubscriptsAttr::get(type.getContext(), axes));
}

Value loadAt(Code &at, const Operand &operand, Value array, Value k, IRMapping &map) {
  IRMapping here = map;
  here.map(operand.load->getParentOfType<onf::FoldOp>().getBody().getArgument(0), k);
  return loadAs(at, operand.load, array, placesWithout(operand.rank(), {}), here);
}

Value loadScale(Code &at, const Operand &operand, const RoundedArray &rounded, IRMapping &map) {
  SmallVector<unsigned, 2> without{operand.axis};
  if (rounded.across)
    without.push_back(*rounded.across);
  return loadAs(at, operand.load, rounded.scale, placesWithout(operand.rank(), without), map);
}

Value loadBeyond(Code &at, const Operand &operand, const RoundedArray &rounded, IRMapping &map) {
  return loadAs(at, operand.load, rounded.beyond, placesWithout(operand.rank(), {operand.axis, *rounded.across}), map);
}

Value loadLargest(Code &at, const Operand &operand, const RoundedArray &rounded, IRMapping &map) {
  if (!rounded.across)
    return loadScale(at, operand, rounded, map);
  Places places = placesWithout(operand.rank(), {operand.axis, *rounded.across});
  places[*rounded.across] = operand.rank() - 2;
  return loadAs(at, operand.load, rounded.largest, places, map);
}

Chooser::Copy Chooser::copyNest() {
  Copy copy;
  OpBuilder b(nest);
  copy.nest = cast<onf::ForOp>(b.clone(*nest, copy.map));
  copy.row = copy.nest.getBody().getArguments().back();
  return copy;
}

/// Rewrites Σ row·key to f32(Σ row8·key8) · (scale of the key) · (scale of the row). The row's
/// operand is at `rowIndices`, or where the score reads it.
void Adapter::roundScore(Copy &copy, const ScoreFold &score, const RoundedArray &row, ValueRange rowIndices,
                         const RoundedArray &key) {
  auto old = cast<onf::FoldOp>(copy.map.lookup(score.fold.getOperation()));
  auto outer = cast<onf::FoldOp>(old->getParentOp());
  // After the factor, which may be defined after the sum.
  Operation *scaled = score.scaled ? copy.map.lookup(score.scaled.getOperation()) : nullptr;
  Code code(kernel, OpBuilder(scaled ? scaled : old), old.getLoc());
  Value sum = code.fold(old.getName(), old.getExtent(), [&](Code &at, Value k, Value &) {
    SmallVector<Value> indices(rowIndices);
    indices.push_back(k);
    Value x = rowIndices.empty() ? loadAt(at, score.row, row.data, k, copy.map) : at.load(row.data, indices);
    Value y = loadAt(at, score.key, key.data, k, copy.map);
    Value keyFactor = at.toIndex(y), rowFactor = at.toIndex(x);
    Value product = at.mul(rowFactor, keyFactor);
    return SmallVector<Code::State>{{Monoid::add, "add", product}};
  })[0];
  // Factors of the row alone are hoisted before the fold.
  Value index = score.fold.getBody().getArgument(0);
  bool isFree = llvm::all_of(score.row.load.getTerms(), [&](Value term) {
    Operation *op = copy.map.lookupOrDefault(term).getDefiningOp();
    return term == index || !op || !outer->isAncestor(op);
  });
  bool isCommon = isFree && key.across;
  Value keyScale = isCommon ? Value() : loadScale(code, score.key, key, copy.map);
  Value product = code.toReal(sum);
  if (keyScale)
    product = code.mul(product, keyScale);
  Code front(kernel, isFree ? OpBuilder(outer) : code.b, old.getLoc());
  Value scale =
      rowIndices.empty() || row.across ? loadScale(front, score.row, row, copy.map) : front.load(row.scale, rowIndices);
  if (isCommon)
    scale = front.mul(scale, loadScale(front, score.key, key, copy.map));
  Value factor = score.factor ? copy.map.lookupOrDefault(score.factor) : Value();
  if (factor)
    scale = front.mul(scale, factor);
  if (!isFree)
    code.b = front.b;
  Value value = code.mul(product, scale);
  if (Value shift = shifts.lookup(&score)) {
    // The shift is indexed by original rows.
    SmallVector<Value> indices(copy.nest.getBody().getArguments());
    Code first(kernel, OpBuilder(outer), old.getLoc());
    indices.back() = copy.row;
    Value moved = first.load(shift, indices);
    if (factor)
      moved = first.mul(moved, factor);
    if (score.moved) {
      first.b.setInsertionPointAfter(outer);
      for (unsigned number : *score.moved) {
        Value result = outer.getResult(number);
        Value withMoved = first.add(result, moved);
        result.replaceAllUsesExcept(withMoved, withMoved.getDefiningOp());
        Value &all = copy.moved[number];
        if (all)
          first.b.setInsertionPoint(outer);
        all = all ? first.add(all, moved) : moved;
        first.b.setInsertionPointAfter(outer);
      }
    } else {
      value = code.add(value, moved);
    }
  }
  copy.map.lookup(score.value).replaceAllUsesWith(value);
  if (score.scaled)
    copy.map.lookup(score.scaled.getOperation())->erase();
  old.erase();
}

void Chooser::readSampledRows(Copy &copy, const ScoreFold &score, Value gathered) {
  auto load = cast<onf::LoadOp>(copy.map.lookup(score.row.load.getOperation()));
  auto fold = cast<onf::FoldOp>(load->getParentOp());
  Code code(kernel, OpBuilder(load), load.getLoc());
  SmallVector<Value> indices(copy.nest.getBody().getArguments());
  indices.push_back(fold.getBody().getArgument(0));
  load.getResult().replaceAllUsesWith(code.load(gathered, indices));
  load.erase();
}

} // namespace moa::accuracy
