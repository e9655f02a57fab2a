#include "base/frames.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "base/unique_fd.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

TEST(Frames, MessagesComeWholeHoweverTheirBytesCome) {
  std::string bytes;
  AppendFrame("one", &bytes);
  AppendFrame("", &bytes);
  AppendFrame(std::string(1000, 'x'), &bytes);
  FrameReader reader(1000);
  std::vector<std::string> got;
  for (const char c : bytes) {
    reader.Add(std::string(1, c));
    ASSERT_OK_AND_ASSIGN(const auto message, reader.Next());
    if (message) got.push_back(*message);
  }
  ASSERT_EQ(got.size(), 3u);
  EXPECT_EQ(got[0], "one");
  EXPECT_EQ(got[1], "");
  EXPECT_EQ(got[2], std::string(1000, 'x'));
}

TEST(Frames, SeveralThatCameTogetherAreHandedOutOneByOne) {
  std::string bytes;
  for (const char* text : {"a", "bb", "ccc"}) AppendFrame(text, &bytes);
  FrameReader reader(100);
  reader.Add(bytes);
  for (const char* text : {"a", "bb", "ccc"}) {
    ASSERT_OK_AND_ASSIGN(const auto message, reader.Next());
    EXPECT_EQ(message, text);
  }
  ASSERT_OK_AND_ASSIGN(const auto none, reader.Next());
  EXPECT_EQ(none, std::nullopt);
}

TEST(Frames, AMessageThatIsTooLongIsAnErrorAtOnce) {
  std::string bytes;
  AppendFrame(std::string(101, 'x'), &bytes);
  FrameReader reader(100);
  reader.Add(bytes.substr(0, 4));
  EXPECT_EQ(reader.Next().status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(Frames, OverASocketUntilItsEnd) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  UniqueFd sender(ends[0]);
  const UniqueFd receiver(ends[1]);
  FrameReader reader(100);
  EXPECT_EQ(ReadSome(receiver.get(), reader), StreamRead::kNothing);
  std::string bytes;
  AppendFrame("hello", &bytes);
  EXPECT_TRUE(SendSome(sender.get(), bytes));
  EXPECT_EQ(bytes, "");
  EXPECT_EQ(ReadSome(receiver.get(), reader), StreamRead::kBytes);
  ASSERT_OK_AND_ASSIGN(const auto message, reader.Next());
  EXPECT_EQ(message, "hello");
  sender.reset();
  EXPECT_EQ(ReadSome(receiver.get(), reader), StreamRead::kEnd);
}

}  // namespace
}  // namespace gridclock
