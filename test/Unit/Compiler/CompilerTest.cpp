//===- CompilerTest.cpp - the library as an embedder uses it --------------===//

#include "moa/Compiler.h"
#include "gmock/gmock.h"
#include <cmath>
#include <cstdlib>

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

// Without elementary functions: no toolkit is needed.
TEST(Compiler, ExplainsWhatItRecorded) {
  CompilerOptions options;
  options.explain = true;
  Compilation unit = Compiler(options).compileText(kRowSums, "rows.moa");
  // The order of questions does not matter, and an answer can be had again.
  ASSERT_TRUE(unit.print(Level::ONF)) << unit.renderDiagnostics();
  std::optional<std::string> text = unit.explain();
  ASSERT_TRUE(text) << unit.renderDiagnostics();
  EXPECT_THAT(*text, HasSubstr("P7 psi-reduce"));
  EXPECT_THAT(*text, HasSubstr("Schedule for "));
  EXPECT_EQ(unit.explain(), text);
  // A level further down has no ψ-reduction to tell of.
  Compilation lower = Compiler(options).compileText(*unit.print(Level::DNF), "dnf.mlir");
  text = lower.explain();
  ASSERT_TRUE(text) << lower.renderDiagnostics();
  EXPECT_THAT(*text, Not(HasSubstr("psi-reduce")));
  EXPECT_THAT(*text, HasSubstr("Fusion, by the rules"));
}

TEST(Compiler, WritesPTX) {
  Compilation unit = Compiler().compileText(kRowSums);
  std::optional<PTXFiles> files = unit.ptx();
  ASSERT_TRUE(files) << unit.renderDiagnostics();
  EXPECT_THAT(files->text, HasSubstr(".visible .entry row_sums_0("));
  EXPECT_THAT(files->launcher, HasSubstr("int32_t row_sums_prepare(int32_t device)"));
  EXPECT_THAT(files->launcher, HasSubstr(".visible .entry row_sums_0("));
  EXPECT_THAT(files->manifest, HasSubstr("\"kernel\": \"row_sums_0\""));
  EXPECT_EQ(unit.ptx()->text, files->text);
  Compilation wrong = Compiler().compileText("kernel f[N](x : f32[N]) -> y : f32[N] { y = z }");
  EXPECT_FALSE(wrong.ptx());
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
  EXPECT_EQ((*kernel)({&tx.tensor, &ts.tensor, &ttop.tensor}, {0.5}, &message), 0) << message;
  EXPECT_EQ(s, (std::vector<float>{5, -5}));
  EXPECT_EQ(top, (std::vector<float>{4, -1}));

  // A refusal has a code and a reason and writes nothing.
  tx.shape = {2, 3};
  EXPECT_EQ((*kernel)({&tx.tensor, &ts.tensor, &ttop.tensor}, {1.0}, &message), 5);
  EXPECT_THAT(message, HasSubstr("M % 2"));
  EXPECT_EQ(s, (std::vector<float>{5, -5}));
  EXPECT_NE((*kernel)({&tx.tensor}, {1.0}, &message), 0);
  EXPECT_NE((*kernel)({&tx.tensor, &ts.tensor, &ttop.tensor}, {}, &message), 0);
}

TEST(Compiler, AKernelOutlivesItsCompilation) {
  std::optional<Kernel> kernel = Compiler().compileText(kTwoKernels).load("first");
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
  Compilation unit = Compiler().compileText("kernel k[N](x : f32[N]) -> (y : f32[N])\n"
                                            "{\n  y = x + zzz\n}\n",
                                            "k.moa");
  EXPECT_FALSE(unit.ok());
  ASSERT_EQ(unit.diagnostics().size(), 1u);
  const Diagnostic &error = unit.diagnostics()[0];
  EXPECT_EQ(error.file, "k.moa");
  EXPECT_EQ(error.line, 3u);
  EXPECT_EQ(error.column, 11u);
  EXPECT_THAT(error.message, HasSubstr("zzz"));
  EXPECT_THAT(unit.renderDiagnostics(), HasSubstr("    y = x + zzz\n            ^\n"));
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
  options = {};
  options.optimization = 4;
  EXPECT_THAT(message(options), HasSubstr("expects an optimization level from 0 to 3, but got 4"));
  options = {};
  options.binding = "python";
  EXPECT_THAT(message(options), HasSubstr("there is no binding 'python'; there is tvm-ffi"));
}

