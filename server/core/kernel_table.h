// What the server knows of kernels and devices, learned from its workers' hellos and kept across
// their restarts.
#ifndef GRIDCLOCK_SERVER_CORE_KERNEL_TABLE_H_
#define GRIDCLOCK_SERVER_CORE_KERNEL_TABLE_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/mutex.h"
#include "proto/types/device.h"
#include "proto/types/kernel_spec.h"
#include "proto/types/vitals.h"

namespace gridclock {

// What a device said of itself when it last waited for work.
struct VitalsNow {
  DeviceVitals vitals;
  absl::Time at;  // By the calendar.
};

struct DeviceStatus {
  DeviceInfo info;
  WorkerState state = WorkerState::kStarting;
  std::uint64_t restarts = 0;
  bool met = false;      // Its worker has said hello: `info` is more than a name.
  bool drained = false;  // An operator keeps new calls from it.
  std::string sandbox;   // Of its last guest, if there was one.
  std::optional<VitalsNow> vitals;
  absl::Status why_down;  // Of one that is quarantined.
};

// Whether it takes calls now.
inline bool TakesCalls(const DeviceStatus& device) {
  return IsUp(device.state) && !device.drained;
}

// What admission needs of a device: a small part of its status, cheap to copy.
struct DeviceChoice {
  std::string name;
  DeviceTraits traits;
  WorkerState state = WorkerState::kStarting;
  bool met = false;
  bool drained = false;
  bool host_memory = true;
  std::uint64_t memory_bytes = 0;
  std::int64_t units = 0;
  absl::Status why_down;
};
using DeviceChoices = absl::InlinedVector<DeviceChoice, 2>;

// Thread-safe. Specs and infos are handed out as shared immutable values.
class KernelTable {
 public:
  // The devices that this server was told to serve, before any worker has said hello.
  explicit KernelTable(std::vector<std::string> devices);

  // Takes a hello in: new kernels are added, and the variants for info's kind of device are
  // replaced by those that came. INTERNAL, and nothing is taken, if a word of a kernel disagrees
  // with what was said before. A device that the server was not told of is INTERNAL too.
  absl::Status Learn(const DeviceInfo& info, const std::vector<KernelSpec>& kernels)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // From the hello of a guest of this device: what holds it, and the functions that it runs by
  // name. Of these release builds have none.
  void LearnGuest(absl::string_view device, const std::string& sandbox,
                  const std::vector<std::string>& natives) ABSL_LOCKS_EXCLUDED(mutex_);
  // Those of all devices, sorted; nullopt before any guest has said hello.
  std::optional<std::vector<std::string>> Natives() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Of a worker that lives: kReady, also while it works; DevicesNow tells more. `why`, of one that
  // is quarantined: what calls end with.
  void SetState(absl::string_view device, WorkerState state,
                const absl::Status& why = absl::OkStatus()) ABSL_LOCKS_EXCLUDED(mutex_);
  void CountRestart(absl::string_view device) ABSL_LOCKS_EXCLUDED(mutex_);
  void SetVitals(absl::string_view device, VitalsNow vitals) ABSL_LOCKS_EXCLUDED(mutex_);
  // False if it was so before.
  bool SetDrained(absl::string_view device, bool drained) ABSL_LOCKS_EXCLUDED(mutex_);

  // UNAVAILABLE before any hello: WORKER_STARTING, or why all devices are down.
  absl::Status CheckLearned() const ABSL_LOCKS_EXCLUDED(mutex_);
  // NOT_FOUND names kernels of a near name; before any hello as CheckLearned.
  absl::StatusOr<std::shared_ptr<const KernelSpec>> Find(absl::string_view kernel) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<std::shared_ptr<const KernelSpec>> Kernels() const ABSL_LOCKS_EXCLUDED(mutex_);

  std::vector<DeviceStatus> Devices() const ABSL_LOCKS_EXCLUDED(mutex_);
  // The devices that `wanted` ("", "cpu", "cuda:0", "cuda", a UUID) may mean, in order. NOT_FOUND
  // for an id that does not exist, FAILED_PRECONDITION (NO_DEVICE) for a kind that is not here;
  // both list.
  absl::StatusOr<DeviceChoices> Choices(absl::string_view wanted) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Why the device does not have a method of timing; empty if it does not say that it lacks it.
  std::string WhyMissing(absl::string_view device, Method method) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::Status NothingLearned() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  DeviceStatus* Device(absl::string_view name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status NoSuchDevice(absl::string_view wanted) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status NoSuchKernel(absl::string_view wanted) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  std::map<std::string, std::shared_ptr<const KernelSpec>, std::less<>> kernels_
      ABSL_GUARDED_BY(mutex_);
  std::vector<DeviceStatus> devices_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::vector<std::string>, std::less<>> natives_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_CORE_KERNEL_TABLE_H_
