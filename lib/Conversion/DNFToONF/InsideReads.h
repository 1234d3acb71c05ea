//===- InsideReads.h - reads that stay inside of their arrays ---*- C++ -*-===//
#ifndef MOA_CONVERSION_DNFTOONF_INSIDEREADS_H
#define MOA_CONVERSION_DNFTOONF_INSIDEREADS_H

#include "lib/Conversion/DNFToONF/Expr.h"
#include "lib/Validation/Inside.h"

namespace moa {

/// Whether subscripts stay inside of their axes for all values of their indices, whatever the
/// conditions are under which the program reads them: numbers, indices below the axis, and what the
/// validation's prover shows of sums, products, quotients and extremes of indices and sizes.
/// Nothing is said of elements of arrays.
class InsideReads {
public:
  /// The extent that an index is below; empty where none is known.
  using ExtentOf = llvm::function_ref<std::string(int64_t index)>;

  InsideReads(ExprContext &exprs, dnf::KernelOp kernel) : exprs(exprs), kernel(kernel) {}
  bool isInside(Expr index, llvm::StringRef extent, ExtentOf extentOf);

private:
  validation::Term termOf(Expr e, ExtentOf extentOf);

  ExprContext &exprs;
  dnf::KernelOp kernel;
  std::optional<validation::InsideProver> prover; // where one is needed
};

} // namespace moa

#endif // MOA_CONVERSION_DNFTOONF_INSIDEREADS_H
