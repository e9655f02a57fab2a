// Matrix products on CPUs, and what is summed like them: blocks of a and b are copied into the
// order in which a small kernel reads them, or are read where they lie; the kernel keeps a tile of
// c in registers. Each thread makes its own part of c. What a term adds and what is done to a
// finished row of c are the kernel's own.
#ifndef GRIDCLOCK_KERNELS_CATALOG_MATMUL_PACKED_H_
#define GRIDCLOCK_KERNELS_CATALOG_MATMUL_PACKED_H_

#include <algorithm>
#include <type_traits>

#include "base/status.h"
#include "kernels/catalog/element.h"
#include "kernels/catalog/matmul_bf16.h"
#include "kernels/catalog/matmul_parts.h"
#include "kernels/catalog/matmul_sizes.h"
#include "kernels/catalog/simd.h"

namespace gridclock::matmul {

// Term: what the elements of a row of a and of a column of b add to their sum.
struct ProductTerm {
  template <class D, class V>
  static HWY_INLINE V Add(D, V sum, V a, V b) {
    return simd::hn::MulAdd(a, b, sum);
  }
};

// Finish: what is done to n sums of row i of a matrix, from column j on, once they are whole.
struct AsItIs {
  template <typename W>
  void operator()(W*, std::int64_t, std::int64_t, std::int64_t, std::int64_t) const {}
};

// The tile in registers: kRows x kVectors vectors of sums, beside one row of b and one element of
// a. Level v4 has 32 registers, the others 16.
inline constexpr int kRows = HWY_TARGET <= HWY_AVX3 ? 12 : 6;
inline constexpr int kVectors = 2;
template <typename W>
constexpr std::int64_t kColumns =
    kVectors* std::int64_t{hwy::HWY_NAMESPACE::MaxLanes(simd::Tag<W>())};

// A strip of b, kDepth x kColumns, stays in the first cache while the strips of a block of a,
// kBlockRows x kDepth, pass it from the second. All of kBlockColumns of b stays in the last. Of f32
// at level v4 strips of b are twice as long as the first cache has room for: that costs less than
// to pass over all of c twice as often.
template <typename W>
inline constexpr std::int64_t kDepth = HWY_TARGET <= HWY_AVX3 && sizeof(W) == 4 ? 512 : 256;
inline constexpr std::int64_t kBlockRows = 32 * kRows;
inline constexpr std::int64_t kBlockColumns = 1024;
// What of a 16-bit c is kept as f32 until all of K is added.
inline constexpr std::int64_t kSlabRows = 4 * kBlockRows;

// Working memory of one thread, kept: fresh pages would cost as much as a small product.
template <typename W>
struct Workspace {
  Array<W> a = MakeArray<W>(kBlockRows * kDepth<W>), b = MakeArray<W>(kBlockColumns * kDepth<W>);
  Array<W> slab;  // Made when a 16-bit product first needs it.
  bool ok() const { return a != nullptr && b != nullptr; }
};

// Has each block of 128 bits stored, so many numbers apart.
template <std::int64_t kApart, class D, class V, class Store>
HWY_INLINE void StoreBlocks(D d, V v, float* out, const Store& store) {
  namespace hn = simd::hn;
  if constexpr (hn::MaxLanes(D()) > 4) {
    const hn::Half<D> half;
    constexpr auto kBlocks = static_cast<std::int64_t>(hn::MaxLanes(hn::Half<D>()) / 4);
    StoreBlocks<kApart>(half, hn::LowerHalf(half, v), out, store);
    StoreBlocks<kApart>(half, hn::UpperHalf(half, v), out + kBlocks * kApart, store);
  } else {
    store(d, v, out);
  }
}

// out[k][i] = line i's number k, for two lines; a line of out is kStrip long.
template <std::int64_t kStrip, typename T>
void TurnTwo(const T* from, std::int64_t line, std::int64_t depth, float* out) {
  namespace hn = simd::hn;
  const simd::Tag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto store = [](auto block, auto v, float* to) {
    const hn::Half<decltype(block)> pair;
    hn::StoreU(hn::LowerHalf(pair, v), pair, to);
    hn::StoreU(hn::UpperHalf(pair, v), pair, to + kStrip);
  };
  std::int64_t k = 0;
  for (; k + lanes <= depth; k += lanes) {
    for (std::int64_t i = 0; i < 2; ++i) simd::PrefetchFrom(from + i * line + k);
    const auto l0 = simd::Read<T>(d, from + k), l1 = simd::Read<T>(d, from + line + k);
    // Of each block: numbers 0 and 1, numbers 2 and 3.
    float* to = out + k * kStrip;
    StoreBlocks<4 * kStrip>(d, hn::InterleaveLower(d, l0, l1), to, store);
    StoreBlocks<4 * kStrip>(d, hn::InterleaveUpper(d, l0, l1), to + 2 * kStrip, store);
  }
  for (; k < depth; ++k) {
    for (std::int64_t i = 0; i < 2; ++i) out[k * kStrip + i] = Widen(from[i * line + k]);
  }
}

// The same for four lines.
template <std::int64_t kStrip, typename T>
void TurnFour(const T* from, std::int64_t line, std::int64_t depth, float* out) {
  namespace hn = simd::hn;
  const simd::Tag<T> d;
  const hn::Repartition<double, simd::Tag<T>> pairs;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t k = 0;
  for (; k + lanes <= depth; k += lanes) {
    for (std::int64_t i = 0; i < 4; ++i) simd::PrefetchFrom(from + i * line + k);
    const auto l0 = simd::Read<T>(d, from + k), l1 = simd::Read<T>(d, from + line + k),
               l2 = simd::Read<T>(d, from + 2 * line + k),
               l3 = simd::Read<T>(d, from + 3 * line + k);
    // Of each block: numbers 0 and 1 of two lines, numbers 2 and 3 of two lines.
    const auto low01 = hn::BitCast(pairs, hn::InterleaveLower(d, l0, l1)),
               high01 = hn::BitCast(pairs, hn::InterleaveUpper(d, l0, l1)),
               low23 = hn::BitCast(pairs, hn::InterleaveLower(d, l2, l3)),
               high23 = hn::BitCast(pairs, hn::InterleaveUpper(d, l2, l3));
    float* to = out + k * kStrip;
    const auto store = [&](auto v, int number) {
      StoreBlocks<4 * kStrip>(
          d, hn::BitCast(d, v), to + number * kStrip,
          [](auto block, auto four, float* at) { hn::StoreU(four, block, at); });
    };
    store(hn::InterleaveLower(pairs, low01, low23), 0);
    store(hn::InterleaveUpper(pairs, low01, low23), 1);
    store(hn::InterleaveLower(pairs, high01, high23), 2);
    store(hn::InterleaveUpper(pairs, high01, high23), 3);
  }
  for (; k < depth; ++k) {
    for (std::int64_t i = 0; i < 4; ++i) out[k * kStrip + i] = Widen(from[i * line + k]);
  }
}

template <typename T>
inline constexpr std::int64_t kLine = 64 / sizeof(T);  // Of a cache.

// A whole strip of rows.
template <typename T, std::int64_t kStrip>
void PackStrip(const T* from, Strides strides, std::int64_t depth, Wide<T>* out) {
  if (strides.row == 1) {
    for (std::int64_t k = 0; k < depth; ++k, out += kStrip) {
      const T* line = from + k * strides.column;
      simd::WidenRange(line, out, kStrip);
      for (std::int64_t i = 0; i < kStrip; i += kLine<T>) simd::PrefetchFrom(line + i);
    }
    return;
  }
  if constexpr (std::is_same_v<Wide<T>, float> && kStrip % 2 == 0) {
    if (strides.column == 1) {
      std::int64_t i = 0;
      for (; i + 4 <= kStrip; i += 4) {
        TurnFour<kStrip>(from + i * strides.row, strides.row, depth, out + i);
      }
      if constexpr (kStrip % 4 != 0) {
        TurnTwo<kStrip>(from + i * strides.row, strides.row, depth, out + i);
      }
      return;
    }
  }
  for (std::int64_t i = 0; i < kStrip; ++i) {
    const T* line = from + i * strides.row;
    for (std::int64_t k = 0; k < depth; ++k) out[k * kStrip + i] = Widen(line[k * strides.column]);
  }
}

// Strips of kStrip rows: out[strip][k][row], zeros where `rows` ends within a strip.
template <typename T, std::int64_t kStrip>
void Pack(const T* from, Strides strides, std::int64_t rows, std::int64_t depth, Wide<T>* out) {
  std::int64_t r = 0;
  for (; r + kStrip <= rows; r += kStrip, out += kStrip * depth) {
    PackStrip<T, kStrip>(from + r * strides.row, strides, depth, out);
  }
  if (r == rows) return;
  std::fill(out, out + kStrip * depth, Wide<T>{0});
  for (std::int64_t i = 0; r + i < rows; ++i) {
    const T* line = from + (r + i) * strides.row;
    for (std::int64_t k = 0; k < depth; ++k) out[k * kStrip + i] = Widen(line[k * strides.column]);
  }
}

// Rows of a and columns of b for the micro-kernel, term after term, of packed strips.
template <typename W>
struct PackedRows {
  const W* at;

