#include "server/metrics/turns.h"

#include <algorithm>

namespace gridclock {
namespace {

// The machine may have stood still while the page was made.
constexpr std::chrono::milliseconds kLongestRest{500};

}  // namespace

void Turns::Begin() {
  std::condition_variable_any woken;
  const MutexLock lock(mutex_);
  waiting_.push_back(&woken);
  while (taken_ || waiting_.front() != &woken) woken.wait(mutex_);
  while (Clock::now() < rested_) woken.wait_until(mutex_, rested_);
  waiting_.pop_front();
  taken_ = true;
  began_ = Clock::now();
}

void Turns::End() {
  const MutexLock lock(mutex_);
  const Clock::time_point now = Clock::now();
  taken_ = false;
  rested_ = now + std::min<Clock::duration>(rest_ * (now - began_), kLongestRest);
  if (!waiting_.empty()) waiting_.front()->notify_one();
}

int Turns::waiting() const {
  const MutexLock lock(mutex_);
  return static_cast<int>(waiting_.size());
}

}  // namespace gridclock
