// The time of a launch among launches that follow each other without a gap: what a graph of 4 n of
// them takes longer than one of n, over 3 n. What a graph costs once falls out.
#ifndef GRIDCLOCK_KERNELS_DEVICE_CUDA_GRAPH_SLOPE_H_
#define GRIDCLOCK_KERNELS_DEVICE_CUDA_GRAPH_SLOPE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/device/cuda/gpu_timer.h"
#include "kernels/device/cuda/handles.h"

namespace gridclock {

class GraphSlope {
 public:
  // One slope, in nanoseconds; *launches: how many of the launch ran on the device for it. The
  // graphs are kept for the next of the same launch, until Forget.
  // FAILED_PRECONDITION with reason NOT_CAPTURABLE if the launch does what a graph cannot hold.
  absl::StatusOr<double> Sample(cudaStream_t stream, GpuTimer& timer, GpuTimer::Launch launch,
                                std::int64_t* launches);
  void Forget() { *this = GraphSlope(); }

 private:
  struct Captured {
    CudaGraphExec exec;
    std::int64_t launches = 0;
    std::size_t nodes = 0;
  };
  static absl::StatusOr<Captured> Capture(cudaStream_t stream, GpuTimer::Launch launch,
                                          std::int64_t times);
  absl::StatusOr<double> Run(cudaStream_t stream, GpuTimer& timer, const Captured& graph);
  absl::Status Build(cudaStream_t stream, GpuTimer& timer, GpuTimer::Launch launch);
  absl::StatusOr<std::int64_t> ChooseLength(cudaStream_t stream, GpuTimer& timer,
                                            GpuTimer::Launch launch);

  std::int64_t n_ = 0;
  std::int64_t ran_ = 0;  // Launches for the sample at hand.
  Captured short_, long_;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_DEVICE_CUDA_GRAPH_SLOPE_H_
