//===- ElaborationTest.cpp - what the front end emits ---------------------===//
#include "FrontendTesting.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;
using namespace moa;
using namespace moa::testing;
using ::testing::HasSubstr;

namespace {

constexpr char attention[] = R"(
kernel k[B, H, G, N, M; T : float = bf16, D = 128](
    Q : T[B, H, N, D], K : T[B, G, M, D], V : T[B, G, M, D], scale : f32)
    -> (O : T[B, H, N, D], lse : f32[B, H, N])
  require H % G == 0
{
  Kh  = [b < B, h < H] K[b, h / (H/G)]
  Vh  = [b < B, h < H] V[b, h / (H/G)]
  S   = (Q +.* transpose(Kh)) * scale
  S   = mask([_, _, i, j] j <= i + (M - N), S)
  O   = softmax(S) +.* Vh
  lse = logsumexp(S)
})";

std::string typeText(Value value) {
  std::string text;
  llvm::raw_string_ostream(text) << value.getType();
  return text;
}

//===----------------------------------------------------------------------===//
// Kernels and settings
//===----------------------------------------------------------------------===//

TEST(Kernel, HeaderBecomesAttributes) {
  Elaborated spec(attention);
  ASSERT_TRUE(spec.ok()) << spec.messages;
  KernelOp kernel = spec.kernel();
  EXPECT_EQ(kernel.getSymName(), "k");
  EXPECT_EQ(kernel.getSymbols().size(), 5u);
  EXPECT_EQ(cast<StringAttr>(kernel.getRequires()[0]).getValue(), "H%G == 0");
  EXPECT_EQ(cast<StringAttr>(kernel.getArgNames()[3]).getValue(), "scale");
  EXPECT_EQ(cast<StringAttr>(kernel.getResultNames()[1]).getValue(), "lse");
  EXPECT_EQ(typeText(kernel.getBody().getArgument(1)), "!moa.array<[B, G, M, 128], bf16>");
  EXPECT_EQ(typeText(kernel.getBody().getArgument(3)), "!moa.array<[], f32>");
}

TEST(Kernel, SettingsReplaceSymbols) {
  Elaborated spec(attention, {{"D", "64"}, {"T", "f16"}, {"M", "1024"}, {"H", "8"}, {"G", "2"}});
  ASSERT_TRUE(spec.ok()) << spec.messages;
  EXPECT_EQ(typeText(spec.kernel().getBody().getArgument(1)), "!moa.array<[B, 2, 1024, 64], f16>");
  EXPECT_EQ(spec.kernel().getSymbols().size(), 2u);
  EXPECT_TRUE(spec.kernel().getRequires().empty());
}

TEST(Kernel, RangesAreKept) {
  Elaborated spec("kernel k[N, P](t : i32[N] in 0..P, x : f32[P]) -> y : "
                  "f32[N] { y = x[t] }");
  ASSERT_TRUE(spec.ok()) << spec.messages;
  auto ranges = spec.kernel()->getAttrOfType<ArrayAttr>("moa.ranges");
  ASSERT_TRUE(ranges);
  EXPECT_EQ(cast<StringAttr>(ranges[0]).getValue(), "0..P");
  EXPECT_EQ(cast<StringAttr>(ranges[1]).getValue(), "");
}

TEST(Kernel, SlicesAddConstraintsThatOnlySizesDecide) {
  Elaborated spec("kernel k[N, K](x : f32[N], z : f32[K]) -> y : f32[K] { y = "
                  "take(x, K) }");
  ASSERT_TRUE(spec.ok()) << spec.messages;
  ASSERT_EQ(spec.kernel().getRequires().size(), 1u);
  EXPECT_EQ(cast<StringAttr>(spec.kernel().getRequires()[0]).getValue(), "N - K >= 0");
}

TEST(Kernel, LocationsAreTheUsers) {
  Elaborated spec(attention);
  for (Operation &op : spec.kernel().getBody().front()) {
    auto place = op.getLoc()->findInstanceOf<FileLineColLoc>();
    ASSERT_TRUE(place);
    EXPECT_EQ(place.getFilename(), "spec.moa");
  }
  auto reduce = spec.ops<ReduceOp>()[0].getLoc()->findInstanceOf<FileLineColLoc>();
  EXPECT_EQ(reduce.getLine(), 11u); // the call, not the line of the prelude
  EXPECT_EQ(reduce.getColumn(), 9u);
}

