//===- CompilerTest.cpp - the library as an embedder uses it --------------===//

#include "moa/Compiler.h"
#include "gmock/gmock.h"

using namespace moa;
using testing::HasSubstr;

namespace {

const char *const kRowSums = R"(
kernel row_sums[N, M; T : float = f32](x : T[N, M], scale : f32)
    -> (s : T[N], top : T[N])
  require M % 2 == 0
{
  s = scale * (+/ x)
  top = max/ x
}
)";

const char *const kTwoKernels = R"(
kernel first[N](x : f32[N]) -> (y : f32[N]) { y = x * 2.0 }
kernel second[N](x : f64[N]) -> (y : f64[N]) { y = x + 1.0 }
)";

/// A row-major descriptor.
struct Tensor {
  Tensor(float *data, std::vector<int64_t> extents) : shape(extents) {
    tensor.data = data;
    tensor.device.device_type = 1;
    tensor.ndim = int32_t(shape.size());
    tensor.dtype = {2, 32, 1};
    tensor.shape = shape.data();
  }
  std::vector<int64_t> shape;
  DLTensor tensor = {};
};

TEST(Compiler, PrintsEveryLevel) {
  Compilation unit = Compiler().compileText(kRowSums);
  ASSERT_TRUE(unit.ok()) << unit.renderDiagnostics();
  for (auto [level, word] : {std::pair(Level::MoA, "moa.reduce"),
                             {Level::DNF, "dnf.output"},
                             {Level::ONF, "onf.fold"},
                             {Level::Lifted, "#onf.axis"},
                             {Level::Vector, "func.func @row_sums_nest0"},
                             {Level::LLVM, "i32 @row_sums(ptr"}}) {
    std::optional<std::string> text = unit.print(level);
    ASSERT_TRUE(text) << unit.renderDiagnostics();
    EXPECT_NE(text->find(word), std::string::npos) << getLevelName(level);
    EXPECT_EQ(parseLevel(getLevelName(level)), level);
  }
  EXPECT_FALSE(parseLevel("softly"));
}

TEST(Compiler, LevelsAreReadBack) {
  Compilation unit = Compiler().compileText(kRowSums);
  for (Level level : {Level::MoA, Level::DNF, Level::ONF, Level::Lifted}) {
    std::optional<std::string> text = unit.print(level);
    ASSERT_TRUE(text) << unit.renderDiagnostics();
    Compilation again = Compiler().compileText(*text, "again.mlir");
    ASSERT_TRUE(again.ok()) << again.renderDiagnostics();
    EXPECT_EQ(again.print(level), text);
    EXPECT_EQ(again.print(Level::Lifted), unit.print(Level::Lifted));
  }
}

TEST(Compiler, CallsAKernel) {
  Compilation unit = Compiler().compileText(kRowSums);
  std::optional<Kernel> kernel = unit.load("row_sums");
  ASSERT_TRUE(kernel) << unit.renderDiagnostics();
  std::vector<float> x = {1, 2, 3, 4, -1, -2, -3, -4}, s(2), top(2);
  Tensor tx(x.data(), {2, 4}), ts(s.data(), {2}), ttop(top.data(), {2});
  std::string message;
  EXPECT_EQ((*kernel)({&tx.tensor, &ts.tensor, &ttop.tensor}, {0.5}, &message),
            0)
      << message;
  EXPECT_EQ(s, (std::vector<float>{5, -5}));
  EXPECT_EQ(top, (std::vector<float>{4, -1}));

  // A refusal has a code and a reason and writes nothing.
  tx.shape = {2, 3};
  EXPECT_EQ((*kernel)({&tx.tensor, &ts.tensor, &ttop.tensor}, {1.0}, &message),
            5);
  EXPECT_THAT(message, HasSubstr("M % 2"));
  EXPECT_EQ(s, (std::vector<float>{5, -5}));
  EXPECT_NE((*kernel)({&tx.tensor}, {1.0}, &message), 0);
  EXPECT_NE((*kernel)({&tx.tensor, &ts.tensor, &ttop.tensor}, {}, &message), 0);
}

TEST(Compiler, AKernelOutlivesItsCompilation) {
  std::optional<Kernel> kernel =
      Compiler().compileText(kTwoKernels).load("first");
  ASSERT_TRUE(kernel);
  std::vector<float> x = {3}, y(1);
  Tensor tx(x.data(), {1}), ty(y.data(), {1});
  EXPECT_EQ((*kernel)({&tx.tensor, &ty.tensor}, {}), 0);
  EXPECT_EQ(y[0], 6);
}

