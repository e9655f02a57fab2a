#include "kernels/device/cuda/pinned_range.h"

#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr std::size_t kPiece = PinnedRange::kPieceBytes;

class PinnedRangeTest : public ::testing::Test {
 protected:
  // Nothing is read or written at these addresses.
  std::byte* const base_ = reinterpret_cast<std::byte*>(std::uintptr_t{1} << 40);
  std::vector<std::pair<std::size_t, std::size_t>> pinned_, parts_;
  std::vector<std::size_t> unpinned_;
  absl::Status answer_;

  PinnedRange Make(std::size_t bytes) {
    return PinnedRange({base_, bytes},
                       {.pin =
                            [this](std::span<std::byte> piece) {
                              pinned_.emplace_back(piece.data() - base_, piece.size());
                              return answer_;
                            },
                        .unpin =
                            [this](std::byte* piece) {
                              unpinned_.push_back(static_cast<std::size_t>(piece - base_));
                            }});
  }
  absl::Status Touch(PinnedRange& range, std::size_t first, std::size_t bytes) {
    parts_.clear();
    return range.ForEachPiece(base_ + first, bytes, [this](std::size_t offset, std::size_t size) {
      parts_.emplace_back(offset, size);
      return absl::OkStatus();
    });
  }
};

TEST_F(PinnedRangeTest, PinsEachPieceOnceAsItIsTouched) {
  {
    PinnedRange range = Make(3 * kPiece);
    EXPECT_THAT(Touch(range, kPiece + 5, 10), IsOk());
    EXPECT_THAT(pinned_, ElementsAre(Pair(kPiece, kPiece)));
    EXPECT_THAT(Touch(range, kPiece, kPiece), IsOk());
    EXPECT_EQ(pinned_.size(), 1U);
    EXPECT_THAT(unpinned_, IsEmpty());
  }
  EXPECT_THAT(unpinned_, ElementsAre(kPiece));
}

TEST_F(PinnedRangeTest, SplitsACopyWhereThePiecesMeet) {
  PinnedRange range = Make(2 * kPiece + 100);

  EXPECT_THAT(Touch(range, kPiece - 3, kPiece + 50), IsOk());

  EXPECT_THAT(parts_, ElementsAre(Pair(0, 3), Pair(3, kPiece), Pair(kPiece + 3, 47)));
  EXPECT_THAT(pinned_, ElementsAre(Pair(0, kPiece), Pair(kPiece, kPiece), Pair(2 * kPiece, 100)));
}

TEST_F(PinnedRangeTest, KnowsWhatItContains) {
  const PinnedRange range = Make(1000);
  EXPECT_TRUE(range.Contains(base_, 1000));
  EXPECT_TRUE(range.Contains(base_ + 1000, 0));
  EXPECT_FALSE(range.Contains(base_ + 1, 1000));
  EXPECT_FALSE(range.Contains(base_ - 1, 2));
  EXPECT_FALSE(range.Contains(base_, ~std::size_t{0}));
}

TEST_F(PinnedRangeTest, TriesAgainWhatCouldNotBePinned) {
  PinnedRange range = Make(kPiece);
  answer_ = absl::ResourceExhaustedError("locked memory");
  EXPECT_THAT(Touch(range, 0, 8), StatusIs(absl::StatusCode::kResourceExhausted, "locked memory"));
  EXPECT_THAT(parts_, IsEmpty());
  answer_ = absl::OkStatus();
  EXPECT_THAT(Touch(range, 0, 8), IsOk());
  EXPECT_THAT(parts_, ElementsAre(Pair(0, 8)));
}

}  // namespace
}  // namespace gridclock
