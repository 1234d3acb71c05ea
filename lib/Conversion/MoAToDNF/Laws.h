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

/// What the laws share during one reduction.
struct PsiContext {
  /// Arrays that become lets because they are used more than once.
  llvm::DenseSet<mlir::Value> shared;
  /// The user's name of a shared array, or one made from what it computes.
  llvm::DenseMap<mlir::Value, std::string> names;
  /// The name of a let, kept apart because its array's operator goes away.
  llvm::DenseMap<mlir::Operation *, std::string> letNames;
  /// The let of a shared array, once made.
  llvm::DenseMap<mlir::Value, dnf::LetOp> lets;
  /// The let that says where a let's value is present, if not everywhere.
  llvm::DenseMap<mlir::Operation *, dnf::LetOp> present;
  llvm::StringSet<> disabled;
  unsigned counter = 0;

  bool enabled(llvm::StringRef law) const { return !disabled.contains(law); }
};

/// Adds a pattern that is known by the name of its law, a literal.
void addLaw(mlir::RewritePatternSet &patterns, std::unique_ptr<mlir::RewritePattern> pattern,
            llvm::StringRef name);
/// One ψ law per operator, and the law of sharing.
void addPsiLaws(mlir::RewritePatternSet &patterns, PsiContext &context);
/// Absent elements: through point-wise functions, into ranges, out of lets.
void addAbsenceLaws(mlir::RewritePatternSet &patterns, PsiContext &context);

/// Applies `let` at `indices`, as a value that is absent where the let is.
mlir::Value buildApply(mlir::OpBuilder &builder, mlir::Location loc, dnf::LetOp let,
                       mlir::ValueRange indices, PsiContext &context);

/// Brings conditions and operations into an order that does not depend on the
/// order of rewriting. Equal operations must have been merged.
void canonicalise(dnf::KernelOp kernel);

std::vector<std::string> psiLawNames();
std::vector<std::string> absenceLawNames();

} // namespace moa::detail

#endif // MOA_CONVERSION_MOATODNF_LAWS_H
