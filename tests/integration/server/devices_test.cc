// What the worker program says of devices, wherever it runs: on a machine with GPUs and on one that
// has not even a driver.
#include "server/fleet/device_list.h"
#include "server/fleet/worker_process.h"
#include "tests/support/server_process.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

TEST(Devices, TheWorkerListsTheCpuLast) {
  ASSERT_OK_AND_ASSIGN(const DeviceList list, ListDevices(BinaryPath("gridclock-worker"),
                                                          WorkerEnvironment(), absl::Seconds(60)));

  ASSERT_FALSE(list.devices.empty());
  EXPECT_EQ(list.devices.back().name, "cpu");
  EXPECT_FALSE(list.devices.back().model.empty());
  // Without a GPU it says why there is none.
  EXPECT_EQ(list.remarks.empty(), list.devices.size() > 1) << list.remarks;
}

}  // namespace
}  // namespace gridclock
