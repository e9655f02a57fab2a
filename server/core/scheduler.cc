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
constexpr absl::Duration kShortestRetry = absl::Milliseconds(5);
// Where runs take less, the thread that sent one may wait for its answer, and many may wait at the
// worker: whoever is behind them waits a few milliseconds at most.
constexpr absl::Duration kQuick = absl::Microseconds(200);
constexpr absl::Duration kLongestRetry = absl::Seconds(5);

absl::Status Refuse(absl::StatusCode code, absl::string_view message, absl::string_view reason,
                    absl::Duration retry_after, std::map<std::string, std::string> metadata = {}) {
  return WithDetails(absl::Status(code, message),
                     {.reason = std::string(reason),
                      .field = "",
                      .retry_after = std::clamp(retry_after, kShortestRetry, kLongestRetry),
                      .metadata = std::move(metadata)});
}

// From offsets in the job's block to offsets in the arena.
void MoveTo(const MemoryRange& block, Job& job) {
  job.memory.offset += block.offset;
  for (JobInput& input : job.inputs) input.memory.offset += block.offset;
  for (JobOutput& output : job.outputs) output.memory.offset += block.offset;
  if (!job.check) return;
  for (JobInput& expected : job.check->expected) expected.memory.offset += block.offset;
  job.check->launches.offset += block.offset;
  job.check->references.offset += block.offset;
}

}  // namespace

bool IsSmall(const Job& job) {
  return !job.measure && !job.verify &&
         std::max(job.operand_bytes, job.memory.size) <= Scheduler::kSmallBytes;
}

absl::Status DrainingStatus() {
  return Refuse(absl::StatusCode::kUnavailable, "the server is shutting down", "DRAINING",
                absl::Seconds(1));
}

absl::Status DeviceDrainedStatus(absl::string_view device) {
  return Refuse(absl::StatusCode::kUnavailable,
                absl::StrCat("device '", device, "' takes no new calls: an operator drained it"),
                "DEVICE_DRAINED", kLongestRetry);
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

// ---- The way in. ----

absl::Status Scheduler::Refusal(const Device& device, const Job& job) const {
  if (draining_) return DrainingStatus();
  // First: what an operator took out because it is broken is no error of the service.
  if (device.drained) return DeviceDrainedStatus(job.device);
  if (device.down) return *device.down;
  if (device.other != nullptr && device.other->unkillable) return *device.other->unkillable;
  const auto full = [&](int size, absl::string_view limit, double value, absl::string_view whose) {
    return Refuse(absl::StatusCode::kResourceExhausted,
                  absl::StrCat(size, " calls ", whose, " wait for device '", job.device,
                               "', the most allowed"),
                  "QUEUE_FULL", device.run_time * (size / 4 + 1),
                  {{"limit", std::string(limit)}, {"value", absl::StrCat(value)}});
  };
  const int waiting = device.waiting();
  if (waiting >= limits_.queue) return full(waiting, "queue", limits_.queue, "of all clients");
  // One client's are counted only where it could have so many.
  if (waiting < limits_.client_queue) return absl::OkStatus();
  if (const int own = device.waiting_of(job.principal); own >= limits_.client_queue) {
    return full(own, "client_queue", limits_.client_queue, "of this client");
  }
  return absl::OkStatus();
}

absl::StatusOr<JobId> Scheduler::Submit(Job job, std::shared_ptr<JobListener> listener,
                                        bool wait_for_memory) {
  const absl::Time now = clock_.Now();
  const std::string device = job.device;
  Outbox out;
  absl::StatusOr<std::shared_ptr<Entry>> entry = [&]() -> absl::StatusOr<std::shared_ptr<Entry>> {
    if (now >= job.deadline) return CallDeadlineStatus("before the call could be queued");
    MutexLock lock(mutex_);
    auto queued = Enqueue(std::move(job), wait_for_memory, now, out);
    if (queued.ok()) (*queued)->listener = std::move(listener);
    return queued;
  }();
  if (!entry.ok()) {
    observer_.OnRejected(device, entry.status());
    return entry.status();
  }
  const JobId id = (*entry)->id;
  Flush(out);
  return id;
}

absl::StatusOr<std::shared_ptr<Scheduler::Entry>> Scheduler::Enqueue(Job job, bool wait_for_memory,
                                                                     absl::Time now, Outbox& out) {
  Device& device = LaneOf(job);
  GC_RETURN_IF_ERROR(Refusal(device, job));
  // Who is ready to wait also waits its turn, behind its own principal's: others' must not stop it.
  const bool behind = wait_for_memory && WaitsForMemory(job.principal);
  absl::StatusOr<ArenaAllocator::Block> block =
      behind ? absl::ResourceExhaustedError("") : arena_.Reserve(job.memory.size, job.principal);
  const bool waits = !block.ok() && wait_for_memory &&
                     (behind || DetailsOf(block.status()).reason == "MEMORY_FULL");
  if (!block.ok() && !waits) return block.status();

  auto entry = std::make_shared<Entry>();
  entry->id = job.id = ++last_id_;
  entry->device = &device;
  entry->queued_at = now;
  if (waits) {
    entry->waiting = std::make_unique<const Job>(std::move(job));
    entry->wait_until = std::min(entry->job().deadline, now + absl::Seconds(limits_.queue_seconds));
    wait_for_memory_.push_back(entry->id);
  } else {
    MoveTo(block->range(), job);
    entry->active = std::make_shared<const ActiveJob>(std::move(job), *std::move(block));
  }
  jobs_.emplace(entry->id, entry);
  if (!waits) Accept(*entry, out);
  device.queue.Add(entry->job().principal, entry->id);
  return entry;
}

void Scheduler::Accept(Entry& entry, Outbox& out) {
  entry.state = Entry::State::kWaitsForInputs;
  // While its inputs arrive the client's stream is what has a time limit.
  entry.wait_until = entry.job().deadline;
  const int before = entry.device->queue.size() - (entry.waiting != nullptr ? 1 : 0) +
                     static_cast<int>(entry.device->sent.size());
  Post(entry,
       AcceptedEvent{{.queue_position = static_cast<std::uint32_t>(before),
                      .expected_wait = entry.device->run_time * before}},
       out);
}

bool Scheduler::WaitsForMemory(absl::string_view principal) const {
  return std::any_of(wait_for_memory_.begin(), wait_for_memory_.end(),
                     [&](JobId id) { return Find(id)->job().principal == principal; });
}

// In the order that they came, but one that does not fit holds up its own principal's alone: who
// holds memory for long could else stop everybody through another who asks for much.
void Scheduler::RetryMemory(Outbox& out) {
  std::vector<std::string> stuck;  // Principals whose turn has not come.
  for (auto it = wait_for_memory_.begin(); it != wait_for_memory_.end();) {
    Entry* entry = Find(*it);
    const Job& job = *entry->waiting;
    if (std::find(stuck.begin(), stuck.end(), job.principal) != stuck.end()) {
      ++it;
      continue;
    }
    auto block = arena_.Reserve(job.memory.size, job.principal);
    if (block.ok()) {
      Job moved = job;
      MoveTo(block->range(), moved);
      entry->active = std::make_shared<const ActiveJob>(std::move(moved), *std::move(block));
      it = wait_for_memory_.erase(it);
      Accept(*entry, out);
      continue;
    }
    stuck.push_back(job.principal);
    ++it;
  }
}

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
    entry->device->queue.SetReady(entry->job().principal, id);
    Device& device = *entry->device;
    Dispatch(device, now, out);
    if (MayAwait(*entry, now)) awaited = device.worker;
    device.last_start = now;
  }
  Flush(out);
  if (awaited != nullptr) awaited->Await(id);
}

