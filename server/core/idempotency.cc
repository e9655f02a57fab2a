#include "server/core/idempotency.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "proto/types/quote.h"

namespace gridclock {
namespace {

// The length keeps ("a", "bc") and ("ab", "c") apart.
std::string KeyOf(absl::string_view principal, absl::string_view id) {
  return absl::StrCat(principal.size(), ":", principal, id);
}

absl::Status Exists(absl::string_view id, absl::string_view reason, absl::string_view what) {
  return WithDetails(absl::AlreadyExistsError(absl::StrCat("request_id ", Quote(id), " ", what)),
                     {.reason = std::string(reason),
                      .field = "request_id",
                      .retry_after = std::nullopt,
                      .metadata = {}});
}

absl::Status Full(std::size_t running, std::size_t limit) {
  return WithDetails(absl::ResourceExhaustedError(absl::StrCat(
                         "calls with a request_id that run now: ", running, ", the most allowed")),
                     {.reason = "QUEUE_FULL",
                      .field = "request_id",
                      .retry_after = absl::Milliseconds(100),
                      .metadata = {{"limit", "request_ids"}, {"value", absl::StrCat(limit)}}});
}

}  // namespace

RequestIds::RequestIds(const Clock& clock, const Limits& limits)
    : clock_(clock),
      max_entries_(static_cast<std::size_t>(limits.request_ids)),
      max_running_((max_entries_ + 1) / 2),
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
      return InvalidField("request_id",
                          absl::StrCat("want a new id for new content, got ", Quote(id),
                                       ", which was used for another request"));
    }
    if (!entry.done) return Exists(id, "IN_PROGRESS", "is running; wait for its answer");
    if (entry.answer == nullptr) return NotKept(id);
    return std::variant<Fresh, Answer>(entry.answer);
  }
  const auto known = holders_.find(principal);
  const std::size_t running = known == holders_.end() ? 0 : known->second.running();
  if (running >= max_running_) return Full(running, max_running_);
  if (entries_.size() >= max_entries_ && !EraseOldestOfLargest(&Holder::entries)) {
    return Full(entries_.size(), max_entries_);
  }
  Holder& holder = holders_.try_emplace(std::string(principal)).first->second;
  holder.principal = std::string(principal);
  ++holder.entries;
  Entry& entry = entries_[std::move(key)];
  entry.holder = &holder;
  entry.content = content;
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
  Holder& holder = *entry.holder;
  entry.done = true;
  entry.finished = clock_.Now();
  entry.age = holder.by_age.insert(holder.by_age.end(), &found->first);
  if (answer == nullptr) return;
  bytes_ += answer->size();
  holder.bytes += answer->size();
  entry.answer = std::move(answer);
  while (bytes_ > max_bytes_ && EraseOldestOfLargest(&Holder::bytes)) {
  }
}

void RequestIds::Forget(absl::string_view principal, absl::string_view id) {
  MutexLock lock(mutex_);
  const auto found = entries_.find(KeyOf(principal, id));
  if (found != entries_.end() && !found->second.done) Erase(found);
}

RequestIds::Usage RequestIds::usage() const {
  MutexLock lock(mutex_);
  return {.entries = entries_.size(), .bytes = bytes_};
}

void RequestIds::Erase(Entries::iterator entry) {
  Holder& holder = *entry->second.holder;
  if (entry->second.answer != nullptr) {
    bytes_ -= entry->second.answer->size();
    holder.bytes -= entry->second.answer->size();
  }
  if (entry->second.done) holder.by_age.erase(entry->second.age);
  entries_.erase(entry);
  if (--holder.entries == 0) holders_.erase(holders_.find(holder.principal));
}

template <typename Measure>
bool RequestIds::EraseOldestOfLargest(Measure Holder::*measure) {
  const Holder* largest = nullptr;
  for (const auto& [principal, holder] : holders_) {
    if (holder.by_age.empty()) continue;
    if (largest == nullptr || holder.*measure > largest->*measure) largest = &holder;
  }
  if (largest == nullptr) return false;
  Erase(entries_.find(*largest->by_age.front()));
  return true;
}

void RequestIds::DropOld(absl::Time now) {
  for (auto it = holders_.begin(); it != holders_.end();) {
    const Holder& holder = (it++)->second;  // The last entry takes its holder with it.
    std::size_t left = holder.by_age.size();
    while (left-- > 0) {
      const auto oldest = entries_.find(*holder.by_age.front());
      if (now - oldest->second.finished < max_age_) break;
      Erase(oldest);
    }
  }
}

}  // namespace gridclock
