//===- LawsTest.cpp - a test per law of docs/Spec.md ----------------------===//
//
// Both sides of each law are interpreted on random shapes and values, empty and
// length-one axes included, and compared bit for bit; where a law holds in real
// arithmetic alone its Equation says so. The rewrite of that name then makes
// the left side the right one's normal form by itself, and without it the left
// side has none. The laws tested are those that docs/Spec.md numbers and those
// that the passes register.
//
//===----------------------------------------------------------------------===//
#include "Laws.h"
#include "lib/Conversion/DNFToONF/DNFToONF.h"
#include "lib/Conversion/DNFToONF/Observer.h"
#include "lib/Conversion/MoAToDNF/Laws.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <cmath>
#include <regex>
#include <set>

using namespace mlir;
using namespace moa;
using namespace moa::test;

namespace {

constexpr unsigned kEquations = 40;

std::string textOf(Operation *op) {
  std::string text;
  llvm::raw_string_ostream os(text);
  op->print(os);
  return text;
}

Operation *kernelOf(ModuleOp module) {
  Operation *kernel = nullptr;
  for (Operation &op : *module.getBody())
    if (!isa<MonoidOp>(op))
      kernel = &op;
  return kernel;
}

KernelInputs argumentsOf(const Equation &equation, const Sizes &sizes, unsigned seed) {
  // A lemma on indices has no parameters.
  KernelInputs inputs;
  inputs.symbols = sizes;
  if (!equation.inputs.empty())
    inputs = randomInputs(cast<KernelOp>(kernelOf(*equation.left)), equation.inputs, sizes, seed);
  if (equation.adjust)
    equation.adjust(inputs);
  return inputs;
}

/// The symbols all 0, all 1, and at random.
std::vector<Sizes> sizesOf(const Equation &equation, Random &random) {
  std::vector<Sizes> all;
  for (int k = 0; k < 7; ++k) {
    Sizes sizes;
    for (const std::string &symbol : lawSymbols()) {
      int64_t drawn = random.pick<int64_t>({0, 1, 2, 3, 5});
      sizes[symbol] = std::max<int64_t>(equation.least, k < 2 ? k : drawn);
    }
    all.push_back(sizes);
  }
  return all;
}

/// Zeros have equal signs.
void expectSameZeros(const std::vector<Array> &got, const std::vector<Array> &expected) {
  for (size_t k = 0; k < got.size() && !testing::Test::HasFailure(); ++k)
    for (size_t i = 0; i < got[k].data.size(); ++i)
      if (got[k].data[i] == 0) {
        ASSERT_EQ(std::signbit(got[k].data[i]), std::signbit(expected[k].data[i]))
            << "output " << k << ", element " << i;
      }
}

class LawTest : public testing::TestWithParam<Law> {
protected:
  /// Calls `check` with equations of the law.
  void forEquations(llvm::function_ref<void(Equation, Random &)> check) {
    for (unsigned k = 0; k < kEquations && !HasFailure(); ++k) {
      Random random(k + 1);
      Equation equation = GetParam().make(random);
      SCOPED_TRACE("equation " + std::to_string(k) + "\n" + textOf(*equation.left) + textOf(*equation.right));
      check(std::move(equation), random);
    }
  }
  /// All names of `names` but the law's own and those it needs.
  std::vector<std::string> allBut(std::vector<std::string> names) {
    llvm::erase_if(names, [&](const std::string &name) {
      return name == GetParam().name || llvm::is_contained(GetParam().with, name);
    });
    return names;
  }
};

class Spec : public LawTest {};

TEST_P(Spec, BothSidesHaveOneMeaning) {
  bool someElement = false;
  forEquations([&](Equation equation, Random &random) {
    for (const Sizes &sizes : sizesOf(equation, random)) {
      std::string trace;
      for (auto &[name, value] : sizes)
        trace += name + "=" + std::to_string(value) + " ";
      SCOPED_TRACE(trace);
      KernelInputs inputs = argumentsOf(equation, sizes, random.seed());
      auto left = run(kernelOf(*equation.left), inputs);
      auto right = run(kernelOf(*equation.right), inputs);
      for (const Array &array : left)
        someElement |= !array.data.empty();
      if (equation.equality == Equality::Close)
        expectClose(right, left);
      else
        expectSame(right, left);
      if (equation.equality == Equality::Bits)
        expectSameZeros(right, left);
      if (HasFailure())
        return;
    }
  });
  EXPECT_TRUE(someElement);
}

//===----------------------------------------------------------------------===//
// ψ and absence
//===----------------------------------------------------------------------===//

class Rewrite : public LawTest {};

/// ψ-reduction with some laws; null, with the message, where it fails.
OwningOpRef<ModuleOp> reduce(ModuleOp module, std::vector<std::string> disabled, std::string *message = nullptr) {
  OwningOpRef<ModuleOp> result = module.clone();
  ScopedDiagnosticHandler handler(&getContext(), [&](Diagnostic &diagnostic) {
    if (!message)
      return failure();
    *message += diagnostic.str();
    return success();
  });
  PassManager manager(&getContext());
  manager.addPass(createConvertMoAToDNFPass(std::move(disabled)));
  if (failed(manager.run(*result)))
    return nullptr;
  return result;
}

/// Constants folded, equal operations merged, in the order of normal forms.
std::string tidyText(ModuleOp module) {
  auto kernel = cast<dnf::KernelOp>(kernelOf(module));
  (void)applyPatternsGreedily(
      kernel.getBody(), RewritePatternSet(&getContext()),
      GreedyRewriteConfig().setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled).enableConstantCSE(false));
  IRRewriter rewriter(&getContext());
  DominanceInfo dominance(kernel);
  eliminateCommonSubExpressions(rewriter, dominance, kernel);
  moa::detail::canonicalise(kernel);
  return textOf(module);
}

