//===- Prover.cpp - proofs by contradiction over linear systems -----------===//
#include "lib/Validation/Prover.h"
#include "lib/Validation/RealRange.h"
#include "mlir/Analysis/Presburger/IntegerRelation.h"
#include "mlir/Analysis/Presburger/Simplex.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/SaveAndRestore.h"
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
/// Factors by which a goal is multiplied.
static constexpr size_t maxFactors = 12;
/// Quotients that a goal gets rid of, and the sizes of all systems that are solved for that.
static constexpr unsigned maxQuotients = 3;
static constexpr int64_t maxWork = 1 << 25;
/// Facts that are multiplied.
static constexpr size_t maxProducts = 24;
/// Unknowns of one proof of which something is said.
static constexpr size_t maxUnknowns = 200;

Term Prover::split(Term term) {
  if (divided.empty())
    return term;
  if (!splitting)
    splitting.emplace(Substitution(terms, divided), Substitution(terms, gone));
  return splitting->second.of(splitting->first.of(term));
}

void Prover::addNotNegative(Term term) {
  if (Term fact = terms.notNegative(split(term)); !fact->isTrue())
    facts.push_back(fact);
}

void Prover::splitSymbols(Term size) {
  for (Term operand : size->operands)
    splitSymbols(operand);
  if (!size->is(TermKind::Quotient) || !size->operands[0]->is(TermKind::Symbol) ||
      !size->operands[1]->is(TermKind::Number) || size->operands[1]->value < 2 ||
      divided.contains(size->operands[0]))
    return;
  Term symbol = size->operands[0], c = size->operands[1];
  Term q = terms.symbol((symbol->name + "/" + Twine(c->value)).str());
  Term r = terms.symbol((symbol->name + "%" + Twine(c->value)).str());
  divided[symbol] = terms.sum(terms.product(c, q), r);
  gone[terms.quotient(r, c)] = terms.number(0);
  splitting.reset();
  facts.push_back(terms.below(r, c));
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
    if (!(isEquality ? zeros : sums).insert(sum).second)
      return;
    Row row;
    row.isEquality = isEquality;
    splitSum(sum, row.parts, row.constant);
    for (auto [part, coefficient] : row.parts)
      unknowns.insert(part);
    rows.push_back(std::move(row));
  }

  /// What it takes to solve, in no unit.
  int64_t getSize() const { return rows.size() * rows.size() * unknowns.size(); }

  /// What is known of the points that satisfy all rows.
  enum class Points { None, NoIntegers, Some, Unknown };
  static bool isNothing(Points points) {
    return points == Points::None || points == Points::NoIntegers;
  }

  Points find(bool integers) const {
    IntegerPolyhedron set = polyhedron();
    presburger::Simplex simplex(set);
    if (simplex.isEmpty())
      return Points::None;
    if (!integers)
      return Points::Unknown;
    if (set.isEmptyByGCDTest())
      return Points::NoIntegers;
    if (simplex.getSamplePointIfIntegral())
      return Points::Some;
    if (unknowns.size() > maxSampled)
      return Points::Unknown;
    return set.isIntegerEmpty() ? Points::NoIntegers : Points::Some;
  }

private:
  IntegerPolyhedron polyhedron() const {
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
    return set;
  }

public:
  std::vector<Row> rows;
  llvm::SetVector<Term> unknowns;

private:
  DenseSet<Term> sums, zeros;
};

//===----------------------------------------------------------------------===//
// One proof
//===----------------------------------------------------------------------===//

namespace {
/// A choice between cases: in each its truths hold.
using Cases = std::vector<SmallVector<Term, 2>>;
} // namespace

struct Prover::Search {
  Search(Prover &prover, Term condition, ArrayRef<const Assumption *> used, unsigned depth,
         bool harder)
      : prover(prover), terms(prover.terms), condition(condition), used(used), depth(depth),
        harder(harder) {}

