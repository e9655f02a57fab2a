// The matrix units of a CPU (AMX), which no level of x86-64 promises.
#ifndef GRIDCLOCK_KERNELS_API_AMX_H_
#define GRIDCLOCK_KERNELS_API_AMX_H_

#include <cstdint>

namespace gridclock::amx {

// Whether this process may use them for bf16: the CPU has them, and the system, which wants to be
// asked, agrees. Asked once.
bool IsHere();

inline constexpr std::int64_t kRowBytes = 64;  // Of each of the 16 rows of a tile register.

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

}  // namespace gridclock::amx

// For functions that use them. What these call must not be inlined from elsewhere.
#define GC_AMX __attribute__((target("amx-tile,amx-bf16")))

#endif  // GRIDCLOCK_KERNELS_API_AMX_H_
