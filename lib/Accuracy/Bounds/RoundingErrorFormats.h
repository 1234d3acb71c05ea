//===- RoundingErrorFormats.h - formats of contraction operands -*- C++ -*-===//
//
// The rounding errors of formats for contraction operands, and the error model of the operations of
// every lowering [Def 26, Def 27 of docs/Accuracy/Bounds.md].
//
//===----------------------------------------------------------------------===//
#ifndef MOA_ACCURACY_ROUNDINGERRORFORMATS_H
#define MOA_ACCURACY_ROUNDINGERRORFORMATS_H

#include "mlir/IR/Types.h"
#include "llvm/Support/Error.h"
#include <map>
#include <string>

namespace moa {

/// A format x ↦ x̂ with |x̂ − x| ≤ relative·|x| + ofRow·max|row| + absolute + flushed·η, for |x| ≤
/// limit and η = 2⁻¹²⁶. A row is the set of elements along the contracted axis, or a superset.
struct OperandFormat {
  llvm::StringLiteral name;
  double relative, ofRow, absolute, limit;
  /// Bound per term on the error of accumulating products of such operands, relative to the sum of
  /// magnitudes.
  double accumulate;
  /// Multiple of η lost if products flush subnormal operands to 0; this also applies to exact
  /// elements.
  double flushed = 0;
};

/// Finds one of f64, f32, tf32x3, tf32, bf16, fp16, fp16p, fp16x2, bf16x2, int8 and e4m3.
const OperandFormat *lookupOperandFormat(llvm::StringRef name);
/// Returns the format of a float type, null for other types.
const OperandFormat *getFormatOf(mlir::Type type);
/// Returns true if the format represents every value of the type.
bool holdsExactly(const OperandFormat &format, mlir::Type type);

/// Formats by operand. For example, "S.lhs" is the left factor of the contraction of S.
using FormatAssignment = std::map<std::string, const OperandFormat *>;
/// Parses, for example, `S.lhs:int8,O.rhs:e4m3`.
llvm::Expected<FormatAssignment> parseFormats(llvm::StringRef text);

/// The error model of every lowering: bounds on |ln(x̂ / x)| per operation.
struct RoundingModel {
  double arithmetic = 0x1.00001p-24; ///< unit roundoff u of + − · √ and of conversions to f32
  double arithmeticOfF64 = 0x1.00001p-53;
  double exponential = 0x1.00001p-22; ///< of exp and exp2, excluding errors of the argument
  double tanh = 4.00001e-6;
  double power = 2.00001e-5;       ///< of b^n with a whole, variable n
  double function = 0x1.00001p-20; ///< log, erf, sin, cos, pow
  double functionOfF64 = 0x1.00001p-48;
  /// Least number of indices between two changes of a running maximum or minimum (Lemma E8).
  double indicesPerRescale = 1;
  /// Number of indices after which a sum continues with the next part of its range (Lemma E13).
  double indicesPerStep = 64;
  /// A long sum has at most `blockTerms` roundings, plus one per `blockLength` terms.
  double blockTerms = 256, blockLength = 64;
};

} // namespace moa

#endif // MOA_ACCURACY_ROUNDINGERRORFORMATS_H
