// What a worker needs of a device. One implementation per kind: device/cpu, later device/cuda; the
// timing and verification rooms are written against this alone.
#ifndef GRIDCLOCK_KERNELS_DEVICE_DEVICE_H_
#define GRIDCLOCK_KERNELS_DEVICE_DEVICE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "kernels/api/kernel.h"
#include "proto/types/device.h"
#include "proto/types/measure.h"

namespace gridclock {

// Device memory, freed with the object. Must not outlive its device.
class DeviceBuffer {
 public:
  virtual ~DeviceBuffer() = default;
  virtual void* data() const = 0;
  virtual std::uint64_t size() const = 0;
};

// One timed launch. Host times are CLOCK_MONOTONIC nanoseconds.
struct TimedLaunch {
  double duration_ns = 0;  // By the method asked for.
  std::int64_t host_start_ns = 0, host_end_ns = 0;
};

// What the device said of itself around a measurement.
struct Conditions {
  double clock_hz = 0;  // 0: cannot be known here.
  bool throttled = false;
  bool shared = false;  // Someone else computes on it.
};

// Calls come from one thread. Work is asynchronous until Synchronize unless a call says otherwise.
class Device {
 public:
  virtual ~Device() = default;

  virtual const DeviceInfo& info() const = 0;
  // RESOURCE_EXHAUSTED with the numbers if it does not fit.
  virtual absl::StatusOr<std::unique_ptr<DeviceBuffer>> Allocate(std::uint64_t bytes) = 0;
  // True where kernels can work on host memory itself (the CPU): nothing is then copied in or out.
  virtual bool uses_host_memory() const = 0;
  virtual absl::Status CopyIn(void* to, std::span<const std::byte> from) = 0;
  virtual absl::Status CopyOut(std::span<std::byte> to, const void* from) = 0;
  virtual absl::Status Copy(void* to, const void* from, std::uint64_t bytes) = 0;
  virtual absl::Status Fill(void* to, std::byte value, std::uint64_t bytes) = 0;
  virtual absl::Status Synchronize() = 0;

  // For Call: the device's threads and stream.
  virtual Threads* threads() = 0;
  virtual void* stream() = 0;

  // The methods by which this device can time, and one launch timed by one of them. Synchronous.
  virtual std::span<const Method> methods() const = 0;
  virtual absl::StatusOr<TimedLaunch> Time(Method method,
                                           absl::FunctionRef<absl::Status()> launch) = 0;
  // Brings the last-level cache into the state; outside any timed window. Synchronous.
  virtual absl::Status PrepareCache(L2State state) = 0;
  virtual Conditions Observe() = 0;
  // The least time that `bytes` and `flops` of this working set can take, and why; 0 if unknown.
  struct Roofline {
    double ns = 0;
    std::string basis;
  };
  virtual Roofline RooflineOf(std::int64_t bytes, std::int64_t flops, L2State state) const = 0;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_DEVICE_DEVICE_H_
