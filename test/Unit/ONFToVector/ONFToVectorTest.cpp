//===- ONFToVectorTest.cpp - the CPU lowering, run --------------------------===//
//
// Each kernel is compiled for this machine and compared with a direct evaluation
// in float64, both index by index and in blocks.
//
//===----------------------------------------------------------------------===//
#include "Harness.h"
#include "Texts.h"
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <random>

using namespace moa;
using namespace moa::test;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

std::unique_ptr<Kernel> build(const std::string &text, bool blocks, int64_t vectors = 6, int64_t bits = 512) {
  std::string error;
  ONFToVectorOptions options;
  options.blocks = blocks;
  options.vectorsPerTile = vectors;
  options.vectorBits = bits;
  auto kernel = Kernel::compile(text, options, error);
  EXPECT_TRUE(kernel) << error;
  return kernel;
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

enum class Mask { None, Causal, Window };

struct Form {
  int64_t B = 1, H = 2, G = 1, N = 40, M = 40, D = 16;
  std::string type = "f32";
  Mask mask = Mask::None;
  bool pieces = false;
  bool reversed = false;   // every array's axes stand in memory in reverse order
  int64_t poisonFrom = -1; // keys from here on are NaN and infinities
  std::string score = "%s = arith.addf %s1, %zero : $C";
};

std::string attentionText(const Form &setup) {
  std::string compute = setup.type == "f64" ? "f64" : "f32";
  bool narrow = setup.type == "bf16" || setup.type == "f16";
  auto widen = [&](std::string from, std::string to) {
    return narrow ? "%" + to + " = arith.extf %" + from + " : $T to $C\n"
                  : "%" + to + " = arith.addf %" + from + ", %zero : $C\n";
  };
  std::string guard, pieces;
  if (setup.mask == Mask::Causal) {
    guard = "%lim = arith.addi %i, %c : index\n"
            "%pr = arith.cmpi sle, %j, %lim : index\n onf.guard %pr";
    if (setup.pieces)
      pieces = "pieces [#onf.piece<visit (d0, d1)[s0] -> (0) to "
               "(d0, d1)[s0] -> (d1 + s0 + 1) full true "
               "(d0, d1)[s0] -> (0) to "
               "(d0, d1)[s0] -> (d0 + s0 + 1)>] of (%c)";
  }
  if (setup.mask == Mask::Window) {
    guard = "%w = arith.constant 5 : index\n %dist = arith.subi %i, %j : index\n"
            "%neg = arith.subi %j, %i : index\n"
            "%far = arith.maxsi %dist, %neg : index\n"
            "%pr = arith.cmpi sle, %far, %w : index\n onf.guard %pr";
    if (setup.pieces)
      pieces = "pieces [#onf.piece<visit (d0, d1) -> (d0 - 5) to "
               "(d0, d1) -> (d1 + 6) full true "
               "(d0, d1) -> (d1 - 5) to "
               "(d0, d1) -> (d0 + 6)>] of ()";
  }
  return fill(attention, {{"WIDENQK", widen("q", "qw") + widen("kk", "kw")},
                          {"WIDENV", widen("v", "vw")},
                          {"GUARD", guard},
                          {"PIECES", pieces},
                          {"SCORE", setup.score},
                          {"FLIFT", ""},
                          {"LIFT", ""},
                          {"ROUNDS", narrow ? "rounds $T" : ""},
                          {"INF", compute == "f64" ? "0xFFF0000000000000" : "0xFF800000"},
                          {"T", setup.type},
                          {"C", compute},
                          {"D", std::to_string(setup.D)}});
}

struct Tensor {
  std::vector<double> data; // as the kernel sees it
  std::vector<char> bytes;
};

/// The tensor with its elements moved to the reverse order of axes.
std::vector<char> reverseAxes(const std::vector<char> &bytes, const std::vector<int64_t> &shape, size_t size,
                              bool back) {
  std::vector<char> result = bytes;
  int64_t count = 1;
  for (int64_t extent : shape)
    count *= extent;
  for (int64_t flat = 0; flat != count; ++flat) {
    int64_t rest = flat, other = 0;
    std::vector<int64_t> index(shape.size());
    for (size_t axis = shape.size(); axis-- > 0; rest /= shape[axis])
      index[axis] = rest % shape[axis];
    for (size_t axis = shape.size(); axis-- > 0;)
      other = other * shape[axis] + index[axis];
    std::memcpy(&result[(back ? flat : other) * size], &bytes[(back ? other : flat) * size], size);
  }
  return result;
}

Tensor makeTensor(int64_t count, const std::string &type, std::mt19937 &random) {
  std::normal_distribution<double> normal;
  Tensor tensor;
  size_t size = type == "f64" ? 8 : type == "f32" ? 4 : 2;
  tensor.bytes.resize(std::max<int64_t>(count, 1) * size);
  for (int64_t k = 0; k != count; ++k) {
    double x = normal(random);
    if (type == "f64") {
      std::memcpy(&tensor.bytes[k * 8], &x, 8);
    } else if (type == "f32") {
      float f = static_cast<float>(x);
      std::memcpy(&tensor.bytes[k * 4], &f, 4);
      x = f;
    } else {
      uint16_t h = toBF16(static_cast<float>(x));
      std::memcpy(&tensor.bytes[k * 2], &h, 2);
      x = fromBF16(h);
    }
    tensor.data.push_back(x);
  }
  return tensor;
}

std::vector<double> readTensor(const std::vector<char> &bytes, int64_t count, const std::string &type) {
  std::vector<double> values;
  for (int64_t k = 0; k != count; ++k) {
    if (type == "f64") {
      double x;
      std::memcpy(&x, &bytes[k * 8], 8);
      values.push_back(x);
    } else if (type == "f32") {
      float x;
      std::memcpy(&x, &bytes[k * 4], 4);
      values.push_back(x);
    } else {
      uint16_t x;
      std::memcpy(&x, &bytes[k * 2], 2);
      values.push_back(fromBF16(x));
    }
  }
  return values;
}

bool isPresent(const Form &s, int64_t i, int64_t j) {
  if (s.mask == Mask::Causal)
    return j <= i + s.M - s.N;
  if (s.mask == Mask::Window)
    return std::abs(i - j) <= 5;
  return true;
}

void reference(const Form &s, const Tensor &Q, const Tensor &K, const Tensor &V, double scale, std::vector<double> &O,
               std::vector<double> &lse, double (*score)(double)) {
  std::vector<double> p(s.M);
  for (int64_t b = 0; b != s.B; ++b)
    for (int64_t h = 0; h != s.H; ++h)
      for (int64_t i = 0; i != s.N; ++i) {
        int64_t g = h / (s.H / s.G);
        const double *q = &Q.data[((b * s.H + h) * s.N + i) * s.D];
        double m = -infinity, l = 0;
        for (int64_t j = 0; j != s.M; ++j) {
          const double *k = &K.data[((b * s.G + g) * s.M + j) * s.D];
          double dot = 0;
          for (int64_t d = 0; d != s.D; ++d)
            dot += q[d] * k[d];
          p[j] = isPresent(s, i, j) ? score(dot * scale) : -infinity;
          m = std::max(m, p[j]);
        }
        std::vector<double> o(s.D);
        for (int64_t j = 0; j != s.M; ++j) {
          if (!isPresent(s, i, j))
            continue;
          double e = std::exp(p[j] - m);
          l += e;
          for (int64_t d = 0; d != s.D; ++d)
            o[d] += e * V.data[((b * s.G + g) * s.M + j) * s.D + d];
        }
        for (int64_t d = 0; d != s.D; ++d)
          O.push_back(l == 0 ? 0 : o[d] / l);
        lse.push_back(l == 0 ? -infinity : m + std::log(l));
      }
}

void checkAttention(
    const Form &s, bool blocks, double tolerance, int64_t vectors = 6, int64_t bits = 512,
    double (*score)(double) = [](double x) { return x; }) {
  SCOPED_TRACE(s.type + " N=" + std::to_string(s.N) + " M=" + std::to_string(s.M) + " D=" + std::to_string(s.D) +
               (blocks ? " blocks" : " general"));
  auto kernel = build(attentionText(s), blocks, vectors, bits);
  ASSERT_TRUE(kernel);
  std::mt19937 random(7);
  Tensor Q = makeTensor(s.B * s.H * s.N * s.D, s.type, random);
  Tensor K = makeTensor(s.B * s.G * s.M * s.D, s.type, random);
  Tensor V = makeTensor(s.B * s.G * s.M * s.D, s.type, random);
  double scale = static_cast<float>(1 / std::sqrt(static_cast<double>(s.D)));
  std::string compute = s.type == "f64" ? "f64" : "f32";
  size_t size = s.type == "f64" ? 8 : s.type == "f32" ? 4 : 2;
  int64_t rows = s.B * s.H * s.N;
  std::vector<char> O(rows * s.D * size + 8, 'x'), lse(rows * (compute == "f64" ? 8 : 4) + 8, 'x');
  std::vector<int64_t> slots;
  auto push = [&](std::vector<char> &bytes, const std::vector<int64_t> &shape, bool input) {
    if (!s.reversed)
      return pushArray(slots, bytes.data(), shape);
    if (input)
      bytes = reverseAxes(bytes, shape, size, false);
    std::vector<int64_t> strides{1};
    for (size_t axis = 0; axis + 1 < shape.size(); ++axis)
      strides.push_back(strides.back() * shape[axis]);
    pushStrided(slots, bytes.data(), strides);
  };
  if (s.poisonFrom >= 0)
    for (int64_t k = 0; k != s.B * s.G * s.M * s.D; ++k)
      if (k / s.D % s.M >= s.poisonFrom) {
        float bad = k % 3 ? std::nanf("") : k % 2 ? INFINITY : -INFINITY;
        std::memcpy(&K.bytes[k * 4], &bad, 4);
        std::memcpy(&V.bytes[k * 4], &bad, 4);
      }
  push(Q.bytes, {s.B, s.H, s.N, s.D}, true);
  push(K.bytes, {s.B, s.G, s.M, s.D}, true);
  push(V.bytes, {s.B, s.G, s.M, s.D}, true);
  slots.push_back(compute == "f64" ? doubleSlot(scale) : floatSlot(scale));
  push(O, {s.B, s.H, s.N, s.D}, false);
  pushArray(slots, lse.data(), {s.B, s.H, s.N});
  for (int64_t symbol : {s.B, s.H, s.G, s.N, s.M})
    slots.push_back(symbol);
  kernel->run(slots, true);
  std::vector<double> wantO, wantL;
  reference(s, Q, K, V, scale, wantO, wantL, score);
  if (s.reversed)
    O = reverseAxes(O, {s.B, s.H, s.N, s.D}, size, true);
  auto gotO = readTensor(O, rows * s.D, s.type);
  auto gotL = readTensor(lse, rows, compute);
  EXPECT_LE(relativeError(gotO, wantO), tolerance);
  for (size_t k = 0; k != wantL.size(); ++k) {
    if (std::isinf(wantL[k]))
      ASSERT_EQ(gotL[k], wantL[k]) << k;
    else
      ASSERT_NEAR(gotL[k], wantL[k], 10 * tolerance) << k;
  }
  for (int k = 0; k != 8; ++k) {
    EXPECT_EQ(O[rows * s.D * size + k], 'x');
    EXPECT_EQ(lse[lse.size() - 8 + k], 'x');
  }
}

class Both : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Path, Both, testing::Bool(), [](auto &info) { return info.param ? "Blocks" : "General"; });

