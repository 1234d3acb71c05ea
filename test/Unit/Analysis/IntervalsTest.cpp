//===- IntervalsTest.cpp - intervals against enumeration ------------------===//
//
// The pieces of a predicate are compared with the truth table of the predicate
// for every tile: the visit intervals cover all present indices, full intervals
// hold only indices present for every lane.
//
//===----------------------------------------------------------------------===//
#include "lib/Analysis/Intervals.h"
#include "mlir/IR/MLIRContext.h"
#include "gtest/gtest.h"
#include <random>

using namespace mlir;
using namespace moa;

namespace {

int64_t floorDivide(int64_t a, int64_t b) {
  int64_t q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

int64_t evaluate(AffineExpr e, ArrayRef<int64_t> dims, ArrayRef<int64_t> symbols) {
  if (auto c = dyn_cast<AffineConstantExpr>(e))
    return c.getValue();
  if (auto d = dyn_cast<AffineDimExpr>(e))
    return dims[d.getPosition()];
  if (auto s = dyn_cast<AffineSymbolExpr>(e))
    return symbols[s.getPosition()];
  auto binary = cast<AffineBinaryOpExpr>(e);
  int64_t a = evaluate(binary.getLHS(), dims, symbols);
  int64_t b = evaluate(binary.getRHS(), dims, symbols);
  switch (e.getKind()) {
  case AffineExprKind::Add:
    return a + b;
  case AffineExprKind::Mul:
    return a * b;
  case AffineExprKind::FloorDiv:
    return floorDivide(a, b);
  case AffineExprKind::CeilDiv:
    return -floorDivide(-a, b);
  case AffineExprKind::Mod:
    return a - b * floorDivide(a, b);
  default:
    return 0;
  }
}

using Unknowns = std::vector<std::vector<std::vector<bool>>>; // [number][i][j]

bool holds(const PredicateRef &p, int64_t i, int64_t j, ArrayRef<int64_t> symbols, const Unknowns &unknowns) {
  auto operand = [&](unsigned k) { return holds(p->operands[k], i, j, symbols, unknowns); };
  switch (p->kind) {
  case Predicate::Kind::Constant:
    return p->value;
  case Predicate::Kind::NonNegative:
    return evaluate(p->expression, {i, j}, symbols) >= 0;
  case Predicate::Kind::Zero:
    return evaluate(p->expression, {i, j}, symbols) == 0;
  case Predicate::Kind::Unknown:
    return unknowns[p->unknown][i][j];
  case Predicate::Kind::And:
    return operand(0) && operand(1);
  case Predicate::Kind::Or:
    return operand(0) || operand(1);
  case Predicate::Kind::Not:
    return !operand(0);
  }
  return false;
}

std::pair<int64_t, int64_t> range(ArrayRef<AffineExpr> lower, ArrayRef<AffineExpr> upper, int64_t d0, int64_t d1,
                                  ArrayRef<int64_t> symbols) {
  int64_t low = INT64_MIN, high = INT64_MAX;
  for (AffineExpr e : lower)
    low = std::max(low, evaluate(e, {d0, d1}, symbols));
  for (AffineExpr e : upper)
    high = std::min(high, evaluate(e, {d0, d1}, symbols));
  return {low, high};
}

struct Tally {
  int64_t present = 0, visited = 0, all = 0, full = 0;
};

class IntervalsTest : public ::testing::Test {
protected:
  MLIRContext context;
  AffineExpr i, j, d0, d1;
  std::vector<AffineExpr> s;

  IntervalsTest() {
    bindDims(&context, i, j);
    bindDims(&context, d0, d1);
    for (unsigned k = 0; k < 6; ++k)
      s.push_back(getAffineSymbolExpr(k, &context));
  }

  PredicateRef le(AffineExpr a, AffineExpr b) { return Predicate::nonNegative(b - a); }
  PredicateRef lt(AffineExpr a, AffineExpr b) { return Predicate::nonNegative(b - a - 1); }
  PredicateRef eq(AffineExpr a, AffineExpr b) { return Predicate::zero(a - b); }
  AffineExpr lit(int64_t c) { return getAffineConstantExpr(c, &context); }

  /// Symbol 0 is the lane extent, symbol 1 the fold extent.
  IntervalProblem problem(PredicateRef p, unsigned numSymbols = 6) {
    IntervalProblem result;
    result.context = &context;
    result.numSymbols = numSymbols;
    result.predicate = std::move(p);
    result.laneExtent = s[0];
    result.foldExtent = s[1];
    result.facts = {s[0], s[1]};
    return result;
  }

  /// Compares one tile with enumeration.
  void checkTile(const IntervalProblem &problem, ArrayRef<Interval> pieces, int64_t first, int64_t last,
                 ArrayRef<int64_t> symbols, const Unknowns &unknowns, Tally &tally) {
    int64_t extent = symbols[1];
    std::vector<bool> visit(extent), full(extent);
    auto mark = [&](std::vector<bool> &set, std::pair<int64_t, int64_t> range) {
      for (int64_t k = range.first; k < range.second; ++k) {
        ASSERT_GE(k, 0);
        ASSERT_LT(k, extent);
        set[k] = true;
      }
    };
    for (const Interval &piece : pieces) {
      mark(visit, range(piece.visitLower, piece.visitUpper, first, last, symbols));
      if (piece.full)
        mark(full, range(piece.fullLower, piece.fullUpper, first, last, symbols));
    }
    for (int64_t k = 0; k < extent; ++k) {
      bool any = false, every = true;
      for (int64_t row = first; row <= last; ++row) {
        bool present = holds(problem.predicate, row, k, symbols, unknowns);
        any |= present;
        every &= present;
      }
      EXPECT_TRUE(!any || visit[k]) << "index " << k << " of tile " << first << ".." << last;
      EXPECT_TRUE(!full[k] || every) << "index " << k << " of tile " << first << ".." << last;
      tally.present += any;
      tally.visited += visit[k];
      tally.all += every;
      tally.full += full[k];
    }
  }

  /// Every tile of a small extent, for the symbol values given.
  Tally check(const IntervalProblem &problem, ArrayRef<Interval> pieces, ArrayRef<int64_t> symbols,
              const Unknowns &unknowns = {}) {
    Tally tally;
    for (int64_t tile : {1, 3, 4, 8})
      for (int64_t first = 0; first < symbols[0]; first += tile)
        checkTile(problem, pieces, first, std::min(first + tile, symbols[0]) - 1, symbols, unknowns, tally);
    return tally;
  }

  std::vector<Interval> pieces(const IntervalProblem &problem) {
    auto result = deriveIntervals(problem);
    if (!result) {
      ADD_FAILURE() << llvm::toString(result.takeError());
      return {};
    }
    return std::move(*result);
  }

  /// Derives, checks a few sizes, and expects exact intervals.
  void expectExact(PredicateRef p, size_t count) {
    IntervalProblem problem = this->problem(std::move(p));
    std::vector<Interval> found = pieces(problem);
    EXPECT_EQ(found.size(), count);
    for (int64_t n : {1, 5, 9, 12})
      for (int64_t m : {0, 1, 7, 13})
        for (int64_t w : {-2, 0, 1, 3, 6, 40}) {
          Tally tally = check(problem, found, {n, m, w, 2, 5, 1});
          EXPECT_EQ(tally.present, tally.visited) << n << " " << m << " " << w;
          EXPECT_EQ(tally.all, tally.full) << n << " " << m << " " << w;
        }
  }
};

TEST_F(IntervalsTest, Causal) { expectExact(le(j, i), 1); }

TEST_F(IntervalsTest, CausalBoundsHaveTheShortestForm) {
  std::vector<Interval> found = pieces(problem(le(j, i)));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].visitLower, (SmallVector<AffineExpr>{lit(0)}));
  EXPECT_EQ(found[0].visitUpper, (SmallVector<AffineExpr>{s[1], d1 + 1}));
  EXPECT_EQ(found[0].fullUpper, (SmallVector<AffineExpr>{s[1], d0 + 1}));
}

