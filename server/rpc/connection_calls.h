// The calls of a connection that gRPC has not done with. gRPC 1.51 holds a client to a number of
// calls at once, but counts none that has ended on the wire; and while bytes come without a pause
// it goes on reading, begins calls, hands none of them on, and tells none of them that it is done.
// So each takes its memory for as long as somebody sends, whom nobody has asked for a token
// (CVE-2023-44487 is one way). They are counted as they come off the wire and as they are handed
// on.
#ifndef GRIDCLOCK_SERVER_RPC_CONNECTION_CALLS_H_
#define GRIDCLOCK_SERVER_RPC_CONNECTION_CALLS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include <sys/socket.h>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/mutex.h"

namespace gridclock {

class ConnectionCalls {
 public:
  // What gRPC takes for a call, and for each field of its headers: measured; and for a usual one.
  static constexpr std::int64_t kBytesOfCall = 20'000, kBytesOfField = 208;
  static constexpr std::int64_t kUsualBytes = kBytesOfCall + 20 * kBytesOfField;
  // So many usual ones one connection may have beside a few times what it may have open, 50 MB;
  // and, once all together have that many, beside a little of it.
  static constexpr int kMost = 2048, kMostInAll = 16384, kFew = 256;
  // The same of all calls that wait to be handed on; beyond that a connection may have as much as
  // those that it may have open take.
  static constexpr std::int64_t kMostBytesInAll = 128 << 20;
  static constexpr absl::Duration kPeriod = absl::Seconds(10);

  class Connection {
   public:
    explicit Connection(ConnectionCalls& all) : all_(all) {}
    ~Connection();
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    // A call came off the wire. False: it shall be closed, and is cut off.
    bool Begin(std::size_t fields, absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
    // gRPC has read all that had come. Now it hands on what it does not refuse itself.
    void NotePause(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
    bool cut_off() const { return cut_off_; }
    // Its next read fails.
    void CutOff() { cut_off_ = true; }
    // It is being closed, for whatever reason. True the first time.
    bool NoteClosed() {
      cut_off_ = true;
      return !closed_.exchange(true);
    }
    // What its calls take that were handed on and are not done with.
    std::int64_t held() const { return held_; }

   private:
    friend class ConnectionCalls;
    // The next call was handed on.
    void HandOn() ABSL_LOCKS_EXCLUDED(mutex_);
    // Calls that gRPC refuses itself are never handed on: what still waits a period after a pause
    // is such.
    void ForgetOld(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
    void Drop(int calls) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

    ConnectionCalls& all_;
    std::atomic<std::int64_t> held_{0};
    std::atomic<bool> cut_off_{false}, closed_{false};
    Mutex mutex_;
    int waiting_ ABSL_GUARDED_BY(mutex_) = 0;  // Off the wire and not handed on.
    std::int64_t waiting_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
    absl::Time paused_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();  // Not forgotten since.
    int refused_ ABSL_GUARDED_BY(mutex_) = 0;  // The most that may wait from before that pause.
    // Several sockets: a pause of one says nothing of what came by another.
    bool shared_ ABSL_GUARDED_BY(mutex_) = false;
  };

  // So many calls a connection may have open at once: --limit-streams.
  void SetStreams(int streams) { streams_ = streams; }

  // The next connection from this address and port. Where another is open, to another address of
  // the server, gRPC tells their calls not apart, and neither do we: they are counted as one.
  std::shared_ptr<Connection> Add(const sockaddr_storage& from) ABSL_LOCKS_EXCLUDED(mutex_);

  // Of connections on which no more begin, too; to be called each few seconds.
  void ForgetOld(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);

  // One call of a connection that was handed on, as long as this lives.
  class Place {
   public:
    // `peer`: as gRPC names it. One that was not added counts among all.
    Place(ConnectionCalls& all, absl::string_view peer, std::size_t fields);
    ~Place();
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

   private:
    ConnectionCalls& all_;
    const std::shared_ptr<Connection> connection_;
    const std::int64_t bytes_;
  };

 private:
  std::shared_ptr<Connection> Find(absl::string_view peer) ABSL_LOCKS_EXCLUDED(mutex_);

  static std::int64_t BytesOf(std::size_t fields) {
    return kBytesOfCall + kBytesOfField * static_cast<std::int64_t>(fields);
  }
  bool HoldsTooMuch(std::int64_t own, std::int64_t in_all) const;
  bool WaitsForTooMuch(std::int64_t own, std::int64_t in_all) const;

  std::atomic<std::int64_t> streams_{0};
  std::atomic<std::int64_t> held_{0}, waiting_bytes_{0};
  Mutex mutex_;
  std::map<std::string, std::weak_ptr<Connection>, std::less<>> known_ ABSL_GUARDED_BY(mutex_);
  std::size_t swept_at_ ABSL_GUARDED_BY(mutex_) = 64;
};

// Of this process, as are the connections that gRPC reads (watched_reads.h).
ConnectionCalls& CallsOfConnections();

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_RPC_CONNECTION_CALLS_H_
