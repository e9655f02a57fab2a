#include "server/core/reloader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(Reloader, ABrokenPartKeepsItsTimeAndHoldsUpNoOther) {
  absl::Time now = absl::FromUnixSeconds(1000);
  Reloader reloader([&] { return now; });
  absl::Status tokens = absl::OkStatus();
  int certificates = 0;
  reloader.Add("tokens", [&] { return tokens; });
  reloader.Add("certificates", [&] {
    ++certificates;
    return absl::OkStatus();
  });

  now += absl::Seconds(5);
  tokens = absl::InvalidArgumentError("line 2");
  const std::vector<Reloader::Part> parts = reloader.Reload();
  ASSERT_THAT(parts, SizeIs(2));
  EXPECT_EQ(parts[0].name, "tokens");
  EXPECT_THAT(parts[0].last, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("line 2")));
  EXPECT_EQ(parts[0].read, absl::FromUnixSeconds(1000));
  EXPECT_THAT(parts[1].last, IsOk());
  EXPECT_EQ(parts[1].read, absl::FromUnixSeconds(1005));
  EXPECT_EQ(certificates, 1);

  now += absl::Seconds(5);
  tokens = absl::OkStatus();
  reloader.Reload();
  EXPECT_THAT(reloader.parts()[0].last, IsOk());
  EXPECT_EQ(reloader.parts()[0].read, absl::FromUnixSeconds(1010));
}

TEST(Reloader, WithoutPartsThereIsNothingToDo) {
  Reloader reloader([] { return absl::UnixEpoch(); });
  EXPECT_THAT(reloader.Reload(), SizeIs(0));
}

}  // namespace
}  // namespace gridclock
