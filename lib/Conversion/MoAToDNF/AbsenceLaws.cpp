//===- AbsenceLaws.cpp - moves absent elements to the ranges --------------===//
#include "lib/Conversion/MoAToDNF/Laws.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace moa;
using namespace moa::detail;

Value moa::detail::buildApply(OpBuilder &b, Location loc, dnf::LetOp let, ValueRange indices, PsiContext &context) {
  Value value = dnf::ApplyOp::create(b, loc, let.getType(), FlatSymbolRefAttr::get(let.getSymNameAttr()), indices);
  if (dnf::LetOp present = context.present.lookup(let)) {
    Value condition =
        dnf::ApplyOp::create(b, loc, b.getI1Type(), FlatSymbolRefAttr::get(present.getSymNameAttr()), indices);
    value = dnf::WhereOp::create(b, loc, condition, value);
  }
  return value;
}

namespace {

Value conjunction(OpBuilder &b, Location loc, Value p, Value q) {
  if (!p || p == q)
    return q;
  return arith::AndIOp::create(b, loc, p, q);
}

/// Returns whether a `where` may move outwards: no operand is another `where`, which A2 merges
/// first, or a ψ that is still to be reduced.
bool isSettled(dnf::WhereOp where) {
  return llvm::none_of(where->getOperands(), [](Value operand) {
    auto psi = operand.getDefiningOp<dnf::PsiOp>();
    return operand.getDefiningOp<dnf::WhereOp>() || (psi && !isa<BlockArgument>(psi.getArray()));
  });
}

/// Returns the settled `where` that makes a value absent, or null.
dnf::WhereOp getWhere(Value value) {
  auto where = value ? value.getDefiningOp<dnf::WhereOp>() : dnf::WhereOp();
  return where && isSettled(where) ? where : dnf::WhereOp();
}

/// A1: f(a where p, b where q) = f(a, b) where p ∧ q
struct AbsentPointwise final : RewritePattern {
  AbsentPointwise(MLIRContext *context, PsiContext &) : RewritePattern(MatchAnyOpTypeTag(), 3, context) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const final {
    if (isa<dnf::WhereOp, dnf::JoinOp, dnf::OtherwiseOp>(op) || op->getNumRegions() || op->getNumResults() != 1 ||
        op->hasTrait<OpTrait::IsTerminator>())
      return failure();
    Value condition;
    SmallVector<Value> operands;
    rewriter.setInsertionPoint(op);
    for (Value operand : op->getOperands()) {
      if (dnf::WhereOp where = getWhere(operand)) {
        condition = conjunction(rewriter, op->getLoc(), condition, where.getCondition());
        operand = where.getValue();
      }
      operands.push_back(operand);
    }
    if (!condition)
      return failure();
    Operation *clone = rewriter.clone(*op);
    clone->setOperands(operands);
    rewriter.replaceOpWithNewOp<dnf::WhereOp>(op, condition, clone->getResult(0));
    return success();
  }
};

// A2: AbsentValue and AbsentCondition.
#include "lib/Conversion/MoAToDNF/AbsenceLaws.inc"

/// A3, A4: ⊕ over j of (a where p) = ⊕ over {j | p} of a, and an output element `a where p` is
/// present if p. An absent condition is absence. ParentTy selects the law.
template <typename ParentTy> struct AbsentYield final : OpRewritePattern<dnf::YieldOp> {
  AbsentYield(MLIRContext *context, PsiContext &) : OpRewritePattern(context, 3) {}

  LogicalResult matchAndRewrite(dnf::YieldOp op, PatternRewriter &rewriter) const final {
    if (!isa<ParentTy>(op->getParentOp()))
      return failure();
    Value value = op.getValue(), present = op.getPresent();
    dnf::WhereOp where = getWhere(value), condition = getWhere(present);
    if (!where && !condition)
      return failure();
    if (condition)
      present = conjunction(rewriter, op.getLoc(), condition.getCondition(), condition.getValue());
    if (where) {
      present = conjunction(rewriter, op.getLoc(), present, where.getCondition());
      value = where.getValue();
    }
    rewriter.replaceOpWithNewOp<dnf::YieldOp>(op, value, present);
    return success();
  }
};

/// A5: let f(i) = a where p becomes let f(i) = a with let f.present(i) = p, and every f(i) becomes
/// f(i) where f.present(i). If the let is found absent again, the one f.present tests both
/// conditions. f.present itself is false where it would be absent.
struct AbsentLet final : OpRewritePattern<dnf::YieldOp> {
  AbsentLet(MLIRContext *context, PsiContext &psi) : OpRewritePattern(context, 3), psi(psi) {}

