// Holds back a stream while work is queued on it, so that the host's own pace does not show in what
// is measured there.
#ifndef GRIDCLOCK_KERNELS_DEVICE_CUDA_BLOCKER_H_
#define GRIDCLOCK_KERNELS_DEVICE_CUDA_BLOCKER_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/device/cuda/device_kernels.h"
#include "kernels/device/cuda/handles.h"

namespace gridclock {

class Blocker {
 public:
  static absl::StatusOr<Blocker> Create();

  // The stream stands from here on, until Open or for `limit_ns`: whoever waits for the stream
  // meanwhile waits that long, not for ever. One at a time; each Close needs its Open.
  absl::Status Close(cudaStream_t stream, std::uint64_t limit_ns);
  void Open();
  // Whether the last one ended by its limit, so that what was queued behind it may have had to wait
  // for the host. Meaningful once the stream has passed it.
  bool TimedOut() const;

 private:
  Blocker(CudaHostMemory memory, BlockerFlags* on_device)
      : memory_(std::move(memory)), on_device_(on_device) {}
  BlockerFlags* flags() const { return static_cast<BlockerFlags*>(memory_.get()); }

  CudaHostMemory memory_;
  BlockerFlags* on_device_;
  std::uint32_t pass_ = 0;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_DEVICE_CUDA_BLOCKER_H_
