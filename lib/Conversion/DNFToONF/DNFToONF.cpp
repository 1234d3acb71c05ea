//===- DNFToONF.cpp - the pass convert-dnf-to-onf -------------------------===//
#include "lib/Conversion/DNFToONF/DNFToONF.h"
#include "dialects/DNF/Transforms/Passes.h"
#include "lib/Conversion/DNFToONF/Derivation.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/CSE.h"

namespace moa {
#define GEN_PASS_DECL_CONVERTDNFTOONF
#define GEN_PASS_DEF_CONVERTDNFTOONF
#include "lib/Conversion/ConversionPasses.h.inc"
} // namespace moa

using namespace mlir;
using namespace moa;

namespace {

struct ConvertDNFToONF final : moa::impl::ConvertDNFToONFBase<ConvertDNFToONF> {
  using Base::Base;

  void runOnOperation() final {
    llvm::StringSet<> disabled;
    for (const std::string &rule : disable) {
      if (!llvm::is_contained({"R0", "R1", "R2", "R3", "R4", "R5", "R6", "R7"}, rule)) {
        getOperation().emitError("unknown rule '") << rule << "'; there are R0 to R7";
        return signalPassFailure();
      }
      disabled.insert(rule);
    }
    // The derivation takes the contract for granted.
    OpPassManager contract(ModuleOp::getOperationName());
    contract.addPass(dnf::createDNFVerify());
    if (failed(runPipeline(contract, getOperation())))
      return signalPassFailure();
    for (dnf::KernelOp kernel : llvm::make_early_inc_range(getOperation().getOps<dnf::KernelOp>())) {
      ExprContext exprs(&getContext());
      Derivation derivation(exprs, kernel, disabled, observer);
      std::vector<NestPlan> nests = derivation.run();
      onf::KernelOp result = emitONF(exprs, derivation, kernel, nests, mostOps);
      if (!result)
        return signalPassFailure();
      kernel.erase();
      IRRewriter rewriter(&getContext());
      DominanceInfo dominance(result);
      eliminateCommonSubExpressions(rewriter, dominance, result);
    }
  }

  FoldObserver *observer = nullptr;
};

} // namespace

std::unique_ptr<Pass> moa::createConvertDNFToONFPass(std::vector<std::string> disabledRules, FoldObserver *observer) {
  ConvertDNFToONFOptions options;
  options.disable.assign(disabledRules.begin(), disabledRules.end());
  auto pass = std::make_unique<ConvertDNFToONF>(options);
  pass->observer = observer;
  return pass;
}
