// When two methods of timing count as agreeing: rule 2 of docs/timing.md.
#ifndef GRIDCLOCK_KERNELS_TIMING_AGREEMENT_H_
#define GRIDCLOCK_KERNELS_TIMING_AGREEMENT_H_

#include <algorithm>
#include <span>

#include "proto/types/device.h"

namespace gridclock {

inline constexpr double kAgreeWithinNs = 500;
inline constexpr double kAgreeWithinShare = 0.03;  // Of the device's own time.
// What the gaps between several kernels and copies of one launch may differ by at most, so that
// nothing hides behind very many: the larger of both.
inline constexpr double kMostGapsNs = 5'000;
inline constexpr double kMostGapsShare = 0.1;  // Of the device's own time.
// The same of copies, which wait for the bus, and what one may wait: 1 to 9 us were seen of copies
// from the host on an H200, another from one second to the next, so that no calibration tells it.
inline constexpr double kMostCopiesNs = 10'000;
inline constexpr double kCopyWaitsNs = 9'000;

// Who finds no record of a launch is in doubt, but where there was nothing to do: what moves
// nothing and takes no longer than so many empty launches and so much more.
inline constexpr double kNothingWithinFloors = 3;
inline constexpr double kNothingWithinNs = 5'000;

// By how much a method's time is beyond the device's own record, and may be less and more than
// that: what lies between two kernels is another for each method, and large kernels hide it.
struct Offset {
  double launch_ns = 0;
  double below_ns = 0, above_ns = 0;  // Neither is less than 0.

  double slack_ns() const { return std::max(below_ns, above_ns); }
};

// Activities of one launch beyond the first, which is in the launch offset. None is known of where
// nothing was recorded.
struct Further {
  double kernels = 0, copies = 0;
};

// `copies` of those are copies: their names would not tell, for a kernel may have any.
inline Further FurtherOf(std::span<const Launch> ran, std::int64_t copies) {
  std::int64_t kernels = -copies;
  for (const Launch& launch : ran) kernels += launch.count;
  if (kernels + copies > 0) --(kernels > 0 ? kernels : copies);
  return {.kernels = static_cast<double>(kernels), .copies = static_cast<double>(copies)};
}

// Of a launch of `device_ns`, by the isolated method: measured on empty kernels. Where a copy is
// among several, the launch's own cost may be in the time or not.
inline Offset IsolatedOffset(const DeviceInfo& info, const Further& further, double device_ns) {
  const double most = std::max(kMostGapsNs, kMostGapsShare * device_ns);
  const double most_copies = std::max(kMostCopiesNs, kMostGapsShare * device_ns);
  const double kernels = further.kernels * info.kernel_offset_ns;
  const double copies = further.copies * info.copy_offset_ns;
  const double hidden = further.copies > 0 ? info.launch_offset_ns : 0;
  const double waits = further.copies * std::max(info.copy_offset_ns, kCopyWaitsNs);
  return {.launch_ns = info.launch_offset_ns,
          .below_ns = std::clamp(-kernels, 0.0, most) +
                      std::min(std::max(0.0, -copies) + hidden, most_copies),
          .above_ns = std::clamp(kernels, 0.0, most) + std::min(waits, most_copies)};
}

// A slope over launches that follow each other hides what a launch costs behind the launch before;
// of several kernels and copies it may hold it once. In a graph each further kernel hides it too,
// and a copy holds it once more, or what a copy may wait for the bus; so may half of the device's
// own record be.
inline Offset SlopeOffset(const DeviceInfo& info, const Further& further, double device_ns) {
  const double most = std::max(kMostGapsNs, kMostGapsShare * device_ns);
  const double most_copies = std::max(kMostCopiesNs, kMostGapsShare * device_ns);
  const double launch = info.launch_offset_ns;
  const double waits = further.copies * std::max(info.copy_offset_ns, kCopyWaitsNs);
  const double copies = std::max(further.copies * launch, waits);
  const double once = further.kernels + further.copies > 0 ? launch : 0;
  return {.below_ns = std::min(most, further.kernels * launch) +
                      std::min({most_copies, waits, device_ns / 2}),
          .above_ns = once + std::min(most_copies, copies)};
}

// The offset is taken off before the two are compared, and for nothing else.
inline bool Agree(double time_ns, double device_ns, const Offset& offset) {
  const double allowed = std::max(kAgreeWithinNs, kAgreeWithinShare * device_ns);
  const double beyond = time_ns - offset.launch_ns - device_ns;
  return beyond >= -offset.below_ns - allowed && beyond <= offset.above_ns + allowed;
}

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_TIMING_AGREEMENT_H_
