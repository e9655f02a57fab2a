#include "server/fleet/answer_reader.h"

#include <thread>

#include <poll.h>

#include "tests/unit/fleet/spoken_worker.h"

namespace gridclock {
namespace {

class AnswerReaderTest : public SpokenWorkerTest {
 protected:
  AnswerReaderTest() {
    const std::vector<worker::v1::ToServer> frames =
        *EncodeHello(HelloOf("cpu", {Spec("spin; ns: i64 = 1")}));
    for (const worker::v1::ToServer& frame : frames) Say(frame);
    reader_->Read(/*to_the_end=*/true);
  }

  void Say(const std::string& bytes) {
    EXPECT_THAT(worker_end_->Send(std::as_bytes(std::span(bytes.data(), bytes.size())), Wait::kYes),
                IsOk());
  }
  void Say(const worker::v1::ToServer& frame) { Say(frame.SerializeAsString()); }
  bool Readable(int timeout_ms = 0) const {
    pollfd watched = {.fd = reader_->fd(), .events = POLLIN, .revents = 0};
    return poll(&watched, 1, timeout_ms) == 1;
  }
  // Awaits while time goes on by itself.
  void AwaitInTime(JobId id) {
    std::atomic<bool> back{false};
    std::thread time([&] {
      while (!back) clock_.Advance(absl::Microseconds(1));
    });
    reader_->Await(id);
    back = true;
    time.join();
  }

  std::shared_ptr<AnswerReader> reader_ =
      *AnswerReader::Create(Context(), "cpu", worker_, kGeneration, kCanaryMemory);
};

TEST_F(AnswerReaderTest, WhoAwaitsAnAnswerTakesItItself) {
  const JobId id = Send();
  worker_->SetReader(reader_);  // Behind Send(): the scheduler would await the answer there.
  std::thread worker([&] { Say(DoneOf(id)); });
  worker_->Await(id);  // Of a clock that stands still: it ends with the answer alone.
  worker.join();
  EXPECT_TRUE(listener_->end().has_value());
  EXPECT_EQ(reader_->progress().answers, 1U);
  EXPECT_FALSE(Readable());
}

TEST_F(AnswerReaderTest, ImpatienceLeavesTheAnswerToTheRunner) {
  const JobId id = Send();
  AwaitInTime(id);
  EXPECT_FALSE(listener_->end().has_value());
  EXPECT_FALSE(Readable());
  Say(DoneOf(id));
  ASSERT_TRUE(Readable(/*timeout_ms=*/60'000));
  reader_->Read(/*to_the_end=*/false);
  EXPECT_TRUE(listener_->end().has_value());
}

TEST_F(AnswerReaderTest, AnAnswerThatWasThereBeforeIsStillTaken) {
  const JobId id = Send();
  Say(DoneOf(id));
  EXPECT_TRUE(Readable());
  reader_->Await(id);
  EXPECT_TRUE(listener_->end().has_value());
  EXPECT_FALSE(Readable());
}

TEST_F(AnswerReaderTest, TheEndOfTheLinkEndsTheWait) {
  const JobId id = Send();
  worker_end_.reset();
  reader_->Await(id);
  EXPECT_LT(reader_->progress().ended, absl::InfiniteFuture());
  EXPECT_TRUE(Readable());
}

TEST_F(AnswerReaderTest, ABrokenProtocolKillsTheWorkerAndEndsTheLink) {
  const JobId id = Send();
  Say("no message");
  reader_->Await(id);
  EXPECT_EQ(worker_->kill_reason(), "protocol");
  EXPECT_LT(reader_->progress().ended, absl::InfiniteFuture());
  EXPECT_FALSE(listener_->end().has_value());
}

TEST_F(AnswerReaderTest, NothingIsHeardOnceItIsClosed) {
  const JobId id = Send();
  reader_->Close();
  Say(DoneOf(id));
  reader_->Read(/*to_the_end=*/true);
  reader_->Await(id);
  EXPECT_FALSE(listener_->end().has_value());
}

TEST_F(AnswerReaderTest, TwoMayAwaitAtTheSameTime) {
  const JobId first = Send();
  const auto first_listener = listener_;
  const JobId second = Send();
  std::thread other([&] { AwaitInTime(second); });
  Say(DoneOf(first));
  Say(DoneOf(second));
  reader_->Await(first);
  other.join();
  reader_->Read(/*to_the_end=*/true);
  EXPECT_TRUE(first_listener->end().has_value());
  EXPECT_TRUE(listener_->end().has_value());
}

}  // namespace
}  // namespace gridclock
