//===- ProverTest.cpp - what is shown, by what, and what is not -----------===//
#include "lib/Validation/Prover.h"
#include "dialects/MoA/IR/MoA.h"
#include "lib/Validation/Predicate.h"
#include "lib/Validation/RealRange.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/MathExtras.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <random>

using namespace mlir;
using namespace moa;
using namespace moa::validation;

namespace {

class ProverTest : public ::testing::Test {
protected:
  ProverTest() : terms(&context), variables(terms), prover(terms, variables) {
    context.loadDialect<MoADialect>();
    terms.inputNames = {"t"};
    auto n = SymExpr::symbol("N");
    types = {ArrayType::get(&context, ArrayRef<SymExpr>{n}, IntegerType::get(&context, 32))};
  }
  Term index(StringRef extent) { return variables.get(depth++, terms.extent(extent), "i"); }
  Term read(StringRef text) {
    auto term = parsePredicate(terms, text, types);
    EXPECT_TRUE(bool(term)) << llvm::toString(term.takeError());
    return *term;
  }
  Proof below(Term a, StringRef extent, Term where = nullptr) {
    return prover.prove(terms.difference(terms.difference(terms.extent(extent), terms.number(1)), a),
                        where ? where : terms.truth(true));
  }

  MLIRContext context;
  TermContext terms;
  Variables variables;
  Prover prover;
  SmallVector<Type> types;
  unsigned depth = 0;
};

TEST_F(ProverTest, LinearBounds) {
  Term i = index("N"), j = index("M");
  EXPECT_TRUE(below(i, "N").holds);
  EXPECT_TRUE(below(terms.sum(i, j), "N + M - 1").holds);
  EXPECT_FALSE(below(terms.sum(i, j), "N + M - 2").holds);
  EXPECT_FALSE(below(i, "M").holds);
  EXPECT_TRUE(below(i, "N").lemmas.empty());
}

TEST_F(ProverTest, TermsWhereAConditionHolds) {
  Term i = index("N"), p = terms.below(i, terms.number(4)), q = terms.isZero(i);
  Term a = terms.select(p, i, terms.number(7));
  EXPECT_EQ(terms.under(a, p), i);
  EXPECT_EQ(terms.under(a, terms.both(q, p)), i);
  EXPECT_EQ(terms.under(a, terms.negate(p)), terms.number(7));
  EXPECT_EQ(terms.under(a, q), a);
}

TEST_F(ProverTest, LawsOfTerms) {
  Term i = index("N");
  Term p = terms.below(i, terms.number(4));
  // The integer that a truth value is, on both sides.
  Term a = terms.select(p, terms.number(0), terms.number(3));
  EXPECT_EQ(terms.equal(a, terms.number(0)), p);
  EXPECT_EQ(terms.equal(terms.number(0), a), p);
  EXPECT_EQ(terms.equal(terms.number(3), a), terms.negate(p));
  // Of two truncations the narrower one counts, in either order.
  Type i8 = IntegerType::get(&context, 8), i16 = IntegerType::get(&context, 16);
  Term long_ = terms.load(0, {i}, terms.indexType());
  EXPECT_EQ(terms.cast(terms.cast(long_, i16), i8), terms.cast(long_, i8));
  EXPECT_NE(terms.cast(terms.cast(long_, i8), i16), terms.cast(long_, i16));
}

TEST_F(ProverTest, IntegersDecideACase) {
  // Whether i is even or odd, 2·j ≠ 2·k + 1: no rational test says so.
  Term i = index("N"), j = index("N"), k = index("N"), one = terms.number(1);
  Term odd = terms.equal(terms.scaled(j, 2), terms.sum(terms.scaled(k, 2), one));
  Term choice = terms.either(terms.both(odd, terms.below(i, one)), terms.both(odd, terms.below(one, i)));
  EXPECT_TRUE(prover.prove(terms.difference(terms.number(-1), i), choice).holds);
  EXPECT_FALSE(prover.prove(terms.difference(terms.number(-1), i), terms.either(odd, terms.below(i, one))).holds);
}

TEST_F(ProverTest, AProofMayHoldAlways) {
  Term i = index("N"), p = terms.below(terms.number(3), i);
  EXPECT_TRUE(below(i, "N", p).always);
  EXPECT_FALSE(prover.prove(terms.difference(i, terms.number(4)), p).always);
  EXPECT_TRUE(prover.prove(terms.difference(i, terms.number(4)), p).holds);
}

TEST_F(ProverTest, GoalsAreTightened) {
  // 4·q − 4·K·p ≥ 0 is q − K·p ≥ 0, which products can show.
  Term i = index("K*N*R"), n = terms.symbol("N"), k = terms.symbol("K");
  Term q = terms.quotient(i, n), rest = terms.remainder(q, k);
  EXPECT_TRUE(prover.prove(rest, terms.truth(true)).holds);
  EXPECT_TRUE(prover.prove(terms.scaled(rest, 4), terms.truth(true)).holds);
  EXPECT_FALSE(prover.prove(terms.difference(terms.scaled(rest, 4), terms.number(1)), terms.truth(true)).holds);
}

TEST_F(ProverTest, PartsOfAGoalByCases) {
  Term i = index("M*N*R"), m = terms.symbol("M"), n = terms.symbol("N"), one = terms.number(1);
  Term rest = terms.remainder(terms.quotient(i, m), n);
  Term least = terms.integer("min", terms.difference(m, one), rest);
  EXPECT_TRUE(prover.prove(least, terms.truth(true)).holds);
  EXPECT_TRUE(below(least, "M").holds);
  EXPECT_FALSE(below(least, "M - 1").holds);
  EXPECT_FALSE(prover.prove(terms.difference(least, one), terms.truth(true)).holds);
}

TEST_F(ProverTest, QuotientsInsideOfQuotients) {
  // m < M has max(M, 1) = M, so that (K·m)/M < K and m + M·((K·m)/M) < K·M.
  Term i = index("M"), k = terms.symbol("K"), m = terms.symbol("M"), one = terms.number(1);
  Term inner = terms.quotient(terms.product(k, i), terms.integer("max", m, one));
  Term whole = terms.sum(i, terms.product(m, inner));
  Term some = terms.below(terms.number(0), k);
  EXPECT_TRUE(below(inner, "K", some).holds);
  EXPECT_FALSE(below(inner, "K - 1", some).holds);
  EXPECT_TRUE(below(terms.quotient(whole, k), "M", some).holds);
  EXPECT_FALSE(below(terms.quotient(whole, k), "M - 1", some).holds);
}

TEST_F(ProverTest, GoalsWithoutTheirQuotientsAreLemma15) {
  // ⌊(M − 2)·i / max(N, 1)⌋ + 2 < M: (M − 2)·i ≤ N·(M − 3) + N − 1, of (M − 3)·(N − 1 − i) ≥ 0.
  Term i = index("N"), one = terms.number(1), two = terms.number(2);
  Term n = terms.symbol("N"), m = terms.symbol("M");
  Term scaled = terms.quotient(terms.product(terms.difference(m, two), i), terms.integer("max", n, one));
  Proof proof = below(terms.sum(scaled, two), "M", read("M >= 3"));
  EXPECT_TRUE(proof.holds);
  EXPECT_TRUE(proof.lemmas.count("Lemma 15"));
  EXPECT_FALSE(below(terms.sum(scaled, two), "M", read("M >= 2")).holds);
  EXPECT_FALSE(below(terms.sum(scaled, terms.number(3)), "M", read("M >= 3")).holds);
}

TEST_F(ProverTest, QuotientsInProductsAreLemma15) {
  // ⌊N·⌊i/M⌋ / M⌋ < N of i < M·M, for N ≥ 1.
  Term i = index("M*M"), n = terms.symbol("N"), m = terms.symbol("M");
  Term scaled = terms.quotient(terms.product(n, terms.quotient(i, m)), m);
  EXPECT_TRUE(below(scaled, "N", read("N >= 1")).holds);
  EXPECT_FALSE(below(scaled, "N - 1", read("N >= 1")).holds);
  EXPECT_FALSE(below(scaled, "N").holds);
}

TEST_F(ProverTest, RemaindersOfQuotients) {
  // ⌊⌊i/N⌋/K⌋ mod M, whose quotient by M is one of i by N·K·M.
  Term i = index("N*K*M*L"), n = terms.symbol("N"), k = terms.symbol("K"), m = terms.symbol("M");
  Term digit = terms.remainder(terms.quotient(terms.quotient(i, n), k), m);
  EXPECT_TRUE(prover.prove(digit, terms.truth(true)).holds);
  EXPECT_TRUE(below(digit, "M").holds);
  EXPECT_FALSE(below(digit, "M - 1").holds);
  EXPECT_FALSE(prover.prove(terms.difference(digit, terms.number(1)), terms.truth(true)).holds);
}

TEST_F(ProverTest, PartsAsIndicesAreLemma16) {
  // ⌊N·⌊⌊m/M⌋/M⌋ / max(K, 1)⌋ < N for m < M·M·K: the digit of m is below K.
  Term m = index("K*M*M"), n = terms.symbol("N"), one = terms.number(1);
  Term digit = terms.quotient(terms.quotient(m, terms.symbol("M")), terms.symbol("M"));
  Term scaled = terms.quotient(terms.product(n, digit), terms.integer("max", terms.symbol("K"), one));
  Proof proof = below(scaled, "N", read("N >= 1"));
  EXPECT_TRUE(proof.holds);
  EXPECT_TRUE(proof.lemmas.count("Lemma 16"));
  EXPECT_FALSE(below(scaled, "N - 1", read("N >= 1")).holds);
  EXPECT_FALSE(below(scaled, "N").holds);
  // N·⌊i / max(N, 1)⌋ + 2 < N for i < N: the quotient is 0.
  Term none = terms.product(n, terms.quotient(index("N"), terms.integer("max", n, one)));
  EXPECT_TRUE(below(terms.sum(none, terms.number(2)), "N", read("N >= 3")).holds);
  EXPECT_FALSE(below(terms.sum(none, terms.number(2)), "N", read("N >= 2")).holds);
}

TEST_F(ProverTest, PartsScaledTwice) {
  Term n = terms.symbol("N"), m = terms.symbol("M"), k = terms.symbol("K"), one = terms.number(1);
  // ⌊(M·⌊(N − 2)·i / max(K, 1)⌋) / max(N, 1)⌋ < M, for i < N ≤ K and N ≥ 3.
  Term i = index("N"), less = terms.difference(n, terms.number(2));
  Term inner = terms.quotient(terms.product(less, i), terms.integer("max", k, one));
  Term whole = terms.quotient(terms.product(m, inner), terms.integer("max", n, one));
  Term sizes = terms.both(read("N >= 3"), terms.both(read("M >= 1"), read("K >= N")));
  EXPECT_TRUE(below(whole, "M", sizes).holds);
  EXPECT_FALSE(below(whole, "M - 1", sizes).holds);
  EXPECT_FALSE(below(whole, "M", terms.both(read("N >= 3"), read("K >= N"))).holds);
}

TEST_F(ProverTest, DividedIndicesAreDigits) {
  // ⌊(k + K·⌊m/M⌋)/N⌋ < K of k < K and m < N·M.
  Term inRow = index("K"), m = index("M*N"), n = terms.symbol("N"), k = terms.symbol("K");
  Term row = terms.quotient(m, terms.symbol("M"));
  Term place = terms.quotient(terms.sum(inRow, terms.product(k, row)), n);
  Proof proof = below(place, "K");
  EXPECT_TRUE(proof.holds);
  EXPECT_TRUE(proof.lemmas.count("Lemma 16"));
  EXPECT_FALSE(below(place, "K - 1").holds);
  EXPECT_FALSE(below(terms.sum(place, terms.number(1)), "K").holds);
}

TEST_F(ProverTest, RemaindersByCasesAreLemma18) {
  prover.splitSymbols(terms.extent("N/2"));
  prover.addFact(read("N >= 2"));
  // i + M·(N − 2)·(j + (N − N/2)·(k + N·l)), the place in an array of [N, N, N − N/2, M·(N − 2)].
  Term n = terms.symbol("N"), half = terms.extent("N - N/2");
  Term i = index("M*N - 2*M"), j = index("N - N/2"), k = index("N"), l = index("N");
  auto digit = [&](int64_t less) {
    Term row = terms.product(terms.symbol("M"), terms.difference(n, terms.number(less)));
    Term e = terms.sum(k, terms.product(n, l));
    e = terms.sum(i, terms.product(row, terms.sum(j, terms.product(half, e))));
    return terms.quotient(terms.quotient(terms.quotient(terms.quotient(e, n), n), half), terms.symbol("M"));
  };
  Proof proof = below(digit(2), "N - 2");
  EXPECT_TRUE(proof.holds);
  EXPECT_TRUE(proof.lemmas.count("Lemma 18"));
  EXPECT_FALSE(below(digit(2), "N - 3").holds);
  EXPECT_FALSE(below(digit(1), "N - 2").holds);
}

TEST_F(ProverTest, MinimaInsideOfProducts) {
  // N·i + min(N − 1, i) < N·(N + 1) for i < M ≤ N + 1: ⌊…/(N + 1)⌋ < N.
  Term i = index("M"), n = terms.symbol("N"), one = terms.number(1);
  Term least = terms.integer("min", terms.difference(n, one), i);
  Term some = terms.sum(terms.product(n, i), least);
  Term sizes = terms.both(read("N >= 1"), read("N + 1 >= M"));
  EXPECT_TRUE(below(terms.quotient(some, terms.sum(n, one)), "N", sizes).holds);
  EXPECT_FALSE(below(terms.quotient(some, terms.sum(n, one)), "N", read("N >= 1")).holds);
  EXPECT_FALSE(below(terms.quotient(some, n), "N", sizes).holds);
}

/// max over j < N of (x_j = max x ? j : −1), and its like.
TEST_F(ProverTest, ExtremesOfIntegersAreLemma17) {
  Type i32 = IntegerType::get(&context, 32);
  Term j = terms.freshIndex("j"), k = terms.freshIndex("k"), n = terms.symbol("N");
  Term yes = terms.truth(true), element = terms.load(0, {j}, i32);
  Term most = terms.reduce("max", terms.indexType(), k, n, terms.load(0, {k}, i32), yes);
  Term isMost = terms.equal(element, most);
  auto largest = [&](Term otherwise) {
    return terms.reduce("max", terms.indexType(), j, n, terms.select(isMost, j, otherwise), yes);
  };
  Term last = largest(terms.number(-1)), some = read("N >= 1");
  Proof proof = prover.prove(last, some);
  EXPECT_TRUE(proof.holds);
  EXPECT_TRUE(proof.lemmas.count("Lemma 17"));
  EXPECT_TRUE(below(last, "N").holds);
  EXPECT_FALSE(prover.prove(last, yes).holds);
  EXPECT_FALSE(below(last, "N - 1", some).holds);
  EXPECT_FALSE(below(largest(n), "N", some).holds);
  // The first one, of those where the condition holds.
  Term first = terms.reduce("min", terms.indexType(), j, n, j, isMost);
  EXPECT_TRUE(prover.prove(first, yes).holds);
  EXPECT_TRUE(below(first, "N", some).holds);
  EXPECT_FALSE(below(first, "N").holds);
  // Nothing says that an element is 3.
  Term three = terms.reduce("min", terms.indexType(), j, n, j, terms.equal(element, terms.number(3)));
  EXPECT_FALSE(below(three, "N", some).holds);
}

TEST_F(ProverTest, ClampedReductionsNeedNoLemma) {
  // max(min(max_j min_k x_j,k, N/2 − 1), 0), whatever the extremes are.
  terms.inputNames.push_back("u");
  Type i32 = IntegerType::get(&context, 32);
  Term j = terms.freshIndex("j"), k = terms.freshIndex("k"), yes = terms.truth(true);
  prover.splitSymbols(terms.extent("N/2"));
  Term least = terms.reduce("min", terms.indexType(), k, terms.number(3), terms.load(1, {j, k}, i32), yes);
  Term most = terms.reduce("max", terms.indexType(), j, terms.extent("N/2"), least, yes);
  Term clamped = terms.integer("min", most, terms.difference(terms.extent("N/2"), terms.number(1)));
  clamped = terms.integer("max", clamped, terms.number(0));
  Term some = read("N/2 >= 1");
  Proof proof = below(clamped, "N/2", some);
  EXPECT_TRUE(proof.holds);
  EXPECT_FALSE(proof.lemmas.count("Lemma 17"));
  EXPECT_TRUE(prover.prove(clamped, some).holds);
  EXPECT_FALSE(below(clamped, "N/2 - 1", some).holds);
  EXPECT_FALSE(below(clamped, "N/2").holds);
}

TEST_F(ProverTest, CountsAreLemma17) {
  Term j = terms.freshIndex("j"), i = index("N"), n = terms.symbol("N");
  Type i32 = IntegerType::get(&context, 32);
  Term less = terms.below(terms.load(0, {j}, i32), terms.load(0, {i}, i32));
  Term count = terms.reduce("add", terms.indexType(), j, n, terms.select(less, terms.number(1), terms.number(0)),
                            terms.truth(true));
  EXPECT_TRUE(prover.prove(count, terms.truth(true)).holds);
  EXPECT_TRUE(below(count, "N + 1").holds);
  EXPECT_FALSE(below(count, "N - 1").holds);
}

TEST_F(ProverTest, QuotientByANumber) {
  Term j = index("16*L");
  EXPECT_TRUE(below(terms.quotient(j, terms.number(16)), "L").holds);
  EXPECT_FALSE(below(terms.quotient(j, terms.number(15)), "L").holds);
  EXPECT_TRUE(below(terms.remainder(j, terms.number(16)), "16").holds);
}

TEST_F(ProverTest, QuotientBySymbolIsLemma2) {
  prover.addFact(read("H%G == 0"));
  Term h = index("H");
  Proof proof = below(terms.quotient(h, terms.extent("H/G")), "G");
  EXPECT_TRUE(proof.holds);
  EXPECT_TRUE(proof.lemmas.count("Lemma 2"));
  EXPECT_FALSE(below(terms.quotient(h, terms.extent("H/G")), "G - 1").holds);
}

TEST_F(ProverTest, WithoutTheConstraintNothingIsShown) {
  Term h = index("H");
  EXPECT_FALSE(below(terms.quotient(h, terms.extent("H/G")), "G").holds);
}

/// ⌊N·i / max(M, 1)⌋ < N needs N ≥ 1: for N = 0 it is 0 < 0.
TEST_F(ProverTest, EmptyAxes) {
  Term i = index("M"), n = terms.symbol("N");
  Term scaled = terms.quotient(terms.product(n, i), terms.integer("max", terms.symbol("M"), terms.number(1)));
  EXPECT_FALSE(below(scaled, "N").holds);
  Proof proof = below(scaled, "N", read("N >= 1"));
  EXPECT_TRUE(proof.holds);
  EXPECT_TRUE(proof.lemmas.count("Lemma 12"));
}

TEST_F(ProverTest, NestedQuotientsAreLemma14) {
  Term k = index("N*M*L");
  Term q = terms.quotient(terms.quotient(k, terms.symbol("N")), terms.symbol("M"));
  Proof proof = below(q, "L");
  EXPECT_TRUE(proof.holds);
  EXPECT_TRUE(proof.lemmas.count("Lemma 14"));
}

TEST_F(ProverTest, CasesOfMinimaAndSelections) {
  Term i = index("N"), j = index("M");
  Term d = terms.difference(i, j);
  Term clipped = terms.integer("max", terms.number(-4), terms.integer("min", terms.number(4), d));
  EXPECT_TRUE(below(terms.sum(clipped, terms.number(4)), "9").holds);
  EXPECT_FALSE(below(terms.sum(clipped, terms.number(4)), "8").holds);
  Term even = terms.isZero(terms.remainder(i, terms.number(2)));
  Term partner = terms.select(even, terms.sum(i, terms.number(1)), terms.difference(i, terms.number(1)));
  EXPECT_TRUE(below(partner, "N", read("N%2 == 0")).holds);
  EXPECT_FALSE(below(partner, "N").holds);
}

TEST_F(ProverTest, AssumptionsAreNamedWhereNeeded) {
  Term i = index("N"), element = terms.load(0, {i}, IntegerType::get(&context, 32));
  EXPECT_FALSE(below(element, "P").holds);
  prover.addAssumption({read("[k] t[k] >= 0 and t[k] < P"), "t in 0..P", true});
  prover.addAssumption({read("P >= 5"), "assume P >= 5", false});
  Proof proof = below(element, "P");
  EXPECT_TRUE(proof.holds);
  EXPECT_THAT(proof.assumptions, ::testing::ElementsAre("t in 0..P"));
  EXPECT_TRUE(below(i, "N").assumptions.empty());
}

TEST_F(ProverTest, RangesOfReals) {
  Type f32 = Float32Type::get(&context);
  Term i = terms.integer("max", index("N"), terms.number(8));
  Term x = terms.scalar("log2", f32, {terms.scalar("divf", f32, {terms.cast(i, f32), terms.real(8, f32)})});
  RealRange range = rangeOfReal(x);
  EXPECT_LT(range.low, 0);
  EXPECT_GT(range.low, -0.1);
  Term whole = terms.cast(terms.scalar("mulf", f32, {x, terms.real(2, f32)}), IntegerType::get(&context, 32));
  EXPECT_TRUE(prover.prove(whole, terms.truth(true)).holds);
  Term moved = terms.cast(terms.scalar("subf", f32, {x, terms.real(2, f32)}), IntegerType::get(&context, 32));
  EXPECT_FALSE(prover.prove(moved, terms.truth(true)).holds);
}

//===----------------------------------------------------------------------===//
// What is shown holds
//===----------------------------------------------------------------------===//

using Values = DenseMap<Term, int64_t>;

/// The value of an integer or a truth value; nothing where it divides by what is not positive.
std::optional<int64_t> evaluate(Term term, const Values &values) {
  if (auto it = values.find(term); it != values.end())
    return it->second;
  SmallVector<int64_t> x;
  for (Term operand : term->operands) {
    auto value = evaluate(operand, values);
    if (!value)
      return std::nullopt;
    x.push_back(*value);
  }
  int64_t result = term->is(TermKind::Product) || term->is(TermKind::And) ? 1 : term->value;
  switch (term->kind) {
  case TermKind::Number:
    return term->value;
  case TermKind::Truth:
    return term->value;
  case TermKind::Sum:
    for (auto [value, coefficient] : llvm::zip_equal(x, term->coefficients))
      result += coefficient * value;
    return result;
  case TermKind::Product:
  case TermKind::And:
    for (int64_t value : x)
      result *= value;
    return result;
  case TermKind::Quotient:
    if (x[1] < 1)
      return std::nullopt;
    return llvm::divideFloorSigned(x[0], x[1]);
  case TermKind::NotNegative:
    return x[0] >= 0;
  case TermKind::Zero:
    return x[0] == 0;
  case TermKind::Scalar:
    return term->name == "min" ? std::min(x[0], x[1]) : std::max(x[0], x[1]);
  default:
    ADD_FAILURE() << "no value of " << int(term->kind);
    return std::nullopt;
  }
}

/// Bounds of indices that are made like those of programs: scaled, divided, clamped, put together
/// from digits. What the prover shows of them is tried on all small sizes and indices.
TEST_F(ProverTest, WhatIsShownHolds) {
  std::mt19937 engine(7);
  auto pick = [&](int n) { return std::uniform_int_distribution<int>(0, n - 1)(engine); };
  SmallVector<Term> symbols = {terms.symbol("N"), terms.symbol("M"), terms.symbol("K")};
  Term one = terms.number(1);
  auto size = [&]() -> Term {
    Term a = symbols[pick(3)], b = symbols[pick(3)];
    switch (pick(6)) {
    case 0:
      return terms.number(1 + pick(4));
    case 1:
      return terms.sum(a, one);
    case 2:
      return terms.product(a, b);
    case 3:
      return terms.scaled(a, 2);
    case 4:
      return terms.quotient(a, terms.number(2));
    default:
      return a;
    }
  };
  unsigned shown = 0, byLemma = 0;
  for (unsigned round = 0; round < 80; ++round) {
    Term divisor = symbols[pick(3)], count = size();
    Term extents[2] = {terms.product(count, divisor), size()};
    Term indices[2] = {variables.get(depth++, extents[0], "i"), variables.get(depth++, extents[1], "j")};
    // A term, and what it would be below of.
    auto [term, bound] = std::make_pair(indices[0], extents[0]);
    // Rows of a reshaped array, of another length.
    if (pick(2)) {
      Term row = terms.product(extents[1], terms.quotient(term, divisor));
      term = terms.quotient(terms.sum(indices[1], row), count);
      bound = extents[1];
    }
    for (int steps = 1 + pick(3); steps-- > 0;) {
      Term to = size();
      switch (pick(6)) {
      case 0:
        term = terms.quotient(terms.product(term, to), terms.integer("max", bound, one));
        bound = to;
        break;
      case 1:
        term = terms.quotient(term, terms.integer("max", to, one));
        bound = pick(2) ? bound : terms.quotient(bound, terms.integer("max", to, one));
        break;
      case 2:
        term = terms.integer("min", term, terms.difference(to, one));
        bound = pick(2) ? to : bound;
        break;
      case 3:
        term = terms.sum(terms.product(term, extents[1]), indices[1]);
        bound = terms.product(bound, extents[1]);
        break;
      case 4:
        term = terms.remainder(term, to);
        bound = to;
        break;
      default:
        term = terms.quotient(term, divisor);
        bound = terms.quotient(bound, divisor);
      }
    }
    term = terms.sum(term, terms.number(pick(8) == 0));
    Term goal = pick(3) == 0 ? term : terms.difference(terms.difference(bound, one), term);
    Term condition = terms.truth(true);
    for (Term symbol : symbols)
      if (pick(2))
        condition = terms.both(condition, terms.atMost(terms.number(1 + pick(2)), symbol));
    if (pick(3) == 0)
      condition = terms.both(condition, terms.atMost(symbols[0], symbols[1]));
    Proof proof = prover.prove(goal, condition);
    shown += proof.holds;
    byLemma += proof.lemmas.count("Lemma 16");
    Values values;
    for (int sizes = 0; proof.holds && sizes < 6 * 6 * 6; ++sizes) {
      values[symbols[0]] = sizes % 6, values[symbols[1]] = sizes / 6 % 6, values[symbols[2]] = sizes / 36;
      if (!*evaluate(condition, values))
        continue;
      auto n = *evaluate(extents[0], values), m = *evaluate(extents[1], values);
      for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < m; ++j) {
          values[indices[0]] = i, values[indices[1]] = j;
          auto value = evaluate(goal, values);
          ASSERT_TRUE(!value || *value >= 0)
              << terms.str(goal) << " where " << terms.str(condition) << ": N = " << sizes % 6
              << ", M = " << sizes / 6 % 6 << ", K = " << sizes / 36 << ", i = " << i << ", j = " << j;
        }
    }
  }
  EXPECT_GT(shown, 40u);
  EXPECT_GT(byLemma, 5u);
}

TEST_F(ProverTest, PredicatesThatCannotBeRead) {
  for (StringRef text : {"N +", "N", "t[1, 2] < 3", "N < M M", "(N < M", "[a, ] N < M"}) {
    auto term = parsePredicate(terms, text, types);
    EXPECT_FALSE(bool(term)) << text.str();
    llvm::consumeError(term.takeError());
  }
}

} // namespace
