// What softmax and log_softmax share on a CPU: the largest of a row and its sum of exponentials,
// found by blocks that stay in the first cache between their two readings.
#ifndef GRIDCLOCK_KERNELS_CATALOG_SOFTMAX_SIMD_H_
#define GRIDCLOCK_KERNELS_CATALOG_SOFTMAX_SIMD_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/catalog/element.h"
#include "kernels/catalog/simd.h"
#include "kernels/catalog/simd_exp.h"

namespace gridclock::softmax {

namespace hn = simd::hn;

// The maximum so far, and the sum of exp(x - largest) so far.
template <typename W>
struct Partial {
  W largest = -std::numeric_limits<W>::infinity();
  W sum = 0;
};

// exp(x - largest), where nothing but -inf came so far: then x is -inf, and its part of the sum is
// 0.
template <typename W>
W Term(W x, W largest) {
  return largest == -std::numeric_limits<W>::infinity() && !(x > largest) && x == x
             ? W{0}
             : std::exp(x - largest);
}

template <typename W>
Partial<W> JoinPartials(Partial<W> a, Partial<W> b) {
  const W largest = std::max(a.largest, b.largest);
  return {largest, a.sum * Term(a.largest, largest) + b.sum * Term(b.largest, largest)};
}

// Of a row in one pass, plainly: when a larger element turns up, the sum so far is scaled down.
template <typename T>
Partial<Wide<T>> OnlinePartial(const T* x, std::int64_t n) {
  using W = Wide<T>;
  Partial<W> p;
  for (std::int64_t i = 0; i < n; ++i) {
    const W v = Widen(x[i]);
    if (v > p.largest) {
      p.sum *= Term(p.largest, v);
      p.largest = v;
    }
    p.sum += Term(v, p.largest);
  }
  return p;
}

// A block stays in the first cache between its two readings.
constexpr std::int64_t kBlock = 2048;

// NaN may be left out or kept, and either is right: the sum has it again.
template <typename T>
Wide<T> LargestOf(const T* x, std::int64_t n) {
  const simd::Tag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  constexpr auto kNothing = -std::numeric_limits<Wide<T>>::infinity();
  auto m0 = hn::Set(d, kNothing), m1 = m0;
  std::int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    m0 = hn::Max(simd::Read<T>(d, x + i), m0);
    m1 = hn::Max(simd::Read<T>(d, x + i + lanes), m1);
  }
  for (; i < n; i += lanes) {
    const auto part = static_cast<std::size_t>(std::min(lanes, n - i));
    m0 = hn::Max(simd::ReadPart<T>(d, x + i, part, Narrow<T>(kNothing)), m0);
  }
  return hn::GetLane(hn::MaxOfLanes(d, hn::Max(m0, m1)));
}

// The partial of up to a block. The terms go to `terms` unless it is null.
template <typename T>
Partial<Wide<T>> BlockPartial(const T* x, std::int64_t n, Wide<T>* terms) {
  using W = Wide<T>;
  constexpr W kNothing = -std::numeric_limits<W>::infinity();
  const simd::Tag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const W top = LargestOf(x, n);
  // With nothing but -inf, any finite number in place of it makes the terms 0.
  const auto shift = hn::Set(d, top == kNothing ? W{0} : top);
  auto sum = hn::Zero(d);
  for (std::int64_t i = 0; i < n; i += lanes) {
    const auto v = i + lanes <= n ? simd::Read<T>(d, x + i)
                                  : simd::ReadPart<T>(d, x + i, static_cast<std::size_t>(n - i),
                                                      Narrow<T>(kNothing));
    simd::PrefetchFrom(x + i);  // The next rows come while this one is computed.
    const auto term = simd::ExpUpToHigh(d, hn::Sub(v, shift));
    sum = hn::Add(sum, term);
    if (terms != nullptr) hn::StoreU(term, d, terms + i);
  }
  return {top, hn::GetLane(hn::SumOfLanes(d, sum))};
}

// The part of an Op (rows_simd.h) that is the same for both.
template <typename T>
struct Exponentials {
  using State = Partial<Wide<T>>;

  State Part(const T* x, std::int64_t n) const {
    State p;
    for (std::int64_t i = 0; i < n; i += kBlock) {
      p = JoinPartials(p, BlockPartial<T>(x + i, std::min(kBlock, n - i), nullptr));
    }
    return p;
  }
  State Join(const State& a, const State& b) const { return JoinPartials(a, b); }
};

}  // namespace gridclock::softmax

#endif  // GRIDCLOCK_KERNELS_CATALOG_SOFTMAX_SIMD_H_
