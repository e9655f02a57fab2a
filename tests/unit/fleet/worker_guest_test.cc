// What a guest gets of a job, and what is believed of its answers.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include <xxhash.h>

#include "server/fleet/session.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/fleet/spoken_worker.h"

namespace gridclock {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Code = absl::StatusCode;

constexpr std::uint64_t kLarge = Worker::kCopiedAtOnce + 4096;
constexpr std::uint64_t kGuestBytes = 4 * kLarge;

class GuestWorkerTest : public ::testing::Test {
 protected:
  GuestWorkerTest() {
    scheduler_.AddGuests("cpu", guests_);
    auto memory = *GuestMemory::Create(kGuestBytes, copiers_);
    memory_ = memory.get();
    auto ends = *PacketSocket::Pair();
    guest_end_.emplace(std::move(ends.second));
    worker_ = std::make_shared<Worker>(
        Worker::Parts{.role = WorkerRole::kGuest,
                      .process = AnyProcess(arena_),
                      .link = std::make_unique<PacketLink>(std::move(ends.first)),
                      .status = *StatusMemory::Create(),
                      .arena = arena_,
                      .on_unsendable = [this](JobId id, const absl::Status&) { unsendable_ = id; },
                      .wake = [this] { ++wakes_; },
                      .guest_memory = std::move(memory)});
  }
  FleetContext Context() {
    return {.table = table_,
            .scheduler = scheduler_,
            .clock = clock_,
            .observer = observer_,
            .arena = arena_,
            .allocator = allocator_,
            .strikes = &strikes_,
            .printed_bytes = 200};
  }
  std::optional<worker::v1::FromServer> Next() {
    PacketBatch batch(1, kFrameLimit);
    const auto read = guest_end_->ReceiveBatch(batch, Wait::kNo);
    if (!read.ok() || *read != PacketSocket::Read::kPackets) return std::nullopt;
    worker::v1::FromServer frame;
    EXPECT_TRUE(frame.ParseFromArray(batch[0].data(), static_cast<int>(batch[0].size())));
    return frame;
  }
  Job JobOf(std::uint64_t bytes) const {
    Job job;
    job.kernel = "mine";
    job.device = "cpu";
    job.principal = "ann";
    auto program = std::make_shared<JobProgram>();
    program->modules = {{.id = "m1", .kind = ModuleKind::kTestNative, .code = nullptr}};
    job.program = program;
    job.memory.size = 2 * bytes;
    const OperandValue value = {.is_list = false,
                                .tensors = {{DType::kU8, {static_cast<std::int64_t>(bytes)}}}};
    job.inputs.resize(1);
    job.inputs[0].value = value;
    job.inputs[0].memory = {.offset = 0, .size = bytes};
    job.outputs.resize(1);
    job.outputs[0].value = value;
    job.outputs[0].memory = {.offset = bytes, .size = bytes};
    job.arrived = clock_.Now();
    job.deadline = absl::InfiniteFuture();
    job.kernel_time_limit = absl::Seconds(30);
    return job;
  }
  Job WithId(JobId id, std::uint64_t bytes) const {
    Job job = JobOf(bytes);
    job.id = id;
    return job;
  }
  std::span<std::byte> Theirs(const worker::v1::Range& range) {
    return memory_->arena().At({.offset = range.offset(), .size = range.size()});
  }

