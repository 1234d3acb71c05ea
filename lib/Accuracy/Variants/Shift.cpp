//===- Shift.cpp - scores that may be moved by a constant -----------------===//
#include "lib/Accuracy/Variants/Shift.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace moa::accuracy {

namespace {
/// What moves with a value, found by its uses.
class Moved {
public:
  explicit Moved(onf::FoldOp fold) : fold(fold) {}

  bool run(Value value) {
    values.insert(value);
    for (size_t next = 0; next < values.size(); ++next)
      for (OpOperand &use : values[next].getUses())
        if (!follow(use))
          return false;
    // A difference was allowed as one of two values that move.
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
  /// Of a difference both sides move, or the first and the difference.
  bool isSound(OpOperand &use) const {
    auto difference = dyn_cast<arith::SubFOp>(use.getOwner());
    return !difference || (values.contains(difference.getLhs()) &&
                           values.contains(difference.getRhs()) != values.contains(difference.getResult()));
  }

  bool follow(OpOperand &use) {
    Operation *user = use.getOwner();
    if (auto sum = dyn_cast<arith::AddFOp>(user)) {
      // Twice what moves moves twice as far.
      Value other = sum.getOperand(1 - use.getOperandNumber());
      return !values.contains(other) && values.insert(sum.getResult());
    }
    if (auto difference = dyn_cast<arith::SubFOp>(user))
      return followDifference(difference, use);
    if (auto acc = dyn_cast<onf::AccOp>(user))
      return followReference(acc, use);
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

  /// x − y where x moves: y moves too, being a state of what moves, or x − y does.
  bool followDifference(arith::SubFOp difference, OpOperand &use) {
    if (use.getOperandNumber() == 1 || mayMove(difference.getRhs()))
      return true; // judged when everything that moves is known
    values.insert(difference.getResult());
    return true;
  }

  /// Whether this may become one of the values: a state of the fold, or the new value of one in
  /// a repair.
  bool mayMove(Value value) const {
    if (values.contains(value) || value.getDefiningOp<onf::AccOp>())
      return true;
    auto argument = dyn_cast<BlockArgument>(value);
    return argument && isa<onf::AccOp>(argument.getOwner()->getParentOp());
  }

  /// A state that others refer to: their repairs have it before and after.
  bool followReference(onf::AccOp acc, OpOperand &use) {
    for (auto [k, ref] : llvm::enumerate(acc.getRefs()))
      if (ref == use.get()) {
        // The value that leaves the state as it is moves with it only where it is infinite.
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
  Moved moved(fold);
  if (!moved.run(value))
    return std::nullopt;
  return moved.getResults();
}

} // namespace moa::accuracy
