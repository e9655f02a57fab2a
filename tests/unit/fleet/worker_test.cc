// What the scheduler says to a worker, as far as it reaches it.
#include "server/fleet/worker.h"

#include "tests/unit/fleet/spoken_worker.h"

namespace gridclock {
namespace {

using FleetWorkerTest = SpokenWorkerTest;

Job SomeJob() {
  Job job;
  job.id = 1;
  job.kernel = "spin";
  job.deadline = absl::InfiniteFuture();
  return job;
}

TEST_F(FleetWorkerTest, IsDeafOnceItsLinkHasEnded) {
  EXPECT_TRUE(worker_->Send(SomeJob(), kGeneration));
  EXPECT_FALSE(worker_->deaf());
  worker_end_.reset();
  EXPECT_FALSE(worker_->Send(SomeJob(), kGeneration));
  EXPECT_TRUE(worker_->deaf());
}

TEST_F(FleetWorkerTest, IsDeafIfItDoesNotRead) {
  std::size_t sent = 0;
  while (worker_->Send(SomeJob(), kGeneration) && sent < 1'000'000) ++sent;
  EXPECT_TRUE(worker_->deaf());
  EXPECT_GT(sent, PacketLink::kMostPending);
}

}  // namespace
}  // namespace gridclock
