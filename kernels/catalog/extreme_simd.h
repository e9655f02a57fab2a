// The largest element over one dimension and its place, on a CPU, for max and argmax. The first of
// equal elements counts; a NaN is larger than all, and the first of them counts.
#ifndef GRIDCLOCK_KERNELS_CATALOG_EXTREME_SIMD_H_
#define GRIDCLOCK_KERNELS_CATALOG_EXTREME_SIMD_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "kernels/catalog/element.h"
#include "kernels/catalog/reduce_sizes.h"
#include "kernels/catalog/simd.h"

namespace gridclock::extreme {

namespace hn = simd::hn;
using reduce::Sizes;

template <typename T>
struct Place {
  Wide<T> value = -std::numeric_limits<Wide<T>>::infinity();
  std::int64_t place = -1;  // Nothing came yet.
};

// `b` stands behind `a`.
template <typename T>
Place<T> Better(const Place<T>& a, const Place<T>& b) {
  if (a.place < 0) return b;
  const bool b_wins = !(b.value <= a.value) && a.value == a.value;
  return b_wins && b.place >= 0 ? b : a;
}

template <class V>
auto Beats(V v, V best) {
  return hn::And(hn::Not(hn::Le(v, best)), hn::Eq(best, best));
}

template <typename T>
Wide<T> LargestLane(hn::Vec<simd::Tag<T>> v) {
  const simd::Tag<T> d;
  Wide<T> of_lane[hn::MaxLanes(simd::Tag<T>())];
  hn::StoreU(v, d, of_lane);
  return *std::max_element(of_lane, of_lane + hn::Lanes(d));
}

// The largest of n >= 1 elements, or NaN. Whether there was one is kept apart: what a maximum with
// a NaN is differs from machine to machine. Four maxima side by side, as each waits for the last.
template <typename T>
Wide<T> LargestOf(const T* x, std::int64_t n) {
  const simd::Tag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  constexpr Wide<T> kLeast = -std::numeric_limits<Wide<T>>::infinity();
  auto m0 = hn::Set(d, kLeast), m1 = m0, m2 = m0, m3 = m0;
  auto bad0 = hn::IsNaN(m0), bad1 = bad0;
  std::int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    const auto v0 = simd::Read<T>(d, x + i), v1 = simd::Read<T>(d, x + i + lanes);
    const auto v2 = simd::Read<T>(d, x + i + 2 * lanes), v3 = simd::Read<T>(d, x + i + 3 * lanes);
    bad0 = hn::Or(bad0, hn::Or(hn::IsNaN(v0), hn::IsNaN(v1)));
    bad1 = hn::Or(bad1, hn::Or(hn::IsNaN(v2), hn::IsNaN(v3)));
    m0 = hn::Max(v0, m0);
    m1 = hn::Max(v1, m1);
    m2 = hn::Max(v2, m2);
    m3 = hn::Max(v3, m3);
  }
  for (; i < n; i += lanes) {
    const auto part = static_cast<std::size_t>(std::min(lanes, n - i));
    const auto v = simd::ReadPart<T>(d, x + i, part, Narrow<T>(kLeast));
    bad0 = hn::Or(bad0, hn::IsNaN(v));
    m0 = hn::Max(v, m0);
  }
  if (!hn::AllFalse(d, hn::Or(bad0, bad1))) return std::numeric_limits<Wide<T>>::quiet_NaN();
  return LargestLane<T>(hn::Max(hn::Max(m0, m1), hn::Max(m2, m3)));
}

// Where the first element stands for which `matches` holds, of vectors and of numbers; n if none.
template <typename T, class Matches>
std::int64_t FirstWhere(const T* x, std::int64_t n, Matches matches) {
  const simd::Tag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto at = [&](std::int64_t i) { return matches(simd::Read<T>(d, x + i)); };
  std::int64_t i = 0;
  while (i + 4 * lanes <= n &&
         hn::AllFalse(d, hn::Or(hn::Or(at(i), at(i + lanes)),
                                hn::Or(at(i + 2 * lanes), at(i + 3 * lanes))))) {
    i += 4 * lanes;
  }
  for (; i + lanes <= n; i += lanes) {
    const auto found = hn::FindFirstTrue(d, at(i));
    if (found >= 0) return i + static_cast<std::int64_t>(found);
  }
  while (i < n && hn::AllFalse(d, matches(hn::Set(d, Widen(x[i]))))) ++i;
  return i;
}

