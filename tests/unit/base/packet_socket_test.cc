#include "base/packet_socket.h"

#include <string>
#include <vector>

#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::_;
using Read = PacketSocket::Read;

std::span<const std::byte> Bytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}
std::string Text(std::span<const std::byte> bytes) {
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

TEST(PacketSocket, KeepsBoundariesAndOrder) {
  ASSERT_OK_AND_ASSIGN(auto ends, PacketSocket::Pair());
  auto& [a, b] = ends;
  const std::string one = "one", two = "two and more";
  const std::vector<std::span<const std::byte>> packets = {Bytes(one), Bytes(two)};
  ASSERT_OK_AND_ASSIGN(const std::size_t sent, a.SendBatch(packets, Wait::kNo));
  EXPECT_EQ(sent, 2u);

  PacketBatch batch(8, 64);
  ASSERT_OK_AND_ASSIGN(const Read read, b.ReceiveBatch(batch, Wait::kYes));
  EXPECT_EQ(read, Read::kPackets);
  ASSERT_EQ(batch.size(), 2u);
  EXPECT_EQ(Text(batch[0]), "one");
  EXPECT_EQ(Text(batch[1]), "two and more");
  EXPECT_FALSE(batch.truncated(0));
}

TEST(PacketSocket, TellsNothingYetFromTheEnd) {
  ASSERT_OK_AND_ASSIGN(auto ends, PacketSocket::Pair());
  auto& [a, b] = ends;
  PacketBatch batch(8, 64);
  ASSERT_OK_AND_ASSIGN(const Read empty, b.ReceiveBatch(batch, Wait::kNo));
  EXPECT_EQ(empty, Read::kNothing);

  const std::string last = "last words";
  ASSERT_THAT(a.Send(Bytes(last), Wait::kNo), IsOk());
  std::move(a).Release().reset();
  ASSERT_OK_AND_ASSIGN(const Read words, b.ReceiveBatch(batch, Wait::kNo));
  EXPECT_EQ(words, Read::kPackets);
  EXPECT_EQ(batch.size(), 1u);
  ASSERT_OK_AND_ASSIGN(const Read end, b.ReceiveBatch(batch, Wait::kYes));
  EXPECT_EQ(end, Read::kEnd);
}

TEST(PacketSocket, LastWordsOfAPeerThatDiedWithUnreadPacketsAreHeard) {
  ASSERT_OK_AND_ASSIGN(auto ends, PacketSocket::Pair());
  auto& [a, b] = ends;
  ASSERT_THAT(b.Send(Bytes("never read"), Wait::kNo), IsOk());
  ASSERT_THAT(a.Send(Bytes("first"), Wait::kNo), IsOk());
  ASSERT_THAT(a.Send(Bytes("last"), Wait::kNo), IsOk());
  std::move(a).Release().reset();

  PacketBatch batch(8, 64);
  ASSERT_OK_AND_ASSIGN(const Read words, b.ReceiveBatch(batch, Wait::kNo));
  ASSERT_EQ(words, Read::kPackets);
  ASSERT_EQ(batch.size(), 2u);
  EXPECT_EQ(Text(batch[1]), "last");
  ASSERT_OK_AND_ASSIGN(const Read end, b.ReceiveBatch(batch, Wait::kNo));
  EXPECT_EQ(end, Read::kEnd);
}

TEST(PacketSocket, SendToADeadPeerIsUnavailableAndRaisesNoSignal) {
  ASSERT_OK_AND_ASSIGN(auto ends, PacketSocket::Pair());
  auto& [a, b] = ends;
  std::move(b).Release().reset();
  EXPECT_THAT(a.Send(Bytes("x"), Wait::kNo), StatusIs(absl::StatusCode::kUnavailable, _));
}

TEST(PacketSocket, StopsAtAFullBufferAndSaysHowFarItCame) {
  ASSERT_OK_AND_ASSIGN(auto ends, PacketSocket::Pair());
  auto& [a, b] = ends;
  const std::string packet(60'000, 'x');
  const std::vector<std::span<const std::byte>> packets(1000, Bytes(packet));
  ASSERT_OK_AND_ASSIGN(const std::size_t sent, a.SendBatch(packets, Wait::kNo));
  EXPECT_GE(sent, 2u);
  EXPECT_LT(sent, 1000u);

  PacketBatch batch(64, 64 * 1024);
  ASSERT_THAT(b.ReceiveBatch(batch, Wait::kNo), IsOk());
  EXPECT_EQ(batch.size(), std::min<std::size_t>(sent, 64));
  EXPECT_EQ(Text(batch[0]), packet);
}

TEST(PacketSocket, MarksAPacketThatIsTooLong) {
  ASSERT_OK_AND_ASSIGN(auto ends, PacketSocket::Pair());
  auto& [a, b] = ends;
  ASSERT_THAT(a.Send(Bytes("123456789"), Wait::kNo), IsOk());
  PacketBatch batch(2, 4);
  ASSERT_THAT(b.ReceiveBatch(batch, Wait::kNo), IsOk());
  ASSERT_EQ(batch.size(), 1u);
  EXPECT_TRUE(batch.truncated(0));
  EXPECT_EQ(Text(batch[0]), "1234");
}

TEST(PacketSocket, RefusesAnEmptyPacket) {
  ASSERT_OK_AND_ASSIGN(auto ends, PacketSocket::Pair());
  auto& [a, b] = ends;
  EXPECT_THAT(a.Send({}, Wait::kNo), StatusIs(absl::StatusCode::kInvalidArgument, _));
}

}  // namespace
}  // namespace gridclock
