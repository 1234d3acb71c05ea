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

/// `convert-moa-to-dnf`; lib/Conversion/Passes.td describes it, as all passes between
/// levels. `disabledLaws` names laws that are not applied, for tests; what such a law
/// would have removed is then reported as an error. `seed`, when not zero,
/// shuffles the order in which laws are tried, for the test of confluence. The
/// `observer`, if any, hears of every step (Observer.h). `moreLaws` adds patterns to the
/// laws: the tests of the validation put wrong ones in the place of disabled ones.
std::unique_ptr<mlir::Pass>
createConvertMoAToDNFPass(std::vector<std::string> disabledLaws = {}, unsigned seed = 0,
                          PsiObserver *observer = nullptr,
                          std::function<void(mlir::RewritePatternSet &)> moreLaws = {});

/// The names of all laws of ψ-reduction.
std::vector<std::string> getPsiLawNames();

namespace detail {
/// Scalar IR of a point-wise function on values of one type.
mlir::Value buildScalarFn(mlir::OpBuilder &builder, mlir::Location loc, ScalarFn fn,
                          mlir::ValueRange operands);
/// Scalar IR of a conversion; `round` marks a rounding the user asked for.
mlir::Value buildCast(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value,
                      mlir::Type type, bool round);
} // namespace detail
} // namespace moa

#endif // MOA_CONVERSION_MOATODNF_MOATODNF_H
