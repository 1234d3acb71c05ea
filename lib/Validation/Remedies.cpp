//===- Remedies.cpp - remedies for an unproved index ----------------------===//
#include "lib/Validation/Remedies.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace moa;
using namespace moa::validation;

/// Largest number of facts proposed together.
static constexpr size_t maxFacts = 4;

//===----------------------------------------------------------------------===//
// The least value of a goal
//===----------------------------------------------------------------------===//

namespace {
enum class Trend { None, Up, Down, Unknown };
}

static Trend reversed(Trend trend) {
  return trend == Trend::Up ? Trend::Down : trend == Trend::Down ? Trend::Up : trend;
}

static Trend joined(Trend a, Trend b) { return a == Trend::None || a == b ? b : b == Trend::None ? a : Trend::Unknown; }

/// Returns true for symbols, indices, and terms built from them without subtraction.
static bool isNeverNegative(Term term) {
  switch (term->kind) {
  case TermKind::Number:
    return term->value >= 0;
  case TermKind::Symbol:
  case TermKind::Index:
    return true;
  case TermKind::Sum:
    return term->value >= 0 && llvm::all_of(term->coefficients, [](int64_t c) { return c >= 0; }) &&
           llvm::all_of(term->operands, isNeverNegative);
  case TermKind::Product:
  case TermKind::Quotient:
    return llvm::all_of(term->operands, isNeverNegative);
  default:
    return false;
  }
}

/// Returns how a term changes as an index variable grows and everything else is fixed.
static Trend trendOf(Term term, Term variable) {
  if (term == variable)
    return Trend::Up;
  Trend trend = Trend::None;
  switch (term->kind) {
  case TermKind::Sum:
    for (auto [part, coefficient] : llvm::zip_equal(term->operands, term->coefficients)) {
      Trend own = trendOf(part, variable);
      trend = joined(trend, coefficient < 0 ? reversed(own) : own);
    }
    return trend;
  case TermKind::Product:
    for (Term factor : term->operands)
      trend = joined(trend, trendOf(factor, variable));
    return trend == Trend::None || llvm::all_of(term->operands, isNeverNegative) ? trend : Trend::Unknown;
  case TermKind::Quotient:
    if (trendOf(term->operands[1], variable) != Trend::None || !isNeverNegative(term->operands[1]))
      return Trend::Unknown;
    return trendOf(term->operands[0], variable);
  case TermKind::Scalar:
    for (Term operand : term->operands)
      trend = joined(trend, trendOf(operand, variable));
    return trend == Trend::None || term->name == "min" || term->name == "max" ? trend : Trend::Unknown;
  default:
    for (Term operand : term->operands)
      trend = joined(trend, trendOf(operand, variable));
    return trend == Trend::None ? trend : Trend::Unknown;
  }
}

