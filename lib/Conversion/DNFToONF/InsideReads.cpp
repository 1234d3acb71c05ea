//===- InsideReads.cpp - reads that stay inside of their arrays -----------===//
#include "lib/Conversion/DNFToONF/InsideReads.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace moa;
using validation::Term;
using validation::TermContext;

/// Returns a null term if there is none for `e`.
Term InsideReads::termOf(Expr e, ExtentOf extentOf) {
  TermContext &terms = prover->getTerms();
  switch (e->kind) {
  case ExprKind::Extent:
    return terms.extent(e->extent.getValue());
  case ExprKind::Const:
    return terms.constant(e->value, e->type);
  case ExprKind::Index: {
    const SymExpr *extent = e->id >= 0 ? extentOf(e->id) : nullptr;
    return extent ? prover->getIndex(e->id, *extent, exprs.indexName(e->id)) : nullptr;
  }
  case ExprKind::Op:
    break;
  default:
    return nullptr;
  }
  SmallVector<Term> operands;
  for (Expr operand : e->operands) {
    operands.push_back(termOf(operand, extentOf));
    if (!operands.back())
      return nullptr;
  }
  using Make = Term (*)(TermContext &, ArrayRef<Term>);
  auto make = llvm::StringSwitch<Make>(e->op->getStringRef())
                  .Case("arith.addi", [](TermContext &in, ArrayRef<Term> x) { return in.sum(x[0], x[1]); })
                  .Case("arith.subi", [](TermContext &in, ArrayRef<Term> x) { return in.difference(x[0], x[1]); })
                  .Case("arith.muli", [](TermContext &in, ArrayRef<Term> x) { return in.product(x[0], x[1]); })
                  .Case("arith.floordivsi", [](TermContext &in, ArrayRef<Term> x) { return in.quotient(x[0], x[1]); })
                  .Case("arith.minsi", [](TermContext &in, ArrayRef<Term> x) { return in.integer("min", x[0], x[1]); })
                  .Case("arith.maxsi", [](TermContext &in, ArrayRef<Term> x) { return in.integer("max", x[0], x[1]); })
                  .Default(nullptr);
  return make ? make(terms, operands) : nullptr;
}

bool InsideReads::isInside(Expr index, const SymExpr &extent, ExtentOf extentOf) {
  if (index->kind == ExprKind::Index)
    if (const SymExpr *own = extentOf(index->id); own && *own == extent)
      return true;
  if (!prover)
    prover.emplace(kernel);
  Term term = termOf(index, extentOf);
  return term && prover->isInside(term, extent);
}
