//===- ValidatePass.cpp - the pass moa-validate ---------------------------===//
#include "lib/Validation/Passes.h"
#include "lib/Validation/Validation.h"
#include "llvm/ADT/StringExtras.h"

namespace moa {
#define GEN_PASS_DEF_VALIDATEPASS
#include "lib/Validation/ValidationPasses.h.inc"
} // namespace moa

using namespace mlir;
using namespace moa;

namespace {
struct ValidatePass final : moa::impl::ValidatePassBase<ValidatePass> {
  using Base::Base;

  void runOnOperation() override {
    auto walked = getOperation()->walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (!isa<dnf::KernelOp, onf::KernelOp>(op))
        return WalkResult::advance();
      return failed(validate(op)) ? WalkResult::interrupt() : WalkResult::skip();
    });
    if (walked.wasInterrupted())
      signalPassFailure();
  }

  LogicalResult validate(Operation *kernel) {
    Validator validator(&getContext());
    LogicalResult result = failure();
    if (auto dnf = dyn_cast<dnf::KernelOp>(kernel))
      result = validator.checkBounds(dnf);
    else if (auto onf = cast<onf::KernelOp>(kernel); succeeded(validator.checkBounds(onf)))
      result = validator.checkLifting(onf, onf);
    if (succeeded(result) && print)
      for (const Fact &fact : validator.getFacts())
        llvm::outs() << moa::getName(fact.kind) << " of " << fact.subject << ": " << fact.statement << ": "
                     << moa::getName(fact.status)
                     << (fact.because.empty() ? "" : " (" + llvm::join(fact.because, ", ") + ")") << "\n";
    return result;
  }
};
} // namespace
