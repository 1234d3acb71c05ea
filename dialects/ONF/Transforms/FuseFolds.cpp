//===- FuseFolds.cpp - fuse folds over one range --------------------------===//
//
// Tupling: (⊕/f, ⊗/g) = (⊕×⊗)/⟨f, g⟩, the banana-split law of Meijer, Fokkinga and Paterson (1991).
// If neither of two folds over the same indices needs the other's result, one fold carries the
// states of both (loop fusion). Common operands are read once, and the loads of both overlap. The
// pass also removes equal values that a nest computes or loads in one block (CSE).
//
//===----------------------------------------------------------------------===//
#include "dialects/ONF/IR/ONF.h"
#include "dialects/ONF/Transforms/Passes.h"
#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;

namespace moa::onf {

#define GEN_PASS_DEF_ONFFUSEFOLDS
#include "dialects/ONF/Transforms/ONFPasses.h.inc"

namespace {
Value guardOf(FoldOp fold) {
  auto guards = fold.getBody().getOps<GuardOp>();
  return guards.empty() ? Value() : (*guards.begin()).getCondition();
}

/// Returns true for a fold without inner folds (contractions) and without a guard that depends on
/// the fold's index.
bool isPlain(FoldOp fold) {
  Value guard = guardOf(fold);
  return !fold.getPieces() && !fold.getLift() && fold->getDiscardableAttrs().empty() &&
         fold.getBody().getOps<FoldOp>().empty() && (!guard || guard.getParentBlock() == fold->getBlock());
}

/// Returns the axes of the nest that a load's address depends on.
llvm::SmallBitVector axesOf(LoadOp load, ForOp nest) {
  llvm::SmallBitVector axes(nest.getBody().getNumArguments());
  llvm::SetVector<Value> open(load.getTerms().begin(), load.getTerms().end());
  for (size_t k = 0; k < open.size(); ++k) {
    auto argument = dyn_cast<BlockArgument>(open[k]);
    if (argument && argument.getOwner() == &nest.getBody().front())
      axes.set(argument.getArgNumber());
    if (Operation *op = open[k].getDefiningOp())
      open.insert(op->operand_begin(), op->operand_end());
  }
  return axes;
}

/// Returns true if one fold has a load that varies along an axis of the nest along which the other
/// one's does not, and conversely. Fused, both would be taken for a product of matrices.
bool readAcross(FoldOp fold, FoldOp other) {
  auto nest = cast<ForOp>(fold->getParentOp());
  auto collect = [&](FoldOp of) {
    SmallVector<llvm::SmallBitVector> list;
    of.getBody().walk([&](LoadOp load) { list.push_back(axesOf(load, nest)); });
    return list;
  };
  auto theirs = collect(other);
  return llvm::any_of(collect(fold), [&](const llvm::SmallBitVector &own) {
    return llvm::any_of(theirs, [&](const llvm::SmallBitVector &axes) { return own.test(axes) && axes.test(own); });
  });
}

/// Returns true if an operation before a fold may move up. Only stores of the nest itself may be in
/// between, and no nest loads the arrays that it stores.
bool canMove(Operation *op) { return op->getNumRegions() == 0 && (isa<LoadOp>(op) || isMemoryEffectFree(op)); }

/// Returns the operations that a fold needs and that are after `place` in its block, in order.
/// Returns nothing if one of them cannot move before `place`.
std::optional<SmallVector<Operation *>> findNeeded(FoldOp fold, Operation *place) {
  llvm::SetVector<Operation *> needed;
  auto add = [&](Operation *user) {
    for (Value operand : user->getOperands()) {
      Operation *op = operand.getDefiningOp();
      if (op && op->getBlock() == fold->getBlock() && !op->isBeforeInBlock(place))
        needed.insert(op);
    }
  };
  fold.getBody().walk(add);
  for (size_t k = 0; k < needed.size(); ++k) {
    if (needed[k] == place || !canMove(needed[k]))
      return std::nullopt;
    add(needed[k]);
  }
  SmallVector<Operation *> list = needed.takeVector();
  llvm::sort(list, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return list;
}

/// Replaces two folds by one with the states of both, at the position of the first.
FoldOp fuse(FoldOp first, FoldOp second, ArrayRef<Operation *> needed) {
  for (Operation *op : needed)
    op->moveBefore(first);
  OpBuilder b(first);
  SmallVector<Type> types(first.getResultTypes());
  llvm::append_range(types, second.getResultTypes());
  auto loc = b.getFusedLoc({first.getLoc(), second.getLoc()});
  auto made =
      FoldOp::create(b, loc, types, first.getNameAttr(), first.getExtentAttr(), AxisAttr(), ArrayAttr(), ValueRange{});
  made.getBody().takeBody(first.getBody());
  Block &body = made.getBody().front(), &other = second.getBody().front();
  other.getArgument(0).replaceAllUsesWith(body.getArgument(0));
  auto yield = cast<YieldOp>(body.back()), last = cast<YieldOp>(other.back());
  SmallVector<Value> states(yield.getValues());
  llvm::append_range(states, last.getValues());
  yield.erase();
  last.erase();
  for (GuardOp guard : llvm::make_early_inc_range(other.getOps<GuardOp>())) // equal to the first fold's guard
    guard.erase();
  body.getOperations().splice(body.end(), other.getOperations());
  b.setInsertionPointToEnd(&body);
  YieldOp::create(b, loc, states);
  unsigned count = first.getNumResults();
  first.replaceAllUsesWith(made.getResults().take_front(count));
  second.replaceAllUsesWith(made.getResults().drop_front(count));
  first.erase();
  second.erase();
  return made;
}

/// Removes all but the first of equal values that a block computes or loads.
void dropEqual(Block &block) {
  llvm::DenseMap<size_t, SmallVector<Operation *, 1>> known; // by hash
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (!canMove(&op) || op.getNumResults() != 1)
      continue;
    auto isEqual = [&](Operation *other) {
      return OperationEquivalence::isEquivalentTo(other, &op, OperationEquivalence::IgnoreLocations);
    };
    auto &kept = known[OperationEquivalence::computeHash(&op, OperationEquivalence::directHashValue,
                                                         OperationEquivalence::ignoreHashValue,
                                                         OperationEquivalence::IgnoreLocations)];
    auto same = llvm::find_if(kept, isEqual);
    if (same == kept.end()) {
      kept.push_back(&op);
      continue;
    }
    op.replaceAllUsesWith((*same)->getResults());
    op.erase();
  }
}

struct ONFFuseFolds final : impl::ONFFuseFoldsBase<ONFFuseFolds> {
  using Base::Base;

