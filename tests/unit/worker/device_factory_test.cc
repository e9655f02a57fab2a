#include "kernels/worker/device_factory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::_;
using ::testing::HasSubstr;
using Code = absl::StatusCode;

TEST(DeviceFactory, MakesTheCpuAndTellsWhatItMeasured) {
  ASSERT_OK_AND_ASSIGN(const MadeDevice made, MakeDevice({.name = "cpu", .level = "x86-64-v2"}));

  EXPECT_EQ(made.device->info().name, "cpu");
  EXPECT_EQ(made.device->info().level, "x86-64-v2");
  EXPECT_TRUE(made.device->uses_host_memory());
  EXPECT_TRUE(made.device->info().host_memory);
  ASSERT_FALSE(made.calibration.empty());
  const auto again = MakeDevice({.name = "cpu", .calibration = made.calibration});
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(again->calibration, made.calibration);
}

TEST(DeviceFactory, ANameThatIsNoneIsRefused) {
  for (const char* name : {"", "tpu:0", "cuda", "cuda:", "cuda:-1", "cuda:x", "cuda:99999999999"}) {
    EXPECT_THAT(MakeDevice({.name = name}),
                StatusIs(Code::kInvalidArgument, HasSubstr("want cpu or cuda:N")))
        << name;
  }
}

TEST(DeviceFactory, AGpuThatIsNotThereIsSaidSo) {
  const auto none = MakeDevice({.name = "cuda:99"});
  EXPECT_THAT(none, StatusIs(Code::kFailedPrecondition, _));
  EXPECT_THAT(none, ReasonIs("NO_DEVICE"));
}

}  // namespace
}  // namespace gridclock
