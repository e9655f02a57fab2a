#ifndef GRIDCLOCK_TESTS_SUPPORT_FAKE_CLOCK_H_
#define GRIDCLOCK_TESTS_SUPPORT_FAKE_CLOCK_H_

#include <atomic>
#include <cstdint>

#include "base/clock.h"

namespace gridclock {

// Stands still until told to move. Thread-safe.
class FakeClock final : public Clock {
 public:
  absl::Time Now() const override { return absl::UnixEpoch() + absl::Nanoseconds(now_ns_.load()); }
  void Advance(absl::Duration by) { now_ns_ += absl::ToInt64Nanoseconds(by); }

 private:
  std::atomic<std::int64_t> now_ns_{1'000'000'000};
};

}  // namespace gridclock

#endif  // GRIDCLOCK_TESTS_SUPPORT_FAKE_CLOCK_H_
