#include "server/fleet/supervisor.h"

#include <algorithm>

namespace gridclock {

Supervisor::Supervisor(const Options& options, std::uint64_t seed)
    : options_(options), random_(seed), wait_(options.first_wait) {}

void Supervisor::OnReady(absl::Time now) {
  ready_since_ = now;
  failed_starts_ = 0;
  if (quarantined_) ends_.clear();
  quarantined_ = false;
}

absl::Time Supervisor::OnEnd(End end, absl::Time now) {
  if (end == End::kStarved) return now + options_.starved_wait;
  const bool was_ready = ready_since_.has_value();
  if (was_ready && now - *ready_since_ >= options_.calm) wait_ = options_.first_wait;
  ready_since_.reset();
  if (was_ready && end != End::kItself) return now;

  ends_.push_back(now);
  while (now - ends_.front() > options_.breaker_window) ends_.pop_front();
  if (!was_ready) ++failed_starts_;
  const bool too_many =
      std::max(static_cast<int>(ends_.size()), failed_starts_) >= options_.breaker_ends;
  if (quarantined_ || too_many || end == End::kHungStart) {
    quarantined_ = true;
    return now + options_.probe_every;
  }
  return now + NextWait();
}

Supervisor::End Supervisor::EndOfSpawn(const absl::Status& why) {
  // EMFILE, ENFILE and ENOMEM; EAGAIN, where there are too many processes.
  const bool starved = absl::IsResourceExhausted(why) || absl::IsUnavailable(why);
  return starved ? End::kStarved : End::kItself;
}

absl::Duration Supervisor::NextWait() {
  const double factor =
      std::uniform_real_distribution<double>(1 - options_.jitter, 1 + options_.jitter)(random_);
  const absl::Duration wait = wait_ * factor;
  wait_ = std::min(wait_ * 2, options_.longest_wait);
  return wait;
}

}  // namespace gridclock
