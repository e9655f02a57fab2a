#include "base/clock.h"

#include <ctime>

namespace gridclock {

absl::Time MonotonicClock::Now() const {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return absl::TimeFromTimespec(now);
}

}  // namespace gridclock
