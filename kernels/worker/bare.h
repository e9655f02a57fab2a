// The worker program by itself, for use under a profiler or a checker: one call, whose kernel is
// all that runs on the device. No server, no blocking kernel, no CUPTI, no calibration.
#ifndef GRIDCLOCK_KERNELS_WORKER_BARE_H_
#define GRIDCLOCK_KERNELS_WORKER_BARE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "kernels/api/registry.h"
#include "kernels/device/device.h"
#include "kernels/worker/bare_order.h"

namespace gridclock {

struct BareOptions {
  BareCall call;
  std::int64_t repeat = 1;  // Launches, one after the other, each waited for.
  bool json = false;
};

// Makes the inputs, launches, and checks that the device came through. One line, with its end, that
// says what ran where and what came of it. INVALID_ARGUMENT and NOT_FOUND where the call is wrong.
absl::StatusOr<std::string> RunBare(Device& device, const Registry& registry,
                                    const BareOptions& options);

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_WORKER_BARE_H_
