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
    NoteCopies(*entry->device, now);
    Tell(*entry, Word::kArrived, out, arrival);
  }
  Flush(out);
}

// Whoever speaks to a guest may be at a copy. What waits for its end is sent by the next tick.
bool Scheduler::IsCopyingToGuest(const Device& lane) {
  return lane.guests != nullptr && lane.speaking;
}

// A guest's are made by whoever speaks to it, and end with that.
void Scheduler::NoteCopies(Device& lane, absl::Time now) {
  if (lane.guests != nullptr) return;
  lane.copying = true;
  lane.last_arrival = now;
}

// While a worker holds orders it is told nothing: they would wait for the copies, and the words for
// them.
bool Scheduler::MayCopyEarly(const Entry& entry, absl::Time now) const {
  const Device& device = *entry.device;
  const Device* other = device.other;
  // Who speaks would have to make these copies too. The next arrival has these bytes as well.
  if (IsCopyingToGuest(device)) return false;
  if (other != nullptr && (!other->sent.empty() || Waits(*other, now))) return false;
  return entry.state == Entry::State::kWaitsForInputs && HasMemoryFor(device, entry.job()) &&
         device.worker != nullptr && !device.killing && device.sent.empty() &&
         (entry.early || HasEarlyPlace(entry));
}

// Its worker has memory beside the arena that this job's inputs go to. A guest that ran nothing may
// still become anybody's, and what is checked has other values than those that came.
bool Scheduler::HasMemoryFor(const Device& lane, const Job& job) {
  if (lane.guests == nullptr) return !job.host_memory;
  return lane.guests->principal == job.principal && !job.check && !IsSpent(lane);
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

// They were its worker's, and no other is to hear of them.
void Scheduler::ForgetCopies(const Device& lane) {
  for (const auto& [id, entry] : jobs_) {
    if (entry->device == &lane) entry->early = false;
  }
}

bool Scheduler::HasEarlyPlace(const Entry& entry) const {
  int all = 0, own = 0;
  for (const auto& [id, other] : jobs_) {
    const bool arrives = other->state == Entry::State::kWaitsForInputs;
    if (!other->early || !arrives || other->device != entry.device) continue;
    ++all;
    if (other->job().principal == entry.job().principal) ++own;
  }
  return all < kMostEarly && own < kMostEarlyOfOne;
}

}  // namespace gridclock
