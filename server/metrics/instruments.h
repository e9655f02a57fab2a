// Numbers that many threads change at once and a scrape now and then reads. Each thread writes to
// one of a few shards with relaxed atomics, so that two threads seldom meet on a cache line and
// none takes a lock.
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
unsigned NextShard();
// The same for a thread's whole life.
inline unsigned ThreadShard() {
  constexpr unsigned kNone = kMetricShards;
  constinit thread_local unsigned shard = kNone;
  if (shard == kNone) shard = NextShard();
  return shard;
}

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

// The buckets of Prometheus' native histograms at schema 3: eight for each power of two, so that a
// quantile is at most 9.1 % off. Bucket i, in Prometheus' count, ends at 2^(i/8); ours begin with
// one for all that is too small.
inline constexpr int kNativeSchema = 3;
inline constexpr int kNativePerOctave = 1 << kNativeSchema;
inline constexpr int kNativeFirst = -30 * kNativePerOctave;  // Its upper bound: about 1 ns.
inline constexpr int kNativeLast = 14 * kNativePerOctave;  // 4.5 hours; the last takes all beyond.
inline constexpr std::size_t kNativeBuckets = kNativeLast - kNativeFirst + 1;
std::size_t NativeBucketOf(double value);
double NativeUpperBound(std::size_t bucket);
// Of counts by native bucket; 0 if there is no value. It may lie beside every value that there was.
double QuantileOf(std::span<const std::uint64_t> native, double part);

// Thread-safe as Tally. Counts in buckets of given bounds and in native ones at once: what is
// counted is a cell, where a bucket of the one kind meets one of the other.
class Histogram {
 public:
  // Ascending upper bounds, inclusive; borrowed for ever (they are of the catalogue).
  explicit Histogram(std::span<const double> bounds);

  void Observe(double value) { Observe(value, 0); }
  // As Observe and Mark.
  void Observe(double value, std::uint64_t run);
  // Every value times `scale`: cheaper than one by one where they are many.
  void ObserveAll(std::span<const double> values, double scale);
  // `run` observed this value: the bucket's exemplar, until another comes.
  void Mark(double value, std::uint64_t run);

  struct Snapshot {
    std::vector<std::uint64_t> counts;  // Of each bucket by itself; the last is +Inf.
    std::vector<std::uint64_t> native;  // The same, kNativeBuckets of them.
    std::vector<std::uint64_t> runs;    // The last one marked in each bucket of `counts`; or 0.
    double sum = 0;
    double Quantile(double part) const { return QuantileOf(native, part); }
  };
  Snapshot Read() const;
  std::span<const double> bounds() const { return bounds_; }

 private:
  static constexpr std::size_t kMaxBuckets = 31;
  static constexpr std::size_t kMaxCells = kMaxBuckets + kNativeBuckets;
  struct alignas(64) Shard {
    std::atomic<double> sum{0};
    std::array<std::atomic<std::uint64_t>, kMaxCells> counts{};
  };
  struct Cells {
    std::array<std::uint64_t, kMaxCells> counts{};
    bool any = false;
  };
  // Of all shards, and what they add up to.
  Cells ReadCells(double* sum) const;
  std::size_t BucketOf(double value, std::size_t native) const {
    std::size_t bucket = least_[native];
    while (bucket < bounds_.size() && bounds_[bucket] < value) ++bucket;
    return bucket;
  }
  // Both numbers only ever grow with the value, so that no other pair has the same sum.
  static std::size_t CellOf(std::size_t bucket, std::size_t native) { return bucket + native; }

  const std::span<const double> bounds_;
  // Of each native bucket, the least bucket that its values can lie in: looking on from there is
  // shorter than a search, and each call is observed several times.
  std::array<std::uint8_t, kNativeBuckets> least_{};
  const std::unique_ptr<std::array<Shard, kMetricShards>> shards_;
  std::array<std::atomic<std::uint64_t>, kMaxBuckets> runs_{};
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_METRICS_INSTRUMENTS_H_