TEST_P(Both, FullAttention) {
  for (int64_t N : {1, 16, 40, 97})
    for (int64_t M : {1, 33, 130}) {
      Form s;
      s.N = N, s.M = M;
      checkAttention(s, GetParam(), 2e-6);
    }
}

TEST_P(Both, EmptyExtents) {
  Form s;
  s.M = 0;
  checkAttention(s, GetParam(), 2e-6);
  s.M = 5, s.N = 0;
  checkAttention(s, GetParam(), 2e-6);
}

TEST_P(Both, ElementTypes) {
  Form s;
  s.H = 4, s.G = 2, s.N = 37, s.M = 141, s.D = 24;
  for (auto [type, tolerance] : {std::pair("f64", 1e-14), std::pair("bf16", 3e-3)}) {
    s.type = type;
    s.mask = Mask::None;
    checkAttention(s, GetParam(), tolerance);
    s.mask = Mask::Causal;
    checkAttention(s, GetParam(), tolerance);
  }
}

TEST_P(Both, Masks) {
  for (Mask mask : {Mask::Causal, Mask::Window})
    for (bool pieces : {false, true})
      for (auto [N, M] : {std::pair(150, 150), std::pair(100, 290), std::pair(200, 60)}) {
        Form s;
        s.mask = mask, s.pieces = pieces, s.N = N, s.M = M, s.B = 2;
        checkAttention(s, GetParam(), 2e-6);
      }
}