// Where `value`, which may be NaN, stands first; it does stand there.
template <typename T>
std::int64_t FirstOf(const T* x, std::int64_t n, Wide<T> value) {
  if (value != value) return FirstWhere(x, n, [](auto v) { return hn::IsNaN(v); });
  const auto wanted = hn::Set(simd::Tag<T>(), value);
  return FirstWhere(x, n, [wanted](auto v) { return hn::Eq(v, wanted); });
}

// What stays in the first cache between the two searches.
constexpr std::int64_t kPiece = 4096;

// Of elements [begin, end) of a row; the place is that of a piece where only the value is wanted.
template <typename T, bool kPlaces>
Place<T> InRow(const T* x, std::int64_t begin, std::int64_t end) {
  Place<T> best;
  for (std::int64_t i = begin; i < end; i += kPiece) {
    const std::int64_t n = std::min(kPiece, end - i);
    const Place<T> here = {LargestOf(x + i, n), i};
    if (Better(best, here).place != i) continue;
    best = here;
    if constexpr (kPlaces) best.place += FirstOf(x + i, n, here.value);
  }
  return best;
}

template <typename T, bool kPlaces, class Write>
void Rows(const Call& call, const Sizes& s, Write write) {
  const T* x = call.In<T>(0);
  constexpr std::int64_t kPart = 16 * kPiece;
  if (s.outer < call.threads->count() && s.n >= 2 * kPart) {
    std::vector<Place<T>> parts(static_cast<std::size_t>((s.n + kPart - 1) / kPart));
    for (std::int64_t a = 0; a < s.outer; ++a) {
      call.threads->ParallelFor(s.n, kPart, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; i += kPart) {
          parts[static_cast<std::size_t>(i / kPart)] =
              InRow<T, kPlaces>(x + a * s.n, i, std::min(end, i + kPart));
        }
      });
      Place<T> best;
      for (const Place<T>& part : parts) best = Better(best, part);
      write(a, best);
    }
    return;
  }
  const std::int64_t grain = 1 + simd::kGrain / (s.n + 1);
  call.threads->ParallelFor(s.outer, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t a = begin; a < end; ++a) write(a, InRow<T, kPlaces>(x + a * s.n, 0, s.n));
  });
}

// Columns that go together: the best of them and their places stay in the first cache.
constexpr std::int64_t kColumns = 1024;
// Places within one pass fit the lanes of f32.
constexpr std::int64_t kRowsOfPass = std::int64_t{1} << 30;

// The best of `width` columns in rows [begin, end), which lie `stride` apart; x is at row 0.
template <typename T>
void InColumns(const T* x, std::int64_t begin, std::int64_t end, std::int64_t stride,
               std::int64_t width, Place<T>* best) {
  using Lane = std::conditional_t<std::is_same_v<T, double>, std::int64_t, std::int32_t>;
  const simd::Tag<T> d;
  const hn::RebindToSigned<simd::Tag<T>> di;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t whole = width - width % lanes;
  Wide<T> values[kColumns];
  Lane places[kColumns] = {};
  for (std::int64_t c = 0; c < width; ++c) values[c] = Widen(x[begin * stride + c]);
  for (std::int64_t row = begin + 1; row < end; ++row) {
    const T* from = x + row * stride;
    const auto place = hn::Set(di, static_cast<Lane>(row - begin));
    for (std::int64_t c = 0; c < whole; c += lanes) {
      const auto v = simd::Read<T>(d, from + c), old = hn::LoadU(d, values + c);
      const auto beats = Beats(v, old);
      hn::StoreU(hn::IfThenElse(beats, v, old), d, values + c);
      hn::StoreU(hn::IfThenElse(hn::RebindMask(di, beats), place, hn::LoadU(di, places + c)), di,
                 places + c);
    }
    for (std::int64_t c = whole; c < width; ++c) {
      const Wide<T> v = Widen(from[c]);
      if (v <= values[c] || values[c] != values[c]) continue;
      values[c] = v;
      places[c] = static_cast<Lane>(row - begin);
    }
  }
  for (std::int64_t c = 0; c < width; ++c) {
    best[c] = Better(best[c], {values[c], begin + places[c]});
  }
}

