//===- AffineForm.cpp - index expressions as linear combinations ----------===//
#include "lib/Conversion/DNFToONF/AffineForm.h"

using namespace mlir;
using namespace moa;

void AffineForm::add(Expr e, const SymExpr &factor) {
  auto symbolic = [](Expr x) -> std::optional<SymExpr> {
    if (x->kind == ExprKind::Extent)
      return x->extent.getValue();
    if (x->kind == ExprKind::Const)
      return SymExpr(cast<IntegerAttr>(x->value).getInt());
    return std::nullopt;
  };
  if (auto value = symbolic(e)) {
    constant = constant + *value * factor;
    return;
  }
  if (e->isOp("arith.addi") || e->isOp("arith.subi")) {
    add(e->operands[0], factor);
    add(e->operands[1], e->isOp("arith.addi") ? factor : -factor);
    return;
  }
  if (e->isOp("arith.muli"))
    for (unsigned k : {0, 1})
      if (auto value = symbolic(e->operands[k])) {
        add(e->operands[1 - k], factor * *value);
        return;
      }
  terms[e] = terms[e] + factor;
}

std::optional<SymExpr> AffineForm::getSymbolic() const {
  bool isFree = llvm::all_of(terms, [](const auto &term) { return term.second.isZero(); });
  return isFree ? std::optional(constant) : std::nullopt;
}

Expr AffineForm::build(ExprContext &exprs) const {
  Expr sum = nullptr;
  for (auto &[term, coefficient] : terms) {
    if (coefficient.isZero())
      continue;
    Expr part = coefficient == SymExpr(1) ? term : exprs.op("arith.muli", {term, exprs.extent(coefficient)});
    sum = sum ? exprs.op("arith.addi", {sum, part}) : part;
  }
  Expr rest = exprs.extent(constant);
  if (!sum || constant.isZero())
    return sum ? sum : rest;
  return exprs.op("arith.addi", {sum, rest});
}
