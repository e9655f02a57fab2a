// What a scrape asks the rest of the server. Each function is called from an HTTP thread, must be
// thread-safe and quick; one that is not set leaves its metrics out.
#ifndef GRIDCLOCK_SERVER_METRICS_SOURCES_H_
#define GRIDCLOCK_SERVER_METRICS_SOURCES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/core/kernel_table.h"
#include "server/core/limits.h"
#include "server/core/reloader.h"
#include "server/core/scheduler.h"

namespace gridclock {

struct Sources {
  // What /readyz says; "": ready. Not set: ready when a device takes calls.
  std::function<std::string()> not_ready;
  // KernelTable::Find(name).ok(): the closed set of the label `kernel`.
  std::function<bool(absl::string_view kernel)> knows_kernel;
  std::function<std::vector<DeviceStatus>()> devices;                    // DevicesNow.
  std::function<std::map<std::string, Scheduler::Usage>()> queue_usage;  // Scheduler::usage.
  // Of each name of LimitSpecs() that can be in use: "queue", "arena_bytes", "connections", ...
  std::function<std::map<std::string, double>()> limit_usage;
  std::function<bool()> compiler_up;  // Not set: this server compiles nothing.
  std::function<std::vector<Reloader::Part>()> reloads;
  std::function<absl::Time()> certificate_expiry;  // Not set: this server has no TLS.
  std::function<std::size_t()> open_connections;   // Acceptor::usage.
  Limits limits;  // Resolved; shown as gridclock_limit, and queue as the capacity of each queue.
  std::function<std::uint64_t()> dropped_log_lines;
  std::function<std::uint64_t()> protobuf_complaints;  // Lines that protobuf wanted to log.
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_METRICS_SOURCES_H_
