//===- Accesses.h - which arrays kernels read and write ---------*- C++ -*-===//
#ifndef MOA_DIALECTS_DEVICE_TRANSFORMS_ACCESSES_H
#define MOA_DIALECTS_DEVICE_TRANSFORMS_ACCESSES_H

#include "dialects/Device/IR/Device.h"
#include "dialects/Device/Transforms/Passes.h"
#include "llvm/ADT/DenseSet.h"

namespace moa::device {

/// What a kernel does with the program's arrays.
struct Accesses {
  explicit Accesses(KernelOp kernel)
      : choice(kernel->getAttrOfType<mlir::DictionaryAttr>(kChosenAttr)),
        program(kernel->getParentOfType<ProgramOp>()) {
    kernel.walk([&](mlir::Operation *op) {
      bool isStore = llvm::isa<StoreOp, StoreRunOp, StoreTileOp, SignalOp, RaiseOp>(op);
      for (mlir::Value operand : op->getOperands())
        if (auto array = llvm::dyn_cast<mlir::BlockArgument>(operand);
            array && llvm::isa<ProgramOp>(array.getOwner()->getParentOp()))
          (isStore ? written : read).insert(array);
    });
  }
  /// Whether one of both writes what the other one reads or writes. What one array chooses to be stored by the one or by
  /// the other (D4), they do not both write.
  bool interferes(const Accesses &other) const {
    auto meets = [&](const llvm::DenseSet<mlir::Value> &a, const llvm::DenseSet<mlir::Value> &b, bool areStores) {
      return llvm::any_of(a, [&](mlir::Value array) {
        return b.contains(array) && !(areStores && isOtherChoice(other) && !program.isWorkspace(array));
      });
    };
    return meets(written, other.read, false) || meets(written, other.written, true) || meets(read, other.written, false);
  }

  llvm::DenseSet<mlir::Value> read, written;

private:
  bool isOtherChoice(const Accesses &other) const {
    return choice && other.choice && choice.get("by") == other.choice.get("by") &&
           choice.get("is") != other.choice.get("is");
  }

  mlir::DictionaryAttr choice;
  mutable ProgramOp program;
};

} // namespace moa::device

#endif // MOA_DIALECTS_DEVICE_TRANSFORMS_ACCESSES_H
