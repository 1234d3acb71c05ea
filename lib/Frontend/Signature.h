//===- Signature.h - a kernel's header under the settings -------*- C++ -*-===//
#ifndef MOA_FRONTEND_SIGNATURE_H
#define MOA_FRONTEND_SIGNATURE_H

#include "lib/Frontend/Symbolic.h"

namespace moa::frontend {

using Settings = std::map<std::string, std::string>;

/// The header of a kernel with every symbol, type and shape known.
struct Signature {
  struct Array {
    mlir::Type elementType;
    llvm::SmallVector<SymExpr> shape;
    std::string range;     // of integers, "low..high" or empty
    std::string realRange; // of floats, the same
    /// The type of the elements in memory without a sign: i8 of u8.
    mlir::Type getStorage() const;
    std::optional<Tolerance> within; // of a result
  };
  SymbolTable symbols;
  std::map<std::string, mlir::Type> types;
  llvm::SmallVector<std::string> runtimeSymbols;
  llvm::SmallVector<Array> params, results;
  llvm::SmallVector<std::string> constraints;
  /// What the user assumes, as text: `[b, p] table[b, p] < NP`.
  llvm::SmallVector<std::string> assumptions;
  mlir::Type computeType;
};

/// Applies the settings to the header and evaluates it; tolerances of results that are `replaced`
/// may be any.
mlir::FailureOr<Signature> resolveSignature(const KernelDecl &kernel, const Settings &settings,
                                            const std::set<std::string> &replaced,
                                            const Reporter &reporter);

/// Every setting must name a symbol of some kernel.
mlir::LogicalResult checkSettings(const Program &program, const Settings &settings,
                                  const Reporter &reporter);

} // namespace moa::frontend

#endif // MOA_FRONTEND_SIGNATURE_H
