//===- FuseNests.cpp - prologue fusion of contractions --------------------===//
//
// If a tile kernel has the only load of a temporary that an earlier nest computes for the same
// rows, it computes the elements itself in its prologue. Nothing is stored, and rows that both
// nests read are loaded once. For example, chunkwise linear attention adds Q·T, with the state T of
// the chunks before, to the contractions of Q·Kᵀ within the chunk.
//
//===----------------------------------------------------------------------===//
#include "lib/Conversion/ONFToDevice/ONFToDevice.h"
#include "lib/Conversion/ONFToDevice/Tiles.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"

namespace moa {
#define GEN_PASS_DEF_FUSENESTS
#include "lib/Conversion/ConversionPasses.h.inc"
} // namespace moa

using namespace mlir;
using namespace moa;
using namespace moa::onf;

namespace {
/// Moves the folds of the nest that stores a temporary into the nest with its only load.
class Fusion {
public:
  Fusion(onf::KernelOp kernel, unsigned array) : kernel(kernel), array(array), b(kernel.getContext()) {}
  /// Returns the fused nest, or null if nothing has changed.
  ForOp run();

private:
  bool findPlaces();
  bool findIndices();
  Value build(const LinearIndex &subscript, Location loc);
  void remove();

  onf::KernelOp kernel;
  unsigned array;
  OpBuilder b;
  LoadOp load;
  StoreOp store;
  ForOp from, to, stores;
  FoldOp fold;                          // of `to`
  SmallVector<LinearIndex> subscripts;  // of the load
  llvm::DenseMap<Value, unsigned> axes; // array axes, by the store's indices
};
} // namespace

ForOp moa::getNest(Operation *op) {
  ForOp nest;
  for (; op; op = op->getParentOp())
    if (auto loop = dyn_cast<ForOp>(op))
      nest = loop;
  return nest;
}

llvm::DenseMap<Value, unsigned> moa::findAxes(StoreOp store) {
  llvm::DenseMap<Value, unsigned> axes;
  for (unsigned axis = 0; axis < store.getArray().getType().getRank(); ++axis)
    if (Value index = store.getIndex(axis).getValue())
      axes[index] = axis;
  return axes;
}

void moa::eraseTemporary(onf::KernelOp kernel, unsigned array) {
  unsigned first = kernel.getNumInputs() + kernel.getNumOutputs();
  auto without = [&](ArrayAttr list) {
    SmallVector<Attribute> rest(list.getValue());
    rest.erase(rest.begin() + (array - first));
    return rest.empty() ? ArrayAttr() : ArrayAttr::get(list.getContext(), rest);
  };
  ArrayAttr names = without(*kernel.getTemporaryNames()), types = without(*kernel.getTemporaryTypes());
  names ? kernel.setTemporaryNamesAttr(names) : (void)kernel.removeTemporaryNamesAttr();
  types ? kernel.setTemporaryTypesAttr(types) : (void)kernel.removeTemporaryTypesAttr();
  kernel.getBody().front().eraseArgument(array);
}

bool Fusion::findPlaces() {
  for (Operation *user : kernel.getBody().getArgument(array).getUsers()) {
    auto read = dyn_cast<LoadOp>(user);
    auto write = dyn_cast<StoreOp>(user);
    if (read && !load)
      load = read;
    else if (write && !store)
      store = write;
    else
      return false;
  }
  if (!load || !store)
    return false;
  from = getNest(store);
  to = getNest(load);
  stores = dyn_cast<ForOp>(store->getParentOp());
  auto loop = dyn_cast<ForOp>(load->getParentOp());
  auto folds = llvm::to_vector(to.getBody().getOps<FoldOp>());
  auto loops = llvm::to_vector(from.getBody().getOps<ForOp>());
  if (from == to || !stores || !loop || stores == from || loop == to || loops.size() != 1 || folds.empty() ||
      from.getChoices() || to.getChoices() || from.getWhereAttr() != to.getWhereAttr() ||
      !from.getBody().getOps<StoreOp>().empty() || load.getResult().getType() != store.getValue().getType() ||
      stores.getExtents().size() != 1 || llvm::range_size(stores.getBody().getOps<StoreOp>()) != 1 ||
      loop.getExtents().size() != 1)
    return false;
  fold = folds.back();
  return true;
}