  W operator[](int i) const { return at[i]; }
  void Next() {
    constexpr std::int64_t kSoon = 16 * kRows;
    simd::PrefetchFrom(at, kSoon);  // Of this strip or the next, in the second cache.
    at += kRows;
  }
};
template <typename W>
struct PackedColumns {
  const W* at;

  auto operator[](std::int64_t i) const { return simd::hn::Load(simd::Tag<W>(), at + i); }
  void Next() { at += kColumns<W>; }
};

// The same of the operands where they lie. Meanwhile most of the operands of the next matrix of a
// batch are asked for, or of what this one still needs.
template <typename W, int kCount>
struct RowsInPlace {
  static constexpr int kEach = 3;  // A pointer for each row would not be in a register.
  const W* at[(kCount + kEach - 1) / kEach];
  Strides strides;
  std::int64_t ahead;

  RowsInPlace(const W* from, const Strides& of, std::int64_t to_next)
      : strides(of), ahead(to_next) {
    for (int i = 0; i < kCount; i += kEach) at[i / kEach] = from + i * strides.row;
  }
  W operator[](int i) const { return at[i / kEach][i % kEach * strides.row]; }
  void Next() {
    simd::PrefetchFrom(at[0], ahead);
    // Rows lie one behind the other, and so few terms of them in lines that follow each other.
    if (strides.column == 1) ahead += kLine<W> - 1;
    for (const W*& each : at) each += strides.column;
  }
};
template <typename W>
struct ColumnsInPlace {
  const W* at;
  std::int64_t row, ahead;

