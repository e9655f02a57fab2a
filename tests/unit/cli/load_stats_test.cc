#include "client/cli/load_stats.h"

#include "tests/support/status_matchers.h"

namespace gridclock::cli {
namespace {

TEST(LoadStatsTest, QuantilesAreNearestRanksOfTheSuccessful) {
  LoadStats stats;
  for (int i = 1; i <= 100; ++i) stats.Add(absl::OkStatus(), absl::Microseconds(i));
  stats.Add(absl::InternalError(""), absl::Seconds(100));
  EXPECT_EQ(stats.QuantileNs(0.5), 50'000);
  EXPECT_EQ(stats.QuantileNs(0.99), 99'000);
  EXPECT_EQ(stats.QuantileNs(1), 100'000);
  EXPECT_EQ(stats.ok(), 100);
  EXPECT_EQ(stats.answered(), 101);
}

TEST(LoadStatsTest, QuantilesFarOutWantEnoughRequestsToTellThem) {
  LoadStats stats;
  const auto after = [&stats](int requests) -> const LoadStats& {
    for (int i = 0; i < requests; ++i) stats.Add(absl::OkStatus(), absl::Microseconds(7));
    return stats;
  };
  EXPECT_EQ(after(43).P90Ns(), std::nullopt);
  EXPECT_EQ(after(1).P90Ns(), 7'000);
  EXPECT_EQ(after(458 - 44).P99Ns(), std::nullopt);
  stats.Add(absl::InternalError(""), absl::Seconds(100));
  EXPECT_EQ(stats.P99Ns(), std::nullopt);
  EXPECT_EQ(after(1).P99Ns(), 7'000);
}

TEST(LoadStatsTest, ErrorsAreCountedByCodeAndReason) {
  LoadStats stats;
  const auto full = WithReason(absl::ResourceExhaustedError("x"), "QUEUE_FULL");
  stats.Add(full, absl::Seconds(1));
  stats.Add(full, absl::Seconds(1));
  stats.Add(absl::CancelledError("y"), absl::Seconds(1));
  EXPECT_THAT(stats.errors(),
              testing::ElementsAre(testing::Pair("CANCELLED", 1),
                                   testing::Pair("RESOURCE_EXHAUSTED QUEUE_FULL", 2)));
  EXPECT_EQ(stats.QuantileNs(0.5), std::nullopt);
}

}  // namespace
}  // namespace gridclock::cli
