//===- ReadThroughCopies.cpp - propagation of copied arrays ---------------===//
//
// Index composition, the psi reduction of Mullin's Mathematics of Arrays (1988): if T[i] = A[f(i)],
// then T[e] = A[f(e)]. Hence loads of a copy T read its source A. Along each axis f is an index or
// a multiple of one, so that TMA can copy tiles of A as it does of T.
//
//===----------------------------------------------------------------------===//
#include "lib/Analysis/Launched.h"
#include "lib/Conversion/ONFToDevice/ONFToDevice.h"
#include "lib/Conversion/ONFToDevice/Tiles.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace moa {
#define GEN_PASS_DEF_READTHROUGHCOPIES
#include "lib/Conversion/ConversionPasses.h.inc"
} // namespace moa

using namespace mlir;
using namespace moa;
using namespace moa::onf;

namespace {
/// A temporary that is a copy of another array, and its readers.
class CopiedArray {
public:
  CopiedArray(onf::KernelOp kernel, unsigned array) : kernel(kernel), array(array) {}
  /// Returns whether the array is a copy, and each of its readers may read the source.
  bool find();
  /// Returns the nests that load the copy, each once and in order.
  SmallVector<ForOp> findReaders();
  /// Makes the readers load the source, and removes the copy.
  void remove();

private:
  /// The subscript of one axis of the source: a multiple of the copy's index on `axis`.
  struct SourceIndex {
    unsigned axis = 0;
    SymExpr step;
  };
  bool findUsers();
  bool findSourceIndices();
  bool isReadable();
  void replace(LoadOp load);

  onf::KernelOp kernel;
  unsigned array;
  StoreOp store;
  LoadOp copied;
  SmallVector<LoadOp> loads;
  SmallVector<SourceIndex> sourceIndices;
};
} // namespace

bool CopiedArray::findUsers() {
  for (Operation *user : kernel.getBody().getArgument(array).getUsers()) {
    if (auto load = dyn_cast<LoadOp>(user))
      loads.push_back(load);
    else if (auto found = dyn_cast<StoreOp>(user); found && !store)
      store = found;
    else
      return false;
  }
  copied = store ? store.getValue().getDefiningOp<LoadOp>() : LoadOp();
  return copied && !loads.empty() && isa<BlockArgument>(copied.getArray()) &&
         store.getArray().getType().getElementType() == copied.getResult().getType();
}

bool CopiedArray::findSourceIndices() {
  llvm::DenseMap<Value, unsigned> axes = findAxes(store);
  ArrayType to = store.getArray().getType(), from = copied.getArray().getType();
  if (axes.size() != to.getRank() || from.getRank() == 0)
    return false;
  for (unsigned axis = 0; axis < from.getRank(); ++axis) {
    LinearIndex subscript = copied.getIndex(axis);
    if (!subscript.constant.isZero() || subscript.terms.size() != 1)
      return false;
    auto [term, factor] = subscript.terms.front();
    auto [index, times] = takeApart(term);
    auto found = axes.find(index);
    if (found == axes.end())
      return false;
    SourceIndex source{found->second, times * factor};
    // On a longer axis, a tile of the source would have values where a tile of the copy has zeros.
    if (source.step == SymExpr(1) && to.getExtent(source.axis) != from.getExtent(axis))
      return false;
    sourceIndices.push_back(source);
  }
  return sourceIndices.back().axis + 1 == to.getRank() && sourceIndices.back().step == SymExpr(1);
}

/// Returns whether each reader runs only where the array is stored.
bool CopiedArray::isReadable() {
  auto copies = getNest(store);
  return llvm::all_of(loads, [&](LoadOp load) {
    ForOp nest = getNest(load);
    return nest != copies && runsWithin(nest, copies);
  });
}

bool CopiedArray::find() { return findUsers() && findSourceIndices() && isReadable(); }

SmallVector<ForOp> CopiedArray::findReaders() {
  return llvm::filter_to_vector(kernel.getBody().getOps<ForOp>(), [&](ForOp nest) {
    return llvm::any_of(loads, [&](LoadOp load) { return nest->isProperAncestor(load); });
  });
}

/// Rewrites T[…, e, …] to A[…, step·e, …].
void CopiedArray::replace(LoadOp load) {
  OpBuilder b(load);
  SmallVector<Value> terms;
  std::vector<Subscript> axes;
  for (const SourceIndex &source : sourceIndices) {
    LinearIndex index = load.getIndex(source.axis);
    Subscript &axis = axes.emplace_back(Subscript{index.constant * source.step, {}});
    for (auto &[term, factor] : index.terms) {
      axis.factors[terms.size()] = factor * source.step;
      terms.push_back(term);
    }
  }
  Value now = LoadOp::create(b, load.getLoc(), load.getResult().getType(), copied.getArray(), terms,
                             SubscriptsAttr::get(b.getContext(), std::move(axes)));
  load.getResult().replaceAllUsesWith(now);
  load.erase();
}

void CopiedArray::remove() {
  for (LoadOp load : loads)
    replace(load);
  // Erases the loops around the store, and operations that only it needed.
  Operation *loop = store->getParentOp();
  store.erase();
  while (isa<ForOp>(loop)) {
    Block &body = cast<ForOp>(loop).getBody().front();
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
      if (isOpTriviallyDead(&op))
        op.erase();
    if (!body.empty())
      break;
    Operation *empty = std::exchange(loop, loop->getParentOp());
    empty->erase();
  }
  eraseTemporary(kernel, array);
}

namespace {
struct ReadThroughCopies final : moa::impl::ReadThroughCopiesBase<ReadThroughCopies> {
  /// Rewrites a copy of the kernel, which replaces the kernel if no nest loses its tiles.
  static onf::KernelOp readThrough(onf::KernelOp kernel, unsigned array) {
    CopiedArray before(kernel, array);
    if (!before.find())
      return kernel;
    OpBuilder b(kernel);
    auto changed = cast<onf::KernelOp>(b.clone(*kernel));
    CopiedArray after(changed, array);
    (void)after.find();
    auto nests = after.findReaders();
    after.remove();
    bool isAsFast = llvm::all_of(llvm::zip_equal(before.findReaders(), nests), [](auto pair) {
      return !applies(forms::tiles, std::get<0>(pair)) || applies(forms::tiles, std::get<1>(pair));
    });
    (isAsFast ? kernel : changed).erase();
    return isAsFast ? changed : kernel;
  }
  void runOnOperation() final {
    for (onf::KernelOp kernel : llvm::to_vector(getOperation().getOps<onf::KernelOp>()))
      for (unsigned array = kernel.getBody().getNumArguments(); kernel.isTemporary(--array);)
        kernel = readThrough(kernel, array);
  }
};
} // namespace

std::unique_ptr<Pass> moa::createReadThroughCopiesPass() { return std::make_unique<ReadThroughCopies>(); }
