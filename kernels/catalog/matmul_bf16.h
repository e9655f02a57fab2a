// Products of bf16 by what some CPUs have for them; level v4 alone looks. An instruction of the
// matrix units (AMX) multiplies 16 rows of a by 16 columns of b, 32 numbers of each, and adds to
// 256 sums of f32; one of AVX512_BF16 two numbers of a row by those of 16 columns. Subnormal
// numbers and sums count as 0 there, which no other way does: packing looks how small numbers are.
#ifndef GRIDCLOCK_KERNELS_CATALOG_MATMUL_BF16_H_
#define GRIDCLOCK_KERNELS_CATALOG_MATMUL_BF16_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>

#include "absl/status/statusor.h"
#include "base/status.h"
#include "kernels/api/bf16_units.h"
#include "kernels/catalog/element.h"
#include "kernels/catalog/matmul_parts.h"
#include "kernels/catalog/simd.h"

#if HWY_TARGET <= HWY_AVX3
#define GRIDCLOCK_LEVEL_MAY_HAVE_BF16_UNITS

#include <immintrin.h>

namespace gridclock::matmul::units {

// A tile: 16 lines (rows of a, columns of b) of 32 numbers along k.
inline constexpr std::int64_t kLines = 16, kTileDepth = 32, kTile = kLines * kTileDepth;
// Sums are kept in 2x2 tiles of registers.
inline constexpr std::int64_t kSquare = 2 * kLines;

// A block of b and the sums under it stay in the second cache, two lines of tiles of a in the
// first.
inline constexpr std::int64_t kDepth = 512, kBlockColumns = 512, kSlabRows = 512;

struct Workspace {
  Array<std::uint16_t> a = MakeArray<std::uint16_t>(kSquare * kDepth),
                       b = MakeArray<std::uint16_t>(kBlockColumns * kDepth);
  Array<float> slab = MakeArray<float>(kSlabRows * kBlockColumns);
  bool ok() const { return a != nullptr && b != nullptr && slab != nullptr; }
};

// How the units want a tile of a: [line][k], and one of b: [k / 2][line][k % 2].
enum class Order { kLines, kPairs };

constexpr std::int64_t PlaceOf(Order order, std::int64_t line, std::int64_t k) {
  return order == Order::kLines ? line * kTileDepth + k : k / 2 * 2 * kLines + line * 2 + k % 2;
}

using Tag16 = simd::hn::ScalableTag<std::uint16_t>;
using Tag32 = simd::hn::ScalableTag<std::uint32_t>;
static_assert(simd::hn::MaxLanes(Tag16()) == kTileDepth);

inline const std::uint16_t* Bits(const BF16* p) {
  return &p->bits;
}

// What lies line by line, in Order::kLines.
inline void CopyLines(const BF16* from, std::int64_t line, std::uint16_t* out) {
  namespace hn = simd::hn;
  for (std::int64_t i = 0; i < kLines; ++i) {
    hn::Store(hn::LoadU(Tag16(), Bits(from + i * line)), Tag16(), out + i * kTileDepth);
  }
}

// What lies across the lines, in Order::kPairs.
inline void JoinPairs(const BF16* from, std::int64_t k, std::uint16_t* out) {
  namespace hn = simd::hn;
  const hn::Half<Tag16> half;
  for (std::int64_t i = 0; i < kTileDepth; i += 2) {
    const auto even = hn::PromoteTo(Tag32(), hn::LoadU(half, Bits(from + i * k)));
    const auto odd = hn::PromoteTo(Tag32(), hn::LoadU(half, Bits(from + (i + 1) * k)));
    const auto both = hn::Or(even, hn::ShiftLeft<16>(odd));
    hn::Store(hn::BitCast(Tag16(), both), Tag16(), out + i * kLines);
  }
}

// From either order to the other: pairs move whole.
inline void Transpose(const std::uint16_t* from, std::uint16_t* out) {
  for (std::int64_t i = 0; i < 16; ++i) {
    for (std::int64_t j = 0; j < 16; ++j)
      std::memcpy(out + 2 * (16 * j + i), from + 2 * (16 * i + j), 4);
  }
}

// Zeros where the lines or k end within the tile.
template <Order kOrder>
void PackEdge(const BF16* from, Strides s, std::int64_t lines, std::int64_t depth,
              std::uint16_t* out) {
  std::fill_n(out, kTile, std::uint16_t{0});
  for (std::int64_t i = 0; i < lines; ++i) {
    for (std::int64_t k = 0; k < depth; ++k) {
      out[PlaceOf(kOrder, i, k)] = from[i * s.row + k * s.column].bits;
    }
  }
}

template <Order kOrder>
void PackTile(const BF16* from, Strides s, std::int64_t lines, std::int64_t depth,
              std::uint16_t* out) {
  const bool whole = lines == kLines && depth == kTileDepth;
  if (!whole || (s.row != 1 && s.column != 1)) return PackEdge<kOrder>(from, s, lines, depth, out);
  const bool by_line = s.column == 1, as_wanted = by_line == (kOrder == Order::kLines);
  alignas(64) std::uint16_t turned[kTile];
  std::uint16_t* to = as_wanted ? out : turned;
  if (by_line) {
    CopyLines(from, s.row, to);
  } else {
    JoinPairs(from, s.column, to);
  }
  if (!as_wanted) Transpose(turned, out);
}

// The least magnitude above zero that was seen, as the bits of a bf16 less one: for zero that is
// the largest.
class Least {
 public:
  Least() { std::fill_n(lanes_, kTileDepth, std::uint16_t{0xFFFF}); }
  void See(const std::uint16_t* tile) {
    namespace hn = simd::hn;
    const Tag16 d;
    const auto magnitude = hn::Set(d, 0x7FFF), one = hn::Set(d, 1);
    auto least = hn::Load(d, lanes_);
    for (std::int64_t i = 0; i < kTile; i += kTileDepth) {
      least = hn::Min(least, hn::Sub(hn::And(hn::Load(d, tile + i), magnitude), one));
    }
    hn::Store(least, d, lanes_);
  }
  std::uint16_t value() const { return *std::min_element(lanes_, lanes_ + kTileDepth); }

