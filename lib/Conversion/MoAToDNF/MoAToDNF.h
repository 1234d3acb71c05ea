//===- MoAToDNF.h - ψ-reduction ---------------------------------*- C++ -*-===//
//
// Rewrites a moa.kernel to a dnf.kernel: ψ is pushed inward by one law per
// operator until it stands only on inputs.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_CONVERSION_MOATODNF_MOATODNF_H
#define MOA_CONVERSION_MOATODNF_MOATODNF_H

#include "dialects/DNF/IR/DNF.h"
#include "mlir/Pass/Pass.h"
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace mlir {
class RewritePatternSet;
} // namespace mlir

namespace moa {

class PsiObserver;

/// Creates `convert-moa-to-dnf`; lib/Conversion/Passes.td describes it. `disabledLaws` are not
/// applied, for tests; an operator that such a law would have removed is an error. A nonzero `seed`
/// shuffles the order in which laws are tried, for the test of confluence. The `observer`, if any,
/// is notified of every step. `moreLaws` adds patterns: tests of the validation replace disabled
/// laws by wrong ones.
std::unique_ptr<mlir::Pass> createConvertMoAToDNFPass(std::vector<std::string> disabledLaws = {}, unsigned seed = 0,
                                                      PsiObserver *observer = nullptr,
                                                      std::function<void(mlir::RewritePatternSet &)> moreLaws = {});

/// Returns the names of all laws of ψ-reduction.
std::vector<std::string> getPsiLawNames();

namespace detail {
/// Builds a point-wise function of scalars of one type.
mlir::Value buildScalarFn(mlir::OpBuilder &builder, mlir::Location loc, ScalarFn fn, mlir::ValueRange operands);
/// Builds a scalar conversion; `round` marks a rounding that the user asked for.
mlir::Value buildCast(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value, mlir::Type type, bool round);
} // namespace detail
} // namespace moa

#endif // MOA_CONVERSION_MOATODNF_MOATODNF_H
