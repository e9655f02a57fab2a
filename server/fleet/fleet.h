// All workers of this server: spawned, watched, fed, replaced, and gone when the fleet stops.
#ifndef GRIDCLOCK_SERVER_FLEET_FLEET_H_
#define GRIDCLOCK_SERVER_FLEET_FLEET_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "server/core/kernel_table.h"
#include "server/core/module_strikes.h"
#include "server/core/observer.h"
#include "server/core/scheduler.h"
#include "server/fleet/arena.h"
#include "server/fleet/launch_check.h"
#include "server/fleet/supervisor.h"

namespace gridclock {

class DeviceRunner;
struct DeviceLink;

struct FleetOptions {
  std::string worker_path;                   // Of gridclock-worker.
  std::vector<std::string> devices;          // "cpu", "cuda:0": one worker each.
  std::map<std::string, std::string> uuids;  // Of those that have one, by name.
  std::vector<std::string> environment;      // Of the workers: WorkerEnvironment().
  Supervisor::Options supervisor;
  std::uint64_t seed = 0;  // Of the jitter.
  // From spawn to ready: a worker measures its device first. On a slow or busy machine that takes
  // longer, so one that still works, by its CPU time, has the latter.
  absl::Duration start_limit = absl::Seconds(60), longest_start = absl::Minutes(5);
  // A heart beats each second; after three missed beats the worker hangs.
  absl::Duration silence_limit = absl::Milliseconds(3500);
  absl::Duration stop_limit = absl::Seconds(2);
  // A worker that was killed is gone within this time, unless a driver keeps it.
  absl::Duration kill_limit = absl::Seconds(5);
  // The memory of each guest; 0: this server runs no submitted code.
  std::uint64_t guest_bytes = 0;
  int copiers = 0;  // Threads that help to copy to guests and from them.
  CheckDefences defences = {};
  bool weak_sandbox = false;  // Guests may run where the kernel has no walls for them.
};

// What a fleet works with. All are borrowed and outlive the fleet.
struct FleetContext {
  KernelTable& table;
  Scheduler& scheduler;
  const Clock& clock;
  JobObserver& observer;
  const Arena& arena;
  ArenaAllocator& allocator;
  ModuleStrikes* strikes = nullptr;  // Where there are guests.
  std::size_t printed_bytes = kMostPrinted;
};

// A job's code ended its process, of `why`; which of its modules it was nobody knows. What waits of
// one that is now run no more ends.
void Strike(const FleetContext& context, const JobProgram& program, absl::string_view why);

class Fleet {
 public:
  // What the arena MUST have behind the part that the allocator gives out: each device's canary has
  // memory of its own, so that clients who hold all of theirs cannot keep a worker from starting.
  static std::uint64_t OwnBytes(std::size_t devices) { return devices * ArenaAllocator::kPage; }

  // FAILED_PRECONDITION if there is no worker program at the path.
  static absl::StatusOr<std::unique_ptr<Fleet>> Create(const FleetOptions& options,
                                                       const FleetContext& context);
  ~Fleet();

  // Returns at once; KernelTable and Scheduler hear of each worker when it is ready. From now on
  // the fleet also calls Scheduler::Tick.
  void Start();
  // Ends the workers: asks, then signals, then kills. Waits until none is left but those that
  // even this does not end. May be called again.
  void Stop();

 private:
  Fleet(const FleetOptions& options, const FleetContext& context);
  void TickUntilStopped();

  const FleetContext context_;
  std::atomic<std::uint64_t> generations_{0};
  std::vector<std::unique_ptr<DeviceLink>> links_;  // One of each device.
  std::vector<std::unique_ptr<DeviceRunner>> runners_;
  std::thread ticker_;
  std::atomic<bool> stopping_{false};
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_FLEET_FLEET_H_
