// Submitted code on a device: loaded once, its entries launched as often as wanted.
#ifndef GRIDCLOCK_KERNELS_DEVICE_MODULE_H_
#define GRIDCLOCK_KERNELS_DEVICE_MODULE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "proto/types/launch.h"

namespace gridclock {

// An entry with a geometry. Must not outlive its module.
class EntryLaunch {
 public:
  virtual ~EntryLaunch() = default;
  // Asynchronous, in the device's stream. `params` points at the bytes of each parameter.
  // INVALID_ARGUMENT (LAUNCH_SHAPE) for a geometry that the device refuses.
  virtual absl::Status Launch(std::span<void* const> params) = 0;
};

// Must not outlive its device.
class DeviceModule {
 public:
  virtual ~DeviceModule() = default;
  // The geometry and the flags of `launch` count, not its parameters. NOT_FOUND without such an
  // entry, INVALID_ARGUMENT for more shared memory than the device lets it have.
  virtual absl::StatusOr<std::unique_ptr<EntryLaunch>> Prepare(const std::string& entry,
                                                               const BoundLaunch& launch) = 0;
  // A variable, on the device.
  struct Global {
    void* data = nullptr;
    std::uint64_t size = 0;
  };
  // `name` as the source has it. NOT_FOUND, saying what such a module has none for, if there is no
  // such variable, or the compiler left it out because nothing uses it.
  virtual absl::StatusOr<Global> FindGlobal(const std::string& name) = 0;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_DEVICE_MODULE_H_