  FakeClock clock_;
  FakeObserver observer_;
  FakeGuests guests_;
  ModuleStrikes strikes_;
  Arena arena_ = *Arena::Create(4 * kLarge, 0);
  ArenaAllocator allocator_{4 * kLarge, 4 * kLarge};
  KernelTable table_{{"cpu"}};
  Scheduler scheduler_{clock_, Limits(), allocator_, observer_};
  std::optional<PacketSocket> guest_end_;
  std::shared_ptr<Copiers> copiers_ = std::make_shared<Copiers>(1);
  GuestMemory* memory_ = nullptr;
  std::shared_ptr<Worker> worker_;
  JobId unsendable_ = 0;
  std::atomic<int> wakes_ = 0;
};

TEST_F(GuestWorkerTest, ASmallJobIsCopiedAndSentAtOnce) {
  const Job job = WithId(1, 4096);
  std::memset(arena_.At(job.inputs[0].memory).data(), 7, 4096);
  EXPECT_TRUE(worker_->Send(job, kGeneration));
  const auto frame = Next();
  ASSERT_TRUE(frame.has_value());
  EXPECT_TRUE(frame->order().has_program());
  EXPECT_THAT(Theirs(frame->order().inputs(0).memory()), Each(std::byte{7}));
  EXPECT_EQ(worker_->running().id, 0U);
}

// Its outputs are copied only when it is done.
TEST_F(GuestWorkerTest, OneWithALargeOutputIsSentAtOnceToo) {
  Job job = WithId(1, kLarge);
  job.inputs[0].memory.size = 64;
  EXPECT_TRUE(worker_->Send(job, kGeneration));
  EXPECT_EQ(Next()->order().id(), 1U);
}

TEST_F(GuestWorkerTest, ALargeOneWaitsForTheReadingThreadAndAllElseBehindIt) {
  EXPECT_TRUE(worker_->Send(WithId(1, kLarge), kGeneration));
  EXPECT_TRUE(worker_->Send(WithId(2, 64), kGeneration));
  worker_->Cancel(2);
  EXPECT_FALSE(Next().has_value());
  EXPECT_GT(wakes_, 0);
  worker_->FeedGuest();
  EXPECT_EQ(Next()->order().id(), 1U);
  EXPECT_EQ(Next()->order().id(), 2U);
  EXPECT_EQ(Next()->cancel().id(), 2U);
  worker_->Cancel(1);
  EXPECT_EQ(Next()->cancel().id(), 1U);
}

TEST_F(GuestWorkerTest, OneForWhichThereIsNoRoomWaitsUntilThereIs) {
  EXPECT_TRUE(worker_->Send(WithId(1, kLarge), kGeneration));
  EXPECT_TRUE(worker_->Send(WithId(2, kLarge + 4096), kGeneration));
  worker_->FeedGuest();
  EXPECT_EQ(Next()->order().id(), 1U);
  EXPECT_FALSE(Next().has_value());
  wakes_ = 0;
  worker_->Forget(1);
  EXPECT_EQ(wakes_, 1);
  worker_->FeedGuest();
  EXPECT_EQ(Next()->order().id(), 2U);
  EXPECT_EQ(unsendable_, 0U);
}

// Its order is longer than a frame, and lies beside its tensors.
Job WithLongOrder(Job job) {
  job.kernel.assign(kFrameLimit, 'k');
  return job;
}

TEST_F(GuestWorkerTest, OneForWhoseOrderThereIsNoRoomWaitsToo) {
  EXPECT_TRUE(worker_->Send(WithId(1, kGuestBytes / 4), kGeneration));
  EXPECT_TRUE(worker_->Send(WithLongOrder(WithId(2, kGuestBytes / 4)), kGeneration));
  worker_->FeedGuest();
  EXPECT_EQ(Next()->order().id(), 1U);
  EXPECT_FALSE(Next().has_value());
  EXPECT_FALSE(worker_->WasGiven(2));
  EXPECT_EQ(unsendable_, 0U);
  worker_->Forget(1);
  worker_->FeedGuest();
  EXPECT_TRUE(Next()->has_long_message());
  EXPECT_TRUE(worker_->WasGiven(2));
}

TEST_F(GuestWorkerTest, OneWhoseOrderNeverHasRoomIsRefused) {
  EXPECT_TRUE(worker_->Send(WithLongOrder(WithId(1, kGuestBytes / 2)), kGeneration));
  worker_->FeedGuest();
  EXPECT_FALSE(Next().has_value());
  EXPECT_EQ(unsendable_, 1U);
}

// ---- Inputs that arrive before the order. ----

TEST_F(GuestWorkerTest, WhatArrivesIsCopiedAndTheGuestHearsNothingOfIt) {
  const Job job = WithId(1, 8192);
  std::memset(arena_.At(job.inputs[0].memory).data(), 7, 8192);
  worker_->Arrived(job, kGeneration, {.input = 0, .bytes = 4096});
  EXPECT_FALSE(Next().has_value());
  EXPECT_FALSE(worker_->WasGiven(1));
  EXPECT_EQ(memory_->allocator().used(), 16384U);
  EXPECT_TRUE(worker_->Send(job, kGeneration));
  EXPECT_THAT(Theirs(Next()->order().inputs(0).memory()), Each(std::byte{7}));
  EXPECT_EQ(memory_->allocator().used(), 16384U);
}

TEST_F(GuestWorkerTest, AnUploadThatIsCancelledLeavesNothing) {
  const Job job = WithId(1, 8192);
  worker_->Arrived(job, kGeneration, {.input = 0, .bytes = 4096});
  worker_->Cancel(1);
  EXPECT_FALSE(Next().has_value());
  EXPECT_EQ(memory_->allocator().used(), 0U);
}

// Nothing of it may be left: another call's code came between, or the guest was never told.
TEST_F(GuestWorkerTest, OfAJobThatItWasNotGivenAGuestHearsNoCancellation) {
  worker_->Cancel(1);
  EXPECT_TRUE(worker_->Send(WithId(2, 8192), kGeneration));
  worker_->Cancel(1);
  worker_->Cancel(2);
  EXPECT_EQ(Next()->order().id(), 2U);
  EXPECT_EQ(Next()->cancel().id(), 2U);
  EXPECT_FALSE(Next().has_value());
}

// The reading thread is at the memory.
TEST_F(GuestWorkerTest, WhileAnOrderWaitsNothingIsCopied) {
  EXPECT_TRUE(worker_->Send(WithId(1, kLarge), kGeneration));
  worker_->Arrived(WithId(2, 8192), kGeneration, {.input = 0, .bytes = 4096});
  EXPECT_EQ(memory_->allocator().used(), 0U);
  worker_->FeedGuest();
  EXPECT_EQ(Next()->order().id(), 1U);
}

TEST_F(GuestWorkerTest, TheReadingThreadNeverMeetsTheSpeakingOneAtTheMemory) {
  std::jthread reading([this](const std::stop_token& stop) {
    while (!stop.stop_requested()) worker_->FeedGuest();
  });
  for (JobId id = 1; id <= 60; ++id) {
    const Job job = WithId(id, id % 3 == 0 ? kLarge : 8192);
    const std::span<std::byte> input = arena_.At(job.inputs[0].memory);
    std::memset(input.data(), static_cast<int>(id), input.size());
    for (const std::uint64_t bytes : {4096, 8192}) {
      worker_->Arrived(job, kGeneration, {.input = 0, .bytes = bytes});
    }
    if (id % 4 == 0) {
      worker_->Cancel(id);
      continue;
    }
    EXPECT_TRUE(worker_->Send(job, kGeneration));
    std::optional<worker::v1::FromServer> frame;
    while (!frame || !frame->has_order()) frame = Next();
    EXPECT_TRUE(std::ranges::equal(Theirs(frame->order().inputs(0).memory()), input)) << id;
    worker_->Forget(id);
  }
  reading = std::jthread();  // Ends it.
  worker_->FeedGuest();
  EXPECT_EQ(memory_->allocator().used(), 0U);
}

// Its cancellation waits behind an order, as what it takes back may be in use.
TEST_F(GuestWorkerTest, AnUploadIsTakenBackBehindAnOrderThatWaits) {
  worker_->Arrived(WithId(2, 8192), kGeneration, {.input = 0, .bytes = 4096});
  EXPECT_TRUE(worker_->Send(WithId(1, kLarge), kGeneration));
  worker_->Cancel(2);
  EXPECT_EQ(memory_->allocator().used(), 16384U);
  worker_->FeedGuest();
  worker_->Forget(1);
  EXPECT_EQ(memory_->allocator().used(), 0U);
}

// ---- What it answers. ----

class GuestSessionTest : public GuestWorkerTest {
 protected:
  void SetUp() override {
    scheduler_.OnWorkerReady("cpu", trusted_, 1);
    WorkerHello hello = HelloOf("cpu", {});
    hello.role = WorkerRole::kGuest;
    hello.test_natives = {"square"};
    hello.sandbox = "landlock 7, seccomp";
    const auto frames = *EncodeHello(hello);
    ASSERT_THAT(Hear(frames[0]), IsOk());
    ASSERT_TRUE(session_.ready());
  }
  absl::Status Hear(const worker::v1::ToServer& frame) {
    const std::string bytes = frame.SerializeAsString();
    absl::Status holds = session_.OnFrame(std::as_bytes(std::span(bytes.data(), bytes.size())),
                                          /*truncated=*/false);
    holds.Update(session_.Deliver());
    return holds;
  }
  JobId Submit(Job job) {
    const auto id = scheduler_.Submit(std::move(job), listener_, false);
    EXPECT_THAT(id, IsOk());
    scheduler_.Start(*id);
    return *id;
  }
  static worker::v1::ToServer FailedWith(JobId id, Code code, const std::string& reason,
                                         const std::string& message) {
    worker::v1::ToServer frame;
    frame.mutable_failed()->set_id(id);
    frame.mutable_failed()->set_generation(kGeneration);
    frame.mutable_failed()->set_code(static_cast<int>(code));
    frame.mutable_failed()->set_reason(reason);
    frame.mutable_failed()->set_message(message);
    return frame;
  }
  // A job of its own ends so.
  absl::Status EndOfOne(Code code, const std::string& reason) {
    listener_ = std::make_shared<FakeListener>();
    EXPECT_THAT(Hear(FailedWith(Submit(JobOf(64)), code, reason, "copy in: odd")), IsOk());
    return listener_->status();
  }
  // The same, and the guest with it.
  void Spoil(Code code, const std::string& reason, const std::string& message) {
    worker::v1::ToServer frame = FailedWith(Submit(JobOf(64)), code, reason, message);
    frame.mutable_failed()->set_sticky(true);
    EXPECT_THAT(Hear(frame), IsOk());
    listener_ = std::make_shared<FakeListener>();
  }
  static worker::v1::ToServer DoneOfOne(JobId id) {
    worker::v1::ToServer frame = DoneOf(id);
    frame.mutable_done()->clear_variant();
    frame.mutable_done()->add_checksums(0);
    return frame;
  }

