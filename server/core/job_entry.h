// What the scheduler keeps of a job and of a device. Of server/core alone.
#ifndef GRIDCLOCK_SERVER_CORE_JOB_ENTRY_H_
#define GRIDCLOCK_SERVER_CORE_JOB_ENTRY_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "server/core/fair_queue.h"
#include "server/core/job_counts.h"
#include "server/core/scheduler.h"

namespace gridclock {

struct AcceptedEvent {
  AcceptedInfo info;
};
struct SamplesEvent {
  std::int64_t first = 0;
  std::vector<double> samples_ns;
  bool warmup = false;
};

// All members but `listener` and `active`'s job belong to the scheduler's lock.
struct Scheduler::Entry {
  enum class State { kWaitsForMemory, kWaitsForInputs, kReady, kSent };

  const Job& job() const { return active != nullptr ? active->job() : *waiting; }
  // What its guest is given. The fleet prepares the reference without the scheduler's lock, and is
  // done with it when `reference` is set.
  const Job& given() const { return reference ? GivenNow(job()) : job(); }

  JobId id = 0;
  State state = State::kWaitsForMemory;
  Device* device = nullptr;
  std::unique_ptr<const Job> waiting;       // Of a job that had to wait for memory.
  std::shared_ptr<const ActiveJob> active;  // From then on; the rpc holds it too.
  std::shared_ptr<JobListener> listener;
  absl::Time queued_at, ready_at, sent_at;
  absl::Time wait_until;                   // When waiting in the queue ends.
  std::optional<absl::Time> seen_running;  // When a tick first saw it run at this worker.
  // What ticks saw of its launches: from the begin of the first to when the last was under way. One
  // that is sent again, to be compared too, has launched in the orders before.
  absl::Time launched_at = absl::InfinitePast();
  absl::Duration launched_for, launched_before;
  bool overlong = false;  // One had run for kOverlong when the call ended.
  int sends = 0;
  std::optional<absl::Duration> waited;  // Until the order was first sent.
  bool arrives = false;   // Its memory or inputs are still to come: it has no place in the queue.
  bool early = false;     // A worker was told of inputs that arrived.
  bool yields = false;    // The worker was told that its measurement is to make room.
  bool recalled = false;  // The worker was told to give it back if it has not begun it.
  bool answered = false;  // The listener had its end; the worker has not said so yet.
  std::optional<absl::Status> cancelled;  // Why it was told to stop.
  absl::Time told_to_stop;                // When.
  std::optional<Outcome> run;  // Of a job whose outputs are being compared: what its guest said.
  bool reference = false;      // The program runs, or is to, that it is held against.

  // Events reach the listener one at a time, in order: whoever finds `delivering` false delivers,
  // and what comes up meanwhile waits here.
  bool delivering = false;
  std::vector<JobEvent> mailbox;
};

enum class Scheduler::Word { kOrder, kCancel, kYield, kArrived };

// What a lane for submitted code has beside.
struct Scheduler::Guests {
  GuestPort* port = nullptr;
  bool wanted = true;     // Though no job waits.
  bool starting = false;  // One was asked for and is not ready.
  absl::Time retry = absl::InfinitePast();
  std::string principal;  // Whose jobs the guest runs; empty: it ran none.
  bool spent = false;     // It runs a reference, and is to run nothing else.
  absl::Time since;       // It does so, or is ready.
  // The end of what the guest said of its last order: it works on one after the other.
  absl::Time worked_until = absl::InfinitePast();
  JobCounts away;  // Jobs of this lane that are in the other one, to be compared.
};

// One lane of a device; most have no other.
struct Scheduler::Device {
  // For the worker, in the order of `sent`. One thread at a time speaks to a worker.
  struct Command {
    std::shared_ptr<Entry> entry;
    Word word = Word::kOrder;
    InputArrival arrival;  // Of kArrived.
  };

