//===- PhasesTest.cpp - loops that become phases of one -------------------===//
#include "lib/Target/CUDA/Phases.h"
#include "gtest/gtest.h"

using moa::cuda::mergePhases;
using moa::cuda::printCondition;
using moa::cuda::Statement;

namespace {

using Body = std::vector<Statement>;

Statement line(const std::string &text) { return {Statement::Lines, text, ""}; }
Statement constant(const std::string &text, const std::string &type = "int") {
  return {Statement::Constant, text, type};
}

/// The statements with the phases that have each.
std::vector<std::pair<std::string, unsigned>> list(const Body &body) {
  std::vector<std::pair<std::string, unsigned>> result;
  for (const Statement &statement : body)
    result.emplace_back(statement.text, statement.phases);
  return result;
}

using Listed = std::vector<std::pair<std::string, unsigned>>;

TEST(Phases, WhatAllHaveStandsOnce) {
  Body first = {line("a"), line("b"), line("d")}, second = {line("a"), line("c"), line("d")};
  Body third = {line("a"), line("b"), line("d")};
  auto merged = mergePhases({first, second, third}, "phase");
  ASSERT_TRUE(merged);
  EXPECT_EQ(list(*merged), (Listed{{"a", 7}, {"b", 5}, {"c", 2}, {"d", 7}}));
}

TEST(Phases, EachPhaseKeepsItsOrder) {
  Body first = {line("a"), line("b"), line("c"), line("e")};
  Body second = {line("b"), line("a"), line("c"), line("e")};
  auto merged = mergePhases({first, second}, "phase");
  ASSERT_TRUE(merged);
  for (auto [phase, body] : {std::pair(0u, first), std::pair(1u, second)}) {
    std::vector<std::string> own, expected;
    for (const Statement &statement : *merged)
      if (statement.phases >> phase & 1)
        own.push_back(statement.text);
    for (const Statement &statement : body)
      expected.push_back(statement.text);
    EXPECT_EQ(own, expected);
  }
}

TEST(Phases, AConstantThatAllNeedIsChosen) {
  Body first = {constant("x = f(0)"), line("a"), line("use(x)"), line("b")};
  Body second = {constant("x = g(n)"), line("a"), line("use(x)"), line("b")};
  auto merged = mergePhases({first, second}, "part");
  ASSERT_TRUE(merged);
  EXPECT_EQ(list(*merged), (Listed{{"x = part == 0 ? f(0) : g(n)", 3}, {"a", 3}, {"use(x)", 3}, {"b", 3}}));
}

TEST(Phases, AChoiceInsideOfAChoiceHasParentheses) {
  Body first = {constant("x = c ? 1 : 2"), line("a"), line("use(x)"), line("b")};
  Body second = {constant("x = (c ? 3 : 4) * 2"), line("a"), line("use(x)"), line("b")};
  auto merged = mergePhases({first, second}, "part");
  ASSERT_TRUE(merged);
  EXPECT_EQ((*merged)[0].text, "x = part == 0 ? (c ? 1 : 2) : (c ? 3 : 4) * 2");
}

TEST(Phases, AConstantOfOnePhaseStaysUnderItsCondition) {
  Body first = {line("a"), constant("x = f(0)"), line("use(x)"), line("b"), line("c")};
  Body second = {line("a"), line("b"), line("c")};
  auto merged = mergePhases({first, second}, "phase");
  ASSERT_TRUE(merged);
  EXPECT_EQ(list(*merged), (Listed{{"a", 3}, {"x = f(0)", 1}, {"use(x)", 1}, {"b", 3}, {"c", 3}}));
}

TEST(Phases, AConstantNeededLaterIsVisibleThere) {
  Body first = {line("a"), constant("x = f(0)"), line("p(x)"), line("b"), line("use(x)"), line("c")};
  Body second = {line("a"), line("b"), line("c")};
  auto merged = mergePhases({first, second}, "phase");
  ASSERT_TRUE(merged);
  EXPECT_EQ(list(*merged), (Listed{{"a", 3}, {"x = f(0)", 3}, {"p(x)", 1}, {"b", 3}, {"use(x)", 1}, {"c", 3}}));
}

TEST(Phases, WhatASharedConstantIsMadeOfIsSharedToo) {
  Body first = {
      line("a"), constant("y = f(0)"), constant("x = y + 1"), line("p(x)"), line("b"), line("use(x)"), line("c"),
      line("d")};
  Body second = {line("a"), line("b"), line("c"), line("d")};
  auto merged = mergePhases({first, second}, "phase");
  ASSERT_TRUE(merged);
  EXPECT_EQ(
      list(*merged),
      (Listed{{"a", 3}, {"y = f(0)", 3}, {"x = y + 1", 3}, {"p(x)", 1}, {"b", 3}, {"use(x)", 1}, {"c", 3}, {"d", 3}}));
}

TEST(Phases, NamesThatOnlyContainTheWordAreOthers) {
  Body first = {line("a"), constant("x = f(0)"), line("use(x)"), line("x_2 = max;"), line("c")};
  Body second = {line("a"), line("x_2 = max;"), line("c")};
  auto merged = mergePhases({first, second}, "phase");
  ASSERT_TRUE(merged);
  EXPECT_EQ((*merged)[1].phases, 1u);
}

TEST(Phases, RefusesANameOfTwoTypes) {
  Body first = {constant("x = 1"), line("a"), line("use(x)"), line("b"), line("c")};
  Body second = {constant("x = 1", "float"), line("a"), line("use(x)"), line("b"), line("c")};
  EXPECT_FALSE(mergePhases({first, second}, "phase"));
}

TEST(Phases, AValueDoesNotMoveBehindWhatDecidesIt) {
  Body first = {constant("v = f(state[0])"), line("state[0] = 1;"), line("use(v)"), line("b"), line("c")};
  Body second = {line("state[0] = 1;"), constant("v = f(state[0])"), line("use(v)"), line("b"), line("c")};
  EXPECT_FALSE(mergePhases({first, second}, "phase"));
}

TEST(Phases, RefusesWhereLittleIsSaved) {
  EXPECT_FALSE(mergePhases({{line("a"), line("b")}, {line("c"), line("d")}}, "phase"));
}

TEST(Phases, Conditions) {
  const std::vector<std::string> labels = {"FIRST", "MASKED", "FULL"};
  EXPECT_EQ(printCondition(1, "p", labels), "p == FIRST");
  EXPECT_EQ(printCondition(4, "p", labels), "p == FULL");
  EXPECT_EQ(printCondition(3, "p", labels), "p != FULL");
  EXPECT_EQ(printCondition(6, "p", labels), "p != FIRST");
  EXPECT_EQ(printCondition(5, "p", {"A", "B", "C", "D"}), "(p == A || p == C)");
}

} // namespace
