//===- TermTest.cpp - terms replaced inside of reductions -----------------===//
#include "lib/Validation/Term.h"
#include "dialects/MoA/IR/MoA.h"
#include "mlir/IR/MLIRContext.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace moa;
using namespace moa::validation;

namespace {

class TermTest : public ::testing::Test {
protected:
  TermTest() : terms(&context) {
    context.loadDialect<MoADialect>();
    f32 = Float32Type::get(&context);
    n = terms.symbol("N");
    x = terms.index(0), y = terms.index(1), j = terms.index(100), k = terms.index(101);
  }
  Term sumOver(Term index, Term body) { return terms.reduce("add", body->type, index, n, body, terms.truth(true)); }
  Term read(std::initializer_list<Term> index) {
    return terms.load(0, ArrayRef<Term>(index.begin(), index.end()), f32);
  }

  MLIRContext context;
  TermContext terms;
  Type f32;
  Term n, x, y, j, k;
};

TEST_F(TermTest, IndicesOfNestedReductionsStayApart) {
  // Σj A[j, x] · Σk A[j, k] with x := y
  auto make = [&](Term row) {
    return sumOver(j, terms.scalar("mulf", f32, {read({j, row}), sumOver(k, read({j, k}))}));
  };
  EXPECT_EQ(terms.substitute(make(x), {{x, y}}), make(y));
  EXPECT_NE(make(y), sumOver(j, terms.scalar("mulf", f32, {read({j, y}), sumOver(k, read({k, k}))})));
}

TEST_F(TermTest, BitsAreInOneOrder) {
  auto bits = [&](const char *name, Term a, Term b) { return terms.integer(name, a, b); };
  for (const char *name : {"and", "or"}) {
    EXPECT_EQ(bits(name, bits(name, x, y), y), bits(name, y, x));
    EXPECT_EQ(bits(name, bits(name, x, j), bits(name, y, x)), bits(name, bits(name, j, y), x));
    EXPECT_NE(bits(name, x, y), bits(name, x, j));
  }
  EXPECT_EQ(bits("xor", bits("xor", x, y), y), x);
  EXPECT_EQ(bits("xor", bits("xor", x, terms.number(5)), terms.number(5)), x);
  EXPECT_EQ(bits("xor", x, x), terms.number(0));
  EXPECT_EQ(bits("and", bits("and", x, terms.number(6)), terms.number(3)), bits("and", terms.number(2), x));
  EXPECT_EQ(bits("and", bits("and", x, terms.number(4)), terms.number(3)), terms.number(0));
  EXPECT_EQ(bits("or", x, terms.number(-1)), terms.number(-1));
  EXPECT_EQ(bits("and", x, terms.number(-1)), x);
}

TEST_F(TermTest, NoReductionCapturesWhatComesIn) {
  // Σj A[j, x + Σk B[j, k]], where x becomes a double sum: both reductions
  // change their places.
  auto make = [&](Term shift) {
    Term inner = sumOver(k, terms.cast(read({j, terms.sum(k, shift)}), terms.indexType()));
    return sumOver(j, read({j, terms.sum(shift, inner)}));
  };
  Term inside = sumOver(k, terms.cast(read({k, y}), terms.indexType()));
  Term twice = sumOver(j, terms.cast(read({j, inside}), terms.indexType()));
  EXPECT_EQ(terms.substitute(make(x), {{x, twice}}), make(twice));
  // And back: what was high is low.
  EXPECT_EQ(terms.substitute(make(twice), {{twice, x}}), make(x));
  EXPECT_NE(make(twice), make(inside));
}

TEST_F(TermTest, NestedReductionsAreVisitedOnce) {
  // tₖ₊₁ = Σj (tₖ[x := j] + tₖ): as many paths as there are subsets of levels.
  auto build = [&](Term row) {
    Term t = read({row, y});
    for (unsigned level = 0; level < 20; ++level) {
      Term free = terms.index(200 + level);
      t = terms.scalar("addf", f32, {t, sumOver(free, terms.scalar("mulf", f32, {read({free, row}), t}))});
    }
    return t;
  };
  Term before = build(x);
  unsigned size = terms.size();
  Term after = terms.substitute(before, {{x, k}});
  EXPECT_LT(terms.size() - size, 20u * 20u * 10u);
  EXPECT_EQ(after, build(k));
}

} // namespace
