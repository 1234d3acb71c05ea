//===- Peak.cpp - the machine's measured FMA rate -------------------------===//

#include "benchmarks/cpu/Peak.h"
#include <chrono>
#include <omp.h>

namespace {

#if defined(__AVX512F__)
constexpr unsigned vectorBytes = 64;
#else
constexpr unsigned vectorBytes = 32;
#endif
constexpr unsigned lanes = vectorBytes / sizeof(float);
typedef float Vector __attribute__((vector_size(vectorBytes)));

// Enough independent chains to cover latency times issue width, few enough to
// stay in the register file of either vector width.
constexpr int chains = 12;
constexpr long stepsPerBurst = 100000;

double now() {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

// One burst; the empty assembly keeps every accumulator live and in a register.
void burst(Vector (&state)[chains], Vector factor, Vector term) {
  Vector acc[chains];
  for (int c = 0; c < chains; ++c)
    acc[c] = state[c];
  for (long step = 0; step < stepsPerBurst; ++step) {
#pragma GCC unroll 12
    for (int c = 0; c < chains; ++c) {
      acc[c] = acc[c] * factor + term;
      asm volatile("" : "+v"(acc[c]));
    }
  }
  for (int c = 0; c < chains; ++c)
    state[c] = acc[c];
}

} // namespace

double moa::bench::measureFmaPeak(double seconds) {
  double flops = 0, begin = 0, end = 0;
#pragma omp parallel reduction(+ : flops)
  {
    Vector state[chains], factor, term;
    for (unsigned lane = 0; lane < lanes; ++lane) {
      factor[lane] = 0.999f;
      term[lane] = 0.001f * (lane + 1); // not 0: products would become subnormal, which took 380
                                        // times as long on a Xeon (0.9 in place of 347 GFLOP/s)
      for (auto &vector : state)
        vector[lane] = 1.0f;
    }
    burst(state, factor, term); // wakes the vector units up
#pragma omp barrier
#pragma omp single
    begin = now();
    do {
      burst(state, factor, term);
      flops += 2.0 * lanes * chains * stepsPerBurst;
    } while (now() - begin < seconds);
#pragma omp barrier
#pragma omp single
    end = now();
  }
  return flops / (end - begin) * 1e-9;
}

unsigned moa::bench::fmaVectorBits() { return vectorBytes * 8; }

int moa::bench::numThreads() { return omp_get_max_threads(); }
