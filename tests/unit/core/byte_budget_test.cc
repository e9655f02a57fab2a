#include "server/core/byte_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

TEST(ByteBudget, OneClientGetsAtMostHalf) {
  ByteBudget budget("stream_memory_bytes", 100);
  EXPECT_THAT(budget.Take("ann", 50), IsOk());
  const absl::Status full = budget.Take("ann", 1);
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(full, ReasonIs("MEMORY_FULL"));
  EXPECT_THAT(std::string(full.message()), testing::HasSubstr("stream_memory_bytes"));
  EXPECT_EQ(budget.used(), 50U);
}

TEST(ByteBudget, AllTogetherGetNoMoreThanThereIs) {
  ByteBudget budget("stream_memory_bytes", 100);
  EXPECT_THAT(budget.Take("ann", 50), IsOk());
  EXPECT_THAT(budget.Take("bob", 40), IsOk());
  EXPECT_THAT(budget.Take("eve", 11), ReasonIs("MEMORY_FULL"));
  EXPECT_THAT(budget.Take("eve", 10), IsOk());
}

TEST(ByteBudget, WhatComesBackCanBeTakenAgain) {
  ByteBudget budget("stream_memory_bytes", 100);
  EXPECT_THAT(budget.Take("ann", 30), IsOk());
  EXPECT_THAT(budget.Take("ann", 20), IsOk());
  budget.Return("ann", 20);
  EXPECT_THAT(budget.Take("ann", 21), ReasonIs("MEMORY_FULL"));
  EXPECT_THAT(budget.Take("ann", 20), IsOk());
  budget.Return("ann", 50);
  EXPECT_EQ(budget.used(), 0U);
}

TEST(ByteBudget, ASizeThatWrapsRoundDoesNotFit) {
  ByteBudget budget("stream_memory_bytes", 100);
  EXPECT_THAT(budget.Take("ann", 10), IsOk());
  EXPECT_THAT(budget.Take("ann", ~std::uint64_t{0} - 5), ReasonIs("MEMORY_FULL"));
}

}  // namespace
}  // namespace gridclock
