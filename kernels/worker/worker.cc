#include "kernels/worker/worker.h"

#include <atomic>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "kernels/api/registry.h"
#include "kernels/device/cpu/cpu_device.h"
#include "kernels/worker/heartbeat.h"
#include "kernels/worker/loop.h"
#include "kernels/worker/process.h"
#include "kernels/worker/session.h"

namespace gridclock {
namespace {

struct Flags {
  std::string device = "cpu";
  std::string role = "trusted";
  std::uint64_t arena_bytes = 0;
  std::uint64_t memory_bytes = 0;
  int threads = 0;
  std::string calibration;
};

void Declare(CLI::App& app, Flags& flags) {
  app.add_option("--device", flags.device, "The device to serve: cpu")
      ->check(CLI::IsMember({"cpu"}));
  app.add_option("--role", flags.role, "trusted: runs the catalogue")
      ->check(CLI::IsMember({"trusted"}));
  app.add_option("--arena-bytes", flags.arena_bytes, "Size of the arena on descriptor 4")
      ->required();
  app.add_option("--memory-bytes", flags.memory_bytes,
                 "Address space that the process may use; 0: what arena and copies can need");
  app.add_option("--calibration", flags.calibration,
                 "What a worker before this one measured; empty: measure");
  app.add_option("--threads", flags.threads, "Threads of the CPU device; 0: all CPUs it may use");
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kShadowMemory = true;
#else
constexpr bool kShadowMemory = false;
#endif

absl::Status LimitMemory(const Flags& flags) {
  // Sanitizers reserve terabytes of address space.
  if (kShadowMemory) return absl::OkStatus();
  // The arena, a saved copy of all that is in it, and room for stacks, scratch and cache flushing.
  constexpr std::uint64_t kRoom = std::uint64_t{8} << 30;
  return LimitAddressSpace(flags.memory_bytes != 0 ? flags.memory_bytes
                                                   : 2 * flags.arena_bytes + kRoom);
}

absl::StatusOr<std::unique_ptr<CpuDevice>> MakeDevice(const Flags& flags,
                                                      const std::string& level) {
  CpuDevice::Options options{.threads = flags.threads, .level = level};
  if (!flags.calibration.empty()) {
    GC_ASSIGN_OR_RETURN(options.calibration, CalibrationFromText(flags.calibration));
  }
  return CpuDevice::Create(options);
}

WorkerHello MakeHello(const CpuDevice& device, const Registry& registry) {
  WorkerHello hello{.protocol = kWorkerProtocol,
                    .role = WorkerRole::kTrusted,
                    .device = device.info(),
                    .kernels = {},
                    .calibration = ""};
  // Without levels there was no memory to measure with.
  const Calibration& measured = device.calibration();
  if (!measured.levels.empty()) hello.calibration = ToText(measured);
  for (const auto& [name, kernel] : registry.kernels()) hello.kernels.push_back(kernel.spec);
  return hello;
}

absl::Status Serve(const Flags& flags, WorkerParts& parts) {
  GC_RETURN_IF_ERROR(SettleProcess());
  GC_RETURN_IF_ERROR(LimitMemory(flags));
  GC_ASSIGN_OR_RETURN(const std::span<std::byte> arena, MapArena(flags.arena_bytes));
  GC_ASSIGN_OR_RETURN(StatusPage* const page, MapStatusPage());
  GC_ASSIGN_OR_RETURN(const Registry registry, Registry::Create(std::move(parts.kernels)));
  GC_ASSIGN_OR_RETURN(const auto device, MakeDevice(flags, parts.level));
  const MonotonicClock clock;
  GC_ASSIGN_OR_RETURN(const auto session, Session::Create(*device, registry, clock, arena));
  std::unique_ptr<Link> link = std::make_unique<SocketLink>(PacketSocket(UniqueFd(kLinkFd)));
  if (parts.wrap_link) link = parts.wrap_link(std::move(link));
  std::atomic<std::uint64_t> dropped{0};
  Loop loop({.link = *link,
             .session = *session,
             .page = *page,
             .clock = clock,
             .arena = arena,
             .dropped = dropped});
  GC_RETURN_IF_ERROR(loop.SayHello(MakeHello(*device, registry)));
  const Heartbeat heartbeat(*link, dropped);
  return loop.Run();
}

}  // namespace

int RunWorker(int argc, char** argv, WorkerParts parts) {
  Flags flags;
  CLI::App app("Runs kernels for gridclock-server, which starts it. Not meant to be run by hand.",
               "gridclock-worker");
  Declare(app, flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const absl::Status status = Serve(flags, parts);
  if (status.ok() || status.code() == absl::StatusCode::kUnavailable) return 0;
  Log(LogLevel::kError, "worker_failed", {{"error", std::string(status.message())}});
  return 1;
}

}  // namespace gridclock
