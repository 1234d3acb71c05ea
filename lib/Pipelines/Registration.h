//===- Registration.h - dialects and passes of the compiler -----*- C++ -*-===//
#ifndef MOA_PIPELINES_REGISTRATION_H
#define MOA_PIPELINES_REGISTRATION_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace moa {

/// Registers every dialect that a module may hold between a specification and LLVM IR, with the
/// interfaces that the lowering to LLVM needs.
void registerDialects(mlir::DialectRegistry &registry);

/// Registers every pass of this project under its flag, and the upstream passes of its pipelines.
void registerPasses();

} // namespace moa

#endif // MOA_PIPELINES_REGISTRATION_H
