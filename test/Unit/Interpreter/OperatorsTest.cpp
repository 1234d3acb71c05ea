//===- OperatorsTest.cpp - each moa operator by its definition ------------===//
#include "TestSupport.h"

using namespace moa;
using namespace moa::test;

namespace {

/// A kernel with the arguments (a : f64[2, 3], n : index scalar, p : i1[3]) and
/// one result of the given type.
std::string kernel(const std::string &body, const std::string &result) {
  return R"mlir(
!a = !moa.array<[2, 3], f64>
!v = !moa.array<[3], f64>
!u = !moa.array<[2], f64>
!x = !moa.array<[], f64>
!i = !moa.array<[3], index>
!z = !moa.array<[], index>
!b = !moa.array<[3], i1>
!r = )mlir" +
         result + R"mlir(
moa.kernel @k attributes {symbols = [], requires = [], arg_names = ["a", "n", "p"],
    result_names = ["r"], result_types = [!r]} {
^bb0(%a: !a, %n: !z, %p: !b):
)mlir" + body +
         "\n  moa.return %r : !r\n}\n";
}

KernelInputs inputs(int64_t n = 1) {
  KernelInputs in;
  in.arrays = {{{2, 3}, {1, 2, 3, 4, 5, 6}}, scalar(n), vector({1, 0, 1})};
  return in;
}

std::vector<double> eval(const std::string &body, const std::string &result, int64_t n = 1) {
  KernelText text(kernel(body, result));
  auto out = run(text.get(), inputs(n));
  return out.empty() ? std::vector<double>() : out[0].data;
}

std::string evalError(const std::string &body, const std::string &result, int64_t n = 1) {
  KernelText text(kernel(body, result));
  return errorOf(text.get(), inputs(n));
}

using V = std::vector<double>;

TEST(Operators, Transpose) {
  EXPECT_EQ(eval("%r = moa.transpose %a perm [1, 0] : !a -> !r", "!moa.array<[3, 2], f64>"), V({1, 4, 2, 5, 3, 6}));
}

TEST(Operators, TransposeOfThreeAxes) {
  // Axis k of the result is axis perm[k] of the input.
  EXPECT_EQ(eval(R"(%t = moa.reshape %a : !a -> !moa.array<[1, 2, 3], f64>
      %r = moa.transpose %t perm [2, 0, 1] : !moa.array<[1, 2, 3], f64> -> !r)",
                 "!moa.array<[3, 1, 2], f64>"),
            V({1, 4, 2, 5, 3, 6}));
}

TEST(Operators, Reshape) {
  EXPECT_EQ(eval("%r = moa.reshape %a : !a -> !r", "!moa.array<[3, 2], f64>"), V({1, 2, 3, 4, 5, 6}));
}

TEST(Operators, Slice) {
  EXPECT_EQ(eval(R"(%r = moa.slice %a axis 1 start "1" count "2" : !a -> !r)", "!moa.array<[2, 2], f64>"),
            V({2, 3, 5, 6}));
}

TEST(Operators, SliceBeyondTheEnd) {
  EXPECT_NE(evalError(R"(%r = moa.slice %a axis 1 start "2" count "2" : !a -> !r)", "!moa.array<[2, 2], f64>")
                .find("index [0, 3] is outside an array of shape [2, 3], for element "
                      "[0, 1] (needed by output 'r')"),
            std::string::npos);
}

TEST(Operators, Reverse) {
  EXPECT_EQ(eval("%r = moa.reverse %a axis 1 : !a -> !r", "!moa.array<[2, 3], f64>"), V({3, 2, 1, 6, 5, 4}));
}

TEST(Operators, Rotate) {
  for (const char *by : {"1", "-2", "7"})
    EXPECT_EQ(eval("%r = moa.rotate %a by \"" + std::string(by) + "\" axis 1 : !a -> !r", "!moa.array<[2, 3], f64>"),
              V({2, 3, 1, 5, 6, 4}));
}

TEST(Operators, Psi) {
  // Element (k, l) is a[l, (1 − k) mod 3]: the frame leads.
  EXPECT_EQ(eval(R"(%i = moa.iota "3" -> !i
      %c = moa.extent "3" -> !z
      %j = moa.map sub(%n, %i) axes [array<i64>, array<i64: 0>] : (!z, !i) -> !i
      %k = moa.map mod(%j, %c) axes [array<i64: 0>, array<i64>] : (!i, !z) -> !i
      %r = moa.psi %a[%k] dims [1] axes [array<i64: 0>] frame 1 : (!a, !i) -> !r)",
                 "!moa.array<[3, 2], f64>"),
            V({2, 5, 1, 4, 3, 6}));
  EXPECT_EQ(eval("%r = moa.psi %a[%n] dims [0] axes [array<i64>] frame 0 : "
                 "(!a, !z) -> !r",
                 "!v"),
            V({4, 5, 6}));
}

