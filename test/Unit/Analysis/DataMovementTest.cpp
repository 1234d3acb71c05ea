//===- DataMovementTest.cpp - distinct elements and the classical count ---===//
#include "lib/Analysis/DataMovement.h"
#include "dialects/DNF/IR/DNF.h"
#include "lib/Conversion/MoAToDNF/MoAToDNF.h"
#include "lib/Interpreter/Interpreter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace moa;

namespace {

constexpr char kTypes[] = R"mlir(
!q = !moa.array<[N, D], f32>
!k = !moa.array<[M, D], f32>
!kt = !moa.array<[D, M], f32>
!v = !moa.array<[M, E], f32>
!o = !moa.array<[N, E], f32>
!s = !moa.array<[N, M], f32>
!r = !moa.array<[N], f32>
!x = !moa.array<[], f32>
!n = !moa.array<[N], index>
!m = !moa.array<[M], index>
!z = !moa.array<[], index>
!p = !moa.array<[N, M], i1>
)mlir";

/// A kernel over Q, K, V and a scalar with the given body between the scaled
/// scores %S0 and the result %O.
std::string attention(const std::string &body, const std::string &requirement = "") {
  return std::string(kTypes) + R"mlir(
moa.kernel @attention attributes {symbols = ["N", "M", "D", "E"], requires = [)mlir" +
         requirement + R"mlir(],
    arg_names = ["Q", "K", "V", "scale"], result_names = ["O"], result_types = [!o]} {
^bb0(%Q: !q, %K: !k, %V: !v, %scale: !x):
  %Kt = moa.transpose %K perm [1, 0] : !k -> !kt
  %dot = moa.inner add of mul %Q, %Kt {frame = 0 : i64, lhs_framed = true, rhs_framed = true} : (!q, !kt) -> !s
  %S0 = moa.map mul(%dot, %scale) axes [array<i64: 0, 1>, array<i64>] : (!s, !x) -> !s
)mlir" + body +
         R"mlir(
  %O = moa.inner add of mul %w, %V {frame = 0 : i64, lhs_framed = true, rhs_framed = true} : (!s, !v) -> !o
  moa.return %O : !o
}
)mlir";
}

const std::string kSoftmax = R"mlir(
  %max = moa.reduce max %S axis 1 : !s -> !r
  %z = moa.map sub(%S, %max) axes [array<i64: 0, 1>, array<i64: 0>] : (!s, !r) -> !s
  %e = moa.map exp(%z) axes [array<i64: 0, 1>] : (!s) -> !s
  %l = moa.reduce add %e axis 1 : !s -> !r
  %w = moa.map div(%e, %l) axes [array<i64: 0, 1>, array<i64: 0>] : (!s, !r) -> !s
)mlir";

/// Exponentials without the row maxima.
const std::string kPlainSoftmax = R"mlir(
  %e = moa.map exp(%S0) axes [array<i64: 0, 1>] : (!s) -> !s
  %l = moa.reduce add %e axis 1 : !s -> !r
  %w = moa.map div(%e, %l) axes [array<i64: 0, 1>, array<i64: 0>] : (!s, !r) -> !s
)mlir";

const std::string kNoMask = "  %S = moa.map id(%S0) axes [array<i64: 0, 1>] : (!s) -> !s\n";

/// mask(j + a ≤ i + b, S0)
std::string mask(const std::string &limit, const std::string &fn = "le") {
  return R"mlir(
  %i = moa.iota "N" -> !n
  %j = moa.iota "M" -> !m
  %c = moa.extent ")mlir" +
         limit + R"mlir(" -> !z
  %lim = moa.map add(%i, %c) axes [array<i64: 0>, array<i64>] : (!n, !z) -> !n
  %p = moa.map )mlir" +
         fn + R"mlir((%j, %lim) axes [array<i64: 1>, array<i64: 0>] : (!m, !n) -> !p
  %S = moa.mask %p, %S0 axes [0, 1] : (!p, !s) -> !s
)mlir";
}