TEST_P(Rewrite, GivesTheRightSideByItself) {
  forEquations([&](Equation equation, Random &) {
    auto reduced = reduce(*equation.left, allBut(getPsiLawNames()));
    ASSERT_TRUE(reduced);
    ModuleOp normal = equation.normal ? *equation.normal : *equation.right;
    // Declared ranges of inputs are not the matter of any law.
    for (ModuleOp module : {*reduced, normal})
      for (Operation &kernel : *module.getBody())
        kernel.removeAttr("moa.ranges");
    EXPECT_EQ(textOf(*reduced), tidyText(normal));
  });
}

TEST_P(Rewrite, IsNeeded) {
  forEquations([&](Equation equation, Random &) {
    std::string message;
    EXPECT_FALSE(reduce(*equation.left, {GetParam().name}, &message));
    EXPECT_THAT(message, testing::HasSubstr("is '" + GetParam().name + "' disabled?"));
  });
}

//===----------------------------------------------------------------------===//
// Rules of folds
//===----------------------------------------------------------------------===//

class Rule : public LawTest {};

bool isRule(const std::string &name) {
  OwningOpRef<ModuleOp> empty = ModuleOp::create(UnknownLoc::get(&getContext()));
  ScopedDiagnosticHandler silent(&getContext(), [](Diagnostic &) { return success(); });
  PassManager manager(&getContext());
  manager.addPass(createConvertDNFToONFPass({name}));
  return succeeded(manager.run(*empty));
}

/// The rules that the pass registers.
std::vector<std::string> ruleNames() {
  std::vector<std::string> names;
  for (int k = 0; k < 100; ++k)
    if (std::string name = "R" + std::to_string(k); isRule(name))
      names.push_back(name);
  return names;
}

/// Which rules apply, and whether a state is repaired.
struct Rules final : FoldObserver {
  std::set<std::string> heard;
  void rewrote(StringRef rule, Expr, int64_t, Expr, Expr, Expr) final { heard.insert(rule.str()); }
  void refused(const AccPlan &) final {}
  void planned(dnf::KernelOp, ExprContext &, FoldRules &, ArrayRef<NestPlan> nests) final {
    for (const NestPlan &nest : nests) {
      for (const FoldPlan &fold : nest.folds)
        if (fold.accs.size() > 1)
          heard.insert("R2");
      for (auto &acc : nest.accs)
        if (!acc->rescale.refs.empty())
          heard.insert("R3");
    }
  }
};

struct Folded {
  OwningOpRef<ModuleOp> module;
  Rules rules;
  unsigned passes = 0;
};

Folded fold(ModuleOp left, std::vector<std::string> disabled) {
  Folded folded;
  folded.module = left.clone();
  PassManager manager(&getContext());
  manager.addPass(createConvertMoAToDNFPass());
  manager.addPass(createConvertDNFToONFPass(std::move(disabled), &folded.rules));
  EXPECT_TRUE(succeeded(manager.run(*folded.module)));
  folded.module->walk([&](onf::FoldOp op) { folded.passes += !op->getParentOfType<onf::FoldOp>(); });
  return folded;
}

