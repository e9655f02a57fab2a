#include "server/rpc/header_fields.h"

#include <string>

#include <gtest/gtest.h>

#include "absl/strings/string_view.h"

namespace gridclock {
namespace {

// The same whether they come as one piece or byte by byte.
std::size_t Count(const std::string& block) {
  const absl::Span<const std::uint8_t> bytes(reinterpret_cast<const std::uint8_t*>(block.data()),
                                             block.size());
  HeaderFields whole, torn;
  whole.Feed(bytes);
  for (std::size_t i = 0; i < bytes.size(); ++i) torn.Feed(bytes.subspan(i, 1));
  EXPECT_EQ(torn.count(), whole.count());
  return whole.count();
}

std::string Of(const char* text, std::size_t size) {
  return {text, size};
}

TEST(HeaderFields, OfTheTablesTakeOneByteOrMore) {
  EXPECT_EQ(Count(""), 0U);
  EXPECT_EQ(Count("\x82\x87\xbe"), 3U);
  EXPECT_EQ(Count("\xff\x9a\x0a\x82"), 2U);
}

// RFC 7541, C.2 and C.3.1: with a name of its own, with one of the tables, never to be kept.
TEST(HeaderFields, OfTheStandardsExamples) {
  EXPECT_EQ(Count("\x40\x0a"
                  "custom-key\x0d"
                  "custom-header\x82"),
            2U);
  EXPECT_EQ(Count("\x04\x0c/sample/path\x82"), 2U);
  EXPECT_EQ(Count("\x10\x08password\x06secret\x82"), 2U);
  EXPECT_EQ(Count("\x82\x86\x84\x41\x0fwww.example.com"), 4U);
  // C.4.1: the same, Huffman's code.
  EXPECT_EQ(Count("\x82\x86\x84\x41\x8c\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff"), 4U);
}

TEST(HeaderFields, LongIndexesAndTextsAreSkippedWhole) {
  EXPECT_EQ(Count("\x0f\x2f\x02zz\x82"), 2U);  // Index 15 + 47.
  EXPECT_EQ(Count("\x7f\x01\x02zz\x82"), 2U);  // Index 63 + 1.
  const std::string text(127 + 200, '\x82');
  EXPECT_EQ(Count(Of("\x00\x01x\x7f\xc8\x01", 6) + text + "\x82"), 2U);
  EXPECT_EQ(Count(Of("\x00\x00\x00", 3) + "\x82"), 2U);  // Of no bytes.
}

TEST(HeaderFields, ASizeOfTheTableCountsAsOne) {
  EXPECT_EQ(Count("\x20\x3f\xe1\x1f\x82"), 3U);
}

TEST(HeaderFields, ALengthBeyondAllBoundsEndsNowhere) {
  EXPECT_EQ(Count(Of("\x00\x01x\x7f\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 14) +
                  std::string(9, '\x82')),
            1U);
}

}  // namespace
}  // namespace gridclock
