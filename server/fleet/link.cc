#include "server/fleet/link.h"

#include <algorithm>
#include <iterator>

#include "absl/container/inlined_vector.h"

namespace gridclock {

int PacketLink::SendNow(std::span<const std::string> frames) const {
  absl::InlinedVector<std::span<const std::byte>, 16> packets;
  for (const std::string& frame : frames) {
    packets.push_back(std::as_bytes(std::span(frame.data(), frame.size())));
  }
  const auto sent = socket_.SendBatch(packets, Wait::kNo);
  return sent.ok() ? static_cast<int>(*sent) : -1;
}

bool PacketLink::FlushLocked() {
  while (!pending_.empty()) {
    const int sent = SendNow({&pending_.front(), 1});
    if (sent < 0) return false;
    if (sent == 0) return true;
    pending_.pop_front();
  }
  return true;
}

bool PacketLink::Send(std::span<const std::string> frames) {
  MutexLock lock(mutex_);
  if (!FlushLocked()) return false;
  int sent = 0;
  if (pending_.empty()) sent = SendNow(frames);
  if (sent < 0) return false;
  const auto rest = frames.subspan(sent);
  pending_.insert(pending_.end(), rest.begin(), rest.end());
  return pending_.size() <= kMostPending;
}

bool PacketLink::pending() const {
  MutexLock lock(mutex_);
  return !pending_.empty();
}

bool PacketLink::Flush() {
  MutexLock lock(mutex_);
  return FlushLocked();
}

}  // namespace gridclock
