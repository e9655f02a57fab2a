// One order from its words to its outcome: bind, place operands, make or copy inputs, launch or
// measure, verify, return outputs.
#ifndef GRIDCLOCK_KERNELS_WORKER_SESSION_H_
#define GRIDCLOCK_KERNELS_WORKER_SESSION_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "kernels/api/registry.h"
#include "kernels/device/device.h"
#include "kernels/timing/measure.h"
#include "kernels/worker/call_cache.h"
#include "kernels/worker/early_copies.h"
#include "kernels/worker/module_store.h"
#include "kernels/worker/native.h"
#include "kernels/worker/printed.h"
#include "kernels/worker/staging.h"
#include "proto/codec/worker.h"

namespace gridclock {

// Who hears of samples while an order runs, and may end it.
class SessionHost {
 public:
  virtual ~SessionHost() = default;
  // Asked between launches.
  virtual bool Cancelled(const WorkerOrder& order) = 0;
  // The running order is to end its measurement with what it has.
  virtual bool Yields() const { return false; }
  virtual void OnSamples(const WorkerOrder& order, std::int64_t first,
                         std::span<const double> samples_ns, bool warmup) = 0;
  // Of an order with checked launches: returns when the server has done this step. CANCELLED if the
  // order is.
  virtual absl::Status Step(const WorkerOrder& /*order*/, std::uint32_t /*index*/,
                            CheckStep /*step*/) {
    return absl::UnimplementedError("nobody checks launches here");
  }
  // Where each launch says since when it runs, as LaunchWatch.
  virtual std::atomic<std::int64_t>& kernel_since_ns() = 0;
};

// How an order ended. `outcome` holds what was measured if `launched`.
struct SessionReport {
  absl::Status status;
  bool launched = false;
  bool spoiled = false;  // The process is of no more use and must end.
  Outcome outcome;
};

// What a guest has beside a trusted worker. All are borrowed.
struct GuestParts {
  const Natives& natives;
  Printed* printed = nullptr;  // Null: what code prints goes where it goes.
  // Launches that are checked find in scratch memory what the ones before left: in tests of what it
  // is good for that they do not.
  bool keep_scratch = false;
  bool keep_shared = false;  // Likewise, of the memory that threads of a block share.
};

class Session {
 public:
  // All are borrowed. A device with memory of its own pins the arena, from which it copies inputs
  // and to which it copies outputs. Without `guest` no submitted code runs.
  static absl::StatusOr<std::unique_ptr<Session>> Create(Device& device, const Registry& registry,
                                                         const Clock& clock,
                                                         std::span<std::byte> arena,
                                                         const GuestParts* guest = nullptr);

  SessionReport Run(const WorkerOrder& order, SessionHost& host);
  // Of a trusted worker: its report has a verification and nothing else.
  SessionReport Compare(const WorkerComparison& comparison,
                        const std::function<bool()>& cancelled) const;
  // Of inputs of orders to come. Not to be asked to copy while an order runs.
  EarlyCopies& early() { return early_; }
  // Memory of the device that earlier orders left, more than what is kept for the next ones.
  bool HoldsMuch() const { return device_.kept_bytes() > kKept; }
  void GiveBack() { device_.GiveBack(kKept); }
  // True if the order is known to end within microseconds and may run again without harm.
  bool IsQuick(const WorkerOrder& order) const;

 private:
  static constexpr std::uint64_t kKept = std::uint64_t{1} << 30;

  class Running;
  Session(Device& device, const Registry& registry, const Clock& clock, std::span<std::byte> arena,
          const GuestParts* guest);

  Device& device_;
  const Registry& registry_;
  const Clock& clock_;
  const std::span<std::byte> arena_;
  Printed* const printed_;
  const bool keeps_scratch_, keeps_shared_;
  const std::unique_ptr<ModuleStore> modules_;  // Of a guest.
  CallCache cache_;
  Staging staging_;
  EarlyCopies early_;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_WORKER_SESSION_H_
