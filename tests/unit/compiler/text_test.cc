#include "kernels/compiler/text.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"

namespace gridclock {
namespace {

TEST(CompilerText, ControlCharactersAndBrokenUtf8AreSpelledOut) {
  EXPECT_EQ(CleanText("a\tb\nµ 日本"), "a\tb\nµ 日本");
  EXPECT_EQ(CleanText("\x1b[31m\r"), "\\x1b[31m\\x0d");
  EXPECT_EQ(CleanText("\xff\xc3"), "\\xff\\xc3");
  EXPECT_EQ(CleanText("\xc0\x80"), "\\xc0\\x80");           // NUL in two bytes.
  EXPECT_EQ(CleanText("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // Half of a pair.
  EXPECT_EQ(CleanText("\xe2\x80\xae!"), "\\xe2\\x80\\xae!");
  EXPECT_EQ(CleanText("\xc2\x9b"), "\\xc2\\x9b");
}

TEST(CompilerText, LongTextIsCutAndSaysSo) {
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

}  // namespace
}  // namespace gridclock
