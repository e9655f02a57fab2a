#include "server/core/arrivals.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <latch>
#include <mutex>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gridclock {
namespace {

using ::testing::ElementsAre;
using ::testing::Le;

struct News {
  JobId id = 0;
  std::size_t input = 0;
  std::uint64_t bytes = 0;
  bool operator==(const News&) const = default;
};

// Keeps what it is told; can be held up at the first.
class Listener {
 public:
  Arrivals::Told Told(bool held = false) {
    if (!held) go_on_.count_down();
    return [this](JobId id, const InputArrival& arrival) {
      begun_.count_down();
      go_on_.wait();
      const std::lock_guard lock(mutex_);
      news_.push_back({id, arrival.input, arrival.bytes});
      told_.notify_all();
    };
  }
  void WaitUntilItIsAtTheFirst() { begun_.wait(); }
  void GoOn() { go_on_.count_down(); }
  std::vector<News> WaitFor(const News& last) {
    std::unique_lock lock(mutex_);
    told_.wait(lock, [&] { return std::ranges::find(news_, last) != news_.end(); });
    return news_;
  }

 private:
  // More are counted than there are to wait for: the first one alone matters.
  struct Once {
    std::once_flag flag;
    std::latch latch{1};
    void count_down() {
      std::call_once(flag, [this] { latch.count_down(); });
    }
    void wait() const { latch.wait(); }
  };
  Once begun_, go_on_;
  std::mutex mutex_;
  std::condition_variable told_;
  std::vector<News> news_;
};

TEST(Arrivals, AreToldInOrderAndOfEachInputTheNewest) {
  Listener listener;
  Arrivals arrivals(1, listener.Told(/*held=*/true));
  arrivals.Tell(1, {.input = 0, .bytes = 10});
  listener.WaitUntilItIsAtTheFirst();
  arrivals.Tell(2, {.input = 0, .bytes = 5});
  arrivals.Tell(1, {.input = 0, .bytes = 20});
  arrivals.Tell(2, {.input = 1, .bytes = 7});
  arrivals.Tell(2, {.input = 0, .bytes = 6});
  listener.GoOn();
  EXPECT_THAT(listener.WaitFor({2, 1, 7}),
              ElementsAre(News{1, 0, 10}, News{2, 0, 6}, News{1, 0, 20}, News{2, 1, 7}));
}

TEST(Arrivals, WhoTellsNeverWaits) {
  Listener listener;
  Arrivals arrivals(1, listener.Told(/*held=*/true));
  for (std::uint64_t bytes = 1; bytes <= 10'000; ++bytes) {
    arrivals.Tell(1, {.input = 0, .bytes = bytes});
  }
  listener.GoOn();
  EXPECT_THAT(listener.WaitFor({1, 0, 10'000}), ::testing::SizeIs(Le(2)));
}

TEST(Arrivals, OfManyThreadsTheLastAreTold) {
  constexpr std::uint64_t kBytes = 2000;
  Listener listener;
  Arrivals arrivals(3, listener.Told());
  {
    std::vector<std::jthread> uploads;
    for (JobId id = 1; id <= 4; ++id) {
      uploads.emplace_back([&arrivals, id] {
        for (std::uint64_t bytes = 1; bytes <= kBytes; ++bytes) {
          arrivals.Tell(id, {.input = 0, .bytes = bytes});
        }
      });
    }
  }
  for (JobId id = 1; id <= 4; ++id) listener.WaitFor({id, 0, kBytes});
}

TEST(Arrivals, WhatWasNotToldInTimeIsDropped) {
  int told = 0;
  {
    Arrivals arrivals(1, [&](JobId, const InputArrival&) {
      ++told;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    });
    for (JobId id = 1; id <= 1000; ++id) arrivals.Tell(id, {.input = 0, .bytes = 1});
  }
  EXPECT_LT(told, 1000);
}

}  // namespace
}  // namespace gridclock
