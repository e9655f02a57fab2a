// The reading side of a worker's link. The worker's runner reads it; and so that a small call need
// not wake another thread, the thread that sent its order may read in the runner's place for as
// long as such a call takes.
#ifndef GRIDCLOCK_SERVER_FLEET_ANSWER_READER_H_
#define GRIDCLOCK_SERVER_FLEET_ANSWER_READER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/packet_socket.h"
#include "base/unique_fd.h"
#include "server/fleet/session.h"
#include "server/fleet/worker.h"

namespace gridclock {

// Thread-safe.
class AnswerReader {
 public:
  // Fails if the system has no descriptor left.
  static absl::StatusOr<std::shared_ptr<AnswerReader>> Create(const FleetContext& context,
                                                              std::string device,
                                                              std::shared_ptr<Worker> worker,
                                                              std::uint64_t generation,
                                                              const MemoryRange& canary_memory);

  // To poll: readable when something came, or the link ended, and no waiting thread reads it.
  int fd() const { return watch_.get(); }
  // Takes what came, a batch, or `to_the_end` all.
  void Read(bool to_the_end) ABSL_LOCKS_EXCLUDED(mutex_);
  // Takes what comes until the order is answered, at most kPatience. Returns at once where another
  // thread reads.
  void Await(JobId id) ABSL_LOCKS_EXCLUDED(mutex_);
  // Nothing that the worker says is heard any more.
  void Close() ABSL_LOCKS_EXCLUDED(mutex_);

  struct Progress {
    bool ready = false;                         // As Session::ready().
    std::uint64_t answers = 0;                  // So far.
    absl::Time heard;                           // When something came last.
    absl::Time ended = absl::InfiniteFuture();  // When the link ended, or was closed.
  };
  Progress progress() const ABSL_LOCKS_EXCLUDED(mutex_);
  // As Session::calibration().
  std::string calibration() const ABSL_LOCKS_EXCLUDED(mutex_);
  // After Close().
  const Session& session() const ABSL_NO_THREAD_SAFETY_ANALYSIS { return session_; }

 private:
  static constexpr absl::Duration kPatience = absl::Microseconds(100);

  AnswerReader(const FleetContext& context, std::string device, std::shared_ptr<Worker> worker,
               std::uint64_t generation, const MemoryRange& canary_memory, UniqueFd watch);
  // What one receive gave.
  PacketSocket::Read ReadBatch() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // An error means that the worker broke the protocol.
  absl::Status HearBatch() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool ended() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return ended_ != absl::InfiniteFuture();
  }
  // Whether the runner hears of what comes.
  void Watch(bool on) const;

  const FleetContext context_;
  const std::string device_;
  const std::shared_ptr<Worker> worker_;
  const std::uint64_t generation_;
  const UniqueFd watch_;
  // Of the thread that holds the lock: what it finishes may bring it back here.
  std::atomic<std::thread::id> reader_;
  mutable Mutex mutex_;
  Session session_ ABSL_GUARDED_BY(mutex_);
  PacketBatch batch_ ABSL_GUARDED_BY(mutex_);
  absl::Time heard_ ABSL_GUARDED_BY(mutex_);
  absl::Time ended_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_FLEET_ANSWER_READER_H_
