// What a device says of itself, for who asks beside the thread that works with it.
#ifndef GRIDCLOCK_KERNELS_DEVICE_MONITOR_H_
#define GRIDCLOCK_KERNELS_DEVICE_MONITOR_H_

#include <memory>
#include <string>

#include "proto/types/vitals.h"

namespace gridclock {

// Not thread-safe.
class DeviceMonitor {
 public:
  virtual ~DeviceMonitor() = default;
  // Takes about a millisecond of the driver's time: not to be called while something is timed.
  virtual DeviceVitals Read() = 0;
};

// Of the GPU with this UUID; null where the driver's library tells nothing of it.
std::unique_ptr<DeviceMonitor> MonitorOf(const std::string& uuid);

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_DEVICE_MONITOR_H_
