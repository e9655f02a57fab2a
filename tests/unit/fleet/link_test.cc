#include "server/fleet/link.h"

#include <memory>
#include <string>
#include <vector>

#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using Read = PacketSocket::Read;

class LinkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(auto ends, PacketSocket::Pair());
    link_ = std::make_unique<PacketLink>(std::move(ends.first));
    worker_ = std::make_unique<PacketSocket>(std::move(ends.second));
  }
  // Takes what is there now.
  std::vector<std::string> Take() {
    std::vector<std::string> taken;
    PacketBatch batch(8, 64 * 1024);
    while (*worker_->ReceiveBatch(batch, Wait::kNo) == Read::kPackets) {
      for (std::size_t i = 0; i < batch.size(); ++i) {
        taken.emplace_back(reinterpret_cast<const char*>(batch[i].data()), batch[i].size());
      }
    }
    return taken;
  }

  std::unique_ptr<PacketLink> link_;
  std::unique_ptr<PacketSocket> worker_;
};

TEST_F(LinkTest, SendsFramesInOrder) {
  const std::vector<std::string> frames = {"one", "two", "three"};
  EXPECT_TRUE(link_->Send(frames));
  EXPECT_FALSE(link_->pending());
  EXPECT_EQ(Take(), frames);
}

TEST_F(LinkTest, KeepsWhatDoesNotFitAndSendsItLater) {
  std::vector<std::string> frames;
  for (int i = 0; i < 100; ++i) frames.emplace_back(60'000, static_cast<char>('A' + i % 26));
  EXPECT_TRUE(link_->Send(frames));
  EXPECT_TRUE(link_->pending());
  std::vector<std::string> got = Take();
  EXPECT_LT(got.size(), frames.size());
  while (link_->pending()) {
    ASSERT_TRUE(link_->Flush());
    for (std::string& frame : Take()) got.push_back(std::move(frame));
  }
  EXPECT_EQ(got, frames);
}

TEST_F(LinkTest, AReaderThatNeverReadsIsLost) {
  const std::vector<std::string> frames(PacketLink::kMostPending, std::string(60'000, 'x'));
  EXPECT_TRUE(link_->Send(frames));
  EXPECT_FALSE(link_->Send(frames));
}

TEST_F(LinkTest, SaysWhenTheOtherSideIsGone) {
  worker_.reset();
  const std::string frame = "x";
  EXPECT_FALSE(link_->Send({&frame, 1}));
}

}  // namespace
}  // namespace gridclock
