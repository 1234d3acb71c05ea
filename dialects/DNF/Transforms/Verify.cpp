//===- Verify.cpp - the contract of the denotational normal form ----------===//

#include "dialects/DNF/IR/DNF.h"
#include "dialects/DNF/Transforms/Passes.h"
#include "dialects/MoA/Transforms/Contract.h"
#include "llvm/Support/InterleavedRange.h"

using namespace mlir;

namespace moa::dnf {
#define GEN_PASS_DEF_DNFVERIFY
#include "dialects/DNF/Transforms/DNFPasses.h.inc"

namespace {
struct DNFVerify final : impl::DNFVerifyBase<DNFVerify> {
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
    WalkResult walked = kernel.getBody().walk([&](Operation *op) { return WalkResult(verify(op, symbols)); });
    return failure(walked.wasInterrupted() || failed(verifyOutputs(kernel)));
  }

  static LogicalResult verify(Operation *op, const DeclaredSymbols &symbols) {
    StringRef dialect = op->getName().getDialectNamespace();
    if (!llvm::is_contained({"dnf", "arith", "math"}, dialect))
      return op->emitOpError("expects scalar operations and ψ only (D1)");
    if (llvm::any_of(op->getResultTypes(), llvm::IsaPred<ArrayType>))
      return op->emitOpError("expects no array but the inputs (D1)");
    if (isa<WhereOp, JoinOp, OtherwiseOp>(op))
      return op->emitOpError("expects absence to be resolved (D2)");
    if (auto yield = dyn_cast<YieldOp>(op))
      if (yield.getPresent() && isa<LetOp>(op->getParentOp()))
        return op->emitOpError("expects a let that is present everywhere (D3)");
    if (auto domain = op->getAttrOfType<ArrayAttr>("domain"))
      return symbols.check(op, domain, "D4");
    for (StringRef name : {"extent", "expr"})
      if (auto expr = op->getAttrOfType<ExprAttr>(name))
        return symbols.check(op, expr.getValue(), "D4");
    return success();
  }

  static LogicalResult verifyOutputs(KernelOp kernel) {
    llvm::SmallBitVector defined(kernel.getResultTypes().size());
    for (OutputOp output : kernel.getBody().getOps<OutputOp>()) {
      uint64_t k = output.getResult();
      defined.set(k);
      auto type = cast<ArrayType>(cast<TypeAttr>(kernel.getResultTypes()[k]).getValue());
      SmallVector<Attribute> shape(type.getShape().begin(), type.getShape().end());
      if (output.getDomain().getValue() != ArrayRef<Attribute>(shape))
        return output.emitOpError("expects the extents of the result (D5), ")
               << type << ", but got "
               << llvm::interleaved_array(llvm::map_range(output.getDomain().getAsValueRange<ExprAttr>(),
                                                          [](const SymExpr &extent) { return extent.str(); }));
    }
    int missing = defined.find_first_unset();
    if (missing >= 0)
      return kernel.emitOpError("expects every result to be defined (D5), but ")
             << kernel.getResultNames()[missing] << " is not";
    return success();
  }
};
} // namespace
} // namespace moa::dnf
