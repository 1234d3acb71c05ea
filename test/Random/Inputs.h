//===- Inputs.h - sizes and values for a random specification ---*- C++ -*-===//
#ifndef MOA_TEST_RANDOM_INPUTS_H
#define MOA_TEST_RANDOM_INPUTS_H

#include "Program.h"
#include "ProtectedPages.h"
#include "moa/Compiler.h"
#include <optional>

namespace moa::random {

using Sizes = std::map<std::string, int64_t>;

/// Values of the symbols that satisfy what the program needs, with arrays of moderate
/// size; `round` 0 takes 0 to 9, 1 takes 0 to 2, and 2 up to 40. Nothing if a hundred
/// attempts find none.
std::optional<Sizes> chooseSizes(const Program &program, unsigned round);

/// One array per input parameter of the compiled kernel, the same for the same seed.
std::vector<ReferenceArray> chooseInputs(const Program &program, const KernelInfo &info,
                                         const std::vector<std::vector<int64_t>> &shapes, const Sizes &sizes,
                                         unsigned round);

/// `value` rounded to a float type by name, to nearest even.
double roundToType(double value, const std::string &type);

/// An argument in memory: row-major with gaps, at a protected page, and bytes around it that nobody
/// may write.
class Memory {
public:
  /// Gaps of up to `gap` elements after each axis.
  Memory(const std::vector<int64_t> &shape, const std::string &type, unsigned gap, Placement placement);
  void fill(const std::vector<double> &values);
  std::vector<double> read() const;
  /// Whether what is not an element is as it was.
  bool isIntact() const;
  const DLTensor *tensor() const { return &descriptor; }

private:
  size_t offsetOf(std::vector<int64_t> &index) const;
  template <typename F> void forEach(F f) const;
  std::string type;
  unsigned width;
  std::vector<int64_t> shape, strides;
  std::unique_ptr<ProtectedPages> pages;
  unsigned char *data = nullptr;
  DLTensor descriptor = {};
};

} // namespace moa::random

#endif // MOA_TEST_RANDOM_INPUTS_H
