#include "proto/types/made_input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::HasSubstr;

TEST(MadeInputTest, AGeneratorAndASpec) {
  ASSERT_OK_AND_ASSIGN(const MadeInput made, ParseMadeInput("uniform:-1:2:bf16[8,1K]"));
  EXPECT_EQ(ToText(made.generator), "uniform:-1:2");
  EXPECT_EQ(ToText(made.spec), "bf16[8,1024]");
}

TEST(MadeInputTest, ASpecAloneIsMadeByTheDefaultOfItsDType) {
  EXPECT_EQ(ToText(ParseMadeInput("f16[3]")->generator), "randn");
  EXPECT_EQ(ToText(ParseMadeInput("i8[3]")->generator), "randint:0:100");
  EXPECT_EQ(ToText(ParseMadeInput("u64[]")->generator), "randint:0:100");
  EXPECT_EQ(ToText(ParseMadeInput("bool[3]")->generator), "randint:0:2");
}

TEST(MadeInputTest, SaysWhatWasWanted) {
  const auto refused = [](const char* text, const char* said) {
    EXPECT_THAT(ParseMadeInput(text), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(said)))
        << text;
  };
  refused("", "want GENERATOR:DTYPE[SHAPE] as in randn:f32[1024], got ''");
  refused("randn:f32", "want GENERATOR:DTYPE[SHAPE] as in randn:f32[1024], got 'randn:f32'");
  refused("float[2]", "want a tensor like f32[1024,1M], got 'float[2]'");
  refused("rand:f32[2]", "randint:A:B, got 'rand'");
  refused(":f32[2]", "randint:A:B, got ''");
  refused("uniform:1:0:f32[2]", "want finite bounds a < b, got uniform:1:0");
  refused("uniform:0:inf:f64[2]", "want finite bounds a < b, got uniform:0:inf");
  refused("uniform:-1.7e308:1.7e308:f64[2]",
          "want b - a of less than 1.8e308, got uniform:-1.7e+308:1.7e+308");
}

}  // namespace
}  // namespace gridclock
