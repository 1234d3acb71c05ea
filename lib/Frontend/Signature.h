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
    std::string range;     // of integers: "low..high" or empty
    std::string realRange; // of floats: the same
    /// Returns the element type in memory, signless: i8 for u8.
    mlir::Type getStorage() const;
    std::optional<Tolerance> within; // of a result
  };
  SymbolTable symbols;
  std::map<std::string, mlir::Type> types;
  llvm::SmallVector<std::string> runtimeSymbols;
  llvm::SmallVector<Array> params, results;
  llvm::SmallVector<std::string> constraints;
  /// The user's assumptions as text: `[b, p] table[b, p] < NP`.
  llvm::SmallVector<std::string> assumptions;
  mlir::Type computeType;
};

/// Applies the settings to the header and evaluates it. Does not check the tolerances of results in
/// `replaced`.
mlir::FailureOr<Signature> resolveSignature(const KernelDecl &kernel, const Settings &settings,
                                            const std::set<std::string> &replaced, const Reporter &reporter);

/// Checks that every setting names a symbol of some kernel.
mlir::LogicalResult checkSettings(const Program &program, const Settings &settings, const Reporter &reporter);

} // namespace moa::frontend

#endif // MOA_FRONTEND_SIGNATURE_H
