#include "server/core/device_states.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gridclock {
namespace {

using ::testing::HasSubstr;

const absl::Time kNow = absl::UnixEpoch(), kGiveUp = kNow + absl::Minutes(5);

std::vector<DeviceStatus> Devices(WorkerState first, WorkerState second) {
  std::vector<DeviceStatus> devices(2);
  devices[0].info.name = "cuda:0";
  devices[0].state = first;
  devices[1].info.name = "cuda:1";
  devices[1].state = second;
  return devices;
}

class FirstWorkersTest : public ::testing::Test {
 protected:
  std::string Look(WorkerState one, WorkerState other, absl::Time now = kNow) {
    const absl::StatusOr<bool> all = first_.Look(Devices(one, other), now);
    if (!all.ok()) return std::string(all.status().message());
    return *all ? "all" : "not yet";
  }
  FirstWorkers first_{{"cuda:0", "cuda:1"}, kGiveUp};
};

TEST_F(FirstWorkersTest, AllAreServedOnceEachWasReadyThoughNotAtOneTime) {
  EXPECT_EQ(Look(WorkerState::kStarting, WorkerState::kDead), "not yet");
  EXPECT_EQ(Look(WorkerState::kReady, WorkerState::kStarting), "not yet");
  EXPECT_EQ(Look(WorkerState::kDead, WorkerState::kReady), "all");
}

TEST_F(FirstWorkersTest, AQuarantinedDeviceThatWasNeverReadyIsNamed) {
  EXPECT_EQ(Look(WorkerState::kReady, WorkerState::kDead), "not yet");
  EXPECT_THAT(Look(WorkerState::kReady, WorkerState::kQuarantined), HasSubstr("device 'cuda:1'"));
}

TEST_F(FirstWorkersTest, SoIsOneThatIsStillStartingWhenItsTimeIsOver) {
  EXPECT_EQ(Look(WorkerState::kReady, WorkerState::kStarting, kGiveUp - absl::Seconds(1)),
            "not yet");
  EXPECT_THAT(Look(WorkerState::kReady, WorkerState::kStarting, kGiveUp),
              HasSubstr("device 'cuda:1'"));
  EXPECT_EQ(Look(WorkerState::kReady, WorkerState::kReady, kGiveUp), "all");
}

TEST_F(FirstWorkersTest, WhatHappensToADeviceThatWasServedIsNoFailureOfTheStart) {
  EXPECT_EQ(Look(WorkerState::kReady, WorkerState::kStarting), "not yet");
  EXPECT_EQ(Look(WorkerState::kQuarantined, WorkerState::kReady), "all");
  EXPECT_EQ(Look(WorkerState::kQuarantined, WorkerState::kQuarantined), "all");
}

}  // namespace
}  // namespace gridclock
