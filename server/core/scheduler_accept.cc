// The way in: places in a queue, memory, refusals.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "server/core/job_entry.h"
#include "server/core/scheduler.h"

namespace gridclock {
namespace {

constexpr absl::Duration kShortestRetry = absl::Milliseconds(5);
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
  job.order.offset += block.offset;
  for (JobInput& input : job.inputs) input.memory.offset += block.offset;
  for (JobOutput& output : job.outputs) output.memory.offset += block.offset;
  if (!job.check) return;
  for (JobInput& expected : job.check->expected) expected.memory.offset += block.offset;
  job.check->launches.offset += block.offset;
  job.check->references.offset += block.offset;
}

bool HasStreamedInput(const Job& job) {
  return std::any_of(job.inputs.begin(), job.inputs.end(),
                     [](const JobInput& input) { return input.source == SourceKind::kStream; });
}

}  // namespace

absl::Status DrainingStatus() {
  return Refuse(absl::StatusCode::kUnavailable, "the server is shutting down", "DRAINING",
                absl::Seconds(1));
}

absl::Status DeviceDrainedStatus(absl::string_view device) {
  return Refuse(absl::StatusCode::kUnavailable,
                absl::StrCat("device '", device, "' takes no new calls: an operator drained it"),
                "DEVICE_DRAINED", kLongestRetry);
}

absl::Status Scheduler::Refusal(const Device& device, const Job& job) const {
  if (draining_) return DrainingStatus();
  // First: what an operator took out because it is broken is no error of the service.
  if (device.drained) return DeviceDrainedStatus(job.device);
  if (device.down) return *device.down;
  if (device.other != nullptr && device.other->unkillable) return *device.other->unkillable;
  if (CannotMeasure(device, job)) return *device.other->down;
  const int waiting = device.waiting();
  // One client's are counted only where it could have so many.
  if (waiting < std::min(limits_.queue, limits_.client_queue)) return absl::OkStatus();
  const Places queue = {.all = waiting, .of_one = device.waiting_of(job.principal)};
  return PlaceRefusal(device, job, queue, "wait");
}

absl::Status Scheduler::ArrivalRefusal(const Device& device, const Job& job) const {
  const Places arriving = {.all = device.arriving.all(),
                           .of_one = device.arriving.of(job.principal)};
  return PlaceRefusal(device, job, arriving, "wait for memory or inputs");
}

// All that arrive may become ready at once. Then those who had places have twice `queue` of them,
// and who had none finds one all the same.
absl::Status Scheduler::PlaceRefusal(const Device& device, const Job& job, const Places& taken,
                                     absl::string_view wait) const {
  const auto full = [&](int size, absl::string_view limit, double value, absl::string_view whose) {
    return Refuse(absl::StatusCode::kResourceExhausted,
                  absl::StrCat(size, " calls ", whose, " ", wait, " for device '", job.device,
                               "', the most allowed"),
                  "QUEUE_FULL", device.run_time * (size / 4 + 1),
                  {{"limit", std::string(limit)}, {"value", absl::StrCat(value)}});
  };
  const auto has_none = [&] {
    return device.waiting_of(job.principal) + device.arriving.of(job.principal) == 0;
  };
  const auto is_room = [&] {
    return has_none() && device.waiting() + device.arriving.all() < kMostQueues * limits_.queue;
  };
  if (taken.all >= limits_.queue && !is_room()) {
    return full(taken.all, "queue", limits_.queue, "of all clients");
  }
  if (taken.of_one >= limits_.client_queue) {
    return full(taken.of_one, "client_queue", limits_.client_queue, "of this client");
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

  const bool arrives = waits || HasStreamedInput(job);
  if (arrives) GC_RETURN_IF_ERROR(ArrivalRefusal(device, job));

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
  entry->arrives = arrives;
  if (arrives)
    device.arriving.Add(entry->job().principal);
  else
    device.queue.Add(entry->job().principal, entry->id);
  return entry;
}

void Scheduler::Accept(Entry& entry, Outbox& out) {
  entry.state = Entry::State::kWaitsForInputs;
  // While its inputs arrive the client's stream is what has a time limit.
  entry.wait_until = entry.job().deadline;
  const int before = entry.device->queue.size() + static_cast<int>(entry.device->sent.size());
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

}  // namespace gridclock
