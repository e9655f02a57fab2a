// One incarnation of a worker as the scheduler uses it: orders go out from the calling thread.
#ifndef GRIDCLOCK_SERVER_FLEET_WORKER_H_
#define GRIDCLOCK_SERVER_FLEET_WORKER_H_

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gridclock/worker/v1/worker.pb.h"
#include "proto/types/status_page.h"
#include "server/core/scheduler.h"
#include "server/fleet/arena.h"
#include "server/fleet/guest_memory.h"
#include "server/fleet/link.h"
#include "server/fleet/worker_process.h"

namespace gridclock {

class AnswerReader;

// The page on which a worker says what it runs. It outlives the worker.
class StatusMemory {
 public:
  static absl::StatusOr<StatusMemory> Create();
  StatusMemory(StatusMemory&& other) noexcept;
  ~StatusMemory();

  int fd() const { return fd_.get(); }
  WorkerPort::Running running() const;

 private:
  StatusMemory(UniqueFd fd, StatusPage* page) : fd_(std::move(fd)), page_(page) {}
  UniqueFd fd_;
  StatusPage* page_ = nullptr;
};

// Thread-safe. Shared by the scheduler and the thread that reads from the worker.
class Worker final : public WorkerPort {
 public:
  struct Parts {
    WorkerRole role = WorkerRole::kTrusted;
    WorkerProcess process;
    std::unique_ptr<Link> link;
    StatusMemory status;
    const Arena& arena;  // Outlives the worker.
    // An order that cannot be sent, though the worker lives.
    std::function<void(JobId id, absl::Status why)> on_unsendable;
    std::function<void()> wake;  // The reading thread: frames are waiting to be flushed.
    std::unique_ptr<GuestMemory> guest_memory = nullptr;  // Of a guest: what it has for the arena.
  };
  // A guest's job of whose inputs so many bytes are to be copied at most is copied by the thread
  // that sends it, others by the reading thread.
  static constexpr std::uint64_t kCopiedAtOnce = 4 * 1024 * 1024;

  explicit Worker(Parts parts) : parts_(std::move(parts)) {}

  WorkerRole role() const override { return parts_.role; }
  bool Send(const Job& job, std::uint64_t generation) override;
  bool SendAll(std::span<const Job* const> jobs, std::uint64_t generation) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Cancel(JobId id) override;
  void Yield(JobId id) override;
  void Arrived(const Job& job, std::uint64_t generation, const InputArrival& arrival) override;
  void Await(JobId id) override ABSL_LOCKS_EXCLUDED(mutex_);
  void Kill(absl::string_view reason) override ABSL_LOCKS_EXCLUDED(mutex_);
  Running running() const override;
  bool worn() const override;

  // ---- For the reading thread. ----
  void SetReader(const std::shared_ptr<AnswerReader>& reader) ABSL_LOCKS_EXCLUDED(mutex_);
  void Shutdown();
  // The order was answered: what it needed beyond the job's memory is given back.
  void Forget(JobId id) ABSL_LOCKS_EXCLUDED(mutex_);
  // Copies and sends the orders of a guest that wait for it.
  void FeedGuest() ABSL_LOCKS_EXCLUDED(mutex_);
  // A step of a checked launch, which a guest asked for; it is told when it is done.
  // INVALID_ARGUMENT if it is not in turn.
  absl::Status CheckLaunch(const Job& job, const worker::v1::CheckStep& step);
  // A guest's order that still waits to be copied was not given to it.
  bool WasGiven(JobId id) const;
  // Of a guest: what its job returns is in the arena when this returns.
  absl::StatusOr<std::vector<OutputResult>> TakeOutputs(const Job& job, std::size_t samples);
  // Sends what Send had no room for.
  void Flush();
  // Orders no longer reach it: its link has ended, or it does not read.
  bool deaf() const { return deaf_; }
  // Why it was killed by us; "" if it was not.
  std::string kill_reason() const ABSL_LOCKS_EXCLUDED(mutex_);
  Link& link() { return *parts_.link; }
  WorkerProcess& process() { return parts_.process; }

 private:
  // The order as a frame; a long one goes through memory: of the job's block, or of the guest's.
  absl::StatusOr<std::string> Frame(const Job& job, std::uint64_t generation)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<std::string> LongFrame(const Job& job, const std::string& order)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<MemoryRange> OrderRange(const Job& job, std::uint64_t bytes)
      ABSL_LOCKS_EXCLUDED(mutex_);
  bool SendFrames(std::span<const std::string> frames);
  void SendMessage(const worker::v1::FromServer& message);
  bool SendToGuest(std::span<const Job* const> jobs, std::uint64_t generation)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // False: there is no room for it in the guest's memory now.
  bool GiveToGuest(const Job& job, std::uint64_t generation) ABSL_LOCKS_EXCLUDED(mutex_);
  void CopyEarly(const Job& job, const InputArrival& arrival) ABSL_LOCKS_EXCLUDED(mutex_);
  void SendCancel(JobId id);
  bool SomethingWaits() const ABSL_LOCKS_EXCLUDED(mutex_);

  // What a guest is to be told once there is time and room; in order.
  struct Waiting {
    std::optional<Job> order;
    std::uint64_t generation = 0;
    JobId cancel = 0;  // If it is no order.
  };

  Parts parts_;
  std::atomic<bool> deaf_{false};
  mutable Mutex mutex_;
  std::weak_ptr<AnswerReader> reader_ ABSL_GUARDED_BY(mutex_);
  std::string kill_reason_ ABSL_GUARDED_BY(mutex_);
  std::map<JobId, ArenaAllocator::Block> long_orders_ ABSL_GUARDED_BY(mutex_);  // Of a guest.
  std::deque<Waiting> waiting_ ABSL_GUARDED_BY(mutex_);
  std::atomic<JobId> copied_in_{0}, copied_out_{0};  // Whose tensors are being copied.
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_FLEET_WORKER_H_