/// Finds the values of the store's indices at the load. All but that of the inner loop must be
/// known before the fold.
bool Fusion::findIndices() {
  for (unsigned axis = 0; axis < load.getArray().getType().getRank(); ++axis)
    subscripts.push_back(load.getIndex(axis));
  axes = findAxes(store);
  Value inner = stores.getBody().getArgument(0), loaded = cast<ForOp>(load->getParentOp()).getBody().getArgument(0);
  auto isKnown = [&](const LinearIndex &subscript) {
    return llvm::all_of(subscript.terms, [&](const auto &term) {
      Operation *op = term.first.getDefiningOp();
      return op ? op->getBlock() == fold->getBlock() && op->isBeforeInBlock(fold)
                : cast<BlockArgument>(term.first).getOwner() == fold->getBlock();
    });
  };
  for (Value index : from.getBody().getArguments())
    if (!axes.contains(index) || !isKnown(subscripts[axes[index]]))
      return false;
  return axes.contains(inner) && subscripts[axes[inner]].getValue() == loaded;
}

Value Fusion::build(const LinearIndex &subscript, Location loc) {
  Value sum;
  auto extent = [&](const SymExpr &expr) -> Value {
    if (auto number = expr.getConstant())
      return arith::ConstantOp::create(b, loc, b.getIndexAttr(*number));
    return onf::ExtentOp::create(b, loc, b.getIndexType(), expr);
  };
  for (auto &[term, factor] : subscript.terms) {
    Value part = factor == SymExpr(1) ? term : arith::MulIOp::create(b, loc, term, extent(factor)).getResult();
    sum = sum ? arith::AddIOp::create(b, loc, sum, part).getResult() : part;
  }
  if (!sum || !subscript.constant.isZero()) {
    Value part = extent(subscript.constant);
    sum = sum ? arith::AddIOp::create(b, loc, sum, part).getResult() : part;
  }
  return sum;
}

/// Removes the load, the nest that stored the array, and the array.
void Fusion::remove() {
  load.erase();
  from.erase();
  eraseTemporary(kernel, array);
}

ForOp Fusion::run() {
  if (!findPlaces() || !findIndices())
    return ForOp();
  IRMapping map;
  b.setInsertionPoint(fold);
  for (Value index : from.getBody().getArguments())
    map.map(index, build(subscripts[axes[index]], load.getLoc()));
  for (Operation &op : from.getBody().front())
    if (&op != stores.getOperation())
      b.clone(op, map);
  b.setInsertionPoint(load);
  Value inner = stores.getBody().getArgument(0);
  map.map(inner, subscripts[axes[inner]].getValue());
  for (Operation &op : stores.getBody().front())
    if (!isa<StoreOp>(op))
      b.clone(op, map);
  load.getResult().replaceAllUsesWith(map.lookup(store.getValue()));
  ForOp result = to;
  remove();
  return result;
}

namespace {
struct FuseNests final : moa::impl::FuseNestsBase<FuseNests> {
  /// Fuses on a copy, which replaces the kernel if its nest runs by tiles.
  static onf::KernelOp fuse(onf::KernelOp kernel, unsigned array) {
    OpBuilder b(kernel);
    auto copy = cast<onf::KernelOp>(b.clone(*kernel));
    ForOp nest = Fusion(copy, array).run();
    // Of several folds, the tiles are those of the last one.
    bool hasPrologue = nest && llvm::range_size(nest.getBody().getOps<FoldOp>()) > 1;
    if (!hasPrologue || !applies(forms::tiles, nest)) {
      copy.erase();
      return kernel;
    }
    kernel.erase();
    return copy;
  }
  void runOnOperation() final {
    for (onf::KernelOp kernel : llvm::to_vector(getOperation().getOps<onf::KernelOp>()))
      for (unsigned array = kernel.getBody().getNumArguments(); kernel.isTemporary(--array);)
        kernel = fuse(kernel, array);
  }
};
} // namespace

std::unique_ptr<Pass> moa::createFuseNestsPass() { return std::make_unique<FuseNests>(); }
