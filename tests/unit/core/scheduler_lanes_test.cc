// A device that takes submitted code: its two lanes never run beside one another, take turns, and a
// guest never runs the jobs of two principals.
#include <csignal>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/unit/core/lanes_fixture.h"

namespace gridclock {
namespace {

using ::testing::_;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Code = absl::StatusCode;

TEST_F(SchedulerLanesTest, AGuestWaitsUntilTheCatalogueIsDoneAndTheOtherWayRound) {
  const auto worker = Ready();
  const auto guest = GuestReady();
  const Call square = SubmitReady(MakeJob());
  const Call mine = SubmitReady(Submitted());
  EXPECT_THAT(worker->orders(), ElementsAre(square.id));
  EXPECT_THAT(guest->orders(), IsEmpty());
  EXPECT_EQ(scheduler_.depth("cpu"), 2);

  EXPECT_TRUE(Done(square.id));
  EXPECT_THAT(guest->orders(), ElementsAre(mine.id));
  EXPECT_TRUE(scheduler_.busy("cpu"));
  const Call second = SubmitReady(MakeJob());
  EXPECT_THAT(worker->orders(), SizeIs(1));

  EXPECT_TRUE(GuestDone(mine.id));
  EXPECT_THAT(worker->orders(), ElementsAre(square.id, second.id));
  EXPECT_THAT(mine.listener->status(), IsOk());
  EXPECT_EQ(scheduler_.usage().count(kLane), 0U);
}

TEST_F(SchedulerLanesTest, OneThatIsAloneSendsAsIfThereWereNoOther) {
  const auto worker = Ready();
  GuestReady();
  for (std::size_t i = 0; i < Scheduler::kSmallWindow + 3; ++i) SubmitReady(MakeJob());
  EXPECT_THAT(worker->orders(), SizeIs(Scheduler::kSmallWindow));
}

TEST_F(SchedulerLanesTest, LargeOnesGoOneInTurn) {
  const auto worker = Ready();
  const auto guest = GuestReady();
  std::vector<Call> squares, mine;
  for (int i = 0; i < 3; ++i) squares.push_back(SubmitReady(Large(MakeJob())));
  for (int i = 0; i < 3; ++i) mine.push_back(SubmitReady(Large(Submitted())));
  // Two were sent before anyone else waited.
  EXPECT_THAT(worker->orders(), SizeIs(2));
  EXPECT_TRUE(Done(squares[0].id));
  EXPECT_THAT(guest->orders(), IsEmpty());
  EXPECT_TRUE(Done(squares[1].id));
  EXPECT_THAT(guest->orders(), ElementsAre(mine[0].id));
  EXPECT_TRUE(GuestDone(mine[0].id));
  EXPECT_THAT(worker->orders(), SizeIs(3));
  EXPECT_TRUE(Done(squares[2].id));
  EXPECT_THAT(guest->orders(), ElementsAre(mine[0].id, mine[1].id, mine[2].id));
}

TEST_F(SchedulerLanesTest, SmallOnesGoForTenMilliseconds) {
  const auto worker = Ready();
  const auto guest = GuestReady();
  const Call first = SubmitReady(Submitted());
  clock_.Advance(absl::Milliseconds(10));
  std::vector<Call> squares;
  squares.reserve(40);
  for (int i = 0; i < 40; ++i) squares.push_back(SubmitReady(MakeJob()));
  for (int i = 0; i < 3; ++i) SubmitReady(Submitted());
  EXPECT_THAT(guest->orders(), SizeIs(1));
  EXPECT_TRUE(GuestDone(first.id));
  EXPECT_THAT(worker->orders(), SizeIs(Scheduler::kSmallWindow));
  EXPECT_TRUE(Done(squares[0].id));
  EXPECT_THAT(worker->orders(), SizeIs(Scheduler::kSmallWindow + 1));
  clock_.Advance(absl::Milliseconds(10));
  for (std::size_t i = 1; i <= Scheduler::kSmallWindow; ++i) EXPECT_TRUE(Done(squares[i].id));
  EXPECT_THAT(worker->orders(), SizeIs(Scheduler::kSmallWindow + 1));
  EXPECT_THAT(guest->orders(), SizeIs(4));
}

TEST_F(SchedulerLanesTest, SmallOnesBehindALongOneAreAskedBackForTheOtherLane) {
  const auto worker = Ready();
  GuestReady();
  const Call slow = SubmitReady(MakeJob());
  const Call behind = SubmitReady(MakeJob("bob"));
  SubmitReady(Submitted());
  worker->Run(slow.id, clock_.Now());
  clock_.Advance(Scheduler::kPatience);
  scheduler_.Tick();
  EXPECT_THAT(worker->cancels(), ElementsAre(behind.id));
}

// ---- Guests come and go. ----

TEST_F(SchedulerLanesTest, WhatEndsItsGuestIsBlamedAndNeverSentAgain) {
  Ready();
  const auto guest = GuestReady();
  const Call bad = SubmitReady(Submitted());
  const Call behind = SubmitReady(Submitted());
  LoseGuest({.reason = "signal", .signal = SIGSEGV, .running = bad.id, .detail = "signal 11"});
  EXPECT_THAT(bad.listener->status(), StatusIs(Code::kFailedPrecondition, HasSubstr("signal 11")));
  EXPECT_THAT(bad.listener->status(), ReasonIs("KERNEL_FAULT"));
  EXPECT_THAT(guests_.blamed(), ElementsAre(bad.id));
  EXPECT_EQ(observer_.count("lost"), 0);
  EXPECT_EQ(guests_.starts(), 2);
  EXPECT_THAT(GuestReady(101)->orders(), ElementsAre(behind.id));
}

TEST_F(SchedulerLanesTest, AGuestThatLiesOfWhatItRunsCannotHaveItsJobsSentForEver) {
  Ready();
  GuestReady();
  const Call bad = SubmitReady(Submitted());
  LoseGuest({.reason = "signal", .signal = SIGSEGV, .running = 12345, .detail = "signal 11"});
  EXPECT_THAT(bad.listener->status(), ReasonIs("KERNEL_FAULT"));
  EXPECT_THAT(guests_.blamed(), ElementsAre(bad.id));
}

TEST_F(SchedulerLanesTest, WhatWaitsBehindOneThatSpoiledTheDeviceIsSentToTheNextGuest) {
  Ready();
  GuestReady();
  const Call bad = SubmitReady(Submitted());
  const Call behind = SubmitReady(Submitted());
  EXPECT_TRUE(scheduler_.OnDone(
      bad.id, 100, {.status = absl::FailedPreconditionError("fault"), .outcome = std::nullopt}));
  LoseGuest({.reason = "exit", .detail = "exit code 0", .spoiled = true});
  EXPECT_EQ(behind.listener->ends(), 0);
  EXPECT_THAT(guests_.blamed(), IsEmpty());
  EXPECT_THAT(GuestReady(101)->orders(), ElementsAre(behind.id));
}

TEST_F(SchedulerLanesTest, AKillFromOutsideIsNobodysFault) {
  Ready();
  GuestReady();
  const Call call = SubmitReady(Submitted());
  LoseGuest({.reason = "signal", .signal = SIGKILL, .running = call.id, .detail = "signal 9"});
  EXPECT_THAT(call.listener->status(), ReasonIs("WORKER_CRASHED"));
  EXPECT_THAT(guests_.blamed(), IsEmpty());
}

TEST_F(SchedulerLanesTest, AnEndlessOneIsKilledAndTheCatalogueGoesOn) {
  const auto worker = Ready();
  const auto guest = GuestReady();
  Job endless = Submitted();
  endless.kernel_time_limit = absl::Seconds(1);
  const Call call = SubmitReady(std::move(endless));
  const Call square = SubmitReady(MakeJob());
  guest->Run(call.id, clock_.Now(), clock_.Now());
  scheduler_.Tick();
  clock_.Advance(absl::Seconds(1) + Scheduler::kGrace);
  scheduler_.Tick();
  EXPECT_THAT(call.listener->status(), ReasonIs("KERNEL_TIME_LIMIT"));
  EXPECT_THAT(guest->kills(), ElementsAre("time_limit"));
  // It may still be running.
  EXPECT_THAT(worker->orders(), IsEmpty());
  LoseGuest({.reason = "time_limit", .running = call.id, .detail = "killed: time_limit"});
  EXPECT_THAT(worker->orders(), ElementsAre(square.id));
  EXPECT_THAT(guests_.blamed(), ElementsAre(call.id));
}

TEST_F(SchedulerLanesTest, ACallsOwnDeadlineIsNoFaultOfItsCode) {
  Ready();
  const auto guest = GuestReady();
  Job slow = Submitted();
  slow.deadline = clock_.Now() + absl::Seconds(1);
  const Call call = SubmitReady(std::move(slow));
  guest->Run(call.id, clock_.Now(), clock_.Now());
  clock_.Advance(absl::Seconds(1) + Scheduler::kGrace);
  scheduler_.Tick();
  EXPECT_THAT(call.listener->status(), StatusIs(Code::kDeadlineExceeded, _));
  clock_.Advance(Scheduler::kLongestGrace);
  scheduler_.Tick();
  EXPECT_THAT(guest->kills(), ElementsAre("deadline"));
  LoseGuest({.reason = "deadline", .running = call.id, .detail = "killed: deadline"});
  EXPECT_THAT(guests_.blamed(), IsEmpty());
}

TEST_F(SchedulerLanesTest, ALaunchThatRunsOnAndOnCountsThoughItsCallEndedBefore) {
  Ready();
  for (const bool cancels : {false, true}) {
    const auto guest = GuestReady();
    Job endless = Submitted();
    endless.kernel_time_limit = absl::Seconds(600);
    if (!cancels) endless.deadline = clock_.Now() + Scheduler::kOverlong;
    const Call call = SubmitReady(std::move(endless));
    guest->Run(call.id, clock_.Now(), clock_.Now());
    scheduler_.Tick();
    clock_.Advance(Scheduler::kOverlong);
    if (cancels) scheduler_.Cancel(call.id, absl::CancelledError("left"));
    clock_.Advance(Scheduler::kLongestGrace);
    scheduler_.Tick();
    const std::string reason = cancels ? "cancelled" : "deadline";
    EXPECT_THAT(guest->kills(), ElementsAre(reason));
    LoseGuest({.reason = reason, .running = call.id, .detail = "killed: " + reason});
    EXPECT_THAT(guests_.blamed(), SizeIs(cancels ? 2 : 1));
  }
}

// The launch that runs now is what counts, not how long the call has had launches.
TEST_F(SchedulerLanesTest, ManyShortLaunchesAreNoLongOne) {
  Ready();
  const auto guest = GuestReady();
  Job measured = Submitted();
  measured.deadline = clock_.Now() + absl::Seconds(20);
  const Call call = SubmitReady(std::move(measured));
  const absl::Time began = clock_.Now();
  guest->Run(call.id, began, began);
  scheduler_.Tick();
  clock_.Advance(absl::Seconds(20));
  guest->Run(call.id, began, clock_.Now() - absl::Seconds(1));
  clock_.Advance(Scheduler::kLongestGrace);
  scheduler_.Tick();
  LoseGuest({.reason = "deadline", .running = call.id, .detail = "killed: deadline"});
  EXPECT_THAT(guests_.blamed(), IsEmpty());
}

// Its worker names it before it looks at the cancel.
TEST_F(SchedulerLanesTest, OneThatWasCancelledBehindAnotherHasAGraceFromItsBeginning) {
  const auto worker = Ready();
  const auto guest = GuestReady();
  const Call first = SubmitReady(Submitted());
  const Call second = SubmitReady(Submitted());
  ASSERT_THAT(guest->orders(), ElementsAre(first.id, second.id));
  scheduler_.Cancel(second.id, absl::CancelledError("left"));
  clock_.Advance(absl::Seconds(6));
  EXPECT_TRUE(GuestDone(first.id));
  guest->Run(second.id, clock_.Now());
  scheduler_.Tick();
  EXPECT_THAT(guest->kills(), IsEmpty());
  EXPECT_EQ(second.listener->ends(), 0);
  clock_.Advance(Scheduler::kGrace);
  scheduler_.Tick();
  EXPECT_EQ(second.listener->ends(), 1);
}

TEST_F(SchedulerLanesTest, ACancelledOneThatRunsOnIsEndedAfterAGrace) {
  const auto worker = Ready();
  scheduler_.OnStartTook(kLane, absl::Seconds(2));
  const auto guest = GuestReady();
  Job endless = Submitted();
  endless.kernel_time_limit = absl::Seconds(600);
  const Call call = SubmitReady(std::move(endless));
  const Call square = SubmitReady(MakeJob());
  guest->Run(call.id, clock_.Now(), clock_.Now());
  scheduler_.Tick();
  scheduler_.Cancel(call.id, absl::CancelledError("left"));
  EXPECT_THAT(guest->cancels(), ElementsAre(call.id));
  EXPECT_EQ(call.listener->ends(), 0);
  clock_.Advance(Scheduler::kGrace);
  scheduler_.Tick();
  EXPECT_THAT(call.listener->status(), StatusIs(Code::kCancelled, "left"));
  EXPECT_THAT(guest->kills(), IsEmpty());
  clock_.Advance(absl::Seconds(2));
  scheduler_.Tick();
  EXPECT_THAT(guest->kills(), ElementsAre("cancelled"));
  LoseGuest({.reason = "cancelled", .running = call.id, .detail = "killed: cancelled"});
  EXPECT_THAT(worker->orders(), ElementsAre(square.id));
  EXPECT_THAT(guests_.blamed(), IsEmpty());
}

TEST_F(SchedulerLanesTest, ACancelledOneOfTheCatalogueHasItsTimeWhileNeitherLaneWaits) {
  const auto worker = Ready();
  const auto guest = GuestReady();
  const Call call = SubmitReady(MakeJob());
  worker->Run(call.id, clock_.Now(), clock_.Now());
  scheduler_.Tick();
  scheduler_.Cancel(call.id, absl::CancelledError("left"));
  clock_.Advance(Scheduler::kLongestGrace);
  scheduler_.Tick();
  EXPECT_EQ(call.listener->ends(), 0);
  EXPECT_THAT(worker->kills(), IsEmpty());
  const Call mine = SubmitReady(Submitted("bob"));
  scheduler_.Tick();
  EXPECT_THAT(call.listener->status(), StatusIs(Code::kCancelled, "left"));
  EXPECT_THAT(worker->kills(), ElementsAre("cancelled"));
  EXPECT_THAT(guest->orders(), IsEmpty()) << "the launch still goes on";
  scheduler_.OnWorkerLost(
      "cpu", 1, {.reason = "cancelled", .running = call.id, .detail = "killed: cancelled"});
  EXPECT_THAT(guest->orders(), ElementsAre(mine.id));
}

// Each would have the time of a launch of its own.
TEST_F(SchedulerLanesTest, AGuestThatNamesOneOrderAfterTheOtherWinsNoTime) {
  Ready();
  const auto guest = GuestReady();
  SubmitReady(Submitted());
  const Call second = SubmitReady(Submitted());
  ASSERT_THAT(guest->orders(), SizeIs(2));
  guest->Run(second.id, clock_.Now(), clock_.Now());
  for (int i = 0; i < 6; ++i) {
    clock_.Advance(absl::Seconds(1));
    scheduler_.Tick();
  }
  EXPECT_THAT(guest->kills(), ElementsAre("hang"));
}

// Code that writes its guest's status page.
TEST_F(SchedulerLanesTest, OneThatSaysThatItsLaunchIsYetToComeWinsNoTime) {
  Ready();
  const auto guest = GuestReady();
  Job job = Submitted();
  job.host_memory = false;  // The work around its launches has time too.
  const Call call = SubmitReady(job);
  guest->Run(call.id, clock_.Now(), clock_.Now() + absl::Hours(1));
  scheduler_.Tick();
  clock_.Advance(job.kernel_time_limit + Scheduler::kGrace);
  scheduler_.Tick();
  ASSERT_EQ(call.listener->ends(), 1);
  EXPECT_THAT(call.listener->status(), ReasonIs("KERNEL_TIME_LIMIT"));
  EXPECT_EQ(call.listener->end()->launched_for, job.kernel_time_limit + Scheduler::kGrace);
}

TEST_F(SchedulerLanesTest, NorDoesItsModuleStayWithoutAStrike) {
  Ready();
  const auto guest = GuestReady();
  Job job = Submitted();
  job.deadline = clock_.Now() + Scheduler::kOverlong;
  const Call call = SubmitReady(job);
  guest->Run(call.id, clock_.Now(), clock_.Now() + absl::Hours(1));
  scheduler_.Tick();
  clock_.Advance(Scheduler::kOverlong + Scheduler::kGrace);
  scheduler_.Tick();
  LoseGuest({.reason = "deadline", .running = call.id, .detail = "killed: deadline"});
  EXPECT_THAT(guests_.blamed(), ElementsAre(call.id));
}

// One client's faults make no other wait for all that it sent.
TEST_F(SchedulerLanesTest, WhatWaitedBehindAFaultQueuesAgainInItsTurn) {
  Ready();
  GuestReady();
  const Call bad = SubmitReady(Submitted("ann"));
  const Call behind = SubmitReady(Submitted("ann"));
  const Call other = SubmitReady(Large(Submitted("bob")));
  LoseGuest({.reason = "signal", .signal = SIGSEGV, .running = bad.id, .detail = "signal 11"});
  EXPECT_THAT(GuestReady(101)->orders(), ElementsAre(other.id));
  EXPECT_EQ(behind.listener->ends(), 0);
}

TEST_F(SchedulerLanesTest, NothingRunsBesideAGuestThatCannotBeEnded) {
  const auto worker = Ready();
  GuestReady();
  const Call call = SubmitReady(Submitted());
  const Call square = SubmitReady(MakeJob());
  const WorkerLoss loss = {.reason = "time_limit", .running = call.id, .detail = "still there"};
  scheduler_.OnKillFailed(kLane, loss, absl::UnavailableError("cannot be ended"));
  EXPECT_THAT(square.listener->status(), StatusIs(Code::kUnavailable, "cannot be ended"));
  auto refused = scheduler_.Submit(MakeJob(), std::make_shared<FakeListener>(), false);
  EXPECT_THAT(refused, StatusIs(Code::kUnavailable, "cannot be ended"));
  EXPECT_THAT(worker->orders(), IsEmpty());
  LoseGuest(loss);
  EXPECT_THAT(SubmitReady(MakeJob()).listener->ends(), 0);
  EXPECT_THAT(worker->orders(), SizeIs(1));
}

TEST_F(SchedulerLanesTest, OneThatCouldNotBeEndedBeforeItWasReadyIsForgottenOnceItIsGone) {
  const auto worker = Ready();
  SubmitReady(Submitted());  // For which one starts.
  scheduler_.OnKillFailed(kLane, {.reason = "hang", .detail = "still there"},
                          absl::UnavailableError("cannot be ended"));
  EXPECT_THAT(scheduler_.Submit(MakeJob(), std::make_shared<FakeListener>(), false),
              StatusIs(Code::kUnavailable, "cannot be ended"));
  scheduler_.OnGuestNotReady(kLane, clock_.Now() + absl::Seconds(30));
  const Call square = SubmitReady(MakeJob());
  EXPECT_THAT(worker->orders(), ElementsAre(square.id));
}

TEST_F(SchedulerLanesTest, GuestsAreServedOnceAWorkerThatCouldNotBeEndedHasASuccessor) {
  scheduler_.OnKillFailed("cpu", {.reason = "hang", .detail = "still there"},
                          absl::UnavailableError("cannot be ended"));
  EXPECT_THAT(scheduler_.Submit(Submitted(), std::make_shared<FakeListener>(), false),
              StatusIs(Code::kUnavailable, "cannot be ended"));
  Ready();
  const auto guest = GuestReady();
  const Call call = SubmitReady(Submitted());
  EXPECT_THAT(guest->orders(), ElementsAre(call.id));
}

class SchedulerChargeTest : public SchedulerLanesTest {
 protected:
  // Of jobs that wait beside one another bob's first go, though it were ann's turn after one.
  void ExpectThatAnnWaits() {
    const Call first = SubmitReady(Submitted("bob"));
    EXPECT_THAT(GuestReady(101)->orders(), ElementsAre(first.id));
    clock_.Advance(Scheduler::kStay);
    SubmitReady(Submitted("ann"));
    const Call second = SubmitReady(Submitted("bob"));
    EXPECT_TRUE(GuestDone(first.id, 101));
    LoseGuest(Retired(), 101);
    EXPECT_THAT(GuestReady(102)->orders(), ElementsAre(second.id));
  }
};

TEST_F(SchedulerChargeTest, WhoEndedAGuestLetsOthersGoFirst) {
  Ready();
  GuestReady();
  const Call bad = SubmitReady(Submitted("ann"));
  LoseGuest({.reason = "signal", .signal = SIGSEGV, .running = bad.id, .detail = ""});
  ExpectThatAnnWaits();
}

// As a fault of a GPU does, which its guest lives to report.
TEST_F(SchedulerChargeTest, SoDoesWhoseAnswerSpoiledIt) {
  Ready();
  GuestReady();
  const Call bad = SubmitReady(Submitted("ann"));
  Scheduler::WorkerAnswer fault{
      .id = bad.id,
      .result = {.status = absl::FailedPreconditionError("illegal address"),
                 .outcome = std::nullopt},
      .spoiled = true};
  EXPECT_THAT(scheduler_.OnDone(100, {&fault, 1}), IsEmpty());
  LoseGuest({.reason = "exit", .running = bad.id, .detail = "", .spoiled = true});
  ExpectThatAnnWaits();
}

// ---- Inputs that arrive. ----

TEST_F(SchedulerLanesTest, NothingIsCopiedEarlyBesideAGuest) {
  const auto worker = Ready();
  const auto guest = GuestReady();
  Job large = MakeJob();
  large.host_memory = false;
  large.inputs.resize(1);
  const Call upload = Submit(large);
  scheduler_.Arrived(upload.id, {.input = 0, .bytes = 1});
  EXPECT_THAT(worker->arrivals(), SizeIs(1));
  clock_.Advance(absl::Seconds(1));
  // A piece of what it was told of may still be on its way, the rest never is.
  const Call measured = SubmitReady(Measured(Submitted()));
  EXPECT_THAT(guest->orders(), IsEmpty());
  EXPECT_THAT(worker->cancels(), ElementsAre(upload.id));
  scheduler_.Arrived(upload.id, {.input = 0, .bytes = 2});
  EXPECT_THAT(worker->arrivals(), SizeIs(1));
  clock_.Advance(absl::Milliseconds(10));
  scheduler_.Tick();
  EXPECT_THAT(guest->orders(), ElementsAre(measured.id));
  scheduler_.Arrived(upload.id, {.input = 0, .bytes = 3});
  EXPECT_THAT(worker->arrivals(), SizeIs(1));
  EXPECT_TRUE(GuestDone(measured.id));
  scheduler_.Arrived(upload.id, {.input = 0, .bytes = 4});
  EXPECT_THAT(worker->arrivals(), SizeIs(2));
  EXPECT_THAT(worker->cancels(), SizeIs(1));
}

// ---- All at random. ----

// Lanes, principals and sizes by chance, guests that crash now and then: never do both workers hold
// orders, never does a guest hold those of two principals, and every job ends.
class LanesSimulation {
 public:
  explicit LanesSimulation(std::uint64_t seed)
      : random_(seed), scheduler_(clock_, ManyCalls(), arena_, observer_) {
    scheduler_.AddGuests("cpu", guests_);
    scheduler_.OnWorkerReady("cpu", worker_, 1);
  }

