#include "server/metrics/latency_window.h"

namespace gridclock {
namespace {

std::int64_t StretchAt(absl::Time time) {
  return absl::ToUnixSeconds(time) / LatencyWindow::kStretchSeconds;
}

}  // namespace

std::int64_t LatencyWindow::StartOf(absl::Time now) {
  return (StretchAt(now) - kStretches + 1) * kStretchSeconds;
}

void LatencyWindow::Touch(absl::Time now) {
  const std::int64_t stretch = StretchAt(now);
  const auto is_new = [&](std::memory_order order) {
    const std::int64_t newest = newest_.load(order);
    return stretch > newest || stretch < newest - kStretches;  // The clock was set back.
  };
  if (histogram_ == nullptr || !is_new(std::memory_order_acquire)) return;
  MutexLock lock(mutex_);
  if (!is_new(std::memory_order_relaxed)) return;
  starts_[static_cast<std::size_t>(stretch % kStretches)] = {stretch, histogram_->Read().native};
  newest_.store(stretch, std::memory_order_release);
}

const LatencyWindow::Start* LatencyWindow::OldestFrom(std::int64_t first) const {
  const Start* oldest = nullptr;
  for (const Start& start : starts_) {
    if (start.stretch < first || start.stretch >= first + kStretches) continue;
    if (oldest == nullptr || start.stretch < oldest->stretch) oldest = &start;
  }
  return oldest;
}

std::vector<std::uint64_t> LatencyWindow::Read(absl::Time now) const {
  if (histogram_ == nullptr) return {};
  MutexLock lock(mutex_);
  const Start* start = OldestFrom(StartOf(now) / kStretchSeconds);
  if (start == nullptr) return {};
  std::vector<std::uint64_t> counts = histogram_->Read().native;
  for (std::size_t i = 0; i < counts.size(); ++i) counts[i] -= start->native[i];
  return counts;
}

}  // namespace gridclock
