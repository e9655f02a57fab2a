#include "kernels/device/cuda/blocker.h"

#include <atomic>
#include <new>

namespace gridclock {

absl::StatusOr<Blocker> Blocker::Create() {
  void* host = nullptr;
  GC_RETURN_IF_CUDA_ERROR(cudaHostAlloc(&host, sizeof(BlockerFlags), cudaHostAllocMapped),
                          "allocate the blocking kernel's flag");
  CudaHostMemory memory(host);
  new (host) BlockerFlags;
  void* on_device = nullptr;
  GC_RETURN_IF_CUDA_ERROR(cudaHostGetDevicePointer(&on_device, host, 0),
                          "map the blocking kernel's flag");
  return Blocker(std::move(memory), static_cast<BlockerFlags*>(on_device));
}

absl::Status Blocker::Close(cudaStream_t stream, std::uint64_t limit_ns) {
  const absl::Status launched =
      CudaStatus(LaunchBlocker(on_device_, ++pass_, limit_ns, stream), "block the stream");
  if (!launched.ok()) Open();
  return launched;
}

void Blocker::Open() {
  // What was queued before is queued before it is let go.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  flags()->opened = pass_;
}

bool Blocker::TimedOut() const {
  return flags()->timed_out == pass_;
}

}  // namespace gridclock
