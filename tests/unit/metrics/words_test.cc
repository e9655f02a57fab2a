#include "server/metrics/words.h"

#include <gtest/gtest.h>

#include "absl/strings/ascii.h"
#include "base/status.h"
#include "gridclock/v1/system.pb.h"
#include "gridclock/v1/types.pb.h"

namespace gridclock {
namespace {

// types.proto promises that its flags are metric labels, so the two lists may not part.
TEST(WordsTest, FlagsAreThoseOfTheContract) {
  for (int i = 1; i < v1::Flag_ARRAYSIZE; ++i) {
    EXPECT_EQ(FlagWord(static_cast<Flag>(i)),
              absl::AsciiStrToLower(v1::Flag_Name(static_cast<v1::Flag>(i))));
  }
  EXPECT_EQ(v1::Flag_MAX, kFlagCount);
}

TEST(WordsTest, StatesAreThoseOfTheContract) {
  for (int i = 1; i < v1::Device::State_ARRAYSIZE; ++i) {
    EXPECT_EQ(StateWord(static_cast<WorkerState>(i)),
              absl::AsciiStrToLower(v1::Device::State_Name(static_cast<v1::Device::State>(i))));
  }
}

TEST(WordsTest, ARejectionIsItsReasonElseItsCode) {
  EXPECT_EQ(RejectionWord(WithReason(absl::UnavailableError(""), "DRAINING")), "draining");
  EXPECT_EQ(RejectionWord(absl::NotFoundError("")), "not_found");
  EXPECT_EQ(RejectionWord(WithReason(absl::NotFoundError(""), "a\nb")), "not_found");
}

TEST(WordsTest, ALossIsOneOfFiveWords) {
  EXPECT_EQ(LossWord("time_limit"), "time_limit");
  EXPECT_EQ(LossWord(""), "other");
}

}  // namespace
}  // namespace gridclock
