//===- TestSupport.h - parsing and arrays of the interpreter's tests ------===//
#ifndef MOA_TEST_UNIT_INTERPRETER_TESTSUPPORT_H
#define MOA_TEST_UNIT_INTERPRETER_TESTSUPPORT_H

#include "dialects/DNF/IR/DNF.h"
#include "dialects/ONF/IR/ONF.h"
#include "lib/Interpreter/Interpreter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"
#include <cmath>
#include <functional>
#include <limits>
#include <random>

namespace moa::test {

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline const double kNaN = std::numeric_limits<double>::quiet_NaN();

/// A module and the first kernel in it.
class KernelText {
public:
  explicit KernelText(llvm::StringRef text) {
    load();
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    find();
  }
  static KernelText file(const std::string &name) { return KernelText(name, 0); }
  mlir::Operation *get() const { return kernel; }

private:
  KernelText(const std::string &name, int) {
    load();
    module = mlir::parseSourceFile<mlir::ModuleOp>(std::string(MOA_TEST_INPUTS) + "/" + name, &context);
    find();
  }
  void load() {
    context.loadDialect<MoADialect, dnf::DNFDialect, onf::ONFDialect, mlir::arith::ArithDialect,
                        mlir::math::MathDialect, mlir::memref::MemRefDialect>();
  }
  void find() {
    EXPECT_TRUE(module);
    if (module)
      kernel = &module->getBody()->front();
  }
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::Operation *kernel = nullptr;
};

inline int64_t count(llvm::ArrayRef<int64_t> shape) {
  int64_t n = 1;
  for (int64_t extent : shape)
    n *= extent;
  return n;
}

inline Array scalar(double value) { return {{}, {value}}; }
inline Array vector(std::vector<double> data) { return {{static_cast<int64_t>(data.size())}, data}; }
inline Array random(std::vector<int64_t> shape, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<double> normal;
  Array array{shape, {}};
  for (int64_t k = 0; k < count(shape); ++k)
    array.data.push_back(normal(engine));
  return array;
}

/// The outputs; a failure of the run fails the test.
inline std::vector<Array> run(mlir::Operation *kernel, const KernelInputs &inputs,
                              const InterpretOptions &options = {}) {
  auto outputs = interpret(kernel, inputs, options);
  if (outputs)
    return *outputs;
  ADD_FAILURE() << llvm::toString(outputs.takeError());
  return {};
}

/// The text of the error a run gives; fails the test if it gives none.
inline std::string errorOf(mlir::Operation *kernel, const KernelInputs &inputs, const InterpretOptions &options = {}) {
  auto outputs = interpret(kernel, inputs, options);
  if (!outputs)
    return llvm::toString(outputs.takeError());
  ADD_FAILURE() << "expected an error";
  return "";
}

/// Equal up to rounding; NaN and infinities at the same places.
inline void expectClose(const Array &got, const Array &expected, double tolerance = 1e-13) {
  ASSERT_EQ(got.shape, expected.shape);
  ASSERT_EQ(got.data.size(), expected.data.size());
  for (size_t k = 0; k < got.data.size(); ++k) {
    if (std::isfinite(expected.data[k]))
      ASSERT_NEAR(got.data[k], expected.data[k], tolerance * (1 + std::fabs(expected.data[k]))) << "element " << k;
    else if (std::isnan(expected.data[k]))
      ASSERT_TRUE(std::isnan(got.data[k])) << "element " << k;
    else
      ASSERT_EQ(got.data[k], expected.data[k]) << "element " << k;
  }
}

} // namespace moa::test

#endif // MOA_TEST_UNIT_INTERPRETER_TESTSUPPORT_H
