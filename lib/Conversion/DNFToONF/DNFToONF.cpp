//===- DNFToONF.cpp - the pass convert-dnf-to-onf -------------------------===//
#include "lib/Conversion/DNFToONF/DNFToONF.h"
#include "lib/Conversion/DNFToONF/Derivation.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/CSE.h"

using namespace mlir;
using namespace moa;

namespace {

struct ConvertDNFToONF : PassWrapper<ConvertDNFToONF, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ConvertDNFToONF)
  ConvertDNFToONF() = default;
  ConvertDNFToONF(const ConvertDNFToONF &other) : PassWrapper(other) {}

  StringRef getArgument() const final { return "convert-dnf-to-onf"; }
  StringRef getDescription() const final {
    return "fuse reductions into folds by the rules R0-R3 and make addresses of ψ";
  }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<onf::ONFDialect, arith::ArithDialect, math::MathDialect>();
  }
  void runOnOperation() final {
    llvm::StringSet<> disabled;
    for (const std::string &rule : disable) {
      if (!llvm::is_contained({"R0", "R1", "R2", "R3", "R6"}, rule)) {
        getOperation().emitError("unknown rule '") << rule << "'; there are R0, R1, R2, R3 and R6";
        return signalPassFailure();
      }
      disabled.insert(rule);
    }
    for (dnf::KernelOp kernel :
         llvm::make_early_inc_range(getOperation().getOps<dnf::KernelOp>())) {
      ExprContext exprs(&getContext());
      Derivation derivation(exprs, kernel, disabled);
      std::vector<NestPlan> nests = derivation.run();
      onf::KernelOp result =
          emitONF(exprs, derivation.getRules(), derivation, kernel, nests);
      kernel.erase();
      IRRewriter rewriter(&getContext());
      DominanceInfo dominance(result);
      eliminateCommonSubExpressions(rewriter, dominance, result);
    }
  }

  ListOption<std::string> disable{*this, "disable",
                                  llvm::cl::desc("rules not to apply, for tests")};
};

} // namespace

std::unique_ptr<Pass>
moa::createConvertDNFToONFPass(std::vector<std::string> disabledRules) {
  auto pass = std::make_unique<ConvertDNFToONF>();
  for (std::string &rule : disabledRules)
    pass->disable.push_back(rule);
  return pass;
}

void moa::registerConvertDNFToONFPass() { PassRegistration<ConvertDNFToONF>(); }
