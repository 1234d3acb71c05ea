//===- Signature.h - a kernel's parameters as its callers see them -*- C++ -*-===//
//
// Plain data read from any kernel op (moa, dnf, onf or a device.program), which carry the same
// attributes. The entry points, the header, the tools and the report use it.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_TARGET_SIGNATURE_H
#define MOA_TARGET_SIGNATURE_H

#include "lib/Support/SymExpr.h"
#include "lib/Support/Tolerance.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace mlir {
class Operation;
class Type;
} // namespace mlir

namespace moa {

/// Element types of arrays and scalars in memory. Only temporaries have F8E4M3.
enum class ElementType { F64, F32, BF16, F16, F8E4M3, I1, I8, I16, I32, I64, U8, U16, U32 };

llvm::StringRef getName(ElementType type);
/// Returns the bits in memory; a boolean takes a byte.
unsigned getBits(ElementType type);
/// Returns nothing for a type that no array in memory has.
std::optional<ElementType> getElementType(mlir::Type type, bool isUnsigned = false);
int getDLPackCode(ElementType type);
llvm::StringRef getScalarCType(ElementType type);

struct Parameter {
  std::string name;
  ElementType type = ElementType::F32;
  std::vector<SymExpr> extents;
  bool isOutput = false;
  std::optional<Tolerance> within; ///< of an output

  unsigned getRank() const { return extents.size(); }
  /// Returns whether the parameter is passed by value: an input of rank 0.
  bool isScalar() const { return extents.empty() && !isOutput; }
  /// Returns the extents in the user's notation.
  std::string getAxes() const;
  /// For example, `bf16[B, H, N, 128]`.
  std::string getTypeText() const;
  /// For example, `O : bf16[B, H, N, 128] within 3e-2`.
  std::string getText() const;
};

/// A comparison `lhs relation rhs`. Relations are numbered == != < <= > >=.
struct Constraint {
  std::string text;
  int relation = 0;
  SymExpr lhs, rhs;

  const char *getRelation() const;
};

/// How to compute a symbol from the shapes: an expression over earlier symbols and the
/// pseudo-symbols `K.shape[2]`.
struct SymbolBinding {
  std::string name;
  SymExpr value;
};

/// On a GPU: a result whose tolerance is checked at run time. `parameter` is its number. If the
/// inputs decide, `bounds` names the workspace array with the f32 bounds on its errors, which
/// NAME_shown computes and compares. If nothing can show the tolerance, `why` is the reason and
/// NAME returns MOA_NOT_SHOWN.
struct ShownLater {
  unsigned parameter = 0;
  std::string bounds, why;
  Tolerance within;
};

struct KernelSignature {
  std::string name;
  std::vector<std::string> symbols;  ///< in order of declaration
  std::vector<Parameter> parameters; ///< inputs, then outputs
  std::vector<Constraint> constraints;
  std::vector<SymbolBinding> bindings; ///< in order of evaluation
  bool hasShown = false;               ///< an entry point NAME_shown; some tolerance depends on the inputs
  std::vector<ShownLater> shownLater;  ///< of a device.program, from `moa.shown` (ONF/IR/Hints.h)

  /// Returns the entries of shownLater that can never be shown.
  std::vector<const ShownLater *> getNeverShown() const;
  /// Returns whether the inputs decide about an entry of shownLater.
  bool hasInputDependentTolerance() const { return getNeverShown().size() < shownLater.size(); }

  /// Returns the array parameters in the order of the entry points' descriptors.
  std::vector<const Parameter *> getArrays() const;
  std::vector<const Parameter *> getScalars() const;
  /// Returns the parameters in the order of the entry points: input arrays, scalars, outputs.
  std::vector<const Parameter *> getCallingOrder() const;
  /// For example, `gqa(Q : bf16[B, H, N, 128], …) -> (O : bf16[B, H, N, 128])`.
  std::string getText() const;
};

/// Reads a kernel op. Fails if a symbol does not follow from the shapes.
llvm::Expected<KernelSignature> getSignature(mlir::Operation *kernel);

/// Returns the workspace arrays that nests on a CPU pass to later nests, from the module attribute
/// `moa.temporaries`.
llvm::Expected<std::vector<Parameter>> getTemporaries(mlir::Operation *module);

/// A result whose tolerance a call checks: its number among the arrays, and that of the temporary
/// with its error bounds. `why` is the reason if these are infinite for all inputs.
struct ShownResult {
  size_t array = 0, temporary = 0;
  std::string why;
};

/// Returns these results of a kernel, from the module attribute `moa.shown`
/// (dialects/ONF/IR/Hints.h).
llvm::Expected<std::vector<ShownResult>> getShown(mlir::Operation *module, const KernelSignature &signature);

/// Returns an expression or constraint in the user's notation, for example `H % G`.
std::string getReadable(llvm::StringRef text);

/// Returns the pseudo-symbol of an argument's extent, for example `K.shape[2]`.
std::string getShapeSymbol(llvm::StringRef array, unsigned axis);

} // namespace moa

#endif // MOA_TARGET_SIGNATURE_H
