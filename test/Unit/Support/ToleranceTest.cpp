//===- ToleranceTest.cpp - the error that a result may have ---------------===//
#include "lib/Support/Tolerance.h"
#include <gtest/gtest.h>
#include <limits>

using namespace moa;

namespace {

TEST(Tolerance, NumbersHaveTheFewestDigits) {
  for (auto [value, text] : {std::pair(3e-2, "3e-2"),
                             {0.0019, "1.9e-3"},
                             {1e-10, "1e-10"},
                             {0.5, "5e-1"},
                             {1.0, "1"},
                             {2.5, "2.5"},
                             {10.0, "10"},
                             {1234.5, "1234.5"},
                             {1e6, "1e6"},
                             {1.0 / 3, "3.333333333333333e-1"},
                             {0x1p-1074, "5e-324"}})
    EXPECT_EQ(getNumberText(value), text);
  EXPECT_EQ(getNumberText(1.0 / 3, 3), "3.33e-1");
  EXPECT_EQ(getNumberText(0.0020004, 3), "2e-3");
  EXPECT_EQ(getNumberText(999.96, 3), "1000");
  EXPECT_EQ(getNumberText(0), "0");
  EXPECT_EQ(getNumberText(std::numeric_limits<double>::infinity()), "inf");
  EXPECT_EQ(getNumberText(std::numeric_limits<double>::quiet_NaN()), "NaN");
}

TEST(Tolerance, ReadsWhatItWrites) {
  std::string why;
  for (auto [text, words] : {std::pair("3e-2,relative,sampled", "3e-2 relative sampled"),
                             {"0.03, relative", "3e-2 relative"},
                             {" 1 ", "1"}}) {
    auto tolerance = parseTolerance(text, why);
    ASSERT_TRUE(tolerance) << text << ": " << why;
    EXPECT_EQ(tolerance->str(), words);
  }
}

TEST(Tolerance, RefusesWhatIsNone) {
  for (const char *text :
       {"", "0", "-1e-2", "inf", "nan", "1e999", "small", "1e-2 relative", "1e-2,", "1e-3,sampled",
        "1e-2,sampled,relative", "1e-2,relative,relative", "1e-2,relative,sampled,bound", "relative,1e-2"}) {
    std::string why;
    EXPECT_FALSE(parseTolerance(text, why)) << text;
    EXPECT_FALSE(why.empty()) << text;
  }
}

} // namespace
