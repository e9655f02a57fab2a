// What is known of a device.
#ifndef GRIDCLOCK_PROTO_TYPES_DEVICE_H_
#define GRIDCLOCK_PROTO_TYPES_DEVICE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "proto/types/binding.h"
#include "proto/types/dtype.h"
#include "proto/types/measure.h"

namespace gridclock {

// A method of timing on one device.
struct MethodFacts {
  Method method = Method::kIsolated;
  double floor_ns = 0;       // What an empty launch costs by it, measured at start.
  std::string missing = {};  // Why the device does not have it; empty: it has.
  std::string note = {};     // How its times differ here from what is usual; empty: they do not.
  friend bool operator==(const MethodFacts&, const MethodFacts&) = default;
};

// What the device can compute at most, by its data sheet.
struct FlopRate {
  DType dtype = DType::kF32;
  double flops_per_second = 0;
  friend bool operator==(const FlopRate&, const FlopRate&) = default;
};

struct DeviceInfo {
  std::string name;  // "cpu", "cuda:0".
  DeviceTraits traits;
  std::string model;       // "AMD EPYC 9B14", "NVIDIA H200".
  std::string uuid;        // Empty on a CPU.
  std::string level;       // CPU build in use: "x86-64-v4".
  std::int64_t units = 0;  // Cores that the CPU device uses; SMs of a GPU.
  std::uint64_t memory_bytes = 0;
  // Measured when the worker started, in bytes per second and nanoseconds.
  double memory_bandwidth = 0;
  double launch_floor_ns = 0;  // An empty launch by the isolated method.
  double clock_step_ns = 0;
  // False: it works in memory of its own, `memory_bytes` large, and operands are copied there.
  bool host_memory = true;
  // Of a GPU; 0 and empty elsewhere.
  std::uint64_t l2_bytes = 0;
  double sm_clock_hz = 0, memory_clock_hz = 0;  // The highest that it runs at.
  std::string driver = {};                      // "580.65.06".
  std::string cuda = {};                        // The newest CUDA that the driver knows: "13.0".
  // What the isolated method reads beyond the device's own record of an empty kernel, which is
  // taken off before the two are held against each other.
  double launch_offset_ns = 0;
  // The same for each further kernel or fill, and each copy, of one launch: less than 0 where
  // records leave the larger gaps.
  double kernel_offset_ns = 0, copy_offset_ns = 0;
  // What a serial record of a kernel, as many blocks have one, reads beyond a concurrent one: it is
  // taken off device time. 0: there are none, or they read alike.
  double serial_record_offset_ns = 0;
  double empty_event_pair_ns = 0;
  double device_timer_step_ns = 0;  // Of the timer that kernels can read; clock_step_ns is events'.
  double l2_bandwidth = 0;          // Measured, bytes per second.
  std::string partition = {};       // "mig", "mps": it is a part of a GPU; empty: a whole one.
  bool pageable_access = false;     // Kernels reach all host memory of their process.
  std::vector<MethodFacts> methods = {};
  std::vector<FlopRate> flop_rates = {};
};

enum class WorkerState : std::uint8_t { kStarting = 1, kReady, kBusy, kDead, kQuarantined };
inline bool IsUp(WorkerState state) {
  return state == WorkerState::kReady || state == WorkerState::kBusy;
}
enum class WorkerRole : std::uint8_t { kTrusted = 1, kGuest };

}  // namespace gridclock

#endif  // GRIDCLOCK_PROTO_TYPES_DEVICE_H_
