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

/// Writes `pieces` and `bounds` on one fold that stands directly in a top-level
/// nest (pass onf-derive-intervals). Returns why there are none, if so.
llvm::Error deriveFoldIntervals(onf::FoldOp fold);

/// Indices below `extent` that one row of the nest's last axis visits: the union of the fold's
/// pieces, with the values of its bounds. Nothing if a piece has no value there. The fold has
/// pieces.
std::optional<int64_t> countVisited(onf::FoldOp fold, int64_t row, llvm::ArrayRef<int64_t> bounds,
                                    int64_t extent);

} // namespace moa

#endif // MOA_ANALYSIS_PASSES_H