TEST_P(Both, VectorWidths) {
  for (int64_t bits : {128, 256, 512})
    for (int64_t vectors : {1, 2, 3, 4, 5}) {
      Form s;
      s.mask = Mask::Causal, s.pieces = true, s.N = 70, s.M = 75, s.D = 19;
      checkAttention(s, GetParam(), 2e-6, vectors, bits);
    }
}

TEST_P(Both, Softcap) {
  Form s;
  s.N = 50, s.M = 150;
  s.score = "%cap = arith.constant 2.0 : $C\n %ratio1 = arith.divf %s1, %cap : $C\n"
            "%th = math.tanh %ratio1 : $C\n %s = arith.mulf %th, %cap : $C";
  checkAttention(s, GetParam(), 2e-6, 6, 512, [](double x) { return 2 * std::tanh(x / 2); });
}

TEST_P(Both, AnyStrides) {
  for (const char *type : {"f32", "bf16"}) {
    Form s;
    s.N = 50, s.M = 140, s.type = type, s.reversed = true, s.mask = Mask::Causal;
    checkAttention(s, GetParam(), std::string(type) == "f32" ? 2e-6 : 3e-3);
  }
}

TEST_P(Both, UnseenKeysDoNotMatter) {
  for (bool pieces : {false, true}) {
    Form s;
    s.N = 70, s.M = 200, s.mask = Mask::Window, s.pieces = pieces;
    s.poisonFrom = s.N + 5;
    checkAttention(s, GetParam(), 2e-6);
  }
}