/// With the rule, and those it needs, alone the left side takes the right
/// side's passes, and has its values; without the rule it takes more, or is
/// another expression.
TEST_P(Rule, AppliesByItself) {
  forEquations([&](Equation equation, Random &random) {
    Folded alone = fold(*equation.left, allBut(ruleNames()));
    EXPECT_TRUE(alone.rules.heard.count(GetParam().name)) << textOf(*alone.module);
    Folded without = fold(*equation.left, {GetParam().name});
    EXPECT_FALSE(without.rules.heard.count(GetParam().name)) << textOf(*without.module);
    EXPECT_NE(textOf(*alone.module), textOf(*without.module));
    for (const Sizes &sizes : sizesOf(equation, random)) {
      KernelInputs inputs = argumentsOf(equation, sizes, random.seed());
      expectClose(run(kernelOf(*alone.module), inputs), run(kernelOf(*equation.right), inputs));
    }
  });
}

//===----------------------------------------------------------------------===//
// Completeness
//===----------------------------------------------------------------------===//

std::vector<Law> allLaws() {
  std::vector<Law> laws = psiLaws();
  for (auto more : {absenceLaws(), foldRules(), lemmas()})
    laws.insert(laws.end(), more.begin(), more.end());
  return laws;
}

/// The laws that docs/Spec.md numbers, with their names.
std::set<std::pair<std::string, std::string>> lawsOfSpec() {
  auto file = llvm::MemoryBuffer::getFile(MOA_SPEC);
  EXPECT_TRUE(bool(file)) << MOA_SPEC;
  std::string text = file ? (*file)->getBuffer().str() : "";
  std::set<std::pair<std::string, std::string>> laws;
  std::regex law("\n\\| ([PA][0-9]+) \\|[^\n]*\\| ([a-z-]+) \\|"), rule("\n\\| (R[0-9]+) \\|");
  std::regex lemma("\n\\*\\*(Lemma [0-9]+) \\(");
  for (std::sregex_iterator it(text.begin(), text.end(), law), end; it != end; ++it)
    laws.emplace((*it)[1], (*it)[2]);
  for (std::sregex_iterator it(text.begin(), text.end(), rule), end; it != end; ++it)
    laws.emplace((*it)[1], isRule((*it)[1]) ? std::string((*it)[1]) : "");
  for (std::sregex_iterator it(text.begin(), text.end(), lemma), end; it != end; ++it)
    laws.emplace((*it)[1], "");
  return laws;
}

TEST(SpecTest, EveryLawOfTheSpecificationIsTested) {
  std::set<std::pair<std::string, std::string>> tested;
  for (const Law &law : allLaws())
    EXPECT_TRUE(tested.emplace(law.number, law.name).second) << law.number << " twice";
  EXPECT_EQ(tested, lawsOfSpec());
}

TEST(SpecTest, EveryRegisteredLawIsTested) {
  std::vector<std::string> tested, registered = getPsiLawNames();
  for (const Law &law : allLaws())
    if (!law.name.empty())
      tested.push_back(law.name);
  for (const std::string &rule : ruleNames())
    registered.push_back(rule);
  EXPECT_THAT(tested, testing::UnorderedElementsAreArray(registered));
}

std::string nameOf(const testing::TestParamInfo<Law> &info) {
  std::string name = info.param.number;
  if (info.param.name != info.param.number && !info.param.name.empty())
    name += "_" + info.param.name;
  for (char &c : name)
    c = c == '-' || c == ' ' ? '_' : c;
  return name;
}

std::vector<Law> rewrites() {
  std::vector<Law> laws = psiLaws();
  for (const Law &law : absenceLaws())
    laws.push_back(law);
  return laws;
}

/// The fold rules that are rewrites of their own: R4 is what a schedule asks for.
std::vector<Law> rules() {
  std::vector<Law> laws;
  for (const Law &law : foldRules())
    if (!law.name.empty())
      laws.push_back(law);
  return laws;
}

INSTANTIATE_TEST_SUITE_P(Laws, Spec, testing::ValuesIn(allLaws()), nameOf);
INSTANTIATE_TEST_SUITE_P(Laws, Rewrite, testing::ValuesIn(rewrites()), nameOf);
INSTANTIATE_TEST_SUITE_P(Laws, Rule, testing::ValuesIn(rules()), nameOf);

} // namespace
