// What NVML's readings around a measurement mean for it.
#ifndef GRIDCLOCK_KERNELS_DEVICE_CUDA_GPU_CONDITIONS_H_
#define GRIDCLOCK_KERNELS_DEVICE_CUDA_GPU_CONDITIONS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/device/cuda/nvml.h"
#include "kernels/device/device.h"

namespace gridclock {

// "sw_power_cap" for each bit that is set.
std::vector<std::string> ClockReasonNames(std::uint64_t bits);

DeviceState StateOf(const NvmlReading& reading);

// What happened between two readings, `elapsed_ns` apart.
// `throttled`: power, heat or a slower GPU of its boost group held the clock down, at one of the
// readings or, power and heat, for more than a hundredth of the time between them. A device that is
// idle or only runs at the clocks that were set for it is not throttled; nor is one that is still
// on its way up, which gives no reason. `shared`: another process computes on the device. `own` are
// the pids of this service; where the first of them, which is this process and does have a context,
// is not among the driver's, pids are hidden from us by a namespace, and more processes than we
// have are others for sure, fewer tell nothing. Of the other parts of a GPU that is cut in parts
// the driver does not tell a part: who has one to himself may still share memory's bandwidth, power
// and clock, and sharing is unknown.
Conditions CompareReadings(const NvmlReading& before, const NvmlReading& after,
                           std::uint64_t elapsed_ns, std::span<const std::int64_t> own);

// Why what was calibrated meanwhile may be off, as it is told to clients; empty: it is not.
std::string CalibrationDoubt(const Conditions& meanwhile, bool clock_steady);

// This process, and those of the same program that its parent started: the workers of one server,
// guests too. A server that is the first process of a container adopts the orphans of others.
std::vector<std::int64_t> OwnPids(const std::string& root = "");

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_DEVICE_CUDA_GPU_CONDITIONS_H_
