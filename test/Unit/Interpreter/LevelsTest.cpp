//===- LevelsTest.cpp - one kernel at three levels and by hand ------------===//
//
// Causal grouped-query attention with log-sum-exp, written at the moa, dnf and
// lifted onf level, against plain loops.
//
//===----------------------------------------------------------------------===//
#include "TestSupport.h"

using namespace moa;
using namespace moa::test;

namespace {

struct Sizes {
  int64_t B, H, G, N, M, D;
};

KernelInputs makeInputs(const Sizes &s, unsigned seed = 1) {
  KernelInputs inputs;
  inputs.arrays = {random({s.B, s.H, s.N, s.D}, seed), random({s.B, s.G, s.M, s.D}, seed + 1),
                   random({s.B, s.G, s.M, s.D}, seed + 2), scalar(0.5)};
  return inputs;
}

/// One row by the definition; absent keys do not take part.
void referenceRow(const Sizes &s, const KernelInputs &in, int64_t b, int64_t h, int64_t i, double *o, double &lse) {
  const double *q = &in.arrays[0].data[((b * s.H + h) * s.N + i) * s.D];
  int64_t g = h / (s.H / s.G), present = 0;
  std::vector<double> scores;
  for (int64_t j = 0; j < s.M && j <= i + s.M - s.N; ++j, ++present) {
    const double *k = &in.arrays[1].data[((b * s.G + g) * s.M + j) * s.D];
    double dot = 0;
    for (int64_t d = 0; d < s.D; ++d)
      dot += q[d] * k[d];
    scores.push_back(dot * in.arrays[3].data[0]);
  }
  double m = -kInf, l = 0;
  for (double x : scores)
    m = std::max(m, x);
  for (double x : scores)
    l += std::exp(x - m);
  for (int64_t d = 0; d < s.D; ++d) {
    o[d] = 0;
    for (int64_t j = 0; j < present; ++j)
      o[d] += std::exp(scores[j] - m) / l * in.arrays[2].data[((b * s.G + g) * s.M + j) * s.D + d];
  }
  lse = present ? m + std::log(l) : -kInf;
}

std::vector<Array> reference(const Sizes &s, const KernelInputs &in) {
  std::vector<Array> out(2);
  out[0].shape = {s.B, s.H, s.N, s.D};
  out[1].shape = {s.B, s.H, s.N};
  out[0].data.resize(count(out[0].shape));
  out[1].data.resize(count(out[1].shape));
  for (int64_t row = 0; row < s.B * s.H * s.N; ++row)
    referenceRow(s, in, row / s.N / s.H, row / s.N % s.H, row % s.N, out[0].data.data() + row * s.D, out[1].data[row]);
  return out;
}

class Levels : public testing::TestWithParam<const char *> {
protected:
  Levels() : text(KernelText::file(GetParam())) {}
  void compare(const Sizes &sizes) {
    KernelInputs inputs = makeInputs(sizes);
    // Where an extent of 0 hides a symbol, nothing else would do.
    auto got = run(text.get(), inputs);
    auto expected = reference(sizes, inputs);
    ASSERT_EQ(got.size(), 2u);
    expectClose(got[0], expected[0]);
    expectClose(got[1], expected[1]);
  }
  KernelText text;
};

TEST_P(Levels, AgreesWithLoops) { compare({2, 4, 2, 9, 9, 5}); }
TEST_P(Levels, MoreKeysThanQueries) { compare({1, 2, 1, 3, 17, 4}); }
TEST_P(Levels, RowsThatSeeNothing) { compare({1, 2, 2, 11, 4, 3}); }
TEST_P(Levels, NoKeys) { compare({1, 2, 1, 4, 0, 3}); }
TEST_P(Levels, NoQueries) { compare({1, 2, 1, 0, 4, 3}); }
TEST_P(Levels, NoFeatures) { compare({1, 2, 1, 3, 3, 0}); }
TEST_P(Levels, NoBatch) { compare({0, 2, 1, 3, 3, 2}); }

TEST_P(Levels, RowsThatSeeNothingGiveZeroAndMinusInfinity) {
  auto out = run(text.get(), makeInputs({1, 1, 1, 3, 1, 2}));
  EXPECT_EQ(out[0].data[0], 0);
  EXPECT_EQ(out[0].data[3], 0);
  EXPECT_EQ(out[1].data[0], -kInf);
  EXPECT_EQ(out[1].data[1], -kInf);
  EXPECT_TRUE(std::isfinite(out[1].data[2]));
}

TEST_P(Levels, UnseenBitsDoNotMatter) {
  Sizes s{1, 2, 1, 4, 4, 3};
  KernelInputs clean = makeInputs(s), dirty = clean;
  for (unsigned array : {1, 2})
    for (int64_t d = 0; d < s.D; ++d)
      dirty.arrays[array].data[3 * s.D + d] = d == 1 ? kInf : kNaN;
  auto a = run(text.get(), clean), b = run(text.get(), dirty);
  for (int64_t h = 0; h < s.H; ++h)
    for (int64_t k = 0; k < 3 * s.D; ++k) // rows 0 to 2 do not see key 3
      EXPECT_EQ(a[0].data[h * s.N * s.D + k], b[0].data[h * s.N * s.D + k]);
}

TEST_P(Levels, ARowOfPresentMinusInfinityIsNaN) {
  Sizes s{1, 1, 1, 1, 1, 1};
  KernelInputs inputs = makeInputs(s);
  inputs.arrays[0].data = {1};
  inputs.arrays[1].data = {-kInf};
  auto out = run(text.get(), inputs);
  EXPECT_TRUE(std::isnan(out[0].data[0]));
}

TEST_P(Levels, ChosenElements) {
  Sizes s{1, 4, 2, 7, 8, 3};
  KernelInputs inputs = makeInputs(s);
  auto expected = reference(s, inputs);
  std::vector<std::vector<int64_t>> at = {{0, 3, 6, 2}, {0, 0, 0, 0}, {0, 3, 6, 1}};
  auto got = interpretElements(text.get(), inputs, 0, at);
  ASSERT_TRUE(bool(got)) << llvm::toString(got.takeError());
  ASSERT_EQ(got->size(), 3u);
  for (size_t k = 0; k < at.size(); ++k) {
    int64_t flat = (at[k][1] * s.N + at[k][2]) * s.D + at[k][3];
    EXPECT_NEAR((*got)[k], expected[0].data[flat], 1e-13);
  }
  auto lse = interpretElements(text.get(), inputs, 1, {{0, 1, 5}});
  ASSERT_TRUE(bool(lse));
  EXPECT_NEAR(lse->front(), expected[1].data[s.N + 5], 1e-13);
}

TEST_P(Levels, ChosenElementsLieInsideTheOutput) {
  auto got = interpretElements(text.get(), makeInputs({1, 1, 1, 2, 2, 2}), 0, {{0, 0, 2, 0}});
  ASSERT_FALSE(bool(got));
  EXPECT_EQ(llvm::toString(got.takeError()), "index [0, 0, 2, 0] is outside output 'O' of shape [1, 1, 2, 2]");
}

INSTANTIATE_TEST_SUITE_P(All, Levels, testing::Values("gqa.moa.mlir", "gqa.dnf.mlir", "gqa.onf.mlir"),
                         [](const auto &info) {
                           return llvm::StringRef(info.param).split('.').second.split('.').first.str();
                         });

/// Single rows of the size people run, where whole evaluation is out of reach.
TEST(Samples, ARowOfALargeProblemIsQuick) {
  Sizes s{1, 2, 1, 1024, 1024, 64};
  KernelInputs inputs = makeInputs(s);
  std::vector<std::vector<int64_t>> at;
  for (int64_t d = 0; d < s.D; ++d)
    at.push_back({0, 1, 777, d});
  std::vector<double> row(s.D);
  double lse;
  referenceRow(s, inputs, 0, 1, 777, row.data(), lse);
  for (const char *name : {"gqa.dnf.mlir", "gqa.onf.mlir"}) {
    KernelText text = KernelText::file(name);
    auto got = interpretElements(text.get(), inputs, 0, at);
    ASSERT_TRUE(bool(got)) << llvm::toString(got.takeError());
    for (int64_t d = 0; d < s.D; ++d)
      EXPECT_NEAR((*got)[d], row[d], 1e-12);
  }
}

/// What the dnf interpreter reads is what the specification needs.
TEST(Samples, ReadsAreRecorded) {
  KernelText text = KernelText::file("gqa.dnf.mlir");
  std::vector<std::vector<bool>> reads;
  InterpretOptions options;
  options.reads = &reads;
  run(text.get(), makeInputs({1, 2, 1, 5, 2, 3}), options);
  ASSERT_EQ(reads.size(), 4u);
  EXPECT_EQ(llvm::count(reads[0], true), 2 * 2 * 3) << "three of five rows see nothing";
  EXPECT_EQ(llvm::count(reads[1], true), 2 * 3);
  EXPECT_EQ(llvm::count(reads[2], true), 2 * 3);
}

} // namespace
