//===- Prover.cpp - proofs by contradiction over linear systems -----------===//
#include "lib/Validation/Prover.h"
#include "lib/Validation/RealRange.h"
#include "mlir/Analysis/Presburger/IntegerRelation.h"
#include "mlir/Analysis/Presburger/Simplex.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;
using namespace moa;
using namespace moa::validation;
using presburger::IntegerPolyhedron;
using presburger::PresburgerSpace;

/// Cases that one proof may distinguish, and lemmas whose premise needs a proof.
static constexpr unsigned maxCases = 64, maxNesting = 3;
/// Unknowns up to which integer points are searched where rational ones exist.
static constexpr unsigned maxSampled = 24;

void Prover::addNotNegative(Term term) {
  if (Term fact = terms.notNegative(term); !fact->isTrue())
    facts.push_back(fact);
}

//===----------------------------------------------------------------------===//
// Linear systems over atoms and products
//===----------------------------------------------------------------------===//

/// Σ coefficient · unknown + constant ≥ 0 (or = 0) for every row.
struct Prover::System {
  struct Row {
    SmallVector<std::pair<Term, int64_t>> parts;
    int64_t constant = 0;
    bool isEquality = false;
  };

  void add(Term sum, bool isEquality = false) {
    Row row;
    row.isEquality = isEquality;
    splitSum(sum, row.parts, row.constant);
    for (auto [part, coefficient] : row.parts)
      unknowns.insert(part);
    rows.push_back(std::move(row));
  }

  /// Whether no integers satisfy all rows.
  bool isEmpty() const {
    DenseMap<Term, unsigned> columns;
    for (auto [k, unknown] : llvm::enumerate(unknowns))
      columns[unknown] = k;
    IntegerPolyhedron set(PresburgerSpace::getSetSpace(unknowns.size()));
    for (const Row &row : rows) {
      SmallVector<int64_t> values(unknowns.size() + 1, 0);
      for (auto [part, coefficient] : row.parts)
        values[columns[part]] = coefficient;
      values.back() = row.constant;
      if (row.isEquality) {
        set.addEquality(values);
        continue;
      }
      // c·e + d ≥ 0 is e + ⌊d / c⌋ ≥ 0.
      int64_t common = 0;
      for (int64_t value : ArrayRef<int64_t>(values).drop_back())
        common = std::gcd(common, value);
      if (common > 1) {
        for (int64_t &value : MutableArrayRef<int64_t>(values).drop_back())
          value /= common;
        values.back() = llvm::divideFloorSigned(values.back(), common);
      }
      set.addInequality(values);
    }
    if (presburger::Simplex(set).isEmpty() || set.isEmptyByGCDTest())
      return true;
    return unknowns.size() <= maxSampled && set.isIntegerEmpty();
  }

  std::vector<Row> rows;
  llvm::SetVector<Term> unknowns;
};

//===----------------------------------------------------------------------===//
// One proof
//===----------------------------------------------------------------------===//

namespace {
/// A choice between cases: in each its truths hold.
using Cases = std::vector<SmallVector<Term, 2>>;
} // namespace

struct Prover::Search {
  Search(Prover &prover, ArrayRef<const Assumption *> used, unsigned depth)
      : prover(prover), terms(prover.terms), used(used), depth(depth) {}

  /// Adds a truth value that holds; false if it contradicts another one.
  bool assume(Term truth) {
    if (truth->isTrue() || !held.insert(truth))
      return true;
    if (truth->isFalse() || held.contains(terms.negate(truth)))
      return false;
    switch (truth->kind) {
    case TermKind::And:
      return llvm::all_of(truth->operands, [&](Term part) { return assume(part); });
    case TermKind::NotNegative: return system.add(truth->operands[0]), true;
    case TermKind::Zero: return system.add(truth->operands[0], true), true;
    case TermKind::Or: {
      Cases cases;
      for (Term part : truth->operands)
        cases.push_back({part});
      choices.push_back(std::move(cases));
      return true;
    }
    case TermKind::Not: return assumeNot(truth->operands[0]);
    case TermKind::Select: {
      Term p = truth->operands[0];
      choices.push_back({{p, truth->operands[1]}, {terms.negate(p), truth->operands[2]}});
      return true;
    }
    default: return true;
    }
  }

