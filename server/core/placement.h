// Where a call runs and what it takes there. Pure.
#ifndef GRIDCLOCK_SERVER_CORE_PLACEMENT_H_
#define GRIDCLOCK_SERVER_CORE_PLACEMENT_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/types/job.h"
#include "server/core/kernel_table.h"
#include "server/core/limits.h"

namespace gridclock {

// A device that can take a call, as the choice between several sees it.
struct Candidate {
  WorkerState state = WorkerState::kReady;
  bool gpu = false;
  int depth = 0;  // Calls that wait for it or run on it.
  bool drained = false;
};
// The index of the one that gets the call: none that is drained or quarantined if another can; a
// GPU before the CPU; one whose worker is up before one that starts; the least loaded; the first.
// Nullopt if there is none.
std::optional<std::size_t> ChooseDevice(std::span<const Candidate> candidates);

struct Placement {
  std::string device, variant;
  bool host_memory = true;
  std::uint64_t local_bytes = 0;  // As Job::local_bytes.
};
// The device that gets `job`, whose kernel, operands and options are settled, among those that
// `wanted` means. If none can take it, why the first cannot: no such variant, no such method, more
// memory than it has (RESOURCE_EXHAUSTED, TOO_LARGE), not started yet (UNAVAILABLE).
absl::StatusOr<Placement> Place(const Job& job, absl::string_view wanted, absl::string_view variant,
                                const Binding& binding, const KernelTable& table,
                                const std::function<int(absl::string_view device)>& depth);

// Gives each tensor of `job`, and an order that no frame holds, its range in the job's block of the
// arena. A device with memory of its own works there: then only tensors that travel to or from the
// client have a range, and those of the others are empty. RESOURCE_EXHAUSTED (TOO_LARGE) beyond the
// limits.
absl::Status LayOut(const KernelSpec& spec, const Limits& limits, bool host_memory, Job& job);

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_CORE_PLACEMENT_H_
