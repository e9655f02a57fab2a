// The calls of a connection that gRPC has not done with. gRPC 1.51 holds a client to a number of
// calls at once, but counts none that has ended on the wire; and while bytes of a connection come
// without a pause it goes on reading, begins calls, and tells none of them that it is done. So each
// takes its 20 KB for as long as somebody sends, whom nobody has asked for a token (CVE-2023-44487
// is one way).
#ifndef GRIDCLOCK_SERVER_RPC_CONNECTION_CALLS_H_
#define GRIDCLOCK_SERVER_RPC_CONNECTION_CALLS_H_

#include <atomic>
#include <map>
#include <memory>
#include <string>

#include <sys/socket.h>

#include "absl/strings/string_view.h"
#include "base/mutex.h"

namespace gridclock {

class ConnectionCalls {
 public:
  // What one connection may have beside a few times what it may have open, 50 MB; and, once all
  // together have that many, beside a little of it.
  static constexpr int kMost = 2048, kMostInAll = 16384, kFew = 256;

  struct Connection {
    std::atomic<int> calls{0};
    std::atomic<bool> cut_off{false};  // It shall be closed.
  };

  // So many calls a connection may have open at once: --limit-streams.
  void SetStreams(int streams) { streams_ = streams; }

  // The next connection from this address and port. Where another is open, to another address of
  // the server, gRPC tells their calls not apart, and neither do we: they are counted as one.
  std::shared_ptr<Connection> Add(const sockaddr_storage& from) ABSL_LOCKS_EXCLUDED(mutex_);

  // One call of a connection, as long as this lives.
  class Place {
   public:
    // `peer`: as gRPC names it. One that was not added counts among all.
    Place(ConnectionCalls& all, absl::string_view peer);
    ~Place();
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

   private:
    ConnectionCalls& all_;
    const std::shared_ptr<Connection> connection_;
  };

 private:
  std::shared_ptr<Connection> Find(absl::string_view peer) ABSL_LOCKS_EXCLUDED(mutex_);

  bool HasTooMany(int own, int in_all) const;

  std::atomic<int> calls_{0}, streams_{0};
  Mutex mutex_;
  std::map<std::string, std::weak_ptr<Connection>, std::less<>> known_ ABSL_GUARDED_BY(mutex_);
  std::size_t swept_at_ ABSL_GUARDED_BY(mutex_) = 64;
};

// Of this process, as are the connections that gRPC reads (watched_reads.h).
ConnectionCalls& CallsOfConnections();

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_RPC_CONNECTION_CALLS_H_
