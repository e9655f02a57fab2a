// The outputs of an order against the reference, wherever they lie.
#ifndef GRIDCLOCK_KERNELS_WORKER_CHECK_H_
#define GRIDCLOCK_KERNELS_WORKER_CHECK_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "absl/status/statusor.h"
#include "kernels/device/device.h"
#include "kernels/worker/call_cache.h"
#include "kernels/worker/operands.h"
#include "proto/types/measure.h"

namespace gridclock {

struct CheckRequest {
  Device& device;
  std::span<const std::byte> arena;
  const Operands& operands;
  const BoundCall& call;
  std::int64_t most_terms = 0;
  std::uint64_t seed = 0;                        // Of the subset that is checked.
  std::function<absl::Status()> poll = nullptr;  // As VerifyOptions::poll.
};

struct Checked {
  Verification verification;
  std::uint64_t device_bytes = 0;  // What the check itself took of the device.
};

// The outputs as they lie there against the submitted inputs. RESOURCE_EXHAUSTED if there is too
// little memory for it; may throw std::bad_alloc.
absl::StatusOr<Checked> CheckOutputs(const CheckRequest& request);

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_WORKER_CHECK_H_
