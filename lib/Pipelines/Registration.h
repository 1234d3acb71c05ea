//===- Registration.h - dialects and passes of the compiler -----*- C++ -*-===//
#ifndef MOA_PIPELINES_REGISTRATION_H
#define MOA_PIPELINES_REGISTRATION_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace moa {

/// Every dialect a module may hold on its way from a specification to LLVM IR,
/// with the interfaces the lowering to LLVM needs.
void registerDialects(mlir::DialectRegistry &registry);

/// Every pass of this project under its flag, and the upstream passes its
/// pipelines are made of.
void registerPasses();

} // namespace moa

#endif // MOA_PIPELINES_REGISTRATION_H
