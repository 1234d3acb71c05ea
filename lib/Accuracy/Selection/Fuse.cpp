//===- Fuse.cpp - fusion of short nests -----------------------------------===//
#include "lib/Accuracy/Selection/Adapter.h"

using namespace mlir;

namespace moa::accuracy {

namespace {
struct Arrays {
  llvm::SmallPtrSet<Value, 8> read, written;
  explicit Arrays(onf::ForOp nest) {
    if (Value choices = nest.getChoices())
      read.insert(choices);
    nest.walk([&](Operation *op) {
      if (auto load = dyn_cast<onf::LoadOp>(op))
        read.insert(load.getArray());
      else if (auto store = dyn_cast<onf::StoreOp>(op))
        written.insert(store.getArray());
    });
  }
  bool writesSomeOf(const llvm::SmallPtrSetImpl<Value> &list) const {
    return llvm::any_of(written, [&](Value array) { return list.contains(array); });
  }
};
} // namespace

/// Returns true if no fold of the nest contains another fold, as contractions do, which run on
/// their own.
static bool isPlain(onf::ForOp nest) {
  return !nest.walk([&](onf::FoldOp fold) {
                return isa<onf::FoldOp>(fold->getParentOp()) ? WalkResult::interrupt() : WalkResult::advance();
              })
              .wasInterrupted();
}

static llvm::SmallDenseSet<Attribute> getInnerExtents(onf::ForOp nest) {
  llvm::SmallDenseSet<Attribute> extents;
  for (Operation &op : nest.getBody().front()) {
    if (auto fold = dyn_cast<onf::FoldOp>(op))
      extents.insert(fold.getExtentAttr());
    else if (auto loop = dyn_cast<onf::ForOp>(op))
      extents.insert(loop.getExtents().begin(), loop.getExtents().end());
  }
  return extents;
}

/// Returns true if the nests have the same indices, predicate and inner extents, so that threads
/// divide their work in the same way.
static bool areAlike(onf::ForOp x, onf::ForOp y) {
  return x.getExtents() == y.getExtents() && getInnerExtents(x) == getInnerExtents(y) &&
         x.getChoices() == y.getChoices() && x.getChoiceAxesAttr() == y.getChoiceAxesAttr() &&
         x.getChoiceAttr() == y.getChoiceAttr();
}

/// Returns true if neither side writes an array that the other uses, so that their order is free.
static bool commutes(onf::ForOp nest, ArrayRef<onf::ForOp> others) {
  Arrays own(nest);
  return llvm::all_of(others, [&](onf::ForOp each) {
    Arrays other(each);
    return !other.writesSomeOf(own.read) && !other.writesSomeOf(own.written) && !own.writesSomeOf(other.read);
  });
}

static void fuse(onf::ForOp first, onf::ForOp second, bool atFirst) {
  onf::ForOp to = atFirst ? first : second, from = atFirst ? second : first;
  Block &target = to.getBody().front(), &source = from.getBody().front();
  for (auto [own, other] : llvm::zip_equal(target.getArguments(), source.getArguments()))
    other.replaceAllUsesWith(own);
  target.getOperations().splice(atFirst ? target.end() : target.begin(), source.getOperations());
  from.erase();
}

void fuseNests(SmallVector<onf::ForOp> nests) {
  for (size_t k = 1; k < nests.size(); ++k) {
    if (!isPlain(nests[k]))
      continue;
    for (size_t first = k; first-- > 0;) {
      if (!isPlain(nests[first]) || !areAlike(nests[first], nests[k]))
        continue;
      bool atFirst = commutes(nests[k], ArrayRef(nests).slice(first, k - first));
      if (!atFirst && !commutes(nests[first], ArrayRef(nests).slice(first + 1, k - first)))
        continue;
      fuse(nests[first], nests[k], atFirst);
      nests.erase(nests.begin() + (atFirst ? k : first));
      --k;
      break;
    }
  }
}

} // namespace moa::accuracy