TEST(Compiler, SeveralKernels) {
  Compilation unit = Compiler().compileText(kTwoKernels);
  ASSERT_TRUE(unit.ok()) << unit.renderDiagnostics();
  ASSERT_EQ(unit.kernels().size(), 2u);
  EXPECT_EQ(unit.kernels()[1].parameters[0].elementType, "f64");
  std::optional<std::string> header = unit.header();
  ASSERT_TRUE(header);
  EXPECT_THAT(*header, HasSubstr("int32_t second("));
  EXPECT_TRUE(unit.object()) << unit.renderDiagnostics();
  std::optional<std::string> schedule = unit.schedule();
  ASSERT_TRUE(schedule);
  EXPECT_EQ(schedule->front(), '[');
  EXPECT_FALSE(unit.load("third"));
  EXPECT_THAT(unit.renderDiagnostics(), HasSubstr("there are first, second"));
}

TEST(Compiler, TheScheduleIsFedBack) {
  Compilation unit = Compiler().compileText(kRowSums);
  std::optional<std::string> schedule = unit.schedule();
  ASSERT_TRUE(schedule) << unit.renderDiagnostics();
  CompilerOptions options;
  options.schedule = *schedule;
  Compilation same = Compiler(options).compileText(kRowSums);
  EXPECT_EQ(same.print(Level::Lifted), unit.print(Level::Lifted));
  options.schedule = "{ not JSON";
  Compilation wrong = Compiler(options).compileText(kRowSums);
  EXPECT_FALSE(wrong.print(Level::Lifted));
  EXPECT_FALSE(wrong.ok());
}

TEST(Compiler, DiagnosticsAreStructured) {
  Compilation unit =
      Compiler().compileText("kernel k[N](x : f32[N]) -> (y : f32[N])\n"
                             "{\n  y = x + zzz\n}\n",
                             "k.moa");
  EXPECT_FALSE(unit.ok());
  ASSERT_EQ(unit.diagnostics().size(), 1u);
  const Diagnostic &error = unit.diagnostics()[0];
  EXPECT_EQ(error.file, "k.moa");
  EXPECT_EQ(error.line, 3u);
  EXPECT_EQ(error.column, 11u);
  EXPECT_THAT(error.message, HasSubstr("zzz"));
  EXPECT_THAT(unit.renderDiagnostics(),
              HasSubstr("    y = x + zzz\n            ^\n"));
  EXPECT_FALSE(unit.print(Level::DNF));
  EXPECT_FALSE(unit.object());
  EXPECT_FALSE(unit.header());
}

TEST(Compiler, BadOptionsAreErrors) {
  auto message = [](CompilerOptions options) {
    Compilation unit = Compiler(options).compileText(kRowSums);
    EXPECT_FALSE(unit.object());
    return unit.renderDiagnostics();
  };
  CompilerOptions options;
  options.settings = {"T"};
  EXPECT_THAT(message(options), HasSubstr("NAME=VALUE"));
  options.settings = {"T=f32", "T=f64"};
  EXPECT_THAT(message(options), HasSubstr("set twice"));
  options = {};
  options.disabledRules = {"R9"};
  EXPECT_THAT(message(options), HasSubstr("'R9'"));
  options = {};
  options.processor = "no-such-cpu";
  EXPECT_THAT(message(options), HasSubstr("no-such-cpu"));
}

TEST(Compiler, SettingsSpecialise) {
  CompilerOptions options;
  options.settings = {"T=f64", "M=8"};
  Compilation unit = Compiler(options).compileText(kRowSums);
  ASSERT_TRUE(unit.ok()) << unit.renderDiagnostics();
  EXPECT_EQ(unit.kernels()[0].parameters[0].elementType, "f64");
  EXPECT_EQ(unit.kernels()[0].parameters[0].extents[1], "8");
}

TEST(Compiler, EvaluatesEveryLevel) {
  Compilation unit = Compiler().compileText(kRowSums);
  std::vector<ReferenceArray> inputs = {{{2, 2}, {1, 2, 3, 4}}, {{}, {2}}};
  for (Level level : {Level::MoA, Level::DNF, Level::ONF, Level::Lifted}) {
    auto outputs = unit.evaluate("row_sums", level, inputs);
    ASSERT_TRUE(outputs) << unit.renderDiagnostics();
    EXPECT_EQ((*outputs)[0].data, (std::vector<double>{6, 14}));
    EXPECT_EQ((*outputs)[1].data, (std::vector<double>{2, 4}));
  }
  auto element =
      unit.evaluateElements("row_sums", Level::DNF, inputs, 0, {{1}});
  ASSERT_TRUE(element);
  EXPECT_EQ(*element, (std::vector<double>{14}));
}

TEST(Compiler, BindsAndChecksSymbols) {
  Compilation unit = Compiler().compileText(kRowSums);
  auto symbols = unit.bindSymbols("row_sums", {{3, 4}, {}});
  ASSERT_TRUE(symbols) << unit.renderDiagnostics();
  EXPECT_EQ(symbols->at("N"), 3);
  auto shapes = unit.shapes("row_sums", *symbols);
  ASSERT_TRUE(shapes);
  EXPECT_EQ(shapes->back(), (std::vector<int64_t>{3}));
  EXPECT_FALSE(unit.bindSymbols("row_sums", {{3, 5}, {}}));
  EXPECT_THAT(unit.renderDiagnostics(), HasSubstr("M"));
}