  LogicalResult matchAndRewrite(dnf::YieldOp op, PatternRewriter &rewriter) const final {
    auto let = dyn_cast<dnf::LetOp>(op->getParentOp());
    dnf::WhereOp where = getWhere(op.getValue());
    if (!let || !where)
      return failure();
    bool isPresence = llvm::any_of(psi.present, [&](auto &entry) { return entry.second == let; });
    if (isPresence) {
      rewriter.setInsertionPoint(op);
      Value both = conjunction(rewriter, op.getLoc(), where.getCondition(), where.getValue());
      rewriter.modifyOpInPlace(op, [&] { op.getValueMutable().assign(both); });
      return success();
    }
    if (dnf::LetOp present = psi.present.lookup(let))
      restrict(present, let, where.getCondition(), rewriter);
    else
      makePresent(let, where.getCondition(), rewriter);
    rewriter.modifyOpInPlace(op, [&] { op.getValueMutable().assign(where.getValue()); });
    return success();
  }

private:
  static dnf::YieldOp yieldOf(dnf::LetOp let) { return cast<dnf::YieldOp>(let.getBody().front().getTerminator()); }

  void makePresent(dnf::LetOp let, Value condition, PatternRewriter &rewriter) const {
    SmallVector<dnf::ApplyOp> uses;
    let->getParentOp()->walk([&](dnf::ApplyOp apply) {
      if (apply.getLet() == let.getSymName())
        uses.push_back(apply);
    });
    rewriter.setInsertionPoint(let);
    IRMapping mapping;
    auto present = cast<dnf::LetOp>(rewriter.clone(*let, mapping));
    present.setSymName((let.getSymName() + ".present").str());
    present.setType(rewriter.getI1Type());
    dnf::YieldOp yield = yieldOf(present);
    rewriter.modifyOpInPlace(yield, [&] { yield.getValueMutable().assign(mapping.lookup(condition)); });
    psi.present[let] = present;
    for (dnf::ApplyOp apply : uses) {
      rewriter.setInsertionPoint(apply);
      Value guarded = buildApply(rewriter, apply.getLoc(), let, SmallVector<Value>(apply.getIndices()), psi);
      rewriter.replaceOp(apply, guarded);
    }
  }

  /// Restricts present(i) to present(i) ∧ condition, a value in the body of `let`.
  void restrict(dnf::LetOp present, dnf::LetOp let, Value condition, PatternRewriter &rewriter) const {
    dnf::YieldOp yield = yieldOf(present);
    rewriter.setInsertionPoint(yield);
    IRMapping mapping;
    mapping.map(let.getBody().getArguments(), present.getBody().getArguments());
    for (Operation &inner : let.getBody().front().without_terminator())
      rewriter.clone(inner, mapping);
    Value both = conjunction(rewriter, yield.getLoc(), yield.getValue(), mapping.lookup(condition));
    rewriter.modifyOpInPlace(yield, [&] { yield.getValueMutable().assign(both); });
  }

