//===- Unfused.h - product, softmax, product with OpenBLAS ------*- C++ -*-===//
//
// The rival: softmax(Q Kᵀ · scale) V, one matrix of scores per head written to
// memory, sgemm for both products and a vectorised softmax between them.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_BENCHMARKS_CPU_UNFUSED_H
#define MOA_BENCHMARKS_CPU_UNFUSED_H

#include <cstdint>
#include <vector>

namespace moa::bench {

/// Extents of one call; every array is row-major, [heads, rows, width].
struct Shape {
  int64_t heads = 8, queries = 4096, keys = 4096, width = 128;
  /// Multiply-adds of the two products, counted as two operations each.
  double flops() const { return 4.0 * heads * queries * keys * width; }
};

/// How the unfused form uses the cores.
enum class Split {
  Heads,   ///< each thread takes whole heads, sgemm runs on one thread
  Products ///< head after head, sgemm and softmax run on all threads
};

/// Buffers for the scores, allocated once and outside of what is timed.
class Unfused {
public:
  Unfused(Shape shape, Split split);
  void run(const float *q, const float *k, const float *v, float scale, float *out);
  int64_t scratchBytes() const { return scores.size() * sizeof(float); }

private:
  void runHead(int64_t head, float *score, const float *q, const float *k, const float *v, float scale, float *out);
  Shape shape;
  Split split;
  std::vector<float> scores;
};

/// In place, one row: exp(x - max) / Σ exp(x - max).
void softmaxRow(float *row, int64_t size);

/// Name of the OpenBLAS kernel set in use, such as "SkylakeX".
const char *blasCoreName();

} // namespace moa::bench

#endif // MOA_BENCHMARKS_CPU_UNFUSED_H
