//===- RoundingErrorPass.cpp - bounds on rounding errors as text ----------===//
#include "lib/Accuracy/Bounds/RoundingError.h"
#include "lib/Accuracy/Passes.h"
#include "llvm/Support/FormatVariadic.h"

namespace moa {
#define GEN_PASS_DEF_PRINTERRORSPASS
#include "lib/Accuracy/AccuracyPasses.h.inc"
} // namespace moa

using namespace mlir;
using namespace moa;

namespace {
struct PrintErrorsPass final : moa::impl::PrintErrorsPassBase<PrintErrorsPass> {
  using Base::Base;
  void runOnOperation() override {
    llvm::Expected<FormatAssignment> assignment = parseFormats(StringRef(formats.getValue()));
    if (!assignment) {
      getOperation()->emitError(llvm::toString(assignment.takeError()));
      return signalPassFailure();
    }
    getOperation()->walk([&](dnf::KernelOp kernel) {
      auto analysis = RoundingErrorAnalysis::create(kernel);
      if (llvm::Error error = analysis.check(*assignment)) {
        kernel.emitError(llvm::toString(std::move(error)));
        return signalPassFailure();
      }
      if (json) {
        llvm::outs() << llvm::formatv("{0:2}", analysis.toJSON(*assignment)) << "\n";
      } else {
        llvm::outs() << "errors of " << kernel.getSymName() << "\n";
        analysis.print(llvm::outs(), *assignment);
      }
    });
    markAllAnalysesPreserved();
  }
};
} // namespace
