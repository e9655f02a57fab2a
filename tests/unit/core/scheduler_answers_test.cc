// Several answers at once, and who may wait for one.
#include <array>
#include <memory>
#include <vector>

#include "server/core/scheduler.h"
#include "tests/support/fake_clock.h"
#include "tests/support/fake_worker.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::uint64_t kPage = ArenaAllocator::kPage;

class SchedulerAnswersTest : public ::testing::Test {
 protected:
  SchedulerAnswersTest() { scheduler_.OnWorkerReady("cpu", worker_, 1); }

  JobId Start(std::uint64_t bytes = kPage) {
    Job job;
    job.kernel = "square";
    job.device = "cpu";
    job.memory.size = bytes;
    job.arrived = clock_.Now();
    job.deadline = absl::InfiniteFuture();
    job.kernel_time_limit = absl::Seconds(30);
    const auto id = scheduler_.Submit(std::move(job), std::make_shared<FakeListener>(), false);
    EXPECT_THAT(id, IsOk());
    scheduler_.Start(*id);
    return *id;
  }
  std::vector<JobId> Done(std::vector<JobId> ids) {
    std::vector<Scheduler::WorkerAnswer> answers;
    answers.reserve(ids.size());
    for (const JobId id : ids) {
      answers.push_back({.id = id, .result = {.status = absl::OkStatus(), .outcome = Outcome{}}});
    }
    return scheduler_.OnDone(1, answers);
  }

  FakeClock clock_;
  FakeObserver observer_;
  ArenaAllocator arena_{128 * kPage, 128 * kPage};
  Scheduler scheduler_{clock_, Limits(), arena_, observer_};
  std::shared_ptr<FakeWorker> worker_ = std::make_shared<FakeWorker>();
};

TEST_F(SchedulerAnswersTest, OrdersThatTakeThePlacesOfAnsweredOnesGoOutTogether) {
  std::vector<JobId> ids(20);
  for (JobId& id : ids) id = Start();
  ASSERT_EQ(worker_->orders().size(), Scheduler::kSmallWindow);
  const std::size_t before = worker_->sends();
  EXPECT_THAT(Done({ids[0], ids[1], ids[2], ids[3]}), IsEmpty());
  EXPECT_EQ(worker_->orders(), ids);
  EXPECT_EQ(worker_->sends(), before + 1);
}

TEST_F(SchedulerAnswersTest, MoreWaitAtAWorkerThatIsKnownToBeQuick) {
  const JobId first = Start();
  clock_.Advance(absl::Microseconds(20));
  EXPECT_THAT(Done({first}), IsEmpty());
  for (int i = 0; i < 70; ++i) Start();
  EXPECT_EQ(worker_->orders().size(), 1 + Scheduler::kQuickWindow);
}

TEST_F(SchedulerAnswersTest, FewerWhereRunsTakeLonger) {
  const JobId first = Start();
  clock_.Advance(absl::Milliseconds(10));
  EXPECT_THAT(Done({first}), IsEmpty());
  for (int i = 0; i < 70; ++i) Start();
  EXPECT_EQ(worker_->orders().size(), 1 + Scheduler::kSmallWindow);
}

TEST_F(SchedulerAnswersTest, E9_StrangersAmongTheAnswersAreNamedAndTheOthersTaken) {
  const JobId first = Start(), second = Start();
  EXPECT_THAT(Done({first, 77, first, second}), ElementsAre(77, first));
  EXPECT_TRUE(scheduler_.idle());
}

TEST_F(SchedulerAnswersTest, ALoneSmallOrderMayBeAwaited) {
  clock_.Advance(absl::Seconds(1));
  const JobId id = Start();
  EXPECT_THAT(worker_->awaited(), ElementsAre(id));
}

TEST_F(SchedulerAnswersTest, OneOfManyMayNot) {
  clock_.Advance(absl::Seconds(1));
  const JobId first = Start();
  Start();  // Beside another.
  EXPECT_THAT(Done({first, first + 1}), IsEmpty());
  Start();  // Alone, but right behind others.
  EXPECT_THAT(worker_->awaited(), ElementsAre(first));
}

TEST_F(SchedulerAnswersTest, NorOneThatIsLargeOrWhereRunsTakeLong) {
  clock_.Advance(absl::Seconds(1));
  const JobId large = Start(Scheduler::kSmallBytes + kPage);
  clock_.Advance(absl::Milliseconds(10));
  EXPECT_THAT(Done({large}), IsEmpty());
  clock_.Advance(absl::Seconds(1));
  Start();
  EXPECT_THAT(worker_->awaited(), IsEmpty());
}

}  // namespace
}  // namespace gridclock