  std::shared_ptr<FakeWorker> trusted_ = std::make_shared<FakeWorker>();
  std::shared_ptr<FakeListener> listener_ = std::make_shared<FakeListener>();
  Session session_{Context(), "cpu", worker_, kGeneration, {}};
};

TEST_F(GuestSessionTest, SaysWhatHoldsItWhatNativesItHasAndNothingElseIsBelieved) {
  EXPECT_EQ(table_.Devices()[0].sandbox, "landlock 7, seccomp");
  EXPECT_EQ(table_.Natives(), std::vector<std::string>{"square"});
  EXPECT_FALSE(table_.CheckLearned().ok());
}

TEST_F(GuestSessionTest, ItsOutputsAreInTheArenaBeforeItIsAnswered) {
  const JobId id = Submit(JobOf(4096));
  const auto frame = Next();
  ASSERT_TRUE(frame.has_value());
  std::memset(Theirs(frame->order().outputs(0).memory()).data(), 9, 4096);
  const auto active = scheduler_.Active(id);
  EXPECT_THAT(Hear(DoneOfOne(id)), IsOk());
  EXPECT_THAT(listener_->status(), IsOk());
  EXPECT_THAT(arena_.At(active->job().outputs[0].memory), Each(std::byte{9}));
}

TEST_F(GuestSessionTest, TheServerMakesChecksumsWhateverTheGuestSays) {
  Job job = JobOf(4096);
  job.outputs[0].sink = SinkKind::kChecksum;
  const JobId id = Submit(std::move(job));
  const auto frame = Next();
  ASSERT_TRUE(frame.has_value());
  EXPECT_FALSE(frame->order().outputs(0).checksum());  // It need not sum up for nobody.
  std::memset(Theirs(frame->order().outputs(0).memory()).data(), 9, 4096);
  worker::v1::ToServer done = DoneOfOne(id);
  done.mutable_done()->set_checksums(0, 12345);
  EXPECT_THAT(Hear(done), IsOk());
  ASSERT_THAT(listener_->status(), IsOk());
  const std::string left(4096, 9);
  EXPECT_EQ(listener_->end()->outcome->outputs.at(0).checksum,
            XXH3_64bits(left.data(), left.size()));
}

TEST_F(GuestSessionTest, WhatItPrintsIsCutToTheLimit) {
  worker::v1::ToServer done = DoneOfOne(Submit(JobOf(64)));
  done.mutable_done()->set_printed(std::string(300, 'x'));
  EXPECT_THAT(Hear(done), IsOk());
  const auto end = listener_->end();
  EXPECT_EQ(end->outcome->printed.size(), 200U);
  EXPECT_TRUE(end->outcome->printed_truncated);
  listener_ = std::make_shared<FakeListener>();
  worker::v1::ToServer failed = FailedWith(Submit(JobOf(64)), Code::kInternal, "", "");
  *failed.mutable_failed()->mutable_partial() = done.done();
  EXPECT_THAT(Hear(failed), IsOk());
  EXPECT_EQ(listener_->end()->outcome->printed.size(), 200U);
}

// By these codes an operator is called, and by these reasons one is not.
TEST_F(GuestSessionTest, WhatTheServiceAnswersForIsNotItsToSay) {
  for (const Code code : {Code::kUnknown, Code::kInternal, Code::kUnavailable, Code::kDataLoss}) {
    for (const char* reason : {"", "LAUNCH_SHAPE", "DRAINING", "WORKER_CRASHED"}) {
      const absl::Status end = EndOfOne(code, reason);
      EXPECT_THAT(end, AllOf(StatusIs(Code::kFailedPrecondition, HasSubstr("copy in: odd")),
                             ReasonIs("KERNEL_FAULT")))
          << absl::StatusCodeToString(code) << " " << reason;
      EXPECT_THAT(end.message(), HasSubstr(absl::StatusCodeToString(code)));
    }
  }
  EXPECT_THAT(EndOfOne(Code::kInternal, "DEVICE_FAULT"), ReasonIs("KERNEL_FAULT"));
}

TEST_F(GuestSessionTest, WhatTheDeviceDidAndWhatTheCodeDidIs) {
  for (const char* reason : {"DEVICE_FAULT", "DEVICE_UNAVAILABLE", "RECORD_LOST"}) {
    EXPECT_THAT(EndOfOne(Code::kUnavailable, reason),
                AllOf(StatusIs(Code::kUnavailable, "copy in: odd"), ReasonIs(reason)));
  }
  EXPECT_THAT(EndOfOne(Code::kInvalidArgument, "LAUNCH_SHAPE"),
              AllOf(StatusIs(Code::kInvalidArgument, "copy in: odd"), ReasonIs("LAUNCH_SHAPE")));
  EXPECT_THAT(EndOfOne(Code::kCancelled, ""), StatusIs(Code::kCancelled, "copy in: odd"));
}

TEST_F(GuestSessionTest, AFaultThatSpoilsTheDevicesContextCountsAgainstTheModule) {
  for (int i = 0; i < ModuleStrikes::kMost; ++i) {
    EXPECT_THAT(strikes_.Check("m1"), IsOk());
    Spoil(Code::kFailedPrecondition, "KERNEL_FAULT", "illegal address");
  }
  EXPECT_THAT(strikes_.Check("m1"),
              StatusIs(Code::kFailedPrecondition, HasSubstr("illegal address")));
}

TEST_F(GuestSessionTest, AFaultOfTheDeviceItselfDoesNot) {
  for (int i = 0; i < ModuleStrikes::kMost; ++i) {
    Spoil(Code::kUnavailable, "DEVICE_FAULT", "uncorrectable ECC error");
  }
  EXPECT_THAT(strikes_.Check("m1"), IsOk());
}

TEST_F(GuestSessionTest, WhoseCodeSpoiledItWaitsBehindOthers) {
  const auto submit = [this](const char* principal) {
    Job job = JobOf(64);
    job.principal = principal;
    return Submit(std::move(job));
  };
  const auto next = [this](std::uint64_t generation, const WorkerLoss& loss) {
    scheduler_.OnWorkerLost(GuestLane("cpu"), generation, loss);
    auto guest = std::make_shared<FakeWorker>(WorkerRole::kGuest);
    scheduler_.OnWorkerReady(GuestLane("cpu"), guest, generation + 1);
    return guest;
  };
  Spoil(Code::kFailedPrecondition, "KERNEL_FAULT", "illegal address");
  const auto second =
      next(kGeneration, {.reason = "exit", .running = 1, .detail = "", .spoiled = true});
  const JobId first = submit("bob");
  EXPECT_THAT(second->orders(), ElementsAre(first));
  clock_.Advance(Scheduler::kStay);
  submit("ann");
  const JobId other = submit("bob");
  EXPECT_TRUE(scheduler_.OnDone(first, kGeneration + 1,
                                {.status = absl::OkStatus(), .outcome = std::nullopt}));
  const auto third = next(kGeneration + 1, {.reason = "retired", .detail = "", .planned = true});
  EXPECT_THAT(third->orders(), ElementsAre(other));  // Though it were ann's turn.
}

TEST_F(GuestSessionTest, AnAnswerToAnOrderThatItWasNotGivenYetBreaksTheProtocol) {
  const JobId id = Submit(JobOf(kLarge));
  EXPECT_THAT(Hear(DoneOfOne(id)), StatusIs(Code::kNotFound, HasSubstr("not given")));
  EXPECT_EQ(session_.culprit(), id);
  // The loss of the guest says how it ends.
  EXPECT_EQ(listener_->ends(), 0);
}

TEST_F(GuestSessionTest, NeitherCanItEndOneThatStillWaitsToBeCopied) {
  const JobId id = Submit(JobOf(kLarge));
  worker::v1::ToServer frame;
  frame.mutable_failed()->set_id(id);
  frame.mutable_failed()->set_generation(kGeneration);
  frame.mutable_failed()->set_code(static_cast<int>(Code::kInternal));
  EXPECT_THAT(Hear(frame), StatusIs(Code::kNotFound, HasSubstr("not given")));
  EXPECT_EQ(listener_->ends(), 0);
  EXPECT_NE(scheduler_.Active(id), nullptr);
}

TEST_F(GuestSessionTest, AModuleThatIsRunNoMoreTakesItsWaitingJobsWithIt) {
  Job square = JobOf(4096);
  square.program = nullptr;
  Submit(std::move(square));  // The guest's lane waits for it.
  listener_ = std::make_shared<FakeListener>();
  Submit(JobOf(64));
  for (int i = 0; i < ModuleStrikes::kMost; ++i) {
    EXPECT_EQ(listener_->ends(), 0);
    Strike(Context(), *JobOf(64).program, "signal 11");
  }
  EXPECT_THAT(listener_->status(), StatusIs(Code::kFailedPrecondition, HasSubstr("signal 11")));
}

class CheckedSessionTest : public GuestSessionTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(GuestSessionTest::SetUp());
    Job job = JobOf(4096);
    auto program = std::make_shared<JobProgram>(*job.program);
    program->program.words = *ParseKernelSpec("mine x: u8[N] -> y: u8[N]");
    job.program = program;
    job.memory.size = std::uint64_t{16} * 4096;
    job.check = JobCheck{.kernel = "square",
                         .most_launches = 2,
                         .secrets = {1, 2, 3},
                         .launches = {.offset = 8192, .size = 8192},
                         .launch_bytes = 4096};
    id_ = Submit(std::move(job));
  }
  worker::v1::ToServer Step(worker::v1::CheckStep::Step what) const {
    worker::v1::ToServer frame;
    frame.mutable_check_step()->set_id(id_);
    frame.mutable_check_step()->set_generation(kGeneration);
    frame.mutable_check_step()->set_step(what);
    return frame;
  }

  JobId id_ = 0;
};

