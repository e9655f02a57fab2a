// The pages of a node that there is none of: eight GPUs, in every state; runs of every outcome,
// with every flag; names as long as they may be. Prints its port and goes on until its input ends.
// With a number as its argument so many jobs come first, each of a kernel with a name of its own.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <poll.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "server/metrics/metrics.h"

namespace gridclock {
namespace {

using enum WorkerState;

constexpr WorkerState kStates[] = {kBusy, kBusy,     kReady, kQuarantined,
                                   kDead, kStarting, kReady, kReady};
constexpr std::size_t kDrained = 2, kFull = 6;
constexpr double kGiB = 1073741824;
constexpr absl::string_view kOfAClient = "name_of_a_client_";

DeviceStatus MakeDevice(std::size_t index) {
  DeviceStatus device;
  device.state = kStates[index];
  device.drained = index == kDrained;
  device.info.name = absl::StrCat("cuda:", index);
  if (device.state == kStarting) return device;
  device.met = true;
  device.restarts = device.state == kQuarantined ? 1234 : index % 2;
  device.info.model =
      index == kFull ? "NVIDIA H200 NVL Engineering Sample With A Name Of Many Words MIG 3g.71gb"
                     : "NVIDIA H200";
  device.info.uuid = absl::StrCat("GPU-", index);
  device.info.memory_bytes = static_cast<std::uint64_t>(140 * kGiB);
  device.info.memory_bandwidth = 4.1e12;
  device.info.launch_floor_ns = 2980;
  if (device.state == kDead) return device;
  const double used = index == kFull ? 131 : 9 + 11 * static_cast<double>(index);
  device.vitals.emplace().at = absl::Now() - absl::Seconds(index);
  DeviceState& state = device.vitals->vitals.state;
  state.sm_clock_hz = 1.98e9;
  state.power_watts = 120 + 40 * static_cast<double>(index);
  state.temperature_celsius = 41 + static_cast<double>(index);
  state.memory_used_bytes = static_cast<std::uint64_t>(used * kGiB);
  return device;
}

std::vector<DeviceStatus> Devices() {
  std::vector<DeviceStatus> devices;
  for (std::size_t i = 0; i < std::size(kStates); ++i) devices.push_back(MakeDevice(i));
  return devices;
}

Sources MadeUpSources() {
  Sources sources;
  sources.knows_kernel = [](absl::string_view name) { return !absl::StartsWith(name, kOfAClient); };
  sources.devices = &Devices;
  sources.queue_usage = [] {
    return std::map<std::string, Scheduler::Usage>{
        {"cuda:0", {.queued = 241, .fuller_queue = 241, .running = 1}},
        {"cuda:1", {.queued = 3, .fuller_queue = 3, .running = 1}}};
  };
  sources.limit_usage = [] {
    return std::map<std::string, double>{{"arena_bytes", 57 * kGiB}, {"connections", 312}};
  };
  sources.compiler_up = [] { return true; };
  sources.open_connections = [] { return 312; };
  sources.limits.queue = 256;
  sources.limits.arena_bytes = 64 * kGiB;
  return sources;
}

// Runs as they end. Always the same ones: the numbers are drawn from a fixed seed.
class Load {
 public:
  explicit Load(JobObserver& observer) : observer_(observer) {}

  void Run() {
    const std::size_t at = next_++;
    const Kernel& kernel = kKernels[at % std::size(kKernels)];
    Job job;
    job.id = next_;
    job.kernel = kernel.name;
    job.device = absl::StrCat("cuda:", at / 2 % 2 == 0 ? 0 : 1);
    observer_.OnFinished(job, ResultOf(kernel, at));
  }

  // A catalogue with more kernels than there is room for, programs, and what nobody lists. The
  // very first gives wrong values.
  void RunNamed(std::size_t at) {
    Job job;
    job.id = ++next_;
    job.device = "cuda:0";
    if (at % 50 == 0) {
      job.kernel = absl::StrCat("name_of_the_catalogue_", at);
    } else {
      job.kernel = absl::StrCat(kOfAClient, at);
      if (at % 2 == 0) job.program = program_;
    }
    observer_.OnFinished(job, ResultOf(kKernels[0], at == 0 ? 0 : 1));
  }

