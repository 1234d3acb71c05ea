//===- Parts.cpp - parts of a goal as indices (Lemmas 5, 16 and 18) -------===//
//
// Proves goals with quotients inside quotients, or minima inside products, from the inside out. A
// part known to lie in 0 … a − 1 becomes an index of that range, and an index that is divided
// becomes its digits. The rest is a polynomial in indices, whose least value is at an end of each
// range.
//
//===----------------------------------------------------------------------===//
#include "lib/Validation/Search.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace moa;
using namespace moa::validation;

/// Largest number of parts of one goal that become indices.
static constexpr unsigned maxParts = 16;
/// Largest number of extents that are tried for a part.
static constexpr size_t maxExtents = 8;
/// Largest number of combinations of remainders.
static constexpr size_t maxRemainders = 16;

//===----------------------------------------------------------------------===//
// Corners (Lemma 5)
//===----------------------------------------------------------------------===//

static bool anyPart(Term term, llvm::function_ref<bool(Term)> has) {
  DenseSet<Term> seen;
  std::function<bool(Term)> visit = [&](Term part) {
    return seen.insert(part).second && (has(part) || llvm::any_of(part->operands, visit));
  };
  return visit(term);
}

static bool mentions(Term term, Term part) {
  return anyPart(term, [&](Term x) { return x == part; });
}

/// Collects the symbols that are factors of a polynomial's parts.
static void collectSymbols(Term e, llvm::SetVector<Term> &symbols) {
  for (Term operand : e->operands) {
    if (operand->is(TermKind::Symbol))
      symbols.insert(operand);
    if (operand->is(TermKind::Product))
      collectSymbols(operand, symbols);
  }
}

/// Splits a polynomial of degree at most 1 in an index into the coefficient of the index and the
/// rest. Returns nothing if the index occurs in any other way.
static std::optional<std::pair<Term, Term>> coefficientOf(TermContext &terms, Term e, Term index) {
  SmallVector<std::pair<Term, int64_t>> parts;
  int64_t constant = 0;
  splitSum(e, parts, constant);
  Term factor = terms.number(0), rest = terms.number(constant);
  for (auto [part, coefficient] : parts) {
    if (!mentions(part, index)) {
      rest = terms.sum(rest, terms.scaled(part, coefficient));
      continue;
    }
    Term others = terms.number(1);
    bool found = false;
    for (Term x : part->is(TermKind::Product) ? part->operands : ArrayRef<Term>(part)) {
      if (x == index && !found)
        found = true;
      else
        others = terms.product(others, x);
    }
    if (!found || mentions(others, index))
      return std::nullopt;
    factor = terms.sum(factor, terms.scaled(others, coefficient));
  }
  return std::make_pair(factor, rest);
}

/// Returns true if a term consists of sums and products of symbols, indices and numbers.
static bool isPolynomial(Term term) {
  return term->is(TermKind::Symbol) || term->is(TermKind::Index) || term->is(TermKind::Number) ||
         ((term->is(TermKind::Sum) || term->is(TermKind::Product)) && llvm::all_of(term->operands, isPolynomial));
}

/// Returns true if a term is a sum of products of sizes and indices without negative coefficients.
static bool isSum(Term term) {
  SmallVector<std::pair<Term, int64_t>> parts;
  int64_t constant = 0;
  splitSum(term, parts, constant);
  return constant >= 0 && llvm::all_of(parts, [](auto &part) {
           ArrayRef<Term> factors =
               part.first->is(TermKind::Product) ? part.first->operands : ArrayRef<Term>(part.first);
           return part.second >= 0 && llvm::all_of(factors, [](Term x) { return x->is(TermKind::Index) || isSize(x); });
         });
}

