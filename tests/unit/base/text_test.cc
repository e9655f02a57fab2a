#include "base/text.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace gridclock {
namespace {

TEST(Text, ControlCharactersAndBrokenUtf8AreSpelledOut) {
  EXPECT_EQ(CleanText("a\tb\nµ 日本"), "a\tb\nµ 日本");
  EXPECT_EQ(CleanText("\x1b[31m\r"), "\\x1b[31m\\x0d");
  EXPECT_EQ(CleanText("\xff\xc3"), "\\xff\\xc3");
  EXPECT_EQ(CleanText("\xc0\x80"), "\\xc0\\x80");           // NUL in two bytes.
  EXPECT_EQ(CleanText("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // Half of a pair.
  EXPECT_EQ(CleanText("\xe2\x80\xae!"), "\\xe2\\x80\\xae!");
  EXPECT_EQ(CleanText("\xc2\x9b"), "\\xc2\\x9b");
}

TEST(Text, WhatEndsLinesTurnsTextOrIsDrawnAsNothingIsSpelledOut) {
  for (const char* hidden : {"\u061c", "\u200b", "\u200e", "\u200f", "\u2028", "\u2029", "\u202a",
                             "\u202e", "\u2060", "\u2066", "\u2069", "\ufeff"}) {
    const std::string clean = CleanText(absl::StrCat("a", hidden, "b"));
    EXPECT_TRUE(absl::StartsWith(clean, "a\\x")) << clean;
    EXPECT_TRUE(absl::EndsWith(clean, "b")) << clean;
  }
  for (const char* shown : {"\u061b", "\u200a", "\u2010", "\u2027", "\u202f", "\u205f", "\u2070"}) {
    EXPECT_EQ(CleanText(shown), shown);
  }
  EXPECT_EQ(CleanText("\xf0\xe2\x80\xa8"), "\\xf0\\xe2\\x80\\xa8") << "no character of four bytes";
}

TEST(Text, LongTextIsCutAndSaysSo) {
  bool cut = true;
  EXPECT_EQ(CutText("short", 64, &cut), "short");
  EXPECT_FALSE(cut);
  const std::string got = CutText(std::string(100, 'x'), 64, &cut);
  EXPECT_TRUE(cut);
  EXPECT_EQ(got.size(), 64u);
  EXPECT_TRUE(absl::EndsWith(got, "x\n... cut at 64 bytes\n")) << got;
  std::string wide;
  for (int i = 0; i < 50; ++i) wide += "µ";
  EXPECT_EQ(CleanText(CutText(wide, 64, &cut)), CutText(wide, 64, &cut));
}

TEST(Text, NoEscapeIsCutInTwo) {
  bool cut = false;
  for (std::size_t before = 0; before < 8; ++before) {
    const std::string text = std::string(before, 'x') + CleanText(std::string(100, '\x1b'));
    std::string got = CutText(text, 64, &cut);
    got.resize(got.find("\n..."));
    EXPECT_TRUE(absl::EndsWith(got, "\\x1b")) << got;
  }
}

TEST(Text, ErrorsComeFirst) {
  EXPECT_EQ(
      ErrorsFirst("k.cu(1): warning #1-D: a\n  int x; // ): error\n\nk.cu(2): error: b\n  int y;\n"
                  "k.cu(3): warning #2-D: c\n1 error detected\n"),
      "k.cu(2): error: b\n  int y;\nk.cu(1): warning #1-D: a\n  int x; // ): error\n\n"
      "k.cu(3): warning #2-D: c\n1 error detected\n");
  EXPECT_EQ(ErrorsFirst("k.cu(1): error: a"), "k.cu(1): error: a\n");
  EXPECT_EQ(ErrorsFirst(""), "\n");
}

}  // namespace
}  // namespace gridclock
