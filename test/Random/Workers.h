//===- Workers.h - checks in processes of their own -------------*- C++ -*-===//
//
// A program that crashes or does not end takes its process with it, not the run.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_TEST_RANDOM_WORKERS_H
#define MOA_TEST_RANDOM_WORKERS_H

#include "Check.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace moa::random {

/// Checks in a process of its own. A signal is the failure "crash", more than
/// `seconds` the failure "timeout".
Result checkApart(const Program &program, const CheckOptions &options, unsigned seconds);

/// Checks the programs of the seeds `first` to `first + count - 1` in `jobs` processes
/// and hands over each result as it comes.
void checkAll(uint64_t first, uint64_t count, unsigned jobs, const CheckOptions &options, unsigned seconds,
              llvm::function_ref<void(uint64_t seed, const Result &)> done);

} // namespace moa::random

#endif // MOA_TEST_RANDOM_WORKERS_H
