//===- Context.h - one context for many inputs ------------------*- C++ -*-===//
#ifndef MOA_TEST_FUZZ_CONTEXT_H
#define MOA_TEST_FUZZ_CONTEXT_H

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include <memory>

namespace moa::fuzz {

/// A context that keeps its messages to itself. What it keeps of every input (attributes,
/// types, locations) goes with it after a while.
inline mlir::MLIRContext &getContext(void (*addDialects)(mlir::DialectRegistry &)) {
  static std::unique_ptr<mlir::MLIRContext> context;
  static unsigned uses = 0;
  if (uses++ % 500 == 0) {
    mlir::DialectRegistry registry;
    addDialects(registry);
    context.reset();
    context = std::make_unique<mlir::MLIRContext>(registry, mlir::MLIRContext::Threading::DISABLED);
    context->loadAllAvailableDialects();
    context->getDiagEngine().registerHandler([](mlir::Diagnostic &) { return mlir::success(); });
  }
  return *context;
}

} // namespace moa::fuzz

#endif // MOA_TEST_FUZZ_CONTEXT_H
