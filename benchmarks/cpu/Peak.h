//===- Peak.h - the machine's measured FMA rate -----------------*- C++ -*-===//
#ifndef MOA_BENCHMARKS_CPU_PEAK_H
#define MOA_BENCHMARKS_CPU_PEAK_H

namespace moa::bench {

/// Runs independent chains of single-precision fused multiply-adds in registers
/// on every core for about `seconds` and returns the rate in GFLOP/s.
double measureFmaPeak(double seconds);

/// Bits of one vector register that the loop was compiled for.
unsigned fmaVectorBits();

/// Number of threads that the parallel regions use.
int numThreads();

} // namespace moa::bench

#endif // MOA_BENCHMARKS_CPU_PEAK_H
