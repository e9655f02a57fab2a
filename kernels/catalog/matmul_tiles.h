// How a product's tiles are numbered, for kernels and for a test without a GPU.
#ifndef GRIDCLOCK_KERNELS_CATALOG_MATMUL_TILES_H_
#define GRIDCLOCK_KERNELS_CATALOG_MATMUL_TILES_H_

#include <cstdint>

namespace gridclock::matmul {

// The tiles of all matrices of a batch.
struct Grid {
  std::int64_t matrices, rows, columns;
  constexpr std::int64_t tiles() const { return matrices * rows * columns; }
};

// Where tile `index` lies. Blocks that run at the same time work on kBand rows of tiles, so that
// their strips of a and b are in the L2 cache for each other. The tiles of one matrix are fewer
// than 2^32, and a division of 64 bits is a hundred instructions.
struct Place {
  std::int64_t matrix, row, column;
};
constexpr Place PlaceOf(const Grid& grid, std::int64_t index) {
  constexpr unsigned kBand = 16;
  const std::int64_t matrix = grid.matrices == 1 ? 0 : index / (grid.rows * grid.columns);
  const auto t = static_cast<unsigned>(index - matrix * (grid.rows * grid.columns));
  const auto grid_rows = static_cast<unsigned>(grid.rows);
  const auto columns = static_cast<unsigned>(grid.columns);
  // With more than one band its tiles are fewer than all, so that their number fits.
  const unsigned band = grid_rows <= kBand ? 0 : t / (kBand * columns);
  const unsigned in_band = t - band * (kBand * columns);
  const unsigned left = grid_rows - band * kBand, rows = left < kBand ? left : kBand;
  return {matrix, band * kBand + in_band % rows, in_band / rows};
}

}  // namespace gridclock::matmul

#endif  // GRIDCLOCK_KERNELS_CATALOG_MATMUL_TILES_H_
