#include "server/rpc/descriptors.h"

#include <tuple>

#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

TEST(FitConnections, LeavesWhatTheServerAndItsWorkersNeed) {
  for (const auto& [descriptors, workers, connections] : {std::tuple(1'048'576, 1, 1024.0),
                                                          {1104, 1, 1024.0},
                                                          {1103, 1, 1023.0},
                                                          {1104, 17, 768.0}}) {
    Limits limits;
    EXPECT_THAT(FitConnections(static_cast<std::uint64_t>(descriptors),
                               static_cast<std::size_t>(workers), limits),
                IsOk());
    EXPECT_EQ(limits.connections, connections) << descriptors << " " << workers;
  }
}

TEST(FitConnections, PromisesNoneWhoseReadsCannotBeWatched) {
  Limits limits;
  limits.connections = 100'000;
  EXPECT_THAT(FitConnections(1'048'576, 1, limits), IsOk());
  EXPECT_EQ(limits.connections, 65'536 - 80);
}

TEST(FitConnections, RefusesWhereNoneIsLeft) {
  Limits limits;
  EXPECT_THAT(FitConnections(80, 1, limits), StatusIs(absl::StatusCode::kInvalidArgument,
                                                      ::testing::HasSubstr("want 81 or more")));
  EXPECT_THAT(FitConnections(81, 1, limits), IsOk());
  EXPECT_EQ(limits.connections, 1);
}

}  // namespace
}  // namespace gridclock
