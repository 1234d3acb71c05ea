//===- BindingTest.cpp - symbols from shapes, and refused calls -----------===//
#include "TestSupport.h"

using namespace moa;
using namespace moa::test;

namespace {

constexpr char kKernel[] = R"mlir(
!q = !moa.array<[B, H, N], f32>
!k = !moa.array<[B, "H/G", "N + P"], f32>
!r = !moa.array<[B, H, N], f32>
moa.kernel @bind attributes {symbols = ["B", "H", "G", "N", "P"], requires = ["H%G == 0", "N <= 8"],
    arg_names = ["q", "k", "n"], result_names = ["r"], result_types = [!r]} {
^bb0(%q: !q, %k: !k, %n: !moa.array<[], i32>):
  moa.return %q : !r
}
)mlir";

using Shapes = std::vector<std::vector<int64_t>>;

std::string bindError(const Shapes &shapes, std::map<std::string, int64_t> given) {
  KernelText text(kKernel);
  auto symbols = bindSymbols(text.get(), shapes, given);
  if (!symbols)
    return llvm::toString(symbols.takeError());
  ADD_FAILURE() << "expected an error";
  return "";
}

TEST(Binding, SolvesPlainAndLinearExtents) {
  KernelText text(kKernel);
  auto symbols = bindSymbols(text.get(), {{2, 6, 3}, {2, 2, 10}, {}}, {{"G", 3}});
  ASSERT_TRUE(bool(symbols)) << llvm::toString(symbols.takeError());
  std::map<std::string, int64_t> expected = {{"B", 2}, {"G", 3}, {"H", 6}, {"N", 3}, {"P", 7}};
  EXPECT_EQ(*symbols, expected);
}

TEST(Binding, SaysWhatIsWrong) {
  EXPECT_EQ(bindError({{2, 6, 3}, {2, 2, 10}}, {{"G", 3}}), "the kernel has 3 parameters, but got 2");
  EXPECT_EQ(bindError({{2, 6, 3}, {2, 10}, {}}, {{"G", 3}}), "'k' has rank 3, but got an array of shape [2, 10]");
  EXPECT_EQ(bindError({{2, 6, 3}, {4, 2, 10}, {}}, {{"G", 3}}), "axis 0 of 'k' has extent 4, but 'B' is 2");
  EXPECT_EQ(bindError({{2, 6, 3}, {2, 4, 10}, {}}, {{"G", 3}}),
            "axis 1 of 'k' has extent 4, but 'H/G' is 2 with G = 3, H = 6");
  EXPECT_EQ(bindError({{2, 6, 3}, {2, 2, 10}, {}}, {}),
            "symbol 'G' of 'H/G' has no value: no argument's shape determines it, "
            "give it");
  EXPECT_EQ(bindError({{2, 6, 3}, {2, 1, 10}, {}}, {{"G", 4}}),
            "the constraint 'H%G == 0' does not hold with G = 4, H = 6");
  EXPECT_EQ(bindError({{2, 6, 9}, {2, 2, 10}, {}}, {{"G", 3}}), "the constraint 'N <= 8' does not hold with N = 9");
  EXPECT_EQ(bindError({{2, 6, 3}, {2, 2, 1}, {}}, {{"G", 3}}), "symbol 'P' is negative: -2");
  EXPECT_EQ(bindError({{2, 6, 3}, {2, 2, 10}, {}}, {{"G", 0}}), "'H/G' divides by zero with G = 0, H = 6");
  EXPECT_EQ(bindError({{2, 6, 3}, {2, 2, 10}, {}}, {{"G", 3}, {"X", 1}}), "the kernel has no symbol 'X'");
}

TEST(Binding, ChecksTheData) {
  KernelText text(kKernel);
  KernelInputs inputs;
  inputs.symbols = {{"G", 1}};
  inputs.arrays = {random({1, 1, 2}, 1), random({1, 1, 2}, 2), scalar(1.5)};
  EXPECT_EQ(errorOf(text.get(), inputs), "'n' holds integers, but got 1.500000");
  inputs.arrays[2] = scalar(1);
  inputs.arrays[0].data.pop_back();
  EXPECT_EQ(errorOf(text.get(), inputs), "'q' of shape [1, 1, 2] needs 2 elements, but got 1");
}

TEST(Binding, ShapesOfOutputs) {
  KernelText text(kKernel);
  auto shapes = outputShapes(text.get(), {{"B", 1}, {"H", 2}, {"N", 3}});
  ASSERT_TRUE(bool(shapes));
  EXPECT_EQ(*shapes, Shapes({{1, 2, 3}}));
}

TEST(Binding, OnlyKernelsAreInterpreted) {
  KernelText text("module { module {} }");
  EXPECT_NE(errorOf(text.get(), {}).find("expected a kernel of moa, dnf or onf"), std::string::npos);
}

} // namespace