/// Proves e ≥ 0 by a change of variables. A fact x − P ≥ 0 with a symbol x is x = P + y for some y
/// ≥ 0. If e has no negative coefficients after these substitutions, e is not negative.
bool Prover::isSumOfDistances(Term e, ArrayRef<Term> known) {
  if (isSum(e))
    return true;
  DenseMap<Term, Term> with;
  SmallVector<Term> replaced; // the keys of `with`, in an order independent of addresses
  DenseSet<Term> distances;
  for (Term fact : known) {
    if (!fact->is(TermKind::NotNegative))
      continue;
    SmallVector<std::pair<Term, int64_t>> parts;
    int64_t constant = 0;
    Term distance = tightened(terms, terms.substitute(fact->operands[0], with));
    splitSum(distance, parts, constant);
    auto *it = llvm::find_if(parts, [&](auto &part) {
      return part.second == 1 && (part.first->is(TermKind::Symbol) || distances.contains(part.first)) &&
             isPolynomial(terms.difference(distance, part.first));
    });
    if (it == parts.end())
      continue;
    Term symbol = it->first, rest = terms.difference(distance, symbol);
    // A fact that is itself a sum without negative coefficients always holds, so it is skipped.
    if (mentions(rest, symbol) || isSum(rest))
      continue;
    Term more = indexOf(distance, nullptr, "d"), above = terms.difference(more, rest);
    distances.insert(more);
    DenseMap<Term, Term> one = {{symbol, above}};
    for (Term key : replaced)
      with[key] = terms.substitute(with.lookup(key), one);
    if (with.try_emplace(symbol, above).second)
      replaced.push_back(symbol);
    else
      with[symbol] = above;
    if (isSum(terms.substitute(e, with)))
      return true;
  }
  return false;
}

std::vector<DenseMap<Term, Term>> Prover::remaindersIn(Term e) {
  std::vector<DenseMap<Term, Term>> cases(1);
  for (const Division &division : divisions) {
    if (!mentions(e, division.quotient) && !mentions(e, division.remainder))
      continue;
    if (cases.size() * division.divisor > maxRemainders)
      return {};
    std::vector<DenseMap<Term, Term>> more;
    for (const auto &with : cases)
      for (int64_t value = 0; value < division.divisor; ++value)
        more.emplace_back(with)[division.remainder] = terms.number(value);
    cases = std::move(more);
  }
  return cases;
}

/// Proves e ≥ 0 as above (Lemma 5), or for each remainder of the divided symbols (Lemma 18).
bool Prover::isSumOfDistances(Term e, Term condition, std::set<std::string> &lemmas) {
  SmallVector<Term> known;
  for (Term part : condition->is(TermKind::And) ? condition->operands : ArrayRef<Term>(condition))
    known.push_back(part);
  llvm::append_range(known, facts);
  if (isSumOfDistances(e, known)) {
    lemmas.insert("Lemma 5");
    return true;
  }
  if (!isPolynomial(e))
    return false;
  std::vector<DenseMap<Term, Term>> cases = remaindersIn(e);
  if (cases.size() < 2)
    return false;
  for (const auto &with : cases) {
    Substitution substitution(terms, with);
    SmallVector<Term> there;
    for (Term fact : known)
      there.push_back(substitution.of(fact));
    if (!isSumOfDistances(substitution.of(e), there))
      return false;
  }
  lemmas.insert({"Lemma 5", "Lemma 18"});
  return true;
}

Term Prover::leastAtCorner(Term e, Term condition, std::set<std::string> &lemmas, bool ofSymbols, bool bySearch) {
  enum Effort { Sight, Distances, Search };
  auto isNeverNegative = [&](Term c, Effort effort) {
    if (effort < Search)
      return effort == Sight ? isSum(c) : isSumOfDistances(c, condition, lemmas);
    Proof proof = attempt(c, condition, {}, 1);
    if (proof.holds)
      lemmas.insert(proof.lemmas.begin(), proof.lemmas.end());
    return proof.holds;
  };
  auto eliminate = [&](Effort effort) {
    llvm::SetVector<Term> mentioned;
    collectIndices(e, mentioned);
    if (ofSymbols)
      collectSymbols(e, mentioned);
    for (Term index : mentioned) {
      auto split = coefficientOf(terms, e, index);
      if (!split)
        continue;
      auto [factor, rest] = *split;
      Term extent = extentOf(index);
      if (isNeverNegative(factor, effort))
        e = rest;
      else if (extent && isNeverNegative(terms.scaled(factor, -1), effort))
        e = terms.sum(rest, terms.product(factor, terms.difference(extent, terms.number(1))));
      else
        continue;
      lemmas.insert("Lemma 5");
      return true;
    }
    return false;
  };
  while (eliminate(Sight) || eliminate(Distances) || (bySearch && work >= 0 && eliminate(Search))) {
  }
  return e;
}

