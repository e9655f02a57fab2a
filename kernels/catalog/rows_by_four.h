// Which rows of a matrix a CPU reads at once: memory gives more where it is read at several places
// than at one, and more where these are near each other.
#ifndef GRIDCLOCK_KERNELS_CATALOG_ROWS_BY_FOUR_H_
#define GRIDCLOCK_KERNELS_CATALOG_ROWS_BY_FOUR_H_

#include <algorithm>
#include <cstdint>

namespace gridclock::reduce {

// Elements of a block of rows. The sum of 2^28 f32 took 41 ms so on an EPYC (Zen 3), and 57 from
// quarters of the whole.
constexpr std::int64_t kBlockOfRows = 16384;

// Of rows [begin, end) of n elements each: four(a, step) for rows a, a + step, a + 2 * step and
// a + 3 * step, which are those of four blocks beside each other, and one(a) for each that is left.
template <class Four, class One>
void ByFourRows(std::int64_t n, std::int64_t begin, std::int64_t end, Four four, One one) {
  std::int64_t next = begin;
  const auto four_blocks = [&](std::int64_t rows) {
    for (std::int64_t a = next; a < next + rows; ++a) four(a, rows);
    next += 4 * rows;
  };
  const std::int64_t rows = std::max<std::int64_t>(1, kBlockOfRows / std::max<std::int64_t>(1, n));
  while (next + 4 * rows <= end) four_blocks(rows);
  four_blocks((end - next) / 4);
  for (; next < end; ++next) one(next);
}

}  // namespace gridclock::reduce

#endif  // GRIDCLOCK_KERNELS_CATALOG_ROWS_BY_FOUR_H_
