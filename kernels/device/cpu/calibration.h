// What this machine can do at best, measured when the device is made: in about 0.15 s.
#ifndef GRIDCLOCK_KERNELS_DEVICE_CPU_CALIBRATION_H_
#define GRIDCLOCK_KERNELS_DEVICE_CPU_CALIBRATION_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/api/kernel.h"
#include "kernels/device/cpu/host.h"
#include "kernels/device/device.h"

namespace gridclock {

// The best rate seen of a level of memory by all threads together.
struct LevelRate {
  std::string name;        // "L2", "memory".
  std::uint64_t fits = 0;  // Working sets up to this size may run at the rate.
  double bytes_per_second = 0;
};

struct Calibration {
  std::vector<LevelRate> levels;  // From the smallest; the last is memory and fits everything.
  double flops_per_second = 0;    // f32, all threads.
};

Calibration Calibrate(const HostFacts& host, Threads& threads);

// In one line, so that the next process on this machine need not measure again.
std::string ToText(const Calibration& calibration);
// INVALID_ARGUMENT if ToText could not have written it.
absl::StatusOr<Calibration> CalibrationFromText(absl::string_view text);

// The least time by those peaks, with a tenth off: the peaks are themselves measured. Where the
// cache is hot a set counts as resident up to twice the size of a level, as parts of it may be.
Device::Roofline RooflineFrom(const Calibration& calibration, std::int64_t bytes,
                              std::int64_t flops, L2State state);

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_DEVICE_CPU_CALIBRATION_H_