TEST_F(CheckedSessionTest, AStepThatNobodyKnowsBreaksTheProtocol) {
  for (const int what : {0, 4, -1}) {
    EXPECT_THAT(Hear(Step(static_cast<worker::v1::CheckStep::Step>(what))),
                StatusIs(Code::kInvalidArgument, HasSubstr(absl::StrCat("got ", what))));
  }
  EXPECT_EQ(session_.culprit(), id_);
}

// Each step may take its device's thread seconds: an honest guest waits for the one before.
TEST_F(CheckedSessionTest, StepsAreMadeOneAtATimeAndNoneForAGuestThatIsEnded) {
  EXPECT_THAT(Hear(Step(worker::v1::CheckStep::VALUES)), IsOk());
  EXPECT_TRUE(session_.took_step());
  const std::string take = Step(worker::v1::CheckStep::TAKE).SerializeAsString();
  const auto bytes = std::as_bytes(std::span(take.data(), take.size()));
  EXPECT_THAT(session_.OnFrame(bytes, /*truncated=*/false), IsOk());
  EXPECT_THAT(session_.OnFrame(bytes, /*truncated=*/false),
              StatusIs(Code::kInvalidArgument, HasSubstr("one step of a check at a time")));
  guest_end_.reset();
  worker_->Cancel(id_);
  ASSERT_TRUE(worker_->deaf());
  // Out of turn: it would break the protocol if anybody looked.
  EXPECT_THAT(Hear(Step(worker::v1::CheckStep::TAKE)), IsOk());
}

