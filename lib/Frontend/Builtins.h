//===- Builtins.h - functions that the language defines itself --*- C++ -*-===//
#ifndef MOA_FRONTEND_BUILTINS_H
#define MOA_FRONTEND_BUILTINS_H

#include "dialects/MoA/IR/MoA.h"
#include <string>
#include <vector>

namespace moa::frontend {

struct Builtin {
  enum Kind {
    Pointwise,
    Mask,
    Transpose,
    Take,
    Drop,
    Reverse,
    Rotate,
    Cat,
    Reshape,
    Ravel,
    Iota,
    Psi,
    Outer,
    Inner,
    Reduce
  };
  llvm::StringLiteral name;
  Kind kind;
  ScalarFn fn;
  unsigned minArgs, maxArgs;
  /// The position of the argument that may be a list of integers, or -1.
  int listArg;
  llvm::StringLiteral usage;
};

/// Returns null if there is no builtin of that name.
const Builtin *lookupBuiltin(llvm::StringRef name);
std::vector<std::string> getBuiltinNames();

/// Returns the type named `f32`, `bf16`, `bool`, `index` …, or null for other names. `u8`, `u16`
/// and `u32` give unsigned integers. These describe only how an element is stored: no op has such a
/// type.
mlir::Type getElementType(mlir::MLIRContext *context, llvm::StringRef name);
/// Returns the name of an element type in the language.
std::string getTypeText(mlir::Type type);

/// Returns true if a name that is no type looks like a type of another language: `float32`, `f8`,
/// `u64`.
bool isForeignType(llvm::StringRef name);
/// Returns the end of the message for an unknown type: "; write 'f32'", or the list of types.
std::string getTypeHint(llvm::StringRef name, llvm::ArrayRef<std::string> parameters = {});

} // namespace moa::frontend

#endif // MOA_FRONTEND_BUILTINS_H