TEST_F(IntervalsTest, BottomRightCausal) { expectExact(le(j, i + s[1] - s[0]), 1); }

TEST_F(IntervalsTest, InverseCausal) { expectExact(lt(i, j), 1); }

TEST_F(IntervalsTest, Window) { expectExact(Predicate::conjunction(le(j, i), lt(i - j, s[2])), 1); }

TEST_F(IntervalsTest, SymmetricWindow) { expectExact(Predicate::conjunction(le(j - i, s[2]), le(i - j, s[2])), 1); }

TEST_F(IntervalsTest, BlockDiagonal) { expectExact(eq(i.floorDiv(4), j.floorDiv(4)), 1); }

TEST_F(IntervalsTest, BlockCausal) { expectExact(le(j.floorDiv(4), i.floorDiv(4)), 1); }

TEST_F(IntervalsTest, Prefix) {
  // The prefix is seen by all, the rest causally.
  IntervalProblem p = problem(Predicate::disjunction(lt(j, s[2]), le(j, i)));
  std::vector<Interval> found = pieces(p);
  EXPECT_EQ(found.size(), 2u);
  Tally tally = check(p, found, {12, 13, 5, 0, 0, 0});
  EXPECT_EQ(tally.present, tally.visited);
}

TEST_F(IntervalsTest, GlobalOrWindow) {
  PredicateRef window = Predicate::conjunction(le(j, i), lt(i - j, s[2]));
  IntervalProblem p = problem(Predicate::disjunction(window, Predicate::conjunction(lt(j, s[3]), le(j, i))));
  std::vector<Interval> found = pieces(p);
  EXPECT_EQ(found.size(), 2u);
  for (int64_t w : {0, 2, 5})
    for (int64_t g : {0, 1, 4, 20}) {
      Tally tally = check(p, found, {12, 13, w, g, 0, 0});
      EXPECT_EQ(tally.present, tally.visited);
    }
}

