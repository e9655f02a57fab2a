// The devices that a worker can serve, by name. The one place that knows which kinds there are.
#ifndef GRIDCLOCK_KERNELS_WORKER_DEVICE_FACTORY_H_
#define GRIDCLOCK_KERNELS_WORKER_DEVICE_FACTORY_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "kernels/device/device.h"

namespace gridclock {

struct DeviceRequest {
  std::string name = "cpu";      // "cpu", "cuda:0".
  std::string uuid = {};         // Of a GPU; counts instead of the number in its name.
  std::string level = {};        // Of the kernels' code for the CPU.
  std::string calibration = {};  // What a worker before this one measured; empty: measure.
  int threads = 0;               // 0: one for each CPU that it may use.
  int server = 0;                // The process that asks for it; 0: none, a person does.
  bool guest = false;            // For submitted code.
  bool bare = false;             // Under a profiler: nothing is launched but what is asked for.
};

struct MadeDevice {
  std::unique_ptr<Device> device;
  std::string calibration;  // For the worker after this one; empty: there was none.
};

// INVALID_ARGUMENT for a name that is none; FAILED_PRECONDITION (NO_DEVICE) for a GPU that this
// machine, or this build, does not have.
absl::StatusOr<MadeDevice> MakeDevice(const DeviceRequest& request);
bool IsCpu(absl::string_view device);
// "cuda:0" where there is a GPU, else "cpu".
std::string FirstDevice();

// One line of JSON for each device of this machine, GPUs first: name, kind, uuid, model.
// `why_no_gpu` says why there is none.
std::string DeviceLines(std::string* why_no_gpu);

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_WORKER_DEVICE_FACTORY_H_