  bool assumeNot(Term truth) {
    switch (truth->kind) {
    case TermKind::And: {
      Cases cases;
      for (Term part : truth->operands)
        cases.push_back({terms.negate(part)});
      choices.push_back(std::move(cases));
      return true;
    }
    case TermKind::Or:
      return llvm::all_of(truth->operands,
                          [&](Term part) { return assume(terms.negate(part)); });
    case TermKind::Zero: {
      Term a = truth->operands[0], one = terms.number(1);
      choices.push_back({{terms.notNegative(terms.difference(a, one))},
                         {terms.notNegative(terms.difference(terms.scaled(a, -1), one))}});
      return true;
    }
    case TermKind::Select: {
      Term p = truth->operands[0];
      choices.push_back({{p, terms.negate(truth->operands[1])},
                         {terms.negate(p), terms.negate(truth->operands[2])}});
      return true;
    }
    default: return true;
    }
  }

  /// What is known of every unknown, until nothing new comes up.
  void close(Term goal, Term condition) {
    for (size_t k = 0; k < system.unknowns.size() && k < 200; ++k)
      explain(system.unknowns[k], condition);
    multiply(goal);
    for (size_t k = 0; k < system.unknowns.size() && k < 200; ++k)
      explain(system.unknowns[k], condition);
  }

  bool refutes(unsigned &budget);

  Prover &prover;
  TermContext &terms;
  ArrayRef<const Assumption *> used;
  unsigned depth;
  System system;
  std::vector<Cases> choices;
  llvm::SetVector<Term> held, explained, divisors;
  std::set<std::string> lemmas;

private:
  void explain(Term unknown, Term condition);
  void explainQuotient(Term quotient, Term condition);
  void explainProduct(Term product);
  void explainScalar(Term scalar);
  void explainLoad(Term load);
  void multiply(Term goal);
  bool isNotNegative(Term factor) const;
};

/// Symbols, indices and divisors, which are at least 1, are not negative.
bool Prover::Search::isNotNegative(Term factor) const {
  return factor->is(TermKind::Symbol) || factor->is(TermKind::Index) ||
         divisors.contains(factor) || held.contains(terms.notNegative(factor));
}

void Prover::Search::explain(Term unknown, Term condition) {
  if (!explained.insert(unknown))
    return;
  switch (unknown->kind) {
  case TermKind::Symbol: return system.add(unknown);
  case TermKind::Index:
    system.add(unknown);
    if (Term extent = prover.variables.extentOf(unknown))
      system.add(terms.difference(terms.difference(extent, terms.number(1)), unknown));
    return;
  case TermKind::Quotient: return explainQuotient(unknown, condition);
  case TermKind::Product: return explainProduct(unknown);
  case TermKind::Scalar: return explainScalar(unknown);
  case TermKind::Load: return explainLoad(unknown);
  case TermKind::Select: {
    // As inequalities: that a selection is 0 says which side it picks, and no more.
    auto is = [&](Term p, Term value) -> SmallVector<Term, 2> {
      return {p, terms.atMost(unknown, value), terms.atMost(value, unknown)};
    };
    Term p = unknown->operands[0];
    choices.push_back({is(p, unknown->operands[1]), is(terms.negate(p), unknown->operands[2])});
    return;
  }
  default: return;
  }
}

/// Lemma 2: b·⌊e/b⌋ ≤ e < b·⌊e/b⌋ + b for b ≥ 1. A number b is Presburger's own.
void Prover::Search::explainQuotient(Term quotient, Term condition) {
  Term e = quotient->operands[0], b = quotient->operands[1], one = terms.number(1);
  if (b->is(TermKind::Number)) {
    if (b->value < 1)
      return;
  } else {
    if (depth >= maxNesting)
      return;
    // The indices that are divided are in their ranges, which are not empty.
    llvm::SetVector<Term> indices;
    collectIndices(e, indices);
    for (Term index : indices)
      if (Term extent = prover.variables.extentOf(index))
        condition = terms.both(condition,
                               terms.notNegative(terms.difference(terms.difference(extent, one), index)));
    Proof positive = prover.attempt(terms.difference(b, one), condition, used, depth + 1);
    if (!positive.holds)
      return;
    lemmas.insert(positive.lemmas.begin(), positive.lemmas.end());
    lemmas.insert("Lemma 2");
    divisors.insert(b);
    system.add(terms.difference(b, one));
  }
  Term rest = terms.difference(e, terms.product(b, quotient));
  system.add(rest);
  system.add(terms.difference(terms.difference(b, one), rest));
  // Of e ≥ 0 the quotient is not negative: what products with it need to know.
  if (depth < maxNesting && prover.attempt(e, condition, used, depth + 1).holds) {
    Term fact = terms.notNegative(quotient);
    held.insert(fact);
    system.add(quotient);
  }
}

