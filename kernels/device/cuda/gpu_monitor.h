#ifndef GRIDCLOCK_KERNELS_DEVICE_CUDA_GPU_MONITOR_H_
#define GRIDCLOCK_KERNELS_DEVICE_CUDA_GPU_MONITOR_H_

#include <memory>
#include <utility>

#include "kernels/device/cuda/nvml.h"
#include "kernels/device/monitor.h"

namespace gridclock {

// Has a handle of its own to the driver's library.
class GpuMonitor final : public DeviceMonitor {
 public:
  explicit GpuMonitor(std::unique_ptr<Nvml> nvml) : nvml_(std::move(nvml)) {}
  DeviceVitals Read() override;

 private:
  const std::unique_ptr<Nvml> nvml_;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_DEVICE_CUDA_GPU_MONITOR_H_