Proof Prover::attemptCorner(Term goal, Term condition, bool bySearch) {
  Proof proof;
  Term least = leastAtCorner(goal, condition, proof.lemmas, /*ofSymbols=*/false, bySearch);
  proof.holds = isSumOfDistances(least, condition, proof.lemmas);
  if (proof.holds || !bySearch)
    return proof;
  Proof inner;
  if (least != goal)
    inner = attempt(least, condition, {}, 0);
  // Symbols are not negative either.
  if (!inner.holds)
    if (Term other = leastAtCorner(least, condition, proof.lemmas, /*ofSymbols=*/true); other != least)
      inner = attempt(other, condition, {}, 0);
  proof.holds = inner.holds;
  proof.lemmas.insert(inner.lemmas.begin(), inner.lemmas.end());
  return proof;
}

//===----------------------------------------------------------------------===//
// Parts as indices (Lemma 16)
//===----------------------------------------------------------------------===//

/// Divides u by b as far as the leading monomial `lead` of b divides parts of u.
static Term divideBy(TermContext &terms, Term u, Term b, std::pair<Term, int64_t> lead) {
  Term quotient = terms.number(0);
  for (unsigned step = 0; step < 16; ++step) {
    SmallVector<std::pair<Term, int64_t>> parts;
    int64_t constant = 0;
    splitSum(u, parts, constant);
    auto *it = llvm::find_if(parts, [&](auto &part) {
      return part.second % lead.second == 0 &&
             terms.product(terms.quotient(part.first, lead.first), lead.first) == part.first;
    });
    if (it == parts.end())
      break;
    Term digit = terms.scaled(terms.quotient(it->first, lead.first), it->second / lead.second);
    quotient = terms.sum(quotient, digit);
    u = terms.difference(u, terms.product(b, digit));
  }
  return quotient;
}

/// Collects candidates a for ⌊e/b⌋ < a, where e ≤ most.
static void collectExtents(TermContext &terms, Term most, Term b, llvm::SetVector<Term> &extents) {
  Term one = terms.number(1);
  if (b->is(TermKind::Number)) {
    extents.insert(terms.sum(terms.quotient(most, b), one));
    return;
  }
  if (isExtreme(b))
    for (Term operand : b->operands)
      if (!operand->is(TermKind::Number))
        collectExtents(terms, most, operand, extents);
  SmallVector<std::pair<Term, int64_t>> leads;
  int64_t constant = 0;
  splitSum(b, leads, constant);
  for (auto lead : leads)
    for (Term u : {terms.sum(most, one), most}) {
      Term quotient = divideBy(terms, u, b, lead);
      extents.insert(quotient);
      extents.insert(terms.sum(quotient, one));
    }
}

Prover::Parts::Parts(Prover &prover, Term goal, Term condition, bool alwaysDigits)
    : prover(prover), terms(prover.terms), goal(goal), condition(condition), alwaysDigits(alwaysDigits) {}

bool Prover::Parts::isShown(Term e) {
  Proof proof = prover.attemptCorner(e, condition);
  if (!proof.holds)
    proof = prover.attempt(e, condition, {}, 1);
  if (proof.holds)
    lemmas.insert(proof.lemmas.begin(), proof.lemmas.end());
  return proof.holds;
}

/// Returns true if a term contains neither indices nor array elements.
static bool isOfSizes(Term term) {
  return !anyPart(term, [](Term x) { return x->is(TermKind::Index) || x->is(TermKind::Load); });
}

/// Returns the innermost part not tried yet. Skips quotients that are summands of the goal with
/// coefficient ±1, and their dividends that are quotients too: Lemma 15 eliminates them.
Term Prover::Parts::next() {
  SmallVector<std::pair<Term, int64_t>> outermost;
  int64_t constant = 0;
  splitSum(goal, outermost, constant);
  DenseSet<Term> seen;
  SmallVector<Term> roots;
  for (auto [part, coefficient] : outermost) {
    Term root = part;
    while (root->is(TermKind::Quotient) && (coefficient == 1 || coefficient == -1)) {
      seen.insert(root);
      root = root->operands[0];
    }
    roots.push_back(root);
  }
  Term found = nullptr;
  std::function<void(Term)> visit = [&](Term term) {
    if (found || !seen.insert(term).second)
      return;
    // An extreme in a divisor is only decided, in nameQuotient().
    bool divides = term->is(TermKind::Quotient);
    llvm::for_each(divides ? term->operands.take_front() : term->operands, visit);
    if (!found && (divides || isExtreme(term)) && !isOfSizes(term) && tried.insert(term).second)
      found = term;
  };
  llvm::for_each(roots, visit);
  return found;
}

