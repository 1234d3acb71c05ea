//===- Unsigned.h - arrays of unsigned elements -----------------*- C++ -*-===//
//
// Integer types of the dialects are signless. An element of a parameter u8[N] is loaded as i8, and
// the front end masks it: x & 255. A result stores the low 8 bits of its value, as for i8. So only
// code that sees the memory from outside needs the signedness: callers, tools, and interpreters at
// their interface. This attribute, on a kernel of any level, names the unsigned arrays.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_DIALECTS_MOA_IR_UNSIGNED_H
#define MOA_DIALECTS_MOA_IR_UNSIGNED_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/STLExtras.h"

namespace moa {

/// The names of parameters and results whose elements are unsigned.
inline constexpr llvm::StringLiteral kUnsignedAttr = "moa.unsigned";

inline bool isUnsigned(mlir::Operation *kernel, llvm::StringRef name) {
  auto names = kernel->getAttrOfType<mlir::ArrayAttr>(kUnsignedAttr);
  return names && llvm::any_of(names, [&](mlir::Attribute entry) {
           auto text = llvm::dyn_cast<mlir::StringAttr>(entry);
           return text && text.getValue() == name;
         });
}

} // namespace moa

#endif // MOA_DIALECTS_MOA_IR_UNSIGNED_H
