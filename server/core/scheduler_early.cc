// Inputs that a device copies while the rest of them arrives.
#include <utility>

#include "server/core/job_entry.h"
#include "server/core/scheduler.h"

namespace gridclock {

void Scheduler::Arrived(JobId id, const InputArrival& arrival) {
  const absl::Time now = clock_.Now();
  Outbox out;
  {
    MutexLock lock(mutex_);
    Entry* entry = Find(id);
    if (entry == nullptr || !MayCopyEarly(*entry, now)) return;
    entry->early = true;
    entry->device->copying = true;
    entry->device->last_arrival = now;
    Tell(*entry, Word::kArrived, out, arrival);
  }
  Flush(out);
}

// While a worker holds orders it is told nothing: they would wait for the copies, and the words for
// them. A guest has the inputs when it has the order.
bool Scheduler::MayCopyEarly(const Entry& entry, absl::Time now) const {
  const Device& device = *entry.device;
  if (device.guests != nullptr) return false;
  const Device* other = device.other;
  if (other != nullptr && (!other->sent.empty() || Waits(*other, now))) return false;
  return entry.state == Entry::State::kWaitsForInputs && !entry.job().host_memory &&
         device.worker != nullptr && !device.killing && device.sent.empty() &&
         (entry.early || HasEarlyPlace(entry));
}

// Its worker may have been told of gigabytes. Of these only the piece under way is still copied.
void Scheduler::StopCopying(Device& lane, absl::Time now, Outbox& out) {
  if (!std::exchange(lane.copying, false)) return;
  for (const auto& [id, entry] : jobs_) {
    if (entry->device != &lane || !std::exchange(entry->early, false)) continue;
    Tell(*entry, Word::kCancel, out);
  }
  lane.last_arrival = now;
}

bool Scheduler::HasEarlyPlace(const Entry& entry) const {
  int all = 0, own = 0;
  for (const auto& [id, other] : jobs_) {
    if (!other->early || other->device != entry.device) continue;
    ++all;
    if (other->job().principal == entry.job().principal) ++own;
  }
  return all < kMostEarly && own < kMostEarlyOfOne;
}

}  // namespace gridclock