TEST_F(IntervalsTest, InequalityIsTwoPiecesInOrder) {
  IntervalProblem p = problem(Predicate::negation(eq(j, i)));
  std::vector<Interval> found = pieces(p);
  ASSERT_EQ(found.size(), 2u);
  Tally tally = check(p, found, {9, 11, 0, 0, 0, 0});
  EXPECT_EQ(tally.present, tally.visited);
  IntervalProblem q = problem(Predicate::negation(eq(j, s[2])));
  found = pieces(q);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].visitUpper.back(), s[2]);
  EXPECT_EQ(found[1].visitLower.back(), s[2] + 1);
}

TEST_F(IntervalsTest, ConditionsEmptyAPiece) {
  // A flag in {0, 1} chooses between causal and everything.
  PredicateRef flag = Predicate::nonNegative(s[2] - 1);
  expectExact(Predicate::disjunction(Predicate::conjunction(flag, le(j, i)),
                                     Predicate::conjunction(Predicate::negation(flag), lt(i, j))),
              2);
  expectExact(Predicate::conjunction(le(s[2], i), lt(j, s[4])), 1);
}

TEST_F(IntervalsTest, UnknownFactsNeverMakeAPieceFull) {
  PredicateRef mask = Predicate::makeUnknown(0);
  std::vector<Interval> found = pieces(problem(Predicate::conjunction(le(j, i), mask)));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_FALSE(found[0].full);
  EXPECT_EQ(found[0].visitUpper, (SmallVector<AffineExpr>{s[1], d1 + 1}));
  // Seen through the mask or causally: everything is visited, the causal part is full.
  found = pieces(problem(Predicate::disjunction(le(j, i), mask)));
  ASSERT_EQ(found.size(), 2u);
  auto none = deriveIntervals(problem(mask));
  EXPECT_FALSE(bool(none));
  llvm::consumeError(none.takeError());
}

TEST_F(IntervalsTest, ContradictionsLeaveNothing) {
  EXPECT_TRUE(pieces(problem(Predicate::conjunction(lt(j, i), lt(i, j)))).empty());
  EXPECT_TRUE(pieces(problem(Predicate::constant(false))).empty());
  EXPECT_TRUE(pieces(problem(lt(j, lit(0)))).empty());
}

TEST_F(IntervalsTest, SubsumedPiecesAreDropped) {
  EXPECT_EQ(pieces(problem(Predicate::disjunction(le(j, i), le(j + 3, i)))).size(), 1u);
  EXPECT_EQ(pieces(problem(Predicate::disjunction(le(j + 3, i), le(j, i)))).size(), 1u);
}

TEST_F(IntervalsTest, TooManyPiecesAreRefused) {
  PredicateRef p = Predicate::constant(false);
  for (int64_t k = 0; k < 20; ++k)
    p = Predicate::disjunction(p, eq(j, i * 2 + s[2] * k));
  auto result = deriveIntervals(problem(p));
  ASSERT_FALSE(bool(result));
  EXPECT_NE(llvm::toString(result.takeError()).find("pieces"), std::string::npos);
}

//===----------------------------------------------------------------------===//
// Random predicates, fixed seed
//===----------------------------------------------------------------------===//

class Generator {
public:
  Generator(MLIRContext &context, unsigned seed) : context(context), random(seed) {}

