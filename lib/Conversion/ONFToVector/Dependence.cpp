//===- Dependence.cpp - the loop indices a value depends on ---------------===//
#include "lib/Conversion/ONFToVector/Dependence.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace moa;

namespace moa::rows {
using namespace moa::onf;

GuardOp getGuard(FoldOp fold) {
  for (Operation &op : fold.getBody().front())
    if (auto guard = dyn_cast<GuardOp>(op))
      return guard;
  return GuardOp();
}

SmallVector<AccOp> getAccs(FoldOp fold) { return llvm::to_vector(fold.getBody().front().getOps<AccOp>()); }

Value getYielded(Region &region) { return cast<YieldOp>(region.front().back()).getValues()[0]; }

SplitTerm splitTerm(AccOp acc, Value key) {
  Value term = getYielded(acc.getValue());
  Operation *op = term.getDefiningOp();
  bool isOfTwo = acc.getMonoid() == Monoid::max   ? isa_and_nonnull<arith::MaximumFOp>(op)
                 : acc.getMonoid() == Monoid::min ? isa_and_nonnull<arith::MinimumFOp>(op)
                                                  : false;
  if (!isOfTwo || !acc.getRefs().empty())
    return {term, Value()};
  Dependence deps;
  for (unsigned k : {0, 1})
    if (deps.on(op->getOperand(k), key) && !deps.on(op->getOperand(1 - k), key))
      return {op->getOperand(k), op->getOperand(1 - k)};
  return {term, Value()};
}

bool roundsOperands(AccOp acc) {
  if (!acc.getOperandType())
    return false;
  auto narrow = dyn_cast<FloatType>(*acc.getOperandType());
  auto type = dyn_cast<FloatType>(getYielded(acc.getValue()).getType());
  return narrow && type && narrow.getWidth() < type.getWidth();
}

bool isPureSum(AccOp acc) {
  Type element = acc.getResult().getType();
  if (auto array = dyn_cast<ArrayType>(element))
    element = array.getElementType();
  return acc.getMonoid() == Monoid::add && isa<FloatType>(element) && acc.getOthers().empty() &&
         (acc.getRefs().empty() || acc.getCombine() == ScalarFn::mul) &&
         llvm::all_of(acc.getResult().getUsers(), [](Operation *user) { return isa<YieldOp>(user); });
}

LoadOp getReadElement(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (auto load = dyn_cast<LoadOp>(op))
      return load;
    if (!isa<arith::ExtFOp, arith::ExtSIOp, arith::ExtUIOp, arith::IndexCastOp>(op))
      return LoadOp();
    value = op->getOperand(0);
  }
  return LoadOp();
}

const Dependence::Set &Dependence::of(Value value) {
  auto found = sets.find(value);
  if (found != sets.end())
    return found->second;
  Set set = compute(value);
  return sets[value] = std::move(set);
}

Dependence::Set Dependence::computeState(AccOp acc) {
  Set set = of(getYielded(acc.getValue()));
  for (BlockArgument arg : acc.getValue().getArguments())
    set.erase(arg);
  for (ValueRange states : {acc.getRefs(), acc.getOthers()})
    for (Value state : states)
      set.insert(of(state).begin(), of(state).end());
  if (!acc.getRepair().empty()) {
    for (Value value : acc.getRepair().front().getTerminator()->getOperands()) {
      const Set &rescale = of(value);
      set.insert(rescale.begin(), rescale.end());
    }
    for (BlockArgument arg : acc.getRepair().getArguments())
      set.erase(arg);
  }
  auto fold = cast<FoldOp>(acc->getParentOp());
  if (GuardOp guard = getGuard(fold)) {
    const Set &condition = of(guard.getCondition());
    set.insert(condition.begin(), condition.end());
  }
  return set;
}

Dependence::Set Dependence::compute(Value value) {
  Set set;
  Operation *op = value.getDefiningOp();
  if (!op) {
    if (!isa<ArrayType>(value.getType()))
      set.insert(value);
    return set;
  }
  if (auto acc = dyn_cast<AccOp>(op))
    return computeState(acc);
  if (auto fold = dyn_cast<FoldOp>(op)) {
    unsigned number = cast<OpResult>(value).getResultNumber();
    SmallVector<AccOp> accs = getAccs(fold);
    // A nested fold computes all of its states at once, so each result depends on the indices of
    // all.
    if (!isa<FoldOp>(fold->getParentOp()))
      set = of(accs[number].getResult());
    else
      for (AccOp acc : accs)
        set.insert(of(acc.getResult()).begin(), of(acc.getResult()).end());
    set.erase(fold.getBody().getArgument(0));
    auto found = extra.find(value);
    if (found != extra.end())
      set.insert(found->second.begin(), found->second.end());
    return set;
  }
  for (Value operand : op->getOperands())
    set.insert(of(operand).begin(), of(operand).end());
  return set;
}

} // namespace moa::rows
