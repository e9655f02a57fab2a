// What operators ask of jobs and workers.
#include <algorithm>
#include <utility>

#include "server/core/job_entry.h"
#include "server/core/scheduler.h"

namespace gridclock {

JobView ViewOf(const Job& job, JobView::State state, absl::Time now) {
  return {.id = job.id,
          .state = state,
          .principal = job.principal,
          .kernel = job.kernel,
          .variant = job.variant,
          .device = job.device,
          .request_id = job.request_id,
          .age = now - job.arrived,
          .sent = absl::ZeroDuration(),
          .submitted = job.program != nullptr,
          .measured = job.measure.has_value()};
}

JobView Scheduler::ViewOf(const Entry& entry, absl::Time now) const {
  using State = JobView::State;
  // Its worker said so: one that is sent and not begun outlives a restart.
  const bool runs = entry.state == Entry::State::kSent && entry.seen_running;
  const State state = entry.state == Entry::State::kWaitsForMemory   ? State::kWaitsForMemory
                      : entry.state == Entry::State::kWaitsForInputs ? State::kWaitsForInputs
                      : entry.cancelled                              ? State::kStopping
                      : runs                                         ? State::kRunning
                                                                     : State::kQueued;
  JobView view = gridclock::ViewOf(entry.job(), state, now);
  if (entry.state == Entry::State::kSent) view.sent = now - entry.sent_at;
  return view;
}

std::vector<JobView> Scheduler::Jobs() const {
  const absl::Time now = clock_.Now();
  std::vector<JobView> jobs;
  {
    MutexLock lock(mutex_);
    for (const auto& [id, entry] : jobs_) {
      if (!entry->answered) jobs.push_back(ViewOf(*entry, now));
    }
  }
  std::sort(jobs.begin(), jobs.end(),
            [](const JobView& a, const JobView& b) { return a.id < b.id; });
  return jobs;
}

std::optional<JobView> Scheduler::CancelByOperator(JobId id, absl::Status status) {
  const absl::Time now = clock_.Now();
  Outbox out;
  std::shared_ptr<Entry> entry;  // Its memory goes back after the lock.
  std::optional<JobView> view;
  {
    MutexLock lock(mutex_);
    const auto found = jobs_.find(id);
    if (found == jobs_.end() || found->second->answered) return std::nullopt;
    entry = found->second;
    view = ViewOf(*entry, now);
    Cancel(*entry, std::move(status), out);
  }
  Flush(out);
  return view;
}

std::vector<Scheduler::Device*> Scheduler::LanesOf(absl::string_view name) {
  Device& device = DeviceOf(name);
  if (device.other == nullptr) return {&device};
  return {&device, device.other};
}

void Scheduler::SetDrained(absl::string_view device, bool drained) {
  MutexLock lock(mutex_);
  for (Device* lane : LanesOf(device)) lane->drained = drained;
}

bool Scheduler::TakesOrders(const Device& lane) {
  return lane.worker != nullptr && !lane.killing && !lane.restarting;
}

void Scheduler::RestartIfIdle(Device& lane, Outbox& out) {
  if (!lane.restarting || !lane.sent.empty()) return;
  // The end of a process would disturb what the other lane measures.
  if (lane.other != nullptr && Measures(*lane.other)) return;
  Kill(lane, kRestart, out);
}

std::optional<int> Scheduler::RestartWorkers(absl::string_view name, bool now) {
  Outbox out;
  int held = 0;
  {
    MutexLock lock(mutex_);
    const std::vector<Device*> lanes = LanesOf(name);
    if (lanes.front()->worker == nullptr || lanes.front()->killing) return std::nullopt;
    for (Device* lane : lanes) {
      if (lane->worker == nullptr) continue;
      lane->restarting = true;
      held += static_cast<int>(lane->sent.size());
      if (now) Kill(*lane, kRestart, out);
    }
    for (Device* lane : lanes) RestartIfIdle(*lane, out);
  }
  Flush(out);
  return held;
}

}  // namespace gridclock
