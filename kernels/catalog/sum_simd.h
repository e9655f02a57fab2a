// Sums over one dimension on a CPU, for sum and mean: many sums side by side, in vectors, on every
// core; joined in double.
#ifndef GRIDCLOCK_KERNELS_CATALOG_SUM_SIMD_H_
#define GRIDCLOCK_KERNELS_CATALOG_SUM_SIMD_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <vector>

#include "kernels/catalog/element.h"
#include "kernels/catalog/reduce_sizes.h"
#include "kernels/catalog/rows_by_four.h"
#include "kernels/catalog/simd.h"

namespace gridclock::sum {

using reduce::Sizes;

// Terms that are summed before their sum is added to others in double.
constexpr std::int64_t kChunk = 16384;

// How many bytes early memory is asked for terms. The sum of 2^28 f32 took 41 ms so on an EPYC (Zen
// 3), where half a page early took 48.
inline std::int64_t BytesAhead() {
  return simd::IsAmd() ? 256 : 2048;
}

// Sums of n terms beside each other, B = 1, in kRanges ranges at a time: two vectors of sums for
// each. Memory gives more where it is read at several places than at one.
template <std::size_t kRanges, typename T>
std::array<double, kRanges> SumContiguous(std::array<const T*, kRanges> x, std::int64_t n) {
  namespace hn = simd::hn;
  const simd::Tag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t ahead = BytesAhead() / std::int64_t{sizeof(T)};
  hn::Vec<simd::Tag<T>> sums[kRanges][2];
  for (auto& of_range : sums) std::fill_n(of_range, 2, hn::Zero(d));
  std::int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    for (std::size_t r = 0; r < kRanges; ++r) {
      for (int v = 0; v < 2; ++v) {
        const T* from = x[r] + i + v * lanes;
        simd::PrefetchFrom(from, ahead);
        sums[r][v] = hn::Add(sums[r][v], simd::Read<T>(d, from));
      }
    }
  }
  std::array<double, kRanges> totals;
  for (std::size_t r = 0; r < kRanges; ++r) {
    auto& s = sums[r];
    std::int64_t k = i;
    for (; k + lanes <= n; k += lanes) s[0] = hn::Add(s[0], simd::Read<T>(d, x[r] + k));
    const auto rest = static_cast<std::size_t>(n - k);
    if (rest > 0) s[1] = hn::Add(s[1], simd::ReadPart<T>(d, x[r] + k, rest));
    totals[r] = hn::GetLane(hn::SumOfLanes(d, hn::Add(s[0], s[1])));
  }
  return totals;
}

// sums[i] = that of the n terms at x + i * n, for i in [begin, end).
template <typename T>
void SumRanges(const T* x, std::int64_t n, std::int64_t begin, std::int64_t end, double* sums) {
  const auto four = [&](std::int64_t i, std::int64_t step) {
    const T* first = x + i * n;
    const std::int64_t apart = step * n;
    const auto found =
        SumContiguous<4, T>({first, first + apart, first + 2 * apart, first + 3 * apart}, n);
    for (int q = 0; q < 4; ++q) sums[i + q * step] = found[static_cast<std::size_t>(q)];
  };
  const auto one = [&](std::int64_t i) { sums[i] = SumContiguous<1, T>({x + i * n}, n)[0]; };
  reduce::ByFourRows(n, begin, end, four, one);
}

// One row of more, by all threads if there are any to take part.
template <typename T>
double SumLongRow(Threads* threads, const T* x, std::int64_t n) {
  const std::int64_t whole = n / kChunk;
  std::vector<double> chunks(static_cast<std::size_t>(whole));
  const auto some = [&](std::int64_t begin, std::int64_t end) {
    SumRanges(x, kChunk, begin, end, chunks.data());
  };
  if (threads == nullptr) {
    some(0, whole);
  } else {
    threads->ParallelFor(whole, 1, some);
  }
  double sum = 0;
  for (const double chunk : chunks) sum += chunk;
  return sum + SumContiguous<1, T>({x + whole * kChunk}, n - whole * kChunk)[0];
}

template <typename T>
void SumLongRows(const Call& call, const Sizes& s, double divisor) {
  const T* x = call.In<T>(0);
  T* y = call.Out<T>(0);
  const bool few = s.outer < call.threads->count();
  const auto rows = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t a = begin; a < end; ++a) {
      y[a] = Rounded<T>(SumLongRow(few ? call.threads : nullptr, x + a * s.n, s.n) / divisor);
    }
  };
  if (few) return rows(0, s.outer);
  call.threads->ParallelFor(s.outer, 1, rows);
}

