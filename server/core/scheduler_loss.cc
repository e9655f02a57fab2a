// What becomes of jobs when time runs out or a worker is lost.
#include <algorithm>
#include <array>
#include <csignal>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "server/core/job_entry.h"
#include "server/core/scheduler.h"

namespace gridclock {
namespace {

// A worker that holds orders and runs none for so long is lost, though its heart may beat.
constexpr absl::Duration kStuck = absl::Seconds(5);
// Of it no more counts from one look to the next: what kept us from looking, as a machine that
// stood still, may have kept the worker from its orders.
constexpr absl::Duration kLook = absl::Seconds(1);
// Generating, verifying and checking sums go at no less than this, in bytes per second.
constexpr double kSlowestPass = 50e6;
// What is done for inputs may take the kernel's time limit once, or this, while others wait.
constexpr absl::Duration kLeastForInputs = absl::Seconds(5);
constexpr absl::Duration kCrashRetry = absl::Milliseconds(50);
constexpr int kMostSends = 2;

absl::Status Crashed(const Job& job, absl::string_view detail, absl::string_view state) {
  return WithDetails(
      absl::UnavailableError(absl::StrCat("the worker of device '", job.device, "' was lost (",
                                          detail, ") with this call; it may be sent again")),
      {.reason = "WORKER_CRASHED",
       .field = "",
       .retry_after = kCrashRetry,
       .metadata = {{"execution_state", std::string(state)}}});
}

}  // namespace

bool IsOwnFault(int signal) {
  constexpr std::array<int, 6> kFaults = {SIGSEGV, SIGABRT, SIGBUS, SIGILL, SIGFPE, SIGSYS};
  return std::find(kFaults.begin(), kFaults.end(), signal) != kFaults.end();
}

bool IsForOneOrder(absl::string_view kill_reason) {
  return kill_reason == "time_limit" || kill_reason == "deadline" || kill_reason == "cancelled";
}

absl::Status CallDeadlineStatus(absl::string_view where) {
  return absl::DeadlineExceededError(absl::StrCat("the call's time ran out ", where));
}

absl::Status QueueEndStatus(const Job& job, absl::Time now, double queue_seconds) {
  if (now >= job.deadline) return CallDeadlineStatus("in the queue");
  return WithDetails(
      absl::DeadlineExceededError(absl::StrCat(
          "the call waited ", queue_seconds, " s in the queue, the most for memory, or for one ",
          "that has no deadline of its own; give it one that is longer, or call again when '",
          job.device, "' is less busy")),
      {.reason = "QUEUE_WAIT",
       .field = "",
       .retry_after = std::nullopt,
       .metadata = {{"limit", "queue_seconds"}, {"value", absl::StrCat(queue_seconds)}}});
}

absl::Status KernelTimeStatus(const Job& job) {
  return WithDetails(
      absl::DeadlineExceededError(absl::StrCat("kernel '", job.kernel,
                                               "' ran longer than its limit of ",
                                               absl::ToDoubleSeconds(job.kernel_time_limit), " s")),
      {.reason = "KERNEL_TIME_LIMIT",
       .field = "",
       .retry_after = std::nullopt,
       .metadata = {
           {"limit", job.program != nullptr ? "submitted_kernel_seconds" : "kernel_seconds"},
           {"value", absl::StrCat(absl::ToDoubleSeconds(job.kernel_time_limit))}}});
}

absl::Status WorkTimeStatus(const Job& job) {
  return WithReason(
      absl::DeadlineExceededError(absl::StrCat(
          "the work of this call took longer than ", absl::FormatDuration(WallTimeLimit(job)),
          " in all; its launches may take ", absl::FormatDuration(job.kernel_time_limit),
          ", the rest is for generating, restoring and verifying")),
      "WORK_TIME_LIMIT");
}

absl::Status InputTimeStatus(absl::Duration limit) {
  return WithReason(
      absl::DeadlineExceededError(absl::StrCat("what comes before the first launch of this call, "
                                               "as making its inputs, took longer than ",
                                               absl::FormatDuration(limit),
                                               " while others waited; want fewer values, or values "
                                               "that are sent, or a longer kernel time "
                                               "limit")),
      "WORK_TIME_LIMIT");
}

// A worker that an operator had killed is nobody's fault.
bool IsOwnFault(const WorkerLoss& loss) {
  if (loss.reason == "signal") return IsOwnFault(loss.signal);
  return loss.reason != kRestart;
}

bool OverwritesInputs(const Job& job) {
  return std::any_of(job.outputs.begin(), job.outputs.end(), [&](const JobOutput& output) {
    return output.in_place_of && job.inputs[*output.in_place_of].source != SourceKind::kGenerate;
  });
}

absl::Duration WallTimeLimit(const Job& job) {
  absl::Duration limit = job.kernel_time_limit;
  const absl::Duration pass = absl::Seconds(
      static_cast<double>(std::max(job.operand_bytes, job.memory.size)) / kSlowestPass);
  const bool generates = std::any_of(job.inputs.begin(), job.inputs.end(), [](const auto& input) {
    return input.source == SourceKind::kGenerate;
  });
  const bool sums = std::any_of(job.outputs.begin(), job.outputs.end(), [](const auto& output) {
    return output.sink == SinkKind::kChecksum;
  });
  // Copies to a device and back, and pages that are pinned first.
  constexpr absl::Duration kPinning = absl::Seconds(1);
  if (!job.host_memory) limit += pass + kPinning;
  // To a guest's memory and back.
  if (job.program != nullptr) limit += pass;
  if (generates) limit += 2 * pass;  // Elements of a byte take as long as those of more.
  if (sums) limit += pass;
  // The reference computes in double precision, one unit at a time.
  if (job.verify) limit += pass + job.kernel_time_limit;
  // Each checked launch has all its operands written and read by the server; beyond the first two a
  // guest ends itself with its budget.
  if (job.check) {
    const absl::Duration budget = job.measure ? job.measure->budget : absl::ZeroDuration();
    limit += std::min(pass * static_cast<double>(job.check->most_launches),
                      2 * pass + job.kernel_time_limit + budget);
  }
  // Caches are flushed and inputs restored between samples, outside the kernel time.
  if (job.measure) limit += job.kernel_time_limit + job.measure->budget;
  return limit;
}

absl::Status CrashStatus(const Job& job, bool reference, WorkerRole role, const WorkerLoss& loss) {
  if (loss.planned) {
    return WithDetails(absl::UnavailableError("the server shut down while this call ran"),
                       {.reason = "DRAINING",
                        .field = "",
                        .retry_after = absl::Seconds(1),
                        .metadata = {{"execution_state", "UNKNOWN"}}});
  }
  const bool own_fault = IsOwnFault(loss);
  if (role == WorkerRole::kGuest && own_fault) {
    if (loss.reason == "time_limit") return KernelTimeStatus(job);
    return WithReason(absl::FailedPreconditionError(
                          absl::StrCat(reference ? "the reference program" : "the submitted kernel",
                                       " ended its worker (", loss.detail, ")")),
                      "KERNEL_FAULT");
  }
  if (loss.reason == "signal" && own_fault) {
    return absl::InternalError(absl::StrCat("kernel '", job.kernel, "' crashed its worker (",
                                            loss.detail, "); please report this"));
  }
  return Crashed(job, loss.detail, "UNKNOWN");
}

// ---- Loss. ----

// Orders run in the order sent, and the status page names each before it begins.
enum class Scheduler::Fate {
  kRunning,
  kRan,       // Before the running one: it ended, and its report is lost with the worker.
  kNotBegun,  // Behind the running one.
  kSuspect,   // Nothing is known of it.
};

// None that is left was running. All that the worker said was heard, unless it broke the protocol.
Scheduler::Fate Scheduler::FateWithoutRunning(const WorkerLoss& loss, bool oldest) {
  if (loss.reason == "protocol") return Fate::kSuspect;
  if (loss.spoiled) return Fate::kNotBegun;
  // The running one was answered. If none ever ran, the worker may have died of reading the oldest.
  return loss.running == 0 && oldest ? Fate::kSuspect : Fate::kNotBegun;
}

// What a guest says that it runs may be a lie: if none of its orders does, it is the oldest's
// doing, so that no job is sent to guest after guest.
Scheduler::Entries::iterator Scheduler::FindRunning(Entries& held, const WorkerLoss& loss,
                                                    WorkerRole role) {
  const auto is_running = [&](const auto& entry) { return entry->id == loss.running; };
  const auto running = std::find_if(held.begin(), held.end(), is_running);
  if (running != held.end()) return running;
  // A worker that breaks the protocol most likely did so with the answer to its oldest order.
  const bool oldest = (role == WorkerRole::kGuest && !loss.spoiled) ||
                      (loss.running == 0 && loss.reason == "protocol");
  return oldest ? held.begin() : held.end();
}

void Scheduler::OnWorkerReady(absl::string_view name, std::shared_ptr<WorkerPort> worker,
                              std::uint64_t generation) {
  const absl::Time now = clock_.Now();
  Outbox out;
  bool guest = false;
  {
    MutexLock lock(mutex_);
    Device& device = DeviceOf(name);
    guest = device.guests != nullptr;
    device.worker = std::move(worker);
    device.generation = generation;
    device.down.reset();
    device.unkillable.reset();
    device.killing = device.restarting = false;
    device.culprit.clear();
    device.stuck = absl::ZeroDuration();
    if (guest) {
      device.guests->starting = device.guests->wanted = false;
      device.guests->since = now;
      device.guests->principal.clear();
      device.guests->spent = false;
    }
    Dispatch(device, now, out);
  }
  if (!guest) observer_.OnWorkerUp(name);
  Flush(out);
}

void Scheduler::OnStartTook(absl::string_view name, absl::Duration time) {
  MutexLock lock(mutex_);
  DeviceOf(name).start_took = time;
}

void Scheduler::OnWorkerLost(absl::string_view name, std::uint64_t generation,
                             const WorkerLoss& loss) {
  const absl::Time now = clock_.Now();
  Outbox out;
  std::vector<std::shared_ptr<Entry>> lost;  // Their memory goes back after the lock.
  std::string guest_of;
  {
    MutexLock lock(mutex_);
    Device& device = DeviceOf(name);
    if (device.generation != generation || device.worker == nullptr) return;
    const WorkerRole role = std::exchange(device.worker, nullptr)->role();
    device.commands.clear();
    ForgetCopies(device);
    lost.swap(device.sent);
    const auto running = FindRunning(lost, loss, role);
    const bool by_an_order = IsOwnFault(loss) && !loss.planned;
    if (running != lost.end() && by_an_order) {
      if (device.culprit.empty()) device.culprit = (*running)->job().principal;
      Blame(device, *running, loss, out);
    }
    for (auto it = lost.begin(); it != lost.end(); ++it) {
      const Fate fate = it == running           ? Fate::kRunning
                        : running != lost.end() ? (it < running ? Fate::kRan : Fate::kNotBegun)
                                                : FateWithoutRunning(loss, it == lost.begin());
      if (fate == Fate::kSuspect && by_an_order && device.culprit.empty()) {
        device.culprit = (*it)->job().principal;
      }
      LoseJob(*it, fate, loss, role, now, out);
    }
    device.unkillable.reset();
    if (device.other != nullptr) Dispatch(device, now, out);
    guest_of = device.guests != nullptr ? device.other->name : "";
  }
  if (guest_of.empty())
    observer_.OnWorkerLost(name, loss.reason);
  else
    observer_.OnGuestLost(guest_of, loss.reason);
  Flush(out);
}

void Scheduler::LoseJob(const std::shared_ptr<Entry>& entry, Fate fate, const WorkerLoss& loss,
                        WorkerRole role, absl::Time now, Outbox& out) {
  const Job& job = entry->job();
  // Only a job that may be to blame for the loss is sent a limited number of times.
  if (fate != Fate::kSuspect) --entry->sends;
  const bool may_repeat = role == WorkerRole::kTrusted && !OverwritesInputs(job);
  // It began while the worker was being killed for the order before it.
  const bool bystander = fate == Fate::kRunning && may_repeat && IsForOneOrder(loss.reason);
  const bool again = (fate != Fate::kRunning || bystander) && !entry->answered &&
                     !entry->cancelled && entry->sends < kMostSends &&
                     (fate == Fate::kNotBegun || may_repeat);
  if (again) {
    BecomeReadyAgain(*entry, now);
    // Who was lost by its own client's order is served in its turn, not before all others: or else
    // each loss would put what is left of that client's calls before everybody else's.
    const bool own = job.principal == entry->device->culprit;
    if (role != WorkerRole::kTrusted || own) return QueueReady(*entry);
    return entry->device->queue.PutBack(job.principal, entry->id);
  }
  if (!entry->answered) {
    absl::Status status =
        entry->cancelled ? *entry->cancelled
        : fate == Fate::kRunning || loss.planned
            ? CrashStatus(entry->given(), entry->reference, role, loss)
            : Crashed(job, loss.detail, fate == Fate::kNotBegun ? "NOT_STARTED" : "UNKNOWN");
    Answer(*entry, {.status = std::move(status), .outcome = std::nullopt}, out);
  }
  Forget(*entry);
}

void Scheduler::OnDeviceDown(absl::string_view name, const absl::Status& why) {
  Outbox out;
  {
    MutexLock lock(mutex_);
    Device& device = DeviceOf(name);
    device.down = why;
    EndWaitingIf(
        [&](const Entry& entry) {
          return entry.device == &device || CannotMeasure(*entry.device, entry.job());
        },
        why, out);
  }
  Flush(out);
}

void Scheduler::EndAllWaiting(const Device& device, const absl::Status& why, Outbox& out) {
  EndWaitingIf([&](const Entry& entry) { return entry.device == &device; }, why, out);
}

void Scheduler::EndWaitingIf(const std::function<bool(const Entry&)>& is_meant,
                             const absl::Status& why, Outbox& out) {
  std::vector<std::shared_ptr<Entry>> ended;
  for (const auto& [id, entry] : jobs_) {
    if (entry->state != Entry::State::kSent && is_meant(*entry)) ended.push_back(entry);
  }
  for (const auto& entry : ended) EndWaiting(*entry, why, out);
}

void Scheduler::EndProgramsOf(absl::string_view module, const absl::Status& why) {
  Outbox out;
  {
    MutexLock lock(mutex_);
    const auto runs_it = [&](const Entry& entry) {
      const Job& job = entry.job();
      const JobProgram* reference = job.check ? job.check->program.get() : nullptr;
      return (job.program != nullptr && HasModule(*job.program, module)) ||
             (reference != nullptr && HasModule(*reference, module));
    };
    EndWaitingIf(runs_it, why, out);
  }
  Flush(out);
}

void Scheduler::OnKillFailed(absl::string_view name, const WorkerLoss& loss,
                             const absl::Status& why) {
  Outbox out;
  {
    MutexLock lock(mutex_);
    Device& device = DeviceOf(name);
    device.killing = true;
    // Nothing may run beside what still runs there.
    device.unkillable = why;
    if (device.other != nullptr) EndAllWaiting(*device.other, why, out);
    for (const auto& entry : device.sent) {
      if (entry->answered) continue;
      absl::Status status = entry->cancelled ? *entry->cancelled
                            : loss.planned
                                ? CrashStatus(entry->job(), false, WorkerRole::kTrusted, loss)
                                : Crashed(entry->job(), loss.detail, "UNKNOWN");
      Answer(*entry, {.status = std::move(status), .outcome = std::nullopt}, out);
    }
  }
  Flush(out);
  OnDeviceDown(name, why);
}

// ---- Time. ----

void Scheduler::Kill(Device& device, absl::string_view reason, Outbox& out) {
  if (device.worker == nullptr || std::exchange(device.killing, true)) return;
  out.kills.push_back({device.worker, std::string(reason)});
}

void Scheduler::TickWaiting(absl::Time now, Outbox& out) {
  std::vector<std::shared_ptr<Entry>> late;
  for (const auto& [id, entry] : jobs_) {
    if (entry->state != Entry::State::kSent && now >= entry->wait_until) late.push_back(entry);
  }
  for (const auto& entry : late) {
    EndWaiting(*entry, QueueEndStatus(entry->job(), now, limits_.queue_seconds), out);
  }
  if (!wait_for_memory_.empty()) RetryMemory(out);
}

void Scheduler::TickRunning(Entry& entry, const WorkerPort::Running& running, absl::Time now,
                            Outbox& out) {
  const Job& job = entry.job();
  if (!entry.seen_running) entry.seen_running = now;
  // A worker that says something else wins no time: a launch that is yet to come began at once.
  const absl::Time began = std::max(entry.sent_at, std::min(running.since, *entry.seen_running));
  const bool launches = running.launched != absl::InfiniteFuture();
  const absl::Time launched =
      launches && running.launched > now ? began : std::max(running.launched, began);
  if (launches) {
    if (entry.launched_at < entry.sent_at) {
      entry.launched_at = launched;
      entry.launched_before = entry.launched_for;
    }
    entry.launched_for = entry.launched_before + (now - entry.launched_at);
  }
  const absl::Duration for_inputs = std::max(job.kernel_time_limit, kLeastForInputs);
  const bool begun = entry.launched_at >= entry.sent_at;
  if (!begun && now >= began + for_inputs + kGrace && OthersWait(entry, now)) {
    return GiveUp(entry, InputTimeStatus(for_inputs), "time_limit", began + for_inputs, now, out);
  }
  const absl::Duration work = WallTimeLimit(job);
  const absl::Time launch_end = launched + job.kernel_time_limit;
  const absl::Time end = std::min(launch_end, began + work);
  if (now >= end + kGrace) {
    const bool kernel = launch_end <= began + work + kGrace || work == job.kernel_time_limit;
    return GiveUp(entry, kernel ? KernelTimeStatus(entry.given()) : WorkTimeStatus(job),
                  "time_limit", end, now, out);
  }
  if (now >= job.deadline) {
    TellToStop(entry, CallDeadlineStatus("while the kernel ran"), out);
    if (now < job.deadline + kGrace) return;
    entry.overlong = job.deadline - launched >= kOverlong;
    return GiveUp(entry, *entry.cancelled, "deadline", job.deadline, now, out);
  }
  // No kernel of the catalogue is endless: while nobody waits for its end it costs no worker.
  const bool submitted = entry.device->guests != nullptr;
  if (!entry.cancelled || (!submitted && !KeepsOthersWaiting(entry, now))) return;
  const absl::Time stopped = std::max(entry.told_to_stop, began);
  if (now >= stopped + kGrace) {
    entry.overlong = stopped - launched >= kOverlong;
    GiveUp(entry, *entry.cancelled, "cancelled", stopped, now, out);
  }
}

void Scheduler::GiveUp(Entry& entry, absl::Status why, absl::string_view reason, absl::Time end,
                       absl::Time now, Outbox& out) {
  TellToStop(entry, why, out);
  if (!entry.answered) Answer(entry, {.status = std::move(why), .outcome = std::nullopt}, out);
  const absl::Duration grace = std::clamp(entry.device->start_took, kGrace, kLongestGrace);
  if (now < end + grace) return;
  if (!entry.device->killing) entry.device->culprit = entry.job().principal;
  Kill(*entry.device, reason, out);
}

void Scheduler::TickSent(Device& device, const WorkerPort::Running& running, absl::Time now,
                         Outbox& out) {
  bool runs_one = false;
  for (const auto& entry : device.sent) {
    // A guest may name any of its orders, one after the other; they run in the order sent.
    const bool may_run = device.guests == nullptr || entry == device.sent.front();
    if (entry->id == running.id && may_run) {
      runs_one = true;
      TickRunning(*entry, running, now, out);
      continue;
    }
    if (now >= entry->job().deadline) {
      TellToStop(*entry, CallDeadlineStatus("before the kernel began"), out);
    }
    // It waits at the worker behind others: the client need not wait with it.
    if (entry->cancelled && !entry->answered) {
      Answer(*entry, {.status = *entry->cancelled, .outcome = std::nullopt}, out);
    }
  }
  device.stuck = runs_one || device.sent.empty() ? absl::ZeroDuration()
                                                 : device.stuck + std::min(now - ticked_, kLook);
  if (device.stuck > kStuck) Kill(device, "hang", out);
}

void Scheduler::Tick() {
  struct Seen {
    Device* device;
    std::uint64_t generation;
    std::shared_ptr<WorkerPort> worker;
  };
  absl::InlinedVector<Seen, 4> seen;
  {
    MutexLock lock(mutex_);
    for (const auto& device : devices_) {
      if (device->worker != nullptr && !device->sent.empty()) {
        seen.push_back({device.get(), device->generation, device->worker});
      }
    }
  }
  absl::InlinedVector<WorkerPort::Running, 4> running;
  for (const Seen& one : seen) running.push_back(one.worker->running());

  const absl::Time now = clock_.Now();
  Outbox out;
  {
    MutexLock lock(mutex_);
    for (std::size_t i = 0; i < seen.size(); ++i) {
      if (seen[i].device->generation == seen[i].generation) {
        TickSent(*seen[i].device, running[i], now, out);
        RecallForOthers(*seen[i].device, now, out);
        YieldToOthers(*seen[i].device, now, out);
      }
    }
    ticked_ = now;
    TickWaiting(now, out);
    for (const auto& device : devices_) Dispatch(*device, now, out);
  }
  Flush(out);
}

}  // namespace gridclock
