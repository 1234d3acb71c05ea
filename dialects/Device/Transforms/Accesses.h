//===- Accesses.h - arrays that kernels read and write ----------*- C++ -*-===//
#ifndef MOA_DIALECTS_DEVICE_TRANSFORMS_ACCESSES_H
#define MOA_DIALECTS_DEVICE_TRANSFORMS_ACCESSES_H

#include "dialects/Device/IR/Device.h"
#include "dialects/Device/Transforms/Passes.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

namespace moa::device {

/// Returns true if two choices (kChosenAttr) never hold at the same index: they name different
/// values of one array, directly or through `where`.
inline bool areExclusive(mlir::DictionaryAttr a, mlir::DictionaryAttr b) {
  auto differ = [](mlir::DictionaryAttr x, mlir::DictionaryAttr y) {
    return x && y && x.get("by") == y.get("by") && x.get("is") != y.get("is");
  };
  auto where = [](mlir::DictionaryAttr choice) {
    return choice ? choice.getAs<mlir::DictionaryAttr>("where") : nullptr;
  };
  return differ(a, b) || differ(where(a), b) || differ(a, where(b)) || differ(where(a), where(b));
}

/// The arrays of the program that a kernel reads, and those that it writes.
struct Accesses {
  explicit Accesses(KernelOp kernel)
      : choice(kernel->getAttrOfType<mlir::DictionaryAttr>(kChosenAttr)),
        program(kernel->getParentOfType<ProgramOp>()) {
    kernel.walk([&](mlir::Operation *op) {
      bool isStore = llvm::isa<StoreOp, StoreRunOp, StoreTileOp, SignalOp, RaiseOp, NextBlockOp, StagesOp>(op);
      for (mlir::Value operand : op->getOperands())
        if (auto array = llvm::dyn_cast<mlir::BlockArgument>(operand);
            array && llvm::isa<ProgramOp>(array.getOwner()->getParentOp()))
          (isStore ? written : read).insert(array);
    });
  }
  /// Returns true if one kernel writes an array that the other one accesses. Two kernels with
  /// exclusive choices do not conflict on a common output, because they store different elements
  /// (D4).
  bool interferes(const Accesses &other) const {
    auto meets = [&](const llvm::DenseSet<mlir::Value> &a, const llvm::DenseSet<mlir::Value> &b, bool areStores) {
      return llvm::any_of(a, [&](mlir::Value array) {
        return b.contains(array) && !(areStores && areExclusive(choice, other.choice) && !program.isWorkspace(array));
      });
    };
    return meets(written, other.read, false) || meets(written, other.written, true) ||
           meets(read, other.written, false);
  }

  llvm::DenseSet<mlir::Value> read, written;

private:
  mlir::DictionaryAttr choice;
  mutable ProgramOp program;
};

/// Returns the kernels that only `NAME_shown` needs: the program's results depend on nothing that
/// they write (onf::kShownAttr). Hosts launch them only there.
llvm::SetVector<KernelOp> findReportOnly(ProgramOp program);

} // namespace moa::device

#endif // MOA_DIALECTS_DEVICE_TRANSFORMS_ACCESSES_H
