//===- InsideReads.h - reads that stay inside their arrays ------*- C++ -*-===//
#ifndef MOA_CONVERSION_DNFTOONF_INSIDEREADS_H
#define MOA_CONVERSION_DNFTOONF_INSIDEREADS_H

#include "lib/Conversion/DNFToONF/Expr.h"
#include "lib/Validation/Inside.h"

namespace moa {

/// Proves that subscripts stay in bounds for all values of their indices, without using the
/// conditions of the program. Handles numbers, indices below the extent of the axis, and sums,
/// products, quotients and extremes of indices and sizes (by the validation's prover). Elements of
/// arrays are unknown.
class InsideReads {
public:
  /// Returns the extent that an index is below; null if none is known.
  using ExtentOf = llvm::function_ref<const SymExpr *(int64_t index)>;

  InsideReads(ExprContext &exprs, dnf::KernelOp kernel) : exprs(exprs), kernel(kernel) {}
  bool isInside(Expr index, const SymExpr &extent, ExtentOf extentOf);

private:
  validation::Term termOf(Expr e, ExtentOf extentOf);

  ExprContext &exprs;
  dnf::KernelOp kernel;
  std::optional<validation::InsideProver> prover; // made on first use
};

} // namespace moa

#endif // MOA_CONVERSION_DNFTOONF_INSIDEREADS_H
