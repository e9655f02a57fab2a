#include "kernels/worker/heartbeat.h"

#include <atomic>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "base/mutex.h"
#include "gridclock/worker/v1/worker.pb.h"

namespace gridclock {
namespace {

// Keeps what was sent.
class KeptLink final : public Link {
 public:
  absl::Status Send(std::span<const std::string> frames) override {
    MutexLock lock(mutex_);
    for (const std::string& frame : frames) {
      sent_.emplace_back().ParseFromString(frame);
    }
    return absl::OkStatus();
  }
  absl::StatusOr<PacketSocket::Read> Receive(PacketBatch&, Wait) override {
    return absl::UnimplementedError("nothing comes");
  }
  bool Comes(absl::Duration) override { return false; }

  // The first so many messages.
  std::vector<worker::v1::ToServer> First(std::size_t count) {
    for (;; absl::SleepFor(absl::Milliseconds(10))) {
      MutexLock lock(mutex_);
      if (sent_.size() >= count) return sent_;
    }
  }

 private:
  Mutex mutex_;
  std::vector<worker::v1::ToServer> sent_ ABSL_GUARDED_BY(mutex_);
};

TEST(Heartbeat, GoesOnWhileADriverDoesNotAnswer) {
  KeptLink link;
  const std::atomic<std::uint64_t> dropped{7};
  absl::Notification answer;
  const Heartbeat heartbeat(link, dropped, [&]() -> std::optional<DeviceVitals> {
    answer.WaitForNotification();
    return DeviceVitals();
  });

  EXPECT_FALSE(link.First(2)[1].heartbeat().has_vitals());
  answer.Notify();
  std::size_t beats = 3;
  while (!link.First(beats).back().heartbeat().has_vitals()) ++beats;
  EXPECT_EQ(link.First(beats)[0].heartbeat().dropped_frames(), 7);
}

}  // namespace
}  // namespace gridclock
