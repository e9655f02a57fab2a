#include "server/core/compile_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

Limits With(double compiles, double queue) {
  Limits limits;
  limits.compiles = compiles;
  limits.compile_queue = queue;
  return limits;
}

TEST(CompileQueue, OneAtATimeInTurnBetweenPrincipals) {
  CompileQueue queue(With(1, 64));
  for (const std::uint64_t id : {1, 2, 3}) ASSERT_THAT(queue.Add("alice", id), IsOk());
  ASSERT_THAT(queue.Add("bob", 4), IsOk());
  std::vector<std::uint64_t> order;
  while (const auto id = queue.Next()) {
    order.push_back(*id);
    EXPECT_EQ(queue.Next(), std::nullopt);
    EXPECT_FALSE(queue.Remove(*id));
  }
  EXPECT_THAT(order, ::testing::ElementsAre(1, 4, 2, 3));
}

TEST(CompileQueue, NobodyHoldsAllPlaces) {
  CompileQueue queue(With(2, 64));
  for (const std::uint64_t id : {1, 2, 3}) ASSERT_THAT(queue.Add("alice", id), IsOk());
  EXPECT_EQ(queue.Next(), 1u);
  EXPECT_EQ(queue.Next(), std::nullopt);
  ASSERT_THAT(queue.Add("bob", 4), IsOk());
  EXPECT_EQ(queue.Next(), 4u);
  EXPECT_EQ(queue.running(), 2u);
  queue.Remove(1);
  EXPECT_EQ(queue.Next(), 2u);
}

TEST(CompileQueue, F23_TooManyAreRefusedAtOnce) {
  CompileQueue queue(With(1, 4));
  ASSERT_THAT(queue.Add("alice", 1), IsOk());
  ASSERT_THAT(queue.Add("alice", 2), IsOk());
  const absl::Status own = queue.Add("alice", 3);
  EXPECT_THAT(own, StatusIs(absl::StatusCode::kResourceExhausted,
                            ::testing::HasSubstr("2 compiles of this client")));
  EXPECT_THAT(own, ReasonIs("QUEUE_FULL"));
  EXPECT_TRUE(DetailsOf(own).retry_after.has_value());
  ASSERT_THAT(queue.Add("bob", 4), IsOk());
  ASSERT_THAT(queue.Add("bob", 5), IsOk());
  EXPECT_THAT(queue.Add("carol", 6), ReasonIs("QUEUE_FULL"));
  EXPECT_TRUE(queue.Remove(2));
  EXPECT_THAT(queue.Add("carol", 6), IsOk());
}

}  // namespace
}  // namespace gridclock
