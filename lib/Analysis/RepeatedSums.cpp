//===- RepeatedSums.cpp - repeated sums of products -----------------------===//
#include "lib/Analysis/RepeatedSums.h"
#include "dialects/ONF/IR/Hints.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;

namespace moa {
using namespace moa::onf;

/// Visits the backward slice of a value; `enter` returns false to stop at an operation.
static void walkBackwards(Value value, llvm::function_ref<bool(Value)> enter) {
  SmallVector<Value> work{value};
  llvm::SmallPtrSet<void *, 16> seen;
  while (!work.empty()) {
    Value next = work.pop_back_val();
    if (!seen.insert(next.getAsOpaquePointer()).second || !enter(next))
      continue;
    if (Operation *op = next.getDefiningOp())
      op->walk([&](Operation *inner) { work.append(inner->operand_begin(), inner->operand_end()); });
  }
}

/// Collects the factors through products, their sums, masks, roundings and extensions.
RepeatedSums::Factors RepeatedSums::read(AccOp sum) {
  Factors factors{sum, {}};
  auto yield = cast<YieldOp>(sum.getValue().front().getTerminator());
  walkBackwards(yield.getValues()[0], [&](Value value) {
    Operation *op = value.getDefiningOp();
    auto load = dyn_cast_or_null<LoadOp>(op);
    if (load && load.getResult().getType().isBF16()) {
      factors.arrays.insert(load.getArray());
      return false;
    }
    if (isa_and_nonnull<arith::ConstantOp>(op) || value.getType().isInteger(1))
      return false;
    factors.isProduct |= isa_and_nonnull<arith::MulFOp>(op);
    bool isPart = isa_and_nonnull<arith::MulFOp, arith::DivFOp, arith::AddFOp, arith::SubFOp, arith::NegFOp,
                                  arith::SelectOp, arith::ExtFOp, arith::TruncFOp>(op);
    factors.areComputed |= !isPart;
    return isPart;
  });
  return factors;
}

RepeatedSums::RepeatedSums(onf::KernelOp kernel) {
  kernel.walk([&](AccOp acc) {
    if (acc.getMonoid() != Monoid::add || !acc->getParentOfType<FoldOp>())
      return;
    if (Factors factors = read(acc); factors.isProduct && !factors.arrays.empty())
      sums.push_back(factors);
  });
  llvm::SmallPtrSet<Operation *, 4> ofGuards;
  kernel.walk([&](GuardOp guard) {
    auto fold = guard->getParentOfType<FoldOp>();
    walkBackwards(guard.getCondition(), [&](Value value) {
      Operation *op = value.getDefiningOp();
      if (!op || !fold->isProperAncestor(op))
        return false;
      op->walk([&](AccOp acc) { ofGuards.insert(acc); });
      return true;
    });
  });
  for (Factors &factors : sums)
    factors.isOfGuard = ofGuards.contains(factors.sum);
}

/// Returns true if a sum with the factors `other` may equal `sum`.
bool RepeatedSums::mayEqual(const Factors &sum, const Factors &other) {
  bool isOfOne = sum.arrays.size() == 1 && sum.areComputed;
  return llvm::all_of(sum.arrays, [&](Value array) { return other.arrays.contains(array); }) &&
         (!isOfOne || other.areComputed);
}

bool RepeatedSums::contains(AccOp sum) const {
  if (auto isAlone = sum->getAttrOfType<BoolAttr>(kAloneAttr))
    return !isAlone.getValue();
  auto it = llvm::find_if(sums, [&](const Factors &factors) { return factors.sum == sum; });
  if (it == sums.end())
    return false;
  auto fold = sum->getParentOfType<FoldOp>();
  return llvm::any_of(sums, [&](const Factors &factors) {
    auto other = factors.sum->getParentOfType<FoldOp>();
    bool isApart = !other->isAncestor(fold) && !fold->isAncestor(other);
    return (isApart || factors.isOfGuard) && mayEqual(*it, factors);
  });
}

void RepeatedSums::note(onf::KernelOp kernel) {
  RepeatedSums repeated(kernel);
  Builder b(kernel.getContext());
  SmallVector<bool> are;
  for (const Factors &factors : repeated.sums)
    are.push_back(repeated.contains(factors.sum));
  for (auto [factors, is] : llvm::zip_equal(repeated.sums, are))
    factors.sum->setAttr(kAloneAttr, b.getBoolAttr(!is));
}

} // namespace moa
