// A worker that is spoken through by the test: its link is real, the process behind it is any that
// lives, and the scheduler has sent it orders.
#ifndef GRIDCLOCK_TESTS_UNIT_FLEET_SPOKEN_WORKER_H_
#define GRIDCLOCK_TESTS_UNIT_FLEET_SPOKEN_WORKER_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "proto/codec/worker.h"
#include "proto/types/status_page.h"
#include "server/fleet/fleet.h"
#include "server/fleet/worker.h"
#include "tests/support/fake_clock.h"
#include "tests/support/fake_worker.h"
#include "tests/support/status_matchers.h"

namespace gridclock {

inline constexpr std::uint64_t kArenaBytes = 1 << 20;  // The clients' part.
inline constexpr std::uint64_t kGeneration = 3;
inline constexpr MemoryRange kCanaryMemory{.offset = kArenaBytes, .size = ArenaAllocator::kPage};

inline KernelSpec Spec(const std::string& words) {
  KernelSpec spec = *ParseKernelSpec(words);
  VariantSpec& variant = spec.variants.emplace_back();
  variant.name = "plain";
  variant.device_kind = "cpu";
  return spec;
}

inline WorkerHello HelloOf(const std::string& device, std::vector<KernelSpec> kernels) {
  WorkerHello hello;
  hello.protocol = kWorkerProtocol;
  hello.device.name = device;
  hello.device.traits.kind = device;
  hello.device.units = 1;
  hello.kernels = std::move(kernels);
  return hello;
}

inline WorkerProcess AnyProcess(const Arena& arena) {
  return *WorkerProcess::Spawn({.path = "/bin/sleep",
                                .args = {"3600"},
                                .environment = {},
                                .link_fd = arena.fd(),
                                .arena_fd = arena.fd(),
                                .status_fd = arena.fd()});
}

class SpokenWorkerTest : public ::testing::Test {
 protected:
  SpokenWorkerTest() {
    auto ends = *PacketSocket::Pair();
    worker_end_.emplace(std::move(ends.second));
    worker_ = std::make_shared<Worker>(
        Worker::Parts{.role = WorkerRole::kTrusted,
                      .process = AnyProcess(arena_),
                      .link = std::make_unique<PacketLink>(std::move(ends.first)),
                      .status = *StatusMemory::Create(),
                      .arena = arena_,
                      .on_unsendable = [](JobId, absl::Status) {},
                      .wake = [] {}});
  }

  FleetContext Context() {
    return {.table = table_,
            .scheduler = scheduler_,
            .clock = clock_,
            .observer = observer_,
            .arena = arena_,
            .allocator = allocator_};
  }

  // The next order that was sent to the worker.
  std::optional<worker::v1::Order> NextOrder() {
    PacketBatch batch(1, kFrameLimit);
    const auto read = worker_end_->ReceiveBatch(batch, Wait::kNo);
    if (!read.ok() || *read != PacketSocket::Read::kPackets) return std::nullopt;
    worker::v1::FromServer frame;
    EXPECT_TRUE(frame.ParseFromArray(batch[0].data(), static_cast<int>(batch[0].size())));
    return frame.order();
  }
  // Puts a job into the worker's hands.
  JobId Send() {
    Job job;
    job.kernel = "spin";
    job.variant = "plain";
    job.device = "cpu";
    job.memory.size = ArenaAllocator::kPage;
    job.arrived = clock_.Now();
    job.deadline = absl::InfiniteFuture();
    job.kernel_time_limit = absl::Seconds(30);
    listener_ = std::make_shared<FakeListener>();
    const auto id = scheduler_.Submit(std::move(job), listener_, false);
    EXPECT_THAT(id, IsOk());
    scheduler_.Start(*id);
    EXPECT_TRUE(NextOrder().has_value());
    return *id;
  }

  FakeClock clock_;
  FakeObserver observer_;
  Arena arena_ = *Arena::Create(kArenaBytes + kCanaryMemory.size, 0);
  ArenaAllocator allocator_{kArenaBytes, kArenaBytes};
  KernelTable table_{{"cpu"}};
  Scheduler scheduler_{clock_, Limits(), allocator_, observer_};
  std::optional<PacketSocket> worker_end_;
  std::shared_ptr<Worker> worker_;          // The scheduler's too.
  std::shared_ptr<FakeListener> listener_;  // Of the last job; the scheduler's too.
};

inline worker::v1::ToServer DoneOf(JobId id, std::uint64_t generation = kGeneration) {
  worker::v1::ToServer frame;
  frame.mutable_done()->set_id(id);
  frame.mutable_done()->set_generation(generation);
  frame.mutable_done()->set_variant("plain");
  return frame;
}

}  // namespace gridclock

#endif  // GRIDCLOCK_TESTS_UNIT_FLEET_SPOKEN_WORKER_H_