template <typename T>
void SumRows(const Call& call, const Sizes& s, double divisor) {
  if (s.n > kChunk) return SumLongRows<T>(call, s, divisor);
  const T* x = call.In<T>(0);
  T* y = call.Out<T>(0);
  const std::int64_t grain = 1 + kChunk / (s.n + 1);
  call.threads->ParallelFor(s.outer, grain, [&](std::int64_t begin, std::int64_t end) {
    constexpr std::int64_t kRows = 512;
    double sums[kRows];
    for (std::int64_t a = begin; a < end; a += kRows) {
      const std::int64_t rows = std::min(kRows, end - a);
      SumRanges(x + a * s.n, s.n, 0, rows, sums);
      for (std::int64_t row = 0; row < rows; ++row) y[a + row] = Rounded<T>(sums[row] / divisor);
    }
  });
}

// Columns that are summed together: their sums stay in the first cache, and each row of the input
// gives a page or so in one piece.
constexpr std::int64_t kColumns = 1024;

// The sum of all, in pairs and pairs of pairs.
template <std::size_t kCount, typename V, class Plus>
V InPairs(std::array<V, kCount> terms, Plus plus) {
  static_assert(std::has_single_bit(kCount));
  for (std::size_t count = kCount; count > 1; count /= 2) {
    for (std::size_t i = 0; i < count / 2; ++i) terms[i] = plus(terms[2 * i], terms[2 * i + 1]);
  }
  return terms[0];
}

// sums[c] += the terms of columns [0, width) in `rows` rows that lie `stride` apart, from each of
// kPlaces on. Terms of a row are added to each other first: what is added to the sum rounds by its
// size. Rows of 16-bit types are asked for early: they end before the CPU itself looks ahead.
template <std::size_t kPlaces, typename T>
void AddRowsAt(std::array<const T*, kPlaces> x, std::int64_t rows, std::int64_t stride,
               std::int64_t width, Wide<T>* sums) {
  namespace hn = simd::hn;
  const simd::Tag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t whole = width - width % lanes;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t c = 0; c < whole; c += lanes) {
      std::array<hn::Vec<simd::Tag<T>>, kPlaces> terms;
      for (std::size_t p = 0; p < kPlaces; ++p) {
        if constexpr (sizeof(T) == 2) simd::PrefetchFrom(x[p] + c, stride);
        terms[p] = simd::Read<T>(d, x[p] + c);
      }
      const auto sum = InPairs(terms, [&](auto a, auto b) { return hn::Add(a, b); });
      hn::StoreU(hn::Add(hn::LoadU(d, sums + c), sum), d, sums + c);
    }
    for (std::int64_t c = whole; c < width; ++c) {
      std::array<Wide<T>, kPlaces> terms;
      for (std::size_t p = 0; p < kPlaces; ++p) terms[p] = Widen(x[p][c]);
      sums[c] += InPairs(terms, std::plus<>());
    }
    for (const T*& from : x) from += stride;
  }
}

// The same of one place, read as eight, and what is left as fewer: memory gives more so, and each
// sum is loaded and stored less often.
template <std::size_t kPlaces = 8, typename T>
void AddRows(const T* x, std::int64_t rows, std::int64_t stride, std::int64_t width,
             Wide<T>* sums) {
  const std::int64_t each = rows / std::int64_t{kPlaces};
  std::array<const T*, kPlaces> places;
  for (const T*& place : places) {
    place = x;
    x += each * stride;
  }
  AddRowsAt(places, each, stride, width, sums);
  if constexpr (kPlaces > 1) {
    AddRows<kPlaces / 2>(x, rows % std::int64_t{kPlaces}, stride, width, sums);
  }
}

// Rows that are summed before their sums are added to others in double: columns have one sum each,
// where a row has as many as two vectors.
constexpr std::int64_t kChunkRows = kChunk / 4;

// Output row `a`, columns [first, first + width).
template <typename T>
void SumColumns(const T* x, T* y, const Sizes& s, double divisor, std::int64_t a,
                std::int64_t first) {
  const std::int64_t width = std::min(kColumns, s.inner - first);
  double totals[kColumns];
  std::fill_n(totals, width, 0.0);
  for (std::int64_t k = 0; k < s.n; k += kChunkRows) {
    const std::int64_t rows = std::min(kChunkRows, s.n - k);
    Wide<T> sums[kColumns];
    std::fill_n(sums, width, Wide<T>{0});
    AddRows(x + (a * s.n + k) * s.inner + first, rows, s.inner, width, sums);
    for (std::int64_t c = 0; c < width; ++c) totals[c] += sums[c];
  }
  for (std::int64_t c = 0; c < width; ++c)
    y[a * s.inner + first + c] = Rounded<T>(totals[c] / divisor);
}

