// Safe retries: what became of the requests that carried a request_id.
#ifndef GRIDCLOCK_SERVER_CORE_IDEMPOTENCY_H_
#define GRIDCLOCK_SERVER_CORE_IDEMPOTENCY_H_

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <variant>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "server/core/limits.h"

namespace gridclock {

// Thread-safe. Ids of one principal mean nothing to another. Bounded by limits.request_ids,
// request_id_bytes and request_id_seconds. Where room is wanted, the oldest finished entry of the
// principal that holds the most goes; a running entry is never forgotten, and one principal may
// have half of request_ids running.
class RequestIds {
 public:
  struct Fresh {};  // Not seen before: run it, and call Finish or Forget.
  // The answer of the call that had this id; shared with the cache.
  using Answer = std::shared_ptr<const std::string>;

  RequestIds(const Clock& clock, const Limits& limits);

  // `content` is a hash of all that the request asks for, inline tensor bytes included. Chunks come
  // later and are not in it: no answer is kept of a call that has any.
  // INVALID_ARGUMENT: the id came before with another content. ALREADY_EXISTS: IN_PROGRESS, or DONE
  // if it finished and its answer is not kept. RESOURCE_EXHAUSTED: too many run.
  absl::StatusOr<std::variant<Fresh, Answer>> Begin(absl::string_view principal,
                                                    absl::string_view id, std::uint64_t content)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The call succeeded. `answer` null: it cannot be given again (its outputs were streamed).
  void Finish(absl::string_view principal, absl::string_view id, Answer answer)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The call failed: the id may be used again.
  void Forget(absl::string_view principal, absl::string_view id) ABSL_LOCKS_EXCLUDED(mutex_);

  // ALREADY_EXISTS, DONE.
  static absl::Status NotKept(absl::string_view id);

  struct Usage {
    std::size_t entries = 0;
    std::uint64_t bytes = 0;
  };
  Usage usage() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Holder;
  struct Entry {
    Holder* holder = nullptr;  // Of holders_, while it has entries.
    std::uint64_t content = 0;
    bool done = false;
    Answer answer;
    absl::Time finished;
    std::list<const std::string*>::iterator age;  // Of a done entry: its place in by_age.
  };
  using Entries = std::unordered_map<std::string, Entry>;
  // What one principal has.
  struct Holder {
    std::size_t running() const { return entries - by_age.size(); }
    std::string principal;
    std::size_t entries = 0;
    std::uint64_t bytes = 0;
    std::list<const std::string*> by_age;  // Keys of its done entries, oldest first.
  };

  void Erase(Entries::iterator entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropOld(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Of the principal that has the most of `measure`. False if nobody has a done entry.
  template <typename Measure>
  bool EraseOldestOfLargest(Measure Holder::*measure) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Clock& clock_;
  const std::size_t max_entries_, max_running_;
  const std::uint64_t max_bytes_;
  const absl::Duration max_age_;
  mutable Mutex mutex_;
  Entries entries_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Holder, std::less<>> holders_ ABSL_GUARDED_BY(mutex_);  // By principal.
  std::uint64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_CORE_IDEMPOTENCY_H_