class DataMovement : public testing::Test {
protected:
  DataMovement() { context.loadDialect<MoADialect, dnf::DNFDialect, arith::ArithDialect, math::MathDialect>(); }
  KernelOp parse(const std::string &text) {
    module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(module);
    return module ? cast<KernelOp>(module->getBody()->front()) : KernelOp();
  }
  DataMovementReport analyze(const std::string &text) { return analyzeDataMovement(parse(text)); }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

SymExpr expr(const char *text) { return *SymExpr::parse(text); }

TEST_F(DataMovement, ThePaperCounts) {
  auto report = analyze(attention(kNoMask + kSoftmax));
  EXPECT_EQ(report.inputElements(), expr("N*D + M*D + M*E"));
  EXPECT_EQ(report.outputElements(), expr("N*E"));
  // Eq. 23, 3n² + n + 2n·d_k + n·d_v, has no term for the n row maxima.
  SymExpr equation23 = expr("3*N*M + N + N*D + M*D + M*E");
  EXPECT_EQ(report.classicalElements(), equation23 + expr("N"));
  std::vector<std::string> kinds;
  for (const IntermediateArray &array : report.intermediates)
    kinds.push_back(array.kind + " " + array.elements.str());
  EXPECT_EQ(kinds, std::vector<std::string>(
                       {"point-wise M*N", "reduction N", "point-wise M*N", "reduction N", "point-wise M*N"}));
}

TEST_F(DataMovement, AGroupOverwritesAContractionNothingElseReads) {
  // Scale and exponential are one loop over the scores, in their place.
  auto report = analyze(attention(kPlainSoftmax));
  EXPECT_EQ(report.classicalElements(), expr("2*N*M + N + N*D + M*D + M*E"));
}

TEST_F(DataMovement, TheRatiosOfThePaper) {
  auto report = analyze(attention(kNoMask + kSoftmax));
  std::vector<std::string> printed;
  for (int64_t n : {1024, 4096, 8192, 32768}) {
    auto numbers = report.evaluate({{"N", n}, {"M", n}, {"D", 64}, {"E", 64}});
    ASSERT_TRUE(numbers.has_value());
    char text[32];
    std::snprintf(text, sizeof text, n < 8192 ? "%.1f" : "%.0f", numbers->ratioWithoutOutput);
    printed.push_back(text);
  }
  EXPECT_EQ(printed, std::vector<std::string>({"17.0", "65.0", "129", "513"}));
}

TEST_F(DataMovement, EqualArraysAreOne) {
  // The weights computed twice, under other names.
  std::string twice = R"mlir(
  %max2 = moa.reduce max %S axis 1 : !s -> !r
  %z2 = moa.map sub(%S, %max2) axes [array<i64: 0, 1>, array<i64: 0>] : (!s, !r) -> !s
  %e2 = moa.map exp(%z2) axes [array<i64: 0, 1>] : (!s) -> !s
  %max = moa.reduce max %S axis 1 : !s -> !r
  %z = moa.map sub(%S, %max) axes [array<i64: 0, 1>, array<i64: 0>] : (!s, !r) -> !s
  %e = moa.map exp(%z) axes [array<i64: 0, 1>] : (!s) -> !s
  %l = moa.reduce add %e2 axis 1 : !s -> !r
  %w = moa.map div(%e, %l) axes [array<i64: 0, 1>, array<i64: 0>] : (!s, !r) -> !s
)mlir";
  EXPECT_EQ(analyze(attention(kNoMask + twice)).classicalElements(),
            analyze(attention(kNoMask + kSoftmax)).classicalElements());
}

//===----------------------------------------------------------------------===//
// Distinct elements
//===----------------------------------------------------------------------===//

std::vector<std::string> texts(const DataMovementReport &report) {
  std::vector<std::string> result;
  for (const ArrayCount &array : report.inputs)
    result.push_back((array.exact ? "" : "<= ") + array.elements.str());
  return result;
}
using Texts = std::vector<std::string>;

TEST_F(DataMovement, CausalMasksReadAllKeys) {
  // Keys by the last query; a query only if it sees a key.
  EXPECT_EQ(texts(analyze(attention(mask("M - N") + kSoftmax))), Texts({"<= D*N", "D*M", "E*M"}));
  EXPECT_EQ(texts(analyze(attention(mask("M - N") + kSoftmax, "\"N <= M\""))), Texts({"D*N", "D*M", "E*M"}));
  EXPECT_EQ(texts(analyze(attention(mask("0") + kSoftmax, "\"N == M\""))), Texts({"D*N", "D*M", "E*M"}));
  EXPECT_EQ(texts(analyze(attention(mask("0") + kSoftmax))), Texts({"D*N", "<= D*M", "<= E*M"}));
}

TEST_F(DataMovement, StrictMasksSkipAQuery) {
  EXPECT_EQ(texts(analyze(attention(mask("0", "lt") + kSoftmax, "\"N == M\""))), Texts({"<= D*N", "<= D*M", "<= E*M"}));
}

