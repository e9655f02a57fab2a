#include "server/core/scheduler.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "server/core/job_entry.h"

namespace gridclock {
namespace {

// Weight of the newest run in the moving average of run times.
constexpr double kNewest = 0.2;
// Where runs take less, the thread that sent one may wait for its answer, and many may wait at the
// worker: whoever is behind them waits a few milliseconds at most.
constexpr absl::Duration kQuick = absl::Microseconds(200);

}  // namespace

bool IsSmall(const Job& job) {
  return !job.measure && !job.verify &&
         std::max(job.operand_bytes, job.memory.size) <= Scheduler::kSmallBytes;
}

bool WorkerPort::SendAll(std::span<const Job* const> jobs, std::uint64_t generation) {
  return std::all_of(jobs.begin(), jobs.end(),
                     [&](const Job* job) { return Send(*job, generation); });
}

ActiveJob::ActiveJob(Job job, ArenaAllocator::Block block)
    : job_(std::move(job)), block_(std::move(block)) {}

Scheduler::Scheduler(const Clock& clock, const Limits& limits, ArenaAllocator& arena,
                     JobObserver& observer)
    : clock_(clock), limits_(limits), arena_(arena), observer_(observer) {}

Scheduler::~Scheduler() = default;

Scheduler::Device& Scheduler::DeviceOf(absl::string_view name) {
  for (const auto& device : devices_) {
    if (device->name == name) return *device;
  }
  devices_.push_back(std::make_unique<Device>());
  devices_.back()->name = std::string(name);
  return *devices_.back();
}

Scheduler::Entry* Scheduler::Find(JobId id) const {
  const auto found = jobs_.find(id);
  return found == jobs_.end() ? nullptr : found->second.get();
}

// ---- To the worker and back. ----

void Scheduler::Start(JobId id) {
  const absl::Time now = clock_.Now();
  Outbox out;
  std::shared_ptr<WorkerPort> awaited;
  {
    MutexLock lock(mutex_);
    Entry* entry = Find(id);
    if (entry == nullptr || entry->state != Entry::State::kWaitsForInputs) return;
    entry->state = Entry::State::kReady;
    entry->ready_at = now;
    entry->wait_until = WaitEnd(entry->job(), now);
    Device& device = *entry->device;
    TakePlace(*entry);
    device.queue.SetReady(entry->job().principal, id);
    Dispatch(device, now, out);
    if (MayAwait(*entry, now)) awaited = device.worker;
    device.last_start = now;
  }
  Flush(out);
  if (awaited != nullptr) awaited->Await(id);
}

void Scheduler::TakePlace(Entry& entry) {
  if (!std::exchange(entry.arrives, false)) return;
  entry.device->arriving.Remove(entry.job().principal);
  entry.device->queue.Add(entry.job().principal, entry.id);
}

// Alone and quick: where several come at once, a thread that waits for one holds up the others, and
// their answers come together.
bool Scheduler::MayAwait(const Entry& entry, absl::Time now) {
  const Device& device = *entry.device;
  return entry.state == Entry::State::kSent && device.sent.size() == 1 && IsSmall(entry.job()) &&
         device.run_time < kQuick && now - device.last_start > kQuick / 4;
}

bool Scheduler::HasRoomFor(const Device& device, const Job& job) const {
  if (device.sent.empty()) return true;
  // A measurement has its turn, and whoever is sent behind one waits for it whoever else comes.
  if (job.measure || Measures(device)) return false;
  const bool all_small =
      IsSmall(job) && std::all_of(device.sent.begin(), device.sent.end(),
                                  [](const auto& entry) { return IsSmall(entry->job()); });
  if (!all_small) return device.sent.size() < kLargeWindow;
  const bool quick = device.run_time > absl::ZeroDuration() && device.run_time < kQuick;
  return device.sent.size() < (quick ? kQuickWindow : kSmallWindow);
}

void Scheduler::Dispatch(Device& device, absl::Time now, Outbox& out) {
  RestartIfIdle(device, out);
  if (device.other == nullptr) return SendReady(device, now, out);
  RestartIfIdle(*device.other, out);
  SettleTurn(device, now);
  SendReady(device, now, out);
  SendReady(*device.other, now, out);
  ArrangeGuest(device.guests != nullptr ? device : *device.other, now, out);
}

void Scheduler::SendReady(Device& device, absl::Time now, Outbox& out) {
  while (TakesOrders(device)) {
    const std::optional<JobId> next = NextFor(device, now);
    if (!next) return;
    const std::shared_ptr<Entry> entry = jobs_.find(*next)->second;
    if (now >= entry->wait_until) {
      EndWaiting(*entry, QueueEndStatus(entry->job(), now, limits_.queue_seconds), out);
      continue;
    }
    if (!HasRoomFor(device, entry->job())) return;
    if (device.other != nullptr) {
      const bool only_copies = device.turn && device.other->sent.empty();
      if (entry->job().measure && only_copies) StopCopying(*device.other, now, out);
      if (!MaySend(device, entry->job(), now)) return;
    }
    Send(entry, now, out);
  }
}

void Scheduler::Send(const std::shared_ptr<Entry>& entry, absl::Time now, Outbox& out) {
  Device& device = *entry->device;
  device.queue.Take(entry->job().principal, entry->id);
  if (device.other != nullptr) NoteSent(device, *entry, now);
  entry->state = Entry::State::kSent;
  entry->sent_at = now;
  ++entry->sends;
  device.sent.push_back(entry);
  Tell(*entry, Word::kOrder, out);
  if (!entry->waited) entry->waited = now - entry->ready_at;
}

void Scheduler::OnSamples(JobId id, std::uint64_t generation, std::int64_t first,
                          std::span<const double> samples_ns, bool warmup) {
  Outbox out;
  {
    MutexLock lock(mutex_);
    Entry* entry = Find(id);
    if (entry == nullptr || entry->state != Entry::State::kSent || entry->answered ||
        entry->device->generation != generation) {
      return;
    }
    Post(
        *entry,
        SamplesEvent{
            .first = first, .samples_ns = {samples_ns.begin(), samples_ns.end()}, .warmup = warmup},
        out);
  }
  Flush(out);
}

std::shared_ptr<Scheduler::Entry> Scheduler::TakeAnswer(std::uint64_t generation,
                                                        WorkerAnswer& answer, absl::Time now,
                                                        Outbox& out) {
  const auto found = jobs_.find(answer.id);
  if (found == jobs_.end()) return nullptr;
  std::shared_ptr<Entry> entry = found->second;
  Device& device = *entry->device;
  if (entry->state != Entry::State::kSent || device.generation != generation) return nullptr;
  std::erase(device.sent, entry);
  device.stuck = absl::ZeroDuration();
  const absl::Duration took = now - std::max(entry->sent_at, device.last_done);
  device.run_time += (took - device.run_time) * kNewest;
  device.last_done = now;
  if (answer.spoiled) {
    device.culprit = entry->job().principal;
    if (device.guests != nullptr) device.queue.Charge(device.culprit, kCharge);
  }
  if (GaveBack(*entry, answer.result)) {
    Requeue(*entry, now);
    return entry;
  }
  if (device.guests != nullptr && answer.result.outcome) {
    BoundPhases(*entry, now, *answer.result.outcome);
  }
  if (IsToCompare(*entry, answer.result)) {
    SendToCompare(*entry, std::move(answer.result), now, out);
    return entry;
  }
  if (entry->cancelled) answer.result.status = *entry->cancelled;
  if (entry->run) MergeComparison(*entry, answer.result);
  if (!entry->answered) Answer(*entry, std::move(answer.result), out);
  Forget(*entry);
  return entry;
}

std::vector<JobId> Scheduler::OnDone(std::uint64_t generation, std::span<WorkerAnswer> answers) {
  const absl::Time now = clock_.Now();
  Outbox out;
  std::vector<JobId> strangers;
  absl::InlinedVector<std::shared_ptr<Entry>, 4> ended;  // Their memory goes back after the lock.
  {
    MutexLock lock(mutex_);
    for (WorkerAnswer& answer : answers) {
      auto entry = TakeAnswer(generation, answer, now, out);
      if (entry == nullptr)
        strangers.push_back(answer.id);
      else
        ended.push_back(std::move(entry));
    }
    // All are of one worker, which serves one device.
    if (!ended.empty()) Dispatch(*ended.front()->device, now, out);
    if (!wait_for_memory_.empty()) RetryMemory(out);
  }
  Flush(out);
  return strangers;
}

bool Scheduler::OnDone(JobId id, std::uint64_t generation, JobResult result) {
  WorkerAnswer answer{.id = id, .result = std::move(result)};
  return OnDone(generation, {&answer, 1}).empty();
}

// ---- Given back. ----

bool Scheduler::GaveBack(const Entry& entry, const JobResult& result) {
  return entry.recalled && !entry.cancelled && !entry.answered &&
         result.status.code() == absl::StatusCode::kCancelled && !result.outcome;
}

void Scheduler::Requeue(Entry& entry, absl::Time now) {
  BecomeReadyAgain(entry, now);
  --entry.sends;
  QueueReady(entry);
}

void Scheduler::QueueReady(Entry& entry) {
  FairQueue& queue = entry.device->queue;
  queue.Add(entry.job().principal, entry.id);
  queue.SetReady(entry.job().principal, entry.id, entry.reference);
}

void Scheduler::BecomeReadyAgain(Entry& entry, absl::Time now) {
  entry.state = Entry::State::kReady;
  entry.recalled = entry.yields = false;
  entry.seen_running.reset();
  entry.wait_until = WaitEnd(entry.job(), now);
}

absl::Time Scheduler::WaitEnd(const Job& job, absl::Time now) const {
  return job.deadline == absl::InfiniteFuture() ? now + absl::Seconds(limits_.queue_seconds)
                                                : job.deadline;
}

// ---- Ends. ----

void Scheduler::AddWaits(const Entry& entry, Outcome& outcome) {
  const auto at = [&](absl::Time time) {
    return absl::ToInt64Nanoseconds(time - entry.job().arrived);
  };
  const Phase ahead[] = {
      {.kind = PhaseKind::kReceived, .start_ns = 0, .end_ns = at(entry.ready_at)},
      {.kind = PhaseKind::kQueued, .start_ns = at(entry.ready_at), .end_ns = at(entry.sent_at)}};
  outcome.phases.insert(outcome.phases.begin(), std::begin(ahead), std::end(ahead));
}

void Scheduler::Answer(Entry& entry, JobResult result, Outbox& out) {
  // A run that was compared has its own: the comparison waited too.
  if (result.outcome && entry.active != nullptr && !entry.run) AddWaits(entry, *result.outcome);
  entry.answered = true;
  result.waited = entry.waited;
  result.launched_for = entry.launched_for;
  result.was_ready = entry.state >= Entry::State::kReady;
  Post(entry, std::move(result), out);
}

void Scheduler::EndWaiting(Entry& entry, absl::Status status, Outbox& out) {
  if (entry.state == Entry::State::kWaitsForMemory) std::erase(wait_for_memory_, entry.id);
  TakePlace(entry);
  entry.device->queue.Remove(entry.job().principal, entry.id);
  const bool has_worker = entry.device->worker != nullptr && !entry.device->killing;
  if (entry.early && has_worker) Tell(entry, Word::kCancel, out);
  Answer(entry, {.status = std::move(status), .outcome = std::nullopt}, out);
  Forget(entry);
}

void Scheduler::Forget(Entry& entry) {
  if (entry.device->IsHereToCompare(entry)) {
    entry.device->other->guests->away.Remove(entry.job().principal);
  }
  jobs_.erase(entry.id);
}

void Scheduler::TellToStop(Entry& entry, absl::Status why, Outbox& out) {
  if (entry.cancelled) return;
  entry.cancelled = std::move(why);
  entry.told_to_stop = clock_.Now();
  Tell(entry, Word::kCancel, out);
}

void Scheduler::Cancel(JobId id, absl::Status status) {
  Outbox out;
  std::shared_ptr<Entry> entry;
  {
    MutexLock lock(mutex_);
    const auto found = jobs_.find(id);
    if (found == jobs_.end()) return;
    entry = found->second;
    Cancel(*entry, std::move(status), out);
  }
  Flush(out);
}

void Scheduler::Cancel(Entry& entry, absl::Status status, Outbox& out) {
  if (entry.state == Entry::State::kSent)
    TellToStop(entry, std::move(status), out);
  else
    EndWaiting(entry, std::move(status), out);
}

void Scheduler::Drain() {
  MutexLock lock(mutex_);
  draining_ = true;
}

// ---- Questions. ----

std::shared_ptr<const ActiveJob> Scheduler::Active(JobId id) const {
  MutexLock lock(mutex_);
  const Entry* entry = Find(id);
  return entry == nullptr || entry->answered ? nullptr : entry->active;
}

std::shared_ptr<const ActiveJob> Scheduler::Sent(JobId id, std::uint64_t generation) const {
  MutexLock lock(mutex_);
  const Entry* entry = Find(id);
  const bool sent = entry != nullptr && entry->state == Entry::State::kSent &&
                    entry->device->generation == generation;
  return sent ? entry->active : nullptr;
}

bool Scheduler::idle() const {
  MutexLock lock(mutex_);
  return jobs_.empty();
}

// ---- Words to workers and listeners. ----

void Scheduler::Tell(Entry& entry, Word word, Outbox& out, const InputArrival& arrival) {
  Device& device = *entry.device;
  Device::Command command{.entry = jobs_.find(entry.id)->second, .word = word, .arrival = arrival};
  if (!out.speeches.empty() && out.speeches.back().device == &device) {
    out.speeches.back().commands.push_back(std::move(command));
    return;
  }
  if (device.speaking) {
    device.commands.push_back(std::move(command));
    return;
  }
  device.speaking = true;
  auto& speech = out.speeches.emplace_back();
  speech.device = &device;
  speech.worker = device.worker;
  speech.generation = device.generation;
  speech.commands.push_back(std::move(command));
}

void Scheduler::Flush(Outbox& out) {
  if (!out.speeches.empty()) Speak(out);
  for (const Outbox::Kill& kill : out.kills) kill.worker->Kill(kill.reason);
  for (GuestPort* port : out.starts) port->Start();
  for (const Outbox::LostGuest& blame : out.blames) {
    blame.port->Blame(*blame.given, blame.why);
  }
  if (!out.mails.empty()) Deliver(out);
}

void Scheduler::Speak(Outbox& out) {
  std::vector<const Job*> orders;
  for (Outbox::Speech& speech : out.speeches) {
    bool more = true;
    while (more) {
      orders.clear();
      const auto send = [&] {
        if (!orders.empty()) speech.worker->SendAll(orders, speech.generation);
        orders.clear();
      };
      for (const Device::Command& command : speech.commands) {
        const Job& job = command.entry->job();
        if (command.word == Word::kOrder) {
          orders.push_back(&job);
          continue;
        }
        send();
        if (command.word == Word::kCancel)
          speech.worker->Cancel(job.id);
        else if (command.word == Word::kYield)
          speech.worker->Yield(job.id);
        else
          speech.worker->Arrived(job, speech.generation, command.arrival);
      }
      send();
      speech.commands.clear();
      MutexLock lock(mutex_);
      Device& device = *speech.device;
      more = !device.commands.empty() && device.worker != nullptr;
      if (!more) {
        device.speaking = false;
        device.commands.clear();
        continue;
      }
      speech.worker = device.worker;
      speech.generation = device.generation;
      for (auto& command : device.commands) speech.commands.push_back(std::move(command));
      device.commands.clear();
    }
  }
}

void Scheduler::Deliver(Outbox& out) {
  for (Outbox::Mail& mail : out.mails) {
    for (JobEvent& event : mail.events) Hand(*mail.entry, event);
    std::vector<JobEvent> events;
    do {
      for (JobEvent& event : events) Hand(*mail.entry, event);
      events.clear();
      MutexLock lock(mutex_);
      events.swap(mail.entry->mailbox);
      if (events.empty()) mail.entry->delivering = false;
    } while (!events.empty());
  }
}

void Scheduler::Hand(Entry& entry, JobEvent& event) {
  if (const auto* accepted = std::get_if<AcceptedEvent>(&event)) {
    entry.listener->OnAccepted(entry.job(), accepted->info);
  } else if (const auto* samples = std::get_if<SamplesEvent>(&event)) {
    entry.listener->OnSamples(samples->first, samples->samples_ns, samples->warmup);
  } else {
    JobResult& result = std::get<JobResult>(event);
    observer_.OnFinished(entry.job(), result);
    entry.listener->OnFinished(std::move(result));
  }
}

}  // namespace gridclock
