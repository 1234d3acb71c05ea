//===- ShortenTest.cpp - long texts in messages ---------------------------===//
#include "lib/Support/Shorten.h"
#include <gtest/gtest.h>

namespace {

TEST(ShortenTest, ShortTextsStay) {
  EXPECT_EQ(moa::shorten("Σ x", 8), "Σ x");
  EXPECT_EQ(moa::shorten("", 8), "");
}

TEST(ShortenTest, LongTextsKeepTheirEndsAndWholeCharacters) {
  EXPECT_EQ(moa::shorten("abcdefghijklmnop", 8), "abcdef … op");
  EXPECT_EQ(moa::shorten("ΣΣΣΣΣΣΣΣΣΣ", 10), "ΣΣΣΣ … Σ");
}

TEST(ShortenTest, BytesThatAreNoCharactersEndNowhereOutside) {
  EXPECT_EQ(moa::shorten(std::string(40, '\x80'), 16), " … ");
  EXPECT_EQ(moa::shorten("sum" + std::string(40, '\xBF'), 16), "su … ");
}

} // namespace
