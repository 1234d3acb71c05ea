//===- Manifest.h - JSON description of entry points ------------*- C++ -*-===//
#ifndef MOA_TARGET_MANIFEST_H
#define MOA_TARGET_MANIFEST_H

#include "lib/Target/Signature.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/JSON.h"

namespace moa {

/// The version of the manifests of all targets.
inline constexpr int kManifestVersion = 3;

llvm::json::Array describeShape(llvm::ArrayRef<SymExpr> extents);

/// Returns the fields of a program that do not depend on the target: name, symbols, bindings,
/// constraints and arguments.
llvm::json::Object describeSignature(const KernelSignature &signature);

/// Returns the manifest of kernels for CPUs.
std::string printManifest(llvm::ArrayRef<KernelSignature> kernels);

} // namespace moa

#endif // MOA_TARGET_MANIFEST_H
