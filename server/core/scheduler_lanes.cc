// Whose turn it is: of clients whose small orders wait at a worker, and of the two lanes of a
// device that takes submitted code.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/core/job_entry.h"
#include "server/core/scheduler.h"

namespace gridclock {
namespace {

// A worker that was told of an input, or to leave off, may still be at a piece of it.
constexpr absl::Duration kCopying = absl::Milliseconds(10);

}  // namespace

std::string GuestLane(absl::string_view device) {
  return absl::StrCat(device, "/guest");
}

void Scheduler::AddGuests(absl::string_view device, GuestPort& port) {
  MutexLock lock(mutex_);
  Device& catalogue = DeviceOf(device);
  Device& lane = DeviceOf(GuestLane(device));
  catalogue.other = &lane;
  lane.other = &catalogue;
  lane.turn = false;
  lane.guests = std::make_unique<Guests>();
  lane.guests->port = &port;
}

Scheduler::Device& Scheduler::LaneOf(const Job& job) {
  return job.program != nullptr ? DeviceOf(GuestLane(job.device)) : DeviceOf(job.device);
}

// Of `principal`, or of all.
int Scheduler::Device::away(std::optional<absl::string_view> principal) const {
  const auto is_meant = [&](absl::string_view name) { return !principal || *principal == name; };
  const int away = principal ? guests->away.of(*principal) : guests->away.all();
  const Entries& beside = other->sent;
  const bool compares = !beside.empty() && other->IsHereToCompare(*beside.front());
  return compares && is_meant(beside.front()->job().principal) ? away - 1 : away;
}

int Scheduler::Device::WithAway(int here, std::optional<absl::string_view> principal) const {
  if (other == nullptr) return here;
  return guests != nullptr ? here + away(principal) : here - other->away(principal);
}

int Scheduler::Device::waiting() const {
  const int behind = std::max(0, static_cast<int>(sent.size()) - 1);
  return WithAway(queue.size() + behind, std::nullopt);
}

int Scheduler::Device::waiting_of(absl::string_view principal) const {
  int here = queue.size(principal);
  for (std::size_t i = 1; i < sent.size(); ++i) {
    if (sent[i]->job().principal == principal) ++here;
  }
  return WithAway(here, principal);
}

// ---- Of clients. ----

// Several small orders wait at a worker because they take microseconds. Where one takes longer, its
// principal's next ones are asked back as soon as somebody else waits, and queue again; all behind
// it, if it is the other lane that waits. Small ones alone: they either did not begin or run to
// their end, so that no client sees this.
void Scheduler::RecallForOthers(Device& device, absl::Time now, Outbox& out) {
  if (device.sent.size() < 2) return;
  const Entry& first = *device.sent.front();
  if (now - std::max(first.sent_at, device.last_done) < kPatience) return;
  const bool lane_waits = device.other != nullptr && Waits(*device.other, now);
  if (!lane_waits && !OthersWait(first, now)) return;
  for (const auto& entry : device.sent) {
    const bool of_others = entry->job().principal != first.job().principal;
    if (entry.get() == &first || (of_others && !lane_waits)) continue;
    if (entry->recalled || entry->cancelled || !IsSmall(entry->job())) continue;
    entry->recalled = true;
    Tell(*entry, Word::kCancel, out);
  }
}

bool Scheduler::OthersWait(const Entry& running, absl::Time now) const {
  const Device& device = *running.device;
  const std::string& principal = running.job().principal;
  const auto of_others = [&](const auto& entry) {
    return entry->job().principal != principal && !entry->cancelled;
  };
  return device.queue.HasReadyOfOthers(principal) ||
         std::any_of(device.sent.begin(), device.sent.end(), of_others) ||
         (device.other != nullptr && Waits(*device.other, now) &&
          device.other->queue.HasReadyOfOthers(principal));
}

// Principals take turns by calls, and a measurement may be asked to go on for minutes. Its turn
// begins with its first launch: what was done for its inputs is no time of the measurement.
void Scheduler::YieldToOthers(Device& device, absl::Time now, Outbox& out) {
  if (device.sent.empty()) return;
  Entry& running = *device.sent.front();
  const bool launched = running.launched_at >= running.sent_at;
  if (!running.job().measure || running.yields || !launched) return;
  if (now - running.launched_at < absl::Seconds(limits_.turn_seconds)) return;
  if (!OthersWait(running, now)) return;
  running.yields = true;
  Tell(running, Word::kYield, out);
}

bool Scheduler::KeepsOthersWaiting(const Entry& running, absl::Time now) {
  const Device& device = *running.device;
  const auto waits_behind = [&](const auto& entry) {
    return entry.get() != &running && !entry->cancelled;
  };
  return device.queue.Next() || std::any_of(device.sent.begin(), device.sent.end(), waits_behind) ||
         (device.other != nullptr && Waits(*device.other, now));
}

// ---- Of lanes. ----

// A guest that ran a job runs those of the same principal alone. None, though others wait: it must
// be replaced.
std::optional<JobId> Scheduler::NextFor(const Device& lane, absl::Time now) {
  const bool bound = lane.guests != nullptr && !lane.guests->principal.empty();
  if (!bound) return lane.queue.Next();
  const bool worn = lane.worker != nullptr && lane.worker->worn();
  if (worn || lane.guests->spent) return std::nullopt;
  const std::string& principal = lane.guests->principal;
  if (now - lane.guests->since >= kStay && lane.queue.HasOthers(principal)) return std::nullopt;
  return lane.queue.NextOf(principal);
}

bool Scheduler::CanSend(const Device& lane, absl::Time now) {
  return TakesOrders(lane) && lane.queue.size() > 0 && NextFor(lane, now).has_value();
}

// Jobs wait for a guest that is not there, or is another principal's.
bool Scheduler::NeedsGuest(const Device& lane, absl::Time now) {
  if (lane.guests == nullptr || lane.queue.size() == 0 || !lane.queue.Next()) return false;
  if (lane.worker != nullptr) return !lane.killing && !NextFor(lane, now);
  return !lane.guests->starting && !lane.down && now >= lane.guests->retry;
}

bool Scheduler::Waits(const Device& lane, absl::Time now) {
  return CanSend(lane, now) || NeedsGuest(lane, now);
}

bool Scheduler::Measures(const Device& lane) {
  return std::any_of(lane.sent.begin(), lane.sent.end(),
                     [](const auto& entry) { return entry->job().measure.has_value(); });
}

// No process of this lane starts or ends.
bool Scheduler::IsSettled(const Device& lane) {
  if (lane.guests != nullptr && lane.worker == nullptr) return !lane.guests->starting;
  return lane.worker != nullptr && !lane.killing;
}

// Workers of the catalogue that are tried time and again measure the device themselves.
bool Scheduler::CannotMeasure(const Device& lane, const Job& job) {
  return lane.guests != nullptr && job.measure.has_value() && lane.other->down.has_value();
}

// One is to start as soon as that disturbs nobody, though no job waits for it: to learn what it can
// do, or whether guests live again.
bool Scheduler::IsToTry(const Device& lane, absl::Time now) const {
  if (lane.guests == nullptr || lane.worker != nullptr || draining_) return false;
  const Guests& guests = *lane.guests;
  return (guests.wanted || lane.down) && !guests.starting && now >= guests.retry;
}

// It ends as soon as that disturbs nobody: what it still holds is lacking for others.
bool Scheduler::IsSpent(const Device& lane) {
  return lane.guests != nullptr && lane.worker != nullptr && lane.sent.empty() &&
         (lane.guests->spent || lane.worker->worn());
}

bool Scheduler::TurnIsOver(const Device& lane, const Job& next, absl::Time now) {
  return lane.turn_sent > 0 && (now - lane.turn_since >= kTurn || !IsSmall(next));
}

bool Scheduler::MaySend(const Device& lane, const Job& job, absl::Time now) const {
  const Device& other = *lane.other;
  if (!lane.turn || !other.sent.empty()) return false;
  if (job.measure && (!IsSettled(other) || IsSpent(other) || IsToTry(other, now))) return false;
  if (job.measure && (now - other.last_arrival < kCopying || IsCopyingToGuest(other))) return false;
  return !Waits(other, now) || !TurnIsOver(lane, job, now);
}

// The turn goes to the lane that can use it, once the other has nothing more at its worker.
void Scheduler::SettleTurn(Device& lane, absl::Time now) {
  Device& holder = lane.turn ? lane : *lane.other;
  Device& waiter = *holder.other;
  if (!holder.sent.empty() || !CanSend(waiter, now)) return;
  if (CanSend(holder, now)) {
    const Job& next = Find(*NextFor(holder, now))->job();
    if (!TurnIsOver(holder, next, now)) return;
  }
  holder.turn = false;
  waiter.turn = true;
  waiter.turn_sent = 0;
  waiter.turn_since = now;
}

void Scheduler::NoteSent(Device& lane, const Entry& entry, absl::Time now) {
  ++lane.turn_sent;
  if (lane.guests == nullptr || !lane.guests->principal.empty()) return;
  lane.guests->principal = entry.job().principal;
  lane.guests->spent = entry.reference;
  lane.guests->since = now;
}

// Starts a guest where one is wanted, and ends one that is of no more use; neither beside a job
// that is measured, which it would disturb.
void Scheduler::ArrangeGuest(Device& lane, absl::Time now, Outbox& out) {
  Guests& guests = *lane.guests;
  if (Measures(*lane.other)) return;
  if (lane.worker != nullptr) {
    const bool idle =
        lane.queue.size() + lane.arriving.all() == 0 && limits_.guest_idle_seconds > 0 &&
        now - std::max(guests.since, lane.last_done) >= absl::Seconds(limits_.guest_idle_seconds);
    const bool done = idle || IsSpent(lane) || NeedsGuest(lane, now);
    if (lane.sent.empty() && done) Kill(lane, "retired", out);
    return;
  }
  // The worker of the catalogue measures the device when it starts.
  if (lane.other->worker == nullptr || !(IsToTry(lane, now) || NeedsGuest(lane, now))) return;
  guests.starting = true;
  out.starts.push_back(guests.port);
}

void Scheduler::OnGuestNotReady(absl::string_view name, absl::Time retry) {
  const absl::Time now = clock_.Now();
  Outbox out;
  {
    MutexLock lock(mutex_);
    Device& lane = DeviceOf(name);
    lane.guests->starting = false;
    lane.guests->retry = retry;
    lane.unkillable.reset();
    Dispatch(lane, now, out);
  }
  Flush(out);
}

// Whose call's time ran out, or who cancelled it, pays for the worker that it cost, but its code
// did nothing wrong. The catalogue's other faults are ours.
void Scheduler::Blame(Device& lane, const std::shared_ptr<Entry>& entry, const WorkerLoss& loss,
                      Outbox& out) {
  const bool guest = lane.guests != nullptr;
  const bool outlived = entry->cancelled && IsForOneOrder(loss.reason);
  if (guest || outlived) lane.queue.Charge(entry->job().principal, kCharge);
  if (!guest) return;
  const bool stopped = loss.reason == "deadline" || loss.reason == "cancelled";
  if (stopped && !entry->overlong) return;
  out.blames.push_back({lane.guests->port, entry, &entry->given(), loss.detail});
}

// What a guest says of its time lies between its order and its answer, and behind what it said of
// the order before: however much it claims, its device was never busy twice at once.
void Scheduler::BoundPhases(const Entry& entry, absl::Time now, Outcome& outcome) {
  Guests& guests = *entry.device->guests;
  const absl::Time arrived = entry.job().arrived;
  const auto since = [&](absl::Time time) { return absl::ToInt64Nanoseconds(time - arrived); };
  const std::int64_t most = since(now);
  const std::int64_t least = std::min(since(std::max(entry.sent_at, guests.worked_until)), most);
  for (Phase& phase : outcome.phases) {
    phase.start_ns = std::clamp(phase.start_ns, least, most);
    phase.end_ns = std::clamp(phase.end_ns, least, most);
    guests.worked_until = std::max(guests.worked_until, arrived + absl::Nanoseconds(phase.end_ns));
  }
}

// ---- Comparisons. ----

bool Scheduler::IsToCompare(const Entry& entry, const JobResult& result) {
  return entry.job().check && entry.device->guests != nullptr && result.status.ok() &&
         result.outcome && !entry.cancelled && !entry.answered;
}

// It waits again: for a guest of its own where a program is what it is held against, and then in
// the other lane.
void Scheduler::SendToCompare(Entry& entry, JobResult result, absl::Time now, Outbox& out) {
  const bool ran = !entry.run;
  if (ran) {
    entry.run = *std::move(result.outcome);
    AddWaits(entry, *entry.run);
  }
  entry.reference = ran && entry.job().check->program != nullptr;
  if (!entry.reference) {
    entry.device->guests->away.Add(entry.job().principal);
    entry.device = entry.device->other;
  }
  entry.sends = 0;
  BecomeReadyAgain(entry, now);
  QueueReady(entry);
  if (entry.device->down) EndWaiting(entry, absl::Status(*entry.device->down), out);
}

// Whatever the comparison says, the time is that of the run.
void Scheduler::MergeComparison(Entry& entry, JobResult& result) {
  const std::optional<Outcome> compared = std::exchange(result.outcome, *std::move(entry.run));
  if (!compared) return;
  const CheckedLaunches& done = *entry.job().check->done;
  Outcome& outcome = *result.outcome;
  outcome.phases.insert(outcome.phases.end(), compared->phases.begin(), compared->phases.end());
  outcome.verification = compared->verification;
  Verification& verification = *outcome.verification;
  verification.violations = done.violations;
  verification.first_violation = done.first_violation;
  // Of inputs that it had before a kernel may have kept the result, from an earlier launch or an
  // earlier call: then the time is that of something else.
  const bool batches = entry.job().measure && entry.job().measure->method == Method::kBackToBack;
  const bool may_remember = verification.fresh_launches == 0;
  const std::vector<Flag>& said = compared->flags;
  const bool undecided = verification.mismatches == 0 &&
                         (verification.checked == 0 ||
                          std::find(said.begin(), said.end(), Flag::kUnverified) != said.end());
  if (!batches && !undecided && !may_remember) return;
  std::vector<Flag>& flags = outcome.flags;
  const auto place = std::lower_bound(flags.begin(), flags.end(), Flag::kUnverified);
  if (place == flags.end() || *place != Flag::kUnverified) flags.insert(place, Flag::kUnverified);
}

// ---- Questions. ----

int Scheduler::depth(absl::string_view name) const {
  MutexLock lock(mutex_);
  int depth = 0;
  for (const auto& lane : devices_) {
    if (lane->name == name || (lane->guests != nullptr && lane->other->name == name)) {
      depth += lane->queue.size() + lane->arriving.all() + static_cast<int>(lane->sent.size());
    }
  }
  return depth;
}

bool Scheduler::busy(absl::string_view name) const {
  MutexLock lock(mutex_);
  return std::any_of(devices_.begin(), devices_.end(), [&](const auto& lane) {
    const bool is_it = lane->name == name || (lane->guests != nullptr && lane->other->name == name);
    return is_it && !lane->sent.empty();
  });
}

std::map<std::string, Scheduler::Usage> Scheduler::usage() const {
  MutexLock lock(mutex_);
  std::map<std::string, Usage> all;
  for (const auto& lane : devices_) {
    Usage& usage = all[lane->device_name()];
    usage.queued += lane->waiting();
    usage.fuller_queue = std::max(usage.fuller_queue, lane->waiting());
    usage.running += lane->sent.empty() ? 0 : 1;
  }
  std::map<std::pair<const Device*, absl::string_view>, int> waiting;
  for (const auto& [id, entry] : jobs_) {
    const Device& here = *entry->device;
    // Between two orders too: what was shown of it would else stand still until it ends.
    if (!entry->answered) all[here.device_name()].launched_for += entry->launched_for;
    if (entry->arrives || (!here.sent.empty() && here.sent.front() == entry)) continue;
    const Device* const home = here.IsHereToCompare(*entry) ? here.other : &here;
    const int own = ++waiting[{home, entry->job().principal}];
    Usage& usage = all[home->device_name()];
    usage.queued_of_one = std::max(usage.queued_of_one, own);
  }
  return all;
}

}  // namespace gridclock
