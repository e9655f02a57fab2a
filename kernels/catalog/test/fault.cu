// Fault: dies in the way that is asked for. In test builds alone, to prove that a worker's death
// costs one request and no more.
//
// What a GPU does as a fault of its context, a CPU does as a signal; the kinds that name a GPU's
// faults raise what comes closest here.

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <signal.h>
#include <sys/mman.h>

#include "kernels/api/kernel.h"

namespace gridclock {
namespace {

// Raised with the default action: a handler that was set by a sanitizer must not soften the fault.
[[noreturn]] void DieBy(int signal_number) {
  signal(signal_number, SIG_DFL);
  raise(signal_number);
  std::abort();  // Where the signal is blocked.
}

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
  return absl::OkStatus();
}

}  // namespace
}  // namespace gridclock

GC_KERNEL(fault) {
  using namespace gridclock;
  return {
      .words =
          "; kind: {none, segfault, abort, endless, allocate, illegal_address, misaligned, "
          "assert, trap} = none",
      .summary = "Dies in the way that is asked for",
      .formula = "",
      .diagnostic = true,
      .cpu = {{"naive", "Raises the signal, or never ends", Die}},
  };
}
