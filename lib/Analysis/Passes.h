//===- Passes.h - passes of the analyses ------------------------*- C++ -*-===//
#ifndef MOA_ANALYSIS_PASSES_H
#define MOA_ANALYSIS_PASSES_H

#include "dialects/ONF/IR/ONF.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Pass/Pass.h"

namespace moa {

#define GEN_PASS_DECL
#include "lib/Analysis/AnalysisPasses.h.inc"
#define GEN_PASS_REGISTRATION
#include "lib/Analysis/AnalysisPasses.h.inc"

/// Writes `pieces` and `bounds` to one fold directly inside a top-level nest (pass
/// onf-derive-intervals). The error gives the reason if there are no pieces.
llvm::Error deriveFoldIntervals(onf::FoldOp fold);

/// Returns the number of indices below `extent` that one row of the nest's last axis visits: the
/// size of the union of the fold's pieces, for these values of its bounds. Returns nothing if a
/// bound cannot be evaluated. The fold must have pieces.
std::optional<int64_t> countVisited(onf::FoldOp fold, int64_t row, llvm::ArrayRef<int64_t> bounds, int64_t extent);

} // namespace moa

#endif // MOA_ANALYSIS_PASSES_H