TEST_P(Both, OneLane) {
  Form s;
  s.N = 5, s.M = 9, s.D = 4;
  checkAttention(s, GetParam(), 2e-6, 3, 32);
}

TEST_P(Both, LongRowsStayAccurate) {
  Form s;
  s.H = 1, s.N = 100, s.M = 4096, s.D = 64;
  checkAttention(s, GetParam(), GetParam() ? 1e-6 : 1e-5);
}

//===----------------------------------------------------------------------===//
// Other kernels
//===----------------------------------------------------------------------===//

TEST_P(Both, RowNorm) {
  auto kernel = build(fill(rowNorm, {{"C", "f64"}}), GetParam());
  ASSERT_TRUE(kernel);
  int64_t N = 53, M = 71;
  std::mt19937 random(3);
  Tensor X = makeTensor(N * M, "f64", random);
  std::vector<double> R(N), want;
  std::vector<int64_t> slots;
  pushArray(slots, X.bytes.data(), {N, M});
  pushArray(slots, R.data(), {N});
  slots.insert(slots.end(), {N, M});
  kernel->run(slots);
  for (int64_t i = 0; i != N; ++i) {
    double sum = 0;
    for (int64_t j = 0; j != M; ++j)
      sum += X.data[i * M + j] * X.data[i * M + j];
    want.push_back(std::sqrt(sum));
  }
  EXPECT_LE(relativeError(R, want), 1e-14);
}

