// The devices of this machine, as the worker program lists them, and those of them that are served.
#ifndef GRIDCLOCK_SERVER_FLEET_DEVICE_LIST_H_
#define GRIDCLOCK_SERVER_FLEET_DEVICE_LIST_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace gridclock {

// A device that the machine has, or that is served.
struct ListedDevice {
  std::string name;  // "cuda:0".
  std::string kind, uuid, model;
  friend bool operator==(const ListedDevice&, const ListedDevice&) = default;
};
struct DeviceList {
  std::vector<ListedDevice> devices;
  std::string remarks;  // What else the program said: why there is no GPU.
};

// What `text`, lines of JSON and of remarks, lists. INVALID_ARGUMENT for a line of JSON that is no
// device.
absl::StatusOr<DeviceList> ParseDeviceList(absl::string_view text);

// Runs `worker_path --list-devices`. DEADLINE_EXCEEDED if that takes longer than `limit`,
// RESOURCE_EXHAUSTED if it says more than 64 KiB, INTERNAL if it ends with an error.
absl::StatusOr<DeviceList> ListDevices(const std::string& worker_path,
                                       const std::vector<std::string>& environment,
                                       absl::Duration limit);

// What `wanted` names: "auto" is every GPU, or the CPU where there is none; "cuda" every GPU; else
// names and UUIDs separated by commas: "cpu,cuda:0", "GPU-...", "MIG-...". A MIG instance need not
// be listed, as a driver lists at most one. FAILED_PRECONDITION, which says what there is, for a
// device that is not here; INVALID_ARGUMENT for one named twice or for none.
absl::StatusOr<std::vector<ListedDevice>> SelectDevices(absl::string_view wanted,
                                                        const DeviceList& list);

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_FLEET_DEVICE_LIST_H_
