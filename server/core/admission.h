// The gate: a request that may be wrong becomes a job that cannot be, or an error.
#ifndef GRIDCLOCK_SERVER_CORE_ADMISSION_H_
#define GRIDCLOCK_SERVER_CORE_ADMISSION_H_

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/types/job.h"
#include "server/core/kernel_table.h"
#include "server/core/limits.h"

namespace gridclock {

// INVALID_ARGUMENT unless `name`, found in `field` of a request, can be the name of something.
absl::Status CheckName(absl::string_view name, absl::string_view field);

// INVALID_ARGUMENT unless it is short and printable; it may be empty.
absl::Status CheckRequestId(absl::string_view id);

// Pure but for reading `table`. `program` is that of a request that has one, else null.
// `depth(device)` is the queue depth by which the least loaded of several candidate devices is
// chosen. `limits` have their defaults resolved. The job comes back with id 0 and ranges that count
// from the start of a block of job.memory.size bytes; the scheduler reserves the block and moves
// the ranges, so that from OnAccepted on they count from the arena's.
absl::StatusOr<Job> Admit(const JobRequest& request, const KernelTable& table, const Limits& limits,
                          const std::function<int(absl::string_view device)>& depth,
                          std::shared_ptr<const JobProgram> program = nullptr,
                          std::shared_ptr<const JobProgram> reference = nullptr);

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_CORE_ADMISSION_H_
