#ifndef GRIDCLOCK_KERNELS_WORKER_MEMORY_LIMIT_H_
#define GRIDCLOCK_KERNELS_WORKER_MEMORY_LIMIT_H_

#include <cstdint>

namespace gridclock {

// What the calls of one worker can need.
struct MemoryNeeds {
  std::uint64_t arena_bytes = 0;    // Where their tensors lie, shared with the server.
  std::uint64_t flush_bytes = 0;    // What empties the caches.
  std::uint64_t runtime_bytes = 0;  // Of stacks, libraries, a driver.
};

// What the workers of one server have together.
struct MemoryOfAll {
  std::uint64_t machine_bytes = 0;  // Or the container's.
  std::uint64_t shared_bytes = 0;   // With the server: the arena, and the memory of guests.
  std::uint64_t devices = 1;        // Of each, one worker computes at a time.
};

// How much a worker may take for itself: what its calls can need, but no more than its device's
// part of what is left of the machine. Beyond that the system would end processes before this limit
// refuses. A worker can start in any case, with half of what its runtime may need.
std::uint64_t PrivateMemoryLimit(const MemoryNeeds& needs, const MemoryOfAll& all);

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_WORKER_MEMORY_LIMIT_H_