TEST(Kernel, UnusedDefinitionsLeaveNothingBehind) {
  Elaborated spec("kernel k[N](x : f32[N]) -> y : f32[N] { y = x + 1\n z = exp(x) }");
  ASSERT_TRUE(spec.ok()) << spec.messages;
  EXPECT_EQ(spec.ops<MapOp>().size(), 1u);
}

TEST(Kernel, OrderOfDefinitionsDoesNotMatter) {
  std::string head = "kernel k[N](x : f32[N]) -> (y : f32[N], z : f32[N]) {\n";
  Elaborated one(head + "a = x + 1\nb = a * 2\ny = b\nz = a - b }");
  Elaborated two(head + "z = a - b\ny = b\nb = a * 2\na = x + 1 }");
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_EQ(one.ir(), two.ir());
}

TEST(Kernel, RedefinitionsAreVersions) {
  Elaborated spec("kernel k(x : f32) -> (y : f32, z : f32) {\n"
                  "s = x + 1\nz = s\ns = s * 2\ny = s }");
  ASSERT_TRUE(spec.ok()) << spec.messages;
  auto maps = spec.ops<MapOp>();
  auto results = cast<ReturnOp>(spec.kernel().getBody().front().back()).getValues();
  ASSERT_EQ(maps.size(), 2u);
  EXPECT_EQ(results[0], maps[1].getResult());
  EXPECT_EQ(results[1], maps[0].getResult());
}

//===----------------------------------------------------------------------===//
// Frames
//===----------------------------------------------------------------------===//

TEST(Frames, FunctionsLiftOverLeadingAxes) {
  Elaborated spec(attention);
  auto reduces = spec.ops<ReduceOp>();
  ASSERT_EQ(reduces.size(), 4u);
  for (ReduceOp reduce : reduces)
    EXPECT_EQ(reduce.getAxis(), 3u);
  EXPECT_THAT(spec.ir(), HasSubstr("moa.map sub(%15, %21) axes [array<i64: 0, 1, 2, 3>, "
                                   "array<i64: 0, 1, 2>]"));
}

TEST(Frames, SharedOperandsHaveNone) {
  Elaborated spec("kernel k[N; D = 4](x : f32[N, D], g : f32[D], e : f32) -> y : f32[N, D] "
                  "{\n"
                  "y = f(x, g, e) }\ndef f(x : [n], g : [n], e : []) { return x * g + e }");
  ASSERT_TRUE(spec.ok()) << spec.messages;
  EXPECT_THAT(spec.ir(), HasSubstr("mul(%x, %g) axes [array<i64: 0, 1>, array<i64: 1>]"));
}

TEST(Frames, CellRanksOfOperators) {
  Elaborated spec("kernel k[N, M](x : f32[N, M], a : f32[N], b : f32[M]) -> y "
                  ": f32[N, M] {\n"
                  "y = x -@(1,0) a +@(1,1) b }");
  ASSERT_TRUE(spec.ok()) << spec.messages;
  EXPECT_THAT(spec.ir(), HasSubstr("sub(%x, %a) axes [array<i64: 0, 1>, array<i64: 0>]"));
  EXPECT_THAT(spec.ir(), HasSubstr("add(%0, %b) axes [array<i64: 0, 1>, array<i64: 1>]"));
}

TEST(Frames, ContractionWithoutFrameOnOneSide) {
  Elaborated spec("kernel k[B, N; D = 4](x : f32[B, N, D], W : f32[D, D]) -> y "
                  ": f32[B, N, D] {\n"
                  "y = x +.* W }");
  ASSERT_TRUE(spec.ok()) << spec.messages;
  InnerOp inner = spec.ops<InnerOp>()[0];
  EXPECT_EQ(inner.getFrame(), 1u);
  EXPECT_TRUE(inner.getLhsFramed());
  EXPECT_FALSE(inner.getRhsFramed());
}

TEST(Frames, PartOfAFrameIsBroadcast) {
  Elaborated spec("kernel k[B, H, N; D = 4](q : f32[B, H, N, D], k : f32[B, N, D]) "
                  "-> y : f32[B, H, N, N] { y = [b, h] q[b, h] +.* transpose(k[b]) }");
  ASSERT_TRUE(spec.ok()) << spec.messages;
  InnerOp inner = spec.ops<InnerOp>()[0];
  EXPECT_EQ(inner.getFrame(), 2u);
  EXPECT_EQ(typeText(inner.getRhs()), "!moa.array<[B, H, 4, N], f32>");
}

