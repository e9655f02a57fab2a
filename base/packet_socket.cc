#include "base/packet_socket.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/status.h"

namespace gridclock {
namespace {

constexpr std::size_t kMaxBatch = 64;

// One packet of 64 KiB must never be the most that fits; the kernel doubles and bounds this.
constexpr int kBufferBytes = 1024 * 1024;

absl::Status SendError(int error) {
  if (error == EPIPE || error == ECONNRESET) {
    return absl::UnavailableError("the other side of the link is gone");
  }
  return ErrnoToStatus(error, "send");
}

// Sends up to kMaxBatch packets; -1 with errno set on failure of the first.
int SendSome(int fd, std::span<const std::span<const std::byte>> packets, int flags) {
  std::array<iovec, kMaxBatch> parts;
  std::array<mmsghdr, kMaxBatch> headers;
  const std::size_t count = std::min(packets.size(), kMaxBatch);
  for (std::size_t i = 0; i < count; ++i) {
    parts[i] = {const_cast<std::byte*>(packets[i].data()), packets[i].size()};
    headers[i] = {};
    headers[i].msg_hdr.msg_iov = &parts[i];
    headers[i].msg_hdr.msg_iovlen = 1;
  }
  return sendmmsg(fd, headers.data(), count, flags | MSG_NOSIGNAL);
}

}  // namespace

PacketBatch::PacketBatch(std::size_t packets, std::size_t packet_bytes)
    : packet_bytes_(packet_bytes),
      bytes_(new std::byte[std::min(packets, kMaxBatch) * packet_bytes]),
      parts_(std::min(packets, kMaxBatch)),
      headers_(parts_.size()) {
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    parts_[i] = {bytes_.get() + i * packet_bytes_, packet_bytes_};
    headers_[i].msg_hdr.msg_iov = &parts_[i];
    headers_[i].msg_hdr.msg_iovlen = 1;
  }
}

std::span<const std::byte> PacketBatch::operator[](std::size_t i) const {
  return {bytes_.get() + i * packet_bytes_, headers_[i].msg_len};
}

absl::StatusOr<std::pair<PacketSocket, PacketSocket>> PacketSocket::Pair() {
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0) {
    return ErrnoToStatus(errno, "socketpair");
  }
  std::pair<PacketSocket, PacketSocket> pair{UniqueFd(fds[0]), UniqueFd(fds[1])};
  for (const int fd : fds) {
    // Best effort: without it the default size holds, and senders meet a full buffer sooner.
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &kBufferBytes, sizeof(kBufferBytes));
  }
  return pair;
}

absl::StatusOr<std::size_t> PacketSocket::SendBatch(
    std::span<const std::span<const std::byte>> packets, Wait wait) const {
  for (const auto& packet : packets) {
    if (packet.empty()) return absl::InvalidArgumentError("want packets of 1 byte or more, got 0");
  }
  std::size_t sent = 0;
  while (sent < packets.size()) {
    const int now =
        SendSome(fd_.get(), packets.subspan(sent), wait == Wait::kNo ? MSG_DONTWAIT : 0);
    if (now >= 0) {
      sent += now;
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return sent;
    } else if (errno != EINTR) {
      return SendError(errno);
    }
  }
  return sent;
}

absl::StatusOr<std::size_t> PacketSocket::Send(std::span<const std::byte> packet, Wait wait) const {
  return SendBatch({&packet, 1}, wait);
}

absl::StatusOr<PacketSocket::Read> PacketSocket::ReceiveBatch(PacketBatch& batch, Wait wait) const {
  batch.size_ = 0;
  const int flags = wait == Wait::kNo ? MSG_DONTWAIT : MSG_WAITFORONE;
  int got;
  // A peer that dies with packets of ours unread leaves ECONNRESET, once, ahead of what it had
  // sent.
  do {
    got = recvmmsg(fd_.get(), batch.headers_.data(), batch.headers_.size(), flags, nullptr);
  } while (got < 0 && (errno == EINTR || errno == ECONNRESET));
  if (got < 0) {
    if (errno == EAGAIN || errno == EWOULDBLOCK) return Read::kNothing;
    return ErrnoToStatus(errno, "receive");
  }
  // The end shows as packets of no bytes, after those that were sent before it.
  while (batch.size_ < static_cast<std::size_t>(got) && batch.headers_[batch.size_].msg_len > 0) {
    ++batch.size_;
  }
  return batch.size_ == 0 ? Read::kEnd : Read::kPackets;
}

}  // namespace gridclock
