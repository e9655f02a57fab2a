#include "server/core/limits.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "absl/strings/str_cat.h"

namespace gridclock {
namespace {

constexpr double kMostInt = std::numeric_limits<int>::max();  // gRPC takes these as int.

// Below these no call fits: a request, its metadata, a piece of a tensor that is worth a message.
constexpr double kLeastMessage = 16 * 1024;
constexpr double kLeastPart = 4 * 1024;
// What clients receive by default is 4 MiB, with all that stands around the tensors.
constexpr double kMostInline = 4 * 1024 * 1024 - 64 * 1024;
constexpr double kLeastSeconds = 0.001;  // The least kernel time that a call may ask for.

constexpr double kMostCode = 8 * 1024 * 1024;  // What compiler and links are made for.
constexpr double kLeastCompileMemory = 512.0 * 1024 * 1024;

constexpr LimitSpec kSpecs[] = {
    {"message_bytes", "bytes",
     "Longest message that is taken; up to twice as long it is held until it is whole, and "
     "refused.",
     &Limits::message_bytes, kLeastMessage, kMostInt},
    {"control_bytes", "bytes", "Longest message without its tensor bytes.", &Limits::control_bytes,
     kLeastPart},
    {"header_bytes", "bytes", "Longest header of a StreamRun, over all its messages.",
     &Limits::header_bytes, kLeastPart},
    {"chunk_bytes", "bytes", "Longest chunk of a stream that is received.", &Limits::chunk_bytes,
     kLeastPart},
    {"inline_bytes", "bytes", "Tensors inside one message, all together, each way.",
     &Limits::inline_bytes, 0, kMostInline},
    {"rpc_bytes", "bytes",
     "Messages on their way in and out, of all clients; 0: a quarter of the memory, at most 4 GiB.",
     &Limits::rpc_bytes},
    {"arena_bytes", "bytes",
     "Tensors in flight, of all clients, 4 KiB or more; 0: half of the memory, at most 16 GiB.",
     &Limits::arena_bytes},
    {"client_arena_bytes", "bytes", "Tensors in flight of one client; 0: half of arena_bytes.",
     &Limits::client_arena_bytes},
    {"queue", "jobs",
     "Calls that wait for one device, behind the one that runs; as many more may wait for memory "
     "or inputs.",
     &Limits::queue, 1},
    {"client_queue", "jobs",
     "Calls of one client that wait for one device; as many more may wait for memory or inputs.",
     &Limits::client_queue, 1},
    {"streams", "calls", "Concurrent calls on one connection.", &Limits::streams, 1, kMostInt},
    {"connections", "connections", "Connections, of all clients.", &Limits::connections, 1},
    {"peer_connections", "connections",
     "Connections from one address; of IPv6, from one network of 64 bits.",
     &Limits::peer_connections, 1},
    {"queue_seconds", "seconds", "Longest wait for a worker of a call without a deadline.",
     &Limits::queue_seconds},
    {"kernel_seconds", "seconds", "Kernel time of a call that sets no limit of its own.",
     &Limits::kernel_seconds, kLeastSeconds},
    {"max_kernel_seconds", "seconds", "Longest kernel time that a call may ask for.",
     &Limits::max_kernel_seconds, kLeastSeconds},
    {"turn_seconds", "seconds",
     "How long a call measures while another principal's waits for its device; then it ends with "
     "what it has.",
     &Limits::turn_seconds},
    {"submitted_kernel_seconds", "seconds",
     "Longest kernel time, and measurement, that a call of submitted code may ask for.",
     &Limits::submitted_kernel_seconds, kLeastSeconds},
    {"stream_stall_seconds", "seconds", "How long a call waits for its client to send or read.",
     &Limits::stream_stall_seconds},
    {"stream_bytes_per_second", "bytes per second",
     "Least rate of a stream's client, beyond stream_stall_seconds in all that it may pause.",
     &Limits::stream_bytes_per_second, 1},
    {"stream_memory_bytes", "bytes",
     "Headers of streams, and samples that wait to be sent, of all clients; of one "
     "client half of it.",
     &Limits::stream_memory_bytes},
    {"window_bytes", "bytes", "Flow control window of a stream.", &Limits::window_bytes, kLeastPart,
     kMostInt},
    {"request_ids", "entries", "Request ids that are remembered.", &Limits::request_ids},
    {"request_id_bytes", "bytes", "Answers that are kept for request ids, all together.",
     &Limits::request_id_bytes},
    {"request_id_seconds", "seconds", "How long a request id is remembered.",
     &Limits::request_id_seconds},
    {"metadata_bytes", "bytes", "Metadata of one call.", &Limits::metadata_bytes, 1024, kMostInt},
    {"source_bytes", "bytes", "Submitted source with its headers.", &Limits::source_bytes, 1,
     kMostCode},
    {"code_bytes", "bytes", "Submitted PTX or cubin.", &Limits::code_bytes, 1, kMostCode},
    {"compile_log_bytes", "bytes", "Longest log of a compile that is kept.",
     &Limits::compile_log_bytes, 1024, kMostCode},
    {"compile_seconds", "seconds", "Time of one compile, on the CPU and by the clock.",
     &Limits::compile_seconds, 1, 600},
    {"compile_memory_bytes", "bytes", "Address space of one compile.",
     &Limits::compile_memory_bytes, kLeastCompileMemory},
    {"compiles", "compiles", "Compiles at once; of one client one less, but at least one.",
     &Limits::compiles, 1, 64},
    {"compile_queue", "compiles", "Compiles that wait; of one client half of it.",
     &Limits::compile_queue, 2},
    {"client_modules", "modules", "Modules of one client.", &Limits::client_modules, 1},
    {"module_memory_bytes", "bytes", "Modules in memory, of all clients; of one client half of it.",
     &Limits::module_memory_bytes},
    {"module_cache_bytes", "bytes", "Modules on disk, under --module-cache.",
     &Limits::module_cache_bytes},
    {"guest_bytes", "bytes",
     "Memory that a process for submitted code shares with the server, for tensors and code; 0: "
     "client_arena_bytes and 256 MiB more, and of several devices together as much as that or, "
     "where it is more, a quarter of the memory.",
     &Limits::guest_bytes},
    {"guest_idle_seconds", "seconds",
     "How long a process for submitted code stays without a call; 0: for ever.",
     &Limits::guest_idle_seconds},
    {"printed_bytes", "bytes", "What one call of submitted code may print; the rest is cut.",
     &Limits::printed_bytes, 0, static_cast<double>(kMostPrinted)},
};
static_assert(sizeof(Limits) == std::size(kSpecs) * sizeof(double),
              "every member of Limits stands in the table");

constexpr double kAroundChunk = 1024;  // What a message has beside its chunk's bytes, at most.

constexpr double kPage = 4096;
constexpr double kMaxArena = 16.0 * 1024 * 1024 * 1024;
constexpr double kGuestCode = 256.0 * 1024 * 1024;
constexpr double kMaxRpc = 4.0 * 1024 * 1024 * 1024;

double WholePages(double bytes) {
  return static_cast<double>(static_cast<std::uint64_t>(bytes / kPage)) * kPage;
}

}  // namespace

std::span<const LimitSpec> LimitSpecs() {
  return kSpecs;
}

absl::Status CheckLimits(const Limits& limits) {
  if (limits.arena_bytes != 0 && limits.arena_bytes < kPage) {
    return absl::InvalidArgumentError(absl::StrCat("--limit-arena-bytes ", limits.arena_bytes,
                                                   " is too little for any call: want ", kPage,
                                                   " or more, or 0 for half of the memory"));
  }
  const double least = limits.chunk_bytes + kAroundChunk;
  if (limits.message_bytes >= least) return absl::OkStatus();
  const auto whole = [](double bytes) { return static_cast<std::uint64_t>(bytes); };
  return absl::InvalidArgumentError(absl::StrCat(
      "--limit-message-bytes ", whole(limits.message_bytes),
      " is too short for the chunks that --limit-chunk-bytes ", whole(limits.chunk_bytes),
      " allows: want ", whole(least), " or more, or shorter chunks"));
}

void ResolveDefaults(Limits& limits, std::uint64_t memory_bytes, std::size_t guests) {
  if (limits.arena_bytes == 0) {
    limits.arena_bytes = std::min(WholePages(static_cast<double>(memory_bytes) / 2), kMaxArena);
  }
  if (limits.rpc_bytes == 0) {
    limits.rpc_bytes = std::min(WholePages(static_cast<double>(memory_bytes) / 4), kMaxRpc);
  }
  if (limits.client_arena_bytes == 0) limits.client_arena_bytes = limits.arena_bytes / 2;
  // Memory is given out in pages: what admission holds a job against is what it can get.
  limits.arena_bytes = WholePages(limits.arena_bytes);
  limits.client_arena_bytes = std::max(WholePages(limits.client_arena_bytes), kPage);
  if (limits.guest_bytes == 0) {
    const double wanted = limits.client_arena_bytes + kGuestCode;
    const double all = std::max(wanted, static_cast<double>(memory_bytes) / 4);
    limits.guest_bytes =
        std::min(wanted, all / static_cast<double>(std::max<std::size_t>(guests, 1)));
  }
  limits.guest_bytes = std::max(WholePages(limits.guest_bytes), kPage);
}

}  // namespace gridclock