/// Lemma 12: of factors that are not negative, so is the product, and an index
/// x ≤ n − 1 gives r·x ≤ r·(n − 1).
void Prover::Search::explainProduct(Term product) {
  for (Term factor : product->operands)
    explain(factor, terms.truth(true));
  for (auto [k, x] : llvm::enumerate(product->operands)) {
    Term rest = terms.number(1);
    bool good = true;
    for (auto [l, factor] : llvm::enumerate(product->operands))
      if (l != k) {
        rest = terms.product(rest, factor);
        good &= isNotNegative(factor);
      }
    if (!good || !isNotNegative(x))
      continue;
    system.add(product);
    lemmas.insert("Lemma 12");
    Term extent = x->is(TermKind::Index) ? prover.variables.extentOf(x) : nullptr;
    if (extent)
      system.add(terms.product(rest, terms.difference(terms.difference(extent, terms.number(1)), x)));
  }
}

void Prover::Search::explainScalar(Term scalar) {
  auto bounds = [&](int64_t low, int64_t high) {
    system.add(terms.difference(scalar, terms.number(low)));
    system.add(terms.difference(terms.number(high), scalar));
  };
  StringRef name = scalar->name;
  ArrayRef<Term> x = scalar->operands;
  if (!scalar->type.isIntOrIndex())
    return;
  if (name == "min" || name == "max") {
    bool isMin = name == "min";
    Cases cases;
    for (Term operand : x) {
      Term gap = isMin ? terms.difference(operand, scalar) : terms.difference(scalar, operand);
      system.add(gap);
      cases.push_back({terms.isZero(gap)});
    }
    choices.push_back(std::move(cases));
  } else if (name == "and" && x[1]->is(TermKind::Number) && x[1]->value >= 0) {
    bounds(0, x[1]->value);
  } else if ((name == "shr" || name == "shl") && x[1]->is(TermKind::Number) &&
             x[1]->value >= 0 && x[1]->value < 62) {
    Term power = terms.number(int64_t(1) << x[1]->value);
    Term value = name == "shl" ? terms.product(x[0], power) : terms.quotient(x[0], power);
    system.add(terms.difference(scalar, value), /*isEquality=*/true);
  } else if (name == "wrap") {
    unsigned width = scalar->type.getIntOrFloatBitWidth();
    bounds(-(int64_t(1) << (width - 1)), (int64_t(1) << (width - 1)) - 1);
  } else if (name == "fptosi") {
    RealRange range = rangeOfReal(x[0]);
    if (std::isfinite(range.low) && std::abs(range.low) < 0x1p62)
      system.add(terms.difference(scalar, terms.number(std::min(0.0, std::trunc(range.low)))));
    if (std::isfinite(range.high) && std::abs(range.high) < 0x1p62)
      system.add(terms.difference(terms.number(std::max(0.0, std::trunc(range.high))), scalar));
    lemmas.insert("Lemma 13");
  }
}

/// The range of the element type, and what is assumed of the input.
void Prover::Search::explainLoad(Term load) {
  if (load->type.isIntOrIndex() && !load->type.isIndex() && !load->type.isInteger(1)) {
    int64_t high = (int64_t(1) << (load->type.getIntOrFloatBitWidth() - 1)) - 1;
    system.add(terms.sum(load, terms.number(high + 1)));
    system.add(terms.difference(terms.number(high), load));
  }
  for (const Assumption *assumption : used) {
    // Every element of the input in the assumption that this one can be.
    DenseSet<Term> seen;
    std::function<void(Term)> match = [&](Term part) {
      if (!seen.insert(part).second)
        return;
      if (part->is(TermKind::Load) && part->value == load->value) {
        DenseMap<Term, Term> with;
        for (auto [variable, index] : llvm::zip_equal(part->operands, load->operands))
          if (variable->is(TermKind::Index))
            with.try_emplace(variable, index);
        if (terms.substitute(part, with) == load)
          assume(terms.substitute(assumption->fact, with));
      }
      for (Term operand : part->operands)
        match(operand);
    };
    match(assumption->fact);
  }
}

