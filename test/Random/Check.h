//===- Check.h - one specification at every level ---------------*- C++ -*-===//
//
// The moa level is what the specification means. dnf, onf and lifted onf are
// interpreted, the code for this CPU is run, and every finite value of the
// specification is compared:
//
//   integers, booleans and floats whose sums are exact: equal;
//   other floats: within a bound that follows from the problem. The normal forms are
//   evaluated several times with every rounding, of the type that is computed in,
//   going up or down at random; how far a value moves, times a factor, is how far
//   it may be off.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_TEST_RANDOM_CHECK_H
#define MOA_TEST_RANDOM_CHECK_H

#include "Inputs.h"

namespace moa::random {

struct CheckOptions {
  unsigned codeEvery = 1;    ///< run the CPU code of every so manieth seed; 0: of none
  unsigned optimization = 0; ///< of LLVM
  std::string processor;     ///< LLVM's name of one that this machine is; empty: this one
  /// Rounds of sizes to try, see chooseSizes, or the sizes alone.
  std::vector<unsigned> rounds = {0, 1, 2};
  std::optional<Sizes> sizes;
  /// A level whose results get a fault of a thousandth in one element: the check of the
  /// check.
  std::string spoil;
};

/// The failure of a program whose indices are not all proved to be inside.
inline constexpr const char *kNoProof = "bounds are not proved";

struct Result {
  /// What went wrong, as a class: "rejected", "onf differs", …; empty: nothing.
  std::string failure;
  /// The values that disagree, the messages.
  std::string detail;
  unsigned round = 0;
  Sizes sizes;
  /// Values compared for equality, within a bound, and not because the
  /// specification has none that is finite.
  uint64_t equal = 0, bounded = 0, infinite = 0;
  /// Whether there was a size to try.
  bool tried = false;
  double seconds = 0;
};

Result check(const Program &program, const CheckOptions &options);

/// The inputs of a round as text.
std::string printInputs(const Program &program, unsigned round, const Sizes &sizes);

} // namespace moa::random

#endif // MOA_TEST_RANDOM_CHECK_H
