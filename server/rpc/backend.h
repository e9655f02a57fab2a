// What the services stand on: everything is borrowed from main and outlives the rpc server.
#ifndef GRIDCLOCK_SERVER_RPC_BACKEND_H_
#define GRIDCLOCK_SERVER_RPC_BACKEND_H_

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "proto/codec/request.h"
#include "proto/types/job.h"
#include "server/core/admin.h"
#include "server/core/arrivals.h"
#include "server/core/byte_budget.h"
#include "server/core/compile_observer.h"
#include "server/core/idempotency.h"
#include "server/core/kernel_table.h"
#include "server/core/limits.h"
#include "server/core/module_maker.h"
#include "server/core/module_table.h"
#include "server/core/observer.h"
#include "server/core/programs.h"
#include "server/core/reloader.h"
#include "server/core/rpc_observer.h"
#include "server/core/scheduler.h"

namespace gridclock {

class Authenticator;
class CallsInFlight;
class ReadGate;
class StallWatch;

struct Versions {
  std::string version, revision;
  std::map<std::string, std::string> libraries;
};

// The bytes of a range of the arena.
using ArenaMemory = std::function<std::span<std::byte>(const MemoryRange&)>;

// Where the server takes code of clients.
struct ModuleBackend {
  ModuleTable& table;
  ModuleMaker& maker;
  CompileObserver& observer;
  Programs& programs;
  bool allow_cubin = false;
  Arrivals* arrivals = nullptr;  // Null: nothing is copied to guests before its order.
};

struct Backend {
  const Clock& clock;
  const Limits& limits;
  const KernelTable& table;
  Scheduler& scheduler;
  RequestIds& request_ids;
  const Authenticator& authenticator;
  RpcObserver& observer;
  JobObserver& job_observer;
  StallWatch& stalls;
  CallsInFlight& calls;
  // Of each client, on their way in: what may be large, what is small, and what comes on a stream
  // whose inputs are here.
  ReadGate &requests, &small_requests, &stream_ends;
  ByteBudget& stream_memory;
  ArenaMemory memory;
  // By name of limit, of those that can be in use.
  std::function<std::map<std::string, double>()> limit_usage;
  std::function<bool()> draining;
  Admin& admin;
  std::function<absl::Status(Reloader::Done)> reload;  // As Reloader::Reload, and lines in the log.
  Versions versions;
  absl::Time started;
  std::optional<ModuleBackend> modules;  // Under --allow-submit.
};

inline RequestLimits RequestLimitsOf(const Limits& limits) {
  return {.control_bytes = static_cast<std::uint64_t>(limits.control_bytes),
          .header_bytes = static_cast<std::uint64_t>(limits.header_bytes),
          .inline_bytes = static_cast<std::uint64_t>(limits.inline_bytes),
          .chunk_bytes = static_cast<std::uint64_t>(limits.chunk_bytes)};
}

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_RPC_BACKEND_H_
