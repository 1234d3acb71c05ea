//===- RobustnessTest.cpp - texts that are broken, deep or huge -----------===//
#include "FrontendTesting.h"

using namespace moa::testing;
using ::testing::HasSubstr;

namespace {

const std::string head = "kernel k[N; T : float = f32](x : T[N, N]) -> y : T[N, N] {\n";

std::string repeat(const std::string &text, unsigned count) {
  std::string result;
  for (unsigned k = 0; k < count; ++k)
    result += text;
  return result;
}

/// One error and little output, whatever the input.
void expectOneError(const std::string &text, const std::string &part) {
  Elaborated spec(text);
  EXPECT_FALSE(spec.ok());
  EXPECT_THAT(spec.messages, HasSubstr(part));
  EXPECT_LT(spec.messages.size(), 4000u);
  size_t first = spec.messages.find("error:");
  EXPECT_EQ(spec.messages.find("error:", first + 1), std::string::npos);
}

TEST(Robustness, DeepNestingIsAnError) {
  for (const char *open : {"(", "[", "exp(", "-", "max/ ", "[i] ", "x[", "not "})
    for (unsigned depth : {201u, 5000u, 200000u})
      expectOneError(head + "y = " + repeat(open, depth) + "x",
                     "the expression is nested deeper than 200 levels; give parts of it a name");
}

TEST(Robustness, NestingBelowTheLimitIsFine) {
  EXPECT_TRUE(Elaborated(head + "y = " + repeat("exp(", 190) + "x" + repeat(")", 190) + "}").ok());
  EXPECT_TRUE(Elaborated(head + "y = x" + repeat(" + x", 190) + "}").ok());
  expectOneError(head + "y = x" + repeat(" + x", 1000) + "}",
                 "the expression is nested deeper than 200 levels; give parts of it a name");
}

TEST(Robustness, LongChainsOfDefinitions) {
  std::string body = "y = a0\n";
  for (unsigned k = 0; k < 20000; ++k)
    body += "a" + std::to_string(k) + " = a" + std::to_string(k + 1) + "\n";
  EXPECT_TRUE(Elaborated(head + body + "a20000 = x }").ok());
}

std::string functions(unsigned count, const std::string &call) {
  std::string text;
  for (unsigned k = 0; k < count; ++k) {
    std::string callee = "g_" + std::to_string(k + 1) + "(x)", body = call;
    for (size_t at; (at = body.find('@')) != std::string::npos;)
      body.replace(at, 1, callee);
    text += "def g_" + std::to_string(k) + "(x : []) { return " + body + " }\n";
  }
  return text + "def g_" + std::to_string(count) + "(x : []) { return x }\n";
}

TEST(Robustness, LongChainsOfCalls) {
  EXPECT_TRUE(Elaborated(functions(300, "@") + head + "y = g_0(x) }").ok());
  expectOneError(functions(5000, "@") + head + "y = g_0(x) }",
                 "functions and expressions are nested deeper than 1000 levels here");
}

TEST(Robustness, ExponentialInlining) {
  expectOneError(functions(40, "@ + @") + head + "y = g_0(x) }",
                 "the kernel has grown beyond 100000 operators; a function that calls another "
                 "twice doubles it");
}

TEST(Robustness, LargeIntegerExpressions) {
  std::string squares = "a0 = (N + 1) * (N + 2)\n", quotients = "b0 = N + 1\n";
  for (unsigned k = 0; k < 40; ++k) {
    std::string now = std::to_string(k), next = std::to_string(k + 1);
    squares += "a" + next + " = a" + now + " * a" + now + "\n";
    quotients += "b" + next + " = b" + now + " / (b" + now + " + 1)\n";
  }
  expectOneError(head + squares + "y = x * a40 }", "the integer expression is too large");
  expectOneError(head + quotients + "y = x * b40 }", "the integer expression is too large");
  expectOneError(head + "y = x * (N * 9223372036854775807 * 4) }", "does not fit in 64 bits");
}

TEST(Robustness, BytesThatAreNoText) {
  expectOneError(std::string("kernel \0 k", 10),
                 "spec.moa:1:8: error: a NUL byte in the text; a specification is UTF-8 text");
  expectOneError("kernel k\xff\xfe", "spec.moa:1:9: error: the text is not valid UTF-8 here");
  expectOneError("// caf\xe9\nkernel k", "spec.moa:1:7: error: the text is not valid UTF-8 here");
}

TEST(Robustness, EncodingsThatAreFine) {
  EXPECT_TRUE(Elaborated("\xEF\xBB\xBF" + head + "y = x // \xCF\x88\n}").ok());
  std::string text = head + "y = x\n}\n", carriage;
  for (char c : text)
    carriage += c == '\n' ? "\r\n" : std::string(1, c);
  EXPECT_TRUE(Elaborated(carriage).ok());
}

TEST(Robustness, EveryPrefixIsAnErrorOrAKernel) {
  std::string text = "kernel k[B, N; T : float = f32, D = 8](x : T[B, N, D], t : i32[B] in "
                     "0..N)\n"
                     "  -> (y : T[B, N], z : f32)\n  require N % 2 == 0\n{\n"
                     "  s = mask([_, i, j] j <= i and t[0] != 3, x * 1.5e-3)\n"
                     "  y = +/ f(s, x[t[0]]) -@(1,1) [d < D] 0x1F * d\n  z = 1 + (max/ (max/ "
                     "y))\n}\n"
                     "def f(a : [n], b : [n]) { c = a * b; return c / (+/ exp(c)) }\n";
  for (size_t n = 0; n < text.size(); ++n) {
    Elaborated prefix(text.substr(0, n));
    EXPECT_TRUE(prefix.ok() || prefix.messages.find("error:") != std::string::npos) << n;
  }
}

TEST(Robustness, EveryTokenDroppedOrDoubled) {
  std::string text = head + "s = mask([i, j] j <= i + (N - 1), (x +.* transpose(x)) * 0.5)\n"
                            "y = softmax(s) +.* [j, k] x[j, k] + select(s < 2, 1, -inf)\n}";
  for (size_t n = 0; n < text.size(); ++n) {
    std::string dropped = text, doubled = text;
    dropped.erase(n, 1);
    doubled.insert(n, 1, text[n]);
    for (const std::string &variant : {dropped, doubled}) {
      Elaborated spec(variant);
      EXPECT_TRUE(spec.ok() || spec.messages.find("error:") != std::string::npos) << variant;
    }
  }
}

} // namespace
