#ifndef GRIDCLOCK_SERVER_CORE_IDLE_PAGES_H_
#define GRIDCLOCK_SERVER_CORE_IDLE_PAGES_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>

#include "absl/time/time.h"

namespace gridclock {

// Gives memory back that nobody has used for a while. What calls let go is kept for the next ones,
// because pages that are given back are faulted in again; after a wave of them it would be kept for
// ever. Not thread-safe.
class IdlePages {
 public:
  struct Heap {
    std::function<std::uint64_t()> free_bytes;  // With pages behind them, as far as is known.
    std::function<void()> trim;
  };
  static constexpr absl::Duration kWhile = absl::Seconds(10);
  static constexpr absl::Duration kPause = absl::Seconds(2);  // Between two looks.
  static constexpr std::uint64_t kKept = std::uint64_t{128} << 20;

  explicit IdlePages(Heap heap) : heap_(std::move(heap)) {}

  // Call as often as you like.
  void Tick(absl::Time now) {
    if (now < next_look_) return;
    next_look_ = now + kPause;
    const std::uint64_t free_now = heap_.free_bytes();
    idle_ = std::min(idle_, free_now);
    given_ = std::min(given_, free_now);
    if (now < end_) return;
    if (idle_ >= given_ + kKept && end_ != absl::InfinitePast()) {
      heap_.trim();
      given_ = heap_.free_bytes();
    }
    idle_ = free_now;
    end_ = now + kWhile;
  }

 private:
  const Heap heap_;
  absl::Time next_look_ = absl::InfinitePast(), end_ = absl::InfinitePast();
  std::uint64_t idle_ = 0;   // Free at every look of this while.
  std::uint64_t given_ = 0;  // So much of what is free was not to be given back.
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_CORE_IDLE_PAGES_H_