// Few columns and many rows: chunks of rows go to the threads, and the sums of the chunks are added
// in their order. So many short rows as make kColumns are read as one row, and their columns
// joined.
struct TallPlan {
  std::int64_t fold, width, chunk_rows, chunks;
  explicit TallPlan(const Sizes& s) {
    constexpr std::int64_t kMostChunks = 64;
    fold = std::max<std::int64_t>(1, kColumns / s.inner);
    width = fold * s.inner;
    const std::int64_t wide_rows = std::max(kChunk / width, s.n / fold / kMostChunks);
    chunk_rows = fold * std::max<std::int64_t>(1, wide_rows);
    chunks = (s.n + chunk_rows - 1) / chunk_rows;
  }
};

// out[c] += the sums of the columns of `count` rows.
template <typename T>
void SumChunk(const T* rows, std::int64_t count, const Sizes& s, const TallPlan& plan,
              double* out) {
  const auto add = [&](const T* from, std::int64_t lines, std::int64_t stride, std::int64_t width,
                       std::int64_t column) {
    Wide<T> sums[kColumns];
    std::fill_n(sums, width, Wide<T>{0});
    AddRows(from, lines, stride, width, sums);
    for (std::int64_t c = 0; c < width; ++c) out[(column + c) % s.inner] += sums[c];
  };
  const std::int64_t wide_rows = count / plan.fold;
  for (std::int64_t first = 0; first < plan.width; first += kColumns) {
    for (std::int64_t k = 0; k < wide_rows; k += kChunkRows) {
      add(rows + first + k * plan.width, std::min(kChunkRows, wide_rows - k), plan.width,
          std::min(kColumns, plan.width - first), first);
    }
  }
  // The rows that do not make a wide one; where rows are folded, there is one block of columns.
  if (count % plan.fold > 0) {
    add(rows + wide_rows * plan.width, count % plan.fold, s.inner, s.inner, 0);
  }
}

template <typename T>
void SumTall(Threads& threads, const T* x, T* y, const Sizes& s, double divisor) {
  const TallPlan plan(s);
  std::vector<double> partial(static_cast<std::size_t>(plan.chunks * s.inner));
  threads.ParallelFor(plan.chunks, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t chunk = begin; chunk < end; ++chunk) {
      const std::int64_t row = chunk * plan.chunk_rows;
      SumChunk(x + row * s.inner, std::min(plan.chunk_rows, s.n - row), s, plan,
               partial.data() + chunk * s.inner);
    }
  });
  threads.ParallelFor(s.inner, kColumns, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t chunk = 1; chunk < plan.chunks; ++chunk) {
      const double* more = partial.data() + chunk * s.inner;
      for (std::int64_t c = begin; c < end; ++c) partial[static_cast<std::size_t>(c)] += more[c];
    }
    for (std::int64_t c = begin; c < end; ++c) {
      y[c] = Rounded<T>(partial[static_cast<std::size_t>(c)] / divisor);
    }
  });
}

template <typename T>
void SumAllColumns(const Call& call, const Sizes& s, double divisor) {
  const T* x = call.In<T>(0);
  T* y = call.Out<T>(0);
  constexpr std::int64_t kMostTallColumns = 16 * kColumns;  // Their partial sums take memory.
  const std::int64_t tiles = (s.inner + kColumns - 1) / kColumns;
  // Not by the number of threads: a sum has the same bits with any.
  constexpr std::int64_t kManyTasks = 32;
  const bool few_tasks = s.outer * tiles < kManyTasks || s.inner <= kColumns / 2;
  if (few_tasks && s.inner <= kMostTallColumns && s.n >= kColumns) {
    for (std::int64_t a = 0; a < s.outer; ++a) {
      SumTall(*call.threads, x + a * s.n * s.inner, y + a * s.inner, s, divisor);
    }
    return;
  }
  const std::int64_t grain = 1 + kChunk / (s.n * std::min(s.inner, kColumns) + 1);
  call.threads->ParallelFor(s.outer * tiles, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      SumColumns(x, y, s, divisor, t / tiles, t % tiles * kColumns);
    }
  });
}

// y = the sums of x over one dimension, each divided by `divisor` before it is rounded.
inline absl::Status Simd(const Call& call, double divisor) {
  const Sizes s = reduce::SizesOf(*call.binding);
  return WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    if (s.inner == 1) {
      SumRows<T>(call, s, divisor);
    } else if (s.inner > 1) {
      SumAllColumns<T>(call, s, divisor);
    }
    return absl::OkStatus();
  });
}

}  // namespace gridclock::sum

#endif  // GRIDCLOCK_KERNELS_CATALOG_SUM_SIMD_H_
