// What a guest gives up before it meets a client's code. Where the driver lets kernels reach all
// memory of their process, submitted device code is as good as native code in it.
#ifndef GRIDCLOCK_KERNELS_WORKER_GUEST_SANDBOX_H_
#define GRIDCLOCK_KERNELS_WORKER_GUEST_SANDBOX_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace gridclock {

// Capabilities, before the device is made: its threads keep those of the thread that starts them.
absl::Status DropGuestRights();

// Of the calling thread and of those that it starts, so before the device is made where it can be
// made behind this. From then on files of the system, and libraries, can be read, and written are
// the GPU's device files alone. Says what holds: "landlock 7". FAILED_PRECONDITION where Landlock
// is missing or too old to keep files from being emptied, unless `weak` is allowed.
absl::StatusOr<std::string> RestrictGuestFiles(bool weak);

// Once the device is made, which needs some of these calls: of all threads, no sockets, no new
// programs or processes, no signals to others, nothing of the kernel that computing does not need.
absl::Status RestrictGuestCalls();

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_WORKER_GUEST_SANDBOX_H_
