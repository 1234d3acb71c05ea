//===- Unsigned.h - arrays that are stored without a sign -------*- C++ -*-===//
//
// Integers in the dialects have no sign of their own. Elements of a parameter u8[N] are
// loaded as i8, and the front end keeps their low 8 bits: x & 255 of the loaded value.
// A result stores the low 8 bits of its value, as one of type i8 does. So only those who
// see the memory from outside need to know the sign: callers, tools, and the interpreters
// where values leave them. This attribute of a kernel of any level names the arrays.
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
