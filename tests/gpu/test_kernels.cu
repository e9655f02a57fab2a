#undef NDEBUG
#include <cassert>

#include "tests/gpu/test_kernels.h"

namespace gridclock {
namespace {

__device__ std::uint64_t GlobalTimer() {
  std::uint64_t now = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__device__ Stamps SpinFor(std::uint64_t ns) {
  Stamps stamps = {GlobalTimer(), 0};
  do {
    stamps.end = GlobalTimer();
  } while (stamps.end - stamps.start < ns);
  return stamps;
}

__global__ void SpinKernel(std::uint64_t ns) {
  SpinFor(ns);
}

__global__ void SpinningBlocksKernel(std::uint64_t ns, unsigned long long* end) {
  if (threadIdx.x != 0) return;
  const unsigned long long own = GlobalTimer() + ns;
  const unsigned long long found = atomicCAS(end, 0ULL, own);
  const unsigned long long until = found == 0 ? own : found;
  while (GlobalTimer() < until) {
  }
}

__global__ void StampedSpinKernel(std::uint64_t ns, Stamps* stamps) {
  *stamps = SpinFor(ns);
}

// What is computed hangs on the first stamp and is had before the barrier: so it lies between both.
__global__ void StampedBlocksKernel(Stamps* stamps) {
  const std::uint64_t start = GlobalTimer();
  float value = static_cast<float>(start & 0xff) / 256;
  for (int round = 0; round < 16; ++round) value = erff(value);
  if (value > 1) stamps[blockIdx.x].end = 0;  // Never; or it would not be computed.
  __syncthreads();
  if (threadIdx.x == 0) stamps[blockIdx.x] = {start, GlobalTimer()};
}

__global__ void ReadKernel(const float4* data, std::uint64_t n, float* sink) {
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
  float sum = 0;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += stride) {
    const float4 value = data[i];
    sum += value.x + value.y + value.z + value.w;
  }
  if (sink != nullptr) *sink = sum;
}

__global__ void ErfKernel(float* data, int rounds) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  float value = data[i];
  for (int round = 0; round < rounds; ++round) value = erff(value);
  data[i] = value;
}

__global__ void CountOthersKernel(std::uint32_t word, std::uint32_t words, std::uint32_t* others) {
  extern __shared__ std::uint32_t left[];
  const volatile std::uint32_t* const from = left;
  std::uint32_t count = 0;
  for (std::uint32_t i = threadIdx.x; i < words; i += blockDim.x) count += from[i] != word;
  atomicAdd(others, count);
}

__global__ void IllegalWriteKernel(int* nowhere) {
  *nowhere = 1;
}
__global__ void FailedAssertKernel(int value) {
  assert(value == 0);
}

}  // namespace

cudaError_t LaunchSpin(std::uint64_t ns, cudaStream_t stream) {
  SpinKernel<<<1, 1, 0, stream>>>(ns);
  return cudaGetLastError();
}

cudaError_t LaunchSpinningBlocks(std::uint64_t ns, int blocks, unsigned long long* end,
                                 cudaStream_t stream) {
  SpinningBlocksKernel<<<blocks, kSpinningThreads, 0, stream>>>(ns, end);
  return cudaGetLastError();
}

cudaError_t LaunchStampedSpin(std::uint64_t ns, Stamps* stamps, cudaStream_t stream) {
  StampedSpinKernel<<<1, 1, 0, stream>>>(ns, stamps);
  return cudaGetLastError();
}

cudaError_t LaunchStampedBlocks(Stamps* stamps, int blocks, cudaStream_t stream) {
  StampedBlocksKernel<<<blocks, kStampedThreads, 0, stream>>>(stamps);
  return cudaGetLastError();
}

cudaError_t LaunchRead(const void* data, std::uint64_t bytes, cudaStream_t stream) {
  ReadKernel<<<1024, 256, 0, stream>>>(static_cast<const float4*>(data), bytes / sizeof(float4),
                                       nullptr);
  return cudaGetLastError();
}

cudaError_t LaunchManyBlocks(float* data, int blocks, int rounds, cudaStream_t stream) {
  ErfKernel<<<blocks, kManyBlocksThreads, 0, stream>>>(data, rounds);
  return cudaGetLastError();
}

cudaError_t LaunchCountOthers(std::uint32_t word, int bytes, int blocks, std::uint32_t* others,
                              cudaStream_t stream) {
  const cudaError_t allowed =
      cudaFuncSetAttribute(CountOthersKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (allowed != cudaSuccess) return allowed;
  CountOthersKernel<<<blocks, 512, bytes, stream>>>(
      word, static_cast<std::uint32_t>(bytes / sizeof(word)), others);
  return cudaGetLastError();
}

cudaError_t LaunchIllegalWrite(cudaStream_t stream) {
  IllegalWriteKernel<<<1, 1, 0, stream>>>(reinterpret_cast<int*>(std::uintptr_t{1} << 46));
  return cudaGetLastError();
}

cudaError_t LaunchFailedAssert(cudaStream_t stream) {
  FailedAssertKernel<<<1, 1, 0, stream>>>(1);
  return cudaGetLastError();
}

cudaError_t LaunchTooLarge(cudaStream_t stream) {
  SpinKernel<<<1, 4096, 0, stream>>>(0);
  return cudaGetLastError();
}

void LaunchTooLargeInSilence(cudaStream_t stream) {
  SpinKernel<<<1, 4096, 0, stream>>>(0);
}

}  // namespace gridclock
