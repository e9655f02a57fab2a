// Time between two events of a stream, with and without the host's pace in it.
#ifndef GRIDCLOCK_KERNELS_DEVICE_CUDA_GPU_TIMER_H_
#define GRIDCLOCK_KERNELS_DEVICE_CUDA_GPU_TIMER_H_

#include <cstdint>
#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "kernels/device/cuda/blocker.h"
#include "kernels/device/cuda/handles.h"

namespace gridclock {

class GpuTimer {
 public:
  using Launch = absl::FunctionRef<absl::Status()>;

  struct Options {
    cudaStream_t stream = nullptr;
    bool blocker = true;  // Without it only EventPair works.
    // How long the stream stands at most: much longer than it takes to queue a launch, and short
    // enough for a caller who is then told that the launch waited for the device.
    std::uint64_t block_limit_ns = 250'000'000;
  };
  static absl::StatusOr<GpuTimer> Create(const Options& options);

  // Nanoseconds between an event before the launch and one after it. Both return when the stream
  // has no more work. An error of a kernel is found here and comes before the launch's own status.
  absl::StatusOr<double> EventPair(Launch launch);
  // The same, queued while the stream stands, so that the device never waits for the host. ABORTED
  // with reason LAUNCH_WAITED if the launch itself waited for the stream: then it was not timed.
  absl::StatusOr<double> Isolated(Launch launch);
  // Queues the launch while the stream stands, without events, and waits for its end.
  absl::Status RunBlocked(Launch launch);

 private:
  GpuTimer(const Options& options, CudaEvent start, CudaEvent end)
      : options_(options), start_(std::move(start)), end_(std::move(end)) {}
  absl::Status Queue(Launch launch);
  absl::StatusOr<double> ElapsedNs();

  Options options_;
  CudaEvent start_, end_;
  std::optional<Blocker> blocker_;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_DEVICE_CUDA_GPU_TIMER_H_
