//===- MeaningTest.cpp - what specifications compute ----------------------===//
//
// Runs elaborated specifications in the interpreter of the moa level and
// compares with values worked out by hand.
//
//===----------------------------------------------------------------------===//
#include "FrontendTesting.h"
#include "lib/Interpreter/Interpreter.h"
#include <cmath>

using namespace moa;
using namespace moa::testing;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

namespace {

using Values = std::vector<double>;

/// The outputs of a one-kernel specification.
std::vector<Array> run(const std::string &text, std::vector<Array> inputs) {
  Elaborated spec(text);
  EXPECT_TRUE(spec.ok()) << spec.messages;
  if (!spec.ok())
    return {};
  KernelInputs arguments;
  arguments.arrays = std::move(inputs);
  auto outputs = interpret(spec.kernel(), arguments);
  if (!outputs) {
    ADD_FAILURE() << llvm::toString(outputs.takeError());
    return {};
  }
  return *outputs;
}

/// The value of an expression of x : f64[2, 3] = 1 … 6, v : f64[3] = 10 20 30,
/// n : i64[2] = -7 9 and the scalar s = 2.
Values eval(const std::string &type, const std::string &expr, const std::string &more = "") {
  auto outputs = run("kernel k[M, N](x : f64[M, N], v : f64[N], n : i64[M], s : f64) -> y : " + type +
                         " {\ny = " + expr + "\n}\n" + more,
                     {{{2, 3}, {1, 2, 3, 4, 5, 6}}, {{3}, {10, 20, 30}}, {{2}, {-7, 9}}, {{}, {2}}});
  return outputs.empty() ? Values() : outputs[0].data;
}

TEST(Meaning, AnIndexFormTakesItsExtentsFromTheOneBesideIt) {
  auto outputs = run("kernel k[H, N](S : f64[H, N, N], g : f64[H]) -> y : "
                     "f64[H, N] {\n  y = +/ mask([_, i, j] j <= i, [h, i, j] "
                     "S[h, i, j] * pow(g[h], i - j))\n}",
                     {{{1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9}}, {{1}, {2}}});
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_THAT(outputs[0].data, ElementsAre(1, 4 * 2 + 5, 7 * 4 + 8 * 2 + 9));
}

TEST(Meaning, Pointwise) {
  EXPECT_THAT(eval("f64[M, N]", "x * s + 1"), ElementsAre(3, 5, 7, 9, 11, 13));
  EXPECT_THAT(eval("f64[M, N]", "max(x, 3) - min(x, 2)"), ElementsAre(2, 1, 1, 2, 3, 4));
  EXPECT_THAT(eval("f64[M, N]", "select(x > 3 and not (x == 5), x, -x)"), ElementsAre(-1, -2, -3, 4, -5, 6));
  EXPECT_THAT(eval("f64[M, N]", "pow(x, 2)"), ElementsAre(1, 4, 9, 16, 25, 36));
  EXPECT_THAT(eval("f64[N]", "floor(v / 7) + ceil(v / 7)"), ElementsAre(3, 5, 9));
  EXPECT_THAT(eval("f64[N]", "fmod(v - 24, 4.5)"), ElementsAre(-0.5, -4, 1.5));
  EXPECT_THAT(eval("f64[N]", "(v - 24) % 4.5"), ElementsAre(4, 0.5, 1.5));
  EXPECT_THAT(eval("f64[N]", "floor_divide(v - 24, 4.5)"), ElementsAre(-4, -1, 1));
  EXPECT_THAT(eval("f64[M, N]", "round(x / 2)"), ElementsAre(0, 1, 2, 2, 2, 3));
  EXPECT_THAT(eval("f64[M, N]", "trunc((x - 4) / 2)"), ElementsAre(-1, -1, 0, 0, 0, 1));
  EXPECT_THAT(eval("f64[M, N]", "sign(x - 3) / 2"), ElementsAre(-0.5, -0.5, 0, 0.5, 0.5, 0.5));
  EXPECT_THAT(eval("i64[M]", "round(n) + trunc(n) / 2 + sign(n)"), ElementsAre(-7 - 4 - 1, 9 + 4 + 1));
  EXPECT_THAT(eval("f64[N]", "(log1p(v * 1e-20) + expm1(v * 1e-20)) / (v * 1e-20)"), ElementsAre(2, 2, 2));
  EXPECT_THAT(eval("bool[M, N]", "(x > 2 & 7) ^ ~(x < 4) | (x == 3)"), ElementsAre(0, 0, 1, 0, 0, 0));
}

TEST(Meaning, Precedence) {
  EXPECT_THAT(eval("f64", "1 - 2 - 3"), ElementsAre(-4));
  EXPECT_THAT(eval("f64", "1 + 2 * 3.0 - -4"), ElementsAre(11));
  EXPECT_THAT(eval("f64", "8 / 2.0 / 2"), ElementsAre(2));
  EXPECT_THAT(eval("bool", "not 1 > 2 and 3 < 4 or false"), ElementsAre(1));
  EXPECT_THAT(eval("i64", "1 | 6 & 3 ^ 1 << 1"), ElementsAre(1 | ((6 & 3) ^ (1 << 1))));
}

TEST(Meaning, IntegersFloor) {
  EXPECT_THAT(eval("i64[M]", "n / 2"), ElementsAre(-4, 4));
  EXPECT_THAT(eval("i64[M]", "n % 4"), ElementsAre(1, 1));
  EXPECT_THAT(eval("i64[M]", "n % -4"), ElementsAre(-3, -3));
  EXPECT_THAT(eval("i64[M]", "abs(n) << 1"), ElementsAre(14, 18));
  EXPECT_THAT(eval("i64[M]", "n >> 1"), ElementsAre(-4, 4));
  EXPECT_THAT(eval("i64[M]", "~n"), ElementsAre(6, -10));
}

TEST(Meaning, Reductions) {
  EXPECT_THAT(eval("f64[M]", "+/ x"), ElementsAre(6, 15));
  EXPECT_THAT(eval("f64[M]", "*/ x"), ElementsAre(6, 120));
  EXPECT_THAT(eval("f64[M]", "(max/ x) - (min/ x)"), ElementsAre(2, 2));
  EXPECT_THAT(eval("f64[N]", "reduce(+, x, 0)"), ElementsAre(5, 7, 9));
  EXPECT_THAT(eval("f64[N]", "reduce(max, x, -2)"), ElementsAre(4, 5, 6));
  EXPECT_THAT(eval("bool[M]", "or/ (x == 2)"), ElementsAre(1, 0));
  EXPECT_THAT(eval("bool[M]", "and/ (x > 2)"), ElementsAre(0, 1));
}

TEST(Meaning, Products) {
  EXPECT_THAT(eval("f64[M]", "x +.* v"), ElementsAre(140, 320));
  EXPECT_THAT(eval("f64[M, M]", "x +.* transpose(x)"), ElementsAre(14, 32, 32, 77));
  EXPECT_THAT(eval("f64[M]", "x max.+ v"), ElementsAre(33, 36));
  EXPECT_THAT(eval("f64[M]", "x +.*@(1,1) v"), ElementsAre(140, 320));
  EXPECT_THAT(eval("f64[M]", "inner(+, *, x, v)"), ElementsAre(140, 320));
  EXPECT_THAT(eval("f64[M, M]", "inner(+, f, x, transpose(x))", "def f(a : [], b : []) { return abs(a - b) }"),
              ElementsAre(0, 9, 9, 0));
  EXPECT_THAT(eval("f64[M, N]", "outer(-, n, v)"), ElementsAre(-17, -27, -37, -1, -11, -21));
  EXPECT_THAT(eval("bool[N, N]", "outer(<=, v, v)"), ElementsAre(1, 1, 1, 0, 1, 1, 0, 0, 1));
}

TEST(Meaning, Structure) {
  EXPECT_THAT(eval("f64[N, M]", "transpose(x)"), ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_THAT(eval("f64[N, M]", "transpose(x, [1, 0])"), ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_THAT(eval("f64[1, N]", "take(x, 1)"), ElementsAre(1, 2, 3));
  EXPECT_THAT(eval("f64[1, N]", "take(x, -1)"), ElementsAre(4, 5, 6));
  EXPECT_THAT(eval("f64[1, 2]", "take(x, [1, 2])"), ElementsAre(1, 2));
  EXPECT_THAT(eval("f64[M, N - 1]", "drop(x, 1, 1)"), ElementsAre(2, 3, 5, 6));
  EXPECT_THAT(eval("f64[M, N - 1]", "drop(x, -1, -1)"), ElementsAre(1, 2, 4, 5));
  EXPECT_THAT(eval("f64[M, N]", "reverse(x)"), ElementsAre(4, 5, 6, 1, 2, 3));
  EXPECT_THAT(eval("f64[M, N]", "rotate(x, 1, 1)"), ElementsAre(2, 3, 1, 5, 6, 4));
  EXPECT_THAT(eval("f64[N, M]", "reshape(x, [N, M])"), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(eval("f64[M*N]", "rav(x)"), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(eval("i64[N]", "iota(N) * 2"), ElementsAre(0, 2, 4));
}

TEST(Meaning, Indexing) {
  EXPECT_THAT(eval("f64[N]", "x[1]"), ElementsAre(4, 5, 6));
  EXPECT_THAT(eval("f64[M]", "x[_, N - 1]"), ElementsAre(3, 6));
  EXPECT_THAT(eval("f64", "psi([1, 2], x)"), ElementsAre(6));
  EXPECT_THAT(eval("f64[N]", "v[(iota(N) + 1) % 3]"), ElementsAre(20, 30, 10));
  EXPECT_THAT(eval("f64[N, M]", "[j, i] x[i, j]"), ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_THAT(eval("f64[N, M]", "[j < N, _] x[_, j]"), ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_THAT(eval("i64[M, N]", "[i, j] 10 * i + j"), ElementsAre(0, 1, 2, 10, 11, 12));
  EXPECT_THAT(eval("f64[M, N]", "x + [_, j] v[j]"), ElementsAre(11, 22, 33, 14, 25, 36));
  EXPECT_THAT(eval("f64[M, N]", "[i < M] x[i] - x[0]"), ElementsAre(0, 0, 0, 3, 3, 3));
}

TEST(Meaning, Absence) {
  // The second row keeps nothing.
  const char *masked = "mask([i, j] i == 0 and j < 2, x)";
  EXPECT_THAT(eval("f64[M, N]", masked), ElementsAre(1, 2, 0, 0, 0, 0));
  EXPECT_THAT(eval("f64[M]", std::string("+/ ") + masked), ElementsAre(3, 0));
  EXPECT_THAT(eval("f64[M]", std::string("max/ ") + masked), ElementsAre(2, -INFINITY));
  EXPECT_THAT(eval("f64[M]", std::string("logsumexp(") + masked + ")"),
              ElementsAre(::testing::DoubleNear(std::log(std::exp(1) + std::exp(2)), 1e-12), -INFINITY));
  EXPECT_THAT(eval("f64[M, N]", "addmask(x, [i, j] select(j > i, -inf, 1))"), ElementsAre(2, 0, 0, 5, 6, 0));
}

TEST(Meaning, Functions) {
  auto half = [](double e) { return ::testing::DoubleNear(e, 1e-12); };
  double total = std::exp(-2) + std::exp(-1) + 1;
  Values rows = eval("f64[M, N]", "softmax(x)");
  for (unsigned k = 0; k < 6; ++k)
    EXPECT_THAT(rows[k], half(std::exp(k % 3 - 2.0) / total));
  EXPECT_THAT(eval("f64[M]", "mean(x)"), ElementsAre(2, 5));
  EXPECT_THAT(eval("f64[N]", "relu(v - 15)"), ElementsAre(0, 5, 15));
  EXPECT_THAT(eval("f64", "sigmoid(0)"), ElementsAre(0.5));
  EXPECT_THAT(eval("f64[M, N]", "f @ (1,0) (x, n)", "def f(a : [n], b : []) { return a - b }"),
              ElementsAre(8, 9, 10, -5, -4, -3));
  EXPECT_THAT(eval("f64[N, N]", "f(v)", "def f(a : [n]) { return outer(-, a, a) }"),
              ElementsAre(0, -10, -20, 10, 0, -10, 20, 10, 0));
}

TEST(Meaning, ExplicitCastsRound) {
  EXPECT_THAT(eval("f64[N]", "bf16(v + 0.1)"), ElementsAre(10.125, 20.125, 30.125));
  EXPECT_THAT(eval("i64[N]", "i64(v / 7)"), ElementsAre(1, 2, 4));
  EXPECT_THAT(eval("f64[M]", "f64(n) / 2"), ElementsAre(-3.5, 4.5));
}

TEST(Meaning, GroupedHeads) {
  // Two heads share the keys of one group: head h reads group h / (H/G).
  auto outputs = run("kernel k[H, G](q : f64[H], k : f64[G]) -> y : f64[H]\n"
                     "  require H % G == 0 { y = [h < H] q[h] * k[h / (H/G)] }",
                     {{{4}, {1, 2, 3, 4}}, {{2}, {10, 100}}});
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_THAT(outputs[0].data, ElementsAre(10, 20, 300, 400));
}

} // namespace