TEST(Compiler, KernelsWithABindingRunInThisProcess) {
  CompilerOptions options;
  options.binding = "tvm-ffi";
  Compilation unit = Compiler(options).compileText(kRowSums);
  std::optional<std::string> text = unit.print(Level::LLVM), header = unit.header();
  ASSERT_TRUE(text && header) << unit.renderDiagnostics();
  EXPECT_THAT(*text, HasSubstr("@__tvm_ffi_"));
  EXPECT_THAT(*header, HasSubstr("__tvm_ffi_NAME"));
  // Code for this process has no symbols of libtvm_ffi.
  EXPECT_TRUE(unit.load()) << unit.renderDiagnostics();
}

TEST(Compiler, KernelsForAnotherProcessorAreNotLoaded) {
  CompilerOptions options;
  options.processor = "sapphirerapids";
  Compilation unit = Compiler(options).compileText(kRowSums);
  ASSERT_TRUE(unit.ok()) << unit.renderDiagnostics();
  if (unit.load("row_sums"))
    GTEST_SKIP() << "this processor has all that it has";
  EXPECT_THAT(unit.renderDiagnostics(),
              HasSubstr("kernels for the processor 'sapphirerapids' do not run on this one, '"));
  EXPECT_THAT(unit.renderDiagnostics(), HasSubstr("', which lacks products of bytes or of bf16 that they may use; "
                                                  "leave the option 'processor' empty to run kernels here"));
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
  auto element = unit.evaluateElements("row_sums", Level::DNF, inputs, 0, {{1}});
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

TEST(Compiler, AQuestionThatHasNoAnswerLeavesTheCompilationOpen) {
  Compilation unit = Compiler().compileText(kRowSums, "rows.moa");
  std::vector<ReferenceArray> inputs = {{{2, 2}, {1, 2, 3, 4}}, {{}, {2}}};
  size_t count = unit.diagnostics().size();
  auto isOneMoreError = [&](bool answered) {
    EXPECT_FALSE(answered);
    EXPECT_TRUE(unit.ok());
    EXPECT_EQ(unit.diagnostics().size(), ++count);
    EXPECT_EQ(unit.diagnostics().back().severity, Severity::Error);
  };
  isOneMoreError(bool(unit.bindSymbols("row_sums", {{3, 5}, {}})));
  isOneMoreError(bool(unit.bindSymbols("none", {})));
  isOneMoreError(bool(unit.shapes("row_sums", {})));
  isOneMoreError(bool(unit.evaluate("row_sums", Level::DNF, {})));
  isOneMoreError(bool(unit.evaluateElements("row_sums", Level::DNF, inputs, 7, {{0}})));
  isOneMoreError(bool(unit.load("none")));
  isOneMoreError(bool(unit.flops("none", {})));
  isOneMoreError(bool(unit.explain()));
  EXPECT_EQ(unit.diagnostics().back().message, "the derivation was not recorded; set CompilerOptions::explain");
  isOneMoreError(bool(unit.report(ReportFormat::Text, {{"Q", 1}})));
  isOneMoreError(bool(unit.report(ReportFormat::Text, {{"N", 1}})));
  EXPECT_THAT(unit.diagnostics().back().message, HasSubstr("none of M"));
  EXPECT_TRUE(unit.bindSymbols("row_sums", {{3, 4}, {}}));
  EXPECT_TRUE(unit.evaluate("row_sums", Level::ONF, inputs));
  EXPECT_TRUE(unit.load()) << unit.renderDiagnostics();

  // A level above the input's is no error of the input either.
  Compilation lower = Compiler().compileText(*unit.print(Level::ONF), "onf.mlir");
  EXPECT_FALSE(lower.print(Level::DNF));
  EXPECT_EQ(lower.diagnostics().back().message, "the input stands below the level dnf: it is at the level onf");
  EXPECT_TRUE(lower.print(Level::Lifted)) << lower.renderDiagnostics();
}

TEST(Compiler, EveryQuestionToAFailedCompilationAddsAnError) {
  Compilation unit = Compiler().compileText("kernel k", "k.moa");
  size_t count = unit.diagnostics().size();
  auto isOneMoreError = [&](bool answered) {
    EXPECT_FALSE(answered);
    EXPECT_EQ(unit.diagnostics().size(), ++count);
    EXPECT_EQ(unit.diagnostics().back().message, "there is no answer: the compilation has failed");
  };
  isOneMoreError(bool(unit.print(Level::MoA)));
  isOneMoreError(bool(unit.print(Level::LLVM)));
  isOneMoreError(bool(unit.mathematics()));
  isOneMoreError(bool(unit.explain()));
  isOneMoreError(bool(unit.object()));
  isOneMoreError(bool(unit.header()));
  isOneMoreError(bool(unit.schedule()));
  isOneMoreError(bool(unit.report(ReportFormat::Text)));
  isOneMoreError(bool(unit.load("k")));
  isOneMoreError(bool(unit.bindSymbols("k", {})));
  isOneMoreError(bool(unit.shapes("k", {})));
  isOneMoreError(bool(unit.evaluate("k", Level::MoA, {})));
  isOneMoreError(bool(unit.evaluateElements("k", Level::MoA, {}, 0, {})));
  isOneMoreError(bool(unit.flops("k", {})));
}

TEST(Compiler, SymbolsThatOnlyAResultHas) {
  Compilation unit = Compiler().compileText("kernel rows[N, L](x : f32[L]) -> O : f32[N, L] { O = [_, l] x[l] }");
  std::vector<ReferenceArray> inputs = {{{2}, {5, 7}}};
  for (Level level : {Level::MoA, Level::DNF, Level::ONF, Level::Lifted}) {
    auto outputs = unit.evaluate("rows", level, inputs, 0, {{"N", 2}});
    ASSERT_TRUE(outputs) << unit.renderDiagnostics();
    EXPECT_EQ((*outputs)[0].data, (std::vector<double>{5, 7, 5, 7}));
    auto element = unit.evaluateElements("rows", level, inputs, 0, {{1, 1}}, 0, {{"N", 2}});
    ASSERT_TRUE(element) << unit.renderDiagnostics();
    EXPECT_EQ(*element, (std::vector<double>{7}));
  }
  EXPECT_FALSE(unit.evaluate("rows", Level::MoA, inputs));
  EXPECT_THAT(unit.renderDiagnostics(), HasSubstr("symbol 'N' has no value"));
}

// A constraint that divides by zero says nothing where nothing is computed.
TEST(Compiler, EmptyOutputsNeedNoQuotients) {
  Compilation unit = Compiler().compileText(R"(
kernel shared[H, G, N](q : f32[H, N], k : f32[G, N]) -> y : f32[H, N]
  require H % G == 0
{ y = [h < H] q[h] * k[h / (H/G)] }
)");
  std::optional<Kernel> kernel = unit.load();
  ASSERT_TRUE(kernel) << unit.renderDiagnostics();
  struct Case {
    int64_t heads, groups, size;
    bool good;
  };
  std::vector<float> q(8), k(8), y(8);
  for (Case c : {Case{0, 0, 3, true}, {4, 0, 0, true}, {4, 2, 2, true}, {4, 0, 2, false}, {4, 3, 2, false}}) {
    std::vector<int64_t> rows = {c.heads, c.size}, shared = {c.groups, c.size};
    EXPECT_EQ(unit.bindSymbols("shared", {rows, shared}).has_value(), c.good);
    std::vector<ReferenceArray> inputs = {{rows, std::vector<double>(c.heads * c.size)},
                                          {shared, std::vector<double>(c.groups * c.size)}};
    for (Level level : {Level::MoA, Level::DNF, Level::ONF, Level::Lifted})
      EXPECT_EQ(unit.evaluate("shared", level, inputs).has_value(), c.good);
    Tensor tq(q.data(), rows), tk(k.data(), shared), ty(y.data(), rows);
    std::string message;
    int32_t code = (*kernel)({&tq.tensor, &tk.tensor, &ty.tensor}, {}, &message);
    EXPECT_EQ(code == 0, c.good) << message;
  }
}

// Integers compute in 64 bits and wrap where they are stored; the least of
// nothing is the greatest integer of 64 bits, which wraps to -1.
TEST(Compiler, IntegerResultsWrapAtTheirWidth) {
  for (auto [type, expected] :
       {std::pair("i8", std::vector<double>{-18, 18}), {"i16", {2798, -2798}}, {"i32", {-1530524946, 1530524946}}}) {
    Compilation unit = Compiler().compileText(std::string("kernel k[N](x : i32[N]) -> (y : ") + type +
                                              "[N], none : " + type + ") { y = x * 50  none = min/ mask(false, x) }");
    ASSERT_TRUE(unit.ok()) << unit.renderDiagnostics();
    std::vector<ReferenceArray> inputs = {{{2}, {55288847, -55288847}}};
    for (Level level : {Level::MoA, Level::DNF, Level::ONF, Level::Lifted}) {
      auto outputs = unit.evaluate("k", level, inputs);
      ASSERT_TRUE(outputs) << unit.renderDiagnostics();
      EXPECT_EQ((*outputs)[0].data, expected) << getLevelName(level);
      EXPECT_EQ((*outputs)[1].data, (std::vector<double>{-1}));
    }
  }
}

TEST(Compiler, QuestionsNameTheirKernel) {
  Compilation unit = Compiler().compileText(kTwoKernels);
  EXPECT_FALSE(unit.shapes("", {{"N", 3}}));
  EXPECT_EQ(unit.diagnostics().back().message, "a kernel must be named; there are first, second");
}

TEST(Compiler, ShapesNeedSizes) {
  Compilation unit =
      Compiler().compileText("kernel k[N, M](x : f32[N, M]) -> y : f32[N - 5] { y = drop(+/ x, 5) }", "k.moa");
  ASSERT_TRUE(unit.ok()) << unit.renderDiagnostics();
  EXPECT_FALSE(unit.shapes("k", {{"N", 3}, {"M", 1}}));
  EXPECT_EQ(unit.diagnostics().back().message, "y : f32[N - 5]: the extent N - 5 = -2 is negative");
  EXPECT_FALSE(unit.shapes("k", {{"N", 3}}));
  EXPECT_EQ(unit.diagnostics().back().message, "x : f32[N, M]: the extent M has no value");
}

TEST(Compiler, CallsHaveAllArguments) {
  Compilation unit = Compiler().compileText(kRowSums);
  std::optional<Kernel> kernel = unit.load();
  ASSERT_TRUE(kernel) << unit.renderDiagnostics();
  std::string message;
  EXPECT_NE((*kernel)({}, {}, &message), 0);
  EXPECT_EQ(message, "expects 3 arrays, but got 0");
  std::vector<float> x(8), s(2), top(2);
  Tensor tx(x.data(), {2, 4}), ts(s.data(), {2}), tt(top.data(), {2});
  EXPECT_NE((*kernel)({&tx.tensor, &ts.tensor, &tt.tensor}, {}, &message), 0);
  EXPECT_EQ(message, "expects 1 scalars, but got 0");
}

TEST(Compiler, WhatIsLiftedHasItsSchedule) {
  Compilation unit = Compiler().compileText(kRowSums);
  std::optional<std::string> text = unit.print(Level::Lifted);
  ASSERT_TRUE(text) << unit.renderDiagnostics();
  Compilation lifted = Compiler().compileText(*text, "lifted.mlir");
  ASSERT_TRUE(lifted.ok()) << lifted.renderDiagnostics();
  EXPECT_FALSE(lifted.schedule());
  EXPECT_EQ(lifted.diagnostics().back().message, "the input is lifted already; there is no schedule to print");
  CompilerOptions options;
  options.schedule = *unit.schedule();
  Compilation again = Compiler(options).compileText(*text, "lifted.mlir");
  EXPECT_EQ(again.diagnostics().back().message,
            "schedule: lifted.mlir is lifted already; a schedule applies to the levels above");
}

// Where code was inlined, the place of the call stands first.
TEST(Compiler, ACallIsShownBeforeWhatItCalls) {
  Compilation unit = Compiler().compileText("module {\n  func.func @f() { return } "
                                            "loc(callsite(\"called.moa\":1:2 at \"caller.moa\":3:4))\n}\n",
                                            "f.mlir");
  std::string text = unit.renderDiagnostics();
  EXPECT_THAT(text, testing::StartsWith("caller.moa:3:4: error: expects kernels of moa, dnf or onf"));
  EXPECT_THAT(text, HasSubstr("\ncalled.moa:1:2: note: in the function called here\n"));
}

// Messages without a place are the tool's.
TEST(Compiler, AProgramNamesItselfWhereThereIsNoPlace) {
  Compilation unit = Compiler().compileFile("none.moa");
  EXPECT_EQ(unit.renderDiagnostics(), "error: none.moa: No such file or directory\n");
  EXPECT_EQ(unit.renderDiagnostics(false, "tool"), "tool: error: none.moa: No such file or directory\n");
  Compilation wrong = Compiler().compileText("kernel", "k.moa");
  EXPECT_EQ(wrong.renderDiagnostics(), wrong.renderDiagnostics(false, "tool"));
}

static Compilation compileExample(const std::string &name, CompilerOptions options) {
  const char *root = std::getenv("MOA_SOURCE_ROOT");
  return Compiler(options).compileFile(std::string(root) + "/" + name);
}

TEST(Compiler, TheExplanationHasItsSections) {
  CompilerOptions options;
  options.explain = true;
  options.architecture = "sm_90a";
  Compilation unit = compileExample("examples/gqa_causal.moa", options);
  std::optional<std::string> text = unit.explain();
  ASSERT_TRUE(text) << unit.renderDiagnostics();
  size_t at = 0;
  for (const char *heading :
       {"\nArrays, with the functions they call written out\n",
        "\nψ-reduction, by the laws of docs/Spec.md, sections 3 and 4, from the outputs inward\n",
        "\nDenotational normal form\n", "\nFusion, by the rules R0 to R7 of docs/Spec.md, section 6\n",
        "\nOperational normal form\n", "\nMasks as intervals, for a tile of rows\n",
        "\nSchedule for h200, the factors of each axis from the outermost in\n",
        "  pipeline: ", " registers per thread that computes, ", " per thread that copies",
        "; products overlap the states of the next tile"}) {
    size_t found = text->find(heading, at);
    ASSERT_NE(found, std::string::npos) << heading;
    at = found;
  }
  options.schedule = *unit.schedule();
  size_t end = options.schedule.find("\"overlap\"");
  ASSERT_NE(end, std::string::npos);
  if (size_t held = options.schedule.find("\"held\": false"); held != std::string::npos)
    options.schedule.erase(held, options.schedule.find('"', held + 2) - held);
  options.schedule.insert(end, "\"held\": true, \"turns\": true, ");
  Compilation again = compileExample("examples/gqa_causal.moa", options);
  text = again.explain();
  ASSERT_TRUE(text) << again.renderDiagnostics();
  EXPECT_THAT(*text, HasSubstr("; rows are held in registers; warpgroups take turns\n"));
}

TEST(Compiler, TheReportHasScalarsAndWhatIsRecomputed) {
  Compilation unit = Compiler().compileText("kernel k[N](x : f32[N]) -> y : f32 { y = +/ x }", "k.moa");
  EXPECT_THAT(unit.report(ReportFormat::Text).value_or(""), HasSubstr("  nest 0: for one element; 1 pass: "));
  Compilation again = compileExample("test/Families/talking_heads.moa", {});
  EXPECT_THAT(again.report(ReportFormat::Text).value_or(""),
              HasSubstr("\nrecomputed\n  Q +.* transpose(K): each element 2*H times, at 2 places, "
                        "for every h < H"));
}

TEST(Compiler, TheTextForAGpuOpensWithWhatItMoves) {
  CompilerOptions options;
  options.architecture = "sm_90a";
  Compilation unit = Compiler(options).compileText(kRowSums);
  std::optional<std::string> text = unit.cuda();
  ASSERT_TRUE(text) << unit.renderDiagnostics();
  EXPECT_THAT(*text, HasSubstr("// Moves in elements: reads "));
  EXPECT_THAT(*text, HasSubstr("; one operator after the other, reads or keeps "));
  EXPECT_THAT(*text, HasSubstr("Denotational normal form of row_sums["));
  EXPECT_THAT(*text, HasSubstr("Operational normal form of row_sums["));
}

TEST(Compiler, ScalarsOutOfRangeSaturate) {
  EXPECT_EQ(Scalar(1e300).asInteger(), INT64_MAX);
  EXPECT_EQ(Scalar(-1e300).asInteger(), INT64_MIN);
  EXPECT_EQ(Scalar(std::nan("")).asInteger(), 0);
  EXPECT_EQ(Scalar(-2.75).asInteger(), -2);
}

TEST(Compiler, NamesThatCHasAreRefused) {
  for (const char *name :
       {"double", "exp", "memcpy", "DLTensor", "int32_t", "MOA_OK", "omp_get_max_threads", "__x", "_Bool"}) {
    Compilation unit =
        Compiler().compileText(std::string("kernel ") + name + "[N](x : f32[N]) -> y : f32[N] { y = x }");
    EXPECT_TRUE(unit.print(Level::ONF)) << unit.renderDiagnostics();
    EXPECT_FALSE(unit.header()) << name;
    EXPECT_THAT(unit.renderDiagnostics(), HasSubstr("cannot be called"));
  }
}

TEST(Compiler, ErrorsOfAScheduleNameItsFile) {
  CompilerOptions options;
  options.scheduleFile = "mine.json";
  auto message = [&](const std::string &schedule) {
    options.schedule = schedule;
    Compilation unit = Compiler(options).compileText(kRowSums);
    EXPECT_FALSE(unit.print(Level::Lifted));
    EXPECT_FALSE(unit.ok());
    return unit.renderDiagnostics();
  };
  std::string good = *Compiler().compileText(kRowSums).schedule();
  auto edited = [&](const std::string &from, const std::string &to) {
    std::string text = good;
    return text.replace(text.find(from), from.size(), to);
  };
  EXPECT_THAT(message("{"), HasSubstr("mine.json: schedule: "));
  EXPECT_THAT(message(edited("row_sums", "sums")), HasSubstr("mine.json: schedule: no kernel is called 'sums'"));
  EXPECT_THAT(message(edited("\"machine\": \"", "\"machine\": \"other-")),
              HasSubstr("mine.json: schedule: it is for the machine 'other-"));
  EXPECT_THAT(message(edited("\"core\"", "\"cores\"")), HasSubstr("mine.json: schedule: unknown key 'cores'"));
}

TEST(Compiler, AFunctionIsNoKernel) {
  Compilation unit = Compiler().compileText("module {\n  func.func @f() { return }\n}", "f.mlir");
  EXPECT_FALSE(unit.ok());
  std::string text = unit.renderDiagnostics();
  EXPECT_THAT(text, HasSubstr("f.mlir:2:3: error: expects kernels of moa, dnf or "
                              "onf, or device programs, but got 'func.func'"));
  EXPECT_EQ(text.find("see current operation"), std::string::npos) << text;
}

TEST(Compiler, ErrorsOfVerifiersShowNoOp) {
  std::string text = *Compiler().compileText(kRowSums).print(Level::MoA);
  size_t at = text.find("moa.reduce");
  ASSERT_NE(at, std::string::npos);
  at = text.find("axis 1", at);
  ASSERT_NE(at, std::string::npos) << text;
  Compilation unit = Compiler().compileText(text.replace(at, 6, "axis 7"), "rows.mlir");
  EXPECT_FALSE(unit.ok());
  EXPECT_THAT(unit.renderDiagnostics(), HasSubstr("rows.mlir:"));
  EXPECT_THAT(unit.renderDiagnostics(), testing::Not(HasSubstr("see current operation")));
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
  EXPECT_EQ(masked.flops("lower", {{"N", 10}}), 2.0 * 55) << masked.renderDiagnostics();
  // Without the analysis of masks every row visits every key.
  CompilerOptions options;
  options.disabledRules = {"intervals"};
  Compilation visited = Compiler(options).compileText(lower);
  EXPECT_EQ(visited.flops("lower", {{"N", 10}}), 2.0 * 100);
}

TEST(Compiler, FlopsCountWorkAsWritten) {
  const char *text = "kernel k[H, N, M](q : f32[H, N, 16], x : f32[H, M, 16], v : f32[H, M, 8])\n"
                     "    -> (y : f32[H, N, 8] within 5e-2 relative sampled) {\n"
                     "  y = softmax(q +.* transpose(x)) +.* v\n}\n";
  const std::map<std::string, int64_t> at = {{"H", 2}, {"N", 300}, {"M", 500}};
  const double written = 2.0 * 2 * 300 * 500 * (16 + 8);
  EXPECT_EQ(Compiler().compileText(text).flops("k", at), written);
  // Copies for plans, samples and what only decisions need are none of it.
  for (bool decides : {false, true})
    for (int64_t classes : {0, 256}) {
      CompilerOptions options;
      options.accuracy.emplace();
      options.accuracy->mixedPrecision = true;
      options.accuracy->mixedPrecisionFrom = 256;
      options.accuracy->variantsOfGpu = true;
      options.accuracy->lowRankFrom = classes;
      options.accuracy->decisions = decides;
      Compilation unit = Compiler(options).compileText(text);
      ASSERT_TRUE(unit.ok()) << unit.renderDiagnostics();
      ASSERT_FALSE(unit.spent("k", "y").empty());
      EXPECT_EQ(unit.flops("k", at), written) << decides << " " << classes;
    }
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
  EXPECT_THAT(Compiler().compileFile("/none.moa").renderDiagnostics(), HasSubstr("/none.moa"));
  EXPECT_THAT(Compiler().compileText("kernel \xff", "b.moa").renderDiagnostics(),
              HasSubstr("b.moa: the text is not UTF-8"));
  EXPECT_FALSE(Compiler().compileText("").ok());
  EXPECT_FALSE(Compiler().compileText("module {}", "empty.mlir").ok());
}

} // namespace