TEST(Frames, OpenAxesStayUnmaterialised) {
  Elaborated spec("kernel k[B, N, M](x : f32[B, N, M], s : f32[N]) -> y : f32[B, N, M] {\n"
                  "y = mask([_, i, j] j <= i, x + [_, i, _] s[i]) }");
  ASSERT_TRUE(spec.ok()) << spec.messages;
  EXPECT_EQ(spec.ops<MaskOp>()[0].getAxes(), (ArrayRef<int64_t>{1, 2}));
  EXPECT_EQ(spec.ir().find("id("), std::string::npos);
}

TEST(Frames, ContextComesFromAnySibling) {
  Elaborated spec("kernel k[N, M](x : f32[N, M], d : f32) -> y : f32[M, M] {\n"
                  "y = mask([i, j] j <= i, transpose(x) +.* x * [i, j] pow(d, i - j)) }");
  ASSERT_TRUE(spec.ok()) << spec.messages;
}

TEST(Frames, NamedFormsGetTheirExtentsFromTheirFirstUse) {
  const char *head = "kernel k[N, M](x : f32[N, M], z : f32[M, N]) -> y : f32[N, M] {\n";
  Elaborated spec(std::string(head) + "y = mask(both, x)\nboth = lower and [i, j] j > 0\n"
                                      "lower = [i, j] j <= i }");
  ASSERT_TRUE(spec.ok()) << spec.messages;
  EXPECT_EQ(typeText(spec.ops<MaskOp>()[0].getPredicate()), "!moa.array<[N, M], i1>");
  Elaborated other(std::string(head) + "y = mask(lower, x) + transpose(mask(lower, z))\n"
                                       "lower = [i, j] j <= i }");
  EXPECT_FALSE(other.ok());
  EXPECT_THAT(other.messages, HasSubstr("'mask' combines shapes"));
}

//===----------------------------------------------------------------------===//
// Selection
//===----------------------------------------------------------------------===//

TEST(Selection, GatherPartialAndWhole) {
  Elaborated spec("kernel k[N, P, M](x : f32[P, N, M], t : i32[N]) -> (a : f32[N, N, M], "
                  "b : f32[P, M], c : f32[M, P, N]) {\n"
                  "a = x[t]\nb = x[_, 0]\nc = [j, _, _] x[_, _, j] }");
  ASSERT_TRUE(spec.ok()) << spec.messages;
  auto psis = spec.ops<PsiOp>();
  ASSERT_EQ(psis.size(), 3u);
  EXPECT_EQ(psis[0].getFrame(), 1u);
  EXPECT_EQ(psis[1].getFrame(), 0u);
  EXPECT_EQ(psis[1].getDims(), (ArrayRef<int64_t>{1}));
  EXPECT_EQ(typeText(psis[2].getResult()), "!moa.array<[M, P, N], f32>");
}

TEST(Selection, FrameOfTheArrayIsSelectedAlong) {
  Elaborated spec("kernel k[B, N](x : f32[B, N]) -> y : f32[B, N] { y = shift(x) }\n"
                  "def shift(x : [n]) { return [i < n] x[(i + 1) % n] }");
  ASSERT_TRUE(spec.ok()) << spec.messages;
  PsiOp psi = spec.ops<PsiOp>()[0];
  EXPECT_EQ(psi.getDims(), (ArrayRef<int64_t>{0, 1}));
  EXPECT_EQ(psi.getFrame(), 2u);
}

TEST(Selection, WildcardsPlaceTheAxesOfTheBody) {
  Elaborated spec("kernel k[N, M](x : f32[N, M]) -> y : f32[N, M] { y = [_, j] x[_, j] }");
  ASSERT_TRUE(spec.ok()) << spec.messages;
  EXPECT_EQ(spec.ops<TransposeOp>().size(), 1u);
}

//===----------------------------------------------------------------------===//
// Element types
//===----------------------------------------------------------------------===//

/// operand_type of the last contraction of a kernel body, "none" without one.
std::string rounding(const std::string &body, const std::string &v = "T") {
  Elaborated spec("kernel k[N, M; T : float = bf16, D = 64](Q : T[N, D], K : "
                  "T[M, D], V : " +
                  v + "[M, D], w : f32[D], s : f32) -> O : f32[N, D] {\n" + body + "\n}");
  EXPECT_TRUE(spec.ok()) << spec.messages;
  if (!spec.ok())
    return "error";
  auto type = spec.ops<InnerOp>().back().getOperandType();
  std::string text = "none";
  if (type)
    llvm::raw_string_ostream(text = "") << *type;
  return text;
}

