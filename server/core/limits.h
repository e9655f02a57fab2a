// Every bound that the server keeps, in one place: defaults, names, flags, units, ranges. Each is a
// flag of gridclock-server and a gauge (gridclock_limit); those on what all clients hold together
// have another for what is in use (gridclock_usage).
#ifndef GRIDCLOCK_SERVER_CORE_LIMITS_H_
#define GRIDCLOCK_SERVER_CORE_LIMITS_H_

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/types/job.h"

namespace gridclock {

// Sizes in bytes, times in seconds, the rest are counts.
struct Limits {
  double message_bytes = 4 * 1024 * 1024 + 64 * 1024;
  double control_bytes = 256 * 1024;      // A message without its tensor bytes.
  double header_bytes = 4 * 1024 * 1024;  // A StreamRun header over all its messages.
  double chunk_bytes = 1024 * 1024;
  double inline_bytes = 1024 * 1024;  // Tensors of one message together, each way.
  double rpc_bytes = 0;               // 0: a quarter of the memory, at most 4 GiB.
  double arena_bytes = 0;             // 0: half of the memory, at most 16 GiB.
  double client_arena_bytes = 0;      // 0: half of arena_bytes.
  double queue = 256;                 // Per device.
  double client_queue = 128;          // Per principal, on one device.
  double streams = 128;               // Per connection.
  double connections = 1024;
  double peer_connections = 64;
  double queue_seconds = 60;             // A call without a deadline waits this long at most.
  double kernel_seconds = 30;            // A call that sets no kernel time limit.
  double max_kernel_seconds = 600;       // What a call may ask for.
  double turn_seconds = 10;              // Of a measurement while another waits.
  double submitted_kernel_seconds = 30;  // The same of submitted code.
  double stream_stall_seconds = 30;
  double stream_bytes_per_second = 64 * 1024;
  double stream_memory_bytes = 256 * 1024 * 1024;  // Beside the arena; of one client half of it.
  double window_bytes = 1024 * 1024;
  double request_ids = 1024;
  double request_id_bytes = 64 * 1024 * 1024;
  double request_id_seconds = 60;
  double metadata_bytes = 8 * 1024;
  double source_bytes = 256 * 1024;     // Submitted, with headers.
  double code_bytes = 4 * 1024 * 1024;  // Submitted PTX or cubin.
  double compile_log_bytes = 16 * 1024;
  double compile_seconds = 5;
  double compile_memory_bytes = 2.0 * 1024 * 1024 * 1024;
  double compiles = 2;        // At once; of one principal at most one less, but one.
  double compile_queue = 64;  // Of one principal half of it.
  double client_modules = 1024;
  double module_memory_bytes = 1024.0 * 1024 * 1024;  // Of one principal half of it.
  double module_cache_bytes = 1024.0 * 1024 * 1024;   // On disk.
  double guest_bytes = 0;                             // 0: as ResolveDefaults.
  double guest_idle_seconds = 60;                     // 0: as long as the server runs.
  double printed_bytes = static_cast<double>(kMostPrinted);
};

struct LimitSpec {
  absl::string_view name;  // Metric label and, with dashes, the flag: "queue" -> --limit-queue.
  absl::string_view unit;  // "bytes", "seconds", "jobs", ...
  absl::string_view help;
  double Limits::*member;
  double least = 0;
  double most = 1e15;  // A double holds every whole number up to here.
};
// All members, in the order above.
std::span<const LimitSpec> LimitSpecs();

// INVALID_ARGUMENT, naming both flags, for limits that contradict each other.
absl::Status CheckLimits(const Limits& limits);

// Fills what is 0 from the machine: the smaller of physical memory and the cgroup's limit.
// `guests`: processes for submitted code, one for each device. Where guest_bytes is 0 they have
// together no more than one alone would have or, where that is more, a quarter of the memory.
void ResolveDefaults(Limits& limits, std::uint64_t memory_bytes, std::size_t guests = 1);

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_CORE_LIMITS_H_
