#include "kernels/worker/link.h"

#include <algorithm>
#include <array>

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

}  // namespace gridclock
