// What NVIDIA's management library tells of a device: clocks, heat, power, and who else is on it.
#ifndef GRIDCLOCK_KERNELS_DEVICE_CUDA_NVML_H_
#define GRIDCLOCK_KERNELS_DEVICE_CUDA_NVML_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace gridclock {

// Why a clock is not higher, as NVML's bits.
inline constexpr std::uint64_t kClockIdle = 0x1, kClockApplications = 0x2, kClockPowerCap = 0x4,
                               kClockHwSlowdown = 0x8, kClockSyncBoost = 0x10,
                               kClockSwThermal = 0x20, kClockHwThermal = 0x40,
                               kClockPowerBrake = 0x80, kClockDisplay = 0x100;

// At one moment. What the device does not tell is unset, and nothing is claimed from it.
struct NvmlReading {
  std::optional<double> sm_clock_hz = {}, memory_clock_hz = {}, power_watts = {},
                        temperature_celsius = {};
  std::optional<std::uint64_t> clock_reasons = {};                              // Bits, as above.
  std::optional<std::uint64_t> memory_used_bytes = {}, memory_free_bytes = {};  // By all, by none.
  // Since the driver was loaded: how long power and heat held the clock down.
  std::optional<std::uint64_t> power_violation_ns = {}, thermal_violation_ns = {};
  // Processes that compute on the device, as the driver counts pids; those of MPS too.
  std::optional<std::vector<std::int64_t>> processes = {};
  // It is a MIG instance: who computes on the other parts of its GPU is not among them.
  bool part_of_gpu = false;
};

class Nvml {
 public:
  virtual ~Nvml() = default;
  virtual NvmlReading Read() = 0;
  // What stays as it is.
  virtual double max_sm_clock_hz() const = 0;  // 0: not told.
  virtual double max_memory_clock_hz() const = 0;
  virtual const std::string& driver() const = 0;     // "580.65.06"; empty: not told.
  virtual const std::string& partition() const = 0;  // "mig", "mps"; empty: a whole GPU.
};

// Of the device with this UUID, by the first of `libraries` that opens. NOT_FOUND where there is
// none, with what was said of each; UNAVAILABLE if it does not work.
absl::StatusOr<std::unique_ptr<Nvml>> OpenNvml(const std::string& uuid,
                                               const std::vector<std::string>& libraries = {
                                                   "libnvidia-ml.so.1", "libnvidia-ml.so"});

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_DEVICE_CUDA_NVML_H_