/// Returns an index below the first extent for which `isBelow` proves part < extent, or null.
Term Prover::Parts::indexFor(Term part, ArrayRef<Term> extents, llvm::function_ref<bool(Term)> isBelow) {
  for (Term extent : extents.take_front(maxExtents))
    if (isBelow(extent))
      return prover.indexOf(part, extent, "v");
  return nullptr;
}

bool Prover::Parts::nameQuotient(Term quotient) {
  Term e = quotient->operands[0], b = quotient->operands[1], one = terms.number(1);
  if (isExtreme(b) && decide(b))
    return true;
  if (!prover.isPositive(b, condition, {}, 1, lemmas) || !isShown(e))
    return false;
  Term most = terms.scaled(prover.leastAtCorner(terms.scaled(e, -1), condition, lemmas), -1);
  llvm::SetVector<Term> extents, factors;
  collectExtents(terms, most, b, extents);
  collectIndices(e, factors);
  for (Term x : factors)
    if (auto split = coefficientOf(terms, e, x))
      extents.insert(split->first);
  // Try to prove e < a·b.
  Term index = indexFor(quotient, extents.getArrayRef(), [&](Term a) {
    return isShown(terms.difference(terms.difference(terms.product(a, b), one), e));
  });
  if (!index)
    return false;
  Term extent = prover.ranges[index];
  DenseMap<Term, Term> with = {{quotient, extent == one ? terms.number(0) : index}};
  Term truth = terms.below(index, extent), least = terms.product(b, index);
  Term whole = e->is(TermKind::Index) && extent != one ? prover.extentOf(e) : nullptr;
  if (whole && (alwaysDigits || terms.product(extent, b) == whole)) {
    Term rest = prover.indexOf(e, b, "r"), digits = terms.sum(least, rest);
    with[e] = digits;
    truth = terms.both(truth, terms.both(terms.below(rest, b), terms.below(digits, whole)));
  } else {
    truth = terms.both(truth, terms.both(terms.atMost(least, e), terms.below(e, terms.sum(least, b))));
  }
  replace(with, truth);
  return true;
}

/// Replaces an extreme by one of its operands if the operand is proved to be the extreme.
bool Prover::Parts::decide(Term extreme) {
  for (unsigned k : {0, 1}) {
    Term x = extreme->operands[k], y = extreme->operands[1 - k];
    if (!isShown(extreme->name == "min" ? terms.difference(y, x) : terms.difference(x, y)))
      continue;
    DenseMap<Term, Term> with = {{extreme, x}};
    replace(with, terms.truth(true));
    return true;
  }
  return false;
}

bool Prover::Parts::nameExtreme(Term extreme) {
  if (decide(extreme))
    return true;
  llvm::SetVector<Term> extents;
  std::function<void(Term)> collect = [&](Term term) {
    for (Term operand : term->operands) {
      if (isExtreme(operand))
        collect(operand);
      else
        extents.insert(terms.sum(operand, terms.number(1)));
    }
  };
  collect(extreme);
  // Candidates that contain indices bound nothing.
  llvm::SmallVector<Term> sizes;
  for (Term extent : extents)
    if (llvm::SetVector<Term> mentioned; collectIndices(extent, mentioned), mentioned.empty())
      sizes.push_back(extent);
  if (!isShown(extreme))
    return false;
  Term index = indexFor(
      extreme, sizes, [&](Term a) { return isShown(terms.difference(terms.difference(a, terms.number(1)), extreme)); });
  if (!index)
    return false;
  DenseMap<Term, Term> with = {{extreme, index}};
  replace(with, terms.below(index, prover.ranges[index]));
  return true;
}

void Prover::Parts::replace(const DenseMap<Term, Term> &with, Term truth) {
  Substitution substitution(terms, with);
  goal = substitution.of(goal);
  condition = terms.both(substitution.of(condition), truth);
  lemmas.insert("Lemma 16");
}

Proof Prover::Parts::prove() {
  for (unsigned count = 0; count < maxParts && prover.work >= 0;) {
    Term part = next();
    if (!part)
      break;
    count += part->is(TermKind::Quotient) ? nameQuotient(part) : nameExtreme(part);
  }
  Proof proof = prover.attempt(goal, condition, {}, 0);
  if (!proof.holds)
    proof = prover.attemptCorner(goal, condition);
  if (!proof.holds)
    proof = prover.withoutQuotients(goal, condition, maxQuotients);
  if (proof.holds)
    proof.lemmas.insert(lemmas.begin(), lemmas.end());
  return proof;
}
