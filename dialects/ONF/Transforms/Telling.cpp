//===- Telling.cpp - parts that only serve error reports ------------------===//
#include "dialects/ONF/Transforms/Telling.h"

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

} // namespace moa::onf
