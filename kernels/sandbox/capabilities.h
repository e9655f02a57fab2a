// Of a process that root started: from now on it can do no more than anybody's.
#ifndef GRIDCLOCK_KERNELS_SANDBOX_CAPABILITIES_H_
#define GRIDCLOCK_KERNELS_SANDBOX_CAPABILITIES_H_

#include "absl/status/status.h"

namespace gridclock {

// Of the calling thread and of those that it starts.
absl::Status DropCapabilities();

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_SANDBOX_CAPABILITIES_H_
