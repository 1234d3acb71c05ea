//===- Laws.h - the laws of ψ-reduction as patterns -------------*- C++ -*-===//
#ifndef MOA_CONVERSION_MOATODNF_LAWS_H
#define MOA_CONVERSION_MOATODNF_LAWS_H

#include "lib/Conversion/MoAToDNF/MoAToDNF.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringSet.h"

namespace moa::detail {

/// Marks the one dnf.psi that unfolds a shared array inside its own let.
inline constexpr llvm::StringLiteral kUnfold = "moa.unfold";

/// State that the laws share during one ψ-reduction.
struct PsiContext {
  /// Arrays that become lets because they are used more than once.
  llvm::DenseSet<mlir::Value> shared;
  /// The user's name of a shared array, or the name of its operator.
  llvm::DenseMap<mlir::Value, std::string> names;
  /// The name of a let, kept separately because the operator of its array is erased.
  llvm::DenseMap<mlir::Operation *, std::string> letNames;
  /// The let of a shared array, once made.
  llvm::DenseMap<mlir::Value, dnf::LetOp> lets;
  /// The let of the presence of a let's value, if it is not present everywhere.
  llvm::DenseMap<mlir::Operation *, dnf::LetOp> present;
  llvm::StringSet<> disabled;
  unsigned counter = 0;

  bool enabled(llvm::StringRef law) const { return !disabled.contains(law); }
};

/// Adds a pattern under the name of its law, a string literal.
void addLaw(mlir::RewritePatternSet &patterns, std::unique_ptr<mlir::RewritePattern> pattern, llvm::StringRef name);
/// Adds the pattern of a law, unless the law is disabled.
template <typename Pattern>
void addIfEnabled(mlir::RewritePatternSet &patterns, PsiContext &context, llvm::StringRef name) {
  if (context.enabled(name))
    addLaw(patterns, std::make_unique<Pattern>(patterns.getContext(), context), name);
}
/// Adds one ψ law per operator, and the law of sharing.
void addPsiLaws(mlir::RewritePatternSet &patterns, PsiContext &context);
/// Adds the laws that move absent elements through point-wise functions, into ranges and out of
/// lets.
void addAbsenceLaws(mlir::RewritePatternSet &patterns, PsiContext &context);

/// Applies `let` at `indices`. The result is absent where the let is.
mlir::Value buildApply(mlir::OpBuilder &builder, mlir::Location loc, dnf::LetOp let, mlir::ValueRange indices,
                       PsiContext &context);

/// Returns the name of the index of an axis: the first letter of its extent, or "k".
std::string indexName(const SymExpr &extent);
/// Returns the names of the indices of an array.
mlir::ArrayAttr indexNames(ArrayType type);

/// Puts conditions and operations into an order that does not depend on the order of rewriting.
/// Equal operations must have been merged.
void canonicalise(dnf::KernelOp kernel);

std::vector<std::string> psiLawNames();
std::vector<std::string> absenceLawNames();

} // namespace moa::detail

#endif // MOA_CONVERSION_MOATODNF_LAWS_H
