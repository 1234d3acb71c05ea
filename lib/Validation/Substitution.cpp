//===- Substitution.cpp - terms replaced in terms -------------------------===//
#include "lib/Validation/Term.h"
#include "llvm/ADT/SmallVector.h"

using namespace mlir;
using namespace moa;
using namespace moa::validation;

Substitution::Substitution(TermContext &terms, const DenseMap<Term, Term> &with)
    : terms(&terms), memo(with), isIdentity(with.empty()),
      grows(llvm::any_of(with, [](auto &entry) { return entry.second->height > entry.first->height; })) {}

Term Substitution::of(Term term) {
  if (isIdentity)
    return term;
  if (auto it = memo.find(term); it != memo.end())
    return it->second;
  if (term->operands.empty())
    return term;
  if (grows && term->is(TermKind::Reduce))
    return memo[term] = ofReduce(term);
  SmallVector<Term> operands;
  bool same = true;
  for (Term operand : term->operands) {
    operands.push_back(of(operand));
    same &= operands.back() == operand;
  }
  Term result = same ? term : rebuild(term, operands);
  memo[term] = result;
  return result;
}

bool Substitution::touches(Term term) {
  if (auto it = memo.find(term); it != memo.end())
    return it->second != term;
  auto [it, isNew] = touched.try_emplace(term, false);
  if (!isNew)
    return it->second;
  bool found = llvm::any_of(term->operands, [&](Term part) { return touches(part); });
  return touched[term] = found;
}

/// Substitutes in a reduction with its index freed. A replacement may contain reductions of the
/// same height, whose bound indices have the same number. The free index has a number that no inner
/// reduction uses.
Term Substitution::ofReduce(Term term) {
  if (!touches(term))
    return term;
  Term free = terms->index((int64_t(1) << 40) + term->height);
  DenseMap<Term, Term> open = {{term->operands[0], free}};
  Substitution opening(*terms, open);
  Term body = of(opening.of(term->operands[2])), presence = of(opening.of(term->operands[3]));
  return terms->reduce(term->name, term->type, free, of(term->operands[1]), body, presence);
}

Term Substitution::rebuild(Term term, ArrayRef<Term> x) {
  switch (term->kind) {
  case TermKind::Sum: {
    Term result = terms->number(term->value);
    for (auto [part, coefficient] : llvm::zip_equal(x, term->coefficients))
      result = terms->sum(result, terms->scaled(part, coefficient));
    return result;
  }
  case TermKind::Product: {
    Term result = terms->number(1);
    for (Term factor : x)
      result = terms->product(result, factor);
    return result;
  }
  case TermKind::Quotient:
    return terms->quotient(x[0], x[1]);
  case TermKind::Load:
    return terms->load(term->value, x, term->type);
  case TermKind::NotNegative:
    return terms->notNegative(x[0]);
  case TermKind::Zero:
    return terms->isZero(x[0]);
  case TermKind::Not:
    return terms->negate(x[0]);
  case TermKind::And:
  case TermKind::Or: {
    Term result = x[0];
    for (Term part : x.drop_front())
      result = term->is(TermKind::And) ? terms->both(result, part) : terms->either(result, part);
    return result;
  }
  case TermKind::Select:
    return terms->select(x[0], x[1], x[2]);
  case TermKind::Scalar:
    if (term->name == "cast")
      return terms->cast(x[0], term->type);
    if (term->type.isIndex() && x.size() == 2)
      return terms->integer(term->name, x[0], x[1]);
    return terms->scalar(term->name, term->type, x);
  // No inner reduction has become as high as this one, so its index can stay bound.
  case TermKind::Reduce:
    return terms->reduce(term->name, term->type, x[0], x[1], x[2], x[3]);
  case TermKind::Apply:
    return terms->apply(term->value, term->type, x);
  default:
    return term;
  }
}

Term TermContext::under(Term term, Term condition) {
  DenseMap<Term, Term> with;
  for (Term part : condition->is(TermKind::And) ? condition->operands : ArrayRef(condition)) {
    with[part] = truth(true);
    with[negate(part)] = truth(false);
  }
  return substitute(term, with);
}

Term TermContext::substitute(Term term, const DenseMap<Term, Term> &with) {
  return with.empty() ? term : Substitution(*this, with).of(term);
}
