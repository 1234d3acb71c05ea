//===- RoundingErrorTerms.h - equal scalar terms of dnf ---------*- C++ -*-===//
#ifndef MOA_ANALYSIS_ROUNDINGERRORTERMS_H
#define MOA_ANALYSIS_ROUNDINGERRORTERMS_H

#include "dialects/DNF/IR/DNF.h"
#include <map>
#include <memory>

namespace moa {

/// Returns true if `a` is defined before `b` in the text of the kernel that holds both.
bool comesBefore(mlir::Value a, mlir::Value b);
/// The order of the text: addresses would make bounds depend on the run.
struct ValueLess {
  bool operator()(mlir::Value a, mlir::Value b) const { return comesBefore(a, b); }
};

class TermEnvironment;
/// A value of a body, under what the body's indices stand for. Without an environment
/// they stand for themselves.
struct Term {
  mlir::Value value;
  std::shared_ptr<const TermEnvironment> environment;
};
class TermEnvironment {
public:
  std::map<mlir::Value, Term, ValueLess> indices;
  std::shared_ptr<const TermEnvironment> outer; ///< of indices that are not here
};

/// The body of a let that `apply` stands for.
dnf::LetOp getLet(dnf::ApplyOp apply);
/// The environment of the let's body under that of the apply.
std::shared_ptr<const TermEnvironment> enterLet(dnf::ApplyOp apply, const Term &term);
/// `environment` and one index more.
std::shared_ptr<const TermEnvironment> bindIndex(std::shared_ptr<const TermEnvironment> environment,
                                                 mlir::Value index, Term term);
/// What stands in the place of an index or of a let, widenings left out.
Term resolve(Term term);
/// Whether both terms are equal by structure. False where it takes too long to see.
bool areEqual(const Term &a, const Term &b);
/// The term seen from where the body is applied.
Term rebase(const Term &term, std::shared_ptr<const TermEnvironment> environment);

/// That an index is in the range of a reduction, on which a relation between an element
/// and the reduction rests (x ≤ max x, x ≤ Σ x).
struct RangeRequirement {
  mlir::Operation *relation; ///< the operation that uses it
  Term reduction;            ///< the dnf.reduce
  Term index;                ///< in place of its index
};
/// Whether `requirement` holds where the condition, which may be null, does.
bool isInRange(const RangeRequirement &requirement, mlir::Value condition);
/// Whether what satisfies the conditions of `a`, a reduction's body at an index, satisfies
/// those of `b`. No condition always holds.
bool implies(const Term &a, const Term &b);
/// Finds an index of `element` for which `reduction` has `element` among its terms.
std::optional<Term> findIndex(const Term &element, const Term &reduction,
                              const std::set<mlir::Value, ValueLess> &candidates);
/// `resolve`, with what changes a sign alone left out.
Term resolveMagnitude(Term term);

} // namespace moa

#endif // MOA_ANALYSIS_ROUNDINGERRORTERMS_H