  // Jobs of this lane that wait in a queue, or at a worker behind the one that runs. One that is
  // compared in the other lane waits there for this one.
  int waiting() const;
  int waiting_of(absl::string_view principal) const;
  // Jobs of this lane, which is for submitted code, that wait to be compared.
  int away(std::optional<absl::string_view> principal) const;
  // `here`: what waits in this lane, whichever it is of.
  int WithAway(int here, std::optional<absl::string_view> principal) const;
  // True if `entry`, which is here to be compared, is of the other lane.
  bool IsHereToCompare(const Entry& entry) const {
    return entry.job().program != nullptr && guests == nullptr && other != nullptr;
  }

  // Of the device, whose other lane this may be.
  const std::string& device_name() const { return guests != nullptr ? other->name : name; }

  std::string name;
  FairQueue queue;
  JobCounts arriving;                        // Jobs whose memory or inputs are still to come.
  std::vector<std::shared_ptr<Entry>> sent;  // At the worker, in the order of their orders.
  std::shared_ptr<WorkerPort> worker;        // The fleet's too; null while there is none.
  std::uint64_t generation = 0;
  std::optional<absl::Status> down;
  bool killing = false;              // This incarnation was told to die.
  bool restarting = false;           // It is to die once it has no more orders.
  bool drained = false;              // By an operator: no new jobs.
  absl::Duration start_took;         // Of a worker; zero: not known yet.
  bool speaking = false;             // A thread is running commands.
  std::vector<Command> commands;     // For it, or for the next one.
  absl::Duration run_time;           // Moving average of a job's time at the worker.
  absl::Time last_start, last_done;  // Of any job that became ready, that ended.
  absl::Duration stuck;              // For so long the worker holds orders and runs none.
  std::string culprit;  // The principal whose order its worker is lost by, once that is known.

  Device* other = nullptr;         // The lane beside it.
  std::unique_ptr<Guests> guests;  // Of the one for submitted code.
  bool turn = true;                // It may send; one of two lanes may.
  int turn_sent = 0;               // Since it has the turn.
  absl::Time turn_since;
  bool copying = false;  // Its worker may be at inputs that it was told of.
  absl::Time last_arrival = absl::InfinitePast();  // When it was last told of one, or to stop.
  std::optional<absl::Status> unkillable;          // Its worker was killed and is still there.
};

// What is to be done once the lock is free.
struct Scheduler::Outbox {
  struct Speech {
    Device* device = nullptr;
    std::shared_ptr<WorkerPort> worker;
    std::uint64_t generation = 0;
    absl::InlinedVector<Device::Command, 2> commands;
  };
  struct Mail {
    std::shared_ptr<Entry> entry;
    absl::InlinedVector<JobEvent, 2> events;
  };
  struct Kill {
    std::shared_ptr<WorkerPort> worker;
    std::string reason;
  };
  struct LostGuest {
    GuestPort* port = nullptr;
    std::shared_ptr<Entry> entry;
    const Job* given = nullptr;  // Of `entry`, that the guest had when it was lost.
    std::string why;
  };
  absl::InlinedVector<Speech, 1> speeches;
  absl::InlinedVector<Mail, 2> mails;
  std::vector<Kill> kills;
  std::vector<GuestPort*> starts;
  std::vector<LostGuest> blames;
};

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

// A single launch on little memory: many of them may wait at a worker.
bool IsSmall(const Job& job);
// Status values of jobs that a worker's loss ends. `reference`: the job is what another is held
// against.
absl::Status CrashStatus(const Job& job, bool reference, WorkerRole role, const WorkerLoss& loss);
// What a job may take at its worker in all. Each launch has the kernel time limit; this bounds the
// work around launches too, and what a worker does that says of no launch that it is under way.
absl::Duration WallTimeLimit(const Job& job);
absl::Status KernelTimeStatus(const Job& job);
absl::Status WorkTimeStatus(const Job& job);
absl::Status CallDeadlineStatus(absl::string_view where);
absl::Status QueueEndStatus(const Job& job, absl::Time now, double queue_seconds);
bool IsOwnFault(const WorkerLoss& loss);
// True if a second run would read inputs that the first one may have overwritten.
bool OverwritesInputs(const Job& job);

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_CORE_JOB_ENTRY_H_
