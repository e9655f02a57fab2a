// The devices as those who ask for their state see them.
#ifndef GRIDCLOCK_SERVER_CORE_DEVICE_STATES_H_
#define GRIDCLOCK_SERVER_CORE_DEVICE_STATES_H_

#include <vector>

#include "server/core/kernel_table.h"
#include "server/core/scheduler.h"

namespace gridclock {

// Those of the table; one that is ready there and whose worker holds orders is busy.
std::vector<DeviceStatus> DevicesNow(const KernelTable& table, const Scheduler& scheduler);

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_CORE_DEVICE_STATES_H_
