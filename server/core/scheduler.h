// Who runs when: bounded queues, one per device, fair between principals; deadlines; who holds
// which job; the jobs of a worker that died. Pure decisions: the fleet acts, the clock is given.
#ifndef GRIDCLOCK_SERVER_CORE_SCHEDULER_H_
#define GRIDCLOCK_SERVER_CORE_SCHEDULER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "proto/types/device.h"
#include "proto/types/job.h"
#include "server/core/arena_allocator.h"
#include "server/core/limits.h"
#include "server/core/observer.h"

namespace gridclock {

// How much of an input of a job that still waits for inputs is there: the first `bytes` of its
// memory, which do not change any more.
struct InputArrival {
  std::size_t input = 0;
  std::uint64_t bytes = 0;
};

// A worker process as the scheduler sees it; implemented by server/fleet and by a fake in tests.
// Called without the scheduler's lock. Must be safe to call after the worker died.
class WorkerPort {
 public:
  virtual ~WorkerPort() = default;
  virtual WorkerRole role() const = 0;
  // Sends an order. A false answer means that the worker is dying: its loss will be reported.
  virtual bool Send(const Job& job, std::uint64_t generation) = 0;
  // Several at once, in order, where that is cheaper.
  virtual bool SendAll(std::span<const Job* const> jobs, std::uint64_t generation);
  // Also of a job that was not sent: its inputs that arrived are of no more use. A guest hears
  // nothing of such a one.
  virtual void Cancel(JobId id) = 0;
  // What is there of a job that will come may be copied: by the worker to its device, and to a
  // guest before this returns. May be left unsaid.
  virtual void Arrived(const Job&, std::uint64_t /*generation*/, const InputArrival&) {}
  // The calling thread may take the worker's answers itself until this order's came or it has
  // taken longer than a small call does; so that no other thread must wake for it.
  virtual void Await(JobId) {}
  // Others wait for the device: the measurement that runs is to end with what it has.
  virtual void Yield(JobId id) = 0;
  // SIGKILL; its loss will be reported with this reason.
  virtual void Kill(absl::string_view reason) = 0;
  // The order that runs in the worker now and since when; id 0 if none. The worker says so, and may
  // say anything.
  struct Running {
    JobId id = 0;
    absl::Time since;
    absl::Time launched = absl::InfiniteFuture();  // When the launch under way began, if one is.
  };
  virtual Running running() const = 0;
  // It holds more than a fresh one needs, and is to be replaced once it has no orders.
  virtual bool worn() const { return false; }
};

// Who starts the guests of one device; implemented by server/fleet and by a fake in tests. Called
// without the scheduler's lock.
class GuestPort {
 public:
  virtual ~GuestPort() = default;
  // A guest is wanted: OnWorkerReady or OnGuestNotReady follows.
  virtual void Start() = 0;
  // This job, as the guest was given it, ended its guest. `why`: "signal 11".
  virtual void Blame(const Job& job, absl::string_view why) = 0;
};

// The lane of a device for submitted code, beside the one for the catalogue, which has the device's
// name. What the fleet reports of a guest it reports of this name.
std::string GuestLane(absl::string_view device);

// What calls end with that a server which is shutting down does not run.
absl::Status DrainingStatus();

// A process brings this signal upon itself; the others come from outside.
bool IsOwnFault(int signal);

// True of what the scheduler kills a worker for whose order outlived its time or its call. The
// worker did nothing wrong.
bool IsForOneOrder(absl::string_view kill_reason);

// What calls for a device end with that an operator drained.
absl::Status DeviceDrainedStatus(absl::string_view device);

// Why a worker is killed that an operator wants replaced.
inline constexpr char kRestart[] = "restart";

// A job that has not ended, or is still sent, for those who ask.
struct JobView {
  enum class State : std::uint8_t {
    kWaitsForMemory = 1,
    kWaitsForInputs,
    kQueued,
    kRunning,
    kStopping,
    kSending,  // It is over; its client has not taken the outputs, which hold memory.
  };
  JobId id = 0;
  State state = State::kQueued;
  std::string principal, kernel, variant, device, request_id;
  absl::Duration age;   // Since it arrived.
  absl::Duration sent;  // Since it went to its worker; zero before.
  bool submitted = false, measured = false;
};

JobView ViewOf(const Job& job, JobView::State state, absl::Time now);

// Why a worker is gone.
struct WorkerLoss {
  std::string reason;    // As JobObserver::OnWorkerLost.
  int signal = 0;        // That ended it, if any and not ours.
  JobId running = 0;     // From its status page: the order that was running, or 0.
  std::string detail;    // "exit code 3".
  bool planned = false;  // The server ended it, because it ends itself.
  bool spoiled = false;  // It ended because of an order that it answered.
};

// A job that holds memory and a place. Freed memory returns to the arena when the last owner (the
// scheduler, the rpc, slices on their way to the client) lets go.
class ActiveJob {
 public:
  ActiveJob(Job job, ArenaAllocator::Block block);
  const Job& job() const { return job_; }

