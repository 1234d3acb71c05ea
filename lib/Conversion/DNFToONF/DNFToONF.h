//===- DNFToONF.h - derivation of folds and addresses -----------*- C++ -*-===//
//
// Rewrites a dnf.kernel to an onf.kernel: reductions become folds in as few
// passes as the rules R0–R3 allow, ψ becomes base + Σ stride·index.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_CONVERSION_DNFTOONF_DNFTOONF_H
#define MOA_CONVERSION_DNFTOONF_DNFTOONF_H

#include "mlir/Pass/Pass.h"
#include <memory>
#include <string>
#include <vector>

namespace moa {

/// `convert-dnf-to-onf`.
/// Requires: dnf-verify. Establishes: onf-verify.
/// Numerics: reassociating; R3 rescales partial sums by factors within 1. The
/// parts of an operand that R0 takes apart are not rounded to its type. R1 moves
/// factors out of sums and assumes that what is left neither overflows nor
/// underflows where the sum as written would not. It does so for constants,
/// run-time scalars, elements of inputs and results of sums and products, and
/// for maxima and minima over the same range that R3 cannot repair inside. Other
/// factors made of maxima and minima stay, and so does every earlier result
/// beside a factor that occurs twice (docs/Spec.md, section 6).
/// `disabledRules` (of R0, R1, R2, R3) are not applied, for tests; the result
/// is then right but takes more passes. A remark names the subterm that keeps
/// a reduction from sharing a pass.
std::unique_ptr<mlir::Pass>
createConvertDNFToONFPass(std::vector<std::string> disabledRules = {});

/// Registers the pass for textual pipelines, with the option `disable`.
void registerConvertDNFToONFPass();

} // namespace moa

#endif // MOA_CONVERSION_DNFTOONF_DNFTOONF_H
