// The devices of a server as text for people.
#ifndef GRIDCLOCK_CLIENT_CLI_DEVICES_H_
#define GRIDCLOCK_CLIENT_CLI_DEVICES_H_

#include <span>
#include <string>

#include "gridclock/v1/system.pb.h"

namespace gridclock::cli {

// A line for each, and below them what only a GPU has.
std::string DevicesText(std::span<const v1::Device> devices);

}  // namespace gridclock::cli

#endif  // GRIDCLOCK_CLIENT_CLI_DEVICES_H_
