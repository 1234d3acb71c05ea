//===- SymExprTest.cpp - symbolic integer expressions ---------------------===//

#include "lib/Support/SymExpr.h"
#include "gtest/gtest.h"
#include <map>
#include <string>

using moa::SymExpr;

namespace {

SymExpr parse(llvm::StringRef text) {
  std::string error;
  std::optional<SymExpr> result = SymExpr::parse(text, &error);
  EXPECT_TRUE(result.has_value()) << text.str() << ": " << error;
  return result ? *result : SymExpr();
}

std::optional<int64_t> evaluate(llvm::StringRef text, const std::map<std::string, int64_t> &values) {
  return parse(text).evaluate([&](llvm::StringRef name) -> std::optional<int64_t> {
    auto found = values.find(name.str());
    if (found == values.end())
      return std::nullopt;
    return found->second;
  });
}

TEST(SymExprTest, EqualPolynomialsCompareEqualAndPrintTheSame) {
  const char *pairs[][2] = {{"N + M", "M + N"},
                            {"(N + 1)*(N - 1)", "N*N - 1"},
                            {"2*B*N*128", "B*256*N"},
                            {"N - N", "0"},
                            {"4*(N/4) + N%4 - (4*(N/4) + N%4)", "0"}};
  for (auto &pair : pairs) {
    EXPECT_EQ(parse(pair[0]), parse(pair[1])) << pair[0] << " / " << pair[1];
    EXPECT_EQ(parse(pair[0]).str(), parse(pair[1]).str());
  }
}

TEST(SymExprTest, TextIsAFixedPointOfParsing) {
  for (const char *text :
       {"0", "-3", "N", "N - M", "2*N*M - M + 7", "H/G", "(N + 63)/64", "N % 4", "Q.s0*B", "(H/G)*(N % (M + 1)) - 2"}) {
    std::string once = parse(text).str();
    EXPECT_EQ(once, parse(once).str()) << text;
  }
}

TEST(SymExprTest, DegreeIsThatOfTheLargestTerm) {
  const std::pair<const char *, unsigned> cases[] = {
      {"0", 0},       {"7", 0},          {"N", 1},         {"64*H*N + N*N*N", 3}, {"((N + 63)/64)*H", 2},
      {"N/M", 0},     {"N*M/H", 1},      {"(N*M) % H", 1}, {"N % 64", 0},         {"(N*N/64)*(N % M)", 3},
      {"5*H - N", 1}, {"3*(N/(M*M))", 0}};
  for (auto &[text, degree] : cases)
    EXPECT_EQ(parse(text).getDegree(), degree) << text;
}

/// −(N/2) is not (−N)/2: for N = 3 it is −1, not −2.
TEST(SymExprTest, MinusInFrontOfAQuotient) {
  for (const char *text : {"0 - N/2", "0 - N%3", "-(N/2)*(N/2)", "-(N%3) - M"}) {
    auto three = [](llvm::StringRef) { return std::optional<int64_t>(3); };
    EXPECT_EQ(parse(text).evaluate(three), parse(parse(text).str()).evaluate(three)) << text;
  }
  EXPECT_EQ(parse("0 - N/2").str(), "-(N/2)");
  EXPECT_EQ(parse("M - N/2").str(), "M - N/2");
}

TEST(SymExprTest, DivisionFloorsAndModHasTheSignOfTheDivisor) {
  EXPECT_EQ(evaluate("a / b", {{"a", -7}, {"b", 2}}), -4);
  EXPECT_EQ(evaluate("a % b", {{"a", -7}, {"b", 2}}), 1);
  EXPECT_EQ(evaluate("a / b", {{"a", 7}, {"b", -2}}), -4);
  EXPECT_EQ(evaluate("a % b", {{"a", 7}, {"b", -2}}), -1);
  EXPECT_EQ(evaluate("7 / 2", {}), 3);
}

TEST(SymExprTest, MissingSymbolsAndZeroDivisorsHaveNoValue) {
  EXPECT_EQ(evaluate("N + 1", {}), std::nullopt);
  EXPECT_EQ(evaluate("N / M", {{"N", 4}, {"M", 0}}), std::nullopt);
  EXPECT_EQ(evaluate("N % M", {{"N", 4}, {"M", 0}}), std::nullopt);
  EXPECT_EQ(evaluate("N*N*N", {{"N", int64_t(1) << 31}}), std::nullopt);
  EXPECT_EQ(evaluate("N + M", {{"N", INT64_MAX}, {"M", 1}}), std::nullopt);
}

TEST(SymExprTest, SubstitutionReplacesInsideAtoms) {
  SymExpr replaced = parse("H/G + N").substitute([](llvm::StringRef name) -> std::optional<SymExpr> {
    if (name == "H")
      return SymExpr(8);
    if (name == "G")
      return SymExpr(2);
    return std::nullopt;
  });
  EXPECT_EQ(replaced, parse("N + 4"));
}

TEST(SymExprTest, SymbolsAreCollectedThroughAtoms) {
  std::set<std::string> names;
  parse("H/G + N*(M % B) - 3").collectSymbols(names);
  EXPECT_EQ(names, (std::set<std::string>{"B", "G", "H", "M", "N"}));
}

TEST(SymExprTest, MalformedTextIsRefusedWithAReason) {
  for (const char *text : {"", "N +", "(N", "N)", "3 $ 4", "*N", "N N"}) {
    std::string error;
    EXPECT_FALSE(SymExpr::parse(text, &error).has_value()) << text;
    EXPECT_FALSE(error.empty()) << text;
  }
}

} // namespace
