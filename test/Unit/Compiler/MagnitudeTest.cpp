//===- MagnitudeTest.cpp - what component-wise errors are relative to -----===//
//
// Def 24 of docs/Spec.md, one case per row of its tables, against loops by hand.
//
//===----------------------------------------------------------------------===//

#include "moa/Compiler.h"
#include "gmock/gmock.h"
#include <cmath>
#include <tuple>

using namespace moa;

namespace {

constexpr int64_t N = 3, M = 4;

/// A matrix of both signs.
double elementX(int64_t i, int64_t j) { return std::sin(3.0 * double(i) + 1.7 * double(j) + 1); }
double elementW(int64_t j) { return std::cos(2.3 * double(j) + 0.4); }

/// The magnitudes of `y`, of a body that computes it from x : f64[N, M], w : f64[M] and
/// s : f64, which is −0.5.
std::vector<double> magnitudesOf(const std::string &body, const std::string &type = "f64[N]",
                                 const std::string &functions = "") {
  Compilation unit =
      Compiler().compileText(functions + "kernel k[N, M](x : f64[N, M], w : f64[M], s : f64) -> y : " + type +
                                 " require M >= 4 { " + body + " }\n",
                             "k.moa");
  ReferenceArray x{{N, M}, {}}, w{{M}, {}}, s{{}, {-0.5}};
  for (int64_t i = 0; i < N; ++i)
    for (int64_t j = 0; j < M; ++j)
      x.data.push_back(elementX(i, j));
  for (int64_t j = 0; j < M; ++j)
    w.data.push_back(elementW(j));
  std::vector<std::vector<int64_t>> indices;
  for (int64_t i = 0; i < (type == "f64" ? 1 : N); ++i)
    indices.push_back(type == "f64" ? std::vector<int64_t>() : std::vector<int64_t>{i});
  auto values = unit.evaluateMagnitudes("k", {x, w, s}, 0, indices);
  EXPECT_TRUE(values) << body << "\n" << unit.renderDiagnostics();
  return values.value_or(std::vector<double>());
}

/// Expects that row i of `body` has the magnitude expected(i).
template <typename Expected> void expectMagnitudes(const std::string &body, Expected expected) {
  std::vector<double> values = magnitudesOf(body);
  ASSERT_EQ(int64_t(values.size()), N) << body;
  for (int64_t i = 0; i < N; ++i)
    EXPECT_NEAR(values[i], expected(i), 1e-14 * (1 + expected(i))) << body << " at " << i;
}

template <typename Term> double sum(Term term) {
  double result = 0;
  for (int64_t j = 0; j < M; ++j)
    result += term(j);
  return result;
}

/// Σⱼ |x[i, j]| |w[j]|.
double contraction(int64_t i) {
  return sum([&](int64_t j) { return std::fabs(elementX(i, j) * elementW(j)); });
}
double value(int64_t i) {
  return sum([&](int64_t j) { return elementX(i, j) * elementW(j); });
}

TEST(Magnitude, OfAContractionIsTheProductOfAbsoluteValues) {
  expectMagnitudes("y = x +.* w", contraction);
  // The operands count with their values, whatever they were computed by.
  expectMagnitudes("y = (x - 0.25) +.* (w * w)", [](int64_t i) {
    return sum([&](int64_t j) { return std::fabs(elementX(i, j) - 0.25) * elementW(j) * elementW(j); });
  });
}

TEST(Magnitude, OfWhatHoldsNoSumIsTheAbsoluteValue) {
  expectMagnitudes("y = x[_, 1] * x[_, 2]", [](int64_t i) { return std::fabs(elementX(i, 1) * elementX(i, 2)); });
  expectMagnitudes("y = max(x[_, 1] - x[_, 2], x[_, 3])",
                   [](int64_t i) { return std::fabs(std::max(elementX(i, 1) - elementX(i, 2), elementX(i, 3))); });
  expectMagnitudes("y = max/ (x - 2)", [](int64_t i) {
    double top = elementX(i, 0);
    for (int64_t j = 1; j < M; ++j)
      top = std::max(top, elementX(i, j));
    return std::fabs(top - 2);
  });
  expectMagnitudes("y = tanh(x +.* w)", [](int64_t i) { return std::fabs(std::tanh(value(i))); });
  expectMagnitudes("y = 1 / (x +.* w)", [](int64_t i) { return std::fabs(1 / value(i)); });
}

TEST(Magnitude, OfASumOfTwoHasBoth) {
  expectMagnitudes("y = x[_, 1] - x[_, 2]",
                   [](int64_t i) { return std::fabs(elementX(i, 1)) + std::fabs(elementX(i, 2)); });
  expectMagnitudes("y = s * (x[_, 1] * x[_, 0] - x[_, 2]) / x[_, 3]", [](int64_t i) {
    return 0.5 * (std::fabs(elementX(i, 1) * elementX(i, 0)) + std::fabs(elementX(i, 2))) / std::fabs(elementX(i, 3));
  });
  expectMagnitudes("y = (x[_, 1] - 0.3) * (x +.* w)",
                   [](int64_t i) { return (std::fabs(elementX(i, 1)) + 0.3) * contraction(i); });
  expectMagnitudes("y = logsumexp(x)", [](int64_t i) {
    double top = elementX(i, 0);
    for (int64_t j = 1; j < M; ++j)
      top = std::max(top, elementX(i, j));
    return std::fabs(std::log(sum([&](int64_t j) { return std::exp(elementX(i, j) - top); }))) + std::fabs(top);
  });
}

TEST(Magnitude, OfFactorsSummandsAndQuotientsAroundASum) {
  expectMagnitudes("y = s * (x +.* w)", [](int64_t i) { return 0.5 * contraction(i); });
  expectMagnitudes("y = -(x +.* w) / s", [](int64_t i) { return contraction(i) / 0.5; });
  expectMagnitudes("y = s - (x +.* w)", [](int64_t i) { return 0.5 + contraction(i); });
  expectMagnitudes("y = (x +.* w) / (+/ x)", [](int64_t i) {
    return contraction(i) / std::fabs(sum([&](int64_t j) { return elementX(i, j); }));
  });
  expectMagnitudes("y = (x +.* w) * (+/ x)", [](int64_t i) {
    return contraction(i) * sum([&](int64_t j) { return std::fabs(elementX(i, j)); });
  });
  expectMagnitudes("y = mean(x)",
                   [](int64_t i) { return sum([&](int64_t j) { return std::fabs(elementX(i, j)); }) / double(M); });
}

TEST(Magnitude, OfASelectionIsThatOfWhatItPicks) {
  expectMagnitudes("y = select(x[_, 0] > 0, x +.* w, x[_, 1])",
                   [](int64_t i) { return elementX(i, 0) > 0 ? contraction(i) : std::fabs(elementX(i, 1)); });
}

TEST(Magnitude, OfASumOfSumsHasTheTermsOfBoth) {
  // One sum over two axes, and one of a difference.
  EXPECT_NEAR(magnitudesOf("y = +/ (+/ (x * [_, j] w[j]))", "f64")[0], contraction(0) + contraction(1) + contraction(2),
              1e-13);
  expectMagnitudes("y = +/ ((x * [_, j] w[j]) - 0.25)", [](int64_t i) {
    return sum([&](int64_t j) { return std::fabs(elementX(i, j) * elementW(j)) + 0.25; });
  });
  expectMagnitudes("y = +/ select(x > 0, x + 1, -x)", [](int64_t i) {
    return sum([&](int64_t j) {
      double x = elementX(i, j);
      return x > 0 ? x + 1 : -x;
    });
  });
}

TEST(Magnitude, OfAnOperandThatIsAContractionIsItsValue) {
  // The outermost sum has the terms s[i] * w[i] with s = x +.* w.
  EXPECT_NEAR(magnitudesOf("y = (x +.* w) +.* [i < N] x[i, 0]", "f64")[0],
              std::fabs(value(0) * elementX(0, 0)) + std::fabs(value(1) * elementX(1, 0)) +
                  std::fabs(value(2) * elementX(2, 0)),
              1e-13);
}

TEST(Magnitude, OfNamedAndSharedDefinitions) {
  // z stands in a sum, in a factor and as a summand; each use has its own magnitude.
  expectMagnitudes("z = x +.* w  y = z * abs(z) + z",
                   [](int64_t i) { return contraction(i) * std::fabs(value(i)) + contraction(i); });
  expectMagnitudes("e = exp(x -@(1,0) (max/ x))  p = e /@(1,0) (+/ e)  o = p +.* w  y = o + s * o", [](int64_t i) {
    double total = sum([&](int64_t j) { return std::exp(elementX(i, j)); });
    double weighted = sum([&](int64_t j) { return std::exp(elementX(i, j)) * std::fabs(elementW(j)); });
    return 1.5 * weighted / total;
  });
  // A term that is a definition: its sum is taken apart where it is a term, and nowhere else.
  expectMagnitudes("t = x - [_, j] w[j]  y = (+/ t) + 0 * (max/ t)", [](int64_t i) {
    return sum([&](int64_t j) { return std::fabs(elementX(i, j)) + std::fabs(elementW(j)); });
  });
}

TEST(Magnitude, OfMaskedSumsIsOverWhatIsPresent) {
  expectMagnitudes("y = mask([i, j] j <= i, x) +.* w", [](int64_t i) {
    return sum([&](int64_t j) { return j <= i ? std::fabs(elementX(i, j) * elementW(j)) : 0.0; });
  });
  expectMagnitudes("y = mask([i] i > 0, x +.* w)", [](int64_t i) { return i > 0 ? contraction(i) : 0.0; });
}

TEST(Magnitude, OfCastsIsRoundedAsTheyAre) {
  expectMagnitudes("y = bf16(x +.* w)", [](int64_t i) {
    // To eight bits, to nearest; no value here is in the middle of two.
    int exponent = 0;
    double mantissa = std::frexp(contraction(i), &exponent);
    return std::ldexp(std::nearbyint(std::ldexp(mantissa, 8)), exponent - 8);
  });
}

TEST(Magnitude, OfASumByAMonoidOfTheUserIsTheAbsoluteValue) {
  std::vector<double> values =
      magnitudesOf("y = reduce(plus, x * [_, j] w[j], 1)", "f64[N]", "monoid plus(a, b) identity 0 { return a + b }\n");
  ASSERT_EQ(int64_t(values.size()), N);
  for (int64_t i = 0; i < N; ++i)
    EXPECT_NEAR(values[i], std::fabs(value(i)), 1e-14);
}

TEST(Tolerances, AreOfResultsByTheTextOrByTheOptions) {
  const char *const text = "kernel k[N](x : f64[N]) -> (y : f64[N] within 3e-2 relative sampled, z "
                           ": f64[N], u : f64) {\n"
                           "  y = x * 2\n  z = x * 3\n  u = +/ x\n}\n";
  CompilerOptions options;
  options.accuracy.emplace().tolerances = {"z=0.5,relative,sampled", "u=1e-3"};
  Compilation unit = Compiler(options).compileText(text);
  ASSERT_TRUE(unit.ok()) << unit.renderDiagnostics();
  const std::vector<ParameterInfo> &parameters = unit.kernels()[0].parameters;
  EXPECT_FALSE(parameters[0].within);
  for (auto [k, epsilon, isRelative, isSampled] :
       {std::tuple(1, 3e-2, true, true), {2, 0.5, true, true}, {3, 1e-3, false, false}}) {
    ASSERT_TRUE(parameters[k].within) << parameters[k].name;
    EXPECT_EQ(parameters[k].within->epsilon, epsilon);
    EXPECT_EQ(parameters[k].within->isRelative, isRelative);
    EXPECT_EQ(parameters[k].within->isSampled, isSampled);
  }
  EXPECT_THAT(unit.kernels()[0].text,
              testing::HasSubstr("-> (y : f64[N] within 3e-2 relative sampled, z : f64[N] within "
                                 "5e-1 relative sampled, u : f64 within 1e-3)"));
  options.accuracy->tolerances = {"w=1"};
  Compilation wrong = Compiler(options).compileText(text);
  EXPECT_FALSE(wrong.ok());
  EXPECT_THAT(wrong.renderDiagnostics(), testing::HasSubstr("no kernel has a result 'w'; there are u, y, z"));
}

TEST(Magnitude, AQuestionWithoutAnAnswerIsAnError) {
  Compilation unit = Compiler().compileText("kernel k[N](x : f64[N]) -> y : f64[N] { y = x }\n");
  EXPECT_FALSE(unit.evaluateMagnitudes("nothing", {}, 0, {}));
  EXPECT_THAT(unit.renderDiagnostics(), testing::HasSubstr("no kernel is called 'nothing'"));
}

} // namespace
