#include "proto/types/near_names.h"

#include <gtest/gtest.h>

namespace gridclock {
namespace {

TEST(NearNamesTest, TheNearestComeFirstAndAtMostThree) {
  EXPECT_EQ(NearestNames("gelu", {"relu", "square", "gelu"}), "'gelu', 'relu'");
  EXPECT_EQ(NearestNames("sum", {"sub", "sun", "sum2", "sump"}), "'sub', 'sum2', 'sump'");
}

TEST(NearNamesTest, WhatIsNoTypingErrorIsNearToNothing) {
  EXPECT_EQ(NearestNames("PORT", {"TOKEN", "SERVER"}), "");
  EXPECT_EQ(NearestNames("", {"TOKEN"}), "");
  EXPECT_EQ(NearestNames(std::string(300, 'x'), {"x"}), "");
}

}  // namespace
}  // namespace gridclock