 private:
  alignas(64) std::uint16_t lanes_[kTileDepth];
};

// out[lines / 16][k / 32], tiles. `least`: what is to see them; may be null.
template <Order kOrder>
void Pack(const BF16* from, Strides s, std::int64_t lines, std::int64_t depth, Least* least,
          std::uint16_t* out) {
  for (std::int64_t i = 0; i < lines; i += kLines) {
    for (std::int64_t k = 0; k < depth; k += kTileDepth, out += kTile) {
      PackTile<kOrder>(from + i * s.row + k * s.column, s, std::min(kLines, lines - i),
                       std::min(kTileDepth, depth - k), out);
      if (least != nullptr) least->See(out);
    }
  }
}

// Each has MicroKernel: c[32][32] (+)= sums over two lines of tiles of a and two of b, `steps`
// long.
struct MatrixUnits {
  static constexpr double kWorthAThread = 160.0 * 160 * 160;

  GC_AMX static void Begin() { _tile_loadconfig(&bf16_units::kWholeTiles); }
  GC_AMX static void End() { _tile_release(); }
  GC_AMX static void MicroKernel(const std::uint16_t* a, const std::uint16_t* b, std::int64_t steps,
                                 float* c, std::int64_t stride, bool add) {
    constexpr std::int64_t kBytes = bf16_units::kTileRowBytes;
    const std::int64_t bytes = stride * static_cast<std::int64_t>(sizeof(float));
    float* below = c + kLines * stride;
    if (add) {
      _tile_loadd(0, c, bytes);
      _tile_loadd(1, c + kLines, bytes);
      _tile_loadd(2, below, bytes);
      _tile_loadd(3, below + kLines, bytes);
    } else {
      _tile_zero(0);
      _tile_zero(1);
      _tile_zero(2);
      _tile_zero(3);
    }
    const std::int64_t next = steps * kTile;
    for (std::int64_t i = 0; i < steps; ++i, a += kTile, b += kTile) {
      _tile_loadd(4, a, kBytes);
      _tile_loadd(6, b, kBytes);
      _tile_dpbf16ps(0, 4, 6);
      _tile_loadd(7, b + next, kBytes);
      _tile_dpbf16ps(1, 4, 7);
      _tile_loadd(5, a + next, kBytes);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, c, bytes);
    _tile_stored(1, c + kLines, bytes);
    _tile_stored(2, below, bytes);
    _tile_stored(3, below + kLines, bytes);
  }
};

struct DotProducts {
  static constexpr double kWorthAThread = 80.0 * 80 * 80;
  // By 32 columns they have 16 registers of sums, which hide how long an instruction takes.
  static constexpr int kRows = 8;

