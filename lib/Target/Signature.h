//===- Signature.h - what a caller of a kernel sees -------------*- C++ -*-===//
//
// The parameters of one kernel in plain data: read from a moa.kernel,
// dnf.kernel or onf.kernel, which carry the same attributes, and used by the
// entry points, the header, the tools and the report.
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
} // namespace mlir

namespace moa {

/// Element types of arrays and scalars in memory.
/// F8E4M3 is one of temporaries only.
enum class ElementType { F64, F32, BF16, F16, F8E4M3, I1, I8, I16, I32, I64, U8, U16, U32 };

llvm::StringRef getName(ElementType type);
/// Bits in memory; a boolean takes a byte.
unsigned getBits(ElementType type);
/// DLPack's type code.
int getDLPackCode(ElementType type);
/// The C type of a scalar parameter.
llvm::StringRef getScalarCType(ElementType type);

struct Parameter {
  std::string name;
  ElementType type = ElementType::F32;
  std::vector<SymExpr> extents;
  bool isOutput = false;
  std::optional<Tolerance> within; ///< of an output

  unsigned getRank() const { return extents.size(); }
  /// Passed by value: an input of rank zero.
  bool isScalar() const { return extents.empty() && !isOutput; }
  /// `bf16[B, H, N, 128]`.
  std::string getTypeText() const;
  /// `O : bf16[B, H, N, 128] within 3e-2`.
  std::string getText() const;
};

/// `lhs relation rhs`, the relations being == != < <= > >= in this order.
struct Constraint {
  std::string text;
  int relation = 0;
  SymExpr lhs, rhs;
};

/// How a symbol's value follows from the shapes: an expression over earlier
/// symbols and the pseudo-symbols `K.shape[2]`.
struct SymbolBinding {
  std::string name;
  SymExpr value;
};

/// On a GPU: a result whose tolerance a call tells of, by its number among the parameters. Where
/// inputs decide, `bounds` is the array of the workspace that has bounds on its errors, in f32,
/// which NAME_shown finds and compares; where nothing ever shows it, `why` says why, and NAME
/// returns MOA_NOT_SHOWN.
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
  bool hasShown = false; ///< an entry point NAME_shown, as inputs decide whether some result is
                         ///< within its tolerance
  /// Entries of shownLater of which nothing is ever shown.
  std::vector<const ShownLater *> getNeverShown() const;
  std::vector<ShownLater>
      shownLater; ///< of a device.program, from its `moa.shown` (dialects/ONF/IR/Hints.h)

  /// Array parameters in the order of the entry points' descriptors.
  std::vector<const Parameter *> getArrays() const;
  std::vector<const Parameter *> getScalars() const;
  /// `gqa(Q : bf16[B, H, N, 128], …) -> (O : bf16[B, H, N, 128])`.
  std::string getText() const;
};

/// Reads a kernel op. Fails when a symbol does not follow from the shapes.
llvm::Expected<KernelSignature> getSignature(mlir::Operation *kernel);

/// The arrays of the workspace that nests of a CPU pass to later ones, from the attribute
/// `moa.temporaries` of their module.
llvm::Expected<std::vector<Parameter>> getTemporaries(mlir::Operation *module);

/// A result whose tolerance a call checks: its number among the arrays, and that of the temporary
/// with the bounds of its errors; and why these are infinite whatever the inputs are, if they are.
struct ShownResult {
  size_t array = 0, temporary = 0;
  std::string why;
};

/// Those of a kernel, from the attribute `moa.shown` (dialects/ONF/IR/Hints.h) of its module.
llvm::Expected<std::vector<ShownResult>> getShown(mlir::Operation *module,
                                                  const KernelSignature &signature);

/// An expression or constraint as the user would write it: `H % G`.
std::string getReadable(llvm::StringRef text);

/// The name of the pseudo-symbol for an extent of an argument.
std::string getShapeSymbol(llvm::StringRef array, unsigned axis);

} // namespace moa

#endif // MOA_TARGET_SIGNATURE_H
