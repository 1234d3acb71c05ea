//===- RoundingErrorTerms.h - equal scalar terms of dnf ---------*- C++ -*-===//
#ifndef MOA_ACCURACY_ROUNDINGERRORTERMS_H
#define MOA_ACCURACY_ROUNDINGERRORTERMS_H

#include "dialects/DNF/IR/DNF.h"
#include <map>
#include <memory>

namespace moa {

/// Returns true if `a` is defined before `b` in the text of the kernel that contains both.
bool comesBefore(mlir::Value a, mlir::Value b);
/// Textual order, because the order of addresses would make bounds depend on the run.
struct ValueLess {
  bool operator()(mlir::Value a, mlir::Value b) const { return comesBefore(a, b); }
};

class Environment;
/// A value of a body, with the terms substituted for the body's indices. Without an environment,
/// indices stand for themselves.
struct Closure {
  mlir::Value value;
  std::shared_ptr<const Environment> environment;
};
class Environment {
public:
  std::map<mlir::Value, Closure, ValueLess> indices;
  std::shared_ptr<const Environment> outer; ///< for indices that are not in `indices`
};

dnf::YieldOp getYield(mlir::Region &body);
/// Returns the let whose body `apply` inlines.
dnf::LetOp getLet(dnf::ApplyOp apply);
/// Returns the environment of the let's body, given that of the apply.
std::shared_ptr<const Environment> enterLet(dnf::ApplyOp apply, const Closure &term);
/// Returns `environment` extended by one index.
std::shared_ptr<const Environment> bindIndex(std::shared_ptr<const Environment> environment, mlir::Value index,
                                             Closure term);
/// Returns the term after substituting indices and lets, without widening conversions.
Closure resolve(Closure term);
/// Returns true if both terms are structurally equal. Gives up, with false, after a number of
/// steps.
bool areEqual(const Closure &a, const Closure &b);
/// Moves the term into `environment`, in which the body is applied.
Closure rebase(const Closure &term, std::shared_ptr<const Environment> environment);

/// The requirement that an index is in the range of a reduction. Relations between an element and
/// the reduction depend on it, for example x ≤ max x and x ≤ Σ x.
struct RangeRequirement {
  mlir::Operation *relation; ///< the operation that uses it
  Closure reduction;         ///< the dnf.reduce
  Closure index;             ///< substituted for its index
};
/// Returns true if `requirement` follows from the condition, which may be null.
bool isInRange(const RangeRequirement &requirement, mlir::Value condition);
/// Returns true if the condition of a reduction's body at an index, `a`, implies the condition `b`.
/// A null condition always holds.
bool implies(const Closure &a, const Closure &b);
/// Returns an index at which `element` is a term of `reduction`.
std::optional<Closure> findIndex(const Closure &element, const Closure &reduction,
                                 const std::set<mlir::Value, ValueLess> &candidates);
/// As `resolve`, also without operations that change only the sign.
Closure resolveMagnitude(Closure term);

} // namespace moa

#endif // MOA_ACCURACY_ROUNDINGERRORTERMS_H
