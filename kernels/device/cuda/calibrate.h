// Measures a GPU's calibration, on the device itself.
#ifndef GRIDCLOCK_KERNELS_DEVICE_CUDA_CALIBRATE_H_
#define GRIDCLOCK_KERNELS_DEVICE_CUDA_CALIBRATE_H_

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "kernels/device/cuda/cupti.h"
#include "kernels/device/cuda/gpu_calibration.h"
#include "kernels/device/cuda/gpu_timer.h"

namespace gridclock {

// In about a second. The device offers its methods and can allocate; `timer` is of its stream.
absl::StatusOr<GpuCalibration> CalibrateGpu(Device& device, GpuTimer& timer);

// `use` makes all records be of that kind from then on.
absl::StatusOr<RecordPairs> MeasureRecordPairs(Device& device,
                                               absl::FunctionRef<void(KernelRecords)> use);

// Memory and L2 alone, in some 50 ms; memory only where there is room to sweep past the L2, else it
// stays as it was.
absl::Status MeasureBandwidths(Device& device, GpuTimer& timer, GpuCalibration* calibration);

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_DEVICE_CUDA_CALIBRATE_H_
