// Fault: dies in the way that is asked for. In test builds alone, to prove that a worker's death
// costs one request and no more.
//
// What a GPU does as a fault of its context, a CPU does as a signal: the kinds that name a GPU's
// faults raise what comes closest on a CPU, and those that name signals kill the worker on either.

#include <cstdlib>

#include <signal.h>

#include "kernels/api/kernel.h"

namespace gridclock {
namespace {

// Raised with the default action: a handler that was set by a sanitizer must not soften the fault.
[[noreturn]] void DieBy(int signal_number) {
  signal(signal_number, SIG_DFL);
  raise(signal_number);
  std::abort();  // Where the signal is blocked.
}

}  // namespace
}  // namespace gridclock

#ifdef __CUDACC__
// A release has NDEBUG, which would leave the assertion out.
#undef NDEBUG
#include <cassert>

#include "kernels/catalog/cuda_launch.cuh"

namespace gridclock {
namespace {

__global__ void NothingKernel() {}

__global__ void EndlessKernel() {
  volatile __shared__ int forever;
  forever = 1;
  while (forever != 0) {
  }
}

// `address` comes from the host, so that the compiler cannot see what is wrong with it.
__global__ void WriteKernel(std::uintptr_t address) {
  *reinterpret_cast<volatile int*>(address) = 1;
}

__device__ int words[2];

__global__ void MisalignedKernel(int offset) {
  *reinterpret_cast<volatile int*>(reinterpret_cast<char*>(words) + offset) = 1;
}

__global__ void AssertKernel(bool holds) {
  assert(holds);
}

__global__ void TrapKernel() {
  __trap();
}

// Goes on where no code is.
__global__ void WildCallKernel(std::uintptr_t address) {
  reinterpret_cast<void (*)()>(address)();
}

// Takes memory of the GPU until it refuses, and gives it back.
absl::Status AllocateAll() {
  constexpr std::size_t kLeast = std::size_t{1} << 20;
  std::vector<void*> taken;
  for (std::size_t block = std::size_t{64} << 30; block >= kLeast; block /= 2) {
    void* p = nullptr;
    while (cudaMalloc(&p, block) == cudaSuccess) taken.push_back(p);
  }
  for (void* p : taken) cudaFree(p);
  return cuda::ToStatus(cudaErrorMemoryAllocation, "fault");
}

absl::Status Die(const Call& call) {
  const std::string& kind = call.binding->Word("kind");
  const auto launch = [&](auto kernel, auto... args) {
    return cuda::Launch(call, kernel, {.grid = {1}, .block = {1}}, args...);
  };
  if (kind == "segfault") DieBy(SIGSEGV);
  if (kind == "abort") DieBy(SIGABRT);
  if (kind == "endless") return launch(EndlessKernel);
  if (kind == "allocate") return AllocateAll();
  // No page is mapped so low, on the GPU or on a host whose memory the GPU may reach.
  if (kind == "illegal_address") return launch(WriteKernel, 64);
  if (kind == "misaligned") return launch(MisalignedKernel, 1);
  if (kind == "assert") return launch(AssertKernel, false);
  if (kind == "trap") return launch(TrapKernel);
  if (kind == "wild_call") return launch(WildCallKernel, std::uintptr_t{1} << 46);
  return launch(NothingKernel);
}

}  // namespace
}  // namespace gridclock

GC_CUDA_VARIANTS(fault) {
  return {{"naive", "Faults on the GPU, or kills the worker", Die}};
}

#else  // The CPU.
#include <atomic>
#include <cstdio>
#include <cstring>

#include <sys/mman.h>

namespace gridclock {
namespace {

[[noreturn]] void Endless() {
  std::atomic<bool> forever{true};
  while (forever.load(std::memory_order_relaxed)) {
  }
  std::abort();
}

// Takes memory and touches it until the system or a limit refuses.
absl::Status AllocateAll() {
  constexpr std::size_t kBlock = std::size_t{256} << 20;
  for (std::size_t taken = 0;; taken += kBlock) {
    void* block = mmap(nullptr, kBlock, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED) {
      return absl::ResourceExhaustedError("fault: no memory left to allocate");
    }
    std::memset(block, 1, kBlock);
  }
}

// A page that was there and is gone: its address is surely not mapped.
[[noreturn]] void WriteUnmapped() {
  constexpr std::size_t kPage = 4096;
  signal(SIGSEGV, SIG_DFL);
  void* page = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page != MAP_FAILED) munmap(page, kPage);
  *static_cast<volatile char*>(page) = 1;
  std::abort();
}

[[noreturn]] void FailAssert() {
  std::fprintf(stderr, "fault.cu: assertion `kind != assert' failed\n");
  DieBy(SIGABRT);
}

absl::Status Die(const Call& call) {
  const std::string& kind = call.binding->Word("kind");
  if (kind == "segfault") DieBy(SIGSEGV);
  if (kind == "abort") DieBy(SIGABRT);
  if (kind == "endless") Endless();
  if (kind == "allocate") return AllocateAll();
  if (kind == "illegal_address") WriteUnmapped();
  if (kind == "misaligned") DieBy(SIGBUS);
  if (kind == "assert") FailAssert();
  if (kind == "trap") DieBy(SIGILL);
  if (kind == "wild_call") DieBy(SIGSEGV);
  return absl::OkStatus();
}

}  // namespace
}  // namespace gridclock

GC_KERNEL(fault) {
  return {
      .words =
          "; kind: {none, segfault, abort, endless, allocate, illegal_address, misaligned, "
          "assert, trap, wild_call} = none",
      .summary = "Dies in the way that is asked for",
      .formula = "",
      .diagnostic = true,
      .cpu = {{"naive", "Raises the signal, or never ends", Die}},
  };
}

#endif  // __CUDACC__
