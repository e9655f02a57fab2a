#include "client/cli/format.h"

#include "tests/support/status_matchers.h"

namespace gridclock::cli {
namespace {

using ::testing::HasSubstr;

TEST(FormatTest, TimesHaveThreeDigits) {
  EXPECT_EQ(FormatNs(0.8), "0.80 ns");
  EXPECT_EQ(FormatNs(930), "930 ns");
  EXPECT_EQ(FormatNs(999.9), "1.00 µs");
  EXPECT_EQ(FormatNs(31'400), "31.4 µs");
  EXPECT_EQ(FormatNs(1.26e9), "1.26 s");
}

TEST(FormatTest, PlainNumbersHaveAllTheDigitsThatTellThemApart) {
  EXPECT_EQ(FormatPlain(600), "600");
  EXPECT_EQ(FormatPlain(600.0000001), "600.0000001");
  EXPECT_EQ(FormatPlain(100000000), "100000000");
  EXPECT_EQ(FormatPlain(1e-6), "1e-06");
  EXPECT_EQ(FormatPlain(9.3e18), "9.3e+18");
}

TEST(FormatTest, WhatIsNotKnownIsADash) {
  EXPECT_EQ(FormatNs(0), "-");
  EXPECT_EQ(FormatRate(0, "B/s"), "-");
  EXPECT_EQ(FormatPercent(0), "-");
}

TEST(FormatTest, RatesCountInThousandsAndBytesIn1024) {
  EXPECT_EQ(FormatRate(24.1e9, "B/s"), "24.1 GB/s");
  EXPECT_EQ(FormatRate(1.3e12, "FLOP/s"), "1.30 TFLOP/s");
  EXPECT_EQ(FormatBytes(1536), "1.50 KiB");
  EXPECT_EQ(FormatBytes(17), "17 B");
}

TEST(FormatTest, TimesOfPeopleAreSecondsOrSayTheirUnit) {
  EXPECT_EQ(*ParseSeconds("5"), absl::Seconds(5));
  EXPECT_EQ(*ParseSeconds("250ms"), absl::Milliseconds(250));
  EXPECT_THAT(ParseSeconds("-1"), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("-1")));
  EXPECT_THAT(ParseSeconds("soon"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("soon")));
}

TEST(FormatTest, SizesOfPeopleArePowersOf1024) {
  EXPECT_EQ(*ParseSize("0"), 0);
  EXPECT_EQ(*ParseSize("3K"), 3072);
  EXPECT_EQ(*ParseSize("1M"), 1048576);
  EXPECT_THAT(ParseSize("-1"), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("-1")));
  EXPECT_THAT(ParseSize("9999999999999G"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("9999999999999G")));
}

TEST(TableTest, NumbersStandToTheRight) {
  Table table({"name", "time"});
  table.Add({"a", "1.00 µs"});
  table.Add({"bbbbb", "100 ms"});
  EXPECT_EQ(table.ToText(),
            "name      time\n"
            "a      1.00 µs\n"
            "bbbbb   100 ms\n");
}

TEST(TableTest, AColumnCanBeDropped) {
  Table table({"a", "b", "c"});
  table.Add({"x", "y", "z"});
  table.Drop("b");
  EXPECT_EQ(table.ToText(), "a  c\nx  z\n");
}

}  // namespace
}  // namespace gridclock::cli
