//===- MoA.h - the moa dialect ----------------------------------*- C++ -*-===//
#ifndef MOA_DIALECTS_MOA_IR_MOA_H
#define MOA_DIALECTS_MOA_IR_MOA_H

#include "lib/Support/SymExpr.h"
#include "lib/Support/Tolerance.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/MoA/IR/MoADialect.h.inc"
#include "dialects/MoA/IR/MoAEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/MoA/IR/MoAAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/MoA/IR/MoATypes.h.inc"
#define GET_OP_CLASSES
#include "dialects/MoA/IR/MoAOps.h.inc"

namespace moa {
/// Returns the expression of an ExprAttr, for example of an element of an array of extents.
inline const SymExpr &getSymExpr(mlir::Attribute expr) { return llvm::cast<ExprAttr>(expr).getValue(); }
/// Parses and prints expressions in ops, as quoted text: `"M - N"` and `["N", "M - N"]`.
mlir::ParseResult parseExpr(mlir::AsmParser &parser, ExprAttr &expr);
mlir::ParseResult parseExprs(mlir::AsmParser &parser, mlir::ArrayAttr &exprs);
void printExpr(mlir::AsmPrinter &printer, mlir::Operation *op, ExprAttr expr);
void printExprs(mlir::AsmPrinter &printer, mlir::Operation *op, mlir::ArrayAttr exprs);
/// Parses and prints ["x₁" > "y₁", …]. The list holds x₁, y₁, x₂, y₂, ….
mlir::ParseResult parsePairs(mlir::AsmParser &parser, mlir::ArrayAttr &exprs);
void printPairs(mlir::AsmPrinter &printer, mlir::Operation *op, mlir::ArrayAttr exprs);
/// Returns the tolerance of a result of a kernel of moa, dnf or onf, or null.
WithinAttr getWithin(mlir::Operation *kernel, unsigned result);
/// Checks such a kernel: one tolerance or unit per result, and tolerances only for floats.
mlir::LogicalResult verifyWithin(mlir::Operation *kernel, llvm::StringRef rule);
unsigned getArity(ScalarFn fn);
} // namespace moa

#endif // MOA_DIALECTS_MOA_IR_MOA_H
