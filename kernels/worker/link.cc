#include "kernels/worker/link.h"

#include <algorithm>
#include <array>

#include <poll.h>

#include "base/status.h"

namespace gridclock {

absl::Status SocketLink::Send(std::span<const std::string> frames) {
  constexpr std::size_t kBatch = 64;
  std::array<std::span<const std::byte>, kBatch> packets;
  while (!frames.empty()) {
    const std::size_t count = std::min(kBatch, frames.size());
    for (std::size_t i = 0; i < count; ++i) packets[i] = std::as_bytes(std::span(frames[i]));
    GC_ASSIGN_OR_RETURN(const std::size_t sent,
                        socket_.SendBatch(std::span(packets.data(), count), Wait::kYes));
    frames = frames.subspan(sent);
  }
  return absl::OkStatus();
}

// An error is something to receive, too: who reads next is told.
bool SocketLink::Comes(absl::Duration within) {
  pollfd fd = {.fd = socket_.fd(), .events = POLLIN, .revents = 0};
  return poll(&fd, 1, static_cast<int>(absl::ToInt64Milliseconds(within))) != 0;
}

}  // namespace gridclock