  auto operator[](std::int64_t i) const { return simd::hn::LoadU(simd::Tag<W>(), at + i); }
  void Next() {
    for (std::int64_t i = 0; i < kColumns<W>; i += kLine<W>) simd::PrefetchFrom(at + i, ahead);
    at += row;
  }
};

// c[kCount][kColumns] (+)= sums over the first kCount rows of a and columns of b. `add`: onto what
// c holds.
template <class Term, int kCount, class Rows, class Columns, typename W>
HWY_NOINLINE void MicroKernel(Rows a, Columns b, std::int64_t depth, W* c, std::int64_t stride,
                              bool add) {
  namespace hn = simd::hn;
  const simd::Tag<W> d;
  constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(simd::Tag<W>()));
  hn::Vec<simd::Tag<W>> sums[kCount][kVectors];
  // What is needed last is asked for first: rows of c lie far apart.
#pragma GCC unroll 12
  for (int i = 0; i < kCount; ++i) {
    for (int v = 0; v < kVectors; ++v) {
      hwy::Prefetch(c + i * stride + v * kLanes);
      sums[i][v] = hn::Zero(d);
    }
  }
  for (std::int64_t k = 0; k < depth; ++k, a.Next(), b.Next()) {
    const auto b0 = b[0], b1 = b[kLanes];
    // Unrolled by order, not by the compiler's judgement: or else the sums are not in registers.
#pragma GCC unroll 12
    for (int i = 0; i < kCount; ++i) {
      const auto left = hn::Set(d, a[i]);
      sums[i][0] = Term::Add(d, sums[i][0], left, b0);
      sums[i][1] = Term::Add(d, sums[i][1], left, b1);
    }
  }
#pragma GCC unroll 12
  for (int i = 0; i < kCount; ++i) {
    for (int v = 0; v < kVectors; ++v) {
      W* to = c + i * stride + v * kLanes;
      hn::StoreU(add ? hn::Add(hn::LoadU(d, to), sums[i][v]) : sums[i][v], d, to);
    }
  }
}

