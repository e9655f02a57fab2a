#include "base/copy.h"

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace gridclock {
namespace {

// The bytes, and no other: at every place of a line, in sizes around a line, a page and a fence's
// worth.
TEST(CopyBytesTest, CopiesEveryByteAndNoOther) {
  std::mt19937 random(7);
  std::vector<std::byte> from(64 + 8192 + 65);
  for (std::byte& byte : from) byte = static_cast<std::byte>(random());
  for (const Reuse reuse : {Reuse::kSoon, Reuse::kLate}) {
    for (const std::size_t size : {0, 1, 63, 64, 65, 4095, 4096, 4097, 4159, 4160, 8191, 8192}) {
      for (const std::size_t place : {0, 1, 15, 16, 31, 63}) {
        const std::size_t source = (place * 7 + size) % 64;
        std::vector<std::byte> to(from.size(), std::byte{0xA5});
        std::vector<std::byte> want = to;
        for (std::size_t i = 0; i < size; ++i) want[place + i] = from[source + i];
        CopyBytes(to.data() + place, from.data() + source, size, reuse);
        ASSERT_EQ(to, want) << size << " bytes at " << place << " from " << source;
      }
    }
  }
}

TEST(CopyBytesTest, WhatCachesKeepIsReadSoon) {
  EXPECT_EQ(ReuseOf(std::uint64_t{1} << 20), Reuse::kSoon);
  EXPECT_EQ(ReuseOf(std::uint64_t{256} << 20), Reuse::kLate);
}

}  // namespace
}  // namespace gridclock
