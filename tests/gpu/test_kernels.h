// Kernels whose time or fault is known.
#ifndef GRIDCLOCK_TESTS_GPU_TEST_KERNELS_H_
#define GRIDCLOCK_TESTS_GPU_TEST_KERNELS_H_

#include <cstdint>

#include <cuda_runtime_api.h>

namespace gridclock {

// One thread that watches the device's timer until `ns` have passed.
cudaError_t LaunchSpin(std::uint64_t ns, cudaStream_t stream);
// So many blocks of so many threads, all there at once, which end together: `ns` after one of the
// first of them began. `*end` is the device's, 0 before, and of one launch.
inline constexpr int kSpinningThreads = 32;
cudaError_t LaunchSpinningBlocks(std::uint64_t ns, int blocks, unsigned long long* end,
                                 cudaStream_t stream);
// When a kernel, or a block of one, began and ended by the device's timer.
struct Stamps {
  std::uint64_t start, end;
};
// The same, which says when it began and ended; `stamps` is the device's.
cudaError_t LaunchStampedSpin(std::uint64_t ns, Stamps* stamps, cudaStream_t stream);
// So many blocks of so many threads that compute a while; each has its own stamps. None of those is
// shared: what waits for one address would go on behind the last stamp.
inline constexpr int kStampedThreads = 128;
cudaError_t LaunchStampedBlocks(Stamps* stamps, int blocks, cudaStream_t stream);
// Reads each of `bytes` once.
cudaError_t LaunchRead(const void* data, std::uint64_t bytes, cudaStream_t stream);
// So many blocks of so many threads, each of `rounds` error functions of an element of its own.
inline constexpr int kManyBlocksThreads = 256;
cudaError_t LaunchManyBlocks(float* data, int blocks, int rounds, cudaStream_t stream);
// Adds to `others` how many words of all `bytes` that a block can share are not `word`, as so many
// blocks find them.
cudaError_t LaunchCountOthers(std::uint32_t word, int bytes, int blocks, std::uint32_t* others,
                              cudaStream_t stream);
// Writes where no memory is.
cudaError_t LaunchIllegalWrite(cudaStream_t stream);
cudaError_t LaunchFailedAssert(cudaStream_t stream);
// With more threads than a block can have.
cudaError_t LaunchTooLarge(cudaStream_t stream);
// The same, and nobody asks what became of it.
void LaunchTooLargeInSilence(cudaStream_t stream);

}  // namespace gridclock

#endif  // GRIDCLOCK_TESTS_GPU_TEST_KERNELS_H_
