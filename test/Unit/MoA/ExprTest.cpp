//===- ExprTest.cpp - the attribute #moa.expr -----------------------------===//
#include "dialects/MoA/IR/MoA.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Diagnostics.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace moa;

namespace {

class ExprAttrTest : public ::testing::Test {
protected:
  ExprAttrTest() : handler(&context, [&](Diagnostic &diagnostic) { message = diagnostic.str(); }) {
    context.loadDialect<MoADialect>();
  }
  Attribute parse(const std::string &text) { return parseAttribute("#moa.expr<\"" + text + "\">", &context); }
  std::string print(Attribute attribute) {
    std::string text;
    llvm::raw_string_ostream(text) << attribute;
    return text;
  }

  MLIRContext context;
  std::string message;
  ScopedDiagnosticHandler handler;
};

TEST_F(ExprAttrTest, EqualPolynomialsAreOneAttribute) {
  const char *pairs[][2] = {{"N + M", "M + N"}, {"(N + 1)*(N - 1)", "N*N - 1"}, {"2*N/2", "N"}, {"H/(G)", "(H) / G"}};
  for (auto [a, b] : pairs) {
    EXPECT_TRUE(parse(a)) << a;
    EXPECT_EQ(parse(a), parse(b)) << a << " and " << b;
    EXPECT_EQ(parse(a), ExprAttr::get(&context, *SymExpr::parse(b))) << a << " and " << b;
  }
}

TEST_F(ExprAttrTest, OtherPolynomialsAreOtherAttributes) {
  const char *texts[] = {"0", "1", "-1", "N", "M", "N + M", "N - M", "M - N", "N*M", "N*N", "N/M", "N%M", "M/N", "2*N"};
  for (const char *a : texts)
    for (const char *b : texts)
      EXPECT_EQ(parse(a) == parse(b), a == b) << a << " and " << b;
}

TEST_F(ExprAttrTest, HoldsAndPrintsTheExpression) {
  SymExpr expr = SymExpr::symbol("M") - SymExpr::symbol("N");
  ExprAttr attribute = ExprAttr::get(&context, expr);
  EXPECT_EQ(attribute.getValue(), expr);
  EXPECT_EQ(print(attribute), "#moa.expr<\"M - N\">");
  EXPECT_EQ(print(parse("-N + M")), "#moa.expr<\"M - N\">");
}

TEST_F(ExprAttrTest, RejectsMalformedText) {
  for (const char *text : {"", "N +", "2*", "(2", "N N", "N/0", "?"}) {
    message.clear();
    EXPECT_FALSE(parse(text)) << text;
    std::string expected = std::string("expects an integer expression, but got '") + text + "': ";
    EXPECT_TRUE(StringRef(message).starts_with(expected)) << message;
  }
}

/// The parser of array types takes expressions in any form.
TEST_F(ExprAttrTest, ExtentsAreCanonical) {
  Type a = parseType("!moa.array<[\"N + M\"], f32>", &context), b = parseType("!moa.array<[\"M + N\"], f32>", &context);
  EXPECT_TRUE(a);
  EXPECT_EQ(a, b);
  EXPECT_FALSE(parseType("!moa.array<[\"2*\"], f32>", &context));
  EXPECT_TRUE(StringRef(message).starts_with("expects an integer expression, but got '2*': ")) << message;
}

} // namespace