TEST_F(GuestSessionTest, AnAnswerToAJobOfTheCatalogueBreaksTheProtocolTheSecondTime) {
  Job job = JobOf(4096);
  job.program = nullptr;
  const JobId id = Submit(std::move(job));
  EXPECT_EQ(trusted_->orders().size(), 1U);
  EXPECT_THAT(Hear(DoneOfOne(id)), IsOk());
  EXPECT_THAT(Hear(DoneOfOne(id)), StatusIs(Code::kInvalidArgument, HasSubstr("that it holds")));
  EXPECT_EQ(listener_->ends(), 0);
}

// One launch, that took so long.
void TimeIt(double ns, worker::v1::Done& done) {
  v1::Timing& timing = *done.mutable_timing();
  timing.set_method(v1::ISOLATED);
  timing.set_l2(v1::HOT);
  timing.set_stop(v1::Timing::SINGLE_LAUNCH);
  timing.add_samples_ns(ns);
}

TEST_F(GuestSessionTest, ALaunchThatTookLongerThanItsCallBreaksTheProtocol) {
  const JobId good = Submit(JobOf(64)), bad = Submit(JobOf(64));
  clock_.Advance(absl::Seconds(1));
  worker::v1::ToServer frame = DoneOfOne(good);
  TimeIt(1e9, *frame.mutable_done());
  EXPECT_THAT(Hear(frame), IsOk());
  frame = DoneOfOne(bad);
  TimeIt(1e300, *frame.mutable_done());
  EXPECT_THAT(Hear(frame), StatusIs(Code::kInvalidArgument, HasSubstr("its samples are 1e+300")));
}

