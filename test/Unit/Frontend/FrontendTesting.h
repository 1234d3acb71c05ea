//===- FrontendTesting.h - what the tests of the front end share ----------===//
#ifndef MOA_UNITTESTS_FRONTEND_FRONTENDTESTING_H
#define MOA_UNITTESTS_FRONTEND_FRONTENDTESTING_H

#include "dialects/MoA/IR/MoA.h"
#include "lib/Frontend/Frontend.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/raw_ostream.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace moa::testing {

/// One specification, elaborated; keeps the context and what was printed.
struct Elaborated {
  explicit Elaborated(const std::string &text, std::map<std::string, std::string> settings = {}) {
    FrontendOptions options;
    options.settings = std::move(settings);
    llvm::raw_string_ostream os(messages);
    SourceDiagnosticHandler handler(text, "spec.moa", &context, os);
    module = parseMoA(text, "spec.moa", options, &context);
  }
  bool ok() { return static_cast<bool>(module); }
  KernelOp kernel() { return *module->getOps<KernelOp>().begin(); }
  /// The ops of the first kernel as text, without the wrapper.
  std::string ir() {
    std::string text;
    llvm::raw_string_ostream os(text);
    if (module)
      module->print(os);
    return text;
  }
  template <typename Op> llvm::SmallVector<Op> ops() {
    auto range = kernel().getBody().getOps<Op>();
    return llvm::SmallVector<Op>(range.begin(), range.end());
  }

  mlir::MLIRContext context;
  std::string messages;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

} // namespace moa::testing

#endif // MOA_UNITTESTS_FRONTEND_FRONTENDTESTING_H
