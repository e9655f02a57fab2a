// What submitted code that is verified is held against.
#ifndef GRIDCLOCK_SERVER_CORE_REFERENCE_H_
#define GRIDCLOCK_SERVER_CORE_REFERENCE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/types/binding.h"
#include "proto/types/job.h"
#include "server/core/kernel_table.h"
#include "server/core/limits.h"

namespace gridclock {

// Of one job: launches that are checked, and the bytes of all their outputs.
inline constexpr std::int64_t kMostCheckedLaunches = 200;
inline constexpr double kMostCheckedBytes = 256 << 20;

// Not an input of the program: what an output of it shall be.
bool IsExpected(const JobRequest& request, absl::string_view name);

// Fills job.check from request.reference, but for its secrets and its memory, and lets job.measure
// take no more samples than can be checked. `binding` is of the program's words; `reference` is
// what request.reference->program came to. NOT_FOUND if there is no such kernel; INVALID_ARGUMENT,
// with the field, if the program's inputs or outputs are not those of the kernel, or an output has
// no expected values, or a schedule takes more samples than can be checked.
absl::Status TakeReference(const JobRequest& request, const Binding& binding,
                           const KernelTable& table, const Limits& limits,
                           std::shared_ptr<const JobProgram> reference, Job& job);
// The inputs and attributes of `job` as those of its reference's words. Good of an admitted job.
absl::StatusOr<Binding> BindReference(const Job& job);

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_CORE_REFERENCE_H_
