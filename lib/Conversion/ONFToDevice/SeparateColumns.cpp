//===- SeparateColumns.cpp - pass onf-separate-columns --------------------===//
//
// A nest of rows may have a loop over columns that sums products for each of them. For example,
// scores are computed again for a result that has all of them. A tile of rows has no room for
// columns whose number is known at run time only. The loop becomes a nest of its own, and results
// of the row's folds that it needs are stored.
//
//===----------------------------------------------------------------------===//
#include "dialects/ONF/Transforms/Temporaries.h"
#include "lib/Conversion/ONFToDevice/Forms.h"
#include "lib/Conversion/ONFToDevice/ONFToDevice.h"
#include "lib/Conversion/ONFToVector/Dependence.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace moa {

#define GEN_PASS_DEF_SEPARATECOLUMNS
#include "lib/Conversion/ConversionPasses.h.inc"

namespace {
using namespace onf;

class ColumnLoop {
public:
  ColumnLoop(ForOp nest, ForOp loop)
      : nest(nest), loop(loop), kernel(nest->getParentOfType<onf::KernelOp>()), b(nest.getContext()) {}
  /// Moves the loop to a nest of its own. Returns true if that nest can run as a warp-level MMA
  /// contraction. On false, discard the kernel.
  bool move();

private:
  bool isOfFold(Value value);
  bool comparesSums();
  Value valueFor(Value value);
  Value store(Value value);

  ForOp nest, loop;
  onf::KernelOp kernel;
  OpBuilder b;
  IRMapping map;
  llvm::DenseMap<Value, bool> known;
};
} // namespace

/// Returns whether a value of the row depends on a fold.
bool ColumnLoop::isOfFold(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != &nest.getBody().front())
    return false;
  auto found = known.find(value);
  if (found != known.end())
    return found->second;
  bool is =
      op->getNumRegions() != 0 || llvm::any_of(op->getOperands(), [&](Value operand) { return isOfFold(operand); });
  return known[value] = is;
}

/// Returns whether the last bits of the loop's sums may decide anything, as in comparisons, √(m −
/// x) or 1/(m − x). Sums of another nest may differ in these bits.
bool ColumnLoop::comparesSums() {
  llvm::SmallPtrSet<Operation *, 16> follows;
  for (Operation &op : loop.getBody().front()) {
    bool isOfSum = isa<FoldOp>(op) || llvm::any_of(op.getOperands(), [&](Value operand) {
                     return operand.getDefiningOp() && follows.contains(operand.getDefiningOp());
                   });
    bool divides = isa<arith::DivFOp>(op) && op.getOperand(1).getDefiningOp() &&
                   follows.contains(op.getOperand(1).getDefiningOp());
    bool isSmooth = isa<FoldOp, StoreOp, arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::DivFOp, arith::NegFOp,
                        arith::ExtFOp, arith::TruncFOp, arith::SelectOp, arith::MaximumFOp, arith::MinimumFOp,
                        math::AbsFOp, math::ExpOp, math::Exp2Op, math::TanhOp, math::ErfOp, onf::AtOp>(op) &&
                    !divides;
    if (isOfSum && !isSmooth)
      return true;
    if (isOfSum)
      follows.insert(&op);
  }
  return false;
}

/// Stores a value of the row at the end of its nest. Returns its load in the new nest, or null if
/// its type cannot be stored.
Value ColumnLoop::store(Value value) {
  Type type = storedType(value.getType());
  if (!type)
    return Value();
  SmallVector<SymExpr> shape(nest.getExtents().getAsValueRange<ExprAttr>());
  auto state = dyn_cast_or_null<FoldOp>(value.getDefiningOp());
  std::string name = "value";
  if (state)
    name = rows::getAccs(state)[cast<OpResult>(value).getResultNumber()].getName().str();
  BlockArgument array = addTemporary(kernel, name + "_of_row", shape, type, value.getLoc());
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(&nest.getBody().front());
    storeValue(b, value.getLoc(), value, array, SmallVector<Value>(nest.getBody().getArguments()));
  }
  SmallVector<Value> at;
  for (Value index : nest.getBody().getArguments())
    at.push_back(map.lookup(index));
  return loadValue(b, value.getLoc(), value.getType(), array, at);
}

