#include "server/core/arena_allocator.h"

#include <random>
#include <utility>
#include <vector>

#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::HasSubstr;
using Code = absl::StatusCode;
using Block = ArenaAllocator::Block;
constexpr std::uint64_t kPage = ArenaAllocator::kPage;

TEST(ArenaAllocator, GivesWholePagesFromTheStart) {
  ArenaAllocator arena(4 * kPage + 100, 4 * kPage);
  EXPECT_EQ(arena.capacity(), 4 * kPage);
  ASSERT_OK_AND_ASSIGN(const Block one, arena.Reserve(1, "ann"));
  ASSERT_OK_AND_ASSIGN(const Block two, arena.Reserve(kPage + 1, "ann"));
  EXPECT_EQ(one.range(), (MemoryRange{0, kPage}));
  EXPECT_EQ(two.range(), (MemoryRange{kPage, 2 * kPage}));
  EXPECT_EQ(arena.used(), 3 * kPage);
}

TEST(ArenaAllocator, TouchesAgainWhatWasGivenBack) {
  ArenaAllocator arena(4 * kPage, 4 * kPage);
  ASSERT_OK_AND_ASSIGN(Block one, arena.Reserve(kPage, "ann"));
  ASSERT_OK_AND_ASSIGN(const Block two, arena.Reserve(kPage, "ann"));
  one = Block();
  ASSERT_OK_AND_ASSIGN(const Block three, arena.Reserve(kPage, "ann"));
  EXPECT_EQ(three.range().offset, 0u);
}

TEST(ArenaAllocator, SaysWhetherWaitingHelps) {
  ArenaAllocator arena(4 * kPage, 3 * kPage);
  EXPECT_THAT(arena.Reserve(5 * kPage, "ann"),
              StatusIs(Code::kResourceExhausted, HasSubstr("20480 bytes; arena_bytes is 16384")));
  EXPECT_THAT(arena.Reserve(5 * kPage, "ann"), ReasonIs("TOO_LARGE"));
  EXPECT_EQ(DetailsOf(arena.Reserve(5 * kPage, "ann").status()).metadata["needed"], "20480");
  EXPECT_THAT(arena.Reserve(4 * kPage, "ann"), ReasonIs("TOO_LARGE"));
  ASSERT_OK_AND_ASSIGN(const Block most, arena.Reserve(3 * kPage, "ann"));
  const auto own = arena.Reserve(1, "ann");
  EXPECT_THAT(own, ReasonIs("MEMORY_FULL"));
  EXPECT_EQ(DetailsOf(own.status()).metadata["limit"], "client_arena_bytes");
  const auto all = arena.Reserve(2 * kPage, "bob");
  EXPECT_THAT(all, ReasonIs("MEMORY_FULL"));
  EXPECT_EQ(DetailsOf(all.status()).metadata["limit"], "arena_bytes");
}

TEST(ArenaAllocator, NothingTakesNothing) {
  ArenaAllocator arena(0, 0);
  EXPECT_THAT(arena.Reserve(0, "ann"), IsOk());
  EXPECT_THAT(arena.Reserve(1, "ann"), ReasonIs("TOO_LARGE"));
}

TEST(ArenaAllocator, KnowsHowMuchOneHoldsAtMost) {
  ArenaAllocator arena(8 * kPage, 8 * kPage);
  EXPECT_EQ(arena.most_of_one(), 0u);
  auto ann = arena.Reserve(3 * kPage, "ann");
  const auto bob = arena.Reserve(kPage, "bob");
  EXPECT_EQ(arena.most_of_one(), 3 * kPage);
  ann = Block();
  EXPECT_EQ(arena.most_of_one(), kPage);
}

TEST(ArenaAllocator, RandomUseNeverOverlapsAndLeavesOneHole) {
  std::mt19937_64 random(1);
  ArenaAllocator arena(64 * kPage, 64 * kPage);
  std::vector<Block> blocks;
  for (int step = 0; step < 20'000; ++step) {
    if (!blocks.empty() && random() % 2 == 0) {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      blocks.pop_back();
      continue;
    }
    auto block = arena.Reserve(random() % (8 * kPage), random() % 2 == 0 ? "ann" : "bob");
    if (!block.ok()) continue;
    const MemoryRange& mine = block->range();
    for (const Block& other : blocks) {
      const bool apart = mine.offset + mine.size <= other.range().offset ||
                         other.range().offset + other.range().size <= mine.offset;
      ASSERT_TRUE(apart || mine.size == 0 || other.range().size == 0);
    }
    blocks.push_back(*std::move(block));
  }
  blocks.clear();
  EXPECT_EQ(arena.used(), 0u);
  EXPECT_THAT(arena.Reserve(64 * kPage, "ann"), IsOk());
}

}  // namespace
}  // namespace gridclock
