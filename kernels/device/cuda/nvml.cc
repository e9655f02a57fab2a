#include "kernels/device/cuda/nvml.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/device/cuda/dynamic_library.h"

namespace gridclock {
namespace {

// The part of NVML's interface that is used, as its manual gives it: the header is not everywhere
// where the compiler is.
using NvmlReturn = int;  // 0: success.
using NvmlDevice = void*;
constexpr NvmlReturn kSuccess = 0, kInsufficientSize = 7;
constexpr int kClockSm = 1, kClockMemory = 2, kTemperatureGpu = 0;
constexpr int kPolicyPower = 0, kPolicyThermal = 1;
constexpr unsigned kMigEnabled = 1;

struct ViolationTime {
  unsigned long long reference_us = 0, violation_ns = 0;
};
struct ProcessInfo {
  unsigned pid = 0;
  unsigned long long used_bytes = 0;
  unsigned gpu_instance = 0, compute_instance = 0;
};

struct MemoryInfo {
  unsigned long long total = 0, free = 0, used = 0;
};

using ListProcesses = NvmlReturn(NvmlDevice, unsigned*, ProcessInfo*);

struct Functions {
  NvmlReturn (*init)() = nullptr;
  const char* (*error_string)(NvmlReturn) = nullptr;
  NvmlReturn (*driver_version)(char*, unsigned) = nullptr;
  NvmlReturn (*by_uuid)(const char*, NvmlDevice*) = nullptr;
  NvmlReturn (*clock)(NvmlDevice, int, unsigned*) = nullptr;
  NvmlReturn (*max_clock)(NvmlDevice, int, unsigned*) = nullptr;
  NvmlReturn (*power)(NvmlDevice, unsigned*) = nullptr;
  NvmlReturn (*temperature)(NvmlDevice, int, unsigned*) = nullptr;
  NvmlReturn (*clock_reasons)(NvmlDevice, unsigned long long*) = nullptr;
  NvmlReturn (*memory)(NvmlDevice, MemoryInfo*) = nullptr;
  NvmlReturn (*violation)(NvmlDevice, int, ViolationTime*) = nullptr;
  ListProcesses* processes = nullptr;
  ListProcesses* mps_processes = nullptr;
  ListProcesses* graphics_processes = nullptr;
  NvmlReturn (*mig_mode)(NvmlDevice, unsigned*, unsigned*) = nullptr;
  NvmlReturn (*is_mig_handle)(NvmlDevice, unsigned*) = nullptr;
};

Functions FindFunctions(const DynamicLibrary& library) {
  Functions f;
  library.Find("nvmlInit_v2", &f.init);
  library.Find("nvmlErrorString", &f.error_string);
  library.Find("nvmlSystemGetDriverVersion", &f.driver_version);
  library.Find("nvmlDeviceGetHandleByUUID", &f.by_uuid);
  library.Find("nvmlDeviceGetClockInfo", &f.clock);
  library.Find("nvmlDeviceGetMaxClockInfo", &f.max_clock);
  library.Find("nvmlDeviceGetPowerUsage", &f.power);
  library.Find("nvmlDeviceGetTemperature", &f.temperature);
  library.Find("nvmlDeviceGetCurrentClocksEventReasons", &f.clock_reasons);
  if (f.clock_reasons == nullptr) {
    library.Find("nvmlDeviceGetCurrentClocksThrottleReasons", &f.clock_reasons);
  }
  library.Find("nvmlDeviceGetMemoryInfo", &f.memory);
  library.Find("nvmlDeviceGetViolationStatus", &f.violation);
  library.Find("nvmlDeviceGetComputeRunningProcesses_v3", &f.processes);
  library.Find("nvmlDeviceGetMPSComputeRunningProcesses_v3", &f.mps_processes);
  library.Find("nvmlDeviceGetGraphicsRunningProcesses_v3", &f.graphics_processes);
  library.Find("nvmlDeviceGetMigMode", &f.mig_mode);
  library.Find("nvmlDeviceIsMigDeviceHandle", &f.is_mig_handle);
  return f;
}

class LoadedNvml final : public Nvml {
 public:
  LoadedNvml(const Functions& functions, NvmlDevice device) : f_(functions), device_(device) {
    std::array<char, 96> version = {};
    if (f_.driver_version != nullptr &&
        f_.driver_version(version.data(), version.size()) == kSuccess) {
      driver_ = version.data();
    }
    partition_ = FindPartition();
  }

