//===- Verify.cpp - the contract of the moa level -------------------------===//

#include "dialects/MoA/Transforms/Contract.h"
#include "dialects/MoA/Transforms/Passes.h"

using namespace mlir;

namespace moa {
#define GEN_PASS_DEF_MOAVERIFY
#include "dialects/MoA/Transforms/MoAPasses.h.inc"

namespace {
struct MoAVerify final : impl::MoAVerifyBase<MoAVerify> {
  using Base::Base;

  void runOnOperation() override {
    markAllAnalysesPreserved();
    getOperation()->walk([&](KernelOp kernel) {
      if (failed(verify(kernel)))
        signalPassFailure();
    });
  }

  static LogicalResult verify(KernelOp kernel) {
    if (failed(verifyInterface(kernel, kernel.getSymbols(), kernel.getRequires(), kernel.getArgNames(),
                               kernel.getResultNames(), kernel.getResultTypes())))
      return failure();
    DeclaredSymbols symbols(kernel.getSymbols());
    for (Operation &op : kernel.getBody().front())
      if (failed(verify(&op, symbols)))
        return failure();
    return success();
  }

  static LogicalResult verify(Operation *op, const DeclaredSymbols &symbols) {
    if (!isa_and_nonnull<MoADialect>(op->getDialect()))
      return op->emitOpError("expects operators of the algebra only (M1)");
    for (Type type : op->getResultTypes())
      if (failed(symbols.check(op, type, "M2")))
        return failure();
    for (StringRef name : {"expr", "extent", "start", "count", "by"})
      if (auto expr = op->getAttrOfType<ExprAttr>(name))
        if (failed(symbols.check(op, expr.getValue(), "M2")))
          return failure();
    return success();
  }
};
} // namespace
} // namespace moa
