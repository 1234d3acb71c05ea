//===- Candidates.cpp - scores and weighted sums of a nest ----------------===//
#include "lib/Accuracy/Selection/Candidates.h"
#include "lib/Accuracy/Variants/Shift.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;

namespace moa::accuracy {

BlockArgument Operand::array() const { return cast<BlockArgument>(load.getArray()); }

bool collectIndices(Value value, llvm::SmallPtrSetImpl<Value> &indices) {
  Operation *op = value.getDefiningOp();
  if (!op) {
    if (value.getType().isIndex())
      indices.insert(value);
    return true;
  }
  return op->getNumRegions() == 0 &&
         llvm::all_of(op->getOperands(), [&](Value operand) { return collectIndices(operand, indices); });
}

Value getTerm(onf::AccOp acc) { return cast<onf::YieldOp>(acc.getValue().front().getTerminator()).getValues()[0]; }

onf::LoadOp getElement(Value factor) {
  while (auto widened = factor.getDefiningOp<arith::ExtFOp>())
    factor = widened.getIn();
  return factor.getDefiningOp<onf::LoadOp>();
}

std::optional<unsigned> findAxis(onf::LoadOp load, Value index, ExprAttr extent) {
  std::optional<unsigned> found;
  for (auto [axis, size] : llvm::enumerate(load.getArray().getType().getShape())) {
    LinearIndex place = load.getIndex(axis);
    if (!place.terms.contains(index))
      continue;
    if (found || place.getValue() != index || size != extent)
      return std::nullopt;
    found = axis;
  }
  return found;
}

/// Returns the operand of a contraction over the index of `fold`, which must run over an axis of an
/// input.
static std::optional<Operand> findOperand(Value factor, onf::FoldOp fold) {
  onf::LoadOp load = getElement(factor);
  if (!load || !isa<FloatType>(load.getResult().getType()))
    return std::nullopt;
  auto kernel = load->getParentOfType<onf::KernelOp>();
  auto array = dyn_cast<BlockArgument>(load.getArray());
  if (!array || !kernel.isInput(array.getArgNumber()))
    return std::nullopt;
  Value index = fold.getBody().getArgument(0);
  // Other terms must be defined outside of the fold, because the replacement of the load is.
  for (Value term : load.getTerms())
    if (Operation *op = term.getDefiningOp(); op && fold->isAncestor(op))
      return std::nullopt;
  auto axis = findAxis(load, index, fold.getExtentAttr());
  if (!axis)
    return std::nullopt;
  return Operand{load, *axis};
}

static bool movesWith(const Operand &operand, Value with, Value without) {
  llvm::SmallPtrSet<Value, 8> indices;
  for (Value term : operand.load.getTerms())
    if (!collectIndices(term, indices))
      return false;
  return indices.contains(with) && !indices.contains(without);
}

static std::optional<ScoreFold> findScore(onf::FoldOp fold, onf::FoldOp outer, Value row, OnDemand &onDemand) {
  auto length = fold.getExtent().getConstant();
  auto accs = fold.getBody().getOps<onf::AccOp>();
  if (!length || *length < 1 || *length > kMostTerms || !llvm::hasSingleElement(accs) ||
      !fold.getBody().getOps<onf::GuardOp>().empty())
    return std::nullopt;
  onf::AccOp acc = *accs.begin();
  if (acc.getMonoid() != Monoid::add || !acc.getExtents().empty() || !acc.getRefs().empty() ||
      !acc.getResult().getType().isF32())
    return std::nullopt;
  auto product = getTerm(acc).getDefiningOp<arith::MulFOp>();
  if (!product)
    return std::nullopt;
  auto x = findOperand(product.getLhs(), fold), y = findOperand(product.getRhs(), fold);
  if (!x || !y)
    return std::nullopt;
  Value key = outer.getBody().getArgument(0);
  if (!movesWith(*x, row, key))
    std::swap(x, y);
  if (!movesWith(*x, row, key) || !movesWith(*y, key, row) || !onDemand.isInBounds(x->load))
    return std::nullopt;
  ScoreFold score{outer, fold, *x, *y, {}, fold.getResult(0), {}, {}, {}};
  bool isAlone = llvm::none_of(y->load.getTerms(), [&](Value term) {
    llvm::SmallPtrSet<Value, 8> indices;
    return term != key && (!collectIndices(term, indices) || indices.contains(key));
  });
  if (isAlone)
    score.keyAxis = findAxis(y->load, key, outer.getExtentAttr());
  if (auto scaled = score.value.hasOneUse() ? dyn_cast<arith::MulFOp>(*score.value.user_begin()) : arith::MulFOp()) {
    Value factor = scaled.getLhs() == score.value ? scaled.getRhs() : scaled.getLhs();
    Operation *op = factor.getDefiningOp();
    if (op && !outer->isAncestor(op)) {
      score.scaled = scaled;
      score.value = scaled.getResult();
      score.factor = factor;
    }
  }
  score.moved = findMoved(outer, score.value);
  return score;
}

SmallVector<ScoreFold> findScores(onf::ForOp nest, OnDemand &onDemand) {
  SmallVector<ScoreFold> scores;
  if (nest.getExtents().empty())
    return scores;
  Value row = nest.getBody().front().getArguments().back();
  for (auto outer : nest.getBody().getOps<onf::FoldOp>())
    for (auto fold : outer.getBody().getOps<onf::FoldOp>())
      if (auto score = findScore(fold, outer, row, onDemand))
        scores.push_back(*score);
  return scores;
}

//===----------------------------------------------------------------------===//
// Weighted sums
//===----------------------------------------------------------------------===//

/// Returns true if the weight is e^(x − max x), at most 1.
static bool isNormalised(Value weight, onf::FoldOp outer) {
  auto exp = weight.getDefiningOp();
  if (!isa_and_nonnull<math::ExpOp, math::Exp2Op>(exp))
    return false;
  auto difference = exp->getOperand(0).getDefiningOp<arith::SubFOp>();
  auto most = difference ? difference.getRhs().getDefiningOp<onf::AccOp>() : onf::AccOp();
  return most && most->getParentOp() == outer && most.getMonoid() == Monoid::max && most.getRefs().empty() &&
         getTerm(most) == difference.getLhs();
}

static std::optional<WeightedSum> findWeightedSum(onf::AccOp acc, onf::FoldOp outer, Value row, OnDemand &onDemand,
                                                  bool anyWeights) {
  auto array = dyn_cast<ArrayType>(acc.getResult().getType());
  if (!array || array.getRank() != 1 || !array.getElementType().isF32() || acc.getMonoid() != Monoid::add ||
      acc.getCombine() != ScalarFn::mul || !acc.getOthers().empty())
    return std::nullopt;
  auto product = getTerm(acc).getDefiningOp<arith::MulFOp>();
  if (!product)
    return std::nullopt;
  Value weight = product.getLhs(), value = product.getRhs();
  if (!isNormalised(weight, outer))
    std::swap(weight, value);
  bool isShare = isNormalised(weight, outer);
  // Without a softmax weight, the value is the element along the axis.
  auto isAlong = [&](Value factor) {
    onf::LoadOp element = getElement(factor);
    return element && llvm::is_contained(element.getTerms(), acc.getValue().getArgument(0));
  };
  if (!isShare && !isAlong(value))
    std::swap(weight, value);
  onf::LoadOp load = getElement(value);
  auto source = load ? dyn_cast<BlockArgument>(load.getArray()) : BlockArgument();
  auto kernel = acc->getParentOfType<onf::KernelOp>();
  bool isWeight = isShare || (anyWeights && !getElement(weight) && weight.getParentRegion() == &outer.getBody());
  if (!isWeight || !source || !kernel.isInput(source.getArgNumber()) || !isa<FloatType>(load.getResult().getType()) ||
      !onDemand.isInBounds(load))
    return std::nullopt;
  // All other indices of the values are defined before the fold and do not depend on the row.
  Value key = outer.getBody().getArgument(0), column = acc.getValue().getArgument(0);
  for (Value term : load.getTerms()) {
    llvm::SmallPtrSet<Value, 8> indices;
    Operation *op = term.getDefiningOp();
    if (term != key && term != column &&
        (!collectIndices(term, indices) || indices.contains(row) || (op && outer->isAncestor(op)) ||
         indices.contains(key) || indices.contains(column)))
      return std::nullopt;
  }
  auto keyAxis = findAxis(load, key, outer.getExtentAttr());
  auto axis = findAxis(load, column, cast<ExprAttr>(acc.getExtents()[0]));
  if (!keyAxis || !axis)
    return std::nullopt;
  WeightedSum weighted{outer, acc, load, *keyAxis, *axis, weight, isShare, {}, 0};
  for (auto [k, state] : llvm::enumerate(outer.getBody().front().getTerminator()->getOperands())) {
    auto other = state.getDefiningOp<onf::AccOp>();
    if (other == acc)
      weighted.result = k;
    else if (other.getMonoid() == Monoid::add && other.getExtents().empty() && other.getOthers().empty() &&
             other.getRefs() == acc.getRefs() && getTerm(other) == weight)
      weighted.total = k;
  }
  bool isRead = llvm::all_of(outer.getResult(weighted.result).getUsers(), llvm::IsaPred<onf::AtOp>);
  return isRead ? std::optional(weighted) : std::nullopt;
}

SmallVector<WeightedSum> findWeightedSums(onf::ForOp nest, OnDemand &onDemand, bool anyWeights) {
  SmallVector<WeightedSum> weightedSums;
  if (nest.getExtents().empty())
    return weightedSums;
  Value row = nest.getBody().front().getArguments().back();
  for (auto outer : nest.getBody().getOps<onf::FoldOp>())
    for (auto acc : outer.getBody().getOps<onf::AccOp>())
      if (auto weighted = findWeightedSum(acc, outer, row, onDemand, anyWeights))
        weightedSums.push_back(*weighted);
  return weightedSums;
}

} // namespace moa::accuracy