  NvmlReading Read() override {
    NvmlReading reading;
    reading.sm_clock_hz = Megahertz(f_.clock, kClockSm);
    reading.memory_clock_hz = Megahertz(f_.clock, kClockMemory);
    if (const auto milliwatts = Number(f_.power)) reading.power_watts = 1e-3 * *milliwatts;
    unsigned celsius = 0;
    if (f_.temperature != nullptr &&
        f_.temperature(device_, kTemperatureGpu, &celsius) == kSuccess) {
      reading.temperature_celsius = celsius;
    }
    unsigned long long reasons = 0;
    if (f_.clock_reasons != nullptr && f_.clock_reasons(device_, &reasons) == kSuccess) {
      reading.clock_reasons = reasons;
    }
    MemoryInfo memory;
    if (f_.memory != nullptr && f_.memory(device_, &memory) == kSuccess) {
      reading.memory_used_bytes = memory.used;
      reading.memory_free_bytes = memory.free;
    }
    reading.power_violation_ns = Violation(kPolicyPower);
    reading.thermal_violation_ns = Violation(kPolicyThermal);
    reading.processes = Processes(f_.processes);
    // Neither a client of MPS nor who draws is among those that compute.
    for (ListProcesses* list : {f_.mps_processes, f_.graphics_processes}) {
      const auto others = Processes(list);
      if (!reading.processes || !others) continue;
      reading.processes->insert(reading.processes->end(), others->begin(), others->end());
    }
    reading.part_of_gpu = partition_ == "mig";
    return reading;
  }
  double max_sm_clock_hz() const override { return Megahertz(f_.max_clock, kClockSm).value_or(0); }
  double max_memory_clock_hz() const override {
    return Megahertz(f_.max_clock, kClockMemory).value_or(0);
  }
  const std::string& driver() const override { return driver_; }
  const std::string& partition() const override { return partition_; }

 private:
  using ClockFunction = NvmlReturn(NvmlDevice, int, unsigned*);

  std::optional<double> Megahertz(ClockFunction* function, int type) const {
    unsigned value = 0;
    if (function == nullptr || function(device_, type, &value) != kSuccess) return std::nullopt;
    return 1e6 * value;
  }

  std::optional<double> Number(NvmlReturn (*function)(NvmlDevice, unsigned*)) const {
    unsigned value = 0;
    if (function == nullptr || function(device_, &value) != kSuccess) return std::nullopt;
    return value;
  }

  std::optional<std::uint64_t> Violation(int policy) const {
    ViolationTime time;
    if (f_.violation == nullptr || f_.violation(device_, policy, &time) != kSuccess) {
      return std::nullopt;
    }
    return time.violation_ns;
  }

  std::optional<std::vector<std::int64_t>> Processes(ListProcesses* list) const {
    if (list == nullptr) return std::nullopt;
    std::vector<ProcessInfo> infos(64);
    auto count = static_cast<unsigned>(infos.size());
    const NvmlReturn result = list(device_, &count, infos.data());
    if (result != kSuccess && result != kInsufficientSize) return std::nullopt;
    infos.resize(std::min<std::size_t>(infos.size(), count));
    std::vector<std::int64_t> pids;
    pids.reserve(infos.size());
    for (const ProcessInfo& info : infos) pids.push_back(info.pid);
    return pids;
  }

  std::string FindPartition() const {
    unsigned current = 0, pending = 0;
    if (f_.is_mig_handle != nullptr && f_.is_mig_handle(device_, &current) == kSuccess &&
        current != 0) {
      return "mig";
    }
    if (f_.mig_mode != nullptr && f_.mig_mode(device_, &current, &pending) == kSuccess &&
        current == kMigEnabled) {
      return "mig";
    }
    const auto mps = Processes(f_.mps_processes);
    return mps && !mps->empty() ? "mps" : "";
  }

  const Functions f_;
  const NvmlDevice device_;
  std::string driver_, partition_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Nvml>> OpenNvml(const std::string& uuid,
                                               const std::vector<std::string>& libraries) {
  GC_ASSIGN_OR_RETURN(const DynamicLibrary library, DynamicLibrary::Open(libraries));
  const Functions functions = FindFunctions(library);
  if (functions.init == nullptr || functions.by_uuid == nullptr ||
      functions.error_string == nullptr) {
    return absl::UnavailableError("NVML lacks nvmlInit_v2 or nvmlDeviceGetHandleByUUID");
  }
  if (const NvmlReturn error = functions.init(); error != kSuccess) {
    return absl::UnavailableError(absl::StrCat("nvmlInit: ", functions.error_string(error)));
  }
  NvmlDevice device = nullptr;
  if (const NvmlReturn error = functions.by_uuid(uuid.c_str(), &device); error != kSuccess) {
    return absl::UnavailableError(
        absl::StrCat("NVML does not know the device ", uuid, ": ", functions.error_string(error)));
  }
  return std::make_unique<LoadedNvml>(functions, device);
}

}  // namespace gridclock
