// What workers hear of inputs that arrive, and what they do not.
#include <csignal>
#include <vector>

#include "tests/unit/core/scheduler_fixture.h"

namespace gridclock {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

class SchedulerEarlyTest : public SchedulerFixture {
 protected:
  SchedulerEarlyTest() : SchedulerFixture("cuda:0", Limits(), 64 * kPage, 64 * kPage) {}

  Job OnGpu(const std::string& principal = "ann") const {
    Job job = MakeJob(principal);
    job.host_memory = false;
    job.inputs.resize(1);
    job.inputs[0].memory = {.offset = 0, .size = kPage};
    return job;
  }
};

TEST_F(SchedulerEarlyTest, TellsTheWorkerAndThenSendsTheOrder) {
  const auto worker = Ready();
  const Call call = Submit(OnGpu());
  scheduler_.Arrived(call.id, {.input = 0, .bytes = 100});
  scheduler_.Arrived(call.id, {.input = 0, .bytes = 200});
  EXPECT_THAT(worker->arrivals(), ElementsAre(Pair(call.id, 100), Pair(call.id, 200)));
  EXPECT_THAT(worker->orders(), IsEmpty());

  scheduler_.Start(call.id);
  scheduler_.Arrived(call.id, {.input = 0, .bytes = 300});
  EXPECT_THAT(worker->orders(), ElementsAre(call.id));
  EXPECT_TRUE(Done(call.id));
  scheduler_.Arrived(call.id, {.input = 0, .bytes = 300});
  EXPECT_THAT(worker->arrivals(), SizeIs(2));
  EXPECT_THAT(worker->cancels(), IsEmpty());
  EXPECT_EQ(arena_.used(), 0U);
}

TEST_F(SchedulerEarlyTest, TellsNothingOfWhatIsNotCopied) {
  const auto worker = Ready();
  Job in_arena = OnGpu();
  in_arena.host_memory = true;
  const Call call = Submit(std::move(in_arena));
  scheduler_.Arrived(call.id, {.input = 0, .bytes = 100});
  scheduler_.Arrived(call.id + 1, {.input = 0, .bytes = 100});
  EXPECT_THAT(worker->arrivals(), IsEmpty());
}

TEST_F(SchedulerEarlyTest, OrdersDoNotWaitForCopiesOfWhatMayComeLater) {
  const auto worker = Ready();
  const Call large = Submit(OnGpu());
  const Call running = SubmitReady(OnGpu("bob"));
  scheduler_.Arrived(large.id, {.input = 0, .bytes = 100});
  EXPECT_THAT(worker->arrivals(), IsEmpty());
  EXPECT_TRUE(Done(running.id));
  scheduler_.Arrived(large.id, {.input = 0, .bytes = 200});
  EXPECT_THAT(worker->arrivals(), ElementsAre(Pair(large.id, 200)));
}

TEST_F(SchedulerEarlyTest, TakesBackWhatWillBeNoOrder) {
  const auto worker = Ready();
  const Call told = Submit(OnGpu()), untold = Submit(OnGpu());
  scheduler_.Arrived(told.id, {.input = 0, .bytes = 100});
  scheduler_.Cancel(told.id, absl::CancelledError("by the client"));
  scheduler_.Cancel(untold.id, absl::CancelledError("by the client"));
  EXPECT_THAT(worker->cancels(), ElementsAre(told.id));
  EXPECT_TRUE(scheduler_.idle());
  EXPECT_EQ(arena_.used(), 0U);
}

TEST_F(SchedulerEarlyTest, AFewUploadsAloneAreCopiedEarly) {
  const auto worker = Ready();
  std::vector<Call> calls;
  for (const char* principal : {"ann", "bob", "cid"}) {
    for (int i = 0; i < Scheduler::kMostEarlyOfOne + 1; ++i) {
      calls.push_back(Submit(OnGpu(principal)));
      scheduler_.Arrived(calls.back().id, {.input = 0, .bytes = 100});
    }
  }
  EXPECT_THAT(worker->arrivals(), SizeIs(Scheduler::kMostEarly));
  EXPECT_EQ(worker->arrivals().back().first, calls[2 * Scheduler::kMostEarlyOfOne].id);

  scheduler_.Cancel(calls[0].id, absl::CancelledError("by the client"));
  scheduler_.Arrived(calls.back().id, {.input = 0, .bytes = 200});
  EXPECT_THAT(worker->arrivals().back(), Pair(calls.back().id, 200));
}

TEST_F(SchedulerEarlyTest, TheNextWorkerHearsOfItAnew) {
  const auto first = Ready(1);
  const Call call = Submit(OnGpu());
  scheduler_.Arrived(call.id, {.input = 0, .bytes = 100});
  scheduler_.OnWorkerLost(device_, 1,
                          {.reason = "signal", .signal = SIGKILL, .detail = "signal 9"});
  scheduler_.Arrived(call.id, {.input = 0, .bytes = 200});
  EXPECT_THAT(first->arrivals(), SizeIs(1));

  const auto second = Ready(2);
  scheduler_.Arrived(call.id, {.input = 0, .bytes = 300});
  EXPECT_THAT(second->arrivals(), ElementsAre(Pair(call.id, 300)));
  scheduler_.Start(call.id);
  EXPECT_THAT(second->orders(), ElementsAre(call.id));
  EXPECT_THAT(first->cancels(), IsEmpty());
}

}  // namespace
}  // namespace gridclock
