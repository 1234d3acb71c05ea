//===- Contract.h - helpers of the contract passes --------------*- C++ -*-===//
//
// A contract pass runs between two levels of every pipeline. It changes nothing, and fails if the
// IR violates the contract of its level.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_DIALECTS_MOA_TRANSFORMS_CONTRACT_H
#define MOA_DIALECTS_MOA_TRANSFORMS_CONTRACT_H

#include "dialects/MoA/IR/MoA.h"
#include "llvm/ADT/StringSet.h"

namespace moa {

/// The symbols that expressions of a kernel may use.
class DeclaredSymbols {
public:
  explicit DeclaredSymbols(mlir::ArrayAttr symbols);
  void add(llvm::StringRef name) { names.insert(name); }
  /// Emits an error at `op` if `expr` uses an undeclared symbol. `rule` is the constraint number in
  /// the message.
  mlir::LogicalResult check(mlir::Operation *op, const SymExpr &expr, llvm::StringRef rule) const;
  mlir::LogicalResult check(mlir::Operation *op, mlir::ArrayAttr exprs, llvm::StringRef rule) const;
  mlir::LogicalResult check(mlir::Operation *op, mlir::Type type, llvm::StringRef rule) const;

private:
  llvm::StringSet<> names;
};

/// Checks the interface of a kernel, which every level keeps (K1 to K3): distinct names, and
/// extents and constraints over declared symbols.
mlir::LogicalResult verifyInterface(mlir::Operation *kernel, mlir::ArrayAttr symbols, mlir::ArrayAttr constraints,
                                    mlir::ArrayAttr argNames, mlir::ArrayAttr resultNames, mlir::ArrayAttr resultTypes);

} // namespace moa

#endif // MOA_DIALECTS_MOA_TRANSFORMS_CONTRACT_H
