// Outputs that a guest's code gave, held against a reference, in a process that never held that
// code.
#ifndef GRIDCLOCK_KERNELS_WORKER_COMPARE_LAUNCHES_H_
#define GRIDCLOCK_KERNELS_WORKER_COMPARE_LAUNCHES_H_

#include <cstddef>
#include <functional>
#include <span>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "kernels/api/registry.h"
#include "proto/codec/worker.h"
#include "proto/types/measure.h"

namespace gridclock {

// All are borrowed.
struct CompareParts {
  const Registry& registry;
  Threads& threads;
  std::span<std::byte> arena;
  const Clock& clock;
  const std::function<bool()>& cancelled;
};

// Of all launches together. What they have more than about 2^28 terms of the reference is checked
// in part, the last launch in most of them. UNIMPLEMENTED if the kernel has no reference, NOT_FOUND
// if there is none, RESOURCE_EXHAUSTED as CheckRowBytes says, DEADLINE_EXCEEDED (VERIFY_TIME_LIMIT)
// beyond comparison.time_limit.
absl::StatusOr<Verification> CompareLaunches(const WorkerComparison& comparison,
                                             const CompareParts& parts);

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_WORKER_COMPARE_LAUNCHES_H_
