#include "kernels/catalog/list_sizes.h"

#include <gtest/gtest.h>

namespace gridclock::list {
namespace {

// Of sgd, which has two operands, and adam, which has four.
TEST(ListSizes, OneLaunchHasTheFewestArgumentsThatTakeTheList) {
  EXPECT_EQ(ArgBytesOfOneLaunch(2, 0, kManyArgBytes), 4096);
  EXPECT_EQ(ArgBytesOfOneLaunch(2, 141, kManyArgBytes), 4096);
  EXPECT_EQ(ArgBytesOfOneLaunch(2, 142, kManyArgBytes), 32764);
  EXPECT_EQ(ArgBytesOfOneLaunch(2, 1000, kManyArgBytes), 32764);
  EXPECT_EQ(ArgBytesOfOneLaunch(2, 1165, kManyArgBytes), 32764);
  EXPECT_EQ(ArgBytesOfOneLaunch(2, 1166, kManyArgBytes), 0);
  EXPECT_EQ(ArgBytesOfOneLaunch(4, 741, kManyArgBytes), 32764);
  EXPECT_EQ(ArgBytesOfOneLaunch(4, 742, kManyArgBytes), 0);
}

TEST(ListSizes, NoLaunchHasMoreArgumentsThanItMay) {
  EXPECT_EQ(ArgBytesOfOneLaunch(2, 141, kFewArgBytes), 4096);
  EXPECT_EQ(ArgBytesOfOneLaunch(2, 142, kFewArgBytes), 0);
  EXPECT_EQ(ArgBytesOfOneLaunch(2, 1, MostArgBytesOfAuto("no such kernel")), 0);
}

TEST(ListSizes, ManyArgumentsAskForADriverAndAGpuThatTakeThem) {
  EXPECT_EQ(MostArgBytes(/*driver_version=*/12010, /*capability_major=*/7), 32764);
  EXPECT_EQ(MostArgBytes(13000, 9), 32764);
  EXPECT_EQ(MostArgBytes(12000, 9), 4096);
  EXPECT_EQ(MostArgBytes(13000, 6), 4096);
}

}  // namespace
}  // namespace gridclock::list
