#ifndef GRIDCLOCK_SERVER_RPC_STALL_WATCH_H_
#define GRIDCLOCK_SERVER_RPC_STALL_WATCH_H_

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "server/core/scheduler.h"

namespace gridclock {

// Ends streams whose client neither sends nor reads. gRPC has no deadline for a single read or
// write, so someone must look from time to time. Thread-safe.
class StallWatch {
 public:
  class Stream {
   public:
    virtual ~Stream() = default;
    // Ends itself if it has waited for its client for too long. Called without the watch's lock.
    virtual void CheckStall(absl::Time now) = 0;
    // The server ends: a stream that has asked for nothing yet ends with `why`; where `grace_over`
    // every one does. What waits for a job alone ends with that. Called without the watch's lock.
    virtual void Drain(const absl::Status& /*why*/, bool /*grace_over*/) {}
    // Its job, if that is over and the client has not taken all outputs.
    virtual std::optional<JobView> Sending(absl::Time /*now*/) { return std::nullopt; }
    // Ends at once, unheard where the client does not read.
    virtual void CutOff(const absl::Status& /*why*/) {}
  };

  void Add(std::weak_ptr<Stream> stream) ABSL_LOCKS_EXCLUDED(mutex_) {
    const MutexLock lock(mutex_);
    if (streams_.size() >= swept_at_) Sweep();
    streams_.push_back(std::move(stream));
  }

  // Call about once a second.
  void Tick(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_) {
    for (const auto& stream : Alive()) stream->CheckStall(now);
  }

  void Drain(const absl::Status& why, bool grace_over) ABSL_LOCKS_EXCLUDED(mutex_) {
    for (const auto& stream : Alive()) stream->Drain(why, grace_over);
  }

  std::vector<JobView> Sending(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_) {
    std::vector<JobView> jobs;
    for (const auto& stream : Alive()) {
      if (auto job = stream->Sending(now)) jobs.push_back(*std::move(job));
    }
    return jobs;
  }

  // Cuts off the stream that sends the outputs of this job, and says what it was; nullopt: none.
  std::optional<JobView> StopSending(JobId id, const absl::Status& why, absl::Time now)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    for (const auto& stream : Alive()) {
      auto job = stream->Sending(now);
      if (!job || job->id != id) continue;
      stream->CutOff(why);
      return job;
    }
    return std::nullopt;
  }

 private:
  std::vector<std::shared_ptr<Stream>> Alive() ABSL_LOCKS_EXCLUDED(mutex_) {
    std::vector<std::shared_ptr<Stream>> alive;
    const MutexLock lock(mutex_);
    std::vector<std::weak_ptr<Stream>> kept;
    for (auto& stream : streams_) {
      if (auto held = stream.lock()) {
        alive.push_back(std::move(held));
        kept.push_back(std::move(stream));
      }
    }
    streams_ = std::move(kept);
    return alive;
  }

  // Short calls end between two ticks, and their memory with what is known of them here.
  void Sweep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    constexpr std::size_t kFew = 64;
    std::erase_if(streams_, [](const std::weak_ptr<Stream>& one) { return one.expired(); });
    swept_at_ = std::max(2 * streams_.size(), kFew);
  }

  Mutex mutex_;
  std::vector<std::weak_ptr<Stream>> streams_ ABSL_GUARDED_BY(mutex_);
  std::size_t swept_at_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_RPC_STALL_WATCH_H_
