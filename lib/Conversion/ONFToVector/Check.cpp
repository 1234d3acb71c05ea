//===- Check.cpp - preconditions of the CPU lowering ----------------------===//
#include "lib/Conversion/ONFToVector/Nest.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace moa;

namespace moa::rows {
using namespace moa::onf;

static bool isElementType(Type type) {
  if (type.isIndex() || type.isF64() || type.isF32() || type.isBF16() || type.isF16() || isa<Float8E4M3FNType>(type))
    return true;
  auto integer = dyn_cast<IntegerType>(type);
  return integer && llvm::is_contained({1u, 8u, 16u, 32u, 64u}, integer.getWidth());
}

static LogicalResult checkSymbols(Operation *op, const ArgumentBlock &block, const SymExpr &expr) {
  std::set<std::string> names;
  expr.collectSymbols(names);
  for (const std::string &name : names)
    if (!block.getSymbolSlot(name))
      return op->emitOpError("expects the kernel's symbols, but got '") << name << "'";
  return success();
}

static LogicalResult checkExtents(Operation *op, const ArgumentBlock &block, ArrayAttr extents) {
  for (const SymExpr &extent : extents.getAsValueRange<ExprAttr>())
    if (failed(checkSymbols(op, block, extent)))
      return failure();
  return success();
}

static LogicalResult checkState(AccOp acc) {
  Type element = getElementTypeOrSelf(acc.getResult().getType());
  if (auto array = dyn_cast<ArrayType>(acc.getResult().getType())) {
    element = array.getElementType();
    for (const SymExpr &extent : acc.getExtents().getAsValueRange<ExprAttr>())
      if (!extent.getConstant())
        return acc.emitOpError("carries an axis whose extent, \"")
               << extent.str() << "\", is known at run time only; scratch memory is static "
               << "on a CPU: give the extent at compile time";
    for (Operation *user : acc.getResult().getUsers())
      if (!isa<YieldOp>(user))
        return user->emitOpError("reads a state that carries axes inside its fold");
  }
  if (!isElementType(element))
    return acc.emitOpError("expects a float, integer or boolean state, but got ") << element;
  Monoid monoid = acc.getMonoid();
  bool logical = monoid == Monoid::and_ || monoid == Monoid::or_;
  if (logical && isa<FloatType>(element))
    return acc.emitOpError("expects a boolean or integer state");
  return success();
}

static LogicalResult checkAccess(AccessOpInterface op, Type value, bool output, const ArgumentBlock &block) {
  auto arg = dyn_cast<BlockArgument>(op.getArray());
  auto kernel = arg ? dyn_cast<onf::KernelOp>(arg.getOwner()->getParentOp()) : onf::KernelOp();
  if (!kernel)
    return op->emitOpError("expects an array of the kernel");
  if (!kernel.isTemporary(arg.getArgNumber()) && output != (arg.getArgNumber() >= block.getNumInputs()))
    return op->emitOpError(output ? "expects an output" : "expects an input");
  Type element = op.getArray().getType().getElementType();
  if (!isElementType(element) || !isElementType(value) || isa<FloatType>(element) != isa<FloatType>(value))
    return op->emitOpError("cannot move ") << value << " to or from " << element;
  FlatAddress address = op.getAddress();
  address.coefficients.push_back(address.constant);
  return success(llvm::all_of(address.coefficients,
                              [&](const SymExpr &expr) { return succeeded(checkSymbols(op, block, expr)); }));
}

static LogicalResult checkOp(Operation *op, const ArgumentBlock &block) {
  if (auto load = dyn_cast<LoadOp>(op))
    return checkAccess(load, load.getResult().getType(), false, block);
  if (auto store = dyn_cast<StoreOp>(op)) {
    if (store->getParentOfType<FoldOp>())
      return op->emitOpError("expects to stand outside of folds");
    return checkAccess(store, store.getValue().getType(), true, block);
  }
  if (auto acc = dyn_cast<AccOp>(op))
    return failed(checkState(acc)) ? failure() : checkExtents(op, block, acc.getExtents());
  if (auto fold = dyn_cast<FoldOp>(op))
    return checkSymbols(op, block, fold.getExtent());
  if (auto loop = dyn_cast<ForOp>(op)) {
    if (loop->getParentOfType<FoldOp>())
      return op->emitOpError("expects to stand outside of folds");
    return checkExtents(op, block, loop.getExtents());
  }
  if (auto extent = dyn_cast<onf::ExtentOp>(op))
    return checkSymbols(op, block, extent.getExpr());
  if (auto at = dyn_cast<AtOp>(op)) {
    if (!at.getState().getDefiningOp<FoldOp>())
      return op->emitOpError("expects the result of a fold");
    return success();
  }
  if (isa<GuardOp, YieldOp>(op))
    return success();
  if (!isMemoryEffectFree(op) || op->getNumRegions() || op->getNumResults() != 1 ||
      (op->getNumOperands() && !OpTrait::hasElementwiseMappableTraits(op)))
    return op->emitOpError("cannot be lowered to vector code");
  return success();
}

static LogicalResult checkLift(ForOp nest) {
  auto lift = nest.getLift();
  if (!lift || lift->empty())
    return success();
  auto axis = cast<AxisAttr>((*lift)[lift->size() - 1]);
  if (axis.getResource(0) != Resource::core)
    return nest.emitOpError("is bound to blocks of a GPU; code for a CPU needs cores, as "
                            "onf-lift binds them");
  int64_t lanes = axis.getSize(Resource::lane), tile = axis.getTile();
  if (!llvm::isPowerOf2_64(lanes) || lanes > 64)
    return nest.emitOpError("expects 1, 2, 4, … 64 lanes on its last axis, but got ") << lanes;
  if (tile > 4096)
    return nest.emitOpError("expects at most 4096 rows in a tile, but got ") << tile;
  return success();
}

LogicalResult checkKernel(onf::KernelOp kernel) {
  ArgumentBlock block(kernel);
  for (auto nest : kernel.getBody().getOps<ForOp>())
    if (failed(checkLift(nest)))
      return failure();
  WalkResult result = kernel.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op == kernel || succeeded(checkOp(op, block)))
      return WalkResult::advance();
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

} // namespace moa::rows
