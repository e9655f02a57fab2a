#include "server/core/device_states.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::HasSubstr;

std::vector<DeviceStatus> Devices(WorkerState first, WorkerState second) {
  std::vector<DeviceStatus> devices(2);
  devices[0].info.name = "cuda:0";
  devices[0].state = first;
  devices[1].info.name = "cuda:1";
  devices[1].state = second;
  return devices;
}

TEST(FirstWorkers, AQuarantinedDeviceThatWasNeverReadyIsNamed) {
  FirstWorkers first({"cuda:0", "cuda:1"});
  EXPECT_THAT(first.Look(Devices(WorkerState::kStarting, WorkerState::kDead)), IsOk());
  EXPECT_THAT(first.Look(Devices(WorkerState::kReady, WorkerState::kDead)), IsOk());
  EXPECT_THAT(first.Look(Devices(WorkerState::kReady, WorkerState::kQuarantined)),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("device 'cuda:1'")));
}

TEST(FirstWorkers, WhatHappensToADeviceThatWasServedIsNoFailureOfTheStart) {
  FirstWorkers first({"cuda:0", "cuda:1"});
  EXPECT_THAT(first.Look(Devices(WorkerState::kReady, WorkerState::kStarting)), IsOk());
  EXPECT_THAT(first.Look(Devices(WorkerState::kQuarantined, WorkerState::kReady)), IsOk());
  EXPECT_THAT(first.Look(Devices(WorkerState::kQuarantined, WorkerState::kQuarantined)), IsOk());
}

}  // namespace
}  // namespace gridclock