TEST_P(Both, Product) {
  auto kernel = build(fill(product, {{"C", "f32"}}), GetParam());
  ASSERT_TRUE(kernel);
  int64_t N = 7, M = 33, P = 130;
  std::mt19937 random(3);
  Tensor A = makeTensor(N * M, "f32", random), B = makeTensor(M * P, "f32", random);
  std::vector<char> C(N * P * 4);
  for (bool transposed : {false, true}) {
    std::vector<int64_t> slots;
    pushArray(slots, A.bytes.data(), {N, M});
    if (transposed)
      pushStrided(slots, B.bytes.data(), {1, M});
    else
      pushArray(slots, B.bytes.data(), {M, P});
    pushArray(slots, C.data(), {N, P});
    slots.insert(slots.end(), {N, M, P});
    kernel->run(slots);
    std::vector<double> want;
    for (int64_t i = 0; i != N; ++i)
      for (int64_t p = 0; p != P; ++p) {
        double sum = 0;
        for (int64_t k = 0; k != M; ++k)
          sum += A.data[i * M + k] * B.data[transposed ? k + p * M : k * P + p];
        want.push_back(sum);
      }
    EXPECT_LE(relativeError(readTensor(C, N * P, "f32"), want), 2e-6);
  }
}

/// Keys through a page table whose unused entries are garbage.
TEST_P(Both, GuardedGather) {
  std::string text = R"(
onf.kernel @paged attributes {
    symbols = ["N", "M", "P"], requires = [], arg_names = ["Q", "K", "table", "length"],
    result_names = ["R"], result_types = [!moa.array<[N], f32>]} {
^bb0(%Q: !moa.array<[N, 8], f32>, %K: !moa.array<[P, 4, 8], f32>, %table: !moa.array<[M], i32>,
     %length: !moa.array<[], i32>, %R: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    %n = onf.load %length[] : !moa.array<[], i32> -> i32
    %ni = arith.index_cast %n : i32 to index
    %r = onf.fold "j" in "4*M" : f32 {
    ^bb0(%j: index):
      %p = arith.cmpi slt, %j, %ni : index
      onf.guard %p
      %c4 = arith.constant 4 : index
      %page = arith.floordivsi %j, %c4 : index
      %slot = arith.remsi %j, %c4 : index
      %t = onf.load %table[%page] : !moa.array<[M], i32> -> i32
      %ti = arith.index_cast %t : i32 to index
      %dot = onf.fold "k" in "8" : f32 {
      ^bb0(%k: index):
        %x = onf.load %Q[%i, %k] : !moa.array<[N, 8], f32> -> f32
        %y = onf.load %K[%ti, %slot, %k] : !moa.array<[P, 4, 8], f32> -> f32
        %z = arith.mulf %x, %y : f32
        %a = onf.acc add "s" carries [] in [] refs() mul [] : () -> f32 { onf.yield %z : f32 } repair {}
        onf.yield %a : f32
      }
      %e = math.exp %dot : f32
      %a = onf.acc add "s" carries [] in [] refs() mul [] : () -> f32 { onf.yield %e : f32 } repair {}
      onf.yield %a : f32
    }
    onf.store %r, %R[%i] : f32, !moa.array<[N], f32>
  }
}
)";
  auto kernel = build(text, GetParam());
  ASSERT_TRUE(kernel);
  int64_t N = 33, M = 60, P = 70;
  std::mt19937 random(5);
  Tensor Q = makeTensor(N * 8, "f32", random), K = makeTensor(P * 32, "f32", random);
  for (int64_t length : {0, 1, 130, 239}) {
    std::vector<int32_t> table(M, 0x7fffff00);
    for (int64_t page = 0; page * 4 < length; ++page)
      table[page] = static_cast<int32_t>(page * 37 % P);
    std::vector<char> R(N * 4);
    std::vector<int64_t> slots;
    pushArray(slots, Q.bytes.data(), {N, 8});
    pushArray(slots, K.bytes.data(), {P, 4, 8});
    pushArray(slots, table.data(), {M});
    slots.push_back(length);
    pushArray(slots, R.data(), {N});
    slots.insert(slots.end(), {N, M, P});
    kernel->run(slots);
    std::vector<double> want;
    for (int64_t i = 0; i != N; ++i) {
      double sum = 0;
      for (int64_t j = 0; j != length; ++j) {
        double dot = 0;
        for (int64_t k = 0; k != 8; ++k)
          dot += Q.data[i * 8 + k] * K.data[(table[j / 4] * 4 + j % 4) * 8 + k];
        sum += std::exp(dot);
      }
      want.push_back(sum);
    }
    EXPECT_LE(relativeError(readTensor(R, N, "f32"), want), 2e-6) << length;
  }
}

