#include "server/core/byte_budget.h"

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace gridclock {

absl::Status ByteBudget::Full(std::uint64_t bytes, std::uint64_t most, std::uint64_t held) const {
  return WithDetails(absl::ResourceExhaustedError(
                         absl::StrCat("want ", bytes, " bytes more, but ", held, " of ", most,
                                      " (limit ", limit_, ") are in use; try again later")),
                     {.reason = "MEMORY_FULL",
                      .field = "",
                      .retry_after = absl::Milliseconds(100),
                      .metadata = {{"limit", limit_}, {"value", absl::StrCat(most)}}});
}

absl::Status ByteBudget::Take(absl::string_view principal, std::uint64_t bytes) {
  const MutexLock lock(mutex_);
  const auto held = held_.find(principal);
  const std::uint64_t own = held == held_.end() ? 0 : held->second;
  if (bytes > bytes_ / 2 - own) return Full(bytes, bytes_ / 2, own);
  if (bytes > bytes_ - used_) return Full(bytes, bytes_, used_);
  used_ += bytes;
  if (held != held_.end())
    held->second += bytes;
  else
    held_.emplace(principal, bytes);
  return absl::OkStatus();
}

void ByteBudget::Return(absl::string_view principal, std::uint64_t bytes) {
  const MutexLock lock(mutex_);
  const auto held = held_.find(principal);
  if (held == held_.end()) return;
  used_ -= bytes;
  if ((held->second -= bytes) == 0) held_.erase(held);
}

std::uint64_t ByteBudget::used() const {
  const MutexLock lock(mutex_);
  return used_;
}

}  // namespace gridclock
