// What this machine can do at best, measured when the device is made: in about 0.2 s, more where
// the last caches are large.
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

// The `fits` of memory.
inline constexpr std::uint64_t kEverything = ~std::uint64_t{0};

// The best rate seen of a level of memory by all threads together.
struct LevelRate {
  std::string name;             // "L2", "memory".
  std::uint64_t fits = 0;       // Working sets up to this size may run at the rate.
  std::uint64_t set_bytes = 0;  // It was measured on a working set of this size.
  double bytes_per_second = 0;
};

struct Calibration {
  // From the smallest. Memory is the last and fits everything; it is missing where no set could be
  // had that is large enough to tell it from the caches.
  std::vector<LevelRate> levels;
  double flops_per_second = 0;  // f32, all threads.
  double bf16_per_second = 0;   // The same of bf16 by the CPU's units for it; 0 without such.
};

Calibration Calibrate(const HostFacts& host, Threads& threads);

// Measures the peaks that count for this work once more and keeps what is better: on a shared
// machine the first time may have been a slow one.
void Remeasure(const Work& work, L2State state, Threads& threads, Calibration* calibration);

// The size of the set on which memory is measured: four times the last-level caches, at least
// 8 MiB for each thread, at most a quarter of the machine's memory. 0 if that is less than twice
// the caches: so small a set would measure them in part.
std::uint64_t MemorySetBytes(const HostFacts& host, int threads);

// 0 if it was not measured.
double MemoryBandwidth(const Calibration& calibration);

// In one line, so that the next process on this machine need not measure again.
std::string ToText(const Calibration& calibration);
// INVALID_ARGUMENT if ToText could not have written it.
absl::StatusOr<Calibration> CalibrationFromText(absl::string_view text);

// The least time by those peaks, with a tenth off: the peaks are themselves measured. A level moves
// what smaller ones cannot have held before or keep afterwards. The basis says which peak counted,
// on how many bytes, and on what it was measured.
Device::Roofline RooflineFrom(const Calibration& calibration, const Work& work, L2State state);

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_DEVICE_CPU_CALIBRATION_H_
