// What one worker says, from its hello to its last frame. Its frames are held against what it was
// given; the first that does not hold ends it.
#ifndef GRIDCLOCK_SERVER_FLEET_SESSION_H_
#define GRIDCLOCK_SERVER_FLEET_SESSION_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gridclock/worker/v1/worker.pb.h"
#include "proto/codec/worker.h"
#include "server/fleet/fleet.h"
#include "server/fleet/worker.h"

namespace gridclock {

// Used by the one thread that reads from the worker.
class Session {
 public:
  // `canary_memory`: where its first order works.
  Session(const FleetContext& context, std::string device, std::shared_ptr<Worker> worker,
          std::uint64_t generation, const MemoryRange& canary_memory);

  // An error means that the worker broke the protocol and must be killed. Answers are kept until
  // Deliver.
  absl::Status OnFrame(std::span<const std::byte> frame, bool truncated);
  // Hands on the answers of the frames so far. An error as above.
  absl::Status Deliver();

  // It said hello, and its canary gave the right numbers: the scheduler knows it.
  bool ready() const { return ready_; }
  // A step of a check was made for the last batch: it may have taken long.
  bool took_step() const { return took_step_; }
  // What it measured, for the worker that comes after it.
  const std::string& calibration() const { return hello_.hello().calibration; }
  // It said that its device context is lost.
  bool spoiled() const { return spoiled_; }
  // The id in the frame that broke the protocol; 0: the frame could not be read.
  JobId culprit() const { return culprit_; }
  std::uint64_t answers() const { return answers_; }

 private:
  absl::Status OnHeartbeat(const worker::v1::Heartbeat& heartbeat);
  absl::Status OnHello(const worker::v1::Hello& hello);
  absl::Status OnSamples(const worker::v1::Samples& samples);
  absl::Status OnDone(const worker::v1::Done& done);
  absl::Status OnFailed(const worker::v1::Failed& failed);
  absl::Status OnCheckStep(const worker::v1::CheckStep& step);
  // A job that this worker holds; null for others.
  std::shared_ptr<const ActiveJob> Held(JobId id) const;
  absl::Status CheckGiven(JobId id);
  // A job that the worker does not hold: forgiven once.
  absl::Status Stranger(JobId id);
  absl::Status Break(JobId id, const absl::Status& why);
  void Answer(JobId id, JobResult result, bool spoiled = false);
  std::vector<double> TakeSamples(JobId id);

  bool is_guest() const { return worker_->role() == WorkerRole::kGuest; }
  void CutPrinted(Outcome& outcome) const;
  // Of a guest's answer.
  absl::Status TakeResults(const Job& job, Outcome& outcome);
  absl::Status SendCanary();
  absl::Status CheckCanary(const worker::v1::Done& done);
  void BecomeReady();

  const FleetContext context_;
  const std::string device_;
  const std::shared_ptr<Worker> worker_;  // The scheduler's too.
  const std::uint64_t generation_;
  HelloAssembler hello_;
  const MemoryRange canary_memory_;
  std::optional<Job> canary_;
  std::map<JobId, SampleBuffer> samples_;
  bool ready_ = false, spoiled_ = false;
  bool stepped_ = false, took_step_ = false;  // In this batch; in the last.
  JobId culprit_ = 0;
  int strangers_ = 0;
  std::vector<Scheduler::WorkerAnswer> kept_;
  std::uint64_t answers_ = 0;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_FLEET_SESSION_H_
