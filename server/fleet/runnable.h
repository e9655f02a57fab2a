#ifndef GRIDCLOCK_SERVER_FLEET_RUNNABLE_H_
#define GRIDCLOCK_SERVER_FLEET_RUNNABLE_H_

#include <string>

#include "absl/status/status.h"

namespace gridclock {

// FAILED_PRECONDITION, with `what` and the path, for a file that this machine cannot run as a
// program: it is missing, forbidden, plain text, or made for another architecture.
absl::Status CheckRunnable(const std::string& what, const std::string& path);

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_FLEET_RUNNABLE_H_
