//===- OrderRows.cpp - pass onf-order-rows --------------------------------===//
//
// The last axis of a nest becomes the rows of a tile, on every target. Outputs may be stored in any
// order, so the pass moves an axis last whose rows share operands. For example, O[b, n, h, d] has
// other keys for each head h but not for each n, so n moves last.
//
//===----------------------------------------------------------------------===//
#include "lib/Analysis/OnDemand.h"
#include "lib/Conversion/ONFToVector/Columns.h"
#include "lib/Conversion/ONFToVector/FoldPlan.h"
#include "lib/Conversion/ONFToVector/ONFToVector.h"

using namespace mlir;

namespace moa {

#define GEN_PASS_DEF_ORDERROWS
#include "lib/Conversion/ConversionPasses.h.inc"

namespace {

/// Counts the folds of the nest that contract rows of `axis` with operands shared by all rows.
/// Returns first the number of those that contract the result of another contraction, then of all.
std::pair<unsigned, unsigned> countProducts(onf::ForOp nest, BlockArgument axis) {
  OnDemand onDemand(nest->getParentOfType<onf::KernelOp>());
  rows::Dependence deps;
  unsigned chains = 0, products = 0;
  for (auto fold : nest.getBody().getOps<onf::FoldOp>()) {
    auto plan = rows::planFold(fold, axis, deps, onDemand, nullptr, rows::kTensorSums);
    bool isProduct = plan && !plan->accumulators.empty();
    products += isProduct;
    chains += isProduct && !plan->scores.empty();
  }
  return {chains, products};
}

struct OrderRows final : impl::OrderRowsBase<OrderRows> {
  void runOnOperation() final {
    for (auto kernel : getOperation().getOps<onf::KernelOp>())
      for (auto nest : llvm::to_vector(kernel.getBody().getOps<onf::ForOp>())) {
        auto axes = nest.getBody().getArguments();
        if (axes.size() < 2 || nest.getLift())
          continue;
        // Keep the last axis unless another has more products. Prefer the nearest axis.
        unsigned best = axes.size() - 1;
        auto most = countProducts(nest, axes[best]);
        for (unsigned axis = best; axis-- > 0;)
          if (auto products = countProducts(nest, axes[axis]); products > most) {
            best = axis;
            most = products;
          }
        if (best + 1 != axes.size())
          rows::moveLast(nest, best);
      }
  }
};

} // namespace

std::unique_ptr<Pass> createOrderRowsPass() { return std::make_unique<OrderRows>(); }

} // namespace moa
