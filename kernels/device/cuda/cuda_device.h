// One NVIDIA GPU as a device. Nothing of CUDA shows in this header: what includes it needs no
// toolkit, and a build without CUDA offers the same calls, which then say so.
#ifndef GRIDCLOCK_KERNELS_DEVICE_CUDA_CUDA_DEVICE_H_
#define GRIDCLOCK_KERNELS_DEVICE_CUDA_CUDA_DEVICE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/device/device.h"

namespace gridclock {

struct CudaOptions {
  int ordinal = 0;        // As the driver counts the devices that this process may see.
  std::string uuid = {};  // "GPU-...", "MIG-..."; counts instead of the ordinal if it is set.
  std::string name = {};  // For info(); empty: "cuda:<ordinal>".
  int threads = 0;        // Host threads, for references; 0: one for each CPU that it may use.
  std::uint64_t memory_limit = 0;  // Bytes in use together; 0: what others leave, less 1 GiB.
  // What is taken from the driver is filled with zeros, whole pages: what may have been another
  // process's is not seen.
  bool clear_memory = false;
  // What a device before this one measured, in its own words; empty: measure, in about a second.
  std::string calibration = {};
  // For use under a profiler or a checker: nothing is launched but what is asked for, so there is
  // no calibration, no blocking kernel and no CUPTI.
  bool bare = false;
  // Each buffer is memory of just its size, taken from the driver and given back: else a checker of
  // memory sees nothing of what is read beyond one.
  bool exact_memory = false;
};

class CudaDevice : public Device {
 public:
  // FAILED_PRECONDITION with reason NO_DEVICE if there is no driver, or no such device; the message
  // says what there is. INVALID_ARGUMENT for a calibration that no device can have written; that of
  // another device is measured anew.
  // Must be called before any other use of CUDA in the process. The calling thread is the one that
  // calls the device from then on.
  static absl::StatusOr<std::unique_ptr<CudaDevice>> Create(const CudaOptions& options);

  // What it measured, for CudaOptions::calibration; empty if it is bare, or if somebody else was on
  // the GPU meanwhile or it was throttled: the next one measures for itself.
  virtual std::string CalibrationText() const = 0;
};

// Known without a context on the device.
struct CudaDeviceFacts {
  int ordinal = 0;
  std::string uuid;   // "GPU-8e1c...".
  std::string model;  // "NVIDIA H200".
  std::int64_t sm = 0;
  std::int64_t units = 0;
  std::uint64_t memory_bytes = 0, l2_bytes = 0;
};

struct CudaDevices {
  std::vector<CudaDeviceFacts> devices;
  absl::Status none;  // Why there are none: no driver, no device, built without CUDA.
};

// Never fails: without a driver the list is empty and says why.
CudaDevices ListCudaDevices();

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_DEVICE_CUDA_CUDA_DEVICE_H_
