// The worker's end of the link to the server: frames out, frames in.
#ifndef GRIDCLOCK_KERNELS_WORKER_LINK_H_
#define GRIDCLOCK_KERNELS_WORKER_LINK_H_

#include <cstddef>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/packet_socket.h"

namespace gridclock {

// One thread may send while another receives; two may send.
class Link {
 public:
  virtual ~Link() = default;
  // Sends all frames in order, waiting for room. UNAVAILABLE if the server is gone.
  virtual absl::Status Send(std::span<const std::string> frames) = 0;
  virtual absl::StatusOr<PacketSocket::Read> Receive(PacketBatch& batch, Wait wait) = 0;
  // False: for so long there was nothing to receive.
  virtual bool Comes(absl::Duration within) = 0;
};

class SocketLink final : public Link {
 public:
  explicit SocketLink(PacketSocket socket) : socket_(std::move(socket)) {}
  absl::Status Send(std::span<const std::string> frames) override;
  absl::StatusOr<PacketSocket::Read> Receive(PacketBatch& batch, Wait wait) override {
    return socket_.ReceiveBatch(batch, wait);
  }
  bool Comes(absl::Duration within) override;

 private:
  PacketSocket socket_;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_WORKER_LINK_H_
