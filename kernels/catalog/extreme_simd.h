// The largest element over one dimension and its place, on a CPU, for max and argmax. The first of
// equal elements counts; a NaN is larger than all, and the first of them counts.
#ifndef GRIDCLOCK_KERNELS_CATALOG_EXTREME_SIMD_H_
#define GRIDCLOCK_KERNELS_CATALOG_EXTREME_SIMD_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "kernels/catalog/element.h"
#include "kernels/catalog/reduce_sizes.h"
#include "kernels/catalog/rows_by_four.h"
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

// The largest of n >= 1 elements, or NaN, of each of kRanges ranges: memory gives more where it is
// read at several places than at one. Whether there was a NaN is kept apart:
// what a maximum with a NaN is differs from machine to machine.
template <std::size_t kRanges, typename T>
std::array<Wide<T>, kRanges> LargestOf(const std::array<const T*, kRanges>& x, std::int64_t n) {
  const simd::Tag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  constexpr Wide<T> kLeast = -std::numeric_limits<Wide<T>>::infinity();
  hn::Vec<simd::Tag<T>> most[kRanges][2];
  for (auto& of_range : most) std::fill_n(of_range, 2, hn::Set(d, kLeast));
  hn::Mask<simd::Tag<T>> bad[kRanges];
  std::fill_n(bad, kRanges, hn::IsNaN(most[0][0]));
  const auto take = [&](std::size_t r, int k, auto v) {
    bad[r] = hn::Or(bad[r], hn::IsNaN(v));
    most[r][k] = hn::Max(v, most[r][k]);
  };
  std::int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    for (std::size_t r = 0; r < kRanges; ++r) {
      for (int k = 0; k < 2; ++k) take(r, k, simd::Read<T>(d, x[r] + i + k * lanes));
    }
  }
  for (; i < n; i += lanes) {
    const auto part = static_cast<std::size_t>(std::min(lanes, n - i));
    for (std::size_t r = 0; r < kRanges; ++r) {
      take(r, 0, simd::ReadPart<T>(d, x[r] + i, part, Narrow<T>(kLeast)));
    }
  }
  std::array<Wide<T>, kRanges> largest;
  for (std::size_t r = 0; r < kRanges; ++r) {
    largest[r] = hn::GetLane(hn::MaxOfLanes(d, hn::Max(most[r][0], most[r][1])));
    if (!hn::AllFalse(d, bad[r])) largest[r] = std::numeric_limits<Wide<T>>::quiet_NaN();
  }
  return largest;
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

// Four of them stay in the first cache between the two searches. Where only values are wanted there
// is one, and less is left to join.
template <bool kPlaces>
constexpr std::int64_t kPiece = kPlaces ? 1024 : 16384;

// Of the n elements at each of x, from where places count; the place is that of a piece where only
// the value is wanted.
template <bool kPlaces, std::size_t kRanges, typename T>
std::array<Place<T>, kRanges> InRanges(std::array<const T*, kRanges> x, std::int64_t n) {
  std::array<Place<T>, kRanges> best;
  for (std::int64_t i = 0; i < n; i += kPiece<kPlaces>) {
    const std::int64_t piece = std::min(kPiece<kPlaces>, n - i);
    const auto largest = LargestOf(x, piece);
    for (std::size_t r = 0; r < kRanges; ++r) {
      if (Better(best[r], {largest[r], i}).place == i) {
        best[r] = {largest[r], i};
        if constexpr (kPlaces) best[r].place += FirstOf(x[r], piece, largest[r]);
      }
      x[r] += piece;
    }
  }
  return best;
}

// Rows of so many elements are searched in their four quarters at once, shorter ones four at once.
constexpr std::int64_t kLong = 65536;

// In a row, or a part of one.
template <bool kPlaces, typename T>
Place<T> InRow(const T* x, std::int64_t n) {
  if (n < kLong) return InRanges<kPlaces, 1, T>({x}, n)[0];
  // Where four do not divide n the last two overlap, which changes no maximum.
  const std::int64_t quarter = (n + 3) / 4;
  const std::int64_t begins[] = {0, quarter, 2 * quarter, n - quarter};
  const auto found = InRanges<kPlaces, 4, T>(
      {x + begins[0], x + begins[1], x + begins[2], x + begins[3]}, quarter);
  Place<T> best;
  for (std::size_t q = 0; q < 4; ++q) {
    best = Better(best, {found[q].value, begins[q] + found[q].place});
  }
  return best;
}

template <bool kPlaces, typename T, class Write>
void InRows(const T* x, std::int64_t n, std::int64_t begin, std::int64_t end, Write write) {
  const auto one = [&](std::int64_t a) { write(a, InRow<kPlaces>(x + a * n, n)); };
  if (n >= kLong) {
    for (std::int64_t a = begin; a < end; ++a) one(a);
    return;
  }
  const auto four = [&](std::int64_t a, std::int64_t step) {
    const T* row = x + a * n;
    const std::int64_t apart = step * n;
    const auto found =
        InRanges<kPlaces, 4, T>({row, row + apart, row + 2 * apart, row + 3 * apart}, n);
    for (std::int64_t q = 0; q < 4; ++q) write(a + q * step, found[static_cast<std::size_t>(q)]);
  };
  reduce::ByFourRows(n, begin, end, four, one);
}

template <typename T, bool kPlaces, class Write>
void Rows(const Call& call, const Sizes& s, Write write) {
  const T* x = call.In<T>(0);
  if (s.outer < call.threads->count() && s.n >= 2 * kLong) {
    std::vector<Place<T>> parts(static_cast<std::size_t>((s.n + kLong - 1) / kLong));
    for (std::int64_t a = 0; a < s.outer; ++a) {
      call.threads->ParallelFor(s.n, kLong, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; i += kLong) {
          Place<T>& part = parts[static_cast<std::size_t>(i / kLong)];
          part = InRow<kPlaces>(x + a * s.n + i, std::min(kLong, end - i));
          part.place += i;
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
    InRows<kPlaces>(x, s.n, begin, end, write);
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
