//===- KernelRewrites.h - helpers that rewrite kernels ----------*- C++ -*-===//
#ifndef MOA_DIALECTS_DEVICE_TRANSFORMS_KERNELREWRITES_H
#define MOA_DIALECTS_DEVICE_TRANSFORMS_KERNELREWRITES_H

#include "dialects/Device/Transforms/Launches.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"

namespace moa::device {

/// Returns true if the kernel has blocks and its threads use only registers, arrays, and registers
/// of lanes of their warp. Shared memory and the registers of roles are allocated for a whole
/// launch.
inline bool isPlain(KernelOp kernel) {
  if (kernel.getBlocks().isZero())
    return false;
  return !kernel
              .walk([](mlir::Operation *op) {
                bool isDevice = op->getName().getDialectNamespace() == "device";
                bool isKnown = llvm::isa<KernelOp, BlockOp>(op) || isPlainOp(op);
                return isDevice && !isKnown ? mlir::WalkResult::interrupt() : mlir::WalkResult::advance();
              })
              .wasInterrupted();
}

/// Gives `made`, one launch of several kernels, the first one's attributes: those launch conditions
/// that all kernels have, and the choice if it is the same for all.
inline void setAttributesOfAll(KernelOp made, llvm::ArrayRef<KernelOp> kernels) {
  KernelOp first = kernels.front();
  made->setDiscardableAttrs(first->getDiscardableAttrDictionary());
  llvm::SmallVector<mlir::Attribute> runs;
  for (const auto &pair : onf::getLaunchConditions(first))
    if (llvm::all_of(kernels,
                     [&](KernelOp kernel) { return llvm::is_contained(onf::getLaunchConditions(kernel), pair); }))
      runs.append({pair.first, pair.second});
  made->removeAttr(onf::kLaunchIfAttr);
  if (!runs.empty())
    made->setAttr(onf::kLaunchIfAttr, mlir::ArrayAttr::get(made.getContext(), runs));
  if (!llvm::all_equal(llvm::map_range(kernels, [](KernelOp kernel) { return kernel->getAttr(kChosenAttr); })))
    made->removeAttr(kChosenAttr);
}

/// Moves the body of a kernel to the builder's position, with `number` as the block's number.
inline void moveBody(KernelOp kernel, mlir::OpBuilder &b, mlir::Value number) {
  mlir::Block &from = kernel.getBody().front();
  kernel.walk([&](BlockOp block) {
    block.getResult().replaceAllUsesWith(number);
    block.erase();
  });
  b.getBlock()->getOperations().splice(b.getInsertionPoint(), from.getOperations());
}

/// Emits stores of 0 by the first thread of a program's first kernel, for flags and counters.
class FirstStores {
public:
  explicit FirstStores(ProgramOp program) : first(*program.getBody().getOps<KernelOp>().begin()) {}

  /// Stores 0 in one element of an array of i32.
  void clear(mlir::Value array, int64_t element = 0) {
    mlir::OpBuilder b(first.getContext());
    mlir::Location loc = first.getLoc();
    if (!branch) {
      b.setInsertionPointToStart(&first.getBody().front());
      auto isFirst = [&](mlir::Value number) -> mlir::Value {
        mlir::Value zero = mlir::arith::ConstantIndexOp::create(b, loc, 0);
        return mlir::arith::CmpIOp::create(b, loc, mlir::arith::CmpIPredicate::eq, number, zero);
      };
      mlir::Value ofBlock = isFirst(BlockOp::create(b, loc)), ofThread = isFirst(ThreadOp::create(b, loc));
      mlir::Value one = mlir::arith::AndIOp::create(b, loc, ofBlock, ofThread);
      branch = mlir::scf::IfOp::create(b, loc, one, /*withElseRegion=*/false);
    }
    b.setInsertionPoint(branch.thenYield());
    mlir::Value zero = mlir::arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(0));
    StoreOp::create(b, loc, zero, array, mlir::arith::ConstantIndexOp::create(b, loc, element),
                    /*pairs=*/false);
  }

private:
  KernelOp first;
  mlir::scf::IfOp branch;
};

inline std::string freshArrayName(ProgramOp program, std::string name) {
  while (llvm::is_contained(program.getAllNames(), name))
    name += "_";
  return name;
}

} // namespace moa::device

#endif // MOA_DIALECTS_DEVICE_TRANSFORMS_KERNELREWRITES_H
