// Numbers that many threads change at once and a scrape now and then reads. Each thread writes to
// one of a few shards with relaxed atomics, so that two threads seldom meet on a cache line and
// none takes a lock: prometheus-cpp's own histogram takes a mutex for each observation.
#ifndef GRIDCLOCK_SERVER_METRICS_INSTRUMENTS_H_
#define GRIDCLOCK_SERVER_METRICS_INSTRUMENTS_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace gridclock {

inline constexpr unsigned kMetricShards = 8;
// The same for a thread's whole life.
unsigned ThreadShard();

// A counter (only ever raised) or a gauge. Thread-safe; a reader sees each change at some time, not
// all at one time.
class Tally {
 public:
  void Add(std::int64_t n) { shards_[ThreadShard()].value.fetch_add(n, std::memory_order_relaxed); }
  std::int64_t Value() const;

 private:
  struct alignas(64) Shard {
    std::atomic<std::int64_t> value{0};
  };
  std::array<Shard, kMetricShards> shards_;
};

// Thread-safe as Tally.
class Histogram {
 public:
  // Ascending upper bounds, inclusive; borrowed for ever (they are of the catalogue).
  explicit Histogram(std::span<const double> bounds);

  void Observe(double value);
  // Every value times `scale`: cheaper than one by one.
  void ObserveAll(std::span<const double> values, double scale);

  struct Snapshot {
    std::vector<std::uint64_t> counts;  // Of each bucket by itself; the last is +Inf.
    double sum = 0;
  };
  Snapshot Read() const;
  std::span<const double> bounds() const { return bounds_; }

 private:
  static constexpr std::size_t kMaxBuckets = 31;
  struct alignas(64) Shard {
    std::atomic<double> sum{0};
    std::array<std::atomic<std::uint64_t>, kMaxBuckets> counts{};
  };
  std::size_t BucketOf(double value) const;

  const std::span<const double> bounds_;
  const std::unique_ptr<std::array<Shard, kMetricShards>> shards_;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_METRICS_INSTRUMENTS_H_
