//===- RandomCodeTest.cpp - compiled code of kernels made at random -------===//
//
// The kernels of RandomKernels.h, compiled for this machine and run. Where the
// specification has a finite value the code has it. MOA_RANDOM_CODE sets how
// many kernels are tried, MOA_RANDOM_SEED the first seed.
//
//===----------------------------------------------------------------------===//
#include "../Conversion/RandomKernels.h"
#include "moa/Compiler.h"
#include "moa/DLPack.h"
#include "gtest/gtest.h"
#include <cmath>
#include <cstring>

using namespace moa;
using namespace moa::test;

namespace {

/// An argument in memory, with its descriptor.
struct Memory {
  std::vector<int64_t> shape;
  std::vector<char> bytes;
  DLTensor tensor = {};

  Memory(const std::vector<int64_t> &dims, mlir::Type type) : shape(dims) {
    int64_t count = 1;
    for (int64_t extent : shape)
      count *= extent;
    bytes.assign(count * size(type) + 8, 'x');
    tensor.data = bytes.data();
    tensor.device = {/*CPU*/ 1, 0};
    tensor.ndim = shape.size();
    tensor.shape = shape.data();
    tensor.dtype.code = type.isF64() ? 2 : type.isInteger(1) ? 6 : 0;
    tensor.dtype.bits = 8 * size(type);
    tensor.dtype.lanes = 1;
  }
  static size_t size(mlir::Type type) { return type.isInteger(1) ? 1 : 8; }
  void put(size_t k, mlir::Type type, double value) {
    if (type.isInteger(1)) {
      bytes[k] = value != 0;
      return;
    }
    int64_t integer = value;
    std::memcpy(&bytes[8 * k], type.isF64() ? (const void *)&value : &integer, 8);
  }
  double get(size_t k) const {
    double value;
    std::memcpy(&value, &bytes[8 * k], 8);
    return value;
  }
};

void compare(const Kernel &code, KernelOp kernel, const KernelInputs &inputs) {
  std::vector<Array> expected = run(kernel, inputs);
  std::vector<std::unique_ptr<Memory>> memory;
  std::vector<const DLTensor *> arrays;
  std::vector<Scalar> scalars;
  for (auto [argument, array] : llvm::zip(kernel.getBody().getArguments(), inputs.arrays)) {
    mlir::Type type = KernelBuilder::typeOf(argument).getElementType();
    if (array.shape.empty()) {
      scalars.push_back(array.data[0]);
      continue;
    }
    memory.push_back(std::make_unique<Memory>(array.shape, type));
    for (size_t k = 0; k < array.data.size(); ++k)
      memory.back()->put(k, type, array.data[k]);
    arrays.push_back(&memory.back()->tensor);
  }
  size_t first = memory.size();
  for (const Array &array : expected) {
    memory.push_back(std::make_unique<Memory>(array.shape, typeNamed("f64")));
    arrays.push_back(&memory.back()->tensor);
  }
  std::string message;
  ASSERT_EQ(code(arrays, scalars, &message), 0) << message;
  for (size_t output = 0; output < expected.size(); ++output)
    for (size_t k = 0; k < expected[output].data.size(); ++k) {
      // As on the levels, only finite values: R1 moves infinities.
      double want = expected[output].data[k], got = memory[first + output]->get(k);
      ASSERT_TRUE(!std::isfinite(want) || std::fabs(got - want) <= 1e-9 * std::max(1.0, std::fabs(want)))
          << "output " << output << ", element " << k << ": " << got << " for " << want;
    }
}

TEST(RandomCode, AgreesWithTheSpecification) {
  unsigned first = getVariable("MOA_RANDOM_SEED", 1);
  for (unsigned k = 0; k < getVariable("MOA_RANDOM_CODE", 24); ++k) {
    SCOPED_TRACE("seed " + std::to_string(first + k));
    RandomKernel kernel = makeRandomKernel(first + k);
    std::string text;
    llvm::raw_string_ostream(text) << *kernel.module;
    Compilation unit = Compiler().compileText(text, "random.mlir");
    std::optional<Kernel> code = unit.load();
    ASSERT_TRUE(code) << unit.renderDiagnostics() << text;
    auto op = *kernel.module->getOps<KernelOp>().begin();
    for (const Sizes &sizes : std::vector<Sizes>{{{"N", 4}, {"M", 5}},
                                                 {{"N", 1}, {"M", 1}},
                                                 {{"N", 2}, {"M", 0}},
                                                 {{"N", 0}, {"M", 3}},
                                                 {{"N", 37}, {"M", 70}}}) {
      SCOPED_TRACE("N=" + std::to_string(sizes.at("N")) + " M=" + std::to_string(sizes.at("M")));
      compare(*code, op, randomInputs(op, kernel.inputs, sizes, first + k));
      if (testing::Test::HasFatalFailure())
        return;
    }
  }
}

} // namespace
