//===- Unfused.cpp - product, softmax, product with OpenBLAS --------------===//

#include "benchmarks/cpu/Unfused.h"
#include <cblas.h>
#include <cstring>
#include <omp.h>

using namespace moa::bench;

namespace {

// e^x for x ≤ 0, about one unit in the last place: 2^n · p(r) with
// x·log2 e = n + r, |r| ≤ 1/2, and p a fit of 2^r of degree 6. Branch-free, so
// that the loops around it vectorise.
inline float expNonPositive(float x) {
  float t = x * 1.44269504f;
  t = t > -126.0f ? t : -126.0f;
  float whole = __builtin_rintf(t);
  float r = t - whole;
  float p = 1.535336188e-4f;
  p = p * r + 1.339887440e-3f;
  p = p * r + 9.618437357e-3f;
  p = p * r + 5.550332548e-2f;
  p = p * r + 2.402264791e-1f;
  p = p * r + 6.931472028e-1f;
  p = p * r + 1.0f;
  int32_t bits;
  std::memcpy(&bits, &p, sizeof bits);
  bits += static_cast<int32_t>(whole) * (1 << 23);
  std::memcpy(&p, &bits, sizeof p);
  return p;
}

} // namespace

void moa::bench::softmaxRow(float *row, int64_t size) {
  float max = row[0];
#pragma omp simd reduction(max : max)
  for (int64_t j = 0; j < size; ++j)
    max = row[j] > max ? row[j] : max;
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t j = 0; j < size; ++j) {
    row[j] = expNonPositive(row[j] - max);
    sum += row[j];
  }
  float inverse = 1.0f / sum;
#pragma omp simd
  for (int64_t j = 0; j < size; ++j)
    row[j] *= inverse;
}

const char *moa::bench::blasCoreName() { return openblas_get_corename(); }

Unfused::Unfused(Shape shape, Split split)
    : shape(shape), split(split),
      scores(shape.queries * shape.keys * (split == Split::Heads ? omp_get_max_threads() : 1)) {}

void Unfused::runHead(int64_t head, float *score, const float *q, const float *k, const float *v, float scale,
                      float *out) {
  int n = shape.queries, m = shape.keys, d = shape.width;
  const float *keys = k + head * shape.keys * d;
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, n, m, d, scale, q + head * shape.queries * d, d, keys, d, 0.0f,
              score, m);
  if (split == Split::Heads) {
    for (int64_t i = 0; i < n; ++i)
      softmaxRow(score + i * m, m);
  } else {
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < n; ++i)
      softmaxRow(score + i * m, m);
  }
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, d, m, 1.0f, score, m, v + head * shape.keys * d, d, 0.0f,
              out + head * shape.queries * d, d);
}

void Unfused::run(const float *q, const float *k, const float *v, float scale, float *out) {
  if (split == Split::Products) {
    openblas_set_num_threads(omp_get_max_threads());
    for (int64_t head = 0; head < shape.heads; ++head)
      runHead(head, scores.data(), q, k, v, scale, out);
    return;
  }
  openblas_set_num_threads(1);
#pragma omp parallel for schedule(dynamic)
  for (int64_t head = 0; head < shape.heads; ++head)
    runHead(head, scores.data() + omp_get_thread_num() * shape.queries * shape.keys, q, k, v, scale, out);
}
