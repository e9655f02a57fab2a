#include "server/rpc/connection_calls.h"

#include <algorithm>

#include "server/rpc/peer.h"

namespace gridclock {

std::shared_ptr<ConnectionCalls::Connection> ConnectionCalls::Add(const sockaddr_storage& from) {
  const MutexLock lock(mutex_);
  if (known_.size() >= swept_at_) {
    std::erase_if(known_, [](const auto& one) { return one.second.expired(); });
    swept_at_ = std::max<std::size_t>(2 * known_.size(), 64);
  }
  std::weak_ptr<Connection>& known = known_[EndpointOf(from)];
  std::shared_ptr<Connection> connection = known.lock();
  if (connection == nullptr || connection->cut_off) {
    connection = std::make_shared<Connection>();
    known = connection;
  }
  return connection;
}

std::shared_ptr<ConnectionCalls::Connection> ConnectionCalls::Find(absl::string_view peer) {
  const std::string endpoint = EndpointOf(peer);
  const MutexLock lock(mutex_);
  const auto found = known_.find(endpoint);
  return found == known_.end() ? nullptr : found->second.lock();
}

bool ConnectionCalls::HasTooMany(int own, int in_all) const {
  if (own > kMost + 4 * streams_) return true;
  return in_all > kMostInAll && own > kFew + 2 * streams_;
}

ConnectionCalls::Place::Place(ConnectionCalls& all, absl::string_view peer)
    : all_(all), connection_(all.Find(peer)) {
  const int in_all = ++all_.calls_;
  if (connection_ == nullptr) return;
  const int own = ++connection_->calls;
  if (all_.HasTooMany(own, in_all)) connection_->cut_off = true;
}

ConnectionCalls::Place::~Place() {
  --all_.calls_;
  if (connection_ != nullptr) --connection_->calls;
}

ConnectionCalls& CallsOfConnections() {
  static ConnectionCalls calls;
  return calls;
}

}  // namespace gridclock