/// Returns the least value of a goal over the ranges of its index variables. Returns null if the
/// goal is not monotonic in them.
Term Remedies::least(Term goal) const {
  for (unsigned steps = 0; steps < 16; ++steps) {
    llvm::SetVector<Term> indices;
    collectIndices(goal, indices);
    Term next = goal;
    for (Term variable : indices) {
      Term range = variables.extentOf(variable);
      if (!range)
        continue;
      Trend trend = trendOf(goal, variable);
      if (trend == Trend::Unknown)
        return nullptr;
      Term end = trend == Trend::Down ? terms.difference(range, terms.number(1)) : terms.number(0);
      next = terms.substitute(goal, {{variable, end}});
      break;
    }
    if (next == goal)
      return goal;
    goal = next;
  }
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Trials
//===----------------------------------------------------------------------===//

bool Remedies::isInside(const Prover &with, Term of) const {
  Prover trial = with;
  return trial.prove(of, condition).holds && trial.prove(getUpper(of), condition).holds;
}

/// Returns true if the facts prove the index in bounds, and can hold where something is read.
bool Remedies::mends(ArrayRef<Term> facts) const {
  Term all = terms.truth(true);
  for (Term fact : facts)
    all = terms.both(all, fact);
  if (all->isFalse())
    return false;
  return isInside(prover.with(all), index) && isOfUse(all);
}

/// Returns true if the facts hold for some sizes of at least 2 at which something is read.
bool Remedies::isOfUse(Term facts) const {
  Term large = condition, below = terms.number(-1);
  auto mention = [&](Term unknown, int64_t least) {
    large = terms.both(large, terms.atMost(terms.number(least), unknown));
    below = terms.difference(below, unknown);
  };
  llvm::SetVector<Term> indices, symbols;
  collectIndices(index, indices);
  std::function<void(Term)> collect = [&](Term term) {
    if (term->is(TermKind::Symbol))
      symbols.insert(term);
    for (Term operand : term->operands)
      collect(operand);
  };
  collect(facts);
  for (Term variable : indices)
    mention(variable, 0);
  for (Term symbol : symbols)
    mention(symbol, 2);
  // The goal −1 − Σ unknowns ≥ 0 is never true. It is provable only if such sizes are infeasible.
  return !prover.with(facts).prove(below, large).holds;
}

//===----------------------------------------------------------------------===//
// Constraints
//===----------------------------------------------------------------------===//

static bool isOfSymbols(Term term) {
  return term->is(TermKind::Number) || term->is(TermKind::Symbol) ||
         ((term->is(TermKind::Sum) || term->is(TermKind::Product) || term->is(TermKind::Quotient)) &&
          llvm::all_of(term->operands, isOfSymbols));
}

/// Collects candidate facts: quotients of sizes are exact, and divisors are positive.
void Remedies::collectDivisors(Term term, llvm::SetVector<Term> &facts) {
  for (Term operand : term->operands)
    collectDivisors(operand, facts);
  if (!term->is(TermKind::Quotient) || !isOfSymbols(term->operands[1]))
    return;
  Term divisor = term->operands[1];
  if (isOfSymbols(term->operands[0]))
    facts.insert(terms.isZero(terms.remainder(term->operands[0], divisor)));
  if (!divisor->is(TermKind::Number))
    facts.insert(terms.notNegative(terms.difference(divisor, terms.number(1))));
}

std::string Remedies::findConstraint() {
  llvm::SetVector<Term> facts;
  collectDivisors(index, facts);
  collectDivisors(extent, facts);
  SmallVector<SmallVector<Term>> tries;
  for (Term fact : facts)
    tries.push_back({fact});
  tries.push_back(facts.takeVector());
  // The goals at the ends of the ranges, which are conditions on the sizes.
  SmallVector<Term> ends;
  for (Term goal : {index, getUpper(index)})
    if (Prover trial = prover; !trial.prove(goal, condition).holds)
      if (Term end = least(goal); end && isOfSymbols(end) && !end->is(TermKind::Number))
        ends.push_back(terms.notNegative(end));
  SmallVector<SmallVector<Term>> more = {ends};
  for (const SmallVector<Term> &few : tries)
    more.push_back(few), more.back().append(ends.begin(), ends.end());
  if (!ends.empty())
    tries.append(more);
  for (SmallVector<Term> &proposed : tries) {
    if (proposed.empty() || proposed.size() > maxFacts || !mends(proposed))
      continue;
    for (size_t k = proposed.size(); k-- > 0 && proposed.size() > 1;) {
      SmallVector<Term> fewer(proposed);
      fewer.erase(fewer.begin() + k);
      if (mends(fewer))
        proposed = fewer;
    }
    return llvm::join(llvm::map_range(proposed, [&](Term fact) { return terms.str(fact); }), " and ");
  }
  return "";
}

//===----------------------------------------------------------------------===//
// Elements of parameters
//===----------------------------------------------------------------------===//

/// Returns true for the low bits of an unsigned element, which print as the element itself.
static bool isUnsignedElement(TermContext &terms, Term term) {
  return term->is(TermKind::Scalar) && term->name == "and" && term->operands[0]->is(TermKind::Load) &&
         terms.unsignedInputs.count(term->operands[0]->value) && terms.valueOf(term->operands[0]) == term;
}

/// Returns true if an assumption can state the term: arithmetic on symbols and elements.
static bool isStatable(TermContext &terms, Term term) {
  bool isArithmetic = term->is(TermKind::Number) || term->is(TermKind::Symbol) || term->is(TermKind::Index) ||
                      term->is(TermKind::Sum) || term->is(TermKind::Product) || term->is(TermKind::Quotient) ||
                      term->is(TermKind::Load);
  if (isUnsignedElement(terms, term))
    return isStatable(terms, term->operands[0]);
  return isArithmetic && llvm::all_of(term->operands, [&](Term operand) { return isStatable(terms, operand); });
}

std::string Remedies::findRange(Term load) {
  Term element = terms.valueOf(load);
  SmallVector<Term> ends = {extent};
  // The index may be a multiple of the element plus an offset.
  SmallVector<std::pair<Term, int64_t>> parts;
  int64_t constant = 0;
  splitSum(index, parts, constant);
  for (auto [part, coefficient] : parts)
    if (part == element && coefficient > 1)
      ends.push_back(terms.quotient(extent, terms.number(coefficient)));
  std::function<void(Term)> symbols = [&](Term term) {
    if (term->is(TermKind::Symbol) && !llvm::is_contained(ends, term))
      ends.push_back(term);
    for (Term operand : term->operands)
      symbols(operand);
  };
  symbols(extent);
  symbols(index);
  for (Term end : ends)
    if (isOfSymbols(end) && mends({terms.notNegative(element), terms.below(element, end)}))
      return terms.str(end);
  return "";
}

std::string Remedies::findAssumption(Term load) {
  // Generalise the element to any index. A subscript that is a variable keeps its name.
  SmallVector<Term> any;
  SmallVector<std::string> names;
  for (Term subscript : load->operands) {
    std::string name = subscript->is(TermKind::Index) ? terms.nameOf(subscript) : "i" + std::to_string(any.size());
    while (llvm::is_contained(names, name))
      name += std::to_string(any.size());
    names.push_back(name);
    any.push_back(terms.freshIndex(name));
  }
  Term given = terms.valueOf(load);
  Term element = terms.valueOf(terms.load(load->value, any, load->type));
  SmallVector<Term> here, everywhere;
  for (Term goal : {index, getUpper(index)}) {
    if (Prover trial = prover; trial.prove(goal, condition).holds)
      continue;
    Term end = least(terms.substitute(goal, {{given, element}}));
    llvm::SetVector<Term> left;
    if (end)
      collectIndices(end, left);
    if (!end || !isStatable(terms, end) || !llvm::all_of(left, [&](Term k) { return llvm::is_contained(any, k); }))
      return "";
    everywhere.push_back(terms.notNegative(end));
    here.push_back(terms.substitute(everywhere.back(), {{element, given}}));
  }
  if (here.empty() || !mends(here))
    return "";
  std::string text = names.empty() ? "" : "[" + llvm::join(names, ", ") + "] ";
  return text + llvm::join(llvm::map_range(everywhere, [&](Term fact) { return terms.str(fact); }), " and ");
}

std::optional<bool> Remedies::isMended(Term other) const {
  if (isInside(prover, other))
    return false;
  Term some = terms.notNegative(terms.difference(extent, terms.number(1)));
  if (isInside(prover.with(some), other))
    return true;
  return std::nullopt;
}

std::optional<bool> Remedies::isMendedByRemainder() const { return isMended(terms.remainder(index, extent)); }

std::optional<bool> Remedies::isMendedByClamp() const {
  Term last = terms.difference(extent, terms.number(1));
  return isMended(terms.integer("min", terms.integer("max", index, terms.number(0)), last));
}
