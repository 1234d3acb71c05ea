//===- DeviceRandomTest.cpp - device programs of kernels made at random ---===//
//
// The kernels of RandomKernels.h at the device level. MOA_RANDOM_DEVICE sets how many
// are tried, MOA_RANDOM_SEED the first seed.
//
//===----------------------------------------------------------------------===//
#include "../Conversion/RandomKernels.h"
#include "DeviceSupport.h"

using namespace moa;
using namespace moa::test;

namespace {

void compare(Compilation &unit, KernelOp kernel, const KernelInputs &inputs) {
  std::vector<Array> expected = test::run(kernel, inputs);
  std::vector<ReferenceArray> arrays;
  for (const Array &array : inputs.arrays)
    arrays.push_back({array.shape, array.data});
  auto outputs = unit.runDevice("", arrays);
  ASSERT_TRUE(outputs) << unit.renderDiagnostics();
  ASSERT_EQ(outputs->size(), expected.size());
  for (auto [k, output] : llvm::enumerate(*outputs))
    for (auto [got, want] : llvm::zip_equal(output.data, expected[k].data))
      // As on the levels, only finite values: R1 moves infinities.
      ASSERT_TRUE(!std::isfinite(want) || std::fabs(got - want) <= 1e-9 * std::max(1.0, std::fabs(want)))
          << "output " << k << ": " << got << " for " << want;
}

TEST(DeviceRandom, AgreesWithTheSpecification) {
  unsigned first = getVariable("MOA_RANDOM_SEED", 1), tried = 0, run = 0;
  for (unsigned k = 0; k < getVariable("MOA_RANDOM_DEVICE", 60); ++k, ++tried) {
    SCOPED_TRACE("seed " + std::to_string(first + k));
    RandomKernel kernel = makeRandomKernel(first + k);
    std::string text;
    llvm::raw_string_ostream(text) << *kernel.module;
    Compilation unit = Compiler().compileText(text, "random.mlir");
    if (!unit.print(Level::Device)) {
      // States of run-time extent are refused, and nothing else is.
      ASSERT_NE(unit.renderDiagnostics().find("keeps states in registers"), std::string::npos)
          << unit.renderDiagnostics() << text;
      continue;
    }
    ++run;
    auto op = *kernel.module->getOps<KernelOp>().begin();
    for (const Sizes &sizes : std::vector<Sizes>{{{"N", 4}, {"M", 5}},
                                                 {{"N", 1}, {"M", 1}},
                                                 {{"N", 2}, {"M", 0}},
                                                 {{"N", 0}, {"M", 3}},
                                                 {{"N", 13}, {"M", 130}}}) {
      SCOPED_TRACE("N=" + std::to_string(sizes.at("N")) + " M=" + std::to_string(sizes.at("M")));
      compare(unit, op, randomInputs(op, kernel.inputs, sizes, first + k));
      if (testing::Test::HasFatalFailure())
        return;
    }
  }
  EXPECT_GE(3 * run, tried);
}

} // namespace
