//===- Trial.h - the values of two levels at some points --------*- C++ -*-===//
//
// V6 of docs/Spec.md, section 10. The interpreter runs a kernel at both levels and compares the
// values. One point has random sizes and elements; further points have sizes around the numbers of
// the kernel.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_VALIDATION_TRIAL_H
#define MOA_VALIDATION_TRIAL_H

#include "dialects/ONF/IR/ONF.h"
#include "lib/Interpreter/Interpreter.h"
#include "mlir/Support/LLVM.h"
#include <optional>

namespace moa::validation {

/// The arguments of one call, some elements of each output, and their expected values.
struct Point {
  KernelInputs inputs;
  std::vector<std::vector<std::vector<int64_t>>> elements; ///< indices, per output
  std::vector<std::vector<double>> values;                 ///< of these elements, per output
};

struct Difference {
  unsigned output = 0;
  std::vector<int64_t> index;
  double expected = 0, found = 0;
  std::string error; ///< why it has no value
  std::string sizes; ///< as by Trial::getSizes
};

/// A kernel at one level, with points at which it has values.
class Trial {
public:
  /// Looks for points of `kernel`, an onf.kernel or a dnf.kernel. Its operational form `loops`
  /// gives the cost, which limits the sizes.
  Trial(mlir::Operation *kernel, onf::KernelOp loops);

  const std::optional<Point> &getPoint() const { return point; }
  /// Returns the sizes of the random point, such as "M = 5, N = 3". Empty if there are no symbols.
  std::string getSizes() const;
  /// Returns the number of points with sizes around numbers of the kernel.
  size_t countEdges() const { return edges.size(); }
  /// Returns the reason why there is no point.
  const std::string &getReason() const { return reason; }

  /// Returns an element at which `other` differs from the kernel by more than rounding explains.
  std::optional<Difference> compare(mlir::Operation *other) const;

private:
  using Sizes = std::map<std::string, int64_t>;
  bool tryPoint(uint64_t seed);
  std::optional<Point> makePoint(uint64_t seed, const Sizes &sizes, bool takesLast);
  std::optional<KernelInputs> pickInputs(uint64_t seed, const Sizes &sizes);
  std::optional<Sizes> pickSizes(uint64_t seed);
  void tryEdges();
  std::optional<Difference> compareAt(mlir::Operation *other, const Point &at) const;
  bool isExplained(mlir::Operation *other, const Point &at, const Difference &difference) const;

  mlir::Operation *kernel;
  onf::KernelOp loops;
  std::optional<Point> point;
  std::vector<Point> edges;
  std::string reason;
};

} // namespace moa::validation

#endif // MOA_VALIDATION_TRIAL_H
