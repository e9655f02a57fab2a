#include <cuda_runtime_api.h>

#include "base/status.h"
#include "kernels/device/cuda/cuda_error.h"
#include "tests/conformance/world.h"

namespace gridclock {
namespace {

__global__ void CountBreaks(const std::uint8_t* data, std::uint64_t bytes, std::uint64_t period,
                            unsigned long long* breaks) {
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
  unsigned long long mine = 0;
  for (std::uint64_t i = period + std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < bytes;
       i += stride) {
    if (data[i] != data[i - period]) ++mine;
  }
  if (mine != 0) atomicAdd(breaks, mine);
}

}  // namespace

absl::StatusOr<bool> Repeats(Device& device, const void* data, std::uint64_t bytes,
                             std::uint64_t period) {
  unsigned long long breaks = 1;
  GC_ASSIGN_OR_RETURN(const auto count, device.Allocate(sizeof breaks));
  GC_RETURN_IF_ERROR(device.Fill(count->data(), std::byte{0}, sizeof breaks));
  CountBreaks<<<2048, 256, 0, static_cast<cudaStream_t>(device.stream())>>>(
      static_cast<const std::uint8_t*>(data), bytes, period,
      static_cast<unsigned long long*>(count->data()));
  GC_RETURN_IF_ERROR(CudaStatus(cudaGetLastError(), "compare on the device"));
  GC_RETURN_IF_ERROR(device.CopyOut(std::as_writable_bytes(std::span(&breaks, 1)), count->data()));
  GC_RETURN_IF_ERROR(device.Synchronize());
  return breaks == 0;
}

}  // namespace gridclock