/// Lemma 12 for the goal: where b ≥ 0, a negated goal g ≥ 0 gives g·b ≥ 0. The factors
/// are the divisors and what stands in products.
void Prover::Search::multiply(Term goal) {
  llvm::SetVector<Term> factors;
  factors.insert(divisors.begin(), divisors.end());
  for (Term unknown : system.unknowns)
    if (unknown->is(TermKind::Product))
      for (Term factor : unknown->operands)
        if (isNotNegative(factor) && !factor->is(TermKind::Index))
          factors.insert(factor);
  if (factors.empty() || factors.size() > 8)
    return;
  lemmas.insert("Lemma 12");
  Term negated = terms.difference(terms.number(-1), goal);
  for (Term factor : factors)
    system.add(terms.product(negated, factor));
}

/// Whether no case is possible.
bool Prover::Search::refutes(unsigned &budget) {
  if (system.isEmpty())
    return true;
  if (choices.empty() || budget == 0)
    return false;
  --budget;
  Cases cases = std::move(choices.back());
  choices.pop_back();
  for (const auto &truths : cases) {
    Search branch = *this;
    bool possible = true;
    for (Term truth : truths)
      possible = possible && branch.assume(truth);
    if (!possible)
      continue;
    for (size_t k = 0; k < branch.system.unknowns.size() && k < 200; ++k)
      branch.explain(branch.system.unknowns[k], terms.truth(true));
    if (!branch.refutes(budget))
      return false;
    lemmas.insert(branch.lemmas.begin(), branch.lemmas.end());
  }
  return true;
}

//===----------------------------------------------------------------------===//
// The prover
//===----------------------------------------------------------------------===//

Proof Prover::search(Term goal, Term condition, ArrayRef<const Assumption *> used,
                     unsigned depth) {
  Proof proof;
  if (goal->is(TermKind::Number)) {
    proof.holds = goal->value >= 0;
    return proof;
  }
  Search search(*this, used, depth);
  search.system.add(terms.difference(terms.number(-1), goal));
  bool possible = search.assume(condition);
  for (Term fact : facts)
    possible = possible && search.assume(fact);
  // Of scalars and symbols: no subscript decides whether they apply.
  for (const Assumption *assumption : used) {
    llvm::SetVector<Term> indices;
    collectIndices(assumption->fact, indices);
    if (indices.empty())
      possible = possible && search.assume(assumption->fact);
  }
  unsigned budget = maxCases;
  if (possible) {
    search.close(goal, condition);
    proof.holds = search.refutes(budget);
  } else {
    proof.holds = true;
  }
  proof.lemmas = std::move(search.lemmas);
  return proof;
}

Proof Prover::attempt(Term goal, Term condition, ArrayRef<const Assumption *> used,
                      unsigned depth) {
  std::vector<const Assumption *> key(used.begin(), used.end());
  if (auto it = memo.find({goal, condition, key}); it != memo.end())
    return it->second;
  Proof proof = search(goal, condition, used, depth);
  if (depth == 0 || proof.holds)
    memo[{goal, condition, key}] = proof;
  return proof;
}

Proof Prover::prove(Term goal, Term condition) {
  Proof proof = attempt(goal, condition, {}, 0);
  if (proof.holds || assumptions.empty())
    return proof;
  // Declared ranges first, then everything; of these what is needed.
  std::vector<const Assumption *> used;
  for (bool ranges : {true, false}) {
    for (const Assumption &assumption : assumptions)
      if (assumption.isRange == ranges)
        used.push_back(&assumption);
    proof = attempt(goal, condition, used, 0);
    if (proof.holds)
      break;
  }
  if (!proof.holds)
    return proof;
  for (size_t k = used.size(); k-- > 0 && used.size() > 1;) {
    std::vector<const Assumption *> fewer = used;
    fewer.erase(fewer.begin() + k);
    if (Proof without = attempt(goal, condition, fewer, 0); without.holds) {
      used = fewer;
      proof = without;
    }
  }
  for (const Assumption *assumption : used)
    proof.assumptions.insert(assumption->text);
  return proof;
}
