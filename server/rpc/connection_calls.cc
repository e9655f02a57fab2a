#include "server/rpc/connection_calls.h"

#include <algorithm>
#include <utility>
#include <vector>

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
  if (connection == nullptr || connection->cut_off()) {
    connection = std::make_shared<Connection>(*this);
    known = connection;
  } else {
    const MutexLock of_connection(connection->mutex_);
    connection->shared_ = true;
  }
  return connection;
}

std::shared_ptr<ConnectionCalls::Connection> ConnectionCalls::Find(absl::string_view peer) {
  const std::string endpoint = EndpointOf(peer);
  const MutexLock lock(mutex_);
  const auto found = known_.find(endpoint);
  return found == known_.end() ? nullptr : found->second.lock();
}

void ConnectionCalls::ForgetOld(absl::Time now) {
  std::vector<std::shared_ptr<Connection>> open;
  {
    const MutexLock lock(mutex_);
    for (const auto& [endpoint, known] : known_) {
      if (auto connection = known.lock()) open.push_back(std::move(connection));
    }
  }
  for (const auto& connection : open) {
    const MutexLock lock(connection->mutex_);
    connection->ForgetOld(now);
  }
}

bool ConnectionCalls::HoldsTooMuch(std::int64_t own, std::int64_t in_all) const {
  if (own > kUsualBytes * (kMost + 4 * streams_)) return true;
  return in_all > kUsualBytes * kMostInAll && own > kUsualBytes * (kFew + 2 * streams_);
}

bool ConnectionCalls::WaitsForTooMuch(std::int64_t own, std::int64_t in_all) const {
  if (own > kUsualBytes * (kFew + 2 * streams_)) return true;
  return in_all > kMostBytesInAll && own > kUsualBytes * streams_;
}

bool ConnectionCalls::Connection::Begin(std::size_t fields, absl::Time now) {
  const std::int64_t bytes = BytesOf(fields);
  const MutexLock lock(mutex_);
  ForgetOld(now);
  ++waiting_;
  waiting_bytes_ += bytes;
  const std::int64_t in_all = all_.waiting_bytes_ += bytes;
  if (all_.WaitsForTooMuch(waiting_bytes_, in_all)) cut_off_ = true;
  return !cut_off_;
}

void ConnectionCalls::Connection::NotePause(absl::Time now) {
  const MutexLock lock(mutex_);
  if (shared_ || waiting_ == 0 || paused_ != absl::InfiniteFuture()) return;
  paused_ = now;
  refused_ = waiting_;
}

void ConnectionCalls::Connection::ForgetOld(absl::Time now) {
  if (now - paused_ < kPeriod) return;
  if (!shared_) Drop(refused_);
  paused_ = absl::InfiniteFuture();
}

// Those of a connection whose frames could not be read were not counted.
void ConnectionCalls::Connection::HandOn() {
  const MutexLock lock(mutex_);
  if (waiting_ > 0) Drop(1);
  refused_ = std::min(refused_, waiting_);
}

// Which they are is not known: each counts as the mean of those that wait.
void ConnectionCalls::Connection::Drop(int calls) {
  if (calls == 0) return;
  const std::int64_t bytes = waiting_bytes_ / waiting_ * calls;
  waiting_ -= calls;
  waiting_bytes_ -= bytes;
  all_.waiting_bytes_ -= bytes;
}

// gRPC hands on what it had read, or forgets it.
ConnectionCalls::Connection::~Connection() {
  const MutexLock lock(mutex_);
  all_.waiting_bytes_ -= waiting_bytes_;
}

ConnectionCalls::Place::Place(ConnectionCalls& all, absl::string_view peer, std::size_t fields)
    : all_(all), connection_(all.Find(peer)), bytes_(BytesOf(fields)) {
  const std::int64_t in_all = all_.held_ += bytes_;
  if (connection_ == nullptr) return;
  connection_->HandOn();
  const std::int64_t own = connection_->held_ += bytes_;
  if (all_.HoldsTooMuch(own, in_all)) connection_->cut_off_ = true;
}

ConnectionCalls::Place::~Place() {
  all_.held_ -= bytes_;
  if (connection_ != nullptr) connection_->held_ -= bytes_;
}

ConnectionCalls& CallsOfConnections() {
  static ConnectionCalls calls;
  return calls;
}

}  // namespace gridclock