/// Masks by a predicate on %i, %j (index) over N and M.
std::string maskBy(const std::string &predicate) {
  return R"mlir(
  %i = moa.iota "N" -> !n
  %j = moa.iota "M" -> !m
  %one = moa.extent "1" -> !z
  %d = moa.extent "M - N" -> !z
  %i1 = moa.map add(%i, %one) axes [array<i64: 0>, array<i64>] : (!n, !z) -> !n
  %id = moa.map add(%i, %d) axes [array<i64: 0>, array<i64>] : (!n, !z) -> !n
  %low = moa.map ge(%j, %i) axes [array<i64: 1>, array<i64: 0>] : (!m, !n) -> !p
  %high = moa.map le(%j, %i1) axes [array<i64: 1>, array<i64: 0>] : (!m, !n) -> !p
  %end = moa.map le(%j, %id) axes [array<i64: 1>, array<i64: 0>] : (!m, !n) -> !p
  %off = moa.map ne(%j, %i) axes [array<i64: 1>, array<i64: 0>] : (!m, !n) -> !p
  %p = moa.map )mlir" +
         predicate + R"mlir( axes [array<i64: 0, 1>, array<i64: 0, 1>] : (!p, !p) -> !p
  %S = moa.mask %p, %S0 axes [0, 1] : (!p, !s) -> !s
)mlir";
}

/// Elements of Q, K and V that the interpreter reads.
std::vector<int64_t> readCounts(Operation *kernel, int64_t n, int64_t m) {
  KernelInputs inputs;
  for (std::vector<int64_t> shape : {std::vector<int64_t>{n, 2}, {m, 2}, {m, 1}, {}}) {
    int64_t count = 1;
    for (int64_t extent : shape)
      count *= extent;
    inputs.arrays.push_back({shape, std::vector<double>(count, 0.5)});
  }
  std::vector<std::vector<bool>> reads;
  InterpretOptions options;
  options.reads = &reads;
  auto outputs = interpret(kernel, inputs, options);
  EXPECT_TRUE(bool(outputs)) << llvm::toString(outputs.takeError());
  std::vector<int64_t> counts;
  for (size_t k = 0; k < 3; ++k)
    counts.push_back(llvm::count(reads[k], true));
  return counts;
}

/// A count that claims to be exact is what the interpreter reads, for every
/// predicate and size; one that does not is no less.
TEST_F(DataMovement, ReadsAgreeWithTheInterpreter) {
  unsigned exact = 0, bounds = 0;
  for (const char *predicate :
       {"and(%low, %low)", "and(%low, %high)", "and(%low, %end)", "and(%high, %end)", "or(%low, %high)",
        "or(%low, %end)", "and(%off, %end)", "and(%off, %off)", "xor(%low, %end)"})
    for (const char *requirement : {"", "\"N <= M\"", "\"M <= N\"", "\"M == N\""}) {
      auto report = analyze(attention(maskBy(predicate) + kSoftmax, requirement));
      PassManager passes(&context);
      passes.addPass(createConvertMoAToDNFPass());
      ASSERT_TRUE(succeeded(passes.run(*module)));
      StringRef rule = requirement;
      for (int64_t n = 1; n <= 4; ++n)
        for (int64_t m = 1; m <= 4; ++m) {
          if ((rule.contains("N <=") && n > m) || (rule.contains("M <=") && m > n) || (rule.contains("==") && m != n))
            continue;
          auto reads = readCounts(&module->getBody()->front(), n, m);
          for (size_t k = 0; k < 3; ++k) {
            auto count = report.inputs[k].elements.evaluate([&](StringRef name) -> std::optional<int64_t> {
              return name == "N" ? n : name == "M" ? m : name == "D" ? 2 : 1;
            });
            ASSERT_TRUE(count.has_value());
            if (report.inputs[k].exact)
              EXPECT_EQ(*count, reads[k]) << predicate << requirement << n << m << k;
            else
              EXPECT_GE(*count, reads[k]) << predicate << requirement << n << m << k;
            ++(report.inputs[k].exact ? exact : bounds);
          }
        }
    }
  EXPECT_GT(exact, 200u);
  EXPECT_GT(bounds, 200u);
}

/// One input x : f32[P, G, N] read through a selection.
std::string selection(const std::string &body, const std::string &result, const std::string &requirement = "") {
  return R"mlir(
!a = !moa.array<[P, G, N], f32>
!r = )mlir" +
         result + R"mlir(
moa.kernel @k attributes {symbols = ["P", "G", "N", "H"], requires = [)mlir" +
         requirement + R"mlir(],
    arg_names = ["x", "t"], result_names = ["r"], result_types = [!r]} {
^bb0(%x: !a, %t: !moa.array<[H], index>):
)mlir" + body +
         "\n  moa.return %r : !r\n}\n";
}

