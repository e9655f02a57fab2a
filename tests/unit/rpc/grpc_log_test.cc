#include "server/rpc/grpc_log.h"

#include <gtest/gtest.h>

namespace gridclock {
namespace {

TEST(LineBudget, HoldsBackWhatIsTooMuchForASecondAndTellsOfIt) {
  LineBudget budget(2);
  const absl::Time start = absl::UnixEpoch();
  EXPECT_EQ(budget.Take(start), 0u);
  EXPECT_EQ(budget.Take(start), 0u);
  EXPECT_EQ(budget.Take(start), std::nullopt);
  EXPECT_EQ(budget.Take(start + absl::Milliseconds(999)), std::nullopt);
  EXPECT_EQ(budget.Take(start + absl::Seconds(1)), 2u);
  EXPECT_EQ(budget.Take(start + absl::Seconds(1)), 0u);
  EXPECT_EQ(budget.Take(start + absl::Seconds(1)), std::nullopt);
  EXPECT_EQ(budget.Take(start), 1u) << "the clock was set back";
}

}  // namespace
}  // namespace gridclock
