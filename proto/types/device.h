// What is known of a device.
#ifndef GRIDCLOCK_PROTO_TYPES_DEVICE_H_
#define GRIDCLOCK_PROTO_TYPES_DEVICE_H_

#include <cstdint>
#include <string>

#include "proto/types/binding.h"

namespace gridclock {

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
};

enum class WorkerState : std::uint8_t { kStarting = 1, kReady, kBusy, kDead, kQuarantined };
enum class WorkerRole : std::uint8_t { kTrusted = 1, kGuest };

}  // namespace gridclock

#endif  // GRIDCLOCK_PROTO_TYPES_DEVICE_H_
