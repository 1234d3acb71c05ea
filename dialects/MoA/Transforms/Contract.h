//===- Contract.h - what the contract passes share --------------*- C++ -*-===//
//
// A contract pass runs between two levels of every pipeline, changes nothing
// and fails where the IR does not keep what the level promises.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_DIALECTS_MOA_TRANSFORMS_CONTRACT_H
#define MOA_DIALECTS_MOA_TRANSFORMS_CONTRACT_H

#include "dialects/MoA/IR/MoA.h"
#include "llvm/ADT/StringSet.h"

namespace moa {

/// The symbols a kernel's expressions may use.
class DeclaredSymbols {
public:
  explicit DeclaredSymbols(mlir::ArrayAttr symbols);
  void add(llvm::StringRef name) { names.insert(name); }
  /// Emits an error at `op` when `text` is malformed or uses another symbol.
  /// `rule` is the number of the constraint in the message.
  mlir::LogicalResult check(mlir::Operation *op, llvm::StringRef text, llvm::StringRef rule) const;
  mlir::LogicalResult check(mlir::Operation *op, mlir::ArrayAttr texts, llvm::StringRef rule) const;
  mlir::LogicalResult check(mlir::Operation *op, mlir::Type type, llvm::StringRef rule) const;

private:
  llvm::StringSet<> names;
};

/// The parts of a kernel's interface that every level keeps: distinct names,
/// extents and constraints over declared symbols.
mlir::LogicalResult verifyInterface(mlir::Operation *kernel, mlir::ArrayAttr symbols,
                                    mlir::ArrayAttr constraints, mlir::ArrayAttr argNames,
                                    mlir::ArrayAttr resultNames, mlir::ArrayAttr resultTypes);

} // namespace moa

#endif // MOA_DIALECTS_MOA_TRANSFORMS_CONTRACT_H
