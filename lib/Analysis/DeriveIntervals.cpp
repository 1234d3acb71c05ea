//===- DeriveIntervals.cpp - pass onf-derive-intervals --------------------===//
#include "lib/Analysis/GuardReader.h"
#include "lib/Analysis/Passes.h"

namespace moa {
#define GEN_PASS_DEF_DERIVEINTERVALSPASS
#include "lib/Analysis/AnalysisPasses.h.inc"
} // namespace moa

using namespace mlir;
using namespace moa;

static onf::GuardOp guardOf(onf::FoldOp fold) {
  for (auto guard : fold.getBody().getOps<onf::GuardOp>())
    return guard;
  return {};
}

static void markUsed(ArrayRef<AffineExpr> expressions, llvm::BitVector &used) {
  for (AffineExpr e : expressions)
    e.walk([&](AffineExpr part) {
      if (auto symbol = dyn_cast<AffineSymbolExpr>(part))
        used.set(symbol.getPosition());
    });
}

/// Builds the pieces, with the used symbols renumbered from 0 in order.
static ArrayAttr makePieces(ArrayRef<Interval> intervals, const llvm::BitVector &used, MLIRContext *context) {
  SmallVector<AffineExpr> renumbered(used.size(), getAffineConstantExpr(0, context));
  unsigned count = 0;
  for (unsigned number : used.set_bits())
    renumbered[number] = getAffineSymbolExpr(count++, context);
  auto map = [&](ArrayRef<AffineExpr> expressions) {
    SmallVector<AffineExpr> results;
    for (AffineExpr e : expressions)
      results.push_back(e.replaceSymbols(renumbered));
    return AffineMap::get(2, count, results, context);
  };
  SmallVector<Attribute> pieces;
  for (const Interval &piece : intervals)
    pieces.push_back(onf::PieceAttr::get(context, map(piece.visitLower), map(piece.visitUpper), map(piece.fullLower),
                                         map(piece.fullUpper), piece.full));
  return ArrayAttr::get(context, pieces);
}

/// Returns an empty piece, for a predicate that is false everywhere.
static Interval nothing(MLIRContext *context) {
  Interval result;
  AffineExpr zero = getAffineConstantExpr(0, context);
  result.visitLower = result.visitUpper = result.fullLower = result.fullUpper = {zero};
  return result;
}

llvm::Error moa::deriveFoldIntervals(onf::FoldOp fold) {
  fold.removePiecesAttr();
  fold.getBoundsMutable().clear();
  onf::GuardOp guard = guardOf(fold);
  auto nest = dyn_cast<onf::ForOp>(fold->getParentOp());
  if (!guard || !nest)
    return llvm::Error::success();
  GuardReader reader(nest, fold);
  IntervalProblem problem = reader.read(guard);
  auto intervals = deriveIntervals(problem);
  if (!intervals)
    return intervals.takeError();
  MLIRContext *context = fold.getContext();
  if (intervals->empty())
    intervals->push_back(nothing(context));

  llvm::BitVector used(problem.numSymbols);
  for (const Interval &piece : *intervals) {
    markUsed(piece.visitLower, used);
    markUsed(piece.visitUpper, used);
    markUsed(piece.fullLower, used);
    markUsed(piece.fullUpper, used);
  }
  OpBuilder builder(fold);
  SmallVector<Value> bounds;
  for (unsigned number : used.set_bits())
    bounds.push_back(reader.materialise(number, builder));
  fold.setPiecesAttr(makePieces(*intervals, used, context));
  fold.getBoundsMutable().assign(bounds);
  return llvm::Error::success();
}

/// Returns the largest lower bound or the smallest upper bound of a piece for one row.
static std::optional<int64_t> boundOf(AffineMap map, int64_t row, ArrayRef<int64_t> bounds, bool isLower) {
  Builder b(map.getContext());
  SmallVector<Attribute> inputs(2, b.getIndexAttr(row)), results;
  for (int64_t value : bounds)
    inputs.push_back(b.getIndexAttr(value));
  if (failed(map.constantFold(inputs, results)) || results.empty())
    return std::nullopt;
  auto values = llvm::map_range(results, [](Attribute result) { return cast<IntegerAttr>(result).getInt(); });
  return isLower ? *llvm::max_element(values) : *llvm::min_element(values);
}

std::optional<int64_t> moa::countVisited(onf::FoldOp fold, int64_t row, ArrayRef<int64_t> bounds, int64_t extent) {
  SmallVector<std::pair<int64_t, int64_t>> intervals;
  for (auto piece : fold.getPiecesAttr().getAsRange<onf::PieceAttr>()) {
    auto lower = boundOf(piece.getVisitLower(), row, bounds, true),
         upper = boundOf(piece.getVisitUpper(), row, bounds, false);
    if (!lower || !upper)
      return std::nullopt;
    intervals.emplace_back(std::max<int64_t>(*lower, 0), std::min(*upper, extent));
  }
  llvm::sort(intervals);
  int64_t count = 0, reached = 0;
  for (auto [begin, end] : intervals) {
    count += std::max<int64_t>(end - std::max(begin, reached), 0);
    reached = std::max(reached, end);
  }
  return count;
}

namespace {
struct DeriveIntervalsPass final : moa::impl::DeriveIntervalsPassBase<DeriveIntervalsPass> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<onf::FoldOp> folds;
    getOperation()->walk([&](onf::FoldOp fold) {
      auto nest = dyn_cast<onf::ForOp>(fold->getParentOp());
      if (nest && isa<onf::KernelOp>(nest->getParentOp()))
        folds.push_back(fold);
    });
    for (onf::FoldOp fold : folds)
      if (llvm::Error error = deriveFoldIntervals(fold))
        mlir::emitRemark(fold.getLoc(), "visits every index of '")
            << fold.getName() << "': " << llvm::toString(std::move(error));
  }
};
} // namespace
