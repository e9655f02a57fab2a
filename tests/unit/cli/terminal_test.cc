#include "client/cli/terminal.h"

#include <gtest/gtest.h>

namespace gridclock::cli {
namespace {

TEST(EscapeTest, TextOfPeopleStays) {
  EXPECT_EQ(Escape("größer 3 µs, 日本"), "größer 3 µs, 日本");
}

TEST(EscapeTest, ControlCharactersAreSpelledOut) {
  EXPECT_EQ(Escape("\x1b[31mred\r\n"), "\\x1b[31mred\\x0d\\x0a");
  EXPECT_EQ(Escape("\xc2\x9b"), "\\xc2\\x9b");           // A C1 control: CSI.
  EXPECT_EQ(Escape("\xe2\x80\xae"), "\\xe2\\x80\\xae");  // Turns the direction of text.
}

TEST(EscapeTest, LinesStayWhereAsked) {
  EXPECT_EQ(Escape("a\nb\t", true), "a\nb\\x09");
}

TEST(EscapeTest, BrokenUtf8IsSpelledOut) {
  EXPECT_EQ(Escape("\xff"), "\\xff");
  EXPECT_EQ(Escape("\xc3"), "\\xc3");
  EXPECT_EQ(Escape("\xc0\x80"), "\\xc0\\x80");           // Overlong.
  EXPECT_EQ(Escape("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // A surrogate.
}

TEST(WidthTest, CountsCharactersAndNoColours) {
  EXPECT_EQ(Width("µs"), 2U);
  EXPECT_EQ(Width(Paint({.colour = true}, Ink::kRed, "no")), 2U);
  EXPECT_EQ(Paint({.colour = false}, Ink::kRed, "no"), "no");
}

TEST(FitTest, CutsBetweenCharacters) {
  EXPECT_EQ(Fit("12 µs", 4), "12 µ");
  EXPECT_EQ(Fit("12 µs", 3), "12 ");
  EXPECT_EQ(Fit("12 µs", 5), "12 µs");
  EXPECT_EQ(Fit("µ", 0), "");
}

TEST(TerminalTest, ALineOfCellsIsCutBehindAWholeWordAndNeverWithinANumber) {
  const std::string line = "softmax  cuda:12  5.38 µs  17  NOISY SHARED";
  EXPECT_EQ(FitCells(line, 43), line);
  EXPECT_EQ(FitCells(line, 42), "softmax  cuda:12  5.38 µs  17  NOISY…");
  EXPECT_EQ(FitCells(line, 31), "softmax  cuda:12  5.38 µs  17…");
  EXPECT_EQ(FitCells(line, 29), "softmax  cuda:12  5.38 µs…");
  EXPECT_EQ(FitCells(line, 25), "softmax  cuda:12…");
  EXPECT_EQ(FitCells(line, 16), "softmax…");
  EXPECT_EQ(FitCells("made_128", 8), "made_128");
  EXPECT_EQ(FitCells("made_128", 7), "made_…");
  EXPECT_EQ(FitCells("4711", 3), "…");
  EXPECT_EQ(FitCells("4711", 0), "");
}

}  // namespace
}  // namespace gridclock::cli