  void Run() {
    for (int step = 0; step < 2000; ++step) Step(/*submit=*/true);
    for (int step = 0; step < 20000 && !scheduler_.idle(); ++step) Step(/*submit=*/false);
    EXPECT_TRUE(scheduler_.idle()) << "a job starved";
    EXPECT_EQ(arena_.used(), 0U);
  }

 private:
  bool Chance(int percent) { return static_cast<int>(random_() % 100) < percent; }

  void Step(bool submit) {
    if (submit && Chance(40)) Submit();
    if (guests_.starts() > started_ && Chance(50)) StartGuest();
    if (guest_ != nullptr && !guest_->kills().empty()) LoseGuest("retired", 0);
    if (Chance(60)) Finish(*worker_, 1, &done_);
    if (guest_ != nullptr && Chance(60)) Finish(*guest_, 100 + started_, &guest_done_);
    if (guest_ != nullptr && Held(*guest_, guest_done_) > 0 && Chance(2)) {
      LoseGuest("signal", SIGSEGV);
    }
    clock_.Advance(absl::Milliseconds(static_cast<int>(random_() % 8)));
    scheduler_.Tick();
    Check();
  }
  void Submit() {
    Job job;
    job.kernel = "square";
    job.device = "cpu";
    job.principal = Chance(50) ? "ann" : "bob";
    job.memory.size = Chance(70) ? 4096 : 2 * Scheduler::kSmallBytes;
    if (Chance(20)) job.measure = MeasureOptions();
    if (Chance(50)) job.program = std::make_shared<const JobProgram>();
    job.deadline = absl::InfiniteFuture();
    job.kernel_time_limit = absl::Hours(1);
    const std::string principal = job.principal;
    auto id = scheduler_.Submit(std::move(job), std::make_shared<FakeListener>(), false);
    ASSERT_THAT(id, IsOk());
    principals_[*id] = principal;
    if (Chance(50)) scheduler_.Arrived(*id, {.input = 0, .bytes = 1});
    scheduler_.Start(*id);
  }
  void StartGuest() {
    ++started_;
    guest_ = std::make_shared<FakeWorker>(WorkerRole::kGuest);
    guest_done_ = 0;
    scheduler_.OnWorkerReady(kLane, guest_, 100 + started_);
  }
  void LoseGuest(const std::string& reason, int signal) {
    const auto orders = guest_->orders();
    const JobId running = guest_done_ < orders.size() ? orders[guest_done_] : 0;
    guest_ = nullptr;
    scheduler_.OnWorkerLost(kLane, 100 + started_,
                            {.reason = reason,
                             .signal = signal,
                             .running = running,
                             .detail = "",
                             .planned = reason == "retired"});
  }
  void Finish(const FakeWorker& worker, std::uint64_t generation, std::size_t* done) {
    const auto orders = worker.orders();
    if (*done == orders.size()) return;
    const JobId id = orders[(*done)++];
    EXPECT_TRUE(
        scheduler_.OnDone(id, generation, {.status = absl::OkStatus(), .outcome = Outcome{}}));
  }
  static std::size_t Held(const FakeWorker& worker, std::size_t done) {
    return worker.orders().size() - done;
  }
  void Check() const {
    if (guest_ == nullptr) return;
    EXPECT_TRUE(Held(*worker_, done_) == 0 || Held(*guest_, guest_done_) == 0)
        << "both lanes hold orders";
    std::set<std::string> principals;
    for (const JobId id : guest_->orders()) principals.insert(principals_.at(id));
    for (const auto& [id, bytes] : guest_->arrivals()) principals.insert(principals_.at(id));
    EXPECT_LE(principals.size(), 1U) << "one guest had jobs or inputs of two principals";
  }

  std::mt19937_64 random_;
  FakeClock clock_;
  FakeObserver observer_;
  FakeGuests guests_;
  ArenaAllocator arena_{1 << 30, 1 << 30};
  Scheduler scheduler_;
  std::shared_ptr<FakeWorker> worker_ = std::make_shared<FakeWorker>(), guest_;
  std::size_t done_ = 0, guest_done_ = 0;
  int started_ = 0;
  std::map<JobId, std::string> principals_;
};

TEST(SchedulerLanesSimulation, LanesNeverMeetAndNoJobStarves) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    LanesSimulation(seed).Run();
  }
}

}  // namespace
}  // namespace gridclock