 private:
  Job job_;
  ArenaAllocator::Block block_;
};

struct AcceptedEvent;
struct SamplesEvent;
using JobEvent = std::variant<AcceptedEvent, SamplesEvent, JobResult>;

// Thread-safe. Listener, observer and ports are called without the lock held.
//
// A worker runs its orders strictly in the order sent, so several small ones may wait at it: up to
// kSmallWindow single launches of at most kSmallBytes, kQuickWindow where its orders are known to
// take microseconds, or one large order that runs and one more that waits. A measured one is there
// alone. All but the one that runs count as waiting, wherever they are.
//
// A device that takes submitted code has two lanes, each with a queue and a worker of its own. One
// of them has the turn: it alone sends, and it passes the turn when its orders are done and the
// other waits. So no guest ever runs beside the catalogue; and no guest starts or ends beside a job
// that is measured. A guest runs the jobs of one principal; for another's it is replaced.
class Scheduler {
 public:
  static constexpr std::size_t kSmallWindow = 16;
  static constexpr std::size_t kQuickWindow = 64;
  static constexpr std::size_t kLargeWindow = 2;
  static constexpr std::uint64_t kSmallBytes = 64 * 1024;
  // Jobs of a lane whose inputs are copied while they arrive, of all principals and of one: what
  // may never become an order.
  static constexpr int kMostEarly = 8;
  static constexpr int kMostEarlyOfOne = 4;
  // How long an order may run before those that wait behind it at the worker are asked back where
  // another principal's wait too.
  static constexpr absl::Duration kPatience = absl::Milliseconds(10);
  // Of two lanes that both wait: how long one sends small jobs before it is the other's turn.
  static constexpr absl::Duration kTurn = absl::Milliseconds(10);
  // How long a guest stays with a principal that has jobs while another's wait.
  static constexpr absl::Duration kStay = absl::Seconds(1);
  // How many turns of others a principal waits for after a job of its own cost a worker.
  static constexpr int kCharge = 4;
  // `queue` bounds the jobs that could run; as many more may wait for memory or inputs. For
  // principals that have neither there are as many places again.
  static constexpr int kMostQueues = 3;
  // A launch of submitted code that had run for so long when its call ended, and ran on until it
  // was killed, counts against its module as one that reached its kernel time limit.
  static constexpr absl::Duration kOverlong = absl::Seconds(5);
  // Between the end of a job's time and its answer.
  static constexpr absl::Duration kGrace = absl::Milliseconds(250);
  // Its worker is killed then or, where a new one takes longer to start, after as long: until then
  // the order may still end and cost the others less than a start. After so much in any case.
  static constexpr absl::Duration kLongestGrace = absl::Seconds(5);

  Scheduler(const Clock& clock, const Limits& limits, ArenaAllocator& arena, JobObserver& observer);
  ~Scheduler();