TEST(Operators, PsiOutsideNamesTheValues) {
  std::string error = evalError("%r = moa.psi %a[%n] dims [0] axes [array<i64>] frame 0 : (!a, !z) -> !r", "!v", 2);
  EXPECT_NE(error.find("index [2, 0] is outside an array of shape [2, 3]"), std::string::npos) << error;
}

TEST(Operators, SelectIgnoresTheOtherBranch) {
  // select(i < 2, a[i, 0], −1): a[2, 0] does not exist and is not needed.
  EXPECT_EQ(eval(R"(%i = moa.iota "3" -> !i
      %z = moa.extent "0" -> !z
      %two = moa.extent "2" -> !z
      %e = moa.psi %a[%i, %z] dims [0, 1] axes [array<i64: 0>, array<i64>] frame 1 : (!a, !i, !z) -> !v
      %q = moa.map lt(%i, %two) axes [array<i64: 0>, array<i64>] : (!i, !z) -> !b
      %m = moa.constant -1.0 : f64 -> !x
      %r = moa.map select(%q, %e, %m) axes [array<i64: 0>, array<i64: 0>, array<i64>] : (!b, !v, !x) -> !r)",
                 "!v"),
            V({1, 4, -1}));
}

TEST(Operators, LogicIgnoresTheRightOperandWhereTheLeftDecides) {
  // i ≥ 2 or a[i, 0] > 1 and its dual: a[2, 0] does not exist and is not needed.
  auto logic = [](const std::string &decisive, const std::string &fn) {
    return eval(R"(%i = moa.iota "3" -> !i
      %z = moa.extent "0" -> !z
      %two = moa.extent "2" -> !z
      %e = moa.psi %a[%i, %z] dims [0, 1] axes [array<i64: 0>, array<i64>] frame 1 : (!a, !i, !z) -> !v
      %q = moa.map )" +
                    decisive + R"((%i, %two) axes [array<i64: 0>, array<i64>] : (!i, !z) -> !b
      %one = moa.constant 1.0 : f64 -> !x
      %c = moa.map gt(%e, %one) axes [array<i64: 0>, array<i64>] : (!v, !x) -> !b
      %l = moa.map )" +
                    fn + R"((%q, %c) axes [array<i64: 0>, array<i64: 0>] : (!b, !b) -> !b
      %m = moa.constant -1.0 : f64 -> !x
      %r = moa.map select(%l, %one, %m) axes [array<i64: 0>, array<i64>, array<i64>] : (!b, !x, !x) -> !r)",
                "!v");
  };
  EXPECT_EQ(logic("ge", "or"), V({-1, 1, 1}));
  EXPECT_EQ(logic("lt", "and"), V({-1, 1, -1}));
}

TEST(Operators, MaskMakesElementsAbsent) {
  const std::string masked = "%m = moa.mask %p, %a axes [1] : (!b, !a) -> !a\n";
  EXPECT_EQ(eval(masked + "%r = moa.map exp(%m) axes [array<i64: 0, 1>] : (!a) -> !r", "!a"),
            V({std::exp(1), 0, std::exp(3), std::exp(4), 0, std::exp(6)}));
  EXPECT_EQ(eval(masked + "%r = moa.reduce mul %m axis 1 : !a -> !r", "!u"), V({3, 24}));
  EXPECT_EQ(eval(masked + "%r = moa.reduce add %m axis 0 : !a -> !r", "!v"), V({5, 0, 9}));
}

TEST(Operators, ReductionsOverNothingAreTheIdentity) {
  const std::string none =
      R"(%f = moa.map ne(%p, %p) axes [array<i64: 0>, array<i64: 0>] : (!b, !b) -> !b
      %m = moa.mask %f, %a axes [1] : (!b, !a) -> !a
)";
  EXPECT_EQ(eval(none + "%r = moa.reduce max %m axis 1 : !a -> !r", "!u"), V({-kInf, -kInf}));
  EXPECT_EQ(eval(none + "%r = moa.reduce min %m axis 1 : !a -> !r", "!u"), V({kInf, kInf}));
  EXPECT_EQ(eval(none + "%r = moa.reduce mul %m axis 1 : !a -> !r", "!u"), V({1, 1}));
}

TEST(Operators, SelectOfAnAbsentOperandIsAbsent) {
  EXPECT_EQ(eval(R"(%m = moa.mask %p, %a axes [1] : (!b, !a) -> !a
      %r = moa.map select(%p, %a, %m) axes [array<i64: 1>, array<i64: 0, 1>, array<i64: 0, 1>] : (!b, !a, !a) -> !r)",
                 "!a"),
            V({1, 0, 3, 4, 0, 6}));
}

