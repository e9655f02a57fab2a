// What an operator may do to a server that runs. Who may, and the log of it, are the rpc's matter.
#ifndef GRIDCLOCK_SERVER_CORE_ADMIN_H_
#define GRIDCLOCK_SERVER_CORE_ADMIN_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/core/kernel_table.h"
#include "server/core/scheduler.h"

namespace gridclock {

// What a call ends with that an operator cancelled.
absl::Status CancelledByOperator();

// Thread-safe. Both outlive it.
class Admin {
 public:
  Admin(KernelTable& table, Scheduler& scheduler) : table_(table), scheduler_(scheduler) {}

  std::vector<JobView> Jobs() const { return scheduler_.Jobs(); }

  // The job as it was. Its client gets CANCELLED (BY_OPERATOR). NOT_FOUND lists near ids.
  absl::StatusOr<JobView> Cancel(JobId id);

  // `device`: a name or a UUID. INVALID_ARGUMENT if it is empty or means several, NOT_FOUND if
  // there is none.
  struct Drained {
    std::string device;
    bool changed = false;
    int jobs = 0;  // That it has.
  };
  // FAILED_PRECONDITION (LAST_DEVICE) if no other would take calls, unless `allow_last`.
  absl::StatusOr<Drained> Drain(absl::string_view device, bool allow_last)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<Drained> Undrain(absl::string_view device) ABSL_LOCKS_EXCLUDED(mutex_);

  struct Restarted {
    std::string device;
    int jobs = 0;  // That its workers hold.
  };
  // FAILED_PRECONDITION (NO_WORKER) if it has none now.
  absl::StatusOr<Restarted> Restart(absl::string_view device, bool now);

 private:
  absl::StatusOr<std::string> NameOf(absl::string_view device) const;
  Drained Set(const std::string& device, bool drained) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  KernelTable& table_;
  Scheduler& scheduler_;
  Mutex mutex_;  // Of two that each drain the last but one, the second is refused.
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_CORE_ADMIN_H_
