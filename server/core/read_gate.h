// How many messages of one client are on their way in at once.
#ifndef GRIDCLOCK_SERVER_CORE_READ_GATE_H_
#define GRIDCLOCK_SERVER_CORE_READ_GATE_H_

#include <cstddef>
#include <list>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "base/mutex.h"
#include "server/core/limits.h"

namespace gridclock {

// The longest message that gRPC takes: those between message_bytes and this are refused by the
// server itself, which can say why.
double MostCollected(const Limits& limits);

// gRPC collects a message until it is whole, but takes no more of it than the window before it is
// asked to read. So a client that is allowed `bytes` may have so many messages read at once as
// could make half of that, and as many more may wait for their turn as have windows for the other
// half. Thread-safe.
class ReadGate {
 public:
  class Reader {
   public:
    virtual ~Reader() = default;
    // It may read now. False: it wants to no more. Called without the gate's lock.
    virtual bool TakeTurn() = 0;
  };

  // Of one client. At least one reads, and one waits.
  ReadGate(double bytes, const Limits& limits);

  enum class Entry { kNow, kLater, kFull };
  // kNow: read. kLater: TakeTurn() is called when it may. Who has read before, and is in the middle
  // of its messages, finds a place to wait always.
  Entry Enter(const std::string& client, std::weak_ptr<Reader> reader, bool has_read = false)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Once for each that was let in, now or later: it reads no more.
  void Leave(const std::string& client) ABSL_LOCKS_EXCLUDED(mutex_);

  // RESOURCE_EXHAUSTED (QUEUE_FULL, with retry_after): for whom there is no place to wait.
  absl::Status Full() const;

 private:
  struct Client {
    std::size_t reading = 0;
    std::list<std::weak_ptr<Reader>> waiting;  // A deque would allocate for each call.
  };
  // Who has the place that became free; null: nobody wants it.
  std::shared_ptr<Reader> Next(const std::string& client) ABSL_LOCKS_EXCLUDED(mutex_);

  const std::size_t most_reading_, most_waiting_;
  Mutex mutex_;
  absl::flat_hash_map<std::string, Client> clients_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_CORE_READ_GATE_H_
