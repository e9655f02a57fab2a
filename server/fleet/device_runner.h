// The thread that keeps a worker alive for one device: spawns it, reads from it, notices its end.
#ifndef GRIDCLOCK_SERVER_FLEET_DEVICE_RUNNER_H_
#define GRIDCLOCK_SERVER_FLEET_DEVICE_RUNNER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "server/fleet/answer_reader.h"
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

class DeviceRunner {
 public:
  DeviceRunner(const FleetOptions& options, const FleetContext& context, std::string device,
               const MemoryRange& canary_memory);
  ~DeviceRunner();

  void Start();
  // Asks the thread to end its worker and itself; Join waits for that.
  void Stop();
  void Join();

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
    std::uint64_t answers = 0;
    bool told_ready = false, terminated = false, output_ended = false;
    bool kill_failed = false;
  };

  void Run();
  absl::StatusOr<Life> Spawn();
  // Until it ended, or cannot be ended while this is to stop.
  Supervisor::End Serve(Life life);
  // Waits for something to happen. False once the process is gone.
  bool Poll(Life& life);
  void CheckTimes(Life& life, const AnswerReader::Progress& progress);
  void CheckStop(Life& life, absl::Time now);
  void CheckKill(Life& life, absl::Time now);
  Supervisor::End Bury(Life& life);
  void OnQuarantine();
  absl::Status WhyDown(absl::string_view what) const;
  void SleepUntil(absl::Time time);

  const FleetOptions options_;
  const FleetContext context_;
  const std::string device_;
  const MemoryRange canary_memory_;
  const std::shared_ptr<WakeEvent> wake_;  // Shared with workers, which may outlive this.
  Supervisor supervisor_;
  std::uint64_t generation_ = 0;
  std::string calibration_;  // Of the last worker that was ready; "" to measure again.
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_FLEET_DEVICE_RUNNER_H_