/// Returns a value of the row in the new nest, or null if it cannot be stored.
Value ColumnLoop::valueFor(Value value) {
  if (Value there = map.lookupOrNull(value))
    return there;
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != &nest.getBody().front())
    return value; // an array of the kernel
  Value there;
  if (isOfFold(value)) {
    there = store(value);
  } else {
    for (Value operand : op->getOperands())
      if (Value made = valueFor(operand))
        map.map(operand, made);
      else
        return Value();
    there = b.clone(*op, map)->getResult(cast<OpResult>(value).getResultNumber());
  }
  if (there)
    map.map(value, there);
  return there;
}

bool ColumnLoop::move() {
  if (comparesSums())
    return false;
  auto joined = [&](ArrayAttr outer, ArrayAttr inner) {
    SmallVector<Attribute> all(outer.begin(), outer.end());
    llvm::append_range(all, inner);
    return b.getArrayAttr(all);
  };
  b.setInsertionPointAfter(nest);
  auto made = ForOp::create(b, loop.getLoc(), joined(nest.getNames(), loop.getNames()),
                            joined(nest.getExtents(), loop.getExtents()));
  size_t rank = made.getExtents().size();
  Block *block = b.createBlock(&made.getBody(), {}, SmallVector<Type>(rank, b.getIndexType()),
                               SmallVector<Location>(rank, loop.getLoc()));
  map.map(nest.getBody().getArguments(), block->getArguments().drop_back());
  map.map(loop.getBody().getArgument(0), block->getArguments().back());
  bool isFound = true;
  loop.getBody().walk([&](Operation *op) {
    for (Value operand : op->getOperands())
      isFound &= loop.getBody().isAncestor(operand.getParentRegion()) || valueFor(operand);
  });
  if (!isFound)
    return false;
  for (Operation &op : loop.getBody().front())
    b.clone(op, map);
  loop.erase();
  return applies(forms::warps, made);
}

namespace {
struct SeparateColumns final : impl::SeparateColumnsBase<SeparateColumns> {
  static ForOp nestOf(onf::KernelOp kernel, unsigned number) {
    return *std::next(kernel.getBody().getOps<ForOp>().begin(), number);
  }

  /// Moves a loop of the nest with this number in a copy of the kernel. Returns the copy, or null
  /// if no loop has the form.
  static onf::KernelOp moveOne(onf::KernelOp kernel, unsigned number) {
    ForOp nest = nestOf(kernel, number);
    if (nest.getChoices() || nest.getLift() || nest.getExtents().empty())
      return onf::KernelOp();
    for (auto [k, loop] : llvm::enumerate(llvm::to_vector(nest.getBody().getOps<ForOp>()))) {
      if (loop.getExtents().size() != 1 || loop.getBody().getOps<FoldOp>().empty())
        continue;
      OpBuilder b(kernel);
      auto copy = cast<onf::KernelOp>(b.clone(*kernel));
      ForOp row = nestOf(copy, number);
      if (ColumnLoop(row, *std::next(row.getBody().getOps<ForOp>().begin(), k)).move())
        return copy;
      copy.erase();
    }
    return onf::KernelOp();
  }

  void runOnOperation() final {
    for (onf::KernelOp kernel : llvm::to_vector(getOperation().getOps<onf::KernelOp>()))
      for (unsigned number = 0; number < llvm::range_size(kernel.getBody().getOps<ForOp>());) {
        onf::KernelOp moved = moveOne(kernel, number);
        if (!moved) {
          ++number;
          continue;
        }
        kernel.erase();
        kernel = moved;
      }
  }
};
} // namespace

std::unique_ptr<Pass> createSeparateColumnsPass() { return std::make_unique<SeparateColumns>(); }

} // namespace moa
