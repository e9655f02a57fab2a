// What some CPUs have for products of bf16 and no level of x86-64 promises: matrix units (AMX) and
// dot products of vectors (AVX512_BF16).
#ifndef GRIDCLOCK_KERNELS_API_BF16_UNITS_H_
#define GRIDCLOCK_KERNELS_API_BF16_UNITS_H_

#include <cstdint>

namespace gridclock::bf16_units {

// Whether this process may use them: the CPU has them, and the system, which of the matrix units
// wants to be asked, agrees. Asked once.
bool HasMatrixUnits();
bool HasDotProducts();

inline constexpr std::int64_t kTileRowBytes = 64;  // Of each of the 16 rows of a tile register.

// What _tile_loadconfig reads: all of the eight registers whole. A constant, as gcc thinks that
// only the first bytes are read, and would leave out writing the others.
struct alignas(64) TileShapes {
  std::uint8_t palette, start_row, reserved[14];
  std::uint16_t row_bytes[16];
  std::uint8_t rows[16];
};
inline constexpr TileShapes kWholeTiles = {.palette = 1,
                                           .start_row = 0,
                                           .reserved = {},
                                           .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64},
                                           .rows = {16, 16, 16, 16, 16, 16, 16, 16}};
static_assert(sizeof(TileShapes) == 64);

}  // namespace gridclock::bf16_units

// For functions that use them. What these call must not be inlined from elsewhere.
#define GC_AMX __attribute__((target("amx-tile,amx-bf16")))
#define GC_AVX512_BF16 __attribute__((target("avx512bf16")))

#endif  // GRIDCLOCK_KERNELS_API_BF16_UNITS_H_
