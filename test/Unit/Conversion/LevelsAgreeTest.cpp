//===- LevelsAgreeTest.cpp - moa, dnf and onf have one meaning ------------===//
//
// Every case is interpreted before and after ψ-reduction, where the bits must
// be equal, and after the derivation of folds, with all rules and without.
//
//===----------------------------------------------------------------------===//
#include "Cases.h"
#include "gtest/gtest.h"

using namespace moa;
using namespace moa::test;

namespace {

class LevelsAgree : public testing::TestWithParam<Case> {
protected:
  struct Built {
    mlir::OwningOpRef<mlir::ModuleOp> module;
    std::vector<Input> inputs;
  };
  Built build() {
    KernelBuilder builder(GetParam().symbols);
    GetParam().build(builder);
    auto module = builder.finish();
    return {std::move(module), builder.getInputs()};
  }
  void compare(const std::vector<std::string> &disabled) {
    Built built = build();
    Levels levels(std::move(built.module), disabled);
    ASSERT_TRUE(levels.valid());
    unsigned seed = 1;
    for (const Sizes &sizes : GetParam().sizes) {
      std::string trace;
      for (auto &[name, value] : sizes)
        trace += name + "=" + std::to_string(value) + " ";
      SCOPED_TRACE(trace);
      KernelInputs inputs = randomInputs(levels.getMoA(), built.inputs, sizes, seed++);
      auto expected = run(levels.getMoA(), inputs);
      expectSame(run(levels.getDNF(), inputs), expected);
      auto folded = run(levels.getONF(), inputs);
      if (GetParam().exact)
        expectSame(folded, expected);
      else
        expectClose(folded, expected);
    }
  }
};

TEST_P(LevelsAgree, WithAllRules) { compare({}); }
TEST_P(LevelsAgree, WithoutR0) { compare({"R0"}); }
TEST_P(LevelsAgree, WithoutR1) { compare({"R1"}); }
TEST_P(LevelsAgree, WithoutR2) { compare({"R2"}); }
TEST_P(LevelsAgree, WithoutR3) { compare({"R3"}); }
TEST_P(LevelsAgree, WithoutR5) { compare({"R5"}); }
TEST_P(LevelsAgree, WithoutR6) { compare({"R6"}); }
TEST_P(LevelsAgree, WithoutR7) { compare({"R7"}); }
TEST_P(LevelsAgree, WithoutRules) { compare({"R0", "R1", "R2", "R3", "R4", "R5", "R6", "R7"}); }

std::string textOf(mlir::Operation *op) {
  std::string text;
  llvm::raw_string_ostream os(text);
  op->print(os);
  return text;
}

TEST_P(LevelsAgree, TheOrderOfLawsDoesNotMatter) {
  std::string first;
  for (unsigned seed = 0; seed < 8; ++seed) {
    Levels levels(build().module, {}, seed);
    ASSERT_TRUE(levels.valid());
    std::string text = textOf(levels.getDNF());
    if (seed == 0)
      first = text;
    EXPECT_EQ(text, first) << "seed " << seed;
  }
}

std::string nameOf(const testing::TestParamInfo<Case> &info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Operators, LevelsAgree, testing::ValuesIn(operatorCases()), nameOf);
INSTANTIATE_TEST_SUITE_P(Cascades, LevelsAgree, testing::ValuesIn(cascadeCases()), nameOf);

} // namespace
