//===- DNFToONF.h - derivation of folds and addresses -----------*- C++ -*-===//
//
// Rewrites a dnf.kernel to an onf.kernel. Reductions become folds in as few passes as the rules R0
// to R7 allow, and ψ becomes a load at linear indices.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_CONVERSION_DNFTOONF_DNFTOONF_H
#define MOA_CONVERSION_DNFTOONF_DNFTOONF_H

#include "mlir/Pass/Pass.h"
#include <memory>
#include <string>
#include <vector>

namespace moa {

class FoldObserver;

/// Creates `convert-dnf-to-onf`; lib/Conversion/Passes.td describes it. `disabledRules` (R0 to R7)
/// are not applied, for tests; the result is then still right but takes more passes. A remark names
/// the subterm that keeps a reduction from sharing a pass. The `observer`, if any, is notified of
/// every step.
std::unique_ptr<mlir::Pass> createConvertDNFToONFPass(std::vector<std::string> disabledRules = {},
                                                      FoldObserver *observer = nullptr);

} // namespace moa

#endif // MOA_CONVERSION_DNFTOONF_DNFTOONF_H
