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

// The clients' part of the arena may be full by then.
TEST_F(FleetWorkerTest, ALongOrderGoesThroughItsJobsOwnMemory) {
  ASSERT_OK_AND_ASSIGN(const auto all, allocator_.Reserve(allocator_.capacity(), "ann"));
  Job job = SomeJob();
  job.inputs.resize(1);
  job.inputs[0].value = {.is_list = true,
                         .tensors = std::vector<TensorSpec>(40'000, {DType::kF32, {0}})};
  job.memory = job.order = {.offset = ArenaAllocator::kPage, .size = MostOrderBytes(job)};
  EXPECT_TRUE(worker_->Send(job, kGeneration));

  PacketBatch batch(1, kFrameLimit);
  ASSERT_THAT(worker_end_->ReceiveBatch(batch, Wait::kNo), IsOk());
  worker::v1::FromServer frame;
  ASSERT_TRUE(frame.ParseFromArray(batch[0].data(), static_cast<int>(batch[0].size())));
  EXPECT_EQ(frame.long_message().offset(), ArenaAllocator::kPage);
  const auto bytes = arena_.At({frame.long_message().offset(), frame.long_message().size()});
  worker::v1::FromServer order;
  ASSERT_TRUE(order.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())));
  EXPECT_EQ(order.order().id(), job.id);
  EXPECT_EQ(order.order().inputs(0).spec().ranks_size(), 40'000);
}

TEST_F(FleetWorkerTest, SaysWhatHasArrivedOfAnInput) {
  Job job = SomeJob();
  job.inputs.resize(2);
  job.inputs[1].memory = {.offset = 4096, .size = 8192};
  worker_->Arrived(job, kGeneration, {.input = 1, .bytes = 100});

  PacketBatch batch(1, kFrameLimit);
  ASSERT_THAT(worker_end_->ReceiveBatch(batch, Wait::kNo), IsOk());
  worker::v1::FromServer frame;
  ASSERT_TRUE(frame.ParseFromArray(batch[0].data(), static_cast<int>(batch[0].size())));
  ASSERT_OK_AND_ASSIGN(const WorkerArrival arrival, Decode(frame.arrival(), kArenaBytes));
  EXPECT_EQ(arrival.id, 1U);
  EXPECT_EQ(arrival.generation, kGeneration);
  EXPECT_EQ(arrival.input, 1U);
  EXPECT_EQ(arrival.memory, (MemoryRange{.offset = 4096, .size = 8192}));
  EXPECT_EQ(arrival.bytes, 100U);
}

// Else a client could have a worker that is busy taken for lost.
TEST_F(FleetWorkerTest, ArrivalsNeverWaitForAWorkerThatDoesNotRead) {
  Job job = SomeJob();
  job.inputs.resize(1);
  job.inputs[0].memory = {.offset = 0, .size = 4096};
  for (int i = 0; i < 100'000; ++i) worker_->Arrived(job, kGeneration, {.input = 0, .bytes = 1});
  EXPECT_FALSE(worker_->deaf());
  EXPECT_TRUE(worker_->Send(SomeJob(), kGeneration));
}

}  // namespace
}  // namespace gridclock
