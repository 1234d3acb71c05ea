//===- ArgumentBlock.h - how a kernel's arguments reach a CPU ---*- C++ -*-===//
//
// A compiled nest receives one pointer to an array of 64-bit slots. The slots hold, for each block
// argument of the onf.kernel in order (inputs, outputs, temporaries):
//
//   an input scalar (rank 0)   one slot with the value. The bits of f32, bf16 and f16 are in the
//                              low bits, those of f64 fill the slot, integers are sign-extended,
//                              booleans are 0 or 1;
//   every other array          the data pointer, then one stride per axis, counted in elements.
//
// The values of the kernel's symbols follow, in the order of `symbols`. The last slot has the
// address of the workspace memory that the tasks of a split nest share (Split.cpp). Booleans in
// arrays take one byte each: zero or nonzero.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_CONVERSION_ONFTOVECTOR_ARGUMENTBLOCK_H
#define MOA_CONVERSION_ONFTOVECTOR_ARGUMENTBLOCK_H

#include "dialects/ONF/IR/ONF.h"
#include <optional>

namespace moa {

class ArgumentBlock {
public:
  explicit ArgumentBlock(onf::KernelOp kernel) : kernel(kernel) {
    for (mlir::BlockArgument arg : kernel.getBody().getArguments()) {
      firstSlots.push_back(numSlots);
      numSlots += isScalar(arg.getArgNumber()) ? 1 : 1 + getArray(arg).getRank();
    }
    firstSymbol = numSlots;
    numSlots += kernel.getSymbols().size() + 1;
  }

  unsigned getNumInputs() const { return kernel.getArgNames().size(); }
  /// Returns whether an argument is an input of rank 0, which is passed by value.
  bool isScalar(unsigned arg) const {
    return arg < getNumInputs() && getArray(kernel.getBody().getArgument(arg)).getRank() == 0;
  }
  /// Returns the slot of an array's data pointer or of a scalar's value.
  unsigned getSlot(unsigned arg) const { return firstSlots[arg]; }
  llvm::StringRef getName(unsigned arg) const { return kernel.getArrayName(arg); }
  /// Returns the slot with the address of the shared workspace memory.
  unsigned getSharedSlot() const { return numSlots - 1; }
  /// Returns the slot of a symbol of the kernel or of a stride symbol `<array>.s<axis>`.
  std::optional<unsigned> getSymbolSlot(llvm::StringRef name) const {
    for (auto [k, symbol] : llvm::enumerate(kernel.getSymbols()))
      if (llvm::cast<mlir::StringAttr>(symbol).getValue() == name)
        return firstSymbol + k;
    auto [array, axisText] = name.rsplit(".s");
    unsigned axis = 0;
    if (axisText.getAsInteger(10, axis))
      return std::nullopt;
    for (unsigned arg = 0, e = firstSlots.size(); arg != e; ++arg)
      if (getName(arg) == array && !isScalar(arg) && axis < getArray(kernel.getBody().getArgument(arg)).getRank())
        return firstSlots[arg] + 1 + axis;
    return std::nullopt;
  }

private:
  static ArrayType getArray(mlir::BlockArgument arg) { return llvm::cast<ArrayType>(arg.getType()); }
  mutable onf::KernelOp kernel; // a handle; its accessors are not const
  llvm::SmallVector<unsigned> firstSlots;
  unsigned numSlots = 0, firstSymbol = 0;
};

} // namespace moa

#endif // MOA_CONVERSION_ONFTOVECTOR_ARGUMENTBLOCK_H
