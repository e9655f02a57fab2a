// The memory that server and trusted workers share: one memfd, mapped whole, faulted in as it is
// used and kept.
#ifndef GRIDCLOCK_SERVER_FLEET_ARENA_H_
#define GRIDCLOCK_SERVER_FLEET_ARENA_H_

#include <cstddef>
#include <span>
#include <thread>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "proto/types/job.h"

namespace gridclock {

class Arena {
 public:
  // Reserves address space for `bytes`; a thread faults in the first `warm_bytes` meanwhile.
  // RESOURCE_EXHAUSTED if the system refuses the space.
  static absl::StatusOr<Arena> Create(std::uint64_t bytes, std::uint64_t warm_bytes);
  Arena(Arena&& other) noexcept;
  ~Arena();

  int fd() const { return fd_.get(); }
  // The range MUST lie inside; ranges come from ArenaAllocator.
  std::span<std::byte> At(const MemoryRange& range) const;
  std::uint64_t size() const { return size_; }

 private:
  Arena(UniqueFd fd, std::byte* data, std::uint64_t size);
  UniqueFd fd_;
  std::byte* data_ = nullptr;
  std::uint64_t size_ = 0;
  std::jthread warmer_;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_FLEET_ARENA_H_