// A tile that hangs over the edge of c goes through a buffer.
template <class Term, typename W>
void EdgeTile(PackedRows<W> a, PackedColumns<W> b, std::int64_t depth, W* c, std::int64_t stride,
              bool add, std::int64_t rows, std::int64_t columns) {
  alignas(64) W tile[kRows * kColumns<W>];
  constexpr int kThird = kRows / 3;
  if (rows <= kThird) {
    MicroKernel<Term, kThird>(a, b, depth, tile, kColumns<W>, false);
  } else if (rows <= 2 * kThird) {
    MicroKernel<Term, 2 * kThird>(a, b, depth, tile, kColumns<W>, false);
  } else {
    MicroKernel<Term, kRows>(a, b, depth, tile, kColumns<W>, false);
  }
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      const W value = tile[i * kColumns<W> + j];
      c[i * stride + j] = add ? c[i * stride + j] + value : value;
    }
  }
}

template <class Term, typename W>
void BlockTimesBlock(const Workspace<W>& space, std::int64_t m, std::int64_t n, std::int64_t depth,
                     W* c, std::int64_t stride, bool add) {
  for (std::int64_t j = 0; j < n; j += kColumns<W>) {
    for (std::int64_t i = 0; i < m; i += kRows) {
      const PackedRows<W> a{space.a.get() + i * depth};
      const PackedColumns<W> b{space.b.get() + j * depth};
      W* tile = c + i * stride + j;
      if (m - i >= kRows && n - j >= kColumns<W>) {
        MicroKernel<Term, kRows>(a, b, depth, tile, stride, add);
      } else {
        EdgeTile<Term>(a, b, depth, tile, stride, add, std::min<std::int64_t>(kRows, m - i),
                       std::min(kColumns<W>, n - j));
      }
    }
  }
}

// Rows of a part by a block of columns of b: c in wide elements at `c`, `stride` apart.
template <class Term, typename T, class Finish>
void Columns(const Work<T, Finish>& work, const Part& p, Wide<T>* c, std::int64_t stride,
             const Workspace<Wide<T>>& space) {
  using W = Wide<T>;
  const Sizes& s = work.s;
  for (std::int64_t k = 0; k < s.k; k += kDepth<W>) {
    const std::int64_t depth = std::min(kDepth<W>, s.k - k);
    // b by its columns: a strip has kColumns of them.
    Pack<T, kColumns<W>>(work.b + k * s.b.row + p.j0 * s.b.column, {s.b.column, s.b.row},
                         p.j1 - p.j0, depth, space.b.get());
    for (std::int64_t i = p.i0; i < p.i1; i += kBlockRows) {
      const std::int64_t rows = std::min(kBlockRows, p.i1 - i);
      Pack<T, kRows>(work.a + i * s.a.row + k * s.a.column, s.a, rows, depth, space.a.get());
      W* block = c + (i - p.i0) * stride;
      BlockTimesBlock<Term>(space, rows, p.j1 - p.j0, depth, block, stride, k != 0);
      if (k + depth < s.k) continue;
      for (std::int64_t r = 0; r < rows; ++r) {
        work.finish(block + r * stride, work.matrix, i + r, p.j0, p.j1 - p.j0);
      }
    }
  }
}

// What is small is read where it lies: to pack 64 x 64 takes more than half as long as the sums.
// 128 x 128 of f32 gain a tenth, 256 x 256 nothing, and sums of fewer than 32 terms lose. The bits
// are those of packed operands.
template <typename W>
bool IsReadInPlace(const Sizes& s) {
  constexpr std::int64_t kMost = 64 * 1024 / sizeof(W), kFewTerms = 32;
  return s.b.column == 1 && s.n % kColumns<W> == 0 && s.k >= kFewTerms && s.k <= kDepth<W> &&
         s.m * s.k <= kMost && s.k * s.n <= kMost;
}

// kCount rows of c from (i, j) on, as many columns as a tile has.
template <class Term, int kCount, typename W, class Finish>
void TileInPlace(const Work<W, Finish>& work, std::int64_t i, std::int64_t j) {
  const Sizes& s = work.s;
  const bool last = work.matrix + 1 == s.batch;
  const RowsInPlace<W, kCount> a(work.a + i * s.a.row, s.a, last ? 0 : s.m * s.k);
  const ColumnsInPlace<W> b{work.b + j, s.b.row, last ? 0 : s.k * s.n};
  MicroKernel<Term, kCount>(a, b, s.k, work.c + i * s.n + j, s.n, false);
}

