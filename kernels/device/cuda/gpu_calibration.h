// What was measured of a GPU when its worker started, and what follows from it.
#ifndef GRIDCLOCK_KERNELS_DEVICE_CUDA_GPU_CALIBRATION_H_
#define GRIDCLOCK_KERNELS_DEVICE_CUDA_GPU_CALIBRATION_H_

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/device/device.h"
#include "proto/types/device.h"

namespace gridclock {

// Times in nanoseconds, medians; bandwidths in bytes per second, the best that was seen, bytes read
// and bytes written both counted. 0: not measured.
struct GpuCalibration {
  static constexpr int kFewKernels = 16;
  // Two events with nothing between them, behind the blocking kernel.
  double empty_event_pair_ns = 0;
  // An empty kernel by each method.
  double isolated_ns = 0, device_time_ns = 0, back_to_back_ns = 0, host_no_sync_ns = 0,
         host_sync_ns = 0, event_pair_ns = 0;
  // A serial record of one beyond a concurrent one (cupti.h), and what came of measuring that: who
  // is given this calibration is to time by the same records.
  static constexpr double kSerialTaken = 1, kSerialRefused = 2;
  double serial_beyond_ns = 0, serial = 0;
  // A launch of kFewKernels empty kernels, and one of a copy from the host with an empty kernel
  // behind it: what records add between several shows in them. Of copies SecondFarthest().
  double isolated_kernels_ns = 0, device_time_kernels_ns = 0, isolated_copy_ns = 0,
         device_time_copy_ns = 0;
  double event_step_ns = 0;         // The smallest difference between times by events.
  double device_timer_step_ns = 0;  // Of %globaltimer.
  double copy_bandwidth = 0;        // Of memory, from device to device.
  double read_bandwidth = 0;        // Of memory, by a kernel that only reads.
  double l2_bandwidth = 0;          // Of the L2 cache, by a kernel that reads or one that copies.
  bool steady = true;               // The clock stood still before it was measured.

  // What the isolated method reads of an empty kernel beyond the device's own record of it. The two
  // are not of the very same launches, because recording a kernel adds to what events see of it.
  double LaunchOffsetNs() const {
    return device_time_ns > 0 ? std::max(0.0, isolated_ns - device_time_ns) : 0;
  }
  // The same of each further kernel of a launch, and of each copy: what lies between two of them is
  // another with and without records, so it may be less than 0.
  double KernelOffsetNs() const {
    return device_time_ns > 0 ? (isolated_kernels_ns - device_time_kernels_ns - LaunchOffsetNs()) /
                                    (kFewKernels - 1)
                              : 0;
  }
  double CopyOffsetNs() const {
    return device_time_ns > 0 ? isolated_copy_ns - device_time_copy_ns - LaunchOffsetNs() : 0;
  }
  double FloorOf(Method method) const;
  friend bool operator==(const GpuCalibration&, const GpuCalibration&) = default;
};

// Of a copy from the host with an empty kernel behind it, by both methods.
struct CopyTimes {
  double isolated_ns = 0, device_time_ns = 0;
  double apart() const { return isolated_ns - device_time_ns; }
};

// Of several series, MUST be two or more: the one whose methods are second farthest apart. The
// farthest may be one that met a busy bus, and would widen what is let pass for the worker's life.
CopyTimes SecondFarthest(std::vector<CopyTimes> series);

// Medians of one kernel by records of both kinds (cupti.h), taken one right after the other.
struct RecordPair {
  double concurrent_ns = 0, serial_ns = 0;
  double beyond() const { return serial_ns - concurrent_ns; }
};

// Of an empty kernel, and of one of many blocks that work. Neither MUST be empty.
struct RecordPairs {
  std::vector<RecordPair> empty, working;
};

inline constexpr double kMostSerialBeyondNs = 5'000;  // More than any GPU adds.
inline constexpr double kSameBeyondWithinNs = 300;    // What device time may be off by.
// What a serial record is beyond a concurrent one: the median of those of an empty kernel.
// UNAVAILABLE with the figures where that is less than 0, more than any GPU adds, or another than
// of the kernel that works, so that it would be no constant.
absl::StatusOr<double> SerialBeyond(const RecordPairs& pairs);

// In one line, without `steady`, so that the next process on this device need not measure again. It
// belongs to the device with this UUID.
std::string ToText(const GpuCalibration& calibration, absl::string_view uuid);
// INVALID_ARGUMENT if ToText could not have written it, NOT_FOUND if it is of another device.
absl::StatusOr<GpuCalibration> GpuCalibrationFromText(absl::string_view text,
                                                      absl::string_view uuid);

// Dense rates by the vendor's tables: operations of one SM in one clock, times SMs, times the
// highest clock. Empty for a compute capability that the table lacks: then nothing is claimed.
std::vector<FlopRate> NominalFlopRates(std::int64_t sm, std::int64_t units, double clock_hz);

// Whether what sweeps over so much measures memory: of less than four times the cache so many lines
// are still there that it measures that.
inline bool SweepsMemory(std::uint64_t bytes, std::uint64_t l2_bytes) {
  return bytes / 4 >= l2_bytes;
}

// The least time by those peaks; measured ones with a tenth off. All bytes pass the L2, and memory
// moves those that the L2 cannot have held before or keep afterwards.
Device::Roofline GpuRoofline(const GpuCalibration& calibration, std::span<const FlopRate> rates,
                             std::uint64_t l2_bytes, const Work& work, L2State state);

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_DEVICE_CUDA_GPU_CALIBRATION_H_
