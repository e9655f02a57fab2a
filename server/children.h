// The programs that the server starts, as its options name them.
#ifndef GRIDCLOCK_SERVER_CHILDREN_H_
#define GRIDCLOCK_SERVER_CHILDREN_H_

#include <string>

#include "server/fleet/compiler.h"
#include "server/fleet/device_list.h"
#include "server/options.h"

namespace gridclock {

std::string WorkerPath(const ServerOptions& options);
CompilerOptions CompilerOptionsOf(const ServerOptions& options);

// What the worker program lists. A list that cannot be had is one of the CPU alone.
DeviceList DevicesHere(const ServerOptions& options);
// What the worker program said where it lists no GPU.
std::string WhyNoGpu(const DeviceList& list);

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_CHILDREN_H_
