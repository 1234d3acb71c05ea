//===- ONFToVectorTest.cpp - the CPU lowering, run --------------------------===//
//
// Each kernel is compiled for this machine and compared with a direct evaluation
// in float64, both index by index and in blocks.
//
//===----------------------------------------------------------------------===//
#include "Harness.h"
#include "Texts.h"
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>

using namespace moa;
using namespace moa::test;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

std::unique_ptr<Kernel> build(const std::string &text, bool blocks,
                              int64_t vectors = 6, int64_t bits = 512) {
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
  return fill(attention,
              {{"WIDENQK", widen("q", "qw") + widen("kk", "kw")},
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
  std::vector<double> data;      // as the kernel sees it
  std::vector<char> bytes;
};

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

std::vector<double> readTensor(const std::vector<char> &bytes, int64_t count,
                               const std::string &type) {
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

void reference(const Form &s, const Tensor &Q, const Tensor &K, const Tensor &V,
               double scale, std::vector<double> &O, std::vector<double> &lse,
               double (*score)(double)) {
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

void checkAttention(const Form &s, bool blocks, double tolerance,
                    int64_t vectors = 6, int64_t bits = 512,
                    double (*score)(double) = [](double x) { return x; }) {
  SCOPED_TRACE(s.type + " N=" + std::to_string(s.N) + " M=" + std::to_string(s.M) +
               " D=" + std::to_string(s.D) + (blocks ? " blocks" : " general"));
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
  pushArray(slots, Q.bytes.data(), {s.B, s.H, s.N, s.D});
  pushArray(slots, K.bytes.data(), {s.B, s.G, s.M, s.D});
  pushArray(slots, V.bytes.data(), {s.B, s.G, s.M, s.D});
  slots.push_back(compute == "f64" ? doubleSlot(scale) : floatSlot(scale));
  pushArray(slots, O.data(), {s.B, s.H, s.N, s.D});
  pushArray(slots, lse.data(), {s.B, s.H, s.N});
  for (int64_t symbol : {s.B, s.H, s.G, s.N, s.M})
    slots.push_back(symbol);
  kernel->run(slots, true);
  std::vector<double> wantO, wantL;
  reference(s, Q, K, V, scale, wantO, wantL, score);
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
INSTANTIATE_TEST_SUITE_P(Path, Both, testing::Bool(), [](auto &info) {
  return info.param ? "Blocks" : "General";
});

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
  checkAttention(s, GetParam(), 2e-6, 6, 512,
                 [](double x) { return 2 * std::tanh(x / 2); });
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
