//===- Shrink.h - smaller programs that fail the same way -------*- C++ -*-===//
#ifndef MOA_TEST_RANDOM_SHRINK_H
#define MOA_TEST_RANDOM_SHRINK_H

#include "Check.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace moa::random {

/// Drops outputs, puts operands and parameters in the place of operators and makes
/// sizes smaller for as long as `fails` says that the program fails as before.
/// `sizes` are those that it failed with and get those of the result.
Program shrink(Program program, Sizes &sizes, llvm::function_ref<bool(const Program &, const Sizes &)> fails);

} // namespace moa::random

#endif // MOA_TEST_RANDOM_SHRINK_H
