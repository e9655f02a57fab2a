// A pair of connected SOCK_SEQPACKET sockets: packets keep their boundaries and their order, and
// the death of one side is the end of file of the other. Sent and received in batches.
#ifndef GRIDCLOCK_BASE_PACKET_SOCKET_H_
#define GRIDCLOCK_BASE_PACKET_SOCKET_H_

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <sys/socket.h>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace gridclock {

enum class Wait { kNo, kYes };

// Where received packets lie until the next receive: buffers made once and used again. Pages of a
// buffer that no packet reached are never touched.
class PacketBatch {
 public:
  // For up to `packets` (at most 64) of at most `packet_bytes` each.
  PacketBatch(std::size_t packets, std::size_t packet_bytes);

  std::size_t size() const { return size_; }
  std::span<const std::byte> operator[](std::size_t i) const;
  // The packet was longer than a buffer, and its end is lost.
  bool truncated(std::size_t i) const { return (headers_[i].msg_hdr.msg_flags & MSG_TRUNC) != 0; }

 private:
  friend class PacketSocket;
  std::size_t packet_bytes_;
  std::unique_ptr<std::byte[]> bytes_;
  std::vector<iovec> parts_;
  std::vector<mmsghdr> headers_;
  std::size_t size_ = 0;
};

// Thread-safe as the descriptor is: one sender and one receiver may work at the same time.
class PacketSocket {
 public:
  // Both ends, close-on-exec.
  static absl::StatusOr<std::pair<PacketSocket, PacketSocket>> Pair();
  explicit PacketSocket(UniqueFd fd) : fd_(std::move(fd)) {}

  int fd() const { return fd_.get(); }
  UniqueFd Release() && { return std::move(fd_); }

  // Sends whole, non-empty packets in order and returns how many were taken: all, or fewer under
  // Wait::kNo when the buffer is full. UNAVAILABLE if the other side is gone; INVALID_ARGUMENT for
  // an empty packet, which the other side could not tell from the end. Never raises SIGPIPE.
  absl::StatusOr<std::size_t> SendBatch(std::span<const std::span<const std::byte>> packets,
                                        Wait wait) const;
  absl::StatusOr<std::size_t> Send(std::span<const std::byte> packet, Wait wait) const;

  enum class Read { kPackets, kNothing, kEnd };
  // Receives what is there, at most a batch. Under Wait::kYes it waits for the first packet;
  // kNothing comes under Wait::kNo alone. kEnd: the other side is gone and nothing is left to read.
  absl::StatusOr<Read> ReceiveBatch(PacketBatch& batch, Wait wait) const;

 private:
  UniqueFd fd_;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_BASE_PACKET_SOCKET_H_
