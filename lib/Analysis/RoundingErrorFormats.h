//===- RoundingErrorFormats.h - formats of operands -------------*- C++ -*-===//
//
// What rounding an operand of a contraction to a format may change, and which
// roundings every lowering makes anyhow [Def 26, Def 27 of docs/Accuracy/Bounds.md].
//
//===----------------------------------------------------------------------===//
#ifndef MOA_ANALYSIS_ROUNDINGERRORFORMATS_H
#define MOA_ANALYSIS_ROUNDINGERRORFORMATS_H

#include "mlir/IR/Types.h"
#include "llvm/Support/Error.h"
#include <map>
#include <string>

namespace moa {

/// A format x ↦ x̂ with |x̂ − x| ≤ relative·|x| + ofRow·max|row| + absolute + flushed·η, for |x| ≤
/// limit and η = 2⁻¹²⁶. A row are the elements along the contracted axis, or more of them.
struct OperandFormat {
  llvm::StringLiteral name;
  double relative, ofRow, absolute, limit;
  /// Products of such operands are added up with an error of at most this, relative to
  /// the sum of magnitudes, for each term.
  double accumulate;
  /// Floats whose subnormal numbers count as 0 in products, of elements that are exact too.
  double flushed = 0;
};

/// f64, f32, tf32x3, tf32, bf16, fp16, fp16p, fp16x2, bf16x2, int8, e4m3.
llvm::ArrayRef<OperandFormat> getOperandFormats();
const OperandFormat *lookupOperandFormat(llvm::StringRef name);
/// The format of a float type, null for others.
const OperandFormat *getFormatOf(mlir::Type type);
/// Whether every value of the type is one of the format.
bool holdsExactly(const OperandFormat &format, mlir::Type type);

/// Formats by operand: "S.lhs" is the left factor of the contraction of S.
using FormatAssignment = std::map<std::string, const OperandFormat *>;
/// Reads `S.lhs:int8,O.rhs:e4m3`.
llvm::Expected<FormatAssignment> parseFormats(llvm::StringRef text);

/// The roundings of every lowering, as bounds on |ln(x̂ / x)| per operation.
struct RoundingModel {
  double arithmetic = 0x1.00001p-24; ///< + − · √ and conversions to f32
  double arithmeticOfF64 = 0x1.00001p-53;
  double exponential = 0x1.00001p-22; ///< of exp and exp2, apart from their arguments
  double tanh = 4.00001e-6;
  double power = 2.00001e-5;       ///< of b^n with a whole number n that varies
  double function = 0x1.00001p-20; ///< log, erf, sin, cos, pow
  double functionOfF64 = 0x1.00001p-48;
  /// A running extreme may change once in so many indices (Lemma E8).
  double indicesPerRepair = 1;
  /// Sums go on from one part of a range to the next once in so many indices (Lemma E13).
  double indicesPerStep = 64;
  /// A long sum has at most `blockTerms` roundings, and one per `blockLength` terms.
  double blockTerms = 256, blockLength = 64;
};

} // namespace moa

#endif // MOA_ANALYSIS_ROUNDINGERRORFORMATS_H
