// Where in the arena a job's tensors lie. Knows offsets only; the memory itself is the fleet's.
#ifndef GRIDCLOCK_SERVER_CORE_ARENA_ALLOCATOR_H_
#define GRIDCLOCK_SERVER_CORE_ARENA_ALLOCATOR_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/mutex.h"
#include "proto/types/job.h"

namespace gridclock {

// First fit from the start, so that pages that were touched are touched again. Thread-safe.
class ArenaAllocator {
 public:
  // A reserved range; gives it back when destroyed. The allocator outlives it.
  class Block {
   public:
    Block() = default;
    Block(ArenaAllocator& owner, MemoryRange range, std::string principal);
    Block(Block&& other) noexcept;
    Block& operator=(Block&& other) noexcept;
    ~Block();
    const MemoryRange& range() const { return range_; }

   private:
    ArenaAllocator* owner_ = nullptr;
    MemoryRange range_;
    std::string principal_;
  };

  // Ranges are whole pages, so that jobs never share one.
  static constexpr std::uint64_t kPage = 4096;

  // `bytes` is rounded down to whole pages; no principal may hold more than `per_principal`.
  ArenaAllocator(std::uint64_t bytes, std::uint64_t per_principal);

  // RESOURCE_EXHAUSTED with the numbers: reason TOO_LARGE if it can never fit, MEMORY_FULL if it
  // may when others end; metadata "limit" names the bound. Size 0 is legal and takes nothing.
  absl::StatusOr<Block> Reserve(std::uint64_t bytes, absl::string_view principal)
      ABSL_LOCKS_EXCLUDED(mutex_);

  std::uint64_t used() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Of the principal that holds most.
  std::uint64_t most_of_one() const ABSL_LOCKS_EXCLUDED(mutex_);
  std::uint64_t capacity() const { return capacity_; }

 private:
  static constexpr std::size_t kIdlePrincipals = 1024;
  using Holes = std::map<std::uint64_t, std::uint64_t>;  // Offset -> size.

  Block Take(Holes::iterator hole, std::uint64_t size, absl::string_view principal)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Release(const MemoryRange& range, const std::string& principal) ABSL_LOCKS_EXCLUDED(mutex_);

  const std::uint64_t capacity_;
  const std::uint64_t per_principal_;
  mutable Mutex mutex_;
  Holes free_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::uint64_t, std::less<>> held_ ABSL_GUARDED_BY(mutex_);
  std::uint64_t used_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_CORE_ARENA_ALLOCATOR_H_
