#include "server/metrics/instruments.h"

#include <algorithm>
#include <cmath>

namespace gridclock {

unsigned ThreadShard() {
  static std::atomic<unsigned> next{0};
  thread_local const unsigned shard = next.fetch_add(1, std::memory_order_relaxed) % kMetricShards;
  return shard;
}

std::int64_t Tally::Value() const {
  std::int64_t sum = 0;
  for (const Shard& shard : shards_) sum += shard.value.load(std::memory_order_relaxed);
  return sum;
}

Histogram::Histogram(std::span<const double> bounds)
    : bounds_(bounds.first(std::min(bounds.size(), kMaxBuckets - 1))),
      shards_(std::make_unique<std::array<Shard, kMetricShards>>()) {}

std::size_t Histogram::BucketOf(double value) const {
  return std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
}

void Histogram::Observe(double value) {
  if (!std::isfinite(value)) return;  // One of them would spoil the sum for good.
  Shard& shard = (*shards_)[ThreadShard()];
  shard.counts[BucketOf(value)].fetch_add(1, std::memory_order_relaxed);
  shard.sum.fetch_add(value, std::memory_order_relaxed);
}

void Histogram::ObserveAll(std::span<const double> values, double scale) {
  if (values.size() == 1) return Observe(values[0] * scale);
  std::array<std::uint64_t, kMaxBuckets> counts{};
  double sum = 0;
  for (const double raw : values) {
    const double value = raw * scale;
    if (!std::isfinite(value)) continue;
    ++counts[BucketOf(value)];
    sum += value;
  }
  Shard& shard = (*shards_)[ThreadShard()];
  for (std::size_t i = 0; i <= bounds_.size(); ++i) {
    if (counts[i] != 0) shard.counts[i].fetch_add(counts[i], std::memory_order_relaxed);
  }
  shard.sum.fetch_add(sum, std::memory_order_relaxed);
}

Histogram::Snapshot Histogram::Read() const {
  Snapshot result;
  result.counts.resize(bounds_.size() + 1);
  for (const Shard& shard : *shards_) {
    result.sum += shard.sum.load(std::memory_order_relaxed);
    for (std::size_t i = 0; i < result.counts.size(); ++i) {
      result.counts[i] += shard.counts[i].load(std::memory_order_relaxed);
    }
  }
  return result;
}

}  // namespace gridclock