TEST(Numerics, ComputedOperandTakesTheOthersType) {
  EXPECT_EQ(rounding("O = softmax(Q +.* transpose(K)) +.* V"), "bf16");
  EXPECT_EQ(rounding("O = softmax(Q +.* transpose(K)) +.* V", "f16"), "f16");
  EXPECT_EQ(rounding("O = softmax(Q +.* transpose(K)) +.* V", "f32"), "none");
}

TEST(Numerics, InputsAreNotRounded) {
  EXPECT_EQ(rounding("O = (Q +.* transpose(K)) +.* [j < M, d < D] V[M - 1 - j, d]"), "bf16");
  EXPECT_EQ(rounding("z = Q +.* transpose(K)\nO = Q * s + w[0] * (+/ +/ z)"), "none");
}

TEST(Numerics, TwoComputedOperandsTakeTheJoin) {
  EXPECT_EQ(rounding("O = (Q * s +.* transpose(K * 2)) +.* (V * 2)"), "bf16");
  EXPECT_EQ(rounding("O = (Q +.* transpose(K)) +.* (V *@(1,1) w)"), "none");
}

TEST(Numerics, CastsOverride) {
  EXPECT_EQ(rounding("O = f32(softmax(Q +.* transpose(K))) +.* V"), "none");
  EXPECT_EQ(rounding("O = bf16(softmax(Q +.* transpose(K))) +.* V", "f32"), "bf16");
}

TEST(Numerics, DoubleInputsComputeInDouble) {
  Elaborated spec("kernel k[N](x : f32[N], s : f64) -> y : f32[N] { y = x * 0.1 }");
  ASSERT_TRUE(spec.ok()) << spec.messages;
  EXPECT_TRUE(spec.ops<MapOp>()[0].getResult().getType().getElementType().isF64());
  EXPECT_TRUE(spec.ops<CastOp>()[0].getImplicit());
}

TEST(Numerics, LiteralsTakeTheTypeTheyMeet) {
  Elaborated spec("kernel k[N](x : f32[N], c : i32[N]) -> (y : f32[N], z : i32[N]) {\n"
                  "y = x + 1\nz = c + 1 }");
  ASSERT_TRUE(spec.ok()) << spec.messages;
  auto constants = spec.ops<ConstantOp>();
  ASSERT_EQ(constants.size(), 2u);
  EXPECT_TRUE(constants[0].getValue().getType().isF32());
  EXPECT_TRUE(constants[1].getValue().getType().isIndex());
}

TEST(Numerics, ExplicitCastsAreNotImplicit) {
  Elaborated spec("kernel k(x : f32, i : i32) -> (y : f32, z : i8) { y = "
                  "bf16(x) * 2\nz = i8(i) }");
  ASSERT_TRUE(spec.ok()) << spec.messages;
  auto casts = spec.ops<CastOp>();
  EXPECT_FALSE(casts[0].getImplicit());
  EXPECT_TRUE(casts[1].getImplicit()); // back to the compute type
}

TEST(Numerics, ConstantsFold) {
  Elaborated spec("kernel k[N; D = 64](x : f32[N, D]) -> y : f32[N, D] { y = x "
                  "* (1.0 / D) + -inf }");
  ASSERT_TRUE(spec.ok()) << spec.messages;
  auto constants = spec.ops<ConstantOp>();
  ASSERT_EQ(constants.size(), 2u);
  EXPECT_EQ(cast<FloatAttr>(constants[0].getValue()).getValueAsDouble(), 1.0 / 64);
  EXPECT_TRUE(cast<FloatAttr>(constants[1].getValue()).getValue().isInfinity());
}

TEST(Prelude, CanBeLeftOut) {
  MLIRContext context;
  FrontendOptions options;
  options.usePrelude = false;
  std::string message;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &d) { message = d.str(); });
  EXPECT_FALSE(parseMoA("kernel k[N](x : f32[N]) -> y : f32[N] { y = softmax(x) }", "spec.moa", options, &context));
  EXPECT_THAT(message, HasSubstr("unknown function 'softmax'"));
}

TEST(Prelude, UsersFunctionsComeFirst) {
  Elaborated spec("kernel k[N](x : f32[N]) -> y : f32[N] { y = softmax(x) }\n"
                  "def softmax(x : [n]) { return x }");
  ASSERT_TRUE(spec.ok()) << spec.messages;
  EXPECT_TRUE(spec.ops<MapOp>().empty());
}

} // namespace