 private:
  struct Kernel {
    const char* name;
    const char* variant;
    double ns;  // 0: each of its runs fails.
  };
  static constexpr Kernel kKernels[] = {
      {"matmul", "wgmma", 182'000},
      {"softmax", "online", 11'400},
      {"gelu", "vector", 31'600},
      {"layernorm", "warp", 320'000},
      {"square", "vector", 940},
      {"fault", "", 0},
      {"a_kernel_with_a_name_that_goes_on_for_as_long_as_names_may_go_on",
       "with_a_variant_that_does", 2.4e9}};

  JobResult ResultOf(const Kernel& kernel, std::size_t at) {
    JobResult result;
    if (kernel.ns == 0) {
      result.status = kFailures[at / std::size(kKernels) % std::size(kFailures)]();
      return result;
    }
    Outcome& outcome = result.outcome.emplace();
    outcome.variant = kernel.variant;
    Timing& timing = outcome.timing.emplace();
    const double ns = kernel.ns * spread_(random_);
    timing.samples_ns.assign(10, ns);
    timing.statistics.median = timing.statistics.max = ns;
    const auto end = static_cast<std::int64_t>(40'000 + 2 * ns);
    outcome.phases = {{PhaseKind::kReceived, 0, 9'000},
                      {PhaseKind::kQueued, 9'000, 21'000},
                      {PhaseKind::kInputCopied, 26'000, 33'000},
                      {PhaseKind::kLaunched, 33'000, end - 6'000},
                      {PhaseKind::kFinished, 34'000, end - 6'000},
                      {PhaseKind::kOutputCopied, end - 6'000, end}};
    if (at % 5 == 0) outcome.flags = {static_cast<Flag>(1 + at / 5 % kFlagCount)};
    if (at % 67 == 0) {
      for (int flag = 1; flag <= kFlagCount; ++flag)
        outcome.flags.push_back(static_cast<Flag>(flag));
      outcome.flags.erase(outcome.flags.begin());
    }
    if (at % 23 == 0) outcome.verification.emplace().mismatches = 1;
    return result;
  }

  static constexpr absl::Status (*kFailures[])() = {
      [] { return absl::CancelledError(""); }, [] { return absl::DeadlineExceededError(""); },
      [] { return WithReason(absl::DeadlineExceededError(""), "KERNEL_TIME_LIMIT"); },
      [] { return WithReason(absl::UnavailableError(""), "WORKER_CRASHED"); },
      [] { return WithReason(absl::FailedPreconditionError(""), "KERNEL_FAULT"); }};

  JobObserver& observer_;
  const std::shared_ptr<JobProgram> program_ = std::make_shared<JobProgram>();
  std::size_t next_ = 0;
  std::mt19937 random_{1};  // NOLINT(cert-msc51-cpp): the same each time.
  std::lognormal_distribution<double> spread_{0, 0.08};
};

int Serve(std::size_t names) {
  auto metrics =
      Metrics::Create({.address = "127.0.0.1:0", .version = GRIDCLOCK_VERSION, .revision = ""});
  if (!metrics.ok()) return 1;
  (*metrics)->Watch(MadeUpSources());
  Load load((*metrics)->job_observer());
  for (std::size_t i = 0; i < names; ++i) load.RunNamed(i);
  constexpr int kAtOnce = 7 * 500;  // So many that a p99 can be told.
  for (int i = 0; i < kAtOnce; ++i) load.Run();
  std::printf("%d\n", (*metrics)->port());
  std::fflush(stdout);
  pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  while (poll(&input, 1, /*timeout=*/100) == 0) load.Run();
  return 0;
}

}  // namespace
}  // namespace gridclock

int main(int argc, char** argv) {
  return gridclock::Serve(argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 0);
}
