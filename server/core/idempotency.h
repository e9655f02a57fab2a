// Safe retries: what became of the requests that carried a request_id.
#ifndef GRIDCLOCK_SERVER_CORE_IDEMPOTENCY_H_
#define GRIDCLOCK_SERVER_CORE_IDEMPOTENCY_H_

#include <cstdint>
#include <list>
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
// request_id_bytes and request_id_seconds: the oldest finished entry goes first; a running entry is
// never forgotten.
class RequestIds {
 public:
  struct Fresh {};  // Not seen before: run it, and call Finish or Forget.
  // The answer of the call that had this id; shared with the cache.
  using Answer = std::shared_ptr<const std::string>;

  RequestIds(const Clock& clock, const Limits& limits);

  // `content` is a hash of all that the request asks for, its tensor bytes included.
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
  struct Entry {
    std::uint64_t content = 0;
    bool done = false;
    Answer answer;
    absl::Time finished;
    std::list<const std::string*>::iterator age;  // Of a done entry: its place in by_age_.
  };
  using Entries = std::unordered_map<std::string, Entry>;

  void Erase(Entries::iterator entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropOld(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool EraseOldest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Clock& clock_;
  const std::size_t max_entries_;
  const std::uint64_t max_bytes_;
  const absl::Duration max_age_;
  mutable Mutex mutex_;
  Entries entries_ ABSL_GUARDED_BY(mutex_);
  std::list<const std::string*> by_age_
      ABSL_GUARDED_BY(mutex_);  // Keys of done entries, oldest first.
  std::uint64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_CORE_IDEMPOTENCY_H_
