#include "kernels/worker/memory_limit.h"

#include <algorithm>

namespace gridclock {

std::uint64_t PrivateMemoryLimit(const MemoryNeeds& needs, const MemoryOfAll& all) {
  // A saved copy of all that is in the arena, and as much scratch.
  const std::uint64_t wanted = 2 * needs.arena_bytes + needs.flush_bytes + needs.runtime_bytes;
  // The server's own part is an eighth.
  const std::uint64_t others = all.shared_bytes + all.machine_bytes / 8;
  const std::uint64_t left = all.machine_bytes - std::min(all.machine_bytes, others);
  return std::max(needs.runtime_bytes / 2, std::min(wanted, left / all.devices));
}

}  // namespace gridclock