  /// Adds a truth value that holds; false if it contradicts another one.
  bool assume(Term truth) {
    if (truth->isTrue() || !held.insert(truth))
      return true;
    if (truth->isFalse() || held.contains(terms.negate(truth)))
      return !(contradicted = true);
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

  /// What is known of every unknown, until nothing new comes up; products where what is
  /// known without them is not enough.
  void close(Term goal) {
    explainAll();
    for (bool again : {false, true}) {
      hasProducts = !divisors.empty() || llvm::any_of(system.unknowns, [](Term unknown) {
        return unknown->is(TermKind::Product);
      });
      if (!hasProducts || again > harder)
        return;
      if (!again && system.find(/*integers=*/false) == System::Points::None) {
        contradicted = true;
        return;
      }
      multiply(goal);
      multiplyFacts();
      explainAll();
    }
  }
  void explainAll() {
    for (size_t k = 0; k < system.unknowns.size() && k < maxUnknowns; ++k)
      explain(system.unknowns[k]);
  }

  System::Points refute(unsigned &budget);
  void instantiate(Term load);

  Prover &prover;
  TermContext &terms;
  Term condition;
  ArrayRef<const Assumption *> used;
  unsigned depth;
  /// More products, after fewer were not enough.
  bool harder;
  System system;
  std::vector<Cases> choices;
  llvm::SetVector<Term> held, explained, divisors;
  std::set<std::string> lemmas;
  bool contradicted = false, hasProducts = false;

private:
  void explain(Term unknown);
  void explainQuotient(Term quotient);
  void boundQuotient(Term quotient);
  void explainProduct(Term product);
  void explainScalar(Term scalar);
  void explainLoad(Term load);
  Term extentOf(Term index) {
    Term extent = prover.variables.extentOf(index);
    return extent ? prover.split(extent) : nullptr;
  }
  void multiply(Term goal);
  void multiplyFacts();
  void multiplyPairs(const DenseSet<Term> &known);
  bool isNotNegative(Term factor) const;
};

static bool isExtreme(Term term) {
  return term->is(TermKind::Scalar) && term->type.isIntOrIndex() &&
         (term->name == "min" || term->name == "max");
}

/// A polynomial without negative coefficients in symbols.
static bool isSize(Term term) {
  SmallVector<std::pair<Term, int64_t>> parts;
  int64_t constant = 0;
  splitSum(term, parts, constant);
  return constant >= 0 && llvm::all_of(parts, [](auto &part) {
    ArrayRef<Term> factors =
        part.first->is(TermKind::Product) ? part.first->operands : ArrayRef<Term>(part.first);
    return part.second >= 0 && llvm::all_of(factors, [](Term x) {
      return x->is(TermKind::Symbol) ||
             (x->is(TermKind::Quotient) && x->operands[1]->is(TermKind::Number) &&
              x->operands[1]->value > 0 && isSize(x->operands[0]));
    });
  });
}

/// Symbols, indices and divisors, which are at least 1, are not negative.
bool Prover::Search::isNotNegative(Term factor) const {
  return factor->is(TermKind::Symbol) || factor->is(TermKind::Index) ||
         divisors.contains(factor) || held.contains(terms.notNegative(factor));
}

void Prover::Search::explain(Term unknown) {
  if (!explained.insert(unknown))
    return;
  switch (unknown->kind) {
  case TermKind::Symbol: return system.add(unknown);
  case TermKind::Index:
    system.add(unknown);
    if (Term extent = extentOf(unknown)) {
      Term below = terms.difference(terms.difference(extent, terms.number(1)), unknown);
      if (harder)
        assume(terms.notNegative(below));
      else
        system.add(below);
    }
    return;
  case TermKind::Quotient: return explainQuotient(unknown);
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
void Prover::Search::explainQuotient(Term quotient) {
  Term e = quotient->operands[0], b = quotient->operands[1], one = terms.number(1);
  // The indices that are divided are in their ranges, which are not empty.
  llvm::SetVector<Term> indices;
  collectIndices(e, indices);
  if (b->is(TermKind::Number)) {
    if (b->value < 1) {
      for (Term index : indices)
        explain(index);
      return;
    }
  } else {
    if (depth >= maxNesting)
      return;
    Term inRange = condition;
    for (Term index : indices)
      if (Term extent = extentOf(index))
        inRange = terms.both(inRange, terms.below(index, extent));
    if (!prover.isPositive(b, inRange, used, depth + 1, lemmas))
      return;
    lemmas.insert("Lemma 2");
    divisors.insert(b);
    system.add(terms.difference(b, one));
  }
  Term rest = terms.difference(e, terms.product(b, quotient));
  assume(terms.notNegative(rest));
  assume(terms.notNegative(terms.difference(terms.difference(b, one), rest)));
  if (harder && depth == 0 && !b->is(TermKind::Number))
    boundQuotient(quotient);
  // Of e ≥ 0 the quotient is not negative: what products with it need to know.
  if (depth < maxNesting && prover.attempt(e, condition, used, depth + 1).holds) {
    Term fact = terms.notNegative(quotient);
    held.insert(fact);
    system.add(quotient);
  }
}

/// Lemma 2: an a among the factors of e with e < a·b has ⌊e/b⌋ < a.
void Prover::Search::boundQuotient(Term quotient) {
  SmallVector<std::pair<Term, int64_t>> parts;
  int64_t constant = 0;
  splitSum(quotient->operands[0], parts, constant);
  Term where = condition, one = terms.number(1);
  for (Term divisor : divisors)
    where = terms.both(where, terms.notNegative(terms.difference(divisor, one)));
  llvm::SetVector<Term> factors;
  for (auto [part, coefficient] : parts)
    if (part->is(TermKind::Product))
      for (Term factor : part->operands)
        if (isNotNegative(factor) && !factor->is(TermKind::Index))
          factors.insert(factor);
  for (Term factor : factors) {
    Term below = terms.difference(terms.difference(factor, one), quotient);
    if (Proof proof = prover.attempt(below, where, used, depth + 1); proof.holds) {
      lemmas.insert(proof.lemmas.begin(), proof.lemmas.end());
      assume(terms.notNegative(below));
    }
  }
}

/// Lemma 12: of factors that are not negative, so is the product, and an index
/// x ≤ n − 1 gives r·x ≤ r·(n − 1).
void Prover::Search::explainProduct(Term product) {
  for (Term factor : product->operands) {
    explain(factor);
    if (factor->is(TermKind::Scalar) && depth < maxNesting &&
        prover.attempt(factor, condition, used, depth + 1).holds)
      assume(terms.notNegative(factor));
  }
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
    Term extent = x->is(TermKind::Index) ? extentOf(x) : nullptr;
    if (extent)
      system.add(terms.product(rest, terms.difference(terms.difference(extent, terms.number(1)), x)));
    if (isExtreme(x))
      for (Term operand : x->operands) {
        Term gap = terms.difference(x, operand);
        system.add(terms.product(rest, x->name == "max" ? gap : terms.scaled(gap, -1)));
      }
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
  if (isExtreme(scalar)) {
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
  instantiate(load);
}

/// What is assumed of an element.
void Prover::Search::instantiate(Term load) {
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
/// are the divisors, what stands in products, and what makes a product of a part of the goal.
void Prover::Search::multiply(Term goal) {
  Term negated = terms.difference(terms.number(-1), goal);
  SmallVector<std::pair<Term, int64_t>> parts;
  int64_t constant = 0;
  splitSum(negated, parts, constant);
  llvm::SetVector<Term> factors;
  factors.insert(divisors.begin(), divisors.end());
  auto isFactor = [&](Term x) { return isNotNegative(x) && !x->is(TermKind::Index); };
  for (Term unknown : system.unknowns) {
    if (!unknown->is(TermKind::Product))
      continue;
    for (auto [k, factor] : llvm::enumerate(unknown->operands)) {
      if (isFactor(factor))
        factors.insert(factor);
      if (unknown->operands.size() < 3 ||
          llvm::none_of(parts, [&, x = factor](auto &part) { return part.first == x; }))
        continue;
      SmallVector<Term> others(unknown->operands);
      others.erase(others.begin() + k);
      if (!llvm::all_of(others, isFactor))
        continue;
      Term rest = terms.number(1);
      for (Term other : others)
        rest = terms.product(rest, other);
      factors.insert(rest);
    }
  }
  if (factors.empty())
    return;
  lemmas.insert("Lemma 12");
  for (Term factor : factors.getArrayRef().take_front(harder ? 2 * maxFactors : maxFactors))
    system.add(terms.product(negated, factor));
}

/// Whether all products in a sum are among the known ones.
static bool hasNothingNew(Term sum, const DenseSet<Term> &known) {
  SmallVector<std::pair<Term, int64_t>> parts;
  int64_t constant = 0;
  splitSum(sum, parts, constant);
  return llvm::all_of(parts, [&](auto &part) {
    return !part.first->is(TermKind::Product) || known.contains(part.first);
  });
}

/// Lemma 12 for facts: f ≥ 0 with a part x gives f·r ≥ 0 for the other factors r of a
/// product with x.
void Prover::Search::multiplyFacts() {
  SmallVector<Term> products;
  for (Term unknown : system.unknowns)
    if (unknown->is(TermKind::Product))
      products.push_back(unknown);
  DenseSet<Term> known(products.begin(), products.end());
  llvm::SetVector<std::pair<Term, Term>> pairs;
  for (Term fact : held) {
    if (!fact->is(TermKind::NotNegative))
      continue;
    SmallVector<std::pair<Term, int64_t>> parts;
    int64_t constant = 0;
    splitSum(fact->operands[0], parts, constant);
    if (parts.size() > (harder ? 6 : 3))
      continue;
    for (Term product : products)
      for (auto [k, x] : llvm::enumerate(product->operands)) {
        if (llvm::none_of(parts, [x = x](auto &part) { return part.first == x; }))
          continue;
        SmallVector<Term> others(product->operands);
        others.erase(others.begin() + k);
        if (!llvm::all_of(others, [&](Term other) { return isNotNegative(other); }))
          continue;
        Term rest = terms.number(1);
        for (Term other : others)
          rest = terms.product(rest, other);
        pairs.insert({rest, fact->operands[0]});
      }
  }
  SmallVector<std::pair<Term, Term>> sorted(pairs.begin(), pairs.end());
  size_t most = harder ? 8 * maxProducts : maxProducts;
  if (harder && prover.isLast) {
    most = 3 * maxProducts;
    llvm::stable_sort(sorted, [&](auto &a, auto &b) {
      return hasNothingNew(terms.product(a.first, a.second), known) &&
             !hasNothingNew(terms.product(b.first, b.second), known);
    });
  }
  for (auto [rest, fact] : ArrayRef(sorted).take_front(most)) {
    system.add(terms.product(rest, fact));
    lemmas.insert("Lemma 12");
  }
  if (harder && prover.isLast)
    multiplyPairs(known);
}

/// Lemma 12 for two facts: f ≥ 0 and g ≥ 0 give f·g ≥ 0, where something is said of its
/// products already.
void Prover::Search::multiplyPairs(const DenseSet<Term> &known) {
  SmallVector<Term> linear;
  for (Term fact : held) {
    if (!fact->is(TermKind::NotNegative) || !fact->operands[0]->is(TermKind::Sum) ||
        fact->operands[0]->operands.size() > 3)
      continue;
    if (llvm::none_of(fact->operands[0]->operands,
                      [](Term part) { return part->is(TermKind::Product); }))
      linear.push_back(fact->operands[0]);
  }
  size_t budget = 2 * maxProducts;
  for (auto [k, f] : llvm::enumerate(linear))
    for (Term g : ArrayRef<Term>(linear).take_front(k + 1)) {
      Term both = terms.product(f, g);
      if (budget == 0 || !hasNothingNew(both, known))
        continue;
      --budget;
      system.add(both);
      lemmas.insert("Lemma 12");
    }
}

/// Looks for a case that is possible. Rational points decide whether there is a choice
/// to make, integer ones where none is left; a point of a case is one of the whole.
Prover::System::Points Prover::Search::refute(unsigned &budget) {
  using Points = System::Points;
  if (contradicted)
    return Points::None;
  bool isLast = choices.empty() || budget == 0;
  if (prover.isLast && (prover.work -= system.getSize()) < 0)
    return Points::Unknown;
  Points found = system.find(/*integers=*/isLast);
  if (isLast || found == Points::None)
    return found;
  --budget;
  Cases cases = std::move(choices.back());
  choices.pop_back();
  Points result = Points::None;
  std::optional<Points> whole;
  for (const auto &truths : cases) {
    Search branch = *this;
    bool possible = true;
    for (Term truth : truths)
      possible = possible && branch.assume(truth);
    if (!possible)
      continue;
    branch.explainAll();
    found = branch.refute(budget);
    lemmas.insert(branch.lemmas.begin(), branch.lemmas.end());
    if (found == Points::None)
      continue;
    if (found == Points::Some)
      return found;
    // Where integers decide, they may do so without the cases.
    if (!whole)
      whole = system.find(/*integers=*/true);
    if (found == Points::Unknown || System::isNothing(*whole))
      return *whole;
    result = Points::NoIntegers;
  }
  return result;
}

//===----------------------------------------------------------------------===//
// The prover
//===----------------------------------------------------------------------===//

/// c·e + d ≥ 0 is e + ⌊d / c⌋ ≥ 0.
static Term tightened(TermContext &terms, Term goal) {
  SmallVector<std::pair<Term, int64_t>> parts;
  int64_t constant = 0, common = 0;
  splitSum(goal, parts, constant);
  for (auto [part, coefficient] : parts)
    common = std::gcd(common, coefficient);
  return common > 1 ? terms.quotient(goal, terms.number(common)) : goal;
}

Proof Prover::search(Term goal, Term condition, ArrayRef<const Assumption *> used,
                     unsigned depth, bool harder, bool &hasProducts) {
  Proof proof;
  hasProducts = false;
  if (goal->is(TermKind::Number)) {
    proof.holds = goal->value >= 0;
    return proof;
  }
  goal = tightened(terms, goal);
  Search search(*this, condition, used, depth, harder);
  search.system.add(terms.difference(terms.number(-1), goal));
  bool possible = search.assume(condition);
  for (Term fact : facts)
    possible = possible && search.assume(fact);
  // Of truth values that are elements, which are no unknowns of the system.
  if (!used.empty()) {
    DenseSet<Term> seen;
    std::function<void(Term)> visit = [&](Term part) {
      if (!seen.insert(part).second)
        return;
      if (part->is(TermKind::Load))
        search.instantiate(part);
      llvm::for_each(part->operands, visit);
    };
    visit(condition);
  }
  // Of scalars and symbols: no subscript decides whether they apply.
  for (const Assumption *assumption : used) {
    llvm::SetVector<Term> indices;
    collectIndices(assumption->fact, indices);
    if (indices.empty())
      possible = possible && search.assume(assumption->fact);
  }
  unsigned budget = maxCases;
  if (possible && !search.contradicted) {
    search.close(goal);
    proof.holds = System::isNothing(search.refute(budget));
    hasProducts = search.hasProducts;
  } else {
    proof.holds = true;
  }
  proof.always = proof.holds && condition->isTrue();
  proof.lemmas = std::move(search.lemmas);
  return proof;
}

Proof Prover::attempt(Term goal, Term condition, ArrayRef<const Assumption *> used,
                      unsigned depth) {
  std::vector<const Assumption *> key(used.begin(), used.end());
  if (auto it = memo.find({goal, condition, key, isLast}); it != memo.end())
    return it->second;
  bool isPlain = depth == 0 && condition->isTrue() && used.empty(), hasProducts = false;
  Proof proof;
  if (isPlain)
    std::tie(proof, hasProducts) = attemptAlways(goal);
  else
    proof = search(goal, condition, used, depth, /*harder=*/false, hasProducts);
  // It is only products of which there are more.
  if (!proof.holds && depth == 0 && hasProducts) {
    proof = search(goal, condition, used, depth, /*harder=*/true, hasProducts);
    if (!proof.holds)
      proof = attemptCases(goal, condition, used);
  }
  // That work ran out says nothing of the goal.
  bool ranOut = isLast && work < 0;
  if (proof.holds || (depth == 0 && !ranOut))
    memo[{goal, condition, key, isLast}] = proof;
  return proof;
}

/// A goal in which a part is a minimum, a maximum or a selection, by what the part may be:
/// products with that are other products.
Proof Prover::attemptCases(Term goal, Term condition, ArrayRef<const Assumption *> used) {
  SmallVector<std::pair<Term, int64_t>> parts;
  int64_t constant = 0;
  splitSum(goal, parts, constant);
  Proof all;
  for (auto [part, coefficient] : parts) {
    Term first = nullptr, x = nullptr, y = nullptr, others = terms.number(1), choice = part;
    if (part->is(TermKind::Product)) {
      auto *it = llvm::find_if(part->operands, isExtreme);
      if (!isLast || it == part->operands.end())
        continue;
      choice = *it;
      for (const Term &factor : part->operands)
        if (&factor != it)
          others = terms.product(others, factor);
    }
    if (choice->is(TermKind::Select)) {
      first = choice->operands[0], x = choice->operands[1], y = choice->operands[2];
    } else if (isExtreme(choice)) {
      x = choice->operands[0], y = choice->operands[1];
      first = choice->name == "min" ? terms.atMost(x, y) : terms.atMost(y, x);
    } else {
      continue;
    }
    all.holds = true;
    for (auto [value, where] : {std::pair(x, first), std::pair(y, terms.negate(first))}) {
      Term change = terms.product(others, terms.difference(value, choice));
      change = terms.scaled(change, coefficient);
      Proof one = attempt(terms.sum(goal, change), terms.both(condition, where), used, 0);
      all.holds &= one.holds;
      all.lemmas.insert(one.lemmas.begin(), one.lemmas.end());
      if (!all.holds)
        break;
    }
    break;
  }
  all.always = all.holds && condition->isTrue();
  return all;
}

/// A condition, and that the indices of a goal are in their ranges.
Term Prover::inRanges(Term goal, Term condition) {
  llvm::SetVector<Term> indices;
  collectIndices(goal, indices);
  for (Term index : indices)
    if (Term extent = variables.extentOf(index))
      condition = terms.both(condition, terms.below(index, split(extent)));
  return condition;
}

/// The goal with minima and maxima that the ranges of its indices decide.
Term Prover::simplified(Term goal, Term condition) {
  llvm::SetVector<Term> extremes;
  condition = inRanges(goal, condition);
  DenseSet<Term> seen;
  std::function<void(Term)> visit = [&](Term term) {
    if (!seen.insert(term).second)
      return;
    llvm::for_each(term->operands, visit);
    if (isExtreme(term))
      extremes.insert(term);
  };
  visit(goal);
  DenseMap<Term, Term> with;
  for (Term extreme : extremes)
    for (unsigned k : {0, 1}) {
      Term x = extreme->operands[k], y = extreme->operands[1 - k];
      Term gap = extreme->name == "min" ? terms.difference(y, x) : terms.difference(x, y);
      if (!with.contains(extreme) && attempt(gap, condition, {}, 1).holds)
        with[extreme] = x;
    }
  return terms.substitute(goal, with);
}

/// Whether b ≥ 1, for a product by its factors.
bool Prover::isPositive(Term divisor, Term condition, ArrayRef<const Assumption *> used, unsigned depth,
                        std::set<std::string> &lemmas) {
  auto shown = [&](Term x) {
    Proof proof = attempt(terms.difference(x, terms.number(1)), condition, used, depth);
    if (proof.holds)
      lemmas.insert(proof.lemmas.begin(), proof.lemmas.end());
    return proof.holds;
  };
  SmallVector<std::pair<Term, int64_t>> parts;
  int64_t constant = 0;
  splitSum(divisor, parts, constant);
  if (parts.size() == 1 && constant == 0 && parts[0].second > 0 &&
      parts[0].first->is(TermKind::Product) && llvm::all_of(parts[0].first->operands, shown))
    return true;
  return shown(divisor);
}

/// Lemma 15: for b ≥ 1, t ≤ ⌊e/b⌋ ⇔ b·t ≤ e and ⌊e/b⌋ ≤ t ⇔ e ≤ b·t + b − 1; and for c ≥ 0,
/// c·(e − b + 1) ≤ b·c·⌊e/b⌋ ≤ c·e. So a goal need not speak of its quotients.
Proof Prover::withoutQuotients(Term goal, Term condition, unsigned depth) {
  SmallVector<std::pair<Term, int64_t>> parts;
  int64_t constant = 0;
  splitSum(goal, parts, constant);
  for (bool exact : {true, false})
    for (auto [part, coefficient] : parts) {
      Term quotient = part, others = terms.number(1);
      if (part->is(TermKind::Product)) {
        auto *it = llvm::find_if(part->operands, [](Term x) { return x->is(TermKind::Quotient); });
        if (it == part->operands.end())
          continue;
        quotient = *it;
        for (const Term &factor : part->operands)
          if (&factor != it)
            others = terms.product(others, factor);
      }
      bool isOne = quotient == part && (coefficient == 1 || coefficient == -1);
      if (!quotient->is(TermKind::Quotient) || isOne != exact)
        continue;
      Term e = quotient->operands[0], b = quotient->operands[1];
      Proof proof;
      if (work < 0)
        return proof;
      if (!isPositive(b, condition, {}, 1, proof.lemmas))
        continue;
      if (!others->is(TermKind::Number) && !attempt(others, condition, {}, 1).holds)
        continue;
      Term rest = terms.product(b, terms.difference(goal, terms.scaled(part, coefficient)));
      Term gap = terms.difference(b, terms.number(1));
      if (exact)
        rest = coefficient > 0 ? rest : terms.sum(rest, gap);
      else if (coefficient > 0)
        e = terms.difference(e, gap);
      Term simpler = terms.sum(rest, terms.scaled(terms.product(others, e), coefficient));
      Proof inner = attempt(simpler, condition, {}, 0);
      if (!inner.holds && depth > 0)
        inner = withoutQuotients(simpler, condition, depth - 1);
      if (!inner.holds)
        continue;
      proof.holds = true;
      proof.lemmas.insert(inner.lemmas.begin(), inner.lemmas.end());
      proof.lemmas.insert("Lemma 15");
      return proof;
    }
  return {};
}

const std::pair<Proof, bool> &Prover::attemptAlways(Term goal) {
  auto [it, isNew] = unconditional.try_emplace(goal);
  auto &[proof, hasProducts] = it->second;
  if (isNew)
    proof = search(goal, terms.truth(true), {}, 0, /*harder=*/false, hasProducts);
  return it->second;
}

/// Whether a divisor is a size whatever the indices are.
bool Prover::isSizeAlways(Term term) {
  return isSize(term) || attempt(term, terms.truth(true), {}, maxNesting).holds;
}

/// Lemma 14: ⌊⌊e/a⌋/b⌋ = ⌊e/(a·b)⌋ for b ≥ 1, which a·b ≥ 1 implies of sizes.
Term Prover::flatten(Term term, bool &used) {
  if (auto it = flat.find(term); it != flat.end())
    return used |= it->second.second, it->second.first;
  bool changed = false;
  DenseMap<Term, Term> with;
  for (Term operand : term->operands)
    if (Term other = flatten(operand, changed); other != operand)
      with[operand] = other;
  Term result = terms.substitute(term, with);
  if (result->is(TermKind::Quotient) && result->operands[0]->is(TermKind::Quotient)) {
    Term inner = result->operands[0], a = inner->operands[1], b = result->operands[1];
    if (isSizeAlways(a) && isSizeAlways(b)) {
      result = terms.quotient(inner->operands[0], terms.product(a, b));
      changed = true;
    }
  }
  flat[term] = {result, changed};
  used |= changed;
  return result;
}

Proof Prover::prove(Term goal, Term condition) {
  Term whole = split(goal), where = split(condition);
  bool flattened = false;
  goal = flatten(whole, flattened);
  condition = flatten(where, flattened);
  Proof proof = decide(goal, condition);
  if (!proof.holds)
    if (Term simpler = flatten(simplified(goal, condition), flattened); simpler != goal) {
      proof = decide(simpler, condition);
      proof.always &= condition->isTrue();
    }
  if (proof.holds) {
    if (flattened)
      proof.lemmas.insert("Lemma 14");
    return proof;
  }
  // A remainder is one of what is divided, not of what that is a quotient of.
  llvm::SaveAndRestore last(isLast, true);
  work = maxWork;
  if (flattened && (proof = decide(whole, where)).holds)
    return proof;
  for (Term other : {simplified(goal, condition), simplified(whole, where)}) {
    proof = withoutQuotients(other, inRanges(other, other == goal ? condition : where), maxQuotients);
    if (proof.holds) {
      proof.always = condition->isTrue();
      if (flattened)
        proof.lemmas.insert("Lemma 14");
      return proof;
    }
  }
  return proof;
}

Proof Prover::decide(Term goal, Term condition) {
  // Most conditions have nothing to do with the index: one proof for all of them.
  if (const Proof &proof = attemptAlways(goal).first; proof.holds)
    return proof;
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
      used = std::move(fewer);
      proof = without;
    }
  }
  for (const Assumption *assumption : used)
    proof.assumptions.insert(assumption->text);
  return proof;
}
