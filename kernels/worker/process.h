// What the process makes of itself before it serves: limits, the descriptors that it was given, an
// end with its parent.
#ifndef GRIDCLOCK_KERNELS_WORKER_PROCESS_H_
#define GRIDCLOCK_KERNELS_WORKER_PROCESS_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "proto/types/status_page.h"

namespace gridclock {

// Dies with its parent, and before it where memory runs out, leaves no core and no debugger's
// handle, closes every descriptor but the standard ones and those of status_page.h. UNAVAILABLE if
// the parent is gone already.
absl::Status SettleProcess();

// Of a process whose standard output is nobody's: what it writes there is lost.
absl::Status CloseStandardOutput();

// A kernel that allocates without end fails by itself: `bytes` more than now may be mapped for
// writing by this process alone. Address space would tell nothing: threads and drivers reserve it.
absl::Status LimitPrivateMemory(std::uint64_t bytes);

// Maps what the descriptors kArenaFd and kStatusFd hold, for the life of the process.
// FAILED_PRECONDITION if they are smaller than said, or if the arena could shrink.
absl::StatusOr<std::span<std::byte>> MapArena(std::uint64_t bytes);
absl::StatusOr<StatusPage*> MapStatusPage();

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_WORKER_PROCESS_H_
