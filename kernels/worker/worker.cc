#include "kernels/worker/worker.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <mutex>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "kernels/api/registry.h"
#include "kernels/device/cpu/host.h"
#include "kernels/device/monitor.h"
#include "kernels/worker/bare.h"
#include "kernels/worker/device_factory.h"
#include "kernels/worker/guest_sandbox.h"
#include "kernels/worker/heartbeat.h"
#include "kernels/worker/loop.h"
#include "kernels/worker/memory_limit.h"
#include "kernels/worker/printed.h"
#include "kernels/worker/process.h"
#include "kernels/worker/session.h"

namespace gridclock {
namespace {

struct Flags {
  bool list_devices = false;
  bool bare = false;
  BareOptions bare_options;
  std::string device;
  std::string uuid;
  std::string role = "trusted";
  bool weak_sandbox = false;
  bool no_vitals = false;
  bool guest() const { return role == "guest"; }
  std::uint64_t arena_bytes = 0;
  std::uint64_t shared_bytes = 0, devices = 1;
  int threads = 0;
  std::string calibration;
};

void Declare(CLI::App& app, Flags& flags) {
  app.add_flag("--list-devices", flags.list_devices,
               "Print a line of JSON for each device of this machine and end");
  app.add_option("--device", flags.device,
                 "cpu or cuda:N; default cpu, with --bare the first GPU if there is one");
  app.add_option("--uuid", flags.uuid, "Of the GPU; counts instead of its number");
  app.add_option("--role", flags.role,
                 "trusted: runs the catalogue; guest: submitted code, in a sandbox")
      ->check(CLI::IsMember({"trusted", "guest"}));
  app.add_flag("--weak-sandbox", flags.weak_sandbox,
               "Be a guest where the kernel has no Landlock, or an old one, too");
  app.add_option("--arena-bytes", flags.arena_bytes,
                 "Size of the arena, or of a guest's own memory, on descriptor 4");
  app.add_option("--shared-bytes", flags.shared_bytes,
                 "Of the arena and the memory of all guests of this server");
  app.add_option("--device-count", flags.devices, "How many this server has")
      ->check(CLI::PositiveNumber);
  app.add_flag("--no-vitals", flags.no_vitals,
               "Never ask a GPU how it is: another process may be timing on it");
  app.add_option("--calibration", flags.calibration,
                 "What a worker before this one measured; empty: measure");
  app.add_option("--threads", flags.threads, "Threads on the CPU; 0: all CPUs it may use");
}

void DeclareBare(CLI::App& app, Flags& flags) {
  CLI::Option* bare = app.add_flag("--bare", flags.bare,
                                   "Launch one kernel once, without a server, for use under a "
                                   "profiler or a checker, say what came of it and end");
  BareOptions& options = flags.bare_options;
  app.add_option("call", options.call.words,
                 "KERNEL, then NAME=VALUE for its inputs and attributes: square x=randn:f32[1024]")
      ->needs(bare);
  app.add_option("--variant", options.call.variant, "Rather than the fastest that fits")
      ->needs(bare);
  app.add_option("--seed", options.call.seed,
                 "Input i of the kernel is made from it + i; default 0")
      ->needs(bare);
  app.add_option("--repeat", options.repeat, "Launch so many times; default 1")
      ->check(CLI::PositiveNumber)
      ->needs(bare);
  app.add_flag("--json", options.json, "One line of JSON")->needs(bare);
}

// What a sanitizer maps for itself grows with what is used.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kShadowMemory = true;
#else
constexpr bool kShadowMemory = false;
#endif

absl::Status LimitMemory(const Flags& flags, bool cpu) {
  constexpr std::uint64_t kStack = std::uint64_t{8} << 20;
  const HostFacts host = ReadHostFacts();
  std::uint64_t flush_bytes = 0;
  for (const FlushShare& share : PlanFlush(host)) flush_bytes += share.bytes;
  const std::uint64_t gib = std::uint64_t{1} << 30;
  const MemoryNeeds needs = {.arena_bytes = flags.arena_bytes,
                             .flush_bytes = flush_bytes,
                             .runtime_bytes = cpu ? gib : 8 * gib};
  const MemoryOfAll all = {.machine_bytes = host.memory_bytes,
                           .shared_bytes = std::max(flags.arena_bytes, flags.shared_bytes),
                           .devices = flags.devices};
  return LimitPrivateMemory(PrivateMemoryLimit(needs, all) +
                            kStack * static_cast<std::uint64_t>(host.cpus));
}

// The limit is on top of what the driver of a GPU needed to start, and of stacks of threads to
// come.
absl::StatusOr<MadeDevice> MakeDeviceWithinMemory(const Flags& flags, const std::string& level,
                                                  bool guest) {
  const std::string device = flags.device.empty() ? "cpu" : flags.device;
  GC_ASSIGN_OR_RETURN(MadeDevice made, MakeDevice({.name = device,
                                                   .uuid = flags.uuid,
                                                   .level = level,
                                                   .calibration = flags.calibration,
                                                   .threads = flags.threads,
                                                   .server = getppid(),
                                                   .guest = guest}));
  if (!kShadowMemory) GC_RETURN_IF_ERROR(LimitMemory(flags, IsCpu(device)));
  return made;
}

WorkerHello MakeHello(const MadeDevice& made, const Registry& registry) {
  WorkerHello hello{.protocol = kWorkerProtocol,
                    .role = WorkerRole::kTrusted,
                    .device = made.device->info(),
                    .kernels = {},
                    .calibration = made.calibration};
  for (const auto& [name, kernel] : registry.kernels()) hello.kernels.push_back(kernel.spec);
  return hello;
}

WorkerHello MakeGuestHello(const MadeDevice& made, const Natives& natives,
                           const std::string& sandbox) {
  WorkerHello hello{.protocol = kWorkerProtocol,
                    .role = WorkerRole::kGuest,
                    .device = made.device->info(),
                    .kernels = {},
                    .calibration = made.calibration,
                    .sandbox = sandbox};
  for (const auto& [name, function] : natives.functions) hello.test_natives.push_back(name);
  return hello;
}

int ListDevices() {
  std::string why_no_gpu;
  const std::string lines = DeviceLines(&why_no_gpu);
  if (!why_no_gpu.empty()) std::fprintf(stderr, "no GPU: %s\n", why_no_gpu.c_str());
  std::fputs(lines.c_str(), stdout);
  return 0;
}

// What every worker has before it has a device.
struct Lines {
  std::unique_ptr<Link> link;
  std::span<std::byte> arena;
  StatusPage* page = nullptr;
};

absl::StatusOr<Lines> TakeLines(const Flags& flags, const WorkerParts& parts) {
  GC_RETURN_IF_ERROR(SettleProcess());
  Lines lines;
  lines.link = std::make_unique<SocketLink>(PacketSocket(UniqueFd(kLinkFd)));
  if (parts.wrap_link) lines.link = parts.wrap_link(std::move(lines.link));
  GC_ASSIGN_OR_RETURN(lines.arena, MapArena(flags.arena_bytes));
  GC_ASSIGN_OR_RETURN(lines.page, MapStatusPage());
  return lines;
}

// Of a GPU between its orders: what is asked while one runs could show in its times.
Heartbeat::Vitals VitalsOf(const std::string& uuid, std::mutex& in_use) {
  if (uuid.empty()) return nullptr;
  std::shared_ptr<DeviceMonitor> monitor = MonitorOf(uuid);
  if (monitor == nullptr) return nullptr;
  return [monitor, &in_use]() -> std::optional<DeviceVitals> {
    const std::unique_lock lock(in_use, std::try_to_lock);
    if (!lock.owns_lock()) return std::nullopt;
    return monitor->Read();
  };
}

absl::Status RunLoop(const Lines& lines, Session& session, const Clock& clock,
                     const WorkerHello& hello, bool tells_vitals) {
  std::atomic<std::uint64_t> dropped{0};
  std::mutex in_use;
  Loop loop({.link = *lines.link,
             .session = session,
             .page = *lines.page,
             .clock = clock,
             .arena = lines.arena,
             .dropped = dropped,
             .in_use = in_use});
  GC_RETURN_IF_ERROR(loop.SayHello(hello));
  const Heartbeat heartbeat(*lines.link, dropped,
                            VitalsOf(tells_vitals ? hello.device.uuid : "", in_use));
  return loop.Run();
}

absl::Status ServeTrusted(const Flags& flags, WorkerParts& parts) {
  // Taken first to be closed last: the server gives a worker whose link has ended little time to
  // end too, and the memory of a device takes longer to give back.
  GC_ASSIGN_OR_RETURN(const Lines lines, TakeLines(flags, parts));
  GC_ASSIGN_OR_RETURN(const Registry registry, Registry::Create(std::move(parts.kernels)));
  GC_ASSIGN_OR_RETURN(const MadeDevice made,
                      MakeDeviceWithinMemory(flags, parts.level, /*guest=*/false));
  const MonotonicClock clock;
  GC_ASSIGN_OR_RETURN(const auto session,
                      Session::Create(*made.device, registry, clock, lines.arena));
  return RunLoop(lines, *session, clock, MakeHello(made, registry), !flags.no_vitals);
}

struct SandboxedDevice {
  MadeDevice made;
  std::string walls;
};

// A GPU's driver makes no context behind Landlock (cudaErrorOperatingSystem, whatever the rules
// let): there the context comes first, and the driver's own threads have the filter of calls alone.
absl::StatusOr<SandboxedDevice> MakeSandboxedDevice(const Flags& flags, const std::string& level) {
  const bool files_first = flags.device.empty() || IsCpu(flags.device);
  GC_RETURN_IF_ERROR(DropGuestRights());
  std::string files;
  if (files_first) {
    GC_ASSIGN_OR_RETURN(files, RestrictGuestFiles(flags.weak_sandbox));
  }
  GC_ASSIGN_OR_RETURN(MadeDevice made, MakeDeviceWithinMemory(flags, level, /*guest=*/true));
  if (!files_first) {
    GC_ASSIGN_OR_RETURN(files, RestrictGuestFiles(flags.weak_sandbox));
  }
  GC_RETURN_IF_ERROR(RestrictGuestCalls());
  return SandboxedDevice{.made = std::move(made), .walls = absl::StrCat(files, ", seccomp")};
}

// It gives up its rights before it says that it is there, so before any order is read.
absl::Status ServeGuest(const Flags& flags, const WorkerParts& parts) {
  GC_ASSIGN_OR_RETURN(const Lines lines, TakeLines(flags, parts));
  GC_RETURN_IF_ERROR(CloseStandardOutput());
  GC_ASSIGN_OR_RETURN(const auto printed, Printed::Create());
  GC_ASSIGN_OR_RETURN(const SandboxedDevice device, MakeSandboxedDevice(flags, parts.level));
  GC_ASSIGN_OR_RETURN(const Registry registry, Registry::Create({}));
  const MonotonicClock clock;
  const GuestParts guest{.natives = parts.natives,
                         .printed = printed.get(),
                         .keep_scratch = parts.keep_scratch,
                         .keep_shared = parts.keep_shared};
  GC_ASSIGN_OR_RETURN(const auto session,
                      Session::Create(*device.made.device, registry, clock, lines.arena, &guest));
  return RunLoop(lines, *session, clock, MakeGuestHello(device.made, parts.natives, device.walls),
                 /*tells_vitals=*/false);
}

absl::StatusOr<std::string> Bare(const Flags& flags, WorkerParts& parts) {
  GC_ASSIGN_OR_RETURN(const Registry registry, Registry::Create(std::move(parts.kernels)));
  GC_ASSIGN_OR_RETURN(const MadeDevice made,
                      MakeDevice({.name = flags.device.empty() ? FirstDevice() : flags.device,
                                  .uuid = flags.uuid,
                                  .level = parts.level,
                                  .threads = flags.threads,
                                  .bare = true}));
  return RunBare(*made.device, registry, flags.bare_options);
}

int EndBare(const absl::StatusOr<std::string>& told) {
  if (told.ok()) return std::fputs(told->c_str(), stdout) < 0 || std::fflush(stdout) != 0 ? 1 : 0;
  std::fprintf(stderr, "gridclock-worker: %s\n", std::string(told.status().message()).c_str());
  const bool wrong_call = absl::IsInvalidArgument(told.status()) || absl::IsNotFound(told.status());
  return wrong_call ? 2 : 1;
}

}  // namespace

int RunWorker(int argc, char** argv, WorkerParts parts) {
  Flags flags;
  CLI::App app(
      "Runs kernels for gridclock-server, which starts it. By hand only with --list-devices or "
      "--bare.",
      "gridclock-worker");
  Declare(app, flags);
  DeclareBare(app, flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (flags.list_devices) return ListDevices();
  if (flags.bare) return EndBare(Bare(flags, parts));
  const absl::Status status = flags.guest() ? ServeGuest(flags, parts) : ServeTrusted(flags, parts);
  const bool good = status.ok() || status.code() == absl::StatusCode::kUnavailable;
  if (!good) Log(LogLevel::kError, "worker_failed", {{"error", std::string(status.message())}});
  if (!flags.guest()) return good ? 0 : 1;
  // What libraries and sanitizers do at exit may be more than the sandbox lets them.
  FlushLog();
  _exit(good ? 0 : 1);
}

}  // namespace gridclock
