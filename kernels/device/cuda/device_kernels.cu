#include <cooperative_groups.h>

#include "kernels/device/cuda/device_kernels.h"

namespace gridclock {
namespace {

constexpr int kThreads = 512;
constexpr int kBlocksPerSm = 4;

__device__ std::uint64_t TimerNs() {
  std::uint64_t now = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

// Past the L1. Volatile, so that a second pass over the same data reads it again.
__device__ uint4 LoadFromL2(const uint4* from) {
  uint4 value;
  asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
               : "l"(from));
  return value;
}

// Passes are compared by their distance, as their count may wrap around.
__global__ void BlockStream(BlockerFlags* flags, std::uint32_t pass, std::uint64_t limit_ns) {
  const std::uint64_t start = TimerNs();
  while (static_cast<std::int32_t>(flags->opened - pass) < 0) {
    if (TimerNs() - start < limit_ns) continue;
    flags->timed_out = pass;
    __threadfence_system();
    return;
  }
}

__global__ void EmptyKernel() {}
__global__ void MarkerKernel() {}

// Four loads are under way at once.
// Loads whose results have no use are left out by the assembler: `sink` is null, and nobody knows.
__global__ void SweepRead(const uint4* data, std::uint64_t n, int passes, unsigned* sink) {
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
  const std::uint64_t first = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  unsigned sum = 0;
  for (int pass = 0; pass < passes; ++pass) {
    std::uint64_t i = first;
    for (; i + 3 * stride < n; i += 4 * stride) {
      const uint4 a = LoadFromL2(data + i), b = LoadFromL2(data + i + stride);
      const uint4 c = LoadFromL2(data + i + 2 * stride), d = LoadFromL2(data + i + 3 * stride);
      sum += (a.x ^ a.y ^ a.z ^ a.w) + (b.x ^ b.y ^ b.z ^ b.w) + (c.x ^ c.y ^ c.z ^ c.w) +
             (d.x ^ d.y ^ d.z ^ d.w);
    }
    for (; i < n; i += stride) {
      const uint4 a = LoadFromL2(data + i);
      sum += a.x ^ a.y ^ a.z ^ a.w;
    }
  }
  if (sink != nullptr) atomicAdd(sink, sum);
}

__global__ void SweepWrite(uint4* data, std::uint64_t n) {
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += stride) {
    data[i] = make_uint4(1, 2, 3, 4);
  }
}

__global__ void SweepCopy(uint4* data, std::uint64_t half, int passes) {
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
  const std::uint64_t first = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (int pass = 0; pass < passes; ++pass) {
    std::uint64_t i = first;
    for (; i + stride < half; i += 2 * stride) {
      const uint4 a = LoadFromL2(data + i), b = LoadFromL2(data + i + stride);
      __stcg(data + half + i, a);
      __stcg(data + half + i + stride, b);
    }
    if (i < half) __stcg(data + half + i, LoadFromL2(data + i));
  }
}

// A multiprocessor has room for one such block, and none ends before all are there: so each has
// one.
__global__ void FillShared(std::uint32_t word, std::uint32_t words) {
  extern __shared__ std::uint32_t shared[];
  volatile std::uint32_t* const to =
      shared;  // Nobody reads it here: it is to be written all the same.
  for (std::uint32_t i = threadIdx.x; i < words; i += blockDim.x) to[i] = word;
  cooperative_groups::this_grid().sync();
}

__global__ void TimerStep(std::uint64_t* step_ns) {
  constexpr int kChanges = 64;
  std::uint64_t least = ~std::uint64_t{0}, last = TimerNs();
  for (int changes = 0; changes < kChanges;) {
    const std::uint64_t now = TimerNs();
    if (now == last) continue;
    if (now - last < least) least = now - last;
    last = now;
    ++changes;
  }
  *step_ns = least;
}

__device__ ClockCount clock_count;

// From one step of the timer to another.
__global__ void CountCycles(std::uint64_t span_ns) {
  const std::uint64_t before = TimerNs();
  std::uint64_t start = before, now = 0;
  while (start == before) start = TimerNs();
  const long long cycles = clock64();
  do {
    now = TimerNs();
  } while (now - start < span_ns);
  clock_count = {.cycles = static_cast<std::uint64_t>(clock64() - cycles), .ns = now - start};
}

}  // namespace

cudaError_t LaunchBlocker(BlockerFlags* device_flags, std::uint32_t pass, std::uint64_t limit_ns,
                          cudaStream_t stream) {
  BlockStream<<<1, 1, 0, stream>>>(device_flags, pass, limit_ns);
  return cudaGetLastError();
}

cudaError_t LaunchEmpty(cudaStream_t stream) {
  EmptyKernel<<<1, 1, 0, stream>>>();
  return cudaGetLastError();
}

cudaError_t LaunchMarker(cudaStream_t stream) {
  MarkerKernel<<<dim3(3, 2), dim3(32, 5), 0, stream>>>();
  return cudaGetLastError();
}

cudaError_t LaunchSweepRead(const void* data, std::uint64_t bytes, int passes, int sms,
                            cudaStream_t stream) {
  SweepRead<<<sms * kBlocksPerSm, kThreads, 0, stream>>>(static_cast<const uint4*>(data),
                                                         bytes / sizeof(uint4), passes,
                                                         /*sink=*/nullptr);
  return cudaGetLastError();
}

cudaError_t LaunchSweepWrite(void* data, std::uint64_t bytes, int sms, cudaStream_t stream) {
  SweepWrite<<<sms * kBlocksPerSm, kThreads, 0, stream>>>(static_cast<uint4*>(data),
                                                          bytes / sizeof(uint4));
  return cudaGetLastError();
}

cudaError_t LaunchSweepCopy(void* data, std::uint64_t bytes, int passes, int sms,
                            cudaStream_t stream) {
  SweepCopy<<<sms * kBlocksPerSm, kThreads, 0, stream>>>(static_cast<uint4*>(data),
                                                         bytes / 2 / sizeof(uint4), passes);
  return cudaGetLastError();
}

cudaError_t LaunchFillShared(std::uint32_t word, int bytes, int sms, cudaStream_t stream) {
  const cudaError_t allowed =
      cudaFuncSetAttribute(FillShared, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (allowed != cudaSuccess) return allowed;
  auto words = static_cast<std::uint32_t>(bytes / sizeof(word));
  void* arguments[] = {&word, &words};
  return cudaLaunchCooperativeKernel(FillShared, dim3(sms), dim3(kThreads), arguments, bytes,
                                     stream);
}

cudaError_t LaunchTimerStep(std::uint64_t* step_ns, cudaStream_t stream) {
  TimerStep<<<1, 1, 0, stream>>>(step_ns);
  return cudaGetLastError();
}

cudaError_t CountClock(std::uint64_t span_ns, ClockCount* count, cudaStream_t stream) {
  CountCycles<<<1, 1, 0, stream>>>(span_ns);
  const cudaError_t launched = cudaGetLastError();
  if (launched != cudaSuccess) return launched;
  return cudaMemcpyFromSymbolAsync(count, clock_count, sizeof(*count), 0, cudaMemcpyDeviceToHost,
                                   stream);
}

}  // namespace gridclock
