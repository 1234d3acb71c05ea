//===- Decisions.h - what a run has decided ---------------------*- C++ -*-===//
#ifndef MOA_TOOLS_MOA_RUN_DECISIONS_H
#define MOA_TOOLS_MOA_RUN_DECISIONS_H

#include "Values.h"
#include "llvm/Support/raw_ostream.h"

namespace moa {

/// Prints the plan and the estimates of every index, one line each, of what the outputs
/// tell of decisions; of many indices the first.
void printDecisions(llvm::raw_ostream &os, const KernelInfo &info,
                    const std::vector<Value> &outputs);

/// The plans as CompilerOptions::plans takes them, with what they are.
std::string getPlans(Compilation &unit, const KernelInfo &info, const std::vector<Value> &outputs);

} // namespace moa

#endif // MOA_TOOLS_MOA_RUN_DECISIONS_H