  static void Begin() {}
  static void End() {}
  GC_AVX512_BF16 static void MicroKernel(const std::uint16_t* a, const std::uint16_t* b,
                                         std::int64_t steps, float* c, std::int64_t stride,
                                         bool add) {
    for (int i = 0; i < kSquare; i += kRows) {
      const std::uint16_t* rows = a + i / kLines * steps * kTile + i % kLines * kTileDepth;
      SumRows(rows, b, steps, c + i * stride, stride, add);
    }
  }

 private:
  GC_AVX512_BF16 static void SumRows(const std::uint16_t* a, const std::uint16_t* b,
                                     std::int64_t steps, float* c, std::int64_t stride, bool add) {
    __m512 sums[kRows][2];
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
      const float* row = c + i * stride;
      sums[i][0] = add ? _mm512_load_ps(row) : _mm512_setzero_ps();
      sums[i][1] = add ? _mm512_load_ps(row + kLines) : _mm512_setzero_ps();
    }
    const std::int64_t next = steps * kTile;
    for (std::int64_t step = 0; step < steps; ++step, a += kTile, b += kTile) {
      for (std::int64_t k = 0; k < kTileDepth; k += 2) {
        const auto b0 = reinterpret_cast<__m512bh>(_mm512_load_si512(b + k * kLines));
        const auto b1 = reinterpret_cast<__m512bh>(_mm512_load_si512(b + next + k * kLines));
#pragma GCC unroll 8
        for (int i = 0; i < kRows; ++i) {
          int pair = 0;
          std::memcpy(&pair, a + i * kTileDepth + k, sizeof(pair));
          const auto left = reinterpret_cast<__m512bh>(_mm512_set1_epi32(pair));
          sums[i][0] = _mm512_dpbf16_ps(sums[i][0], left, b0);
          sums[i][1] = _mm512_dpbf16_ps(sums[i][1], left, b1);
        }
      }
    }
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
      _mm512_store_ps(c + i * stride, sums[i][0]);
      _mm512_store_ps(c + i * stride + kLines, sums[i][1]);
    }
  }
};

// The sums of part p, which the slab has room for: 32 rows of a at a time, by a block of b. What
// hangs over the edge of the part is left in the slab.
template <class Unit, class Finish>
void Sum(const Work<BF16, Finish>& work, const Part& p, Least* of_a, Least* of_b,
         const Workspace& space) {
  const Sizes& s = work.s;
  const std::int64_t columns = p.j1 - p.j0;
  for (std::int64_t k = 0; k < s.k; k += kDepth) {
    const std::int64_t depth = std::min(kDepth, s.k - k);
    const std::int64_t steps = (depth + kTileDepth - 1) / kTileDepth;
    Pack<Order::kPairs>(work.b + k * s.b.row + p.j0 * s.b.column, {s.b.column, s.b.row}, columns,
                        depth, of_b, space.b.get());
    for (std::int64_t i = p.i0; i < p.i1; i += kSquare) {
      Pack<Order::kLines>(work.a + i * s.a.row + k * s.a.column, s.a, std::min(kSquare, p.i1 - i),
                          depth, of_a, space.a.get());
      float* row = space.slab.get() + (i - p.i0) * kBlockColumns;
      for (std::int64_t j = 0; j < columns; j += kSquare) {
        Unit::MicroKernel(space.a.get(), space.b.get() + j * steps * kTileDepth, steps, row + j,
                          kBlockColumns, k != 0);
      }
    }
  }
}

