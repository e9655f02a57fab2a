#include "server/core/idempotency.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace gridclock {
namespace {

// The length keeps ("a", "bc") and ("ab", "c") apart.
std::string KeyOf(absl::string_view principal, absl::string_view id) {
  return absl::StrCat(principal.size(), ":", principal, id);
}

absl::Status Exists(absl::string_view id, absl::string_view reason, absl::string_view what) {
  return WithDetails(
      absl::AlreadyExistsError(absl::StrCat("request_id '", absl::CHexEscape(id), "' ", what)),
      {.reason = std::string(reason),
       .field = "request_id",
       .retry_after = std::nullopt,
       .metadata = {}});
}

}  // namespace

RequestIds::RequestIds(const Clock& clock, const Limits& limits)
    : clock_(clock),
      max_entries_(static_cast<std::size_t>(limits.request_ids)),
      max_bytes_(static_cast<std::uint64_t>(limits.request_id_bytes)),
      max_age_(absl::Seconds(limits.request_id_seconds)) {}

absl::StatusOr<std::variant<RequestIds::Fresh, RequestIds::Answer>> RequestIds::Begin(
    absl::string_view principal, absl::string_view id, std::uint64_t content) {
  std::string key = KeyOf(principal, id);
  MutexLock lock(mutex_);
  DropOld(clock_.Now());
  if (const auto found = entries_.find(key); found != entries_.end()) {
    const Entry& entry = found->second;
    if (entry.content != content) {
      return WithField(absl::InvalidArgumentError(absl::StrCat(
                           "request_id '", absl::CHexEscape(id),
                           "' was used for another request; want a new id for new content")),
                       "request_id");
    }
    if (!entry.done) return Exists(id, "IN_PROGRESS", "is running; wait for its answer");
    if (entry.answer == nullptr) return NotKept(id);
    return std::variant<Fresh, Answer>(entry.answer);
  }
  if (entries_.size() >= max_entries_ && !EraseOldest()) {
    return WithDetails(
        absl::ResourceExhaustedError(absl::StrCat(
            "calls with a request_id that run now: ", entries_.size(), ", the most allowed")),
        {.reason = "QUEUE_FULL",
         .field = "request_id",
         .retry_after = absl::Milliseconds(100),
         .metadata = {{"limit", "request_ids"}, {"value", absl::StrCat(max_entries_)}}});
  }
  entries_[std::move(key)].content = content;
  return std::variant<Fresh, Answer>(Fresh{});
}

absl::Status RequestIds::NotKept(absl::string_view id) {
  return Exists(id, "DONE", "has finished; its answer is not kept");
}

void RequestIds::Finish(absl::string_view principal, absl::string_view id, Answer answer) {
  MutexLock lock(mutex_);
  const auto found = entries_.find(KeyOf(principal, id));
  if (found == entries_.end() || found->second.done) return;
  if (answer != nullptr && answer->size() > max_bytes_) answer = nullptr;
  Entry& entry = found->second;
  entry.done = true;
  entry.finished = clock_.Now();
  entry.age = by_age_.insert(by_age_.end(), &found->first);
  if (answer == nullptr) return;
  bytes_ += answer->size();
  entry.answer = std::move(answer);
  // The new entry is the youngest and fits alone, so the loop stops before it.
  while (bytes_ > max_bytes_) EraseOldest();
}

void RequestIds::Forget(absl::string_view principal, absl::string_view id) {
  MutexLock lock(mutex_);
  const auto found = entries_.find(KeyOf(principal, id));
  if (found != entries_.end() && !found->second.done) entries_.erase(found);
}

RequestIds::Usage RequestIds::usage() const {
  MutexLock lock(mutex_);
  return {.entries = entries_.size(), .bytes = bytes_};
}

void RequestIds::Erase(Entries::iterator entry) {
  if (entry->second.answer != nullptr) bytes_ -= entry->second.answer->size();
  by_age_.erase(entry->second.age);
  entries_.erase(entry);
}

bool RequestIds::EraseOldest() {
  if (by_age_.empty()) return false;
  Erase(entries_.find(*by_age_.front()));
  return true;
}

void RequestIds::DropOld(absl::Time now) {
  while (!by_age_.empty()) {
    const auto oldest = entries_.find(*by_age_.front());
    if (now - oldest->second.finished < max_age_) return;
    Erase(oldest);
  }
}

}  // namespace gridclock