  // Takes a place in the queue of job.device and its memory. RESOURCE_EXHAUSTED (QUEUE_FULL,
  // MEMORY_FULL, with retry_after) at once if there is none; with `wait_for_memory` the job waits
  // for memory until its deadline and OnAccepted comes later. The job's id is set, and all its
  // ranges are moved to where its block lies in the arena. If it fails there is no call of
  // `listener`; else OnFinished comes, also to a job that never got its memory.
  absl::StatusOr<JobId> Submit(Job job, std::shared_ptr<JobListener> listener,
                               bool wait_for_memory);
  // The job's memory; null before OnAccepted and after the end.
  std::shared_ptr<const ActiveJob> Active(JobId id) const ABSL_LOCKS_EXCLUDED(mutex_);
  // The same, for a job that the worker of this generation holds, answered or not; else null.
  std::shared_ptr<const ActiveJob> Sent(JobId id, std::uint64_t generation) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // More of an input is in memory than before. It may be copied meanwhile, if the device or the
  // guest has memory of its own and nothing else to do.
  void Arrived(JobId id, const InputArrival& arrival);
  // All inputs are in memory: the job may run.
  void Start(JobId id);
  // By the client, or by the server with another status. Queued: ends at once. Running: the worker
  // is told and the job ends when it stops, at the latest at its kernel time limit; after kGrace,
  // and its process soon after, if it is submitted code or another job waits for the device.
  void Cancel(JobId id, absl::Status status);

  // For an operator. Oldest first.
  std::vector<JobView> Jobs() const ABSL_LOCKS_EXCLUDED(mutex_);
  // As Cancel. Nullopt if the job has ended or never was; else what it was.
  std::optional<JobView> CancelByOperator(JobId id, absl::Status status)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Both lanes of the device refuse new jobs (UNAVAILABLE, DEVICE_DRAINED), or take them again;
  // those that they have go on.
  void SetDrained(absl::string_view device, bool drained) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the device's workers for new ones: at once, or when they have answered the orders that
  // they hold. How many those are; nullopt if there is no worker.
  std::optional<int> RestartWorkers(absl::string_view device, bool now) ABSL_LOCKS_EXCLUDED(mutex_);

  // From now on the device takes jobs with a program, as soon as `port`, which outlives this, has
  // started a guest. One is wanted at once, to learn what it can do.
  void AddGuests(absl::string_view device, GuestPort& port);
  // A guest that was asked for ended before it was ready; none is asked for before `retry`.
  void OnGuestNotReady(absl::string_view lane, absl::Time retry);
  // Ends the waiting jobs whose program has this module, which is run no more.
  void EndProgramsOf(absl::string_view module, const absl::Status& why);

  // From the fleet. A worker serves one device, or its lane for guests; `generation` counts its
  // incarnations, and no two workers of a scheduler have the same.
  void OnWorkerReady(absl::string_view device, std::shared_ptr<WorkerPort> worker,
                     std::uint64_t generation);
  // From the spawn of a worker that need not measure its device until it was ready: what the next
  // one will cost.
  void OnStartTook(absl::string_view device, absl::Duration time);
  void OnWorkerLost(absl::string_view device, std::uint64_t generation, const WorkerLoss& loss);
  // The worker was killed and is still there, as a driver may keep it. Nobody waits for it any
  // longer: its calls are answered as lost (it keeps their memory), and the device is down by `why`
  // until another worker is ready.
  void OnKillFailed(absl::string_view device, const WorkerLoss& loss, const absl::Status& why);
  void OnSamples(JobId id, std::uint64_t generation, std::int64_t first,
                 std::span<const double> samples_ns, bool warmup);
  struct WorkerAnswer {
    JobId id = 0;
    JobResult result;
    bool spoiled = false;  // The worker is of no more use, and ends.
  };
  // What a worker answered at once; the orders that take their places go out together. Returns the
  // ids of jobs that it does not hold: unknown, answered before or stale.
  // To the outcomes' phases RECEIVED and QUEUED are added in front.
  std::vector<JobId> OnDone(std::uint64_t generation, std::span<WorkerAnswer> answers);
  // The same for one; false if the worker does not hold it.
  bool OnDone(JobId id, std::uint64_t generation, JobResult result);
  // The device cannot come back soon (breaker open): its queue fails with UNAVAILABLE, new jobs
  // too.
  void OnDeviceDown(absl::string_view device, const absl::Status& why);

  // Deadlines of waiting and running jobs. Call every few milliseconds.
  void Tick();
  // No new jobs (UNAVAILABLE, DRAINING); those that are in go on.
  void Drain();
  bool idle() const;

