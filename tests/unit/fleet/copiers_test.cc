#include "server/fleet/copiers.h"

#include <algorithm>
#include <span>
#include <thread>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gridclock {
namespace {

using ::testing::Combine;
using ::testing::Each;
using ::testing::Values;

constexpr std::byte kBeside{0xAB};
constexpr std::size_t kMargin = 64;

// No two pieces are alike.
std::vector<std::byte> SomeBytes(std::size_t size, unsigned seed) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<std::byte>((i + seed) * 2654435761U >> 13);
  }
  return bytes;
}

// The bytes are copied to an odd place, and nothing beside it is written to.
void ExpectCopies(Copiers& copiers, std::size_t size, std::size_t offset, unsigned seed = 0) {
  const std::vector<std::byte> from = SomeBytes(size + offset, seed);
  std::vector<std::byte> to(size + 2 * kMargin, kBeside);
  const std::span target = std::span(to).subspan(kMargin - offset, size);
  copiers.Copy(target, std::span(from).subspan(offset));
  EXPECT_TRUE(std::ranges::equal(target, std::span(from).subspan(offset)));
  EXPECT_THAT(std::span(to).first(kMargin - offset), Each(kBeside));
  EXPECT_THAT(std::span(to).subspan(kMargin - offset + size), Each(kBeside));
}

class CopiersTest : public ::testing::TestWithParam<std::tuple<int, std::size_t>> {};

TEST_P(CopiersTest, CopiesEveryByteAndNoOther) {
  const auto [helpers, size] = GetParam();
  Copiers copiers(helpers);
  for (const std::size_t offset : {0, 1, 63}) ExpectCopies(copiers, size, offset);
}

INSTANTIATE_TEST_SUITE_P(Sizes, CopiersTest,
                         Combine(Values(0, 1, Copiers::kMostHelpers),
                                 Values(0, 1, Copiers::kPiece + 1, Copiers::kShared - 1,
                                        Copiers::kShared, Copiers::kShared + 1,
                                        Copiers::kShared + Copiers::kPiece - 1,
                                        Copiers::kShared + Copiers::kPiece, 4'000'000)));

TEST(CopiersOfAServerTest, ServesManyAtOnce) {
  Copiers copiers(2);
  std::vector<std::jthread> callers;
  for (unsigned caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&copiers, caller] {
      for (unsigned turn = 0; turn < 10; ++turn) {
        ExpectCopies(copiers, Copiers::kShared + 4096 * caller + turn, 1, 10 * caller + turn);
      }
    });
  }
}

TEST(CopiersOfAServerTest, HelpersAreFewAndLeaveCpusForOthers) {
  EXPECT_GE(Copiers::HelpersHere(), 0);
  EXPECT_LE(Copiers::HelpersHere(), Copiers::kMostHelpers);
  EXPECT_LE(4 * Copiers::HelpersHere(), static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace
}  // namespace gridclock
