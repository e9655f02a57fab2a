// What guests are given of inputs that arrive, and what they are not.
#include <memory>
#include <string>
#include <vector>

#include "tests/unit/core/lanes_fixture.h"

namespace gridclock {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

// Streamed, for a guest that ran a job of its principal.
class SchedulerGuestInputsTest : public SchedulerLanesTest {
 protected:
  SchedulerGuestInputsTest() { Bind(); }
  void Bind(const std::string& principal = "ann", std::uint64_t generation = 100) {
    guest_ = GuestReady(generation);
    EXPECT_TRUE(GuestDone(SubmitReady(Submitted(principal)).id, generation));
  }
  Job Streamed(const std::string& principal = "ann") const {
    Job job = Submitted(principal);
    job.inputs.resize(1);
    return job;
  }
  void Arrive(const Call& call, std::uint64_t bytes = 1) {
    scheduler_.Arrived(call.id, {.input = 0, .bytes = bytes});
  }

  std::shared_ptr<FakeWorker> worker_ = Ready(), guest_;
};

TEST_F(SchedulerGuestInputsTest, AreCopiedBeforeTheOrderThoughTheDeviceHasNoMemoryOfItsOwn) {
  Job job = Streamed();
  job.host_memory = true;
  const Call upload = Submit(std::move(job));
  Arrive(upload, 100);
  Arrive(upload, 200);
  EXPECT_THAT(guest_->arrivals(), ElementsAre(Pair(upload.id, 100), Pair(upload.id, 200)));
  EXPECT_THAT(worker_->arrivals(), IsEmpty());
  scheduler_.Start(upload.id);
  EXPECT_THAT(guest_->orders(), Contains(upload.id));
  EXPECT_TRUE(GuestDone(upload.id));
  EXPECT_THAT(guest_->cancels(), IsEmpty());
}

TEST_F(SchedulerGuestInputsTest, OfAnotherPrincipalNeverReachIt) {
  const Call bob = Submit(Streamed("bob"));
  Arrive(bob);
  EXPECT_THAT(guest_->arrivals(), IsEmpty());
}

TEST_F(SchedulerGuestInputsTest, AreNotCopiedToOneThatMayStillBecomeAnybodys) {
  LoseGuest(Retired());
  const auto fresh = GuestReady(101);
  Arrive(Submit(Streamed()));
  EXPECT_THAT(fresh->arrivals(), IsEmpty());
}

TEST_F(SchedulerGuestInputsTest, AreNotCopiedToOneThatIsWorn) {
  const Call upload = Submit(Streamed());
  guest_->WearOut();
  Arrive(upload);
  EXPECT_THAT(guest_->arrivals(), IsEmpty());
}

TEST_F(SchedulerGuestInputsTest, OfACheckAreNotCopied) {
  Job job = Streamed();
  job.check.emplace();
  Arrive(Submit(std::move(job)));
  EXPECT_THAT(guest_->arrivals(), IsEmpty());
}

TEST_F(SchedulerGuestInputsTest, WaitWhileEitherLaneHoldsOrders) {
  const Call upload = Submit(Streamed());
  const Call square = SubmitReady(MakeJob());
  Arrive(upload);
  EXPECT_TRUE(Done(square.id));
  const Call mine = SubmitReady(Submitted());
  Arrive(upload);
  EXPECT_THAT(guest_->arrivals(), IsEmpty());
  EXPECT_TRUE(GuestDone(mine.id));
  Arrive(upload);
  EXPECT_THAT(guest_->arrivals(), SizeIs(1));
}

// A thread that copies is not kept at it by what arrives of others meanwhile.
TEST_F(SchedulerGuestInputsTest, AreLeftWhileSomebodySpeaksToTheGuest) {
  const Call first = Submit(Streamed()), second = Submit(Streamed());
  guest_->AtNextArrival([&] { Arrive(second, 100); });
  Arrive(first, 1);
  EXPECT_THAT(guest_->arrivals(), ElementsAre(Pair(first.id, 1)));
  Arrive(second, 200);
  EXPECT_THAT(guest_->arrivals(), ElementsAre(Pair(first.id, 1), Pair(second.id, 200)));
}

TEST_F(SchedulerGuestInputsTest, AreTakenBackWhenTheirCallIsCancelled) {
  const Call upload = Submit(Streamed());
  Arrive(upload);
  scheduler_.Cancel(upload.id, absl::CancelledError("by the client"));
  EXPECT_THAT(guest_->cancels(), ElementsAre(upload.id));
  EXPECT_TRUE(scheduler_.idle());
  EXPECT_EQ(arena_.used(), 0U);
}

TEST_F(SchedulerGuestInputsTest, OfAGuestThatIsReplacedAreNoMatterOfTheNext) {
  std::vector<Call> uploads;
  for (int i = 0; i < Scheduler::kMostEarlyOfOne; ++i) {
    uploads.push_back(Submit(Streamed()));
    Arrive(uploads.back());
  }
  LoseGuest(Retired());
  Bind("bob", 101);
  scheduler_.Cancel(uploads[0].id, absl::CancelledError("by the client"));
  EXPECT_THAT(guest_->cancels(), IsEmpty());
  LoseGuest(Retired(), 101);
  Bind("ann", 102);
  for (int i = 0; i < 2; ++i) Arrive(Submit(Streamed()));
  EXPECT_THAT(guest_->arrivals(), SizeIs(2));  // Those before took no places from them.
}

// None of these copies goes on when the guest was spoken to.
TEST_F(SchedulerGuestInputsTest, KeepNoMeasurementWaitingOnceTheyAreMade) {
  Arrive(Submit(Streamed()));
  const Call measured = SubmitReady(Measured(MakeJob()));
  EXPECT_THAT(worker_->orders(), ElementsAre(measured.id));
  EXPECT_THAT(guest_->cancels(), IsEmpty());
}

TEST_F(SchedulerGuestInputsTest, AreNotCopiedBesideAMeasurement) {
  Call measured;
  guest_->AtNextArrival([&] {
    measured = SubmitReady(Measured(MakeJob()));
    scheduler_.Tick();
    EXPECT_THAT(worker_->orders(), IsEmpty());
  });
  const Call upload = Submit(Streamed());
  Arrive(upload, 1);
  Arrive(upload, 2);  // Left: the other lane waits.
  scheduler_.Tick();
  EXPECT_THAT(worker_->orders(), ElementsAre(measured.id));
  EXPECT_THAT(guest_->arrivals(), SizeIs(1));
}

TEST_F(SchedulerGuestInputsTest, DelayNothingElseOfTheOtherLane) {
  Call square;
  guest_->AtNextArrival([&] {
    square = SubmitReady(MakeJob());
    EXPECT_THAT(worker_->orders(), ElementsAre(square.id));
  });
  Arrive(Submit(Streamed()));
}

TEST_F(SchedulerGuestInputsTest, OfAGuestThatIsReplacedGoToTheNextOfTheirPrincipalAlone) {
  const Call upload = Submit(Streamed());
  Arrive(upload, 1);
  LoseGuest(Retired());
  Bind("bob", 101);
  Arrive(upload, 2);
  EXPECT_THAT(guest_->arrivals(), IsEmpty());
  LoseGuest(Retired(), 101);
  Bind("ann", 102);
  Arrive(upload, 3);
  EXPECT_THAT(guest_->arrivals(), ElementsAre(Pair(upload.id, 3)));
}

}  // namespace
}  // namespace gridclock