// The least magnitudes of all parts of a and of b.
struct Smallest {
  std::atomic<std::uint16_t> a{0xFFFF}, b{0xFFFF};

  static void Lower(std::atomic<std::uint16_t>& to, std::uint16_t value) {
    std::uint16_t seen = to;
    while (value < seen && !to.compare_exchange_weak(seen, value)) {
    }
  }
  // Whether no number is subnormal, and no sum but 0: numbers of 8 binary digits are multiples of
  // 2^(exponent - 7), so that products and their rounded sums are multiples of 2^-126.
  bool AreLargeEnough() const {
    constexpr int kBias = 127;
    const int of_a = (a + 1) >> 7, of_b = (b + 1) >> 7;  // Exponents; beyond all for zeros alone.
    return of_a > 0 && of_b > 0 && of_a + of_b - 2 * kBias >= -112;
  }
};

// False where there is no memory for the blocks.
template <class Unit, class Finish>
bool MultiplyPart(const Work<BF16, Finish>& work, const Part& part, Smallest& smallest) {
  thread_local Workspace space;
  if (!space.ok()) return false;
  Least of_a, of_b;
  Unit::Begin();
  for (std::int64_t i = part.i0; i < part.i1; i += kSlabRows) {
    for (std::int64_t j = part.j0; j < part.j1; j += kBlockColumns) {
      const Part p{i, std::min(part.i1, i + kSlabRows), j, std::min(part.j1, j + kBlockColumns)};
      Sum<Unit>(work, p, j == part.j0 ? &of_a : nullptr, i == part.i0 ? &of_b : nullptr, space);
      for (std::int64_t r = p.i0; r < p.i1; ++r) {
        work.finish(space.slab.get() + (r - p.i0) * kBlockColumns, work.matrix, r, p.j0,
                    p.j1 - p.j0);
      }
      RoundSlab<BF16>(space.slab.get(), kBlockColumns, work.c, work.s, p);
    }
  }
  Unit::End();
  Smallest::Lower(smallest.a, of_a.value());
  Smallest::Lower(smallest.b, of_b.value());
  return true;
}

template <class Unit, class Finish>
absl::StatusOr<bool> MultiplyBy(Threads& threads, const Work<BF16, Finish>& all) {
  Smallest smallest;
  GC_RETURN_IF_ERROR(EachPart(threads, all, {kSquare, kSquare, Unit::kWorthAThread},
                              [&](const Work<BF16, Finish>& work, const Part& part) {
                                return MultiplyPart<Unit>(work, part, smallest);
                              }));
  return smallest.AreLargeEnough();
}

}  // namespace gridclock::matmul::units

namespace gridclock::matmul {

// False where the CPU has no such units, or numbers are too small for them: c is not the product.
template <class Finish>
absl::StatusOr<bool> MultiplyByUnits(Threads& threads, const Work<BF16, Finish>& all) {
  if (bf16_units::HasMatrixUnits()) return units::MultiplyBy<units::MatrixUnits>(threads, all);
  if (bf16_units::HasDotProducts()) return units::MultiplyBy<units::DotProducts>(threads, all);
  return false;
}

}  // namespace gridclock::matmul

#endif  // HWY_TARGET <= HWY_AVX3

#endif  // GRIDCLOCK_KERNELS_CATALOG_MATMUL_BF16_H_
