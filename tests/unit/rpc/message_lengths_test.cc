#include "server/rpc/message_lengths.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "absl/strings/str_cat.h"
#include "base/unique_fd.h"
#include "server/rpc/header_blocks.h"
#include "server/rpc/watched_reads.h"

namespace gridclock {
namespace {

enum Type : std::uint8_t { kData = 0, kHeaders = 1, kReset = 3 };
constexpr std::uint8_t kEndStream = 1, kPadded = 8;
constexpr std::uint32_t kMost = 0x0102ff;  // What is told is one more, with other bytes.
constexpr absl::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

std::string Frame(Type type, std::uint8_t flags, int stream, const std::string& bytes) {
  const std::size_t length = bytes.size();
  return std::string{static_cast<char>(length >> 16),
                     static_cast<char>(length >> 8),
                     static_cast<char>(length),
                     static_cast<char>(type),
                     static_cast<char>(flags),
                     0,
                     0,
                     static_cast<char>(stream >> 8),
                     static_cast<char>(stream)} +
         bytes;
}

std::string Prefix(std::uint32_t length) {
  return {0, static_cast<char>(length >> 24), static_cast<char>(length >> 16),
          static_cast<char>(length >> 8), static_cast<char>(length)};
}

std::string Message(std::uint32_t length) {
  return Prefix(length) + std::string(length, '\xff');
}

HeaderBlocks Blocks(std::size_t most_begun) {
  return {[](std::size_t) { return true; }, MessageLengths(kMost, most_begun)};
}

// What gRPC reads in its place, in pieces of so many bytes; "cut off" where it fails.
std::string Read(const std::string& frames, std::size_t piece, std::size_t most_begun = 8) {
  HeaderBlocks blocks = Blocks(most_begun);
  std::string all = absl::StrCat(kPreface, frames);
  for (std::size_t at = 0; at < all.size(); at += piece) {
    const std::size_t size = std::min(piece, all.size() - at);
    if (!blocks.Feed({reinterpret_cast<std::uint8_t*>(&all[at]), size})) return "cut off";
  }
  return all.substr(kPreface.size());
}

// The same in one piece, byte by byte, and in pieces that end within a prefix.
void ExpectRead(const std::string& frames, const std::string& want) {
  for (const std::size_t piece : {std::size_t{1} << 30, std::size_t{1}, std::size_t{13}}) {
    EXPECT_EQ(Read(frames, piece), want) << "in pieces of " << piece;
  }
}

TEST(MessageLengthsTest, AMessageThatIsNotTooLongStaysAsItIs) {
  for (const std::uint32_t length : {0U, 1U, 255U, 256U, kMost - 1, kMost, kMost + 1}) {
    const std::string frames = Frame(kData, 0, 1, Message(length)) + Frame(kData, 0, 1, Message(3));
    ExpectRead(frames, frames);
  }
}

TEST(MessageLengthsTest, ALongerOneIsToldAsOneByteTooLong) {
  for (const std::uint32_t length :
       {kMost + 2, kMost + 255, 0x010400U, 0x020000U, 0x01000000U, 0xffffffffU}) {
    ExpectRead(Frame(kData, 0, 1, Prefix(length) + "ab"),
               Frame(kData, 0, 1, Prefix(kMost + 1) + "ab"));
  }
}

TEST(MessageLengthsTest, APrefixMayBeTornIntoFrames) {
  const std::string prefix = Prefix(0x7f010203), told = Prefix(kMost + 1);
  std::string frames, want;
  for (std::size_t i = 0; i < prefix.size(); ++i) {
    frames += Frame(kData, 0, 1, prefix.substr(i, 1)) + Frame(kData, 0, 3, Message(7));
    want += Frame(kData, 0, 1, told.substr(i, 1)) + Frame(kData, 0, 3, Message(7));
  }
  ExpectRead(frames, want);
}

TEST(MessageLengthsTest, StreamsAreToldApart) {
  const std::string first = Message(40), second = Message(60), rest = Prefix(1 << 30);
  ExpectRead(Frame(kData, 0, 1, first.substr(0, 20)) + Frame(kData, 0, 259, second.substr(0, 30)) +
                 Frame(kData, 0, 1, first.substr(20) + rest) +
                 Frame(kData, kEndStream, 259, second.substr(30)),
             Frame(kData, 0, 1, first.substr(0, 20)) + Frame(kData, 0, 259, second.substr(0, 30)) +
                 Frame(kData, 0, 1, first.substr(20) + Prefix(kMost + 1)) +
                 Frame(kData, kEndStream, 259, second.substr(30)));
}

// As gRPC does: it goes by what it was told.
TEST(MessageLengthsTest, TheNextMessageBeginsWhereTheToldOneEnds) {
  const std::string told(kMost + 1, '\xff');
  ExpectRead(Frame(kData, 0, 1, Prefix(1 << 30) + told + Prefix(1 << 30)),
             Frame(kData, 0, 1, Prefix(kMost + 1) + told + Prefix(kMost + 1)));
}

// gRPC skips what comes of a stream before its headers.
TEST(MessageLengthsTest, AMessageBeginsBehindTheHeadersOfItsStream) {
  const std::string skipped = Frame(kData, 0, 1, Prefix(kMost)),
                    headers = Frame(kHeaders, 0, 1, "x");
  ExpectRead(skipped + headers + Frame(kData, 0, 1, Prefix(1 << 30)),
             skipped + headers + Frame(kData, 0, 1, Prefix(kMost + 1)));
}

TEST(MessageLengthsTest, WhatIsNoMessageStaysAsItIs) {
  const std::string long_one = Prefix(1 << 30);
  for (const std::string& frames :
       {Frame(kReset, 0, 1, long_one), Frame(kHeaders, kEndStream, 1, long_one),
        Frame(kData, kPadded, 1, long_one)}) {
    ExpectRead(frames, frames);
  }
}

TEST(MessageLengthsTest, TooManyThatAreBegunAreCutOff) {
  const auto begun = [](int streams) {
    std::string frames;
    for (int i = 0; i < streams; ++i) frames += Frame(kData, 0, 2 * i + 1, Prefix(5));
    return frames;
  };
  EXPECT_NE(Read(begun(8), 100), "cut off");
  EXPECT_EQ(Read(begun(9), 100), "cut off");
  // Those that ended are none: by their last byte, a reset, the end of the stream.
  for (const std::string& end :
       {Frame(kData, 0, 1, "12345"), Frame(kReset, 0, 1, "1234"), Frame(kData, kEndStream, 1, ""),
        Frame(kData, kEndStream, 1, "1"), Frame(kHeaders, kEndStream, 1, "")}) {
    EXPECT_NE(Read(begun(8) + end + Frame(kData, 0, 101, Prefix(5)), 100), "cut off");
  }
  EXPECT_EQ(Read(begun(8) + Frame(kData, 0, 1, "1234") + Frame(kData, 0, 101, Prefix(5)), 100),
            "cut off");
}

TEST(MessageLengthsTest, AConnectionThatIsWatchedIsHeldToItsBounds) {
  SetMessageBounds({.most_bytes = kMost, .most_begun = 8});
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const UniqueFd near(ends[0]), far(ends[1]);
  ASSERT_TRUE(WatchReads(near.get()).ok());
  SetMessageBounds({});
  const std::string sent = absl::StrCat(kPreface, Frame(kData, 0, 1, Prefix(1 << 30)));
  ASSERT_EQ(send(far.get(), sent.data(), sent.size(), 0), std::ssize(sent));
  std::string got(sent.size(), '\0');
  iovec part = {got.data(), got.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  const ssize_t size = recvmsg(near.get(), &message, 0);
  ForgetReads(near.get());
  ASSERT_EQ(size, std::ssize(sent));
  EXPECT_EQ(got.substr(kPreface.size()), Frame(kData, 0, 1, Prefix(kMost + 1)));
}

}  // namespace
}  // namespace gridclock
