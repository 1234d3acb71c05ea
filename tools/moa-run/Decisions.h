//===- Decisions.h - decisions of a run -------------------------*- C++ -*-===//
#ifndef MOA_TOOLS_MOA_RUN_DECISIONS_H
#define MOA_TOOLS_MOA_RUN_DECISIONS_H

#include "Values.h"
#include "llvm/Support/raw_ostream.h"

namespace moa {

/// Prints the plan and the error estimates of every index, one per line; with many indices, of the
/// first ones.
void printDecisions(llvm::raw_ostream &os, const KernelInfo &info, const std::vector<HostArray> &outputs);

/// Returns the plans in the format of CompilerOptions::plans, with descriptions.
std::string getPlans(Compilation &compilation, const KernelInfo &info, const std::vector<HostArray> &outputs);

} // namespace moa

#endif // MOA_TOOLS_MOA_RUN_DECISIONS_H
