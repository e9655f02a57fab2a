// Kernels that start while the one before them is under way: what cuda_launch.cuh gives those that
// are launched `early`.
#ifndef GRIDCLOCK_TESTS_GPU_EARLY_KERNELS_H_
#define GRIDCLOCK_TESTS_GPU_EARLY_KERNELS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/api/kernel.h"

namespace gridclock {

// On the device. Times are those of its timer.
struct Early {
  std::uint64_t ended_ns = 0, started_ns = 0;
  int written = 0, read = 0;
};

// Lets the next kernel start, waits until it has, for `most_ns` at most, and writes 1 a while
// later.
absl::Status LaunchLateWrite(const Call& call, Early* early, std::uint64_t most_ns);
// Early: reads what was written.
absl::Status LaunchEarlyRead(const Call& call, Early* early);
// The same in code for GPUs that start no kernel early.
absl::Status LaunchEarlyReadOfOlderCode(const Call& call, Early* early);

}  // namespace gridclock

#endif  // GRIDCLOCK_TESTS_GPU_EARLY_KERNELS_H_
