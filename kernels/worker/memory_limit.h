#ifndef GRIDCLOCK_KERNELS_WORKER_MEMORY_LIMIT_H_
#define GRIDCLOCK_KERNELS_WORKER_MEMORY_LIMIT_H_

#include <cstdint>

namespace gridclock {

struct MemoryNeeds {
  std::uint64_t arena_bytes = 0;    // Shared with the server.
  std::uint64_t flush_bytes = 0;    // What empties the caches.
  std::uint64_t runtime_bytes = 0;  // Of stacks, libraries, a driver.
};

// How much a worker may take for itself: what its calls can need, but no more than arena and server
// leave of the machine. Beyond that the system would end processes before this limit refuses.
std::uint64_t PrivateMemoryLimit(const MemoryNeeds& needs, std::uint64_t machine_bytes);

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_WORKER_MEMORY_LIMIT_H_
