#include "server/core/module_strikes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Code = absl::StatusCode;

TEST(ModuleStrikes, TheThirdEndsAModuleAndNoOther) {
  ModuleStrikes strikes;
  strikes.Add("aa", "signal 11");
  strikes.Add("aa", "signal 11");
  EXPECT_THAT(strikes.Check("aa"), IsOk());
  EXPECT_EQ(strikes.quarantined(), 0U);
  strikes.Add("aa", "its time limit");
  const absl::Status status = strikes.Check("aa");
  EXPECT_THAT(status, StatusIs(Code::kFailedPrecondition,
                               AllOf(HasSubstr("'aa'"), HasSubstr("3 of its runs"),
                                     HasSubstr("its time limit"))));
  EXPECT_THAT(status, ReasonIs("QUARANTINED"));
  EXPECT_THAT(strikes.Check("bb"), IsOk());
  EXPECT_EQ(strikes.quarantined(), 1U);
}

TEST(ModuleStrikes, RemembersSoManyAndThoseStruckLast) {
  ModuleStrikes strikes;
  for (int i = 0; i < ModuleStrikes::kMost; ++i) strikes.Add("first", "signal 11");
  for (int i = 0; i < ModuleStrikes::kMost; ++i) strikes.Add("second", "signal 11");
  strikes.Add("first", "signal 11");
  for (std::size_t i = 0; i < ModuleStrikes::kMostModules - 1; ++i) {
    strikes.Add(absl::StrCat("m", i), "signal 11");
  }
  EXPECT_THAT(strikes.Check("first"), ReasonIs("QUARANTINED"));
  EXPECT_THAT(strikes.Check("second"), IsOk());
}

}  // namespace
}  // namespace gridclock
