#include "client/cli/check.h"

#include <utility>

#include "tests/support/status_matchers.h"

namespace gridclock::cli {
namespace {

using ::testing::HasSubstr;

constexpr float kOne[] = {1}, kTwo[] = {2};

CallOutput Output(const char* name, std::span<const float> values) {
  return {.name = name,
          .value = {.is_list = false,
                    .tensors = {{DType::kF32, {static_cast<std::int64_t>(values.size())}}}},
          .checksum = {},
          .bytes = std::as_bytes(values),
          .owned = {}};
}

RunResult Two(CallOutput first, CallOutput second) {
  RunResult result;
  result.outputs.push_back(std::move(first));
  result.outputs.push_back(std::move(second));
  return result;
}

const CheckFlags kAdam = {.against = "adam", .with = {}, .tolerance = {}};

TEST(CheckTest, OutputsOfTheSameNamesBelongTogetherInAnyOrder) {
  CheckResult result;
  ASSERT_THAT(CompareOutputs(Two(Output("m", kOne), Output("p", kTwo)),
                             Two(Output("p", kTwo), Output("m", kOne)), kAdam, &result),
              IsOk());
  EXPECT_TRUE(result.ok()) << result.outputs[0].difference.mismatches;
  EXPECT_EQ(result.outputs[0].name, "m");
}

TEST(CheckTest, OutputsOfOtherNamesBelongTogetherByOrder) {
  CheckResult same, swapped;
  const RunResult want = Two(Output("p", kTwo), Output("m", kOne));
  ASSERT_THAT(CompareOutputs(Two(Output("m", kTwo), Output("moment", kOne)), want, kAdam, &same),
              IsOk());
  EXPECT_TRUE(same.ok());
  ASSERT_THAT(CompareOutputs(Two(Output("m", kOne), Output("moment", kTwo)), want, kAdam, &swapped),
              IsOk());
  EXPECT_FALSE(swapped.ok());
}

TEST(CheckTest, OutputsThatBelongTogetherHaveTheSameShape) {
  CheckResult result;
  constexpr float kThree[] = {1, 2, 3};
  EXPECT_THAT(CompareOutputs(Two(Output("m", kThree), Output("p", kTwo)),
                             Two(Output("p", kThree), Output("m", kOne)), kAdam, &result),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("output 'm' and 'm' of 'adam' have other shapes or dtypes: "
                                 "want f32[1], got f32[3]")));
}

}  // namespace
}  // namespace gridclock::cli
