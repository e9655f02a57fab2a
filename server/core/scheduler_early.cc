// Inputs that a device copies while the rest of them arrives.
#include "server/core/job_entry.h"
#include "server/core/scheduler.h"

namespace gridclock {

void Scheduler::Arrived(JobId id, const InputArrival& arrival) {
  Outbox out;
  {
    MutexLock lock(mutex_);
    Entry* entry = Find(id);
    if (entry == nullptr || !MayCopyEarly(*entry)) return;
    entry->early = true;
    Tell(*entry, Word::kArrived, out, arrival);
  }
  Flush(out);
}

// While a worker holds orders it is told nothing: they would wait for the copies, and the words for
// them.
bool Scheduler::MayCopyEarly(const Entry& entry) const {
  const Device& device = *entry.device;
  return entry.state == Entry::State::kWaitsForInputs && !entry.job().host_memory &&
         device.worker != nullptr && !device.killing && device.sent.empty() &&
         (entry.early || HasEarlyPlace(entry));
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
