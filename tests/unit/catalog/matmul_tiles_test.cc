#include "kernels/catalog/matmul_tiles.h"

#include <set>
#include <utility>

#include <gtest/gtest.h>

namespace gridclock::matmul {
namespace {

TEST(MatmulTiles, EachTileOfAGridHasAPlaceOfItsOwn) {
  for (const Grid grid : {Grid{1, 1, 1}, Grid{1, 3, 17}, Grid{1, 16, 5}, Grid{1, 17, 5},
                          Grid{1, 33, 7}, Grid{3, 18, 4}}) {
    std::set<std::pair<std::int64_t, std::pair<std::int64_t, std::int64_t>>> places;
    for (std::int64_t i = 0; i < grid.tiles(); ++i) {
      const Place place = PlaceOf(grid, i);
      EXPECT_TRUE(place.matrix < grid.matrices && place.row < grid.rows &&
                  place.column < grid.columns)
          << grid.rows << "x" << grid.columns << ": " << i;
      places.insert({place.matrix, {place.row, place.column}});
    }
    EXPECT_EQ(places.size(), grid.tiles());
  }
}

// 16 rows of 2^28 columns were 0 tiles in 32 bits.
TEST(MatmulTiles, AWideGridHasItsPlacesToo) {
  constexpr std::int64_t kWide = std::int64_t{1} << 28;
  for (const Grid grid : {Grid{1, 1, kWide}, Grid{1, 1, kWide + 1}, Grid{2, 1, kWide + 1},
                          Grid{1, 15, kWide}, Grid{1, 1, (std::int64_t{1} << 32) - 1}}) {
    const std::int64_t of_one = grid.rows * grid.columns;
    for (const std::int64_t t :
         {std::int64_t{0}, std::int64_t{1}, std::int64_t{17}, kWide / 2, kWide - 1, of_one - 1}) {
      const Place place = PlaceOf(grid, of_one * (grid.matrices - 1) + t);
      EXPECT_EQ(place.matrix, grid.matrices - 1);
      EXPECT_EQ(place.row, t % grid.rows) << grid.rows << "x" << grid.columns << ": " << t;
      EXPECT_EQ(place.column, t / grid.rows) << grid.rows << "x" << grid.columns << ": " << t;
    }
  }
}

TEST(MatmulTiles, ATallGridHasItsPlacesToo) {
  constexpr std::int64_t kTall = (std::int64_t{1} << 32) - 1;
  for (const std::int64_t t : {std::int64_t{0}, std::int64_t{16}, kTall / 2, kTall - 1}) {
    const Place place = PlaceOf({1, kTall, 1}, t);
    EXPECT_EQ(place.row, t);
    EXPECT_EQ(place.column, 0);
  }
}

}  // namespace
}  // namespace gridclock::matmul
