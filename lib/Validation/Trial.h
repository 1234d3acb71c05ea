//===- Trial.h - the values of two levels at some points ---------*- C++ -*-===//
//
// V6 of docs/Spec.md, section 10: sizes and elements are picked at random, then sizes
// around the numbers of the kernel, and the interpreter gives the values that a kernel
// has there at both levels.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_VALIDATION_TRIAL_H
#define MOA_VALIDATION_TRIAL_H

#include "dialects/ONF/IR/ONF.h"
#include "lib/Interpreter/Interpreter.h"
#include "mlir/Support/LLVM.h"
#include <optional>

namespace moa::validation {

/// Arguments of one call, elements of the outputs, and what they are.
struct Point {
  KernelInputs inputs;
  std::vector<std::vector<std::vector<int64_t>>> elements; ///< indices, per output
  std::vector<std::vector<double>> values;                 ///< of these, per output
};

/// Two values of one element.
struct Difference {
  unsigned output = 0;
  std::vector<int64_t> index;
  double expected = 0, found = 0;
  std::string error; ///< why there is no value instead
  std::string sizes; ///< as of Trial::getSizes
};

/// A kernel at a level, and points where it has values.
class Trial {
public:
  /// Looks for points of `kernel`, an onf.kernel or a dnf.kernel of which `loops` is the
  /// operational form; what that costs decides how large they are.
  Trial(mlir::Operation *kernel, onf::KernelOp loops);

  const std::optional<Point> &getPoint() const { return point; }
  /// "M = 5, N = 3" of the point picked at random, or nothing where there are no symbols.
  std::string getSizes() const;
  /// The points with sizes around numbers of the kernel.
  size_t countEdges() const { return edges.size(); }
  /// Why there is no point.
  const std::string &getReason() const { return reason; }

  /// Where `other` has not the values of the kernel, up to what rounding explains.
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