  // These count both lanes of a device.
  // All jobs, those whose memory or inputs are still to come too.
  int depth(absl::string_view device) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Its worker holds orders.
  bool busy(absl::string_view device) const ABSL_LOCKS_EXCLUDED(mutex_);
  struct Usage {
    int queued = 0;        // At its worker too, behind the one that runs.
    int fuller_queue = 0;  // Of its two lanes each has a queue, and each all of the limit.
    int running = 0;
    int queued_of_one = 0;  // Of the principal that has most.
    // How long the jobs that did not end have launched by now; a result tells it of one that did.
    absl::Duration launched_for = absl::ZeroDuration();
  };
  // By device.
  std::map<std::string, Usage> usage() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Entry;
  struct Guests;
  struct Device;
  struct Outbox;
  enum class Fate;  // What is known of an order whose worker is lost.
  enum class Word;  // What a worker is told of a job.

  static Fate FateWithoutRunning(const WorkerLoss& loss, bool oldest);
  using Entries = std::vector<std::shared_ptr<Entry>>;
  // Which of those that the lost worker held was running; end() if none of them.
  static Entries::iterator FindRunning(Entries& held, const WorkerLoss& loss, WorkerRole role);
  // ---- All but the last few need the lock. ----
  Device& DeviceOf(absl::string_view name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Entry* Find(JobId id) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Refusal(const Device& device, const Job& job) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Of a job whose memory or inputs are still to come.
  absl::Status ArrivalRefusal(const Device& device, const Job& job) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Of all jobs of a kind, and of one principal.
  struct Places {
    int all = 0, of_one = 0;
  };
  absl::Status PlaceRefusal(const Device& device, const Job& job, const Places& taken,
                            absl::string_view wait) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // What arrived stands in the queue.
  static void TakePlace(Entry& entry);
  absl::StatusOr<std::shared_ptr<Entry>> Enqueue(Job job, bool wait_for_memory, absl::Time now,
                                                 Outbox& out) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Accept(Entry& entry, Outbox& out) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool WaitsForMemory(absl::string_view principal) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RetryMemory(Outbox& out) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Device& LaneOf(const Job& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Sends what can be sent, of both lanes.
  void Dispatch(Device& device, absl::Time now, Outbox& out) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SendReady(Device& device, absl::Time now, Outbox& out) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Send(const std::shared_ptr<Entry>& entry, absl::Time now, Outbox& out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static bool MayAwait(const Entry& entry, absl::Time now);
  bool HasRoomFor(const Device& device, const Job& job) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // ---- Of devices with two lanes. ----
  static std::optional<JobId> NextFor(const Device& lane, absl::Time now);
  static bool CanSend(const Device& lane, absl::Time now);
  static bool NeedsGuest(const Device& lane, absl::Time now);
  static bool Waits(const Device& lane, absl::Time now);
  static bool Measures(const Device& lane);
  static bool IsSettled(const Device& lane);
  static bool CannotMeasure(const Device& lane, const Job& job);
  static bool IsSpent(const Device& lane);
  bool IsToTry(const Device& lane, absl::Time now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static bool TurnIsOver(const Device& lane, const Job& next, absl::Time now);
  bool MaySend(const Device& lane, const Job& job, absl::Time now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SettleTurn(Device& lane, absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ArrangeGuest(Device& lane, absl::Time now, Outbox& out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoteSent(Device& lane, const Entry& entry, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Blame(Device& lane, const std::shared_ptr<Entry>& entry, const WorkerLoss& loss, Outbox& out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // True if a job could run here, or in the other lane, once `running` is gone.
  static bool KeepsOthersWaiting(const Entry& running, absl::Time now);
  // Another principal's job could run once `running` is gone.
  bool OthersWait(const Entry& running, absl::Time now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void YieldToOthers(Device& device, absl::Time now, Outbox& out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RecallForOthers(Device& device, absl::Time now, Outbox& out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::shared_ptr<Entry> TakeAnswer(std::uint64_t generation, WorkerAnswer& answer, absl::Time now,
                                    Outbox& out) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // ---- Of submitted code that is verified: its guest ran it, the catalogue's worker compares.
  // ----
  static bool IsToCompare(const Entry& entry, const JobResult& result);
  void SendToCompare(Entry& entry, JobResult result, absl::Time now, Outbox& out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static void MergeComparison(Entry& entry, JobResult& result);
  static void BoundPhases(const Entry& entry, absl::Time now, Outcome& outcome);
  // ---- Of operators. ----
  void Cancel(Entry& entry, absl::Status status, Outbox& out) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // A worker is there and is to go on.
  static bool TakesOrders(const Device& lane);
  JobView ViewOf(const Entry& entry, absl::Time now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Kills a worker that was to be replaced when it has no more orders, and now has none.
  void RestartIfIdle(Device& lane, Outbox& out) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The lanes of a device that is there.
  std::vector<Device*> LanesOf(absl::string_view device) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static bool GaveBack(const Entry& entry, const JobResult& result);
  void Requeue(Entry& entry, absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static void QueueReady(Entry& entry);
  // It has ended.
  void Forget(Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Nothing that came of its being at a worker counts any longer.
  void BecomeReadyAgain(Entry& entry, absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // When a job that is ready now has waited long enough.
  absl::Time WaitEnd(const Job& job, absl::Time now) const;
  // Ends a job that is not at a worker.
  void EndWaiting(Entry& entry, absl::Status status, Outbox& out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndAllWaiting(const Device& device, const absl::Status& why, Outbox& out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndWaitingIf(const std::function<bool(const Entry&)>& is_meant, const absl::Status& why,
                    Outbox& out) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends a job for its listener; what is left of it is the worker's matter.
  // The phases before a worker had it.
  static void AddWaits(const Entry& entry, Outcome& outcome);
  void Answer(Entry& entry, JobResult result, Outbox& out) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TellToStop(Entry& entry, absl::Status why, Outbox& out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LoseJob(const std::shared_ptr<Entry>& entry, Fate fate, const WorkerLoss& loss,
               WorkerRole role, absl::Time now, Outbox& out) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TickWaiting(absl::Time now, Outbox& out) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TickSent(Device& device, const WorkerPort::Running& running, absl::Time now, Outbox& out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TickRunning(Entry& entry, const WorkerPort::Running& running, absl::Time now, Outbox& out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Its time ended at `end`, and a grace has passed.
  // `reason`: what the worker is killed for if it does not stop by itself.
  void GiveUp(Entry& entry, absl::Status why, absl::string_view reason, absl::Time end,
              absl::Time now, Outbox& out) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Kill(Device& device, absl::string_view reason, Outbox& out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // True if what has arrived for this job is worth a word to its worker.
  bool MayCopyEarly(const Entry& entry, absl::Time now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasEarlyPlace(const Entry& entry) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static bool HasMemoryFor(const Device& lane, const Job& job);
  static bool IsCopyingToGuest(const Device& lane);
  static void NoteCopies(Device& lane, absl::Time now);
  // Its worker is gone.
  void ForgetCopies(const Device& lane) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Something is to be measured beside this lane.
  void StopCopying(Device& lane, absl::Time now, Outbox& out) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Tell(Entry& entry, Word word, Outbox& out, const InputArrival& arrival = {})
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  template <typename Event>
  void Post(Entry& entry, Event event, Outbox& out) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Without the lock: speaks to workers and listeners, as `out` says.
  void Flush(Outbox& out) ABSL_LOCKS_EXCLUDED(mutex_);
  void Speak(Outbox& out) ABSL_LOCKS_EXCLUDED(mutex_);
  void Deliver(Outbox& out) ABSL_LOCKS_EXCLUDED(mutex_);
  void Hand(Entry& entry, JobEvent& event) ABSL_LOCKS_EXCLUDED(mutex_);

  const Clock& clock_;
  const Limits limits_;
  ArenaAllocator& arena_;
  JobObserver& observer_;
  mutable Mutex mutex_;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  JobId last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<JobId, std::shared_ptr<Entry>> jobs_ ABSL_GUARDED_BY(mutex_);
  // Devices are never removed, so their addresses hold.
  std::vector<std::unique_ptr<Device>> devices_ ABSL_GUARDED_BY(mutex_);
  std::deque<JobId> wait_for_memory_ ABSL_GUARDED_BY(mutex_);
  absl::Time ticked_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();  // When Tick looked last.
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_CORE_SCHEDULER_H_
