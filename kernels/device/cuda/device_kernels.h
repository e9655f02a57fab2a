// Kernels that the device itself needs: to hold back a stream, to empty the cache, to know its own
// speed. What they are launched on must be current.
#ifndef GRIDCLOCK_KERNELS_DEVICE_CUDA_DEVICE_KERNELS_H_
#define GRIDCLOCK_KERNELS_DEVICE_CUDA_DEVICE_KERNELS_H_

#include <cstdint>

#include <cuda_runtime_api.h>

namespace gridclock {

// Written by the host and the blocking kernel, in host memory that the device maps. A pass is one
// use: `opened` lets the kernel of that pass and of those before it go.
struct BlockerFlags {
  volatile std::uint32_t opened = 0;
  volatile std::uint32_t timed_out = 0;  // The last pass that ended by its time limit.
};

// Spins until the host opens pass `pass`, or for `limit_ns` by the device's timer.
cudaError_t LaunchBlocker(BlockerFlags* device_flags, std::uint32_t pass, std::uint64_t limit_ns,
                          cudaStream_t stream);

// Does nothing.
cudaError_t LaunchEmpty(cudaStream_t stream);
// Does nothing either, with a grid of 3 x 2 and blocks of 32 x 5: easy to recognise.
cudaError_t LaunchMarker(cudaStream_t stream);

// Reads, or writes, every one of `bytes` (a multiple of 16), `passes` times, by four blocks for
// each of `sms`.
cudaError_t LaunchSweepRead(const void* data, std::uint64_t bytes, int passes, int sms,
                            cudaStream_t stream);
cudaError_t LaunchSweepWrite(void* data, std::uint64_t bytes, int sms, cudaStream_t stream);
// Copies the first half of `bytes` (a multiple of 32) to the second, `passes` times.
cudaError_t LaunchSweepCopy(void* data, std::uint64_t bytes, int passes, int sms,
                            cudaStream_t stream);

// Each of `sms` blocks makes all `bytes` that a block can share, one word after the other, `word`.
cudaError_t LaunchFillShared(std::uint32_t word, int bytes, int sms, cudaStream_t stream);

// The smallest step that the timer of the device was seen to make, in nanoseconds.
cudaError_t LaunchTimerStep(std::uint64_t* step_ns, cudaStream_t stream);

struct ClockCount {
  std::uint64_t cycles = 0, ns = 0;
};
// Cycles of a multiprocessor in `span_ns` of the device's timer, or a little more. They are there
// when the stream has no more work. One call at a time.
cudaError_t CountClock(std::uint64_t span_ns, ClockCount* count, cudaStream_t stream);

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_DEVICE_CUDA_DEVICE_KERNELS_H_
