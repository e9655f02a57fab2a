#include "server/rpc/header_blocks.h"

#include <string>
#include <vector>

#include <sys/socket.h>

#include "absl/strings/str_cat.h"
#include "base/unique_fd.h"
#include "gtest/gtest.h"
#include "server/rpc/watched_reads.h"

namespace gridclock {
namespace {

enum Type : std::uint8_t { kData = 0, kHeaders = 1, kPing = 6, kContinuation = 9 };
constexpr std::uint8_t kEndHeaders = 4;
constexpr absl::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

std::string Frame(Type type, std::uint8_t flags, std::size_t length) {
  std::string frame = {static_cast<char>(length >> 16),
                       static_cast<char>(length >> 8),
                       static_cast<char>(length),
                       static_cast<char>(type),
                       static_cast<char>(flags),
                       0,
                       0,
                       0,
                       1};
  // What would be a frame that begins a block of 16 MiB, if it were looked at.
  for (std::size_t i = 0; i < length; ++i) frame += i % 9 < 3 ? '\xff' : '\x01';
  return frame;
}

absl::Span<const std::uint8_t> Bytes(absl::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

// The same whether it comes as one piece or byte by byte.
bool Passes(const std::string& frames) {
  const std::string all = absl::StrCat(kPreface, frames);
  HeaderBlocks whole, torn;
  const bool passes = whole.Feed(Bytes(all));
  for (const char& byte : all) torn.Feed(Bytes({&byte, 1}));
  EXPECT_EQ(torn.too_long(), !passes);
  EXPECT_EQ(whole.too_long(), !passes);
  return passes;
}

std::string Times(int count, const std::string& frame) {
  std::string all;
  for (int i = 0; i < count; ++i) all += frame;
  return all;
}

TEST(HeaderBlocksTest, ABlockThatEndsIsForgotten) {
  EXPECT_TRUE(Passes(Times(100, Frame(kHeaders, kEndHeaders, 16000))));
  EXPECT_TRUE(Passes(Times(100, Frame(kHeaders, 0, 16000) + Frame(kContinuation, 0, 16000) +
                                    Frame(kContinuation, kEndHeaders, 16000))));
}

TEST(HeaderBlocksTest, OfWhatIsNoHeaderNothingCounts) {
  EXPECT_TRUE(Passes(Times(100, Frame(kData, 0, 16384) + Frame(kPing, 0, 8))));
}

TEST(HeaderBlocksTest, ABlockIsTooLongFromOneByteBeyondTheMostOn) {
  constexpr std::size_t kEach = 16 << 10;
  const std::string begun =
      Frame(kHeaders, 0, kEach - 9) + Times(6, Frame(kContinuation, 0, kEach - 9));
  EXPECT_TRUE(Passes(begun + Frame(kContinuation, kEndHeaders, kEach - 9)));
  EXPECT_TRUE(Passes(begun + Frame(kContinuation, 0, kEach - 9)));
  EXPECT_FALSE(Passes(begun + Frame(kContinuation, kEndHeaders, kEach - 8)));
}

TEST(HeaderBlocksTest, FramesOfNothingCountToo) {
  const int most = HeaderBlocks::kMostBytes / HeaderBlocks::kLeastOfFrame;
  const std::string begun = Frame(kHeaders, 0, 0);
  EXPECT_TRUE(Passes(begun + Times(most - 1, Frame(kContinuation, 0, 0))));
  EXPECT_FALSE(Passes(begun + Times(most, Frame(kContinuation, 0, 0))));
}

TEST(HeaderBlocksTest, ABlockThatBeginsAgainGoesOn) {
  EXPECT_FALSE(Passes(Times(10, Frame(kHeaders, 0, 16000))));
}

// One frame may say that it is longer than all that may come.
TEST(HeaderBlocksTest, AFrameCountsBeforeItsBytesCome) {
  const std::string head = Frame(kHeaders, kEndHeaders, 200 << 10).substr(0, 9);
  EXPECT_FALSE(Passes(head));
}

struct Pair {
  UniqueFd near, far;
};

Pair Connected() {
  int ends[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

ssize_t Read(int fd) {
  std::vector<char> first(7), second(1 << 20);
  iovec parts[] = {{first.data(), first.size()}, {second.data(), second.size()}};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  return recvmsg(fd, &message, 0);
}

void Send(const Pair& pair, const std::string& bytes) {
  ASSERT_EQ(send(pair.far.get(), bytes.data(), bytes.size(), 0),
            static_cast<ssize_t>(bytes.size()));
}

TEST(WatchedReadsTest, AWatchedDescriptorFailsWhereItsHeadersAreTooLong) {
  ASSERT_TRUE(ReadsAreWatched().ok());
  const std::string fine = absl::StrCat(kPreface, Frame(kHeaders, kEndHeaders, 100));
  const Pair pair = Connected();
  ASSERT_TRUE(WatchReads(pair.near.get()).ok());
  TakeCutOff();
  Send(pair, fine);
  EXPECT_EQ(Read(pair.near.get()), static_cast<ssize_t>(fine.size()));
  Send(pair, Times(10, Frame(kContinuation, 0, 16000)));
  ssize_t size = 0;
  while ((size = Read(pair.near.get())) > 0) {
  }
  EXPECT_EQ(size, -1);
  EXPECT_EQ(errno, ECONNRESET);
  EXPECT_EQ(TakeCutOff().headers.count, 1u);
  EXPECT_EQ(TakeCutOff().headers.count, 0u);
}

TEST(WatchedReadsTest, TheNextConnectionOnADescriptorIsAnother) {
  const Pair pair = Connected();
  for (int connection = 0; connection < 2; ++connection) {
    ASSERT_TRUE(WatchReads(pair.near.get()).ok());
    Send(pair, absl::StrCat(kPreface, Times(5, Frame(kHeaders, 0, 16000))));
    EXPECT_GT(Read(pair.near.get()), 0);
  }
}

// What is encrypted looks like anything, at times like headers without end.
TEST(WatchedReadsTest, OfAConnectionWithTlsTheBytesMeanNothing) {
  const Pair pair = Connected();
  ASSERT_TRUE(WatchReads(pair.near.get()).ok());  // The connection that had the descriptor before.
  ASSERT_TRUE(WatchEncryptedReads(pair.near.get()).ok());
  Send(pair, absl::StrCat(kPreface, Times(5, Frame(kHeaders, 0, 16000))));
  Send(pair, Times(5, Frame(kHeaders, 0, 16000)));
  ssize_t all = 0;
  for (ssize_t size; all < 10 * (16000 + 9) && (size = Read(pair.near.get())) > 0;) all += size;
  EXPECT_GE(all, 10 * (16000 + 9));
}

TEST(WatchedReadsTest, ADescriptorThatThereIsNoRoomForIsRefused) {
  EXPECT_EQ(WatchReads(1 << 16).code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace gridclock
