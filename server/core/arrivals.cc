#include "server/core/arrivals.h"

#include <algorithm>
#include <utility>

namespace gridclock {

Arrivals::Arrivals(int threads, Told told) : told_(std::move(told)) {
  for (int i = 0; i < threads; ++i) {
    threads_.emplace_back([this](const std::stop_token& stop) { Run(stop); });
  }
}

void Arrivals::Tell(JobId id, const InputArrival& arrival) {
  {
    const MutexLock lock(mutex_);
    const auto same = std::ranges::find_if(news_, [&](const News& news) {
      return news.id == id && news.arrival.input == arrival.input;
    });
    if (same != news_.end()) {
      same->arrival = arrival;
      return;
    }
    news_.push_back({.id = id, .arrival = arrival});
  }
  came_.notify_one();
}

std::optional<Arrivals::News> Arrivals::Next(const std::stop_token& stop) {
  const MutexLock lock(mutex_);
  const auto is_there = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !news_.empty(); };
  if (!came_.wait(mutex_, stop, is_there) || stop.stop_requested()) return std::nullopt;
  News next = news_.front();
  news_.pop_front();
  return next;
}

void Arrivals::Run(const std::stop_token& stop) {
  while (const std::optional<News> next = Next(stop)) told_(next->id, next->arrival);
}

}  // namespace gridclock
