// Places in a queue: what clients that hold all of them leave to the others.
#include <memory>
#include <string>
#include <vector>

#include "tests/unit/core/scheduler_fixture.h"

namespace gridclock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Code = absl::StatusCode;

constexpr int kQueue = 8, kClientQueue = 4;

Limits FewPlaces() {
  Limits limits;
  limits.queue = kQueue;
  limits.client_queue = kClientQueue;
  return limits;
}

class SchedulerPlacesTest : public SchedulerFixture {
 protected:
  SchedulerPlacesTest() : SchedulerFixture("cpu", FewPlaces(), 64 * kPage, 16 * kPage) {}

  Job Streamed(const std::string& principal) const {
    Job job = MakeJob(principal);
    job.inputs.resize(1);
    job.inputs[0].source = SourceKind::kStream;
    return job;
  }
  absl::Status Try(Job job) {
    return scheduler_.Submit(std::move(job), std::make_shared<FakeListener>(), false).status();
  }
  // As many as it gets, of which nothing more is heard.
  std::vector<Call> HoldAllArriving(const std::string& principal) {
    std::vector<Call> calls(kClientQueue);
    for (Call& call : calls) call = Submit(Streamed(principal));
    return calls;
  }
  static auto IsFull(const std::string& words) {
    return StatusIs(Code::kResourceExhausted, HasSubstr(words));
  }
};

TEST_F(SchedulerPlacesTest, CallsWhoseInputsNeverComeTakeNobodysPlace) {
  const auto worker = Ready();
  HoldAllArriving("ann");
  HoldAllArriving("bob");
  std::vector<JobId> cat;
  for (int i = 0; i <= kClientQueue; ++i) cat.push_back(SubmitReady(MakeJob("cat")).id);
  EXPECT_EQ(worker->orders(), cat) << "one runs and the rest of its share waits";
  EXPECT_EQ(scheduler_.usage().at("cpu").queued, kClientQueue);
  EXPECT_EQ(scheduler_.usage().at("cpu").queued_of_one, kClientQueue);
  EXPECT_EQ(scheduler_.depth("cpu"), 2 * kClientQueue + kClientQueue + 1);
  EXPECT_THAT(Try(MakeJob("cat")), IsFull("4 calls of this client wait for device"));
  SubmitReady(MakeJob("ann"));
}

TEST_F(SchedulerPlacesTest, TheyAreBoundedByThemselves) {
  HoldAllArriving("ann");
  const absl::Status own = Try(Streamed("ann"));
  EXPECT_THAT(own, IsFull("4 calls of this client wait for memory or inputs"));
  EXPECT_THAT(own, ReasonIs("QUEUE_FULL"));
  EXPECT_EQ(DetailsOf(own).metadata.at("limit"), "client_queue");
  HoldAllArriving("bob");
  // Who has nothing here finds a place, and one alone.
  Submit(Streamed("cat"));
  const absl::Status all = Try(Streamed("cat"));
  EXPECT_THAT(all, IsFull("9 calls of all clients wait for memory or inputs"));
  EXPECT_EQ(DetailsOf(all).metadata.at("limit"), "queue");
}

TEST_F(SchedulerPlacesTest, WhoHasNoneFindsAPlaceInAFullQueue) {
  for (const char* principal : {"ann", "bob"}) {
    for (int i = 0; i < kClientQueue; ++i) SubmitReady(MakeJob(principal));
  }
  EXPECT_THAT(Try(MakeJob("ann")), IsFull("8 calls of all clients"));
  SubmitReady(MakeJob("cat"));
  EXPECT_THAT(Try(MakeJob("cat")), IsFull("9 calls of all clients"));
  EXPECT_THAT(Try(Streamed("cat")), IsFull("9 calls of all clients"));
}

TEST_F(SchedulerPlacesTest, ThatIsSoWhenAllThatArrivedHaveTheirInputsAtOnce) {
  std::vector<Call> uploads;
  for (const char* principal : {"ann", "bob", "dan"}) {
    for (int i = 0; i < 2; ++i) SubmitReady(MakeJob(principal));
  }
  for (const char* principal : {"ann", "bob"}) {
    for (const Call& call : HoldAllArriving(principal)) uploads.push_back(call);
  }
  for (const Call& call : uploads) scheduler_.Start(call.id);
  ASSERT_EQ(scheduler_.usage().at("cpu").queued, 6 + kQueue);
  EXPECT_THAT(Try(Streamed("ann")), IsFull("of all clients"));
  EXPECT_THAT(Try(MakeJob("dan")), IsFull("of all clients"));
  SubmitReady(MakeJob("cat"));
}

TEST_F(SchedulerPlacesTest, ManyClientsFindAnEndToo) {
  int accepted = 0;
  while (Try(MakeJob(absl::StrCat("client ", accepted))).ok()) ++accepted;
  EXPECT_EQ(accepted, Scheduler::kMostQueues * kQueue);
}

TEST_F(SchedulerPlacesTest, WaitingForMemoryTakesNoPlaceInTheQueueEither) {
  const Call big = SubmitReady(MakeJob("ann", 16 * kPage));
  std::vector<Call> waiting(kClientQueue);
  for (Call& call : waiting) call = Submit(MakeJob("ann", kPage), true);
  EXPECT_EQ(scheduler_.usage().at("cpu").queued, 1);
  auto refused = scheduler_.Submit(MakeJob("ann", kPage), std::make_shared<FakeListener>(), true);
  EXPECT_THAT(refused.status(), IsFull("4 calls of this client wait for memory"));
  scheduler_.Cancel(waiting[0].id, absl::CancelledError("left"));
  scheduler_.Cancel(big.id, absl::CancelledError("left"));
  scheduler_.Tick();
  for (const Call& call : waiting) scheduler_.Start(call.id);
  EXPECT_EQ(scheduler_.usage().at("cpu").queued, kClientQueue - 1);
}

TEST_F(SchedulerPlacesTest, WhatEndsWhileItArrivesLeavesItsPlace) {
  for (const Call& call : HoldAllArriving("ann")) {
    scheduler_.Cancel(call.id, absl::CancelledError("left"));
  }
  EXPECT_EQ(scheduler_.depth("cpu"), 0);
  HoldAllArriving("ann");
  scheduler_.OnDeviceDown("cpu", absl::UnavailableError("down"));
  Ready();
  HoldAllArriving("ann");
  EXPECT_EQ(scheduler_.depth("cpu"), kClientQueue);
}

TEST_F(SchedulerPlacesTest, WhatCameFirstRunsFirstThoughItsInputsCameLater) {
  const Call upload = Submit(Streamed("ann"));
  const Call quick = SubmitReady(MakeJob("ann"));
  scheduler_.Start(upload.id);
  EXPECT_THAT(Ready()->orders(), ElementsAre(upload.id, quick.id));
}

}  // namespace
}  // namespace gridclock
