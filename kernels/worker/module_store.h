// The modules that a guest was given, by id, for its life.
#ifndef GRIDCLOCK_KERNELS_WORKER_MODULE_STORE_H_
#define GRIDCLOCK_KERNELS_WORKER_MODULE_STORE_H_

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "kernels/device/device.h"
#include "kernels/worker/native.h"
#include "proto/codec/worker.h"

namespace gridclock {

class ModuleStore {
 public:
  // Borrowed: `memory` is where codes lie.
  ModuleStore(Device& device, const Natives& natives, std::span<const std::byte> memory)
      : device_(device), natives_(MakeNativeModule(natives)), memory_(memory) {}

  // Loads those that are not there. FAILED_PRECONDITION for a module that neither came nor was here
  // before; else as Device::LoadModule.
  absl::Status Load(const WorkerProgram& program);
  // Of a module that was loaded.
  DeviceModule& Find(const WorkerProgram& program, const std::string& id);

 private:
  Device& device_;
  const std::unique_ptr<DeviceModule> natives_;
  const std::span<const std::byte> memory_;
  std::map<std::string, std::unique_ptr<DeviceModule>, std::less<>> loaded_;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_WORKER_MODULE_STORE_H_
