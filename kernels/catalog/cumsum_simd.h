// Prefix sums of a row on one core of a CPU: those of a vector in log2(lanes) additions, blocks of
// vectors, joined in double.
#ifndef GRIDCLOCK_KERNELS_CATALOG_CUMSUM_SIMD_H_
#define GRIDCLOCK_KERNELS_CATALOG_CUMSUM_SIMD_H_

#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>

#include "kernels/catalog/element.h"
#include "kernels/catalog/simd.h"

namespace gridclock::cumsum {

namespace hn = simd::hn;

// The sum of all lanes up to each: of what stands one lane before, then two, then four.
template <class D>
class LanesUpTo {
 public:
  LanesUpTo() {
    const hn::RebindToSigned<D> di;
    using Lane = hn::TFromD<decltype(di)>;
    const auto lane = hn::Iota(di, 0);
    for (int step = 0; step < kSteps; ++step) {
      const auto before = hn::Sub(lane, hn::Set(di, Lane{1} << step));
      has_[step] = hn::RebindMask(D(), hn::Gt(before, hn::Set(di, -1)));
      from_[step] = hn::IndicesFromVec(D(), hn::Max(before, hn::Zero(di)));
    }
  }
  hn::Vec<D> operator()(hn::Vec<D> v) const {
    for (int step = 0; step < kSteps; ++step) {
      const auto before = hn::TableLookupLanes(v, from_[step]);
      v = hn::Add(v, hn::IfThenElseZero(has_[step], before));
    }
    return v;
  }
  hn::Vec<D> LastOf(hn::Vec<D> v) const { return hn::TableLookupLanes(v, last_); }

 private:
  static constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(D()));
  static constexpr int kSteps = std::countr_zero(static_cast<std::uint64_t>(kLanes));
  using Indices = decltype(hn::IndicesFromVec(D(), hn::Zero(hn::RebindToSigned<D>())));

  Indices from_[kSteps];
  hn::Mask<D> has_[kSteps];
  Indices last_ = hn::IndicesFromVec(D(), hn::Set(hn::RebindToSigned<D>(), kLanes - 1));
};

// Terms whose sum is kept in vectors; what came before them is added last: its size would take
// digits from every addition.
constexpr std::int64_t kBlock = 2048;
// What a thread takes of a row. Sums are carried from part to part in one order, whoever adds them.
constexpr std::int64_t kPart = 16 * kBlock;

// Where prefixes go: nowhere if their sum alone is wanted, past the caches, or to memory.
enum class Results : std::uint8_t { kNone, kStream, kStore };

// Prefixes of up to a block behind `before`; its own sum.
template <Results kTo, typename T>
double ScanBlock(const T* x, T* y, std::int64_t n, double before) {
  const simd::Tag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const LanesUpTo<simd::Tag<T>> up_to;
  const auto start = hn::Set(d, static_cast<Wide<T>>(before));
  auto sum = hn::Zero(d);  // In all lanes.
  // The results of one vector.
  const auto next = [&](auto terms) {
    const auto within = up_to(terms);
    const auto result = hn::Add(start, hn::Add(sum, within));
    sum = hn::Add(sum, up_to.LastOf(within));
    return result;
  };
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    simd::PrefetchFrom(x + i);
    [[maybe_unused]] const auto results = next(simd::Read<T>(d, x + i));
    if constexpr (kTo == Results::kStream) hn::Stream(results, d, y + i);
    if constexpr (kTo == Results::kStore) simd::Write<T>(results, d, y + i);
  }
  if (const auto rest = static_cast<std::size_t>(n - i); rest > 0) {
    [[maybe_unused]] const auto results = next(simd::ReadPart<T>(d, x + i, rest));
    if constexpr (kTo != Results::kNone) simd::WritePart<T>(results, d, y + i, rest);
  }
  return hn::GetLane(sum);
}

// Of a part, or of a whole row, whose sum goes on from part to part.
template <Results kTo, typename T>
double ScanBlocks(const T* x, T* y, std::int64_t n, double before) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; i += kBlock) {
    T* to = kTo == Results::kNone ? nullptr : y + i;
    sum += ScanBlock<kTo>(x + i, to, std::min(kBlock, n - i), before + sum);
  }
  return sum;
}

template <typename T>
double ScanPart(const T* x, T* y, std::int64_t n, double before, bool stream) {
  if constexpr (std::is_same_v<T, Wide<T>>) {
    if (stream && simd::MayStreamTo(y)) return ScanBlocks<Results::kStream>(x, y, n, before);
  }
  return ScanBlocks<Results::kStore>(x, y, n, before);
}

template <typename T>
void ScanRow(const T* x, T* y, std::int64_t n, bool stream) {
  double before = 0;
  for (std::int64_t i = 0; i < n; i += kPart) {
    before += ScanPart(x + i, y + i, std::min(kPart, n - i), before, stream);
  }
}

}  // namespace gridclock::cumsum

#endif  // GRIDCLOCK_KERNELS_CATALOG_CUMSUM_SIMD_H_
