#include "base/clock.h"

namespace gridclock {

absl::Time MonotonicClock::Now() const {
  return absl::FromUnixNanos(MonotonicNs());
}

}  // namespace gridclock
