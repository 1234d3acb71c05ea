//===- RandomKernelsTest.cpp - levels of kernels made at random -----------===//
//
// Kernels of a dozen random operators over three axes, with masks, cascades
// and views. Where the specification has a finite value every level has it.
// MOA_RANDOM_KERNELS sets how many kernels are tried, MOA_RANDOM_SEED the
// first seed, MOA_RANDOM_PRINT prints each kernel before it is lowered.
//
//===----------------------------------------------------------------------===//
#include "RandomKernels.h"
#include "gtest/gtest.h"
#include <cmath>
#include <cstdlib>

using namespace moa;
using namespace moa::test;

namespace {

bool agree(double got, double expected) {
  return std::fabs(got - expected) <= 1e-9 * std::max(1.0, std::fabs(expected));
}
/// R1 moves infinite factors out of sums of both signs, and a NaN appears or
/// vanishes: then only finite values are compared.
bool agreeWhereFinite(double got, double expected) { return !std::isfinite(expected) || agree(got, expected); }
bool agreeEverywhere(double got, double expected) {
  return std::isfinite(expected) ? agree(got, expected) : !std::isfinite(got);
}

std::string textOf(mlir::Operation *op) {
  std::string text;
  llvm::raw_string_ostream os(text);
  op->print(os);
  return text;
}

void compareLevels(unsigned seed, const std::vector<std::string> &disabled) {
  RandomKernel kernel = makeRandomKernel(seed);
  if (std::getenv("MOA_RANDOM_PRINT"))
    llvm::errs() << textOf(*kernel.module) << "\n";
  Levels levels(std::move(kernel.module), disabled);
  ASSERT_TRUE(levels.valid()) << textOf(levels.getMoA());
  bool hoists = !llvm::is_contained(disabled, "R1");
  for (const Sizes &sizes :
       std::vector<Sizes>{{{"N", 4}, {"M", 5}}, {{"N", 1}, {"M", 1}}, {{"N", 2}, {"M", 0}}, {{"N", 0}, {"M", 3}}}) {
    KernelInputs inputs = randomInputs(levels.getMoA(), kernel.inputs, sizes, seed);
    auto expected = run(levels.getMoA(), inputs);
    expectSame(run(levels.getDNF(), inputs), expected);
    auto folded = run(levels.getONF(), inputs);
    ASSERT_EQ(folded.size(), expected.size());
    for (size_t k = 0; k < folded.size(); ++k)
      for (size_t i = 0; i < folded[k].data.size(); ++i)
        ASSERT_PRED2(hoists ? agreeWhereFinite : agreeEverywhere, folded[k].data[i], expected[k].data[i])
            << "output " << k << ", element " << i << ", N=" << sizes.at("N") << " M=" << sizes.at("M") << "\n"
            << textOf(levels.getMoA());
  }
}

void compareAll(const std::vector<std::string> &disabled) {
  unsigned first = getVariable("MOA_RANDOM_SEED", 1);
  for (unsigned k = 0; k < getVariable("MOA_RANDOM_KERNELS", 150); ++k) {
    SCOPED_TRACE("seed " + std::to_string(first + k));
    compareLevels(first + k, disabled);
    if (testing::Test::HasFatalFailure())
      return;
  }
}

TEST(RandomKernels, LevelsAgreeWithAllRules) { compareAll({}); }
TEST(RandomKernels, LevelsAgreeWithoutR1) { compareAll({"R1"}); }
TEST(RandomKernels, LevelsAgreeWithoutR3) { compareAll({"R3"}); }
TEST(RandomKernels, LevelsAgreeWithoutRules) { compareAll({"R0", "R1", "R2", "R3", "R4", "R5", "R6", "R7"}); }

TEST(RandomKernels, TheOrderOfLawsDoesNotMatter) {
  unsigned first = getVariable("MOA_RANDOM_SEED", 1);
  for (unsigned k = 0; k < getVariable("MOA_RANDOM_KERNELS", 100); ++k) {
    std::string text;
    for (unsigned order : {0, 1, 2, 3}) {
      Levels levels(makeRandomKernel(first + k).module, {}, order);
      ASSERT_TRUE(levels.valid());
      std::string other = textOf(levels.getDNF());
      if (order == 0)
        text = other;
      ASSERT_EQ(other, text) << "kernel " << first + k << ", order " << order << "\n" << textOf(levels.getMoA());
    }
  }
}

} // namespace
