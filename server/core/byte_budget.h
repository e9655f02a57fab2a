// Memory beside the arena that calls hold for as long as they last.
#ifndef GRIDCLOCK_SERVER_CORE_BYTE_BUDGET_H_
#define GRIDCLOCK_SERVER_CORE_BYTE_BUDGET_H_

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/mutex.h"

namespace gridclock {

// Of all principals together, and of each at most half. Thread-safe.
class ByteBudget {
 public:
  // `limit`: its name, for messages.
  ByteBudget(absl::string_view limit, std::uint64_t bytes) : limit_(limit), bytes_(bytes) {}

  // RESOURCE_EXHAUSTED (MEMORY_FULL, with retry_after) if it does not fit; then nothing is taken.
  absl::Status Take(absl::string_view principal, std::uint64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // Of what this principal took.
  void Return(absl::string_view principal, std::uint64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  std::uint64_t used() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::Status Full(std::uint64_t bytes, std::uint64_t most, std::uint64_t held) const;

  const std::string limit_;
  const std::uint64_t bytes_;
  mutable Mutex mutex_;
  std::uint64_t used_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<std::string, std::uint64_t> held_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_CORE_BYTE_BUDGET_H_
