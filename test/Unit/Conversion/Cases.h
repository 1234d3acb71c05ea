//===- Cases.h - the kernels the levels are compared on ---------*- C++ -*-===//
#ifndef MOA_TEST_UNIT_CONVERSION_CASES_H
#define MOA_TEST_UNIT_CONVERSION_CASES_H

#include "KernelBuilder.h"
#include <functional>
#include <ostream>

namespace moa::test {

struct Case {
  std::string name;
  std::vector<std::string> symbols;
  /// Adds parameters, operators and outputs.
  std::function<void(KernelBuilder &)> build;
  std::vector<Sizes> sizes;
  /// Nothing is summed, so onf computes the same bits.
  bool exact = false;
};
inline void PrintTo(const Case &value, std::ostream *os) { *os << value.name; }

/// Every operator of the algebra.
std::vector<Case> operatorCases();
/// Reductions that read results of reductions, with and without masks.
std::vector<Case> cascadeCases();

} // namespace moa::test

#endif // MOA_TEST_UNIT_CONVERSION_CASES_H
