// Time as the program sees it: one interface, the real one here, the fake one in tests/support.
#ifndef GRIDCLOCK_BASE_CLOCK_H_
#define GRIDCLOCK_BASE_CLOCK_H_

#include <cstdint>
#include <ctime>

#include "absl/time/time.h"

namespace gridclock {

// CLOCK_MONOTONIC in nanoseconds, for what is timed: reading it takes less than making a time of
// it.
inline std::int64_t MonotonicNs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
}

// A point of CLOCK_MONOTONIC, written as an absl::Time counted from the Unix epoch. It never jumps
// and is the same in every process of this host; it says nothing about the date.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual absl::Time Now() const = 0;
};

class MonotonicClock final : public Clock {
 public:
  absl::Time Now() const override;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_BASE_CLOCK_H_