TEST_F(GuestSessionTest, SoDoesOneBeforeAFailure) {
  const JobId id = Submit(JobOf(64));
  clock_.Advance(absl::Seconds(1));
  worker::v1::ToServer frame = FailedWith(id, Code::kCancelled, "", "");
  frame.mutable_failed()->mutable_partial()->add_checksums(0);
  TimeIt(3e9, *frame.mutable_failed()->mutable_partial());
  EXPECT_THAT(Hear(frame), StatusIs(Code::kInvalidArgument, HasSubstr("its samples are 3e+09")));
}

// A worker has one for each 20 ms of warming up.
TEST_F(GuestSessionTest, MoreWarmUpsThanThereWasTimeForBreakTheProtocol) {
  Job job = JobOf(64);
  job.measure.emplace();
  job.streamed = true;
  const JobId id = Submit(std::move(job));
  worker::v1::ToServer frame;
  frame.mutable_samples()->set_id(id);
  frame.mutable_samples()->set_warmup(true);
  frame.mutable_samples()->add_samples_ns(1000);
  for (int i = 0; i < 10; ++i) {
    clock_.Advance(absl::Milliseconds(20));
    frame.mutable_samples()->set_first(i);
    ASSERT_THAT(Hear(frame), IsOk());
  }
  for (int i = 10; i < 21; ++i) {
    frame.mutable_samples()->set_first(i);
    ASSERT_THAT(Hear(frame), IsOk());
  }
  frame.mutable_samples()->set_first(21);
  EXPECT_THAT(Hear(frame), StatusIs(Code::kInvalidArgument, HasSubstr("22 warm-up samples")));
}

TEST_F(GuestSessionTest, ATimeThatIsYetToComeBreaksTheProtocol) {
  const JobId id = Submit(JobOf(4096));
  worker::v1::ToServer frame = DoneOfOne(id);
  v1::Phase* phase = frame.mutable_done()->add_phases();
  phase->set_kind(v1::Phase::OUTPUT_COPIED);
  phase->set_start_ns(absl::ToUnixNanos(clock_.Now()));
  phase->set_end_ns(absl::ToUnixNanos(clock_.Now() + absl::Hours(1)));
  EXPECT_THAT(Hear(frame), StatusIs(Code::kInvalidArgument, HasSubstr("yet to come")));
}

}  // namespace
}  // namespace gridclock
