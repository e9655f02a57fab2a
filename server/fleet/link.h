// The way to a worker and back: frames of at most kFrameLimit bytes, in order, in batches.
#ifndef GRIDCLOCK_SERVER_FLEET_LINK_H_
#define GRIDCLOCK_SERVER_FLEET_LINK_H_

#include <cstddef>
#include <deque>
#include <span>
#include <string>

#include "absl/strings/string_view.h"
#include "base/mutex.h"
#include "base/packet_socket.h"

namespace gridclock {

// Thread-safe.
class Link {
 public:
  virtual ~Link() = default;
  // Takes the frames, in order. False: the other side is gone, or so far behind that it is lost.
  virtual bool Send(std::span<const std::string> frames) = 0;
  // Frames were taken that the other side has no room for yet; Flush tries again.
  virtual bool pending() const = 0;
  virtual bool Flush() = 0;
  // Takes what came, without waiting. One thread alone may receive.
  virtual absl::StatusOr<PacketSocket::Read> Receive(PacketBatch& batch) = 0;
  // To poll: readable when there is something to receive, writable when Flush may get on.
  virtual int fd() const = 0;
};

// Over a SEQPACKET socket.
class PacketLink final : public Link {
 public:
  // Beyond so many frames that wait the worker is taken for lost: it may hold 64 orders and their
  // cancels.
  static constexpr std::size_t kMostPending = 256;

  explicit PacketLink(PacketSocket socket) : socket_(std::move(socket)) {}
  bool Send(std::span<const std::string> frames) override ABSL_LOCKS_EXCLUDED(mutex_);
  bool pending() const override ABSL_LOCKS_EXCLUDED(mutex_);
  bool Flush() override ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<PacketSocket::Read> Receive(PacketBatch& batch) override {
    return socket_.ReceiveBatch(batch, Wait::kNo);
  }
  int fd() const override { return socket_.fd(); }

 private:
  // How many were sent; -1 if the other side is gone.
  int SendNow(std::span<const std::string> frames) const;
  bool FlushLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const PacketSocket socket_;
  mutable Mutex mutex_;  // Held while sending, which does not wait: it keeps frames in order.
  std::deque<std::string> pending_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_FLEET_LINK_H_
