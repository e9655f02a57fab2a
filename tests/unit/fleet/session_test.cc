// What one worker says, frame by frame, to a scheduler that has sent it orders.
#include "server/fleet/session.h"

#include <cerrno>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

#include "proto/codec/vitals.h"
#include "proto/types/status_page.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/fleet/spoken_worker.h"

namespace gridclock {
namespace {

using ::testing::HasSubstr;
using Code = absl::StatusCode;

class SessionTest : public SpokenWorkerTest {
 protected:
  absl::Status Hear(const std::string& bytes, bool truncated = false) {
    absl::Status holds =
        session_.OnFrame(std::as_bytes(std::span(bytes.data(), bytes.size())), truncated);
    holds.Update(session_.Deliver());
    return holds;
  }
  absl::Status Hear(const worker::v1::ToServer& frame) { return Hear(frame.SerializeAsString()); }
  absl::Status Hear(const WorkerHello& hello) {
    const std::vector<worker::v1::ToServer> frames = *EncodeHello(hello);
    for (const worker::v1::ToServer& frame : frames) {
      if (absl::Status status = Hear(frame); !status.ok()) return status;
    }
    return absl::OkStatus();
  }
  // A worker without the kernel of the canary is ready at once.
  void BecomeReady() {
    ASSERT_THAT(Hear(HelloOf("cpu", {Spec("spin; ns: i64 = 1")})), IsOk());
    ASSERT_TRUE(session_.ready());
  }

