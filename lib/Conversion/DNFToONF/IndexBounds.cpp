//===- IndexBounds.cpp - conditions that bound an index -------------------===//
#include "lib/Conversion/DNFToONF/IndexBounds.h"
#include "lib/Conversion/DNFToONF/AffineForm.h"

using namespace mlir;
using namespace moa;

SmallVector<Expr> moa::conjunctsOf(Expr condition) {
  // Shared parts are visited once.
  SmallVector<Expr> parts, open;
  llvm::DenseSet<Expr> seen;
  if (condition)
    open.push_back(condition);
  while (!open.empty()) {
    Expr part = open.pop_back_val();
    if (!seen.insert(part).second)
      continue;
    if (part->isOp("arith.andi"))
      open.append({part->operands[1], part->operands[0]});
    else
      parts.push_back(part);
  }
  return parts;
}

/// Returns the value of a constant integer expression.
static std::optional<int64_t> numberOf(Expr e) {
  if (e->kind == ExprKind::Const && isa<IntegerAttr>(e->value))
    return cast<IntegerAttr>(e->value).getInt();
  return e->kind == ExprKind::Extent ? e->extent.getValue().getConstant() : std::nullopt;
}

/// Returns the last index j that a comparison admits, or the first one; null if it does not bound
/// j.
static Expr boundOf(ExprContext &exprs, Expr condition, Expr j, bool isLast) {
  if (!condition->isOp("arith.cmpi") || !condition->dependsOn(j->id))
    return nullptr;
  enum Predicate { slt = 2, sle, sgt, sge };
  auto predicate = cast<IntegerAttr>(condition->attributes.get("predicate")).getInt();
  bool isBelow = predicate == slt || predicate == sle, isStrict = predicate == slt || predicate == sgt;
  if (!isBelow && predicate != sgt && predicate != sge)
    return nullptr;
  Expr less = condition->operands[isBelow ? 0 : 1], more = condition->operands[isBelow ? 1 : 0];
  // ⌊j / c⌋ ≤ x is j ≤ c·x + c − 1, and ⌊j / c⌋ ≥ x is j ≥ c·x.
  Expr side = isLast ? less : more, other = isLast ? more : less;
  if (side->isOp("arith.floordivsi") && side->operands[0] == j && numberOf(side->operands[1]).value_or(0) > 0 &&
      !other->dependsOn(j->id)) {
    int64_t c = *numberOf(side->operands[1]);
    Expr times = exprs.op("arith.muli", {other, exprs.extent(SymExpr(c))});
    int64_t beside = isLast ? (isStrict ? -1 : c - 1) : (isStrict ? c : 0);
    return exprs.op("arith.addi", {times, exprs.extent(SymExpr(beside))});
  }
  Expr bound = isLast ? more : less;
  if ((isLast ? less : more) != j || bound->dependsOn(j->id)) {
    // 0 ≤ more − less, which is last − j or j − first.
    AffineForm rest;
    rest.add(isLast ? more : less, SymExpr(1));
    rest.add(isLast ? less : more, SymExpr(-1));
    rest.add(j, SymExpr(1));
    bound = rest.build(exprs);
    if (bound->dependsOn(j->id))
      return nullptr;
  }
  if (!isStrict)
    return bound;
  return exprs.op(isLast ? "arith.subi" : "arith.addi", {bound, exprs.extent(SymExpr(1))});
}

Expr moa::lastOf(ExprContext &exprs, Expr condition, Expr j) { return boundOf(exprs, condition, j, /*isLast=*/true); }
Expr moa::firstOf(ExprContext &exprs, Expr condition, Expr j) { return boundOf(exprs, condition, j, /*isLast=*/false); }

std::optional<double> moa::growthWith(Expr x, int64_t index) {
  if (!x->dependsOn(index))
    return 0;
  if (x->kind == ExprKind::Index)
    return 1;
  if (x->kind != ExprKind::Op || x->operands.size() != 2)
    return std::nullopt;
  Expr a = x->operands[0], b = x->operands[1];
  if (x->isOp("arith.muli") && numberOf(a))
    std::swap(a, b);
  auto ofA = growthWith(a, index);
  if (!ofA)
    return std::nullopt;
  if (x->isOp("arith.muli") || x->isOp("arith.floordivsi")) {
    auto number = numberOf(b);
    if (number.value_or(0) <= 0)
      return std::nullopt;
    return x->isOp("arith.muli") ? *ofA * *number : *ofA / *number;
  }
  if (x->isOp("arith.subi"))
    return b->dependsOn(index) ? std::nullopt : ofA;
  auto ofB = growthWith(b, index);
  if (ofB && x->isOp("arith.addi"))
    return *ofA + *ofB;
  return ofB && (x->isOp("arith.minsi") || x->isOp("arith.maxsi")) ? std::optional(std::max(*ofA, *ofB)) : std::nullopt;
}

Expr moa::anyWithin(ExprContext &exprs, Expr size, ArrayRef<Expr> conditions, Expr j) {
  Expr last = nullptr, first = nullptr;
  for (Expr condition : conditions) {
    if (Expr bound = lastOf(exprs, condition, j))
      last = last ? exprs.op("arith.minsi", {last, bound}) : bound;
    else if (Expr lower = firstOf(exprs, condition, j))
      first = first ? exprs.op("arith.maxsi", {first, lower}) : lower;
    else
      return nullptr;
  }
  // max(0, first) ≤ min(size − 1, last), pair by pair.
  Expr zero = exprs.extent(SymExpr(0));
  auto known = size->kind == ExprKind::Extent ? size->extent.getValue().getConstant() : std::nullopt;
  Expr any = known ? exprs.boolean(*known > 0) : exprs.greater(size, zero);
  auto require = [&](Expr condition) { any = exprs.op("arith.andi", {any, condition}); };
  if (last)
    require(exprs.notBelow(last, zero));
  if (first)
    require(exprs.greater(size, first));
  if (first && last)
    require(exprs.notBelow(last, first));
  return any;
}
