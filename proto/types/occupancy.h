// How many blocks of a kernel fit one multiprocessor at once, by the published limits of its
// architecture: "Technical Specifications per Compute Capability" and "Warp/register allocation" of
// the CUDA C++ Programming Guide 13.0 (the same rules as cuda_occupancy.h of the toolkit).
#ifndef GRIDCLOCK_PROTO_TYPES_OCCUPANCY_H_
#define GRIDCLOCK_PROTO_TYPES_OCCUPANCY_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace gridclock {

// Of one multiprocessor, but where it says block or thread.
struct SmLimits {
  std::uint32_t warps = 0, blocks = 0;
  std::uint32_t registers = 0;              // 32-bit.
  std::uint32_t shared_bytes = 0;           // Largest carve-out.
  std::uint32_t block_shared_bytes = 0;     // That a block can have, opted in.
  std::uint32_t reserved_shared_bytes = 0;  // Of each block, for the system.
};

// Of "sm_90", "sm_90a", "sm_100f"; null for an architecture that is not in the table.
const SmLimits* SmLimitsOf(absl::string_view arch);

// The numbers are those of gridclock.v1.Occupancy.Limit.
enum class OccupancyLimit : std::uint8_t {
  kUnknown = 0,
  kThreads,
  kBlocks,
  kRegisters,
  kSharedMemory,
  kBlockTooLarge
};

struct Occupancy {
  std::uint32_t blocks = 0, warps = 0, max_warps = 0;
  OccupancyLimit limit = OccupancyLimit::kUnknown;
};

struct BlockNeeds {
  std::uint32_t threads = 0;          // Of a block.
  std::uint32_t registers = 0;        // Of a thread.
  std::uint64_t shared_bytes = 0;     // Static and dynamic.
  std::uint32_t most_threads = 1024;  // That the kernel's code allows a block.
};
// The limit named is the first of warps, blocks, registers, shared memory that allows no more.
Occupancy TheoreticalOccupancy(const SmLimits& sm, const BlockNeeds& block);

// What the driver takes of a GPU's memory, for as long as a process lives, once a kernel is there
// whose threads have so many bytes of local memory (stack, spilled registers): for all threads that
// fit the GPU at once, however few are launched. No kernel has 0. NVIDIA states the rule in its
// forum: (bytes + 512 for calls of the system, rounded up to 128 or 256) * threads of a
// multiprocessor * multiprocessors (forums.developer.nvidia.com/t/39558, /t/289339).
std::uint64_t LocalMemoryBytes(const SmLimits& sm, std::int64_t sms, std::uint64_t thread_bytes);

}  // namespace gridclock

#endif  // GRIDCLOCK_PROTO_TYPES_OCCUPANCY_H_
