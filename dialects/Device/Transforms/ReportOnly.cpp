//===- ReportOnly.cpp - kernels that only serve error reports -------------===//
#include "dialects/Device/Transforms/Accesses.h"
#include "dialects/ONF/IR/Hints.h"

using namespace mlir;

namespace moa::device {

llvm::SetVector<KernelOp> findReportOnly(ProgramOp program) {
  llvm::SetVector<KernelOp> reporting;
  auto shown = program->getAttrOfType<ArrayAttr>(onf::kShownAttr);
  if (!shown || llvm::none_of(shown.getAsRange<DictionaryAttr>(), [](auto entry) { return entry.get("bound"); }))
    return reporting;
  SmallVector<std::pair<KernelOp, Accesses>> kernels;
  for (auto kernel : program.getBody().getOps<KernelOp>()) {
    kernels.push_back({kernel, Accesses(kernel)});
    reporting.insert(kernel);
  }
  // A kernel is needed if it writes a result, or an array that a needed kernel accesses.
  llvm::DenseSet<Value> needed;
  for (bool changes = true; changes;) {
    changes = false;
    for (auto &[kernel, accesses] : kernels) {
      bool isNeeded = llvm::any_of(accesses.written,
                                   [&](Value array) { return !program.isWorkspace(array) || needed.contains(array); });
      if (!isNeeded || !reporting.remove(kernel))
        continue;
      needed.insert(accesses.read.begin(), accesses.read.end());
      needed.insert(accesses.written.begin(), accesses.written.end()); // others may write there too
      changes = true;
    }
  }
  return reporting;
}

} // namespace moa::device
