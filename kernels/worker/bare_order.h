// One call as a person writes it, "square x=randn:f32[1024]", made into the order that a server
// would send for it.
#ifndef GRIDCLOCK_KERNELS_WORKER_BARE_ORDER_H_
#define GRIDCLOCK_KERNELS_WORKER_BARE_ORDER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/api/registry.h"
#include "proto/codec/worker.h"

namespace gridclock {

struct BareCall {
  std::vector<std::string> words;  // The kernel, then NAME=VALUE for inputs and attributes.
  std::string variant = {};        // Empty: the fastest that fits.
  std::uint64_t seed = 0;          // Input i of the kernel is made from seed + i.
};

struct BareOrder {
  WorkerOrder order;
  std::vector<std::string> output_names;
  // Of memory that holds all operands where the device works in the host's; each has its range.
  std::uint64_t bytes = 0;
};

// NOT_FOUND for a kernel that is none; INVALID_ARGUMENT that says what was wanted and what came.
// The variant is as the call says it: whether it fits is told where the call is bound.
absl::StatusOr<BareOrder> MakeBareOrder(const Registry& registry, const BareCall& call);

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_WORKER_BARE_ORDER_H_
