#include "server/metrics/turns.h"

#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gridclock {
namespace {

using ::testing::ElementsAre;
using ::testing::Ge;

using Clock = std::chrono::steady_clock;

void AwaitWaiting(const Turns& turns, int count) {
  while (turns.waiting() != count) std::this_thread::yield();
}

TEST(TurnsTest, FirstComeFirstServedAndOneAtATime) {
  Turns turns(0);
  std::vector<int> served;  // Guarded by the turns: ThreadSanitizer runs this too.
  std::optional<Turns::Turn> first(std::in_place, turns);
  std::vector<std::jthread> threads;
  for (int i = 0; i < 5; ++i) {
    threads.emplace_back([&turns, &served, i] {
      const Turns::Turn turn(turns);
      served.push_back(i);
    });
    AwaitWaiting(turns, i + 1);
  }
  first.reset();
  threads.clear();
  EXPECT_THAT(served, ElementsAre(0, 1, 2, 3, 4));
}

TEST(TurnsTest, RestsBehindATurnInProportion) {
  constexpr auto kTook = std::chrono::milliseconds(20);
  Turns turns(3);
  const Clock::time_point start = Clock::now();
  {
    const Turns::Turn turn(turns);
    std::this_thread::sleep_for(kTook);
  }
  const Turns::Turn next(turns);
  EXPECT_THAT(Clock::now() - start, Ge(4 * kTook));
}

// An hour's, were it in proportion.
TEST(TurnsTest, NoRestIsLong) {
  Turns turns(180'000);
  {
    const Turns::Turn turn(turns);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  const Turns::Turn next(turns);
}

}  // namespace
}  // namespace gridclock
