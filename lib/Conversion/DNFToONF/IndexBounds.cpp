//===- IndexBounds.cpp - conditions that bound an index -------------------===//
#include "lib/Conversion/DNFToONF/IndexBounds.h"
#include "lib/Conversion/DNFToONF/LinearForm.h"

using namespace mlir;
using namespace moa;

SmallVector<Expr> moa::conjunctsOf(Expr condition) {
  if (!condition)
    return {};
  if (!condition->isOp("arith.andi"))
    return {condition};
  SmallVector<Expr> parts = conjunctsOf(condition->operands[0]);
  llvm::append_range(parts, conjunctsOf(condition->operands[1]));
  return parts;
}

/// The bound of j that a comparison is, the last index or the first one; null for others.
static Expr boundOf(ExprContext &exprs, Expr condition, Expr j, bool isLast) {
  if (!condition->isOp("arith.cmpi") || !condition->dependsOn(j->id))
    return nullptr;
  enum Predicate { slt = 2, sle, sgt, sge };
  auto predicate = cast<IntegerAttr>(condition->attributes.get("predicate")).getInt();
  bool isBelow = predicate == slt || predicate == sle, isStrict = predicate == slt || predicate == sgt;
  if (!isBelow && predicate != sgt && predicate != sge)
    return nullptr;
  Expr less = condition->operands[isBelow ? 0 : 1], more = condition->operands[isBelow ? 1 : 0];
  Expr bound = isLast ? more : less;
  if ((isLast ? less : more) != j || bound->dependsOn(j->id)) {
    // 0 ≤ more − less, which is the last index − j, or j − the first one.
    LinearForm rest;
    rest.add(isLast ? more : less, SymExpr(1));
    rest.add(isLast ? less : more, SymExpr(-1));
    rest.add(j, SymExpr(1));
    bound = rest.build(exprs);
    if (bound->dependsOn(j->id))
      return nullptr;
  }
  if (!isStrict)
    return bound;
  return exprs.op(isLast ? "arith.subi" : "arith.addi", {bound, exprs.extent(SymExpr(1))}, bound->type);
}

Expr moa::lastOf(ExprContext &exprs, Expr condition, Expr j) { return boundOf(exprs, condition, j, /*isLast=*/true); }
Expr moa::firstOf(ExprContext &exprs, Expr condition, Expr j) { return boundOf(exprs, condition, j, /*isLast=*/false); }

bool moa::growsWith(Expr x, int64_t index) {
  if (x->kind == ExprKind::Index)
    return x->id == index;
  bool isSum = x->isOp("arith.addi");
  if (!isSum && !x->isOp("arith.subi"))
    return false;
  Expr a = x->operands[0], b = x->operands[1];
  if (!b->dependsOn(index))
    return growsWith(a, index);
  return isSum && !a->dependsOn(index) && growsWith(b, index);
}

Expr moa::anyWithin(ExprContext &exprs, Expr size, ArrayRef<Expr> conditions, Expr j) {
  Expr last = nullptr, first = nullptr;
  for (Expr condition : conditions) {
    if (Expr bound = lastOf(exprs, condition, j))
      last = last ? exprs.op("arith.minsi", {last, bound}, bound->type) : bound;
    else if (Expr bound = firstOf(exprs, condition, j))
      first = first ? exprs.op("arith.maxsi", {first, bound}, bound->type) : bound;
    else
      return nullptr;
  }
  // max(0, first) ≤ min(size − 1, last), pair by pair.
  Expr zero = exprs.extent(SymExpr(0));
  auto known = size->kind == ExprKind::Extent ? SymExpr::parse(size->text)->getConstant() : std::nullopt;
  Expr any = known ? exprs.boolean(*known > 0) : exprs.greater(size, zero);
  auto require = [&](Expr condition) { any = exprs.op("arith.andi", {any, condition}, any->type); };
  if (last)
    require(exprs.notBelow(last, zero));
  if (first)
    require(exprs.greater(size, first));
  if (first && last)
    require(exprs.notBelow(last, first));
  return any;
}