/// Arithmetic on 16-bit floats, where a user casts to them.
TEST(Narrow, Arithmetic) {
  for (const char *type : {"bf16", "f16"}) {
    auto kernel = build(fill(R"(
onf.kernel @narrow attributes {symbols = ["N"], requires = [], arg_names = ["X"],
    result_names = ["R"], result_types = [!moa.array<[N], f32>]} {
^bb0(%X: !moa.array<[N], f32>, %R: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    %x = onf.load %X[%i] : !moa.array<[N], f32> -> f32
    %h = arith.truncf %x : f32 to $H
    %s = arith.addf %h, %h : $H
    %e = math.exp %s : $H
    %p = arith.cmpf olt, %e, %s : $H
    %m = arith.select %p, %s, %e : $H
    %y = arith.extf %m : $H to f32
    onf.store %y, %R[%i] : f32, !moa.array<[N], f32>
  }
}
)",
                             {{"H", type}}),
                        true);
    ASSERT_TRUE(kernel);
    std::vector<float> X{0, 1, -1, 0.5, 2}, R(5);
    std::vector<int64_t> slots;
    pushArray(slots, X.data(), {5});
    pushArray(slots, R.data(), {5});
    slots.push_back(5);
    kernel->run(slots);
    for (int k = 0; k != 5; ++k)
      EXPECT_NEAR(R[k], std::exp(2 * X[k]), 0.01 * R[k]) << type;
  }
}

/// out = f(x), element by element.
template <typename T> std::vector<T> evaluate(const std::string &function, std::vector<T> x, int64_t bits) {
  std::string type = sizeof(T) == 8 ? "f64" : "f32";
  auto kernel = build(fill(R"(
onf.kernel @map attributes {symbols = ["N"], requires = [], arg_names = ["X"],
    result_names = ["R"], result_types = [!moa.array<[N], $C>]} {
^bb0(%X: !moa.array<[N], $C>, %R: !moa.array<[N], $C>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    %x = onf.load %X[%i] : !moa.array<[N], $C> -> $C
    %y = $F %x : $C
    onf.store %y, %R[%i] : $C, !moa.array<[N], $C>
  }
}
)",
                           {{"C", type}, {"F", function}}),
                      true, 6, bits);
  std::vector<T> result(x.size());
  int64_t n = x.size();
  std::vector<int64_t> slots;
  pushArray(slots, x.data(), {n});
  pushArray(slots, result.data(), {n});
  slots.push_back(n);
  if (kernel)
    kernel->run(slots);
  return result;
}

/// The error in units of the last place of the exact result.
template <typename T>
double worstUlp(const std::string &function, long double (*exact)(long double), double from, double to, int64_t bits) {
  std::vector<T> x;
  std::mt19937_64 random(9);
  std::uniform_real_distribution<double> uniform(from, to);
  for (int k = 0; k != 200000; ++k)
    x.push_back(static_cast<T>(uniform(random)));
  std::vector<T> y = evaluate<T>(function, x, bits);
  double worst = 0;
  for (size_t k = 0; k != x.size(); ++k) {
    long double want = exact(x[k]);
    T near = static_cast<T>(want);
    long double ulp = std::nextafter(std::abs(near), std::numeric_limits<T>::infinity()) - std::abs(near);
    worst = std::max(worst, static_cast<double>(std::abs(y[k] - want) / ulp));
  }
  return worst;
}

