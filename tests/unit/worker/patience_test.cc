#include "kernels/worker/patience.h"

#include <gtest/gtest.h>

namespace gridclock {
namespace {

int Looks(Patience& patience, int waits) {
  int looks = 0;
  for (int i = 0; i < waits; ++i) {
    if (!patience.MayLook()) continue;
    ++looks;
    patience.FoundNothing();
  }
  return looks;
}

TEST(Patience, LooksForAsLongAsItFinds) {
  Patience patience(2);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(patience.MayLook());
    patience.Found();
  }
}

TEST(Patience, SoonGivesUpAndTriesAgainNowAndThen) {
  Patience patience(2);
  patience.Found();
  EXPECT_LE(Looks(patience, 63), 5);
  EXPECT_EQ(Looks(patience, 64 * 10), 10);
}

TEST(Patience, OneThatFindsAgainLooksAgain) {
  Patience patience(2);
  Looks(patience, 10);
  while (!patience.MayLook()) continue;
  patience.Found();
  EXPECT_TRUE(patience.MayLook());
}

TEST(Patience, NeverLooksOnASingleCpu) {
  Patience patience(1);
  patience.Found();
  EXPECT_EQ(Looks(patience, 1000), 0);
}

}  // namespace
}  // namespace gridclock
