//===- OrderProducts.cpp - pass onf-order-products ------------------------===//
//
// A product of warps needs its columns and rows as the last two axes of the nest. The iterations of
// a nest are independent, so that its axes can be permuted.
//
//===----------------------------------------------------------------------===//
#include "lib/Conversion/ONFToDevice/Forms.h"
#include "lib/Conversion/ONFToDevice/ONFToDevice.h"
#include "lib/Conversion/ONFToVector/Columns.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;

namespace moa {

#define GEN_PASS_DEF_ORDERPRODUCTS
#include "lib/Conversion/ConversionPasses.h.inc"

/// Moves an axis of the nest last if that makes it a product. Later axes are tried first.
static void orderProduct(onf::ForOp nest) {
  unsigned rank = nest.getExtents().size();
  if (rank < 3 || nest.getLift() || nest.getBody().getOps<onf::FoldOp>().empty())
    return;
  OpBuilder b(nest);
  auto isProduct = [&](ArrayRef<unsigned> moved) {
    auto copy = cast<onf::ForOp>(b.clone(*nest.getOperation()));
    for (unsigned axis : moved)
      rows::moveLast(copy, axis);
    bool found = applies(forms::warps, copy);
    copy.erase();
    return found;
  };
  if (isProduct({}))
    return;
  // The other axis of the product is the last or the second to last.
  for (unsigned axis = rank - 1; axis-- > 0;)
    if (isProduct({axis}))
      return rows::moveLast(nest, axis);
}

namespace {
struct OrderProducts final : impl::OrderProductsBase<OrderProducts> {
  void runOnOperation() final {
    for (auto kernel : getOperation().getOps<onf::KernelOp>())
      for (auto nest : llvm::to_vector(kernel.getBody().getOps<onf::ForOp>()))
        orderProduct(nest);
  }
};
} // namespace

std::unique_ptr<Pass> createOrderProductsPass() { return std::make_unique<OrderProducts>(); }

} // namespace moa
