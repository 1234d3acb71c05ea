//===- Shift.cpp - scores shifted by a constant ---------------------------===//
#include "lib/Accuracy/Variants/Shift.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace moa::accuracy {

namespace {
/// The values that move with a value, found by following uses.
class MovedValues {
public:
  explicit MovedValues(onf::FoldOp fold) : fold(fold) {}

  bool run(Value value) {
    values.insert(value);
    for (size_t next = 0; next < values.size(); ++next)
      for (OpOperand &use : values[next].getUses())
        if (!follow(use))
          return false;
    // followDifference accepted differences of values that might move; now it is known whether they
    // do.
    return llvm::all_of(values, [&](Value moved) {
      return llvm::all_of(moved.getUses(), [&](OpOperand &use) { return isSound(use); });
    });
  }
  SmallVector<unsigned> getResults() {
    SmallVector<unsigned> results;
    for (auto [k, state] : llvm::enumerate(fold.getBody().front().getTerminator()->getOperands()))
      if (values.contains(state))
        results.push_back(k);
    return results;
  }

private:
  /// In a difference, both sides move, or the left side and the result.
  bool isSound(OpOperand &use) const {
    auto difference = dyn_cast<arith::SubFOp>(use.getOwner());
    return !difference || (values.contains(difference.getLhs()) &&
                           values.contains(difference.getRhs()) != values.contains(difference.getResult()));
  }

  bool follow(OpOperand &use) {
    Operation *user = use.getOwner();
    if (auto sum = dyn_cast<arith::AddFOp>(user)) {
      // s + s would move by 2c.
      Value other = sum.getOperand(1 - use.getOperandNumber());
      return !values.contains(other) && values.insert(sum.getResult());
    }
    if (auto difference = dyn_cast<arith::SubFOp>(user))
      return followDifference(difference, use);
    if (auto acc = dyn_cast<onf::AccOp>(user))
      return followPivot(acc, use);
    if (!isa<onf::YieldOp>(user))
      return false;
    if (user->getParentOp() == fold)
      return true;
    auto acc = dyn_cast<onf::AccOp>(user->getParentOp());
    bool isExtreme = acc && acc->getParentOp() == fold && acc.getRefs().empty() && acc.getExtents().empty() &&
                     (acc.getMonoid() == Monoid::max || acc.getMonoid() == Monoid::min) &&
                     user->getParentRegion() == &acc.getValue();
    if (isExtreme)
      values.insert(acc.getResult());
    return isExtreme;
  }

  /// x − y where x moves: either y is a state and moves too, or the result moves.
  bool followDifference(arith::SubFOp difference, OpOperand &use) {
    if (use.getOperandNumber() == 1 || mayMove(difference.getRhs()))
      return true; // checked by isSound
    values.insert(difference.getResult());
    return true;
  }

  /// Returns true if the value is a state, or a state's argument in a rescale, so that it may move.
  bool mayMove(Value value) const {
    if (values.contains(value) || value.getDefiningOp<onf::AccOp>())
      return true;
    auto argument = dyn_cast<BlockArgument>(value);
    return argument && isa<onf::AccOp>(argument.getOwner()->getParentOp());
  }

  /// The pivot of other states: their rescales have its old and its new value.
  bool followPivot(onf::AccOp acc, OpOperand &use) {
    for (auto [k, ref] : llvm::enumerate(acc.getRefs()))
      if (ref == use.get()) {
        // A finite singular value would not move.
        if (cast<FloatAttr>(acc.getSingular()[k]).getValue().isFinite())
          return false;
        for (unsigned side : {0, 1})
          values.insert(acc.getRepair().getArgument(2 * k + side));
      }
    return !llvm::is_contained(acc.getOthers(), use.get());
  }

  onf::FoldOp fold;
  llvm::SetVector<Value> values;
};
} // namespace

std::optional<SmallVector<unsigned>> findMoved(onf::FoldOp fold, Value value) {
  MovedValues moved(fold);
  if (!moved.run(value))
    return std::nullopt;
  return moved.getResults();
}

} // namespace moa::accuracy
