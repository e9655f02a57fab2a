#include "server/metrics/instruments.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "absl/base/attributes.h"

namespace gridclock {
namespace {

constexpr double kEndless = std::numeric_limits<double>::infinity();

// 2^(k/8) / 2: where the buckets of an octave end, of a mantissa in [0.5, 1); and what is beyond.
constexpr double kMantissaBounds[] = {
    0.5,
    0.5452538663326288,
    0.5946035575013605,
    0.6484197773255048,
    0.7071067811865475,
    0.7711054127039704,
    0.8408964152537144,
    0.9170040432046711,
    kEndless,
    kEndless,
};
// How many of them lie below each eighth of [0.5, 1): no eighth holds more than two.
constexpr int kBoundsBelow[] = {0, 2, 3, 4, 5, 6, 7, 8};

// By its bits, and in place, as every launch that is counted comes by here.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline std::size_t BucketByBits(double value) {
  if (!(value > 0)) return 0;
  constexpr int kMantissaBits = 52, kHalf = 1022;
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const int exponent = static_cast<int>(bits >> kMantissaBits) - kHalf;
  const std::uint64_t fraction = bits & ((std::uint64_t{1} << kMantissaBits) - 1);
  const auto mantissa =
      std::bit_cast<double>(fraction | static_cast<std::uint64_t>(kHalf) << kMantissaBits);
  const int below = kBoundsBelow[fraction >> (kMantissaBits - kNativeSchema)];
  const int within = below + (mantissa > kMantissaBounds[below] ? 1 : 0) +
                     (mantissa > kMantissaBounds[below + 1] ? 1 : 0);
  const int index = (exponent - 1) * kNativePerOctave + within;
  return static_cast<std::size_t>(std::clamp(index, kNativeFirst, kNativeLast) - kNativeFirst);
}

const std::array<double, kNativeBuckets>& NativeUpperBounds() {
  static const auto bounds = [] {
    std::array<double, kNativeBuckets> out;
    for (std::size_t i = 0; i < out.size(); ++i) {
      const int index = kNativeFirst + static_cast<int>(i);
      const int octave = index >> kNativeSchema;
      out[i] = std::ldexp(kMantissaBounds[index - octave * kNativePerOctave], octave + 1);
    }
    return out;
  }();
  return bounds;
}

// fetch_add of a double is a function of the library, and not a short one.
void AddTo(std::atomic<double>& sum, double value) {
  double before = sum.load(std::memory_order_relaxed);
  while (!sum.compare_exchange_weak(before, before + value, std::memory_order_relaxed)) {
  }
}

}  // namespace

unsigned NextShard() {
  static std::atomic<unsigned> next{0};
  return next.fetch_add(1, std::memory_order_relaxed) % kMetricShards;
}

std::int64_t Tally::Value() const {
  std::int64_t sum = 0;
  for (const Shard& shard : shards_) sum += shard.value.load(std::memory_order_relaxed);
  return sum;
}

std::size_t NativeBucketOf(double value) {
  return BucketByBits(value);
}

double NativeUpperBound(std::size_t bucket) {
  return NativeUpperBounds()[bucket];
}

Histogram::Histogram(std::span<const double> bounds)
    : bounds_(bounds.first(std::min(bounds.size(), kMaxBuckets - 1))),
      shards_(std::make_unique<std::array<Shard, kMetricShards>>()) {
  for (std::size_t native = 1; native < kNativeBuckets; ++native) {
    const double above = NativeUpperBound(native - 1);
    const auto least = std::upper_bound(bounds_.begin(), bounds_.end(), above);
    least_[native] = static_cast<std::uint8_t>(least - bounds_.begin());
  }
}

void Histogram::Observe(double value, std::uint64_t run) {
  Shard& shard = (*shards_)[ThreadShard()];
  if (!std::isfinite(value)) return;  // One of them would spoil the sum for good.
  const std::size_t native = BucketByBits(value), bucket = BucketOf(value, native);
  shard.counts[CellOf(bucket, native)].fetch_add(1, std::memory_order_relaxed);
  AddTo(shard.sum, value);
  if (run != 0) runs_[bucket].store(run, std::memory_order_relaxed);
}

void Histogram::ObserveAll(std::span<const double> values, double scale) {
  std::array<std::uint32_t, kMaxCells> counts{};
  double sum = 0;
  for (const double raw : values) {
    const double value = raw * scale;
    if (!std::isfinite(value)) continue;
    const std::size_t native = NativeBucketOf(value);
    ++counts[CellOf(BucketOf(value, native), native)];
    sum += value;
  }
  Shard& shard = (*shards_)[ThreadShard()];
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] != 0) shard.counts[i].fetch_add(counts[i], std::memory_order_relaxed);
  }
  AddTo(shard.sum, sum);
}

void Histogram::Mark(double value, std::uint64_t run) {
  if (!std::isfinite(value)) return;
  runs_[BucketOf(value, NativeBucketOf(value))].store(run, std::memory_order_relaxed);
}

Histogram::Cells Histogram::ReadCells(double* sum) const {
  Cells cells;
  for (const Shard& shard : *shards_) {
    const double of_shard = shard.sum.load(std::memory_order_relaxed);
    // Its threads observed nothing: what is not above 0 is counted in the first cell.
    if (of_shard == 0 && shard.counts[0].load(std::memory_order_relaxed) == 0) continue;
    *sum += of_shard;
    cells.any = true;
    for (std::size_t i = 0; i < kMaxCells; ++i) {
      cells.counts[i] += shard.counts[i].load(std::memory_order_relaxed);
    }
  }
  return cells;
}

Histogram::Snapshot Histogram::Read() const {
  Snapshot result;
  result.counts.resize(bounds_.size() + 1);
  result.native.resize(kNativeBuckets);
  for (std::size_t i = 0; i < result.counts.size(); ++i) {
    result.runs.push_back(runs_[i].load(std::memory_order_relaxed));
  }
  const auto [cells, any] = ReadCells(&result.sum);
  if (!any) return result;
  const std::array<double, kNativeBuckets>& native_bounds = NativeUpperBounds();
  // From the least value up, the pairs of buckets that a value can lie in.
  std::size_t bucket = 0, native = 0;
  while (bucket < result.counts.size() && native < kNativeBuckets) {
    const std::uint64_t count = cells[CellOf(bucket, native)];
    result.counts[bucket] += count;
    result.native[native] += count;
    const double bound = bucket < bounds_.size() ? bounds_[bucket] : kEndless;
    const double native_bound = native + 1 < kNativeBuckets ? native_bounds[native] : kEndless;
    if (bound <= native_bound) ++bucket;
    if (native_bound <= bound) ++native;
  }
  return result;
}

double QuantileOf(std::span<const std::uint64_t> native, double part) {
  const auto all =
      static_cast<double>(std::accumulate(native.begin(), native.end(), std::uint64_t{0}));
  double below = 0;
  for (std::size_t i = 0; i < native.size() && all > 0; ++i) {
    const auto here = static_cast<double>(native[i]);
    if (below + here >= part * all && here > 0) {
      // Within a bucket as if the logarithms of its values lay evenly.
      const double inside = (part * all - below) / here;
      return NativeUpperBound(i) * std::exp2((inside - 1) / kNativePerOctave);
    }
    below += here;
  }
  return 0;
}

}  // namespace gridclock