TEST(Operators, BooleanReductions) {
  EXPECT_EQ(eval("%r = moa.reduce and %p axis 0 : !b -> !r", "!moa.array<[], i1>"), V({0}));
  EXPECT_EQ(eval("%r = moa.reduce or %p axis 0 : !b -> !r", "!moa.array<[], i1>"), V({1}));
}

TEST(Operators, InnerOfOtherFunctions) {
  // max.+ of a row vector with a column, a tropical product.
  EXPECT_EQ(eval(R"(%t = moa.transpose %a perm [1, 0] : !a -> !moa.array<[3, 2], f64>
      %r = moa.inner max of add %a, %t {frame = 0 : i64, lhs_framed = true, rhs_framed = true} : (!a, !moa.array<[3, 2], f64>) -> !r)",
                 "!moa.array<[2, 2], f64>"),
            V({6, 9, 9, 12}));
}

TEST(Operators, InnerWithASharedOperand) {
  // Frame of 2 on the left only: each row of a by the same vector.
  EXPECT_EQ(eval(R"(%v = moa.slice %a axis 0 start "0" count "1" : !a -> !moa.array<[1, 3], f64>
      %w = moa.reshape %v : !moa.array<[1, 3], f64> -> !v
      %r = moa.inner add of mul %a, %w {frame = 1 : i64, lhs_framed = true, rhs_framed = false} : (!a, !v) -> !r)",
                 "!u"),
            V({14, 32}));
  EXPECT_EQ(eval(R"(%v = moa.slice %a axis 0 start "0" count "1" : !a -> !moa.array<[1, 3], f64>
      %w = moa.reshape %v : !moa.array<[1, 3], f64> -> !v
      %r = moa.inner add of mul %w, %a {frame = 1 : i64, lhs_framed = false, rhs_framed = true} : (!v, !a) -> !r)",
                 "!u"),
            V({14, 32}));
}

TEST(Operators, IntegersFloor) {
  EXPECT_EQ(eval(R"(%i = moa.iota "3" -> !i
      %d = moa.map sub(%i, %n) axes [array<i64: 0>, array<i64>] : (!i, !z) -> !i
      %two = moa.extent "2" -> !z
      %r = moa.map div(%d, %two) axes [array<i64: 0>, array<i64>] : (!i, !z) -> !r)",
                 "!i"),
            V({-1, 0, 0}));
}

TEST(Operators, DivisionByZeroMattersWhereItIsNeeded) {
  const std::string body = R"(%i = moa.iota "3" -> !i
      %d = moa.map div(%n, %i) axes [array<i64>, array<i64: 0>] : (!z, !i) -> !i
)";
  EXPECT_NE(evalError(body + "%r = moa.map id(%d) axes [array<i64: 0>] : (!i) -> !r", "!i")
                .find("division by zero, for element [0]"),
            std::string::npos);
  EXPECT_EQ(eval(body + R"(%c = moa.extent "0" -> !z
      %q = moa.map gt(%i, %c) axes [array<i64: 0>, array<i64>] : (!i, !z) -> !b
      %m = moa.mask %q, %d axes [0] : (!b, !i) -> !i
      %r = moa.reduce add %m axis 0 : !i -> !r)",
                 "!z", 6),
            V({9}));
}

TEST(Operators, ExplicitCastsRound) {
  const std::string third = R"(%c = moa.constant 0.1 : f64 -> !x
)";
  EXPECT_EQ(eval(third + R"(%h = moa.cast %c : !x -> !moa.array<[], bf16>
      %r = moa.cast %h {implicit} : !moa.array<[], bf16> -> !r)",
                 "!x"),
            V({0.10009765625}));
  EXPECT_EQ(eval(third + "%r = moa.cast %c {implicit} : !x -> !r", "!moa.array<[], f32>"), V({0.1}));
  EXPECT_EQ(eval("%r = moa.cast %a : !a -> !r", "!moa.array<[2, 3], i8>"), V({1, 2, 3, 4, 5, 6}));
}

TEST(Operators, TooLargeForTheWhole) {
  KernelText text(kernel("%r = moa.map neg(%a) axes [array<i64: 0, 1>] : (!a) -> !r", "!a"));
  InterpretOptions options;
  options.maxElements = 5;
  EXPECT_NE(errorOf(text.get(), inputs(), options).find("too large"), std::string::npos);
}

TEST(Operators, UnknownOperation) {
  KernelText text(R"mlir(
!x = !moa.array<[], f64>
moa.kernel @k attributes {symbols = [], requires = [], arg_names = ["a"],
    result_names = ["r"], result_types = [!x]} {
^bb0(%a: !x):
  %c = arith.constant 1 : i32
  moa.return %a : !x
}
)mlir");
  KernelInputs in;
  in.arrays = {scalar(1)};
  EXPECT_NE(errorOf(text.get(), in).find("no meaning for 'arith.constant' at the moa level"), std::string::npos);
}

} // namespace
