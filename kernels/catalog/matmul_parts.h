// How matrix products on CPUs are cut between threads, whatever makes the sums.
#ifndef GRIDCLOCK_KERNELS_CATALOG_MATMUL_PARTS_H_
#define GRIDCLOCK_KERNELS_CATALOG_MATMUL_PARTS_H_

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/catalog/element.h"
#include "kernels/catalog/matmul_sizes.h"
#include "kernels/catalog/simd.h"

namespace gridclock::matmul {

template <typename W>
struct Free {
  void operator()(W* p) const { std::free(p); }
};
template <typename W>
using Array = std::unique_ptr<W, Free<W>>;

// Of n elements, as many as fill whole lines. Null where there is no memory.
template <typename W>
Array<W> MakeArray(std::int64_t n) {
  return Array<W>(static_cast<W*>(std::aligned_alloc(64, static_cast<std::size_t>(n) * sizeof(W))));
}

// A part of one c: rows [i0, i1), columns [j0, j1).
struct Part {
  std::int64_t i0, i1, j0, j1;
};

// What is multiplied: operands, and what makes elements of c of their terms. `matrix` counts.
template <typename T, class Finish>
struct Work {
  const T* a;
  const T* b;
  T* c;
  Sizes s;
  Finish finish;
  std::int64_t matrix;

  Work At(std::int64_t i) const {
    return {a + i * s.m * s.k, b + i * s.k * s.n, c + i * s.m * s.n, s, finish, i};
  }
};

template <typename T>
void RoundSlab(const Wide<T>* slab, std::int64_t stride, T* c, const Sizes& s, const Part& p) {
  for (std::int64_t i = p.i0; i < p.i1; ++i) {
    simd::ConvertRange<T>(slab + (i - p.i0) * stride, c + i * s.n + p.j0, p.j1 - p.j0);
  }
}

// How one c is cut between threads: a grid of parts that are as square as may be, because a thread
// packs the rows and the columns of its part anew.
struct Grid {
  std::int64_t rows = 1, columns = 1;
};

inline Grid ChooseGrid(const Sizes& s, std::int64_t parts) {
  Grid best{1, 1};
  double best_cost = std::numeric_limits<double>::infinity();
  for (std::int64_t rows = 1; rows <= parts; ++rows) {
    if (parts % rows != 0) continue;
    const Grid grid{rows, parts / rows};
    const double cost = static_cast<double>(s.m) / static_cast<double>(grid.rows) +
                        static_cast<double>(s.n) / static_cast<double>(grid.columns);
    if (cost < best_cost) {
      best = grid;
      best_cost = cost;
    }
  }
  return best;
}

// Part `index` of `count` of [0, n), cut at multiples of `unit`.
inline std::pair<std::int64_t, std::int64_t> Cut(std::int64_t n, std::int64_t unit,
                                                 std::int64_t index, std::int64_t count) {
  const std::int64_t units = (n + unit - 1) / unit;
  return {std::min(n, units * index / count * unit),
          std::min(n, units * (index + 1) / count * unit)};
}

// The tiles that parts are made of, and how many terms are worth a thread.
struct Tiling {
  std::int64_t rows, columns;
  double worth_a_thread;
};

// Has every part of every c done by one(work, part), on every core; it is false where there is no
// memory for that.
template <typename T, class Finish, class One>
absl::Status EachPart(Threads& threads, const Work<T, Finish>& all, const Tiling& tiling,
                      const One& one) {
  const Sizes& s = all.s;
  const double work =
      static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
  const bool small = work < 2 * tiling.worth_a_thread;
  const std::int64_t parts = small ? 1 : (threads.count() + s.batch - 1) / s.batch;
  const Grid grid = ChooseGrid(s, parts);
  const auto grain = small ? static_cast<std::int64_t>(tiling.worth_a_thread / work) + 1 : 1;
  std::atomic<bool> failed{false};
  threads.ParallelFor(s.batch * parts, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      const std::int64_t matrix = t / parts, part = t % parts;
      const auto [i0, i1] = Cut(s.m, tiling.rows, part / grid.columns, grid.rows);
      const auto [j0, j1] = Cut(s.n, tiling.columns, part % grid.columns, grid.columns);
      if (!one(all.At(matrix), Part{i0, i1, j0, j1})) failed = true;
    }
  });
  if (failed) return absl::ResourceExhaustedError("no memory for the packed blocks");
  return absl::OkStatus();
}

// The sum of nothing, finished.
template <typename T, class Finish>
void FinishNothing(T* c, const Sizes& s, const Finish& finish) {
  std::vector<Wide<T>> row(static_cast<std::size_t>(s.n));
  for (std::int64_t i = 0; i < s.batch * s.m; ++i) {
    std::fill(row.begin(), row.end(), Wide<T>{0});
    finish(row.data(), i / s.m, i % s.m, 0, s.n);
    simd::ConvertRange<T>(row.data(), c + i * s.n, s.n);
  }
}

}  // namespace gridclock::matmul

#endif  // GRIDCLOCK_KERNELS_CATALOG_MATMUL_PARTS_H_
