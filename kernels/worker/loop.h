// The worker's main loop: orders in, one at a time and in order, reports out.
//
// Between orders it copies what has arrived of the inputs of orders to come, a piece at a time.
//
// One thread does all. It sleeps in the socket while idle, so that a small call costs no hop from
// thread to thread; while it measures it looks at the socket between launches for a Cancel.
#ifndef GRIDCLOCK_KERNELS_WORKER_LOOP_H_
#define GRIDCLOCK_KERNELS_WORKER_LOOP_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "gridclock/worker/v1/worker.pb.h"
#include "kernels/worker/link.h"
#include "kernels/worker/outbox.h"
#include "kernels/worker/patience.h"
#include "kernels/worker/session.h"
#include "proto/codec/worker.h"
#include "proto/types/status_page.h"

namespace gridclock {

class Loop final : public SessionHost {
 public:
  // All are borrowed. `dropped` counts frames that were no orders for this worker.
  struct Parts {
    Link& link;
    Session& session;
    StatusPage& page;
    const Clock& clock;
    std::span<const std::byte> arena;
    std::atomic<std::uint64_t>& dropped;
    // Held while an order works with the device, a plain one where nobody asked as it began.
    std::mutex& in_use;
  };
  explicit Loop(const Parts& parts);

  absl::Status SayHello(const WorkerHello& hello);
  // Until the server says Shutdown or is gone: OK. Anything else is an error.
  absl::Status Run();

 private:
  bool Cancelled(const WorkerOrder& order) override;
  bool Yields() const override { return yields_; }
  void OnSamples(const WorkerOrder& order, std::int64_t first, std::span<const double> samples_ns,
                 bool warmup) override;
  absl::Status Step(const WorkerOrder& order, std::uint32_t index, CheckStep step) override;
  std::atomic<std::int64_t>& kernel_since_ns() override { return parts_.page.kernel_since_ns; }

  // Something other than waiting is to be done.
  bool HasWork() const;
  // Until something came.
  absl::Status AwaitFrames();
  absl::Status Read(Wait wait);
  void Take(std::span<const std::byte> frame, bool may_be_long);
  void TakeLong(const worker::v1::Range& range);
  void TakeOrder(const worker::v1::Order& order);
  void TakeComparison(const worker::v1::Comparison& frame);
  void TakeStep(const worker::v1::CheckStepDone& frame);
  void TakeArrival(const worker::v1::Arrival& frame);
  void TakeCancel(std::uint64_t id);
  absl::Status RunQueue();
  absl::Status RunOrder(const WorkerOrder& order);
  absl::Status RunComparison(const WorkerOrder& head, const WorkerComparison& comparison);
  void BeginOrder(std::uint64_t id);
  absl::Status Report(const WorkerOrder& order, const SessionReport& report);
  void Drop() { parts_.dropped.fetch_add(1, std::memory_order_relaxed); }

  // An order that waits, or why it cannot run.
  struct Waiting {
    WorkerOrder order;  // Of a comparison its ids alone.
    absl::Status status;
    std::optional<WorkerComparison> comparison = {};
  };

  const Parts parts_;
  Outbox outbox_;
  PacketBatch batch_;
  worker::v1::FromServer incoming_;
  worker::v1::ToServer outgoing_;
  Patience patience_;
  std::size_t came_ = 0;  // Frames at once, the last time.
  std::deque<Waiting> waiting_;
  std::vector<Waiting> spare_;  // Used orders, whose buffers are used again.
  std::uint64_t generation_ = 0;
  std::uint64_t running_ = 0;
  bool cancelled_ = false;
  bool yields_ = false;
  // The step of a checked launch that the running order waits for.
  std::optional<std::pair<std::uint32_t, CheckStep>> awaited_;
  bool stop_ = false;
  absl::Status broken_;  // The link's, met while an order was running.
  absl::Time last_look_ = absl::InfinitePast();
};

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_WORKER_LOOP_H_