// What is left of fewer rows than a small tile has overlaps the tile before: its sums are the same.
template <class Term, typename W, class Finish>
void StripInPlace(const Work<W, Finish>& work, std::int64_t i0, std::int64_t i1, std::int64_t j) {
  constexpr int kThird = kRows / 3;
  std::int64_t i = i0;
  for (; i1 - i >= kRows; i += kRows) TileInPlace<Term, kRows>(work, i, j);
  for (; i1 - i >= kThird; i += kThird) TileInPlace<Term, kThird>(work, i, j);
  if (i == i1) return;
  if (i1 - i0 >= kThird) return TileInPlace<Term, kThird>(work, i1 - kThird, j);
  for (; i < i1; ++i) TileInPlace<Term, 1>(work, i, j);
}

template <class Term, typename W, class Finish>
void MultiplyInPlace(const Work<W, Finish>& work, const Part& p) {
  for (std::int64_t i0 = p.i0; i0 < p.i1; i0 += kBlockRows) {
    const std::int64_t i1 = std::min(p.i1, i0 + kBlockRows);
    for (std::int64_t j = p.j0; j < p.j1; j += kColumns<W>) StripInPlace<Term>(work, i0, i1, j);
    for (std::int64_t i = i0; i < i1; ++i) {
      work.finish(work.c + i * work.s.n + p.j0, work.matrix, i, p.j0, p.j1 - p.j0);
    }
  }
}

// False where there is no memory for the blocks.
template <class Term, typename T, class Finish>
bool MultiplyPart(const Work<T, Finish>& work, const Part& part) {
  using W = Wide<T>;
  constexpr bool kDirect = std::is_same_v<T, W>;
  if constexpr (kDirect) {
    if (IsReadInPlace<W>(work.s)) {
      MultiplyInPlace<Term>(work, part);
      return true;
    }
  }
  thread_local Workspace<W> space;
  if (!kDirect && space.slab == nullptr) space.slab = MakeArray<W>(kSlabRows * kBlockColumns);
  if (!space.ok() || (!kDirect && space.slab == nullptr)) {
    return false;
  }
  // Each slab packs b anew, so where c itself takes the sums there is one.
  const std::int64_t slab_rows = kDirect ? part.i1 - part.i0 : kSlabRows;
  for (std::int64_t i = part.i0; i < part.i1; i += slab_rows) {
    for (std::int64_t j = part.j0; j < part.j1; j += kBlockColumns) {
      const Part p{i, std::min(part.i1, i + slab_rows), j, std::min(part.j1, j + kBlockColumns)};
      if constexpr (kDirect) {
        Columns<Term>(work, p, work.c + i * work.s.n + j, work.s.n, space);
      } else {
        Columns<Term>(work, p, space.slab.get(), kBlockColumns, space);
        RoundSlab<T>(space.slab.get(), kBlockColumns, work.c, work.s, p);
      }
    }
  }
  return true;
}

// c = finish(sums of Term over the rows of a and the columns of b), on every core.
template <class Term, typename T, class Finish>
absl::Status Multiply(Threads& threads, const T* a, const T* b, T* c, const Sizes& s,
                      const Finish& finish) {
  constexpr double kWorthAThread = 64.0 * 64 * 64;
  if (s.batch * s.m * s.n == 0) return absl::OkStatus();
  if (s.k == 0) {
    FinishNothing(c, s, finish);
    return absl::OkStatus();
  }
  const Work<T, Finish> all{a, b, c, s, finish, 0};
#ifdef GRIDCLOCK_LEVEL_MAY_HAVE_BF16_UNITS
  if constexpr (std::is_same_v<T, BF16> && std::is_same_v<Term, ProductTerm>) {
    GC_ASSIGN_OR_RETURN(const bool done, MultiplyByUnits(threads, all));
    if (done) return absl::OkStatus();
  }
#endif
  return EachPart(threads, all, {kRows, kColumns<Wide<T>>, kWorthAThread},
                  MultiplyPart<Term, T, Finish>);
}

}  // namespace gridclock::matmul

#endif  // GRIDCLOCK_KERNELS_CATALOG_MATMUL_PACKED_H_
