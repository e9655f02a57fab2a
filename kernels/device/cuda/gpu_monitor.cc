#include "kernels/device/cuda/gpu_monitor.h"

#include "kernels/device/cuda/gpu_conditions.h"

namespace gridclock {

DeviceVitals GpuMonitor::Read() {
  const NvmlReading reading = nvml_->Read();
  const Conditions now = CompareReadings(reading, reading, /*elapsed_ns=*/0, OwnPids());
  DeviceVitals vitals;
  vitals.state = StateOf(reading);
  if (!now.sharing_unknown) vitals.exclusive = !now.shared;
  return vitals;
}

std::unique_ptr<DeviceMonitor> MonitorOf(const std::string& uuid) {
  auto nvml = OpenNvml(uuid);
  return nvml.ok() ? std::make_unique<GpuMonitor>(*std::move(nvml)) : nullptr;
}

}  // namespace gridclock