  int64_t pick(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random); }

  AffineExpr linear(int64_t magnitude) {
    AffineExpr i = getAffineDimExpr(0, &context), j = getAffineDimExpr(1, &context);
    AffineExpr e = i * pick(-magnitude, magnitude) + j * pick(-magnitude, magnitude);
    if (pick(0, 2) == 0)
      e = e + getAffineSymbolExpr(pick(0, 3), &context) * pick(-magnitude, magnitude);
    return e + pick(-7, 7);
  }

  AffineExpr expression(bool divisions) {
    AffineExpr e = linear(2);
    if (!divisions)
      return e;
    for (int64_t k = pick(0, 2); k > 0; --k) {
      AffineExpr inner = linear(2);
      int64_t divisor = pick(2, 5);
      AffineExpr part = pick(0, 2) ? inner.floorDiv(divisor) : (pick(0, 1) ? inner % divisor : inner.ceilDiv(divisor));
      e = (pick(0, 1) ? e : linear(1)) + part * pick(-3, 3);
    }
    return e;
  }

  PredicateRef atom(bool divisions, bool unknowns) {
    if (unknowns && pick(0, 5) == 0)
      return Predicate::makeUnknown(pick(0, 1));
    AffineExpr e = expression(divisions);
    return pick(0, 4) ? Predicate::nonNegative(e) : Predicate::zero(e);
  }

  PredicateRef predicate(unsigned depth, bool divisions, bool unknowns) {
    int64_t choice = depth == 0 ? 0 : pick(0, 6);
    if (choice <= 1)
      return atom(divisions, unknowns);
    if (choice == 2)
      return Predicate::negation(predicate(depth - 1, divisions, unknowns));
    PredicateRef a = predicate(depth - 1, divisions, unknowns);
    PredicateRef b = predicate(depth - 1, divisions, unknowns);
    if (choice == 6)
      return Predicate::exclusive(a, b);
    return choice % 2 ? Predicate::conjunction(a, b) : Predicate::disjunction(a, b);
  }

  /// i, j and constants with coefficients −1, 0, 1 in one conjunct.
  PredicateRef unitConjunct() {
    PredicateRef result = Predicate::constant(true);
    for (int64_t k = pick(1, 3); k > 0; --k) {
      AffineExpr i = getAffineDimExpr(0, &context), j = getAffineDimExpr(1, &context);
      // Differences, so that the system is totally unimodular.
      AffineExpr e = (i - j) * (pick(0, 1) ? 1 : -1);
      if (int64_t kind = pick(0, 3); kind == 0)
        e = i * (pick(0, 1) ? 1 : -1);
      else if (kind == 1)
        e = j * (pick(0, 1) ? 1 : -1);
      if (pick(0, 1))
        e = e + getAffineSymbolExpr(pick(2, 3), &context);
      result = Predicate::conjunction(result, Predicate::nonNegative(e + pick(-4, 6)));
    }
    return result;
  }

  Unknowns unknowns(int64_t n, int64_t m) {
    Unknowns result(2, std::vector<std::vector<bool>>(n, std::vector<bool>(m)));
    for (auto &table : result)
      for (auto &row : table)
        for (int64_t k = 0; k < m; ++k)
          row[k] = pick(0, 1);
    return result;
  }

private:
  MLIRContext &context;
  std::mt19937 random;
};

TEST_F(IntervalsTest, RandomPredicatesAreSound) {
  Generator generator(context, 20240601);
  unsigned derived = 0;
  for (unsigned round = 0; round < 600 && !HasFailure(); ++round) {
    IntervalProblem p = problem(generator.predicate(round % 4, round % 2, round % 3 == 0), 4);
    auto found = deriveIntervals(p);
    if (!found) {
      llvm::consumeError(found.takeError());
      continue;
    }
    ++derived;
    for (int64_t n : {1, 6, 11})
      for (int64_t m : {0, 5, 14})
        check(p, *found, {n, m, generator.pick(-9, 15), generator.pick(-9, 15)}, generator.unknowns(n, m));
  }
  EXPECT_GT(derived, 400u);
}

TEST_F(IntervalsTest, RandomUnitConjunctsAreExact) {
  Generator generator(context, 7);
  for (unsigned round = 0; round < 300 && !HasFailure(); ++round) {
    IntervalProblem p = problem(generator.unitConjunct(), 4);
    std::vector<Interval> found = pieces(p);
    EXPECT_LE(found.size(), 1u);
    for (int64_t n : {1, 7, 12})
      for (int64_t m : {0, 6, 13}) {
        Tally tally = check(p, found, {n, m, generator.pick(-5, 12), generator.pick(-5, 12)});
        EXPECT_EQ(tally.present, tally.visited) << "round " << round;
        EXPECT_EQ(tally.all, tally.full) << "round " << round;
      }
  }
}

} // namespace