TEST(Compiler, FlopsCountPresentTerms) {
  Compilation unit = Compiler().compileText(R"(
kernel product[N, M; D = 4](a : f32[N, D], b : f32[D, M]) -> (c : f32[N, M])
{ c = a +.* b }
)");
  EXPECT_EQ(unit.flops("product", {{"N", 3}, {"M", 5}}), 2.0 * 3 * 5 * 4);
  const char *lower = R"(
kernel lower[N](a : f32[N], b : f32[N, N]) -> (c : f32[N])
{ c = +/ mask([i, j] j <= i, [i < N, j < N] a[j] * b[i, j]) }
)";
  Compilation masked = Compiler().compileText(lower);
  ASSERT_TRUE(masked.ok()) << masked.renderDiagnostics();
  EXPECT_EQ(masked.flops("lower", {{"N", 10}}), 2.0 * 55)
      << masked.renderDiagnostics();
  // Without the analysis of masks every row visits every key.
  CompilerOptions options;
  options.disabledRules = {"intervals"};
  Compilation visited = Compiler(options).compileText(lower);
  EXPECT_EQ(visited.flops("lower", {{"N", 10}}), 2.0 * 100);
}

TEST(Compiler, FlopsCountEverySumOfProductsOnce) {
  // K'V is computed again for every row of Q, which is no work asked for.
  Compilation chain = Compiler().compileText(R"(
kernel chain[N, M; D = 4, E = 8](Q : f32[N, D], K : f32[M, D], V : f32[M, E]) -> (O : f32[N, E])
{ KV = transpose(K) +.* V  O = Q +.* KV }
)");
  ASSERT_TRUE(chain.ok()) << chain.renderDiagnostics();
  EXPECT_EQ(chain.flops("chain", {{"N", 10}, {"M", 7}}), 2.0 * (7 * 4 * 8 + 10 * 4 * 8));
  // One contraction that two nests read.
  Compilation shared = Compiler().compileText(R"(
kernel shared[N, M; D = 4](a : f32[N, D], b : f32[D, M]) -> (c : f32[N, M], best : f32[N])
{ c = a +.* b  best = max/ c }
)");
  ASSERT_TRUE(shared.ok()) << shared.renderDiagnostics();
  EXPECT_EQ(shared.flops("shared", {{"N", 3}, {"M", 5}}), 2.0 * 3 * 5 * 4);
  // A mask reduces the contractions below it, the scores and the values.
  Compilation causal = Compiler().compileText(R"(
kernel causal[N; D = 4](Q : f32[N, D], K : f32[N, D], V : f32[N, D]) -> (O : f32[N, D])
{ O = softmax(mask([i, j] j <= i, Q +.* transpose(K))) +.* V }
)");
  ASSERT_TRUE(causal.ok()) << causal.renderDiagnostics();
  EXPECT_EQ(causal.flops("causal", {{"N", 10}}), 2.0 * 2 * 4 * 55);
  // A factor that knows no row counts once for all rows.
  Compilation keys = Compiler().compileText(R"(
kernel keys[N, M; D = 4](x : f32[N, M], k : f32[M, D]) -> (y : f32[N])
{ w = +/ (k * k)  y = x +.* w }
)");
  ASSERT_TRUE(keys.ok()) << keys.renderDiagnostics();
  EXPECT_EQ(keys.flops("keys", {{"N", 10}, {"M", 7}}), 2.0 * (7 * 4 + 10 * 7));
}

TEST(Compiler, ReportsAndTimes) {
  Compilation unit = Compiler().compileText(kRowSums);
  std::optional<std::string> text = unit.report(ReportFormat::Text);
  ASSERT_TRUE(text) << unit.renderDiagnostics();
  EXPECT_THAT(*text, HasSubstr("workspace: threads * "));
  std::optional<std::string> json = unit.report(ReportFormat::JSON);
  ASSERT_TRUE(json);
  EXPECT_THAT(*json, HasSubstr("\"workspace_bytes_per_thread\""));
  EXPECT_FALSE(unit.times().empty());
  EXPECT_FALSE(unit.report(ReportFormat::Text, {{"Q", 1}}));
}

TEST(Compiler, MissingAndMalformedInput) {
  EXPECT_THAT(Compiler().compileFile("/none.moa").renderDiagnostics(),
              HasSubstr("/none.moa"));
  EXPECT_THAT(
      Compiler().compileText("kernel \xff", "b.moa").renderDiagnostics(),
      HasSubstr("b.moa: the text is not UTF-8"));
  EXPECT_FALSE(Compiler().compileText("").ok());
  EXPECT_FALSE(Compiler().compileText("module {}", "empty.mlir").ok());
}

} // namespace
