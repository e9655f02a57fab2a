// What a device says of itself while it waits for work.
#ifndef GRIDCLOCK_PROTO_TYPES_VITALS_H_
#define GRIDCLOCK_PROTO_TYPES_VITALS_H_

#include <optional>

#include "proto/types/measure.h"

namespace gridclock {

struct DeviceVitals {
  DeviceState state;
  std::optional<bool> exclusive;  // No other process computes on it; unset: cannot be told.
  friend bool operator==(const DeviceVitals&, const DeviceVitals&) = default;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_PROTO_TYPES_VITALS_H_
