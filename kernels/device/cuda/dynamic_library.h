// A library that is looked for when the program runs.
#ifndef GRIDCLOCK_KERNELS_DEVICE_CUDA_DYNAMIC_LIBRARY_H_
#define GRIDCLOCK_KERNELS_DEVICE_CUDA_DYNAMIC_LIBRARY_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace gridclock {

// Stays loaded for the life of the process: these libraries start threads of their own.
class DynamicLibrary {
 public:
  // The first of `names` that opens: a bare name is looked for as the system does
  // (LD_LIBRARY_PATH), one with a slash is a path. NOT_FOUND with what was said of each.
  static absl::StatusOr<DynamicLibrary> Open(const std::vector<std::string>& names);

  // Sets *function, or leaves it null where the library has not got it.
  template <typename Function>
  void Find(const char* name, Function** function) const {
    *function = reinterpret_cast<Function*>(Symbol(name));
  }

 private:
  explicit DynamicLibrary(void* handle) : handle_(handle) {}
  void* Symbol(const char* name) const;

  void* handle_;
};

// The folder of the running program, with a slash at its end; empty if it cannot be told.
std::string ProgramFolder();

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_DEVICE_CUDA_DYNAMIC_LIBRARY_H_