/// Whether all results of these arguments are 0.
template <typename T> bool areZero(const std::string &function, double from, double to, int64_t bits) {
  std::vector<T> x;
  for (int k = 0; k != 1000; ++k)
    x.push_back(static_cast<T>(from + (to - from) * k / 999));
  std::vector<T> y = evaluate<T>(function, x, bits);
  return std::all_of(y.begin(), y.end(), [](T value) { return value == 0; });
}

// Products with subnormal numbers take a hundred times as long, and weights may all be such.
TEST(Exponential, ResultsBelowTheLeastNormalNumberAreZero) {
  for (int64_t bits : {128, 512}) {
    EXPECT_TRUE(areZero<float>("math.exp", -200, -87.33655, bits)) << bits;
    EXPECT_TRUE(areZero<float>("math.exp2", -300, -126.0001, bits)) << bits;
    EXPECT_TRUE(areZero<double>("math.exp", -2000, -708.3964186, bits)) << bits;
    EXPECT_TRUE(areZero<double>("math.exp2", -3000, -1022.0000001, bits)) << bits;
  }
}

TEST(Exponential, Accuracy) {
  for (int64_t bits : {128, 512}) {
    EXPECT_LE((worstUlp<float>("math.exp", expl, -87, 88, bits)), 1.0) << bits;
    EXPECT_LE((worstUlp<float>("math.exp", expl, -87.3, -86, bits)), 1.0) << bits;
    EXPECT_LE((worstUlp<float>("math.exp2", exp2l, -126, 127, bits)), 1.0) << bits;
    EXPECT_LE((worstUlp<double>("math.exp", expl, -708, 709, bits)), 2.0) << bits;
    EXPECT_LE((worstUlp<double>("math.exp2", exp2l, -1022, 1023, bits)), 2.0) << bits;
  }
}

TEST(Exponential, OtherFunctions) {
  EXPECT_LE((worstUlp<float>("math.tanh", tanhl, -9, 9, 512)), 2.0);
  EXPECT_LE((worstUlp<float>("math.log", logl, 1e-3, 1e3, 512)), 2.0);
  EXPECT_LE((worstUlp<float>("math.log2", log2l, 1e-3, 1e3, 512)), 2.0);
  EXPECT_LE((worstUlp<float>("math.erf", erfl, -4, 4, 512)), 2.0);
}

template <typename T> void checkSpecialValues() {
  T inf = std::numeric_limits<T>::infinity(), big = sizeof(T) == 8 ? 800 : 100;
  for (int64_t bits : {256, 512})
    for (const char *function : {"math.exp", "math.exp2"}) {
      std::vector<T> y =
          evaluate<T>(function, {-inf, inf, std::numeric_limits<T>::quiet_NaN(), 0, -0.0, 20 * big, -20 * big}, bits);
      EXPECT_EQ(y[0], 0);
      EXPECT_EQ(y[1], inf);
      EXPECT_TRUE(std::isnan(y[2]));
      EXPECT_EQ(y[3], 1);
      EXPECT_EQ(y[4], 1);
      EXPECT_EQ(y[5], inf);
      EXPECT_EQ(y[6], 0);
    }
}

TEST(Exponential, SpecialValues) {
  checkSpecialValues<float>();
  checkSpecialValues<double>();
}

TEST_P(Both, RankZero) {
  auto kernel = build(fill(total, {{"C", "f64"}}), GetParam());
  ASSERT_TRUE(kernel);
  for (int64_t N : {0, 1, 1000}) {
    std::vector<double> X(N, 0.5);
    double R = -1;
    std::vector<int64_t> slots;
    pushArray(slots, X.data(), {N});
    pushArray(slots, &R, {});
    slots.push_back(N);
    kernel->run(slots);
    EXPECT_EQ(R, 0.5 * N);
  }
}

} // namespace
