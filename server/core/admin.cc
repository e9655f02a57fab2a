#include "server/core/admin.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "proto/types/near_names.h"
#include "proto/types/quote.h"

namespace gridclock {
namespace {

absl::Status NoSuchJob(JobId id, const std::vector<JobView>& jobs) {
  std::vector<std::string> ids;
  ids.reserve(jobs.size());
  for (const JobView& job : jobs) ids.push_back(absl::StrCat(job.id));
  const std::string near =
      NearestNames(absl::StrCat(id), std::vector<absl::string_view>(ids.begin(), ids.end()));
  return UnknownName("id", absl::StrCat("no job ", id, " waits or runs; there are ", jobs.size(),
                                        near.empty() ? "" : "; the nearest are ", near));
}

absl::Status LastDevice(absl::string_view device) {
  return WithReason(absl::FailedPreconditionError(absl::StrCat(
                        "device '", device, "' is the last that takes calls: say allow_last (",
                        "gridclock admin "
                        "drain --last) to leave none")),
                    "LAST_DEVICE");
}

}  // namespace

absl::Status CancelledByOperator() {
  return WithReason(absl::CancelledError("cancelled by an operator of the server"), "BY_OPERATOR");
}

absl::StatusOr<JobView> Admin::Cancel(JobId id) {
  std::optional<JobView> job = scheduler_.CancelByOperator(id, CancelledByOperator());
  if (!job) return NoSuchJob(id, scheduler_.Jobs());
  return *std::move(job);
}

absl::StatusOr<std::string> Admin::NameOf(absl::string_view device) const {
  if (device.empty()) {
    return InvalidField("device", "want a name, as 'cpu' or 'cuda:0', got none");
  }
  GC_ASSIGN_OR_RETURN(const DeviceChoices choices, table_.Choices(device));
  if (choices.size() > 1) {
    return InvalidField("device", absl::StrCat("want one device, got ", Quote(device),
                                               ", which means ", choices.size()));
  }
  return choices[0].name;
}

Admin::Drained Admin::Set(const std::string& device, bool drained) {
  // In this order: whoever is sent here by the table in between is refused.
  scheduler_.SetDrained(device, drained);
  const bool changed = table_.SetDrained(device, drained);
  return {.device = device, .changed = changed, .jobs = scheduler_.depth(device)};
}

absl::StatusOr<Admin::Drained> Admin::Drain(absl::string_view device, bool allow_last) {
  GC_ASSIGN_OR_RETURN(const std::string name, NameOf(device));
  MutexLock lock(mutex_);
  const std::vector<DeviceStatus> devices = table_.Devices();
  const bool others = std::any_of(devices.begin(), devices.end(), [&](const DeviceStatus& other) {
    return other.info.name != name && TakesCalls(other);
  });
  const bool is_drained = std::any_of(devices.begin(), devices.end(), [&](const DeviceStatus& it) {
    return it.info.name == name && it.drained;
  });
  if (!others && !allow_last && !is_drained) return LastDevice(name);
  return Set(name, true);
}

absl::StatusOr<Admin::Drained> Admin::Undrain(absl::string_view device) {
  GC_ASSIGN_OR_RETURN(const std::string name, NameOf(device));
  MutexLock lock(mutex_);
  return Set(name, false);
}

absl::StatusOr<Admin::Restarted> Admin::Restart(absl::string_view device, bool now) {
  GC_ASSIGN_OR_RETURN(const std::string name, NameOf(device));
  const std::optional<int> jobs = scheduler_.RestartWorkers(name, now);
  if (!jobs) {
    return WithReason(absl::FailedPreconditionError(absl::StrCat(
                          "device '", name, "' has no worker now; one is started by itself")),
                      "NO_WORKER");
  }
  return Restarted{.device = name, .jobs = *jobs};
}

}  // namespace gridclock
