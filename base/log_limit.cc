#include "base/log_limit.h"

#include <algorithm>
#include <utility>

namespace gridclock {

std::optional<std::uint64_t> LogLimit::Take(absl::string_view event, absl::Time now) {
  MutexLock lock(mutex_);
  auto found = buckets_.find(event);
  if (found == buckets_.end()) {
    if (buckets_.size() >= kEvents) return 0;
    found = buckets_.emplace(std::string(event), Bucket{.filled = now}).first;
  }
  Bucket& bucket = found->second;
  const double passed = std::max(absl::ToDoubleSeconds(now - bucket.filled), 0.0);
  bucket.lines = std::min(kBurst, bucket.lines + passed * kPerSecond);
  bucket.filled = now;
  if (bucket.lines < 1) {
    ++bucket.left_out;
    return std::nullopt;
  }
  bucket.lines -= 1;
  return std::exchange(bucket.left_out, 0);
}

std::map<std::string, std::uint64_t> LogLimit::TakeQuiet(absl::Time now) {
  std::map<std::string, std::uint64_t> quiet;
  MutexLock lock(mutex_);
  for (auto& [event, bucket] : buckets_) {
    if (bucket.left_out == 0 || now - bucket.filled < kQuiet) continue;
    quiet[event] = std::exchange(bucket.left_out, 0);
  }
  return quiet;
}

}  // namespace gridclock