  PsiContext &psi;
};

/// Returns whether a value is known to be present wherever it is read. A reduction always is; a let
/// is if its body is.
bool isFinal(Value root) {
  llvm::SetVector<Value> seen;
  seen.insert(root);
  for (size_t k = 0; k < seen.size(); ++k) {
    Operation *op = seen[k].getDefiningOp();
    if (!op || isa<dnf::ReduceOp>(op))
      continue;
    auto psi = dyn_cast<dnf::PsiOp>(op);
    if (isa<dnf::JoinOp, dnf::WhereOp, dnf::OtherwiseOp>(op) || (psi && !isa<BlockArgument>(psi.getArray())))
      return false;
    if (auto apply = dyn_cast<dnf::ApplyOp>(op))
      if (auto let = SymbolTable::lookupNearestSymbolFrom<dnf::LetOp>(op, apply.getLetAttr()))
        seen.insert(cast<dnf::YieldOp>(let.getBody().front().getTerminator()).getValue());
    seen.insert_range(op->getOperands());
  }
  return true;
}

/// `value where present`; `present` is null if the value is present everywhere.
struct Part {
  Value value, present;
  explicit Part(Value part) : value(part) {
    if (auto where = part.getDefiningOp<dnf::WhereOp>()) {
      present = where.getCondition();
      value = where.getValue();
    }
  }
  bool isKnown() const { return isFinal(value) && (!present || isFinal(present)); }
};

/// A6: join(c, a where p, b where q) = select(c, a, b) where select(c, p, q), where c is present.
/// It applies after all ψ that a and b read have been reduced and all absences have moved out of
/// them.
struct AbsentJoin final : OpRewritePattern<dnf::JoinOp> {
  AbsentJoin(MLIRContext *context, PsiContext &) : OpRewritePattern(context, 0) {}

  LogicalResult matchAndRewrite(dnf::JoinOp op, PatternRewriter &rewriter) const final {
    Part condition(op.getCondition()), a(op.getFirst()), b(op.getSecond());
    if (!a.isKnown() || !b.isKnown())
      return rewriter.notifyMatchFailure(op, "a part is still to reduce");
    if (!condition.isKnown())
      return rewriter.notifyMatchFailure(op, "the condition is still to reduce");
    Location loc = op.getLoc();
    Value value = arith::SelectOp::create(rewriter, loc, condition.value, a.value, b.value);
    Value known = condition.present;
    if (a.present || b.present) {
      Value always = arith::ConstantOp::create(rewriter, loc, rewriter.getBoolAttr(true));
      Value where = arith::SelectOp::create(rewriter, loc, condition.value, a.present ? a.present : always,
                                            b.present ? b.present : always);
      known = conjunction(rewriter, loc, known, where);
    }
    if (known)
      value = dnf::WhereOp::create(rewriter, loc, known, value);
    rewriter.replaceOp(op, value);
    return success();
  }
};

/// A7: otherwise(a where p, b) = join(p, a, b), and otherwise(a, b) = a, once the presence of a is
/// known.
struct AbsentOtherwise final : OpRewritePattern<dnf::OtherwiseOp> {
  AbsentOtherwise(MLIRContext *context, PsiContext &) : OpRewritePattern(context, 0) {}

  LogicalResult matchAndRewrite(dnf::OtherwiseOp op, PatternRewriter &rewriter) const final {
    Part a(op.getFirst());
    if (!a.isKnown())
      return rewriter.notifyMatchFailure(op, "the first value is still to reduce");
    if (!a.present)
      rewriter.replaceOp(op, a.value);
    else
      rewriter.replaceOpWithNewOp<dnf::JoinOp>(op, a.present, a.value, op.getSecond());
    return success();
  }
};

} // namespace

std::vector<std::string> moa::detail::absenceLawNames() {
  return {"absent-pointwise", "absent-where", "absent-reduce",   "absent-output",
          "absent-let",       "absent-join",  "absent-otherwise"};
}

void moa::detail::addAbsenceLaws(RewritePatternSet &patterns, PsiContext &context) {
  addIfEnabled<AbsentPointwise>(patterns, context, "absent-pointwise");
  if (context.enabled("absent-where")) {
    addLaw(patterns, std::make_unique<AbsentValue>(patterns.getContext()), "absent-where");
    addLaw(patterns, std::make_unique<AbsentCondition>(patterns.getContext()), "absent-where");
  }
  addIfEnabled<AbsentYield<dnf::ReduceOp>>(patterns, context, "absent-reduce");
  addIfEnabled<AbsentYield<dnf::OutputOp>>(patterns, context, "absent-output");
  addIfEnabled<AbsentLet>(patterns, context, "absent-let");
  addIfEnabled<AbsentJoin>(patterns, context, "absent-join");
  addIfEnabled<AbsentOtherwise>(patterns, context, "absent-otherwise");
}