  void runOnOperation() override {
    getOperation()->walk([](KernelOp kernel) {
      for (auto nest : kernel.getBody().getOps<ForOp>())
        if (!nest.getLift())
          runOnNest(nest);
    });
  }

  static void runOnNest(ForOp nest) {
    Block &body = nest.getBody().front();
    auto folds = llvm::filter_to_vector(nest.getBody().getOps<FoldOp>(), isPlain);
    if (folds.size() != size_t(llvm::range_size(nest.getBody().getOps<FoldOp>())))
      return; // tensor cores may take them unmodified
    dropEqual(body);
    for (size_t k = 0; k < folds.size(); ++k) {
      for (size_t other = k + 1; other < folds.size();) {
        std::optional<SmallVector<Operation *>> needed;
        if (folds[k].getExtentAttr() == folds[other].getExtentAttr() && guardOf(folds[k]) == guardOf(folds[other]) &&
            !readAcross(folds[k], folds[other]))
          needed = findNeeded(folds[other], folds[k]);
        if (!needed) {
          ++other;
          continue;
        }
        folds[k] = fuse(folds[k], folds[other], *needed);
        folds.erase(folds.begin() + other);
      }
      dropEqual(folds[k].getBody().front());
    }
  }
};
} // namespace

} // namespace moa::onf
