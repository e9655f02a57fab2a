// Accepts connections in gRPC's place: gRPC 1.51 bounds neither their number nor their number from
// one peer, and stays deaf for ever after descriptors ran out once (CVE-2023-4785).
#ifndef GRIDCLOCK_SERVER_RPC_ACCEPTOR_H_
#define GRIDCLOCK_SERVER_RPC_ACCEPTOR_H_

#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <sys/socket.h>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/unique_fd.h"
#include "server/core/rpc_observer.h"

namespace gridclock {

// The connections that are open now. gRPC owns their descriptors and does not say when it closes
// one, so a descriptor counts as long as it still names the socket that was handed over.
class ConnectionTable {
 public:
  enum class Verdict { kTaken, kFull, kPeerFull };

  ConnectionTable(std::size_t most, std::size_t most_per_peer)
      : most_(most), most_per_peer_(most_per_peer) {}

  Verdict Take(int fd, const std::string& peer);
  // Forgets what was closed.
  void Sweep();
  std::size_t size() const { return open_.size(); }
  std::size_t busiest_peer() const;

 private:
  struct Connection {
    unsigned long inode = 0;
    std::string peer;
  };
  const std::size_t most_, most_per_peer_;
  std::map<int, Connection> open_;
  std::map<std::string, std::size_t> per_peer_;
};

// HOST:PORT and all that it stands for, asked once: a name's next answer may be another.
struct ListenAddress {
  std::string text;                         // "127.0.0.1:8470", "[::1]:0", "0.0.0.0:8470".
  std::vector<sockaddr_storage> addresses;  // At least one; the first is bound.
};
// INVALID_ARGUMENT for what is no address.
absl::StatusOr<ListenAddress> Resolve(const std::string& address);
// True if only this host can reach what the address stands for: a name may stand for several, and
// which of them is bound is chance, so all must be.
bool IsLoopback(const ListenAddress& address);

// Owns the listening socket and the thread that accepts.
class Acceptor {
 public:
  struct Options {
    ListenAddress listen;
    std::size_t connections = 1024;
    std::size_t peer_connections = 64;
  };

  // UNAVAILABLE if the address cannot be bound.
  static absl::StatusOr<std::unique_ptr<Acceptor>> Create(const Options& options,
                                                          const Clock& clock,
                                                          RpcObserver& observer);
  ~Acceptor();

  // `take` owns the descriptor from then on. Once.
  void Start(std::function<void(UniqueFd)> take);
  // Accepts no more; returns when the thread has ended. Idempotent.
  void Stop();

  int port() const { return port_; }
  // "127.0.0.1:41873": what was asked for, with the real port.
  const std::string& address() const { return address_; }
  // False if the thread has not come round for 5 s.
  bool alive() const;
  struct Usage {
    std::size_t connections = 0;
    std::size_t busiest_peer = 0;
  };
  // Of the connections that are open at this moment.
  Usage usage() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  Acceptor(const Options& options, const Clock& clock, RpcObserver& observer, UniqueFd listener,
           int port, std::string address);
  void Loop();
  // Those that gRPC closed because its reads of them failed.
  void CountCutOff();
  // What is counted of connections that are closed, each second.
  void ForgetClosed() ABSL_LOCKS_EXCLUDED(mutex_);
  void NoteRefused(const std::string& peer, std::size_t limit, absl::string_view name);
  // One line for all that were refused since the last one, not more often than each 10 s.
  void SayRefused();
  // False if the connection still waits: the next try would come to the same.
  bool AcceptOne();
  void TakeIn(UniqueFd connection, const std::string& peer) ABSL_LOCKS_EXCLUDED(mutex_);
  bool ShedOne();

  const Clock& clock_;
  RpcObserver& observer_;
  UniqueFd listener_;
  UniqueFd spare_;  // Given up for a moment when there is no other descriptor left; none: lost.
  UniqueFd stop_;   // An eventfd.
  const int port_;
  const std::string address_;
  std::function<void(UniqueFd)> take_;
  std::atomic<std::int64_t> last_turn_ns_{0};
  struct Refused {
    std::size_t connections = 0;  // Since it was last said.
    std::size_t limit = 0;        // The last one's.
    std::string name, peer;
  };
  Refused refused_;  // The thread's, as is the time.
  absl::Time next_said_ = absl::InfinitePast(), last_sweep_ = absl::InfinitePast();
  const std::size_t most_, most_per_peer_;
  mutable Mutex mutex_;
  ConnectionTable table_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_RPC_ACCEPTOR_H_
