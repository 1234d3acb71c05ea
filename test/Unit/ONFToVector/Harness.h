//===- Harness.h - compile onf text for this machine and run it -*- C++ -*-===//
#ifndef MOA_TEST_UNIT_ONFTOVECTOR_HARNESS_H
#define MOA_TEST_UNIT_ONFTOVECTOR_HARNESS_H

#include "lib/Conversion/ONFToVector/ONFToVector.h"
#include "mlir/ExecutionEngine/ExecutionEngine.h"
#include "mlir/IR/MLIRContext.h"
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace moa::test {

/// A compiled onf.kernel.
class Kernel {
public:
  /// Parses, lowers and compiles. On failure null, and the diagnostics in `error`.
  static std::unique_ptr<Kernel> compile(llvm::StringRef text, const ONFToVectorOptions &options, std::string &error);
  /// Runs every nest over all of its tasks, one task per call when `single`.
  void run(const std::vector<int64_t> &slots, bool single = false);
  /// Runs the first tasks of nest 0, about the given fraction of them; returns
  /// the fraction that ran.
  double runRange(const std::vector<int64_t> &slots, double fraction);
  int64_t getScratchBytes() const { return scratchBytes; }

private:
  mlir::MLIRContext context;
  std::unique_ptr<mlir::ExecutionEngine> engine;
  std::string name;
  int64_t nests = 0, scratchBytes = 0;
};

/// The slots of an array: its data and row-major strides, or the given ones.
void pushArray(std::vector<int64_t> &slots, const void *data, const std::vector<int64_t> &shape);
void pushStrided(std::vector<int64_t> &slots, const void *data, const std::vector<int64_t> &strides);
int64_t floatSlot(float value);
int64_t doubleSlot(double value);

/// bfloat16 by rounding to nearest even, and back.
uint16_t toBF16(float value);
float fromBF16(uint16_t bits);

/// ‖a − b‖ / ‖b‖.
double relativeError(const std::vector<double> &a, const std::vector<double> &b);

} // namespace moa::test

#endif // MOA_TEST_UNIT_ONFTOVECTOR_HARNESS_H