// Alone and quick: where several come at once, a thread that waits for one holds up the others, and
// their answers come together.
bool Scheduler::MayAwait(const Entry& entry, absl::Time now) {
  const Device& device = *entry.device;
  return entry.state == Entry::State::kSent && device.sent.size() == 1 && IsSmall(entry.job()) &&
         device.run_time < kQuick && now - device.last_start > kQuick / 4;
}

// ---- To the worker and back. ----

bool Scheduler::HasRoomFor(const Device& device, const Job& job) const {
  if (device.sent.empty()) return true;
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
      EndWaiting(*entry, CallDeadlineStatus("in the queue"), out);
      continue;
    }
    if (!HasRoomFor(device, entry->job())) return;
    if (device.other != nullptr && !MaySend(device, entry->job(), now)) return;
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
  if (std::exchange(entry->dispatched, true)) return;
  Post(*entry, DispatchedEvent{now - entry->ready_at}, out);
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
  device.stuck_since.reset();
  const absl::Duration took = now - std::max(entry->sent_at, device.last_done);
  device.run_time += (took - device.run_time) * kNewest;
  device.last_done = now;
  if (GaveBack(*entry, answer.result)) {
    Requeue(*entry, now);
    return entry;
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
  entry.recalled = false;
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
  result.launched_for = entry.launched_for;
  Post(entry, std::move(result), out);
}

void Scheduler::EndWaiting(Entry& entry, absl::Status status, Outbox& out) {
  if (entry.state == Entry::State::kWaitsForMemory) std::erase(wait_for_memory_, entry.id);
  entry.device->queue.Remove(entry.job().principal, entry.id);
  const bool has_worker = entry.device->worker != nullptr && !entry.device->killing;
  if (entry.early && has_worker) Tell(entry, Word::kCancel, out);
  Answer(entry, {.status = std::move(status), .outcome = std::nullopt}, out);
  Forget(entry);
}

void Scheduler::Forget(Entry& entry) {
  if (entry.device->IsHereToCompare(entry)) {
    auto& away = entry.device->other->guests->away;
    const auto found = away.find(entry.job().principal);
    if (--found->second == 0) away.erase(found);
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

template <typename Event>
void Scheduler::Post(Entry& entry, Event event, Outbox& out) {
  if (!out.mails.empty() && out.mails.back().entry.get() == &entry) {
    out.mails.back().events.emplace_back(std::move(event));
    return;
  }
  if (entry.delivering) {
    entry.mailbox.emplace_back(std::move(event));
    return;
  }
  entry.delivering = true;
  auto& mail = out.mails.emplace_back();
  mail.entry = jobs_.find(entry.id)->second;
  mail.events.emplace_back(std::move(event));
}

void Scheduler::Flush(Outbox& out) {
  if (!out.speeches.empty()) Speak(out);
  for (const Outbox::Kill& kill : out.kills) kill.worker->Kill(kill.reason);
  for (GuestPort* port : out.starts) port->Start();
  for (const Outbox::LostGuest& blame : out.blames) {
    blame.port->Blame(blame.entry->job(), blame.why);
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
  } else if (const auto* dispatched = std::get_if<DispatchedEvent>(&event)) {
    observer_.OnDispatched(entry.job(), dispatched->waited);
  } else if (const auto* samples = std::get_if<SamplesEvent>(&event)) {
    entry.listener->OnSamples(samples->first, samples->samples_ns, samples->warmup);
  } else {
    JobResult& result = std::get<JobResult>(event);
    observer_.OnFinished(entry.job(), result);
    entry.listener->OnFinished(std::move(result));
  }
}

}  // namespace gridclock
