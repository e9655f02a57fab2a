// The thread that keeps a worker alive for one device: spawns it, reads from it, notices its end. A
// guest it spawns when the scheduler wants one.
#ifndef GRIDCLOCK_SERVER_FLEET_DEVICE_RUNNER_H_
#define GRIDCLOCK_SERVER_FLEET_DEVICE_RUNNER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "server/fleet/answer_reader.h"
#include "server/fleet/copiers.h"
#include "server/fleet/fleet.h"
#include "server/fleet/worker_output.h"

namespace gridclock {

// Wakes a thread that polls.
class WakeEvent {
 public:
  WakeEvent();
  int fd() const { return fd_.get(); }
  void Wake() const;
  void Clear() const;

 private:
  UniqueFd fd_;
};

// What the runners of one device have in common.
struct DeviceLink {
  std::string device;
  MemoryRange canary;  // Where the first order of its trusted worker works.
  // The last one: no two workers of a fleet are of one generation, so that what one says of its
  // orders can never be taken for another's.
  std::atomic<std::uint64_t>& generations;
  // For guests; workers may outlive the fleet.
  std::shared_ptr<Copiers> copiers;
  Mutex mutex = {};
  // What the last trusted worker that was ready measured: its successors and guests need not.
  std::string calibration ABSL_GUARDED_BY(mutex) = {};
};

class DeviceRunner final : public GuestPort {
 public:
  // `link` outlives this.
  DeviceRunner(const FleetOptions& options, const FleetContext& context, DeviceLink& link,
               WorkerRole role);
  ~DeviceRunner() override;

  void StartThread();
  // Asks the thread to end its worker and itself; Join waits for that.
  void Stop();
  void Join();

  // ---- GuestPort. ----
  void Start() override;
  void Blame(const Job& job, absl::string_view why) override;

 private:
  // One incarnation of the worker, while this thread serves it.
  struct Life {
    std::shared_ptr<Worker> worker;  // The scheduler's too.
    std::shared_ptr<AnswerReader> reader;
    WorkerOutput output;
    absl::Time spawned;
    bool measures = true;  // Its device, before it is ready.
    absl::Time stop_asked = absl::InfiniteFuture();
    // When this thread first saw that orders do not reach it, and that it was killed.
    absl::Time deaf = absl::InfiniteFuture(), killed = absl::InfiniteFuture();
    // Before it is ready: the CPU time that it was last seen to have, and when that was less.
    absl::Duration worked = absl::ZeroDuration();
    absl::Time works = absl::InfinitePast();
    // When something came last and when this thread looked last; how long, while it looked, nothing
    // has come.
    absl::Time heard = absl::InfinitePast(), looked = absl::InfinitePast();
    absl::Duration silence = absl::ZeroDuration();
    std::uint64_t answers = 0;
    bool told_ready = false, terminated = false, output_ended = false;
    bool kill_failed = false;
  };

  void Run();
  void RunOne();
  // Of a guest's: until one is wanted.
  void WaitUntilWanted();
  absl::StatusOr<Life> Spawn();
  Supervisor::End SpawnFailed(const absl::Status& why);
  std::string Uuid() const;  // Of the device; empty: it has none.
  std::uint64_t SharedBytes() const;
  std::vector<std::string> Arguments(std::uint64_t arena_bytes,
                                     const std::string& calibration) const;
  std::string Calibration() const;
  void SetCalibration(std::string calibration);
  void NoteReady(Life& life);
  // Until it ended, or cannot be ended while this is to stop.
  Supervisor::End Serve(Life life, bool* was_ready);
  // Waits for something to happen. False once the process is gone.
  bool Poll(Life& life);
  void CheckTimes(Life& life, const AnswerReader::Progress& progress);
  static void NoteSilence(Life& life, absl::Time heard, absl::Time now);
  // Not ready, and will hardly be.
  bool TooSlow(Life& life, absl::Time now) const;
  void CheckStop(Life& life, absl::Time now);
  void CheckKill(Life& life, absl::Time now);
  Supervisor::End Bury(Life& life);
  // Names the call that is to blame, if there is one.
  void LogEnd(bool as_asked, const WorkerLoss& loss) const;
  void OnQuarantine(absl::Time next);
  absl::Status WhyDown(absl::string_view what) const;
  void SetState(WorkerState state, const absl::Status& why = absl::OkStatus());
  void SleepUntil(absl::Time time);
  void Sleep(absl::Duration most);

  const FleetOptions options_;
  const FleetContext context_;
  DeviceLink& link_;
  const WorkerRole role_;
  const std::string device_, lane_;        // The lane is what the scheduler knows it by.
  const std::shared_ptr<WakeEvent> wake_;  // Shared with workers, which may outlive this.
  Supervisor supervisor_;
  std::uint64_t lives_ = 0, generation_ = 0;
  std::string last_end_;  // "exit code 3".
  std::atomic<bool> stopping_{false}, wanted_{false};
  std::thread thread_;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_FLEET_DEVICE_RUNNER_H_
