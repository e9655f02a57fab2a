// Who hears of a job. The listener is its owner (the rpc); observers watch and never steer.
#ifndef GRIDCLOCK_SERVER_CORE_OBSERVER_H_
#define GRIDCLOCK_SERVER_CORE_OBSERVER_H_

#include <optional>
#include <span>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/types/job.h"

namespace gridclock {

struct AcceptedInfo {
  std::uint32_t queue_position = 0;
  absl::Duration expected_wait;
};

// How a job ended.
struct JobResult {
  absl::Status status;
  // Set when ok; on a failure after the launch, what was measured until then.
  std::optional<Outcome> outcome;
  // From all inputs in memory to the order first sent to a worker; unset if none was.
  std::optional<absl::Duration> waited = std::nullopt;
  // What was seen of its launches while it ran: all that is known of one whose worker said nothing.
  absl::Duration launched_for = absl::ZeroDuration();
  bool was_ready = false;  // All its inputs had come: what it then waited for was a worker.
};

// Calls come one at a time but from any thread, never while the scheduler holds its lock. They must
// not block. OnFinished is the last, and comes exactly once if OnAccepted came.
class JobListener {
 public:
  virtual ~JobListener() = default;
  // Memory and a place in the queue are reserved; the bytes of the inputs may be written now.
  virtual void OnAccepted(const Job& job, const AcceptedInfo& info) = 0;
  virtual void OnSamples(std::int64_t first, std::span<const double> samples_ns, bool warmup) = 0;
  virtual void OnFinished(JobResult result) = 0;
};

// One for the whole server (a fan-out where there are several). Must be thread-safe and quick.
class JobObserver {
 public:
  virtual ~JobObserver() = default;
  // `device` may be what the client asked for: any text.
  virtual void OnRejected(absl::string_view device, const absl::Status& status) = 0;
  virtual void OnFinished(const Job& job, const JobResult& result) = 0;
  virtual void OnWorkerUp(absl::string_view device) = 0;
  // reason: "exit", "signal", "hang", "protocol", "time_limit", "deadline", "cancelled" (of guests
  // alone), "restart".
  virtual void OnWorkerLost(absl::string_view device, absl::string_view reason) = 0;
  // The same of a worker that ran submitted code; also "retired": it was of no more use.
  virtual void OnGuestLost(absl::string_view /*device*/, absl::string_view /*reason*/) {}
  // A worker spoke of an order that it does not hold.
  virtual void OnStrayAnswer(absl::string_view /*device*/) {}
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_CORE_OBSERVER_H_