TEST_F(DataMovement, SharedHeadsAreReadOnce) {
  const std::string body = R"mlir(
  %h = moa.iota "H" -> !moa.array<[H], index>
  %c = moa.extent "H/G" -> !moa.array<[], index>
  %g = moa.map div(%h, %c) axes [array<i64: 0>, array<i64>] : (!moa.array<[H], index>, !moa.array<[], index>) -> !moa.array<[H], index>
  %r = moa.psi %x[%g] dims [1] axes [array<i64: 0>] frame 1 : (!a, !moa.array<[H], index>) -> !r
)mlir";
  auto report = analyze(selection(body, "!moa.array<[H, P, N], f32>", "\"H%G == 0\""));
  EXPECT_EQ(texts(report), Texts({"G*N*P", "0"}));
}

TEST_F(DataMovement, SlicesReadTheirPart) {
  EXPECT_EQ(texts(analyze(selection(R"(%r = moa.slice %x axis 2 start "N - 3" count "3" : !a -> !r)",
                                    "!moa.array<[P, G, 3], f32>"))),
            Texts({"3*G*P", "0"}));
}

TEST_F(DataMovement, DisjointSlicesAdd) {
  const std::string body = R"mlir(
  %u = moa.slice %x axis 2 start "0" count "2" : !a -> !r
  %v = moa.slice %x axis 2 start "START" count "2" : !a -> !r
  %r = moa.map add(%u, %v) axes [array<i64: 0, 1, 2>, array<i64: 0, 1, 2>] : (!r, !r) -> !r
)mlir";
  auto at = [&](const std::string &start) {
    std::string text = body;
    text.replace(text.find("START"), 5, start);
    return texts(analyze(selection(text, "!moa.array<[P, G, 2], f32>")));
  };
  EXPECT_EQ(at("2"), Texts({"4*G*P", "0"}));
  EXPECT_EQ(at("1"), Texts({"<= G*N*P", "0"}));
}

TEST_F(DataMovement, GathersAreBounded) {
  auto report = analyze(selection("%r = moa.psi %x[%t] dims [1] axes [array<i64: 0>] frame 1 : "
                                  "(!a, !moa.array<[H], index>) -> !r",
                                  "!moa.array<[H, P, N], f32>"));
  EXPECT_EQ(texts(report), Texts({"<= G*N*P", "H"}));
  EXPECT_EQ(report.inputs[0].note, "an index depends on data");
}

TEST_F(DataMovement, ReversedReshapedAndRotatedArraysAreReadWhole) {
  EXPECT_EQ(texts(analyze(selection(
                R"mlir(%c = moa.reverse %x axis 1 : !a -> !a
      %a = moa.rotate %c by "P - 2" axis 0 : !a -> !a
      %b = moa.transpose %a perm [2, 0, 1] : !a -> !moa.array<[N, P, G], f32>
      %r = moa.reshape %b : !moa.array<[N, P, G], f32> -> !r)mlir",
                "!moa.array<[\"N*P\", G], f32>"))),
            Texts({"G*N*P", "0"}));
}

//===----------------------------------------------------------------------===//
// Texts
//===----------------------------------------------------------------------===//

TEST_F(DataMovement, Prints) {
  auto report = analyze(attention(mask("M - N") + kSoftmax));
  SymbolValues symbols = {{"N", 4}, {"M", 4}, {"D", 2}, {"E", 2}};
  std::string text;
  llvm::raw_string_ostream os(text);
  report.print(os, &symbols);
  EXPECT_NE(text.find("upper bound: a mask or a selection may leave some unread"), std::string::npos) << text;
  EXPECT_NE(text.find("bytes: 96 in, 32 out"), std::string::npos) << text;
  auto *object = report.toJSON(&symbols).getAsObject();
  ASSERT_TRUE(object);
}

TEST_F(DataMovement, JSON) {
  auto report = analyze(attention(kNoMask + kSoftmax));
  SymbolValues symbols = {{"N", 1024}, {"M", 1024}, {"D", 64}, {"E", 64}};
  llvm::json::Value json = report.toJSON(&symbols);
  auto *object = json.getAsObject();
  ASSERT_TRUE(object);
  EXPECT_NEAR(*object->getNumber("ratio_without_output"), 17.0, 0.05);
  EXPECT_EQ(*object->getObject("input_total")->getInteger("value"), 3 * 1024 * 64);
  EXPECT_EQ(object->getObject("classical")->getArray("intermediates")->size(), 5u);
  EXPECT_FALSE(report.toJSON().getAsObject()->get("ratio_without_output"));
}

} // namespace
