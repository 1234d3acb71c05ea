//===- Builtins.h - functions that the language defines itself --*- C++ -*-===//
#ifndef MOA_FRONTEND_BUILTINS_H
#define MOA_FRONTEND_BUILTINS_H

#include "dialects/MoA/IR/MoA.h"
#include <optional>
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
  /// The argument that may be a list of integers, or -1.
  int listArg;
  llvm::StringLiteral usage;
};

/// Null if there is none of that name.
const Builtin *lookupBuiltin(llvm::StringRef name);
std::vector<std::string> getBuiltinNames();

/// The type that `f32`, `bf16`, `bool`, `index` … name; null for other names. `u8`, `u16` and
/// `u32` are unsigned, and stand for how an integer is stored: no op has such a type.
mlir::Type getElementType(mlir::MLIRContext *context, llvm::StringRef name);
/// The name of an element type in the language.
std::string getTypeText(mlir::Type type);

/// Whether a name that is no type reads like one of another language: `float32`, `f8`, `u64`.
bool isForeignType(llvm::StringRef name);
/// What the language has instead of a type that it lacks: "; write 'f32'", or the list.
std::string getTypeHint(llvm::StringRef name, llvm::ArrayRef<std::string> parameters = {});

} // namespace moa::frontend

#endif // MOA_FRONTEND_BUILTINS_H
