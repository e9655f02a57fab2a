// When two methods of timing count as agreeing: rule 2 of docs/timing.md.
#ifndef GRIDCLOCK_KERNELS_TIMING_AGREEMENT_H_
#define GRIDCLOCK_KERNELS_TIMING_AGREEMENT_H_

#include <algorithm>
#include <cmath>

namespace gridclock {

inline constexpr double kAgreeWithinNs = 500;
inline constexpr double kAgreeWithinShare = 0.03;  // Of the device's own time.

// The isolated time holds what a launch costs beyond the kernel itself: the launch offset, measured
// on an empty kernel, is taken off before the two are compared, and for nothing else.
inline bool Agree(double isolated_ns, double device_ns, double launch_offset_ns) {
  const double allowed = std::max(kAgreeWithinNs, kAgreeWithinShare * device_ns);
  return std::abs(isolated_ns - launch_offset_ns - device_ns) <= allowed;
}

// A slope over launches that follow each other may hold what a launch costs, or hide it behind the
// launch before.
inline bool SlopeAgrees(double slope_ns, double device_ns, double launch_offset_ns) {
  const double allowed = std::max(kAgreeWithinNs, kAgreeWithinShare * device_ns);
  return slope_ns >= device_ns - allowed && slope_ns <= device_ns + launch_offset_ns + allowed;
}

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_TIMING_AGREEMENT_H_