template <typename T, class Write>
void Columns(const Call& call, const Sizes& s, Write write) {
  const T* x = call.In<T>(0);
  const std::int64_t tiles = (s.inner + kColumns - 1) / kColumns;
  // Where there are few tasks, rows are cut; not by the number of threads, of which the answer is
  // independent anyway, but as many as any machine wants.
  constexpr std::int64_t kManyTasks = 64, kLeastRows = 256;
  const std::int64_t wanted = (kManyTasks + s.outer * tiles - 1) / (s.outer * tiles);
  const std::int64_t parts =
      std::clamp<std::int64_t>(std::min(wanted, s.n / kLeastRows), 1, kManyTasks);
  const std::int64_t rows = (s.n + parts - 1) / parts;
  const std::int64_t width = std::min(s.inner, kColumns);
  const std::int64_t grain = 1 + simd::kGrain / (s.n * width + 1);
  const auto columns_of = [&](std::int64_t tile) {
    return std::min(kColumns, s.inner - tile % tiles * kColumns);
  };
  const auto search = [&](std::int64_t tile, std::int64_t begin, std::int64_t end, Place<T>* best) {
    const T* from = x + tile / tiles * s.n * s.inner + tile % tiles * kColumns;
    for (std::int64_t row = begin; row < end; row += kRowsOfPass) {
      InColumns(from, row, std::min(end, row + kRowsOfPass), s.inner, columns_of(tile), best);
    }
  };
  const auto write_all = [&](std::int64_t tile, const Place<T>* best) {
    const std::int64_t first = tile / tiles * s.inner + tile % tiles * kColumns;
    for (std::int64_t c = 0; c < columns_of(tile); ++c) write(first + c, best[c]);
  };
  if (parts == 1) {
    call.threads->ParallelFor(s.outer * tiles, grain, [&](std::int64_t begin, std::int64_t end) {
      std::vector<Place<T>> best(static_cast<std::size_t>(width));
      for (std::int64_t tile = begin; tile < end; ++tile) {
        std::fill(best.begin(), best.end(), Place<T>{});
        search(tile, 0, s.n, best.data());
        write_all(tile, best.data());
      }
    });
    return;
  }
  std::vector<Place<T>> best(static_cast<std::size_t>(s.outer * tiles * parts * width));
  call.threads->ParallelFor(s.outer * tiles * parts, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t task = begin; task < end; ++task) {
      const std::int64_t row = std::min(s.n, task % parts * rows);
      search(task / parts, row, std::min(s.n, row + rows), best.data() + task * width);
    }
  });
  for (std::int64_t tile = 0; tile < s.outer * tiles; ++tile) {
    Place<T>* first = best.data() + tile * parts * width;
    for (std::int64_t part = 1; part < parts; ++part) {
      for (std::int64_t c = 0; c < width; ++c) first[c] = Better(first[c], first[part * width + c]);
    }
    write_all(tile, first);
  }
}

// write(i, place) for each output element i; of the place the value alone holds without kPlaces.
template <typename T, bool kPlaces, class Write>
void Simd(const Call& call, Write write) {
  const Sizes s = reduce::SizesOf(*call.binding);
  if (s.inner == 1) {
    Rows<T, kPlaces>(call, s, write);
  } else if (s.outer * s.inner > 0) {
    Columns<T>(call, s, write);
  }
}

}  // namespace gridclock::extreme

#endif  // GRIDCLOCK_KERNELS_CATALOG_EXTREME_SIMD_H_
