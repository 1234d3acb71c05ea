//===- Telling.cpp - parts that only serve error reports ------------------===//
#include "dialects/ONF/Transforms/Telling.h"
#include "dialects/MoA/IR/MoA.h"
#include "dialects/ONF/IR/Hints.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace moa::onf {

SmallVector<bool> findUnneeded(ArrayRef<ReadAndWritten> parts,
                               llvm::function_ref<bool(Value)> isRoot) {
  SmallVector<bool> unneeded(parts.size(), true);
  llvm::DenseSet<Value> needed;
  for (bool changes = true; changes;) {
    changes = false;
    for (auto [isUnneeded, part] : llvm::zip_equal(unneeded, parts)) {
      if (!isUnneeded || llvm::none_of(part.written, [&](Value array) {
            return isRoot(array) || needed.contains(array);
          }))
        continue;
      isUnneeded = false;
      needed.insert(part.read.begin(), part.read.end());
      needed.insert(part.written.begin(), part.written.end()); // others may write there too
      changes = true;
    }
  }
  return unneeded;
}

llvm::SetVector<ForOp> findTelling(KernelOp kernel) {
  llvm::SetVector<ForOp> telling;
  auto shown = kernel->getAttrOfType<ArrayAttr>(kShownAttr);
  llvm::StringSet<> checked; // bounds that every call checks
  bool isAny = false;
  for (Attribute attribute : shown ? shown.getValue() : ArrayRef<Attribute>()) {
    auto entry = cast<DictionaryAttr>(attribute);
    auto bound = entry.getAs<StringAttr>("bound");
    if (!bound)
      continue;
    bool isLater = entry.getAs<WithinAttr>("within").getTolerance().isSampled && !entry.get("why");
    isAny |= isLater;
    if (!isLater)
      checked.insert(bound.getValue());
  }
  if (!isAny)
    return telling;
  SmallVector<ForOp> nests(kernel.getBody().getOps<ForOp>());
  SmallVector<ReadAndWritten> parts(nests.size());
  for (auto [nest, part] : llvm::zip_equal(nests, parts)) {
    nest->walk([&](Operation *op) {
      for (Value operand : op->getOperands())
        if (auto array = dyn_cast<BlockArgument>(operand);
            array && array.getOwner() == &kernel.getBody().front())
          (isa<StoreOp>(op) && operand == cast<StoreOp>(op).getArray() ? part.written : part.read)
              .insert(array);
    });
  }
  SmallVector<bool> unneeded = findUnneeded(parts, [&](Value array) {
    unsigned number = cast<BlockArgument>(array).getArgNumber();
    return !kernel.isTemporary(number) || checked.contains(kernel.getArrayName(number));
  });
  for (auto [nest, isUnneeded] : llvm::zip_equal(nests, unneeded))
    if (isUnneeded)
      telling.insert(nest);
  return telling;
}

} // namespace moa::onf
