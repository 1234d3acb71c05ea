//===- Selections.cpp - reductions in unselected operands -----------------===//
//
// select(c, a, b) needs only the operand that it picks. A reduction in the other operand would
// still become a fold of the row, and might read out of bounds there. Unless all its reads are in
// bounds, its range is restricted to c (or not c):
//
//   select(c, ⊕{ j : p } F, b) = select(c, ⊕{ j : p ∧ c } F, b).
//
// The same holds for an output that is present where c holds.
//
//===----------------------------------------------------------------------===//
#include "lib/Conversion/DNFToONF/Derivation.h"

using namespace mlir;
using namespace moa;

namespace {

class SelectionGuards {
public:
  SelectionGuards(ExprContext &exprs, dnf::KernelOp kernel, InsideReads &reads, std::map<int64_t, ExprAttr> extents)
      : exprs(exprs), openings(exprs), kernel(kernel), reads(reads), extents(std::move(extents)) {}

  Expr restrict(Expr e, Expr condition) {
    if (e->operands.empty() || !e->height)
      return e;
    auto it = memo.find({e, condition});
    if (it != memo.end())
      return it->second;
    Expr result = e;
    if (e->kind == ExprKind::Reduce) {
      result = restrictReduction(e, condition);
    } else {
      SmallVector<Expr> operands;
      for (unsigned k = 0; k < e->operands.size(); ++k)
        operands.push_back(restrict(e->operands[k], exprs.both(condition, conditionOf(e, k, operands))));
      if (operands != e->operands)
        result = exprs.withOperands(e, operands);
    }
    return memo[{e, condition}] = result;
  }

private:
  Expr negation(Expr e) { return exprs.op("arith.xori", {e, exprs.boolean(true)}); }

  /// Returns the condition under which operand k of an operation is needed; null for always. It is
  /// built from the restricted first operand, because that may itself read out of bounds.
  Expr conditionOf(Expr e, unsigned k, ArrayRef<Expr> before) {
    if (e->kind != ExprKind::Op || k == 0)
      return nullptr;
    if (e->isOp("arith.select"))
      return k == 1 ? before[0] : negation(before[0]);
    bool isLogic = e->type.isInteger(1);
    if (isLogic && e->isOp("arith.andi"))
      return before[0];
    return isLogic && e->isOp("arith.ori") ? negation(before[0]) : nullptr;
  }

  Expr restrictReduction(Expr e, Expr condition) {
    int64_t j = openings.indexFor(e);
    assert((!condition || !condition->dependsOn(j)) && "a condition of outside has the index");
    extents[j] = e->extent;
    auto [body, present] = exprs.open(e, j);
    Expr newPresent = present ? restrict(present, condition) : nullptr;
    // A reduction in the body that does not depend on j is a fold of the row as well. It is needed
    // where the conjuncts of the range that do not depend on j hold.
    Expr newBody = restrict(body, exprs.both(condition, partOfRow(newPresent, j)));
    if (condition && (mayFault(body) || (present && mayFault(present))))
      newPresent = exprs.both(without(condition, newPresent), newPresent);
    if (newBody == body && newPresent == present)
      return e;
    return exprs.withBody(e, j, newBody, newPresent);
  }

  /// Returns the conjuncts of a condition that do not depend on j, or null.
  Expr partOfRow(Expr condition, int64_t j) {
    if (!condition || !condition->dependsOn(j))
      return condition;
    if (!condition->isOp("arith.andi"))
      return nullptr;
    Expr right = partOfRow(condition->operands[1], j), left = partOfRow(condition->operands[0], j);
    return exprs.both(left, right);
  }

  /// Returns the conjuncts of a condition that are not conjuncts of another one, or null.
  Expr without(Expr condition, Expr other) {
    if (!other || condition == other)
      return other ? nullptr : condition;
    if (condition->isOp("arith.andi")) {
      Expr right = without(condition->operands[1], other), left = without(condition->operands[0], other);
      return exprs.both(left, right);
    }
    if (!other->isOp("arith.andi"))
      return condition;
    Expr rest = without(condition, other->operands[0]);
    return rest ? without(rest, other->operands[1]) : nullptr;
  }

  /// Returns whether a read is not known to be in bounds, or an operation not known to be defined.
  bool mayFault(Expr e) {
    auto [it, inserted] = faults.try_emplace(e, false);
    if (!inserted)
      return it->second;
    bool result = false;
    if (e->kind == ExprKind::Reduce) {
      int64_t j = openings.indexFor(e);
      extents[j] = e->extent;
      auto [body, present] = exprs.open(e, j);
      result = mayFault(body) || (present && mayFault(present));
    } else {
      result = llvm::any_of(e->operands, [&](Expr operand) { return mayFault(operand); });
      if (e->kind == ExprKind::Psi) {
        auto type = cast<ArrayType>(kernel.getBody().getArgument(e->id).getType());
        for (auto [index, extent] : llvm::zip_equal(e->operands, type.getShape()))
          result |= !reads.isInside(index, extent.getValue(), [&](int64_t id) {
            auto known = extents.find(id);
            return known != extents.end() ? &known->second.getValue() : nullptr;
          });
      }
      bool divides =
          e->kind == ExprKind::Op && (e->isOp("arith.floordivsi") || e->isOp("arith.shli") || e->isOp("arith.shrsi"));
      result |= divides && e->operands[1]->kind != ExprKind::Const && e->operands[1]->kind != ExprKind::Extent;
    }
    return faults[e] = result;
  }

  ExprContext &exprs;
  Openings openings;
  dnf::KernelOp kernel;
  InsideReads &reads;
  std::map<int64_t, ExprAttr> extents; // of free indices
  std::map<std::pair<Expr, Expr>, Expr> memo;
  llvm::DenseMap<Expr, bool> faults;
};

} // namespace

Expr moa::guardSelections(ExprContext &exprs, dnf::KernelOp kernel, InsideReads &reads,
                          const std::map<int64_t, ExprAttr> &extents, Expr e, Expr present) {
  return SelectionGuards(exprs, kernel, reads, extents).restrict(e, present);
}
