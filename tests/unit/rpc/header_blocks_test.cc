#include "server/rpc/header_blocks.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include "absl/strings/str_cat.h"
#include "base/unique_fd.h"
#include "server/rpc/watched_reads.h"

namespace gridclock {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

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
  // One field, whose value is longer than all that comes.
  std::string bytes = type == kHeaders ? std::string("\x10\x00\x7f\xff\xff\xff\x07", 7) : "";
  // What would be a frame that begins a block of 16 MiB, if it were looked at.
  while (bytes.size() < length) bytes += bytes.size() % 9 < 3 ? '\xff' : '\x01';
  return frame + bytes.substr(0, length);
}

bool AnyCall(std::size_t) {
  return true;
}

HeaderBlocks Blocks(HeaderBlocks::Begun begun) {
  return {std::move(begun), MessageLengths(1000, 2)};
}

bool Feed(HeaderBlocks& blocks, std::string bytes) {
  return blocks.Feed({reinterpret_cast<std::uint8_t*>(bytes.data()), bytes.size()});
}

// The same whether it comes as one piece or byte by byte.
bool Passes(const std::string& frames) {
  const std::string all = absl::StrCat(kPreface, frames);
  HeaderBlocks whole = Blocks(AnyCall), torn = Blocks(AnyCall);
  const bool passes = Feed(whole, all);
  for (const char& byte : all) Feed(torn, {&byte, 1});
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

// ---- The calls that it begins. ----

std::string Headers(int stream, std::uint8_t flags, const std::string& bytes) {
  return std::string{0, 0, static_cast<char>(bytes.size()), kHeaders, static_cast<char>(flags), 0,
                     0, 0, static_cast<char>(stream)} +
         bytes;
}

// The fields of each, the same whether they come as one piece or byte by byte.
std::vector<std::size_t> Begun(const std::string& frames) {
  const std::string all = absl::StrCat(kPreface, frames);
  std::vector<std::size_t> whole, torn;
  const auto to = [](std::vector<std::size_t>& calls) {
    return Blocks([&calls](std::size_t fields) {
      calls.push_back(fields);
      return true;
    });
  };
  HeaderBlocks at_once = to(whole), by_bytes = to(torn);
  EXPECT_TRUE(Feed(at_once, all));
  for (const char& byte : all) Feed(by_bytes, {&byte, 1});
  EXPECT_EQ(torn, whole);
  return whole;
}

constexpr std::uint8_t kPadded = 8, kPriority = 0x20;

TEST(HeaderBlocksTest, ACallBeginsWithTheEndOfItsHeaders) {
  EXPECT_THAT(Begun(Headers(1, kEndHeaders, "\x82\x86") + Frame(kData, 0, 100) +
                    Headers(3, kEndHeaders, "\x82")),
              ElementsAre(2, 1));
  EXPECT_THAT(Begun(Headers(1, 0, "\x82\x86")), IsEmpty());
  EXPECT_THAT(Begun(Headers(1, kEndHeaders, "")), ElementsAre(0));
}

TEST(HeaderBlocksTest, ABlockOfSeveralFramesIsOneCall) {
  std::string rest = Headers(1, kEndHeaders, "o\x82");
  rest[3] = kContinuation;
  EXPECT_THAT(Begun(Headers(1, 0, std::string("\x82\x00\x01x\x03", 5) + "fo") + rest),
              ElementsAre(3));
}

TEST(HeaderBlocksTest, PriorityIsNoHeader) {
  EXPECT_THAT(Begun(Headers(1, kEndHeaders | kPriority, "\x82\x82\x82\x82\x82\x86") +
                    Headers(3, kEndHeaders, "\x82")),
              ElementsAre(1, 1));
  EXPECT_THAT(Begun(Headers(1, kEndHeaders | kPriority, "\x82\x82")), ElementsAre(0));
}

// gRPC takes it for headers.
TEST(HeaderBlocksTest, PaddingCounts) {
  EXPECT_THAT(Begun(Headers(1, kEndHeaders | kPadded, "\xbe\x82\x82")), ElementsAre(3));
}

TEST(HeaderBlocksTest, TrailersCountLikeACall) {
  EXPECT_THAT(Begun(Headers(3, kEndHeaders, "\x82") + Headers(3, kEndHeaders, "\x82\x82")),
              ElementsAre(1, 2));
}

// gRPC passes over both, and goes on with the numbers of the client's own.
TEST(HeaderBlocksTest, StreamsOfAServerAndItsPromisesCountNothing) {
  std::string promise = Headers(1, 0, std::string("\x10\x00\x7f\xff\xff\xff\x07", 7));
  promise[3] = 5;
  EXPECT_THAT(
      Begun(Headers(126, kEndHeaders, "\x82") + promise + Headers(1, kEndHeaders, "\x82\x82")),
      ElementsAre(2));
}

TEST(HeaderBlocksTest, ABlockOfTooManyFieldsIsTooLong) {
  const auto block = [](std::size_t fields) {
    std::string all = Headers(1, 0, "");
    for (std::size_t left = fields; left > 0; left -= std::min<std::size_t>(left, 100)) {
      std::string frame = Headers(1, left <= 100 ? kEndHeaders : 0,
                                  std::string(std::min<std::size_t>(left, 100), '\xbe'));
      frame[3] = kContinuation;
      all += frame;
    }
    return all;
  };
  EXPECT_TRUE(Passes(block(HeaderBlocks::kMostFields)));
  EXPECT_FALSE(Passes(block(HeaderBlocks::kMostFields + 1)));
}

TEST(HeaderBlocksTest, ACallTooManyFailsAndSoDoesAllBehindIt) {
  int left = 2;
  HeaderBlocks blocks = Blocks([&](std::size_t) { return left-- > 0; });
  EXPECT_TRUE(Feed(blocks, absl::StrCat(kPreface, Headers(1, kEndHeaders, "\x82"),
                                        Headers(3, kEndHeaders, "\x82"))));
  EXPECT_FALSE(Feed(blocks, Headers(5, kEndHeaders, "\x82")));
  EXPECT_FALSE(Feed(blocks, "x"));
  EXPECT_FALSE(blocks.too_long());
}

// ---- Descriptors. ----

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

// As gRPC makes one of each connection that it is given.
class Tls {
 public:
  void New() const { SSL_free(SSL_new(context_.get())); }

 private:
  struct Free {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  };
  const std::unique_ptr<SSL_CTX, Free> context_{SSL_CTX_new(TLS_server_method())};
};

// What is encrypted looks like anything, at times like headers without end.
TEST(WatchedReadsTest, OfAConnectionWithTlsTheBytesMeanNothing) {
  const Pair pair = Connected();
  ASSERT_TRUE(WatchReads(pair.near.get()).ok());  // The connection that had the descriptor before.
  const Tls tls;
  ASSERT_TRUE(WatchEncryptedReads(pair.near.get(), [&] { tls.New(); }).ok());
  Send(pair, absl::StrCat(kPreface, Times(5, Frame(kHeaders, 0, 16000))));
  Send(pair, Times(5, Frame(kHeaders, 0, 16000)));
  ssize_t all = 0;
  for (ssize_t size; all < 10 * (16000 + 9) && (size = Read(pair.near.get())) > 0;) all += size;
  EXPECT_GE(all, 10 * (16000 + 9));
}

TEST(WatchedReadsTest, AConnectionThatNothingIsSeenToDecryptIsCutOff) {
  const Pair pair = Connected();
  ASSERT_TRUE(WatchEncryptedReads(pair.near.get(), [] {}).ok());
  Send(pair, std::string(kPreface));
  EXPECT_EQ(Read(pair.near.get()), -1);
}

TEST(WatchedReadsTest, ADescriptorThatThereIsNoRoomForIsRefused) {
  EXPECT_EQ(WatchReads(1 << 16).code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace gridclock