  Session session_{Context(), "cpu", worker_, kGeneration, kCanaryMemory};
};

worker::v1::ToServer FailedOf(JobId id) {
  worker::v1::ToServer frame;
  frame.mutable_failed()->set_id(id);
  frame.mutable_failed()->set_generation(kGeneration);
  frame.mutable_failed()->set_code(static_cast<int>(Code::kResourceExhausted));
  frame.mutable_failed()->set_message("out of memory");
  return frame;
}

// ---- Before the worker is ready. ----

TEST_F(SessionTest, AFrameBeforeTheHelloBreaksTheProtocol) {
  EXPECT_THAT(Hear(DoneOf(1)), StatusIs(Code::kInvalidArgument, HasSubstr("want a hello first")));
}

TEST_F(SessionTest, AHeartMayBeatBeforeTheHello) {
  worker::v1::ToServer heartbeat;
  heartbeat.mutable_heartbeat();
  EXPECT_THAT(Hear(heartbeat), IsOk());
  EXPECT_FALSE(session_.ready());
}

TEST_F(SessionTest, AHeartbeatTellsTheDevicesVitals) {
  BecomeReady();
  DeviceVitals vitals;
  vitals.state.temperature_celsius = 41;
  vitals.state.clock_reasons = {"sw_power_cap"};
  vitals.state.memory_used_bytes = 500;
  vitals.exclusive = false;
  worker::v1::ToServer heartbeat;
  Encode(vitals, heartbeat.mutable_heartbeat()->mutable_vitals());
  EXPECT_THAT(Hear(heartbeat), IsOk());
  ASSERT_TRUE(table_.Devices()[0].vitals.has_value());
  EXPECT_EQ(table_.Devices()[0].vitals->vitals, vitals);
  // One that tells nothing takes nothing back: the device works now.
  heartbeat.mutable_heartbeat()->clear_vitals();
  EXPECT_THAT(Hear(heartbeat), IsOk());
  EXPECT_EQ(table_.Devices()[0].vitals->vitals, vitals);
}

TEST_F(SessionTest, VitalsThatAreNoNumbersBreakTheProtocol) {
  BecomeReady();
  for (const double wrong :
       {-1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    worker::v1::ToServer heartbeat;
    heartbeat.mutable_heartbeat()->mutable_vitals()->mutable_state()->set_power_watts(wrong);
    EXPECT_THAT(Hear(heartbeat), StatusIs(Code::kInvalidArgument, HasSubstr("numbers"))) << wrong;
  }
  EXPECT_FALSE(table_.Devices()[0].vitals.has_value());
}

TEST_F(SessionTest, TheHelloOfAnotherDeviceIsRefused) {
  EXPECT_THAT(Hear(HelloOf("cuda:0", {Spec("spin; ns: i64 = 1")})),
              StatusIs(Code::kInvalidArgument, HasSubstr("want the hello of device 'cpu'")));
  EXPECT_FALSE(session_.ready());
  EXPECT_FALSE(table_.CheckLearned().ok());
}

TEST_F(SessionTest, TheHelloOfAnotherRoleIsRefused) {
  WorkerHello hello = HelloOf("cpu", {Spec("spin; ns: i64 = 1")});
  hello.role = WorkerRole::kGuest;
  EXPECT_THAT(Hear(hello), StatusIs(Code::kInvalidArgument, HasSubstr("device 'cpu'")));
  EXPECT_FALSE(table_.CheckLearned().ok());
}

TEST_F(SessionTest, TheHelloOfAnotherProtocolIsRefused) {
  WorkerHello hello = HelloOf("cpu", {Spec("spin; ns: i64 = 1")});
  hello.protocol = kWorkerProtocol + 1;
  EXPECT_THAT(Hear(hello), StatusIs(Code::kInvalidArgument, HasSubstr("protocol")));
  EXPECT_FALSE(table_.CheckLearned().ok());
}

TEST_F(SessionTest, ATruncatedFrameIsRefusedWhateverItHolds) {
  worker::v1::ToServer heartbeat;
  heartbeat.mutable_heartbeat();
  EXPECT_THAT(Hear(heartbeat.SerializeAsString(), /*truncated=*/true),
              StatusIs(Code::kInvalidArgument, HasSubstr("frames of at most 65536 bytes")));
}

TEST_F(SessionTest, BytesThatAreNoMessageAreRefused) {
  EXPECT_THAT(Hear("\xff\xff\xff"),
              StatusIs(Code::kInvalidArgument, HasSubstr("got 3 bytes that are none")));
}

TEST_F(SessionTest, AFrameWithoutAMessageIsRefused) {
  BecomeReady();
  EXPECT_THAT(Hear(""), StatusIs(Code::kInvalidArgument, HasSubstr("want a message")));
}

TEST_F(SessionTest, ASecondHelloIsRefused) {
  BecomeReady();
  EXPECT_THAT(Hear(HelloOf("cpu", {Spec("spin; ns: i64 = 1")})),
              StatusIs(Code::kInvalidArgument, HasSubstr("after the hello had ended")));
}

// ---- The canary. ----

class SessionWithCanary : public SessionTest {
 protected:
  void SetUp() override {
    ASSERT_THAT(Hear(HelloOf("cpu", {Spec("square x: f32[*] -> y: f32[*]")})), IsOk());
    EXPECT_FALSE(session_.ready());
    const auto order = NextOrder();
    ASSERT_TRUE(order.has_value());
    canary_ = *order;
    EXPECT_EQ(canary_.kernel(), "square");
  }
  void Write(const std::vector<float>& y) {
    const auto& memory = canary_.outputs(0).memory();
    std::memcpy(arena_.At({.offset = memory.offset(), .size = memory.size()}).data(), y.data(),
                y.size() * sizeof(float));
  }
  worker::v1::ToServer Done() const {
    worker::v1::ToServer frame = DoneOf(canary_.id());
    frame.mutable_done()->add_checksums(0);
    return frame;
  }

  worker::v1::Order canary_;
};

TEST_F(SessionWithCanary, RightNumbersMakeTheWorkerReady) {
  Write({1, 4, 9, 0.25});
  EXPECT_THAT(Hear(Done()), IsOk());
  EXPECT_TRUE(session_.ready());
  EXPECT_EQ(table_.Devices()[0].state, WorkerState::kReady);
}

TEST_F(SessionWithCanary, TakesNothingOfTheClientsMemory) {
  EXPECT_EQ(allocator_.used(), 0u);
  for (const auto& operand : {canary_.inputs(0), canary_.outputs(0)}) {
    EXPECT_GE(operand.memory().offset(), kCanaryMemory.offset);
    EXPECT_LE(operand.memory().offset() + operand.memory().size(),
              kCanaryMemory.offset + kCanaryMemory.size);
  }
}

TEST_F(SessionWithCanary, WrongNumbersDoNot) {
  Write({1, 4, 9, 0.5});
  EXPECT_THAT(Hear(Done()), StatusIs(Code::kInternal, HasSubstr("wrong numbers")));
  EXPECT_FALSE(session_.ready());
}

TEST_F(SessionWithCanary, AnOutputThatWasNeverWrittenDoesNot) {
  EXPECT_THAT(Hear(Done()), StatusIs(Code::kInternal, HasSubstr("wrong numbers")));
  EXPECT_FALSE(session_.ready());
}

TEST_F(SessionWithCanary, AFailureDoesNot) {
  EXPECT_THAT(Hear(FailedOf(canary_.id())), StatusIs(Code::kInternal, HasSubstr("out of memory")));
  EXPECT_FALSE(session_.ready());
}

// ---- Answers. ----

TEST_F(SessionTest, AnAnswerEndsItsJob) {
  BecomeReady();
  EXPECT_THAT(Hear(DoneOf(Send())), IsOk());
  EXPECT_THAT(listener_->status(), IsOk());
  EXPECT_EQ(session_.answers(), 1u);
  EXPECT_FALSE(session_.spoiled());
}

TEST_F(SessionTest, AFailureEndsItsJobAndMaySpoilTheWorker) {
  BecomeReady();
  worker::v1::ToServer failed = FailedOf(Send());
  failed.mutable_failed()->set_sticky(true);
  EXPECT_THAT(Hear(failed), IsOk());
  EXPECT_THAT(listener_->status(), StatusIs(Code::kResourceExhausted, HasSubstr("out of memory")));
  EXPECT_TRUE(session_.spoiled());
}

TEST_F(SessionTest, AStrangersIdIsForgivenOnce) {
  BecomeReady();
  EXPECT_THAT(Hear(DoneOf(77)), IsOk());
  EXPECT_EQ(session_.culprit(), 0u);
  EXPECT_THAT(Hear(FailedOf(78)),
              StatusIs(Code::kInvalidArgument, HasSubstr("got 78, the second that is none")));
  EXPECT_EQ(session_.culprit(), 78u);
  EXPECT_EQ(session_.answers(), 0u);
}

TEST_F(SessionTest, AnAnswerOfAnotherGenerationIsAStrangers) {
  BecomeReady();
  const JobId id = Send();
  EXPECT_THAT(Hear(DoneOf(id, kGeneration - 1)), IsOk());
  EXPECT_EQ(listener_->ends(), 0);
  EXPECT_THAT(Hear(DoneOf(id, kGeneration - 1)), StatusIs(Code::kInvalidArgument, HasSubstr("id")));
}

TEST_F(SessionTest, AnAnswerToAnotherDevicesOrderIsAStrangersWhateverTheGeneration) {
  BecomeReady();
  const auto other = std::make_shared<FakeWorker>();
  scheduler_.OnWorkerReady("cuda:0", other, kGeneration);
  Job job;
  job.kernel = "spin";
  job.variant = "plain";
  job.device = "cuda:0";
  job.deadline = absl::InfiniteFuture();
  listener_ = std::make_shared<FakeListener>();
  ASSERT_OK_AND_ASSIGN(const JobId id, scheduler_.Submit(std::move(job), listener_, false));
  scheduler_.Start(id);
  ASSERT_EQ(other->orders(), std::vector<JobId>{id});

  EXPECT_THAT(Hear(DoneOf(id)), IsOk());
  EXPECT_THAT(Hear(FailedOf(id)), StatusIs(Code::kInvalidArgument, HasSubstr("second")));
  EXPECT_EQ(listener_->ends(), 0);
}

TEST_F(SessionTest, AnAnswerGivenTwiceEndsItsJobOnceAndIsAStrangersThen) {
  BecomeReady();
  const JobId id = Send();
  EXPECT_THAT(Hear(DoneOf(id)), IsOk());
  EXPECT_THAT(Hear(DoneOf(id)), IsOk());
  EXPECT_EQ(listener_->ends(), 1);
  EXPECT_THAT(Hear(DoneOf(id)), StatusIs(Code::kInvalidArgument, HasSubstr("second")));
}

TEST_F(SessionTest, AnAnswerThatDoesNotFitItsOrderIsOurBugAndEndsTheWorker) {
  BecomeReady();
  const JobId id = Send();
  worker::v1::ToServer done = DoneOf(id);
  done.mutable_done()->add_checksums(1);
  EXPECT_THAT(Hear(done),
              StatusIs(Code::kInvalidArgument, HasSubstr("1 outputs reported, 0 ordered")));
  EXPECT_THAT(listener_->status(), StatusIs(Code::kInternal, HasSubstr("does not fit its order")));
  EXPECT_EQ(session_.culprit(), id);
}

TEST_F(SessionTest, SamplesThatDoNotFollowOneAnotherEndTheWorker) {
  BecomeReady();
  const JobId id = Send();
  worker::v1::ToServer frame;
  frame.mutable_samples()->set_id(id);
  frame.mutable_samples()->set_first(5);
  frame.mutable_samples()->add_samples_ns(10);
  EXPECT_THAT(Hear(frame), testing::Not(IsOk()));
  EXPECT_THAT(listener_->status(), StatusIs(Code::kInternal, HasSubstr("does not fit its order")));
  EXPECT_EQ(session_.culprit(), id);
}

// Whoever reads a file that was emptied dies.
TEST(StatusMemoryTest, ItsHoldersCannotEmptyIt) {
  ASSERT_OK_AND_ASSIGN(const StatusMemory status, StatusMemory::Create());
  EXPECT_EQ(ftruncate(status.fd(), 0), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(status.running().id, 0U);
}

}  // namespace
}  // namespace gridclock
