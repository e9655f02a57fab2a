// Owners of what the CUDA runtime hands out.
#ifndef GRIDCLOCK_KERNELS_DEVICE_CUDA_HANDLES_H_
#define GRIDCLOCK_KERNELS_DEVICE_CUDA_HANDLES_H_

#include <utility>

#include <cuda_runtime_api.h>

#include "absl/status/statusor.h"
#include "base/status.h"
#include "kernels/device/cuda/cuda_error.h"

namespace gridclock {

template <typename Handle, cudaError_t (*destroy)(Handle)>
class UniqueCuda {
 public:
  UniqueCuda() = default;
  explicit UniqueCuda(Handle handle) : handle_(handle) {}
  UniqueCuda(UniqueCuda&& other) noexcept : handle_(std::exchange(other.handle_, Handle{})) {}
  UniqueCuda& operator=(UniqueCuda&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~UniqueCuda() {
    // What a destructor could not give back, the end of the process will.
    if (handle_ != Handle{}) static_cast<void>(destroy(handle_));
  }
  Handle get() const { return handle_; }
  explicit operator bool() const { return handle_ != Handle{}; }

 private:
  Handle handle_ = {};
};

using CudaStream = UniqueCuda<cudaStream_t, &cudaStreamDestroy>;
using CudaEvent = UniqueCuda<cudaEvent_t, &cudaEventDestroy>;
using CudaGraph = UniqueCuda<cudaGraph_t, &cudaGraphDestroy>;
using CudaGraphExec = UniqueCuda<cudaGraphExec_t, &cudaGraphExecDestroy>;
using CudaHostMemory = UniqueCuda<void*, &cudaFreeHost>;

// With timing.
inline absl::StatusOr<CudaEvent> MakeEvent() {
  cudaEvent_t event = nullptr;
  GC_RETURN_IF_CUDA_ERROR(cudaEventCreate(&event), "create an event");
  return CudaEvent(event);
}

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_DEVICE_CUDA_HANDLES_H_
