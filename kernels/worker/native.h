// Functions of a test build that stand in for submitted device code, so that all of a guest can be
// tested where there is no GPU. They are compiled in; nothing of a client is ever loaded as native
// code. Release builds have none.
#ifndef GRIDCLOCK_KERNELS_WORKER_NATIVE_H_
#define GRIDCLOCK_KERNELS_WORKER_NATIVE_H_

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "kernels/device/module.h"

namespace gridclock {

// One launch: it does the work of all blocks.
struct NativeCall {
  const BoundLaunch& launch;
  std::span<void* const> params;  // Of each parameter its bytes.

  template <typename T>
  T Value(std::size_t param) const {
    return *static_cast<const T*>(params[param]);
  }
  template <typename T>
  T* Pointer(std::size_t param) const {
    return Value<T*>(param);
  }
};
using NativeFn = void (*)(const NativeCall& call);
using NativeFns = std::map<std::string, NativeFn, std::less<>>;
struct Natives {
  NativeFns functions = {};
  std::map<std::string, DeviceModule::Global, std::less<>> variables = {};
};

// All of them as one module: its entries are the functions' names.
std::unique_ptr<DeviceModule> MakeNativeModule(const Natives& natives);  // Borrowed.

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_WORKER_NATIVE_H_
