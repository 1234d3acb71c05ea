//===- ErrorTest.cpp - every error of the front end, once -----------------===//
#include "FrontendTesting.h"

using namespace moa::testing;
using ::testing::HasSubstr;
using ::testing::StartsWith;

namespace {

struct ErrorCase {
  const char *name;
  const char *text;
  /// "line:column: error: message" of the one error, from its start.
  const char *message;
  /// A part of the rest: remedy or note.
  const char *rest = "";
};

void PrintTo(const ErrorCase &c, std::ostream *os) { *os << c.name; }

class ErrorTest : public ::testing::TestWithParam<ErrorCase> {};

TEST_P(ErrorTest, IsReportedOnceAtItsPlace) {
  Elaborated spec(GetParam().text);
  EXPECT_FALSE(spec.ok());
  EXPECT_THAT(spec.messages, StartsWith(std::string("spec.moa:") + GetParam().message));
  EXPECT_THAT(spec.messages, HasSubstr(GetParam().rest));
  EXPECT_THAT(spec.messages, HasSubstr("^"));
  size_t first = spec.messages.find("error:");
  EXPECT_EQ(spec.messages.find("error:", first + 1), std::string::npos) << spec.messages;
}

std::string nameOf(const ::testing::TestParamInfo<ErrorCase> &info) { return info.param.name; }

// Bodies stand on line 3 of this kernel.
#define KERNEL(body)                                                                                                   \
  "kernel k[B, N, M; T : float = f32, D = 64](x : T[B, N, D], y : T[B, M, "                                            \
  "D], m : T[B, N], "                                                                                                  \
  "p : bool[N, M],\n  c : i32[N], s : f32) -> O : T[B, N, D] {\n" body "\n}\n"

const ErrorCase lexical[] = {
    {"Character", KERNEL("O = x # 1"), "3:7: error: unexpected '#'; a comment starts with '//'"},
    {"Unicode", KERNEL("O = x → 1"), "3:7: error: unexpected character '→'"},
    {"Bang", KERNEL("O = !x"), "3:5: error: unexpected '!'; negation is 'not'"},
    {"Point", KERNEL("O = x . y"), "3:7: error: unexpected '.'"},
    {"NameWithDigit", KERNEL("O = 3x"), "3:5: error: malformed number '3x'"},
    {"LargeInteger", KERNEL("O = x * 9223372036854775808"),
     "3:9: error: the integer 9223372036854775808 does not fit in 64 bits"},
    {"LargeReal", KERNEL("O = x * 1e999"), "3:9: error: the number 1e999 is out of range"},
    {"HexWithoutDigits", KERNEL("O = x * 0x"), "3:9: error: malformed number '0x'"},
};
INSTANTIATE_TEST_SUITE_P(Lexical, ErrorTest, ::testing::ValuesIn(lexical), nameOf);

const ErrorCase syntax[] = {
    {"PowerOperator", KERNEL("O = x ** 2"), "3:7: error: there is no operator '**'; a power is 'pow(x, y)'"},
    {"ProductOperator", KERNEL("O = x @ y"), "3:7: error: '@' gives the cell ranks",
     "a product of matrices is 'a +.* b'"},
    {"ProductOfParentheses", KERNEL("O = (x) @ y"), "3:9: error: '@' gives the cell ranks"},
    {"Empty", "", "1:1: error: the specification has no kernel"},
    {"TopLevel", "kernal k",
     "1:1: error: expected 'kernel', 'def' or 'monoid', but found 'kernal'; did "
     "you mean 'kernel'?"},
    {"KernelAlone", "kernel",
     "1:7: error: expected the name of the kernel, but found the end of "
     "the file"},
    {"Arrow", "kernel k(x : f32) { y = x }", "1:19: error: expected '->' before the results"},
    {"UnclosedBody", "kernel k(x : f32) -> y : f32 { y = x", "1:37: error: expected '}', but found the end of the file",
     "to close this '{'"},
    {"UnclosedParenthesis", KERNEL("O = (x"), "4:1: error: expected ')', but found '}'",
     "spec.moa:3:5: note: to close this '('"},
    {"UnclosedSubscript", KERNEL("O = x[0"), "4:1: error: expected ']'", "to close this '['"},
    {"StrayParenthesis", KERNEL("O = x) + 1"), "3:6: error: expected an operator, a definition or '}', but found ')'"},
    {"EmptySubscript", KERNEL("O = x[]"), "3:7: error: expected a subscript"},
    {"ReservedWord", KERNEL("in = 1"), "3:1: error: 'in' is a word of the language"},
    {"ReservedType", KERNEL("f32 = 1"), "3:1: error: 'f32' is a word of the language"},
    {"MissingOperand", KERNEL("O = x +"), "4:1: error: expected an expression, but found '}'"},
    {"ChainedComparison", KERNEL("O = 1 < 2 < 3"), "3:11: error: comparisons do not chain; write 'a < b and b < c'"},
    {"ReductionReach", KERNEL("O = +/ x * x"),
     "3:10: error: it is not clear how far '+/' reaches; write '(+/ x) * y' or "
     "'+/ (x * y)'"},
    {"ReductionAsInfix", KERNEL("O = x +/ y"), "3:7: error: '+/' is a reduction; write it before its operand"},
    {"SplitReduction", KERNEL("O = max / x"), "3:5: error: a reduction is one token: write 'max/' without a space"},
    {"ReturnInKernel", KERNEL("return x"), "3:1: error: a kernel has no 'return'"},
    {"NoReturn", "def f(x : []) { y = x }", "1:23: error: a function ends with 'return'"},
    {"AfterReturn", "def f(x : []) { return x y = x }", "1:26: error: expected '}' after 'return'"},
    {"NoParameters", "def f() { return 1 }", "1:7: error: a function has at least one parameter"},
    {"WildcardAlone", KERNEL("O = _ + 1"), "3:5: error: '_' stands only among subscripts"},
    {"IndexFormItem", KERNEL("O = [i + 1] x"), "3:8: error: expected 'i', 'i < extent' or '_'"},
    {"IndexFormTwice", KERNEL("O = [i < 2, i < 3] i"), "3:13: error: index 'i' is named twice in one index form",
     "first named here"},
    {"IndexFormWithoutBody", KERNEL("O = [i, _]"), "4:1: error: expected the body of the index form"},
    {"EmptyIndexForm", KERNEL("O = [] x"), "3:5: error: an index form names at least one axis"},
    {"ListAlone", KERNEL("O = [1, 2]"), "3:5: error: a list stands only as a shape"},
    {"SymbolOrder", "kernel k[D = 4](x : f32[D]) -> y : f32[D] { y = x }",
     "1:12: error: 'D' stands among the run-time symbols"},
    {"TypeClass", "kernel k[; T : real](x : T) -> y : T { y = x }", "1:16: error: expected the class 'float' or 'int'"},
    {"CellRank", KERNEL("O = x -@(N,0) m"), "3:10: error: expected a cell rank"},
};
INSTANTIATE_TEST_SUITE_P(Syntax, ErrorTest, ::testing::ValuesIn(syntax), nameOf);

#define MONOID(text) text " kernel k(x : f32[4]) -> y : f32 { y = reduce(f, x, 0) }"
const ErrorCase monoids[] = {
    {"OneArgument", "monoid f(x) identity 0 { return x }",
     "1:11: error: a monoid combines two values, but 'f' has 1 argument"},
    {"ThreeArguments", "monoid f(x, y, z) identity 0 { return x }",
     "1:17: error: a monoid combines two values, but 'f' has 3 arguments"},
    {"Cells", "monoid f(x : [n], y) identity 0 { return x }", "1:12: error: the arguments of a monoid are scalars"},
    {"NoIdentity", "monoid f(x, y) { return x + y }", "1:16: error: expected 'identity'"},
    {"Function", KERNEL("O = reduce(f, x, 0)") "def f(x : [], y : []) { return x + y }",
     "3:12: error: 'f' is not a monoid; there are + * max min and or", "has no identity"},
    {"Twice",
     MONOID("monoid f(x, y) identity 0 { return x + y } monoid f(x, y) identity 1 "
            "{ return x * y }"),
     "1:51: error: monoid 'f' is defined twice", "first defined here"},
    {"VariableIdentity", MONOID("monoid f(x, y) identity x { return x + y }"), "1:25: error: unknown name 'x'"},
    {"IdentityOfOtherType", MONOID("monoid f(x, y) identity true { return x + y }"),
     "1:25: error: the identity of monoid 'f' is not a constant of type f32"},
    {"ResultOfOtherType", MONOID("monoid f(x, y) identity 0 { return x < y }"),
     "1:38: error: monoid 'f' combines two values of type f32 and returns bool"},
    {"Reduction", MONOID("monoid f(x, y) identity 0 { return x + y + (+/ iota(3)) }"),
     "1:48: error: a monoid is made of scalar functions, but this works on an array", "in monoid 'f'"},
    {"Recursion", MONOID("monoid f(x, y) identity 0 { return f(x, y) }"), "1:8: error: function 'f' calls itself"},
};
INSTANTIATE_TEST_SUITE_P(Monoids, ErrorTest, ::testing::ValuesIn(monoids), nameOf);

const ErrorCase catenations[] = {
    {"OtherAxes", KERNEL("O = cat(x, y)"),
     "3:5: error: 'cat' along axis 0 joins shapes [B, N, 64] and [B, M, 64], which differ on "
     "axis 1; write 'cat(x, y, 1)' to join them there",
     "this has shape [B, M, 64]"},
    {"Ranks", KERNEL("O = cat(x, m)"),
     "3:5: error: 'cat' joins arrays of equal rank, but these have shapes [B, N, 64] and [B, N]"},
    {"Scalar", KERNEL("O = cat(x, 1)"), "3:12: error: 'cat' needs an axis, but this is a scalar"},
    {"Axis", KERNEL("O = cat(x, y, 3)"),
     "3:15: error: 'cat' on an array of shape [B, N, 64] expects an axis from -3 to 2, but got 3"},
    {"Kinds", KERNEL("O = cat(c, [i < N] p[i, 0])"), "3:5: error: 'cat' expects operands of one kind"},
    {"Result", KERNEL("O = cat(x, y, 1)"), "3:1: error: "},
};
INSTANTIATE_TEST_SUITE_P(Catenations, ErrorTest, ::testing::ValuesIn(catenations), nameOf);

const ErrorCase absent[] = {
    {"AssumeOfFloats", "kernel k(x : f32) -> y : f32 assume x > 0 { y = x }",
     "1:37: error: an assumption compares integers"},
    {"AssumeOfNoSubscript", "kernel k[N](t : i32[N]) -> y : i32[N] assume [i] i < N { y = t }",
     "1:47: error: 'i' is no subscript of its own in the assumption"},
    {"AssumeWithBound", "kernel k[N](t : i32[N]) -> y : i32[N] assume [i < N] t[i] < N { y = t }",
     "1:47: error: an index of an assumption has a name and no bound"},
    {"AssumeOfRank", "kernel k[N](t : i32[N]) -> y : i32[N] assume t < N { y = t }",
     "1:46: error: 't' has 1 axis, but 0 subscripts in the assumption"},
    {"AssumeInBody", KERNEL("assume N > 1\nO = x"), "3:1: error: 'assume' belongs before the body of a kernel"},
};
INSTANTIATE_TEST_SUITE_P(NotYet, ErrorTest, ::testing::ValuesIn(absent), nameOf);

const ErrorCase tolerances[] = {
    {"InBody", KERNEL("O = x within 1e-3"),
     "3:7: error: 'within' belongs after the type of a result, as in '-> y : f32[N] within 1e-2'"},
    {"OfParameter", "kernel k(x : f32 within 1e-3) -> y : f32 { y = x }",
     "1:18: error: 'within' bounds the error of a result, and 'x' is a parameter"},
    {"OfIntegers", "kernel k(x : i32) -> y : i32 within 1e-3 { y = x }",
     "1:30: error: 'within' bounds the error of floats, but 'y' is of type i32, which is exact"},
    {"OfBooleans", "kernel k(x : i32) -> y : bool within 1e-3 { y = x > 0 }",
     "1:31: error: 'within' bounds the error of floats, but 'y' is of type bool"},
    {"NoNumber", "kernel k(x : f32) -> y : f32 within relative { y = x }",
     "1:37: error: expected the error that 'y' may have, a number as in 'within 1e-2', but found"},
    {"Infinite", "kernel k(x : f32) -> y : f32 within inf { y = x }",
     "1:37: error: expected the error that 'y' may have, a number as in 'within 1e-2', but found"},
    {"Negative", "kernel k(x : f32) -> y : f32 within -1e-3 { y = x }",
     "1:37: error: expected the error that 'y' may have, a number as in 'within 1e-2', but found"},
    {"Zero", "kernel k(x : f32) -> y : f32 within 0.0 { y = x }",
     "1:37: error: a tolerance is positive, but this is 0.0; without 'within' the compiler spends "
     "no "
     "accuracy"},
    {"Order", "kernel k(x : f32) -> y : f32 within 1e-3 sampled relative { y = x }",
     "1:42: error: a sample estimates the error in the norm of a result: write 'relative "
     "sampled'"},
    {"Misspelt", "kernel k(x : f32) -> y : f32 within 1e-3 relativ { y = x }",
     "1:42: error: only 'relative' and 'sampled' may follow the number of 'within', but found "
     "'relativ'; did you mean 'relative'?"},
};
INSTANTIATE_TEST_SUITE_P(Tolerances, ErrorTest, ::testing::ValuesIn(tolerances), nameOf);

const ErrorCase names[] = {
    {"UnknownName", KERNEL("scores = x\nO = scres"), "4:5: error: unknown name 'scres'; did you mean 'scores'?"},
    {"UnknownFunction", KERNEL("O = sofmax(x)"), "3:5: error: unknown function 'sofmax'; did you mean 'softmax'?"},
    {"NearestBeginning", KERNEL("O = maks(x)"), "3:5: error: unknown function 'maks'; did you mean 'mask'?"},
    {"SumOfOtherLanguages", KERNEL("O = sum(x)"), "3:5: error: unknown function 'sum'; write '+/ x'"},
    {"ProductOfOtherLanguages", KERNEL("O = matmul(x, y)"), "3:5: error: unknown function 'matmul'; write 'a +.* b'"},
    {"FunctionAsValue", KERNEL("O = softmax"), "3:5: error: 'softmax' is a function; call it with its arguments"},
    {"ArrayAsFunction", KERNEL("O = x(0)"), "3:5: error: 'x' is an array, not a function; index it with 'x[...]'"},
    {"TypeAsValue", KERNEL("O = T + 1"), "3:5: error: 'T' is an element type, not a value"},
    {"Arity", KERNEL("O = softmax(x, 1)"), "3:5: error: 'softmax' takes 1 argument, but got 2", "prelude.moa:"},
    {"BuiltinArity", KERNEL("O = transpose(x, [1], 2)"),
     "3:5: error: 'transpose' takes 1 or 2 arguments, but got 3; write "
     "transpose(x) or"},
    {"RankCount", KERNEL("O = softmax @ (1,1) (x)"), "3:5: error: 'softmax' takes 1 cell rank after '@', but got 2"},
    {"RanksOfBuiltin", KERNEL("O = take @ (1,0) (x, 2)"), "3:5: error: 'take' takes no cell ranks"},
    {"DefinedTwice", KERNEL("O = x\nO = y"),
     "4:1: error: 'O' is already defined, and this "
     "definition does not use it",
     "spec.moa:3:1: note: first defined here"},
    {"ParameterAgain", KERNEL("x = y\nO = y"), "3:1: error: 'x' is already defined",
     "spec.moa:1:44: note: declared here"},
    {"SymbolDefined", KERNEL("N = 1\nO = x"), "3:1: error: 'N' is a symbol and cannot be defined"},
    {"VersionsAbove", KERNEL("O = S\nS = x\nS = S + 1"),
     "3:5: error: 'S' is defined more than once, and this use stands before "
     "its first definition"},
    {"Cycle", KERNEL("O = x\na = b\nb = a"), "4:1: error: 'a' is defined in terms of itself",
     "spec.moa:5:1: note: through 'b' here"},
    {"SelfCycle", KERNEL("O = x\na = a + 1"), "4:1: error: 'a' is defined in terms of itself"},
    {"Recursion", "def f(x : [n]) { return g(x) }\ndef g(x : [n]) { return f(x) }\n" KERNEL("O = x"),
     "1:5: error: function 'f' calls itself", "spec.moa:2:5: note: through 'g' here"},
    {"MissingResult", KERNEL("o = x"),
     "2:27: error: result 'O' is not defined in the body; did "
     "you mean 'o'?"},
    {"ParameterTwice", "kernel k(x : f32, x : f32) -> y : f32 { y = x }", "1:19: error: 'x' is declared twice",
     "spec.moa:1:10: note: first declared here"},
    {"ResultTwice", "kernel k(x : f32) -> (y : f32, y : f32) { y = x }", "1:32: error: 'y' is declared twice"},
    {"ResultIsParameter", "kernel k(x : f32) -> x : f32 { x = 1 }", "1:22: error: 'x' is declared twice"},
    {"SymbolTwice", "kernel k[N, N](x : f32[N]) -> y : f32 { y = +/ x }", "1:13: error: 'N' is declared twice"},
    {"KernelTwice",
     "kernel k(x : f32) -> y : f32 { y = x }\nkernel k(x : f32) -> y : f32 { y "
     "= x }",
     "2:8: error: kernel 'k' is defined twice"},
    {"FunctionTwice", "def f(x) { return x }\ndef f(x) { return x }", "1:1: error: the specification has no kernel"},
    {"FunctionTwiceWithKernel", "def f(x) { return x }\ndef f(x) { return x }\n" KERNEL("O = x"),
     "2:5: error: function 'f' is defined twice"},
    {"BuiltinRedefined", "def exp(x) { return x }\n" KERNEL("O = x"),
     "1:5: error: 'exp' is a function of the language"},
    {"FunctionSeesNoSymbols", "def f(x) { return x * N }\n" KERNEL("O = f(x)"), "1:23: error: unknown name 'N'"},
    {"PatternIsParameter", "def f(n : [n]) { return n }\n" KERNEL("O = x"), "1:12: error: 'n' is declared twice"},
};
INSTANTIATE_TEST_SUITE_P(Names, ErrorTest, ::testing::ValuesIn(names), nameOf);

const ErrorCase header[] = {
    {"UndeclaredSymbol", "kernel k(x : f32[N]) -> y : f32 { y = +/ x }", "1:18: error: unknown name 'N'"},
    {"UnknownType", "kernel k(x : fp32) -> y : f32 { y = x }", "1:14: error: unknown element type 'fp32'; write 'f32'"},
    {"NoTypeDefault", "kernel k[; T : float](x : T) -> y : T { y = x }",
     "1:12: error: element type 'T' has no default; set it, for example --set "
     "T=f32"},
    {"WrongTypeDefault", "kernel k[; T : float = i32](x : T) -> y : T { y = x }",
     "1:24: error: element type 'T' is to be one of f64, f32, bf16, f16"},
    {"NoConstantDefault", "kernel k[; D](x : f32[D]) -> y : f32 { y = +/ x }",
     "1:12: error: compile-time constant 'D' has no default"},
    {"ConstantOfRuntime", "kernel k[N; D = N](x : f32[N]) -> y : f32 { y = +/ x }",
     "1:17: error: the default of compile-time constant 'D' is to be a number"},
    {"NegativeExtent", "kernel k(x : f32[1 - 2]) -> y : f32 { y = +/ x }",
     "1:20: error: an extent cannot be negative, but this is -1"},
    {"ExtentOfReals", "kernel k(x : f32[1.5]) -> y : f32 { y = +/ x }",
     "1:18: error: expected an integer expression over the symbols"},
    {"Unbound", "kernel k[P](x : f32) -> y : f32 { y = x * P }", "1:10: error: no array has 'P' as an extent"},
    {"ConstraintForm", "kernel k[N](x : f32[N]) -> y : f32 require N { y = +/ x }",
     "1:44: error: a constraint compares integer expressions"},
    {"ConstraintFalse", "kernel k(x : f32) -> y : f32 require 7 % 3 == 0 { y = x }",
     "1:44: error: the constraint does not hold: 1 == 0"},
    {"RangeOfTruths", "kernel k(x : bool in 0..3) -> y : bool { y = x }",
     "1:22: error: a range is declared for numbers"},
    {"RangeOfResult", "kernel k(x : i32) -> y : i32 in 0..3 { y = x }",
     "1:30: error: a range can be declared for a parameter only"},
    {"DivisionByZero", "kernel k[N](x : f32[N/0]) -> y : f32[N] { y = x }", "1:22: error: division by zero"},
};
INSTANTIATE_TEST_SUITE_P(Header, ErrorTest, ::testing::ValuesIn(header), nameOf);

const ErrorCase shapes[] = {
    {"PointwiseRank", KERNEL("O = x - m"),
     "3:7: error: '-' combines shapes [B, N, 64] and [B, N], but only equal "
     "shapes and scalars "
     "combine; say which axes it has, as in '[i, j, _] m[i, j]' or by cell "
     "ranks, '- @ (1,0)'",
     "spec.moa:3:9: note: this has shape [B, N]"},
    {"PointwiseRankUnnamed", KERNEL("O = x - max/ x"),
     "3:7: error: '-' combines shapes [B, N, 64] and [B, N], but only equal "
     "shapes and scalars combine; give the operand of shape [B, N] a name, "
     "'m = ...', and say which axes it has, as in '[i, j, _] m[i, j]'"},
    {"PointwiseExtent", KERNEL("O = x + y"),
     "3:7: error: '+' combines shapes [B, N, 64] and [B, M, 64], but only "
     "equal shapes and "
     "scalars combine; axis 1 is N on one side and M on the other"},
    {"PointwiseForeign", KERNEL("O = x * p"), "3:7: error: '*' combines shapes",
     "say which axes belong together in an index form"},
    {"Contraction", KERNEL("O = x +.* y"),
     "3:7: error: '+.*' contracts the last axis of [N, 64] with the first of "
     "[M, 64], but 64 and M "
     "differ; write 'transpose(y)' on the right",
     "spec.moa:3:11: note: this has cells of shape [M, 64]"},
    {"ContractionOfScalar", KERNEL("O = x +.* s"),
     "3:11: error: '+.*' contracts an axis, but this "
     "is a scalar"},
    {"ReduceScalar", KERNEL("O = x * +/ s"),
     "3:9: error: '+/' reduces the last axis, but this is "
     "a scalar"},
    {"CellOfScalar", KERNEL("O = x * softmax(s)"),
     "3:17: error: 'softmax' works on cells of rank 1, but this is a scalar"},
    {"Frames", KERNEL("O = f(x, m)") "def f(x : [n], y : [k]) { return x }",
     "3:5: error: 'f' lifts over the axes before its cells, but these are "
     "[B, N] and [B]"},
    {"Pattern", KERNEL("O = f(x)") "def f(x : [n, n]) { return x }",
     "3:7: error: 'f' expects 'x' to have extent N where this has 64", "spec.moa:5:15: note: by this pattern"},
    {"PatternNumber", KERNEL("O = f(x)") "def f(x : [3]) { return x }",
     "3:7: error: 'f' expects 'x' to have extent 3 where this has 64"},
    {"Result", KERNEL("O = x[0]"),
     "3:1: error: result 'O' is declared with shape [B, N, 64], but "
     "this definition has shape [N, 64]",
     "spec.moa:2:27: note: declared here"},
    {"ScalarResult", KERNEL("O = s"), "3:1: error: result 'O' is declared with shape",
     "fill an array with an index form"},
    {"Subscripts", KERNEL("O = x[0, 0, 0, 0]"),
     "3:6: error: an array of shape [B, N, 64] takes at most 3 subscripts, but "
     "got 4"},
    {"SubscriptOfScalar", KERNEL("O = x * s[0]"), "3:10: error: a scalar takes no subscripts"},
    {"SubscriptOutside", KERNEL("O = x + x[0, 0, 64]"), "3:17: error: subscript 64 is outside of an axis of extent 64"},
    {"SubscriptNegative", KERNEL("O = x + x[-1, 0, 0]"), "3:11: error: subscript -1 is outside"},
    {"ExtentUnknown", KERNEL("z = [i, j] j <= i\nO = x"),
     "3:6: error: the extent of index 'i' does not follow from use or context; "
     "write it, as in "
     "'i < N'"},
    {"ExtentsDisagree", KERNEL("O = [b, i, d] x[b, i, d] + y[b, i, d]"),
     "3:33: error: index 'i' ranges over M here and over N elsewhere"},
    {"OpenResult", KERNEL("z = [_, i < N] i\nO = x + +/ z"),
     "4:9: error: the extent of axis 0 of the frame of '+/' is not determined"},
    {"WildcardsOfBody", KERNEL("O = [_, _, i < 3] x[0, 0]"),
     "3:5: error: the body of this index form has 1 axis, but 2 '_' stand for "
     "them"},
    {"Permutation", KERNEL("O = transpose(x, [0, 1, 1])"), "3:25: error: axis 1 stands twice in the permutation"},
    {"PermutationLength", KERNEL("O = transpose(x, [0, 1])"), "3:18: error: 'transpose' of an array"},
    {"TransposeOfVector", KERNEL("O = x + transpose(c)"),
     "3:9: error: 'transpose' exchanges the last two axes, but this has shape "
     "[N]"},
    {"Axis", KERNEL("O = x + reduce(+, x, 3)"),
     "3:22: error: 'reduce' on an array of shape [B, N, "
     "64] expects an axis from -3 to 2, but got 3"},
    {"Reshape", KERNEL("O = reshape(x, [B, N, D + 1])"),
     "3:5: error: 'reshape' keeps the number of elements, but [B, N, 64] has "
     "64*B*N and [B, N, "
     "65] has 65*B*N elements"},
    {"Take", KERNEL("O = take(x, 65, 2)"), "3:5: error: 'take' of 65 elements from an axis of extent 64"},
    {"TakeRuntime", KERNEL("O = take(x, c, 0)"),
     "3:13: error: a count is an integer expression "
     "over the symbols, but this is an array"},
    {"RankOfOperand", KERNEL("O = x -@(4,0) m"),
     "3:5: error: '-' works on cells of rank 4, but this has shape [B, N, 64]"},
};
INSTANTIATE_TEST_SUITE_P(Shapes, ErrorTest, ::testing::ValuesIn(shapes), nameOf);

const ErrorCase types[] = {
    {"BoolInArithmetic", KERNEL("O = x * select(p, p, p)"), "3:7: error: '*' combines shapes"},
    {"ExpOfBool", KERNEL("z = exp(p)\nO = x"), "3:5: error: 'exp' expects numbers, but got bool"},
    {"AddBool", KERNEL("z = p + 1\nO = x"),
     "3:7: error: '+' expects numbers, but got bool, index; "
     "make a number of a bool with select(p, 1, 0)"},
    {"AndNumbers", KERNEL("z = c and c\nO = x"), "3:7: error: 'and' expects bool, but got i32, i32; compare first"},
    {"ShiftOfBool", KERNEL("z = p << p\nO = x"), "3:7: error: '<<' expects integers, but got bool"},
    {"ModOfBool", KERNEL("z = p % p\nO = x"), "3:7: error: '%' expects numbers", "select(p, 1, 0)"},
    {"MaskPredicate", KERNEL("O = mask(x, x)"),
     "3:5: error: 'mask' expects a predicate of type bool first, but got f32"},
    {"SelectCondition", KERNEL("O = select(x, x, x)"), "3:5: error: 'select' expects a bool first"},
    {"SumOfBool", KERNEL("z = +/ p\nO = x"), "3:5: error: '+/' reduces numbers, but got bool"},
    {"AllOfNumbers", KERNEL("z = and/ x\nO = x"), "3:5: error: 'and/' reduces bool, but got f32"},
    {"RealSubscript", KERNEL("O = x[1.5]"), "3:7: error: a subscript is an integer, but this is a real number"},
    {"BoolCast", KERNEL("z = bool(x)\nO = x"), "3:5: error: a bool is made by a comparison"},
    {"CastRange", KERNEL("z = i8(300)\nO = x"), "3:5: error: 300 does not fit in i8"},
    {"InnerOfBool", KERNEL("z = p +.* p\nO = x"), "3:7: error: '+.*'"},
    {"ResultType", "kernel k(x : f32) -> y : i32 { y = x }",
     "1:32: error: result 'y' is declared as i32, but this definition is f32; "
     "convert it, as in "
     "'i32(x)'"},
    {"ResultBool", "kernel k(x : f32) -> y : bool { y = x }",
     "1:33: error: result 'y' is declared as bool, but this definition is f32; "
     "compare"},
    {"ResultOfBool", "kernel k(x : f32) -> y : f32 { y = x < 1 }",
     "1:32: error: result 'y' is declared as f32, but this definition is bool"},
    {"IntegerDivision", KERNEL("O = x * (1 / 0)"),
     "3:14: error: '/' on integers has no value for the divisor 0; write 0.0 for a real quotient"},
    {"IntegerOverflow", KERNEL("O = x * (9223372036854775807 + 1)"),
     "3:30: error: the integer expression does not fit in 64 bits"},
    {"InPrelude", KERNEL("z = softmax(p)\nO = x"), "3:5: error: 'max/' reduces numbers, but got bool",
     "note: at this place of the prelude"},
    {"InFunction", KERNEL("z = f(p)\nO = x") "def f(x : [n]) { return +/ x }",
     "6:25: error: '+/' reduces numbers, but got bool", "spec.moa:3:5: note: in the call of 'f' here"},
};
INSTANTIATE_TEST_SUITE_P(Types, ErrorTest, ::testing::ValuesIn(types), nameOf);

//===----------------------------------------------------------------------===//
// Settings and warnings
//===----------------------------------------------------------------------===//

constexpr char settable[] = "kernel k[N; T : float = f32, D = 4](x : T[N, D]) -> y : T[N] { y = +/ x }";

TEST(Settings, UnknownNameListsThem) {
  Elaborated spec(settable, {{"DD", "4"}});
  EXPECT_THAT(spec.messages, HasSubstr("error: unknown setting 'DD'; did you mean 'D'?; set one of N, T, D"));
}

TEST(Settings, ValuesAreChecked) {
  EXPECT_THAT(Elaborated(settable, {{"D", "-4"}}).messages,
              HasSubstr("the setting of 'D' is to be an integer from 0 to "
                        "2^63 - 1, but is '-4'"));
  EXPECT_THAT(Elaborated(settable, {{"N", "many"}}).messages, HasSubstr("but is 'many'"));
  EXPECT_THAT(Elaborated(settable, {{"T", "f12"}}).messages,
              HasSubstr("is to be one of f64, f32, bf16, f16, but the setting is 'f12'"));
}

TEST(Settings, ConstraintsAreDecided) {
  const char *text = "kernel k[H, G](x : f32[H], z : f32[G]) -> y : f32 "
                     "require H % G == 0 { y = +/ x }";
  EXPECT_THAT(Elaborated(text, {{"H", "8"}, {"G", "3"}}).messages, HasSubstr("the constraint does not hold: 2 == 0"));
  Elaborated fits(text, {{"H", "8"}, {"G", "2"}});
  ASSERT_TRUE(fits.ok());
  EXPECT_TRUE(fits.kernel().getRequires().empty());
}

TEST(Warnings, FlooredQuotientOfLiterals) {
  Elaborated spec("kernel k(x : f32) -> y : f32 { y = x * (1/2) }");
  EXPECT_TRUE(spec.ok());
  EXPECT_THAT(spec.messages, HasSubstr("1:42: warning: '/' on integers floors: 1 / 2 is 0"));
}

} // namespace
