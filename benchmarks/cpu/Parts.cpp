//===- Parts.cpp - the pieces of the rival, each on its own ---------------===//
//
// Google Benchmark over the measured peak, the two products, the softmax and
// the whole unfused form. It shows that the rival of the figures is a fair one.
//
//===----------------------------------------------------------------------===//

#include "benchmarks/cpu/Peak.h"
#include "benchmarks/cpu/Unfused.h"
#include <benchmark/benchmark.h>
#include <cblas.h>
#include <random>

using namespace moa::bench;

static std::vector<float> randomArray(int64_t size, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(size);
  for (float &value : values)
    value = normal(generator);
  return values;
}

static void setRate(benchmark::State &state, double flops) {
  state.counters["GFLOP/s"] = benchmark::Counter(flops * 1e-9 * state.iterations(), benchmark::Counter::kIsRate);
}

static void fmaPeak(benchmark::State &state) {
  double sum = 0;
  for (auto _ : state)
    sum += measureFmaPeak(0.2);
  state.counters["GFLOP/s"] = sum / state.iterations();
}
BENCHMARK(fmaPeak)->UseRealTime()->Iterations(5)->Unit(benchmark::kMillisecond);

static void scoreProduct(benchmark::State &state) {
  int n = state.range(0), d = state.range(1);
  std::vector<float> q = randomArray(n * d, 1), k = randomArray(n * d, 2);
  std::vector<float> s(int64_t(n) * n);
  openblas_set_num_threads(numThreads());
  for (auto _ : state)
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, n, n, d, 1.0f, q.data(), d, k.data(), d, 0.0f, s.data(), n);
  setRate(state, 2.0 * n * n * d);
}
BENCHMARK(scoreProduct)->Args({4096, 128})->UseRealTime()->Unit(benchmark::kMillisecond);

static void valueProduct(benchmark::State &state) {
  int n = state.range(0), d = state.range(1);
  std::vector<float> p = randomArray(int64_t(n) * n, 1);
  std::vector<float> v = randomArray(n * d, 2), o(n * d);
  openblas_set_num_threads(numThreads());
  for (auto _ : state)
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, d, n, 1.0f, p.data(), n, v.data(), d, 0.0f, o.data(), d);
  setRate(state, 2.0 * n * n * d);
}
BENCHMARK(valueProduct)->Args({4096, 128})->UseRealTime()->Unit(benchmark::kMillisecond);

static void softmaxOneThread(benchmark::State &state) {
  int64_t rows = 64, size = state.range(0);
  std::vector<float> original = randomArray(rows * size, 3), work = original;
  for (auto _ : state) {
    for (int64_t row = 0; row < rows; ++row)
      softmaxRow(work.data() + row * size, size);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * rows * size);
}
BENCHMARK(softmaxOneThread)->Arg(4096)->UseRealTime();

static void unfused(benchmark::State &state) {
  Shape shape;
  int64_t size = shape.heads * shape.queries * shape.width;
  std::vector<float> q = randomArray(size, 1), k = randomArray(size, 2), v = randomArray(size, 3), out(size);
  Unfused rival(shape, state.range(0) ? Split::Products : Split::Heads);
  for (auto _ : state)
    rival.run(q.data(), k.data(), v.data(), 0.08838834764831845f, out.data());
  setRate(state, shape.flops());
}
BENCHMARK(unfused)->ArgName("products")->Arg(0)->Arg(1)->UseRealTime()->Unit(benchmark::kMillisecond);

int main(int argc, char **argv) {
  benchmark::AddCustomContext("openblas", blasCoreName());
  benchmark::AddCustomContext("threads", std::to_string(numThreads()));
  benchmark::AddCustomContext("vector_bits", std::to_string(fmaVectorBits()));
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv))
    return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
