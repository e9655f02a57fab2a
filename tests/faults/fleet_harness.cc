#include "tests/faults/fleet_harness.h"

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <system_error>
#include <utility>

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "server/core/admission.h"

namespace gridclock {
namespace {

constexpr std::uint64_t kArenaBytes = 64 * 1024 * 1024;

// Whoever stops a child before it runs its own program stops the thread that spawns it as well.
bool RunsItsProgram(pid_t pid) {
  std::error_code gone;
  return std::filesystem::read_symlink(absl::StrCat("/proc/", pid, "/exe"), gone) !=
         std::filesystem::read_symlink("/proc/self/exe");
}

// Each thread lists the children that it spawned.
std::vector<pid_t> Children() {
  std::vector<pid_t> all;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream list(task.path() / "children");
    for (pid_t pid; list >> pid;) {
      if (RunsItsProgram(pid)) all.push_back(pid);
    }
  }
  return all;
}

Limits HarnessLimits() {
  Limits limits;
  limits.arena_bytes = kArenaBytes;
  limits.client_arena_bytes = kArenaBytes;
  return limits;
}

JobRequest RequestOf(const std::string& kernel) {
  JobRequest request;
  request.kernel = kernel;
  request.principal = "test";
  return request;
}

}  // namespace

bool Eventually(const std::function<bool()>& done, absl::Duration limit) {
  const MonotonicClock clock;
  const absl::Time end = clock.Now() + limit;
  while (clock.Now() < end) {
    if (done()) return true;
    usleep(500);
  }
  return done();
}

void RunningCall::OnAccepted(const Job& job, const AcceptedInfo&) {
  if (!input_.empty()) {
    std::memcpy(arena_.At(job.inputs[0].memory).data(), input_.data(),
                input_.size() * sizeof(float));
  }
  {
    MutexLock lock(mutex_);
    active_ = scheduler_.Active(job.id);
    id_ = job.id;
  }
  scheduler_.Start(job.id);
}

void RunningCall::OnFinished(JobResult result) {
  MutexLock lock(mutex_);
  if (result.status.ok() && !active_->job().outputs.empty()) {
    const auto bytes = arena_.At(active_->job().outputs[0].memory);
    output_.resize(input_.size());
    std::memcpy(output_.data(), bytes.data(), output_.size() * sizeof(float));
  }
  active_.reset();
  status_ = std::move(result.status);
}

bool RunningCall::finished() const {
  MutexLock lock(mutex_);
  return status_.has_value();
}

JobId RunningCall::id() const {
  MutexLock lock(mutex_);
  return id_;
}

absl::Status RunningCall::Wait() const {
  if (!Eventually([this] { return finished(); })) {
    return absl::UnknownError("the call never ended");
  }
  MutexLock lock(mutex_);
  return *status_;
}

std::vector<float> RunningCall::output() const {
  MutexLock lock(mutex_);
  return output_;
}

FleetHarness::FleetHarness(const Options& options)
    : arena_(*Arena::Create(kArenaBytes + Fleet::OwnBytes(1), 0)),
      allocator_(kArenaBytes, kArenaBytes),
      limits_(HarnessLimits()),
      table_({"cpu"}),
      scheduler_(clock_, limits_, allocator_, observer_) {
  FleetOptions fleet;
  fleet.worker_path = options.worker;
  fleet.devices = {"cpu"};
  if (!options.fault.empty()) {
    fleet.environment = {absl::StrCat("GRIDCLOCK_FAULT=", options.fault)};
  }
  fleet.supervisor = options.supervisor;
  fleet.silence_limit = options.silence_limit;
  fleet.start_limit = options.start_limit;
  fleet.longest_start = options.longest_start;
  fleet.kill_limit = options.kill_limit;
  fleet.guest_bytes = options.guest_bytes;
  fleet_ = *Fleet::Create(fleet, {.table = table_,
                                  .scheduler = scheduler_,
                                  .clock = clock_,
                                  .observer = observer_,
                                  .arena = arena_,
                                  .allocator = allocator_});
  fleet_->Start();
}

FleetHarness::~FleetHarness() {
  fleet_->Stop();
}

bool FleetHarness::WaitReady(int times) {
  return Eventually([&] { return observer_.count("up") >= times; });
}

WorkerState FleetHarness::state() const {
  return table_.Devices()[0].state;
}

pid_t FleetHarness::WorkerPid() const {
  const std::vector<pid_t> children = Children();
  return children.empty() ? 0 : children.front();
}

bool FleetHarness::Signal(int signal) const {
  const pid_t pid = WorkerPid();
  return pid > 0 && kill(pid, signal) == 0;
}

std::shared_ptr<RunningCall> FleetHarness::Submit(JobRequest request, std::vector<float> input) {
  request.arrived = clock_.Now();
  auto call = std::make_shared<RunningCall>(scheduler_, arena_, std::move(input));
  absl::StatusOr<Job> job = Admit(request, table_, limits_, [](absl::string_view) { return 0; });
  absl::Status status = job.status();
  if (job.ok()) status = scheduler_.Submit(*std::move(job), call, false).status();
  if (!status.ok()) call->OnFinished({.status = status, .outcome = std::nullopt});
  return call;
}

std::shared_ptr<RunningCall> FleetHarness::Square(std::vector<float> x, bool in_place) {
  JobRequest request = RequestOf("square");
  InputRequest input;
  const auto count = static_cast<std::int64_t>(x.size());
  input.operand = {"x", {.is_list = false, .tensors = {{DType::kF32, {count}}}}};
  input.inline_bytes = x.size() * sizeof(float);
  request.inputs.push_back(input);
  if (in_place) request.in_place = {"y"};
  return Submit(std::move(request), std::move(x));
}

std::shared_ptr<RunningCall> FleetHarness::Spin(absl::Duration time) {
  JobRequest request = RequestOf("spin");
  request.attributes = {{"ns", absl::ToInt64Nanoseconds(time)}};
  return Submit(std::move(request), {});
}

std::shared_ptr<RunningCall> FleetHarness::MeasuredSpins() {
  constexpr absl::Duration kEach = absl::Milliseconds(20), kAll = absl::Minutes(5);
  JobRequest request = RequestOf("spin");
  request.attributes = {{"ns", absl::ToInt64Nanoseconds(kEach)}};
  request.measure = MeasureOptions();
  request.measure->schedule = Schedule{.active = kAll / kEach};
  request.kernel_time_limit = 2 * kAll;
  return Submit(std::move(request), {});
}

std::shared_ptr<RunningCall> FleetHarness::Fault(const std::string& kind, absl::Duration limit) {
  JobRequest request = RequestOf("fault");
  request.attributes = {{"kind", kind}};
  request.kernel_time_limit = limit;
  return Submit(std::move(request), {});
}

std::shared_ptr<RunningCall> FleetHarness::EmptyWithAttributes(int count) {
  JobRequest request = RequestOf("empty");
  absl::StatusOr<Job> job = Admit(request, table_, limits_, [](absl::string_view) { return 0; });
  job->attributes.assign(static_cast<std::size_t>(count), std::int64_t{1} << 40);
  job->memory.size = MostOrderBytes(*job);  // It has no tensors.
  job->order = job->memory;
  auto call = std::make_shared<RunningCall>(scheduler_, arena_, std::vector<float>{});
  const absl::Status status = scheduler_.Submit(*std::move(job), call, false).status();
  if (!status.ok()) call->OnFinished({.status = status, .outcome = std::nullopt});
  return call;
}

absl::Status FleetHarness::CheckSquare() {
  const auto call = Square({1, 2, -3});
  if (absl::Status status = call->Wait(); !status.ok()) return status;
  if (call->output() == std::vector<float>{1, 4, 9}) return absl::OkStatus();
  return absl::DataLossError("wrong squares");
}

std::string StrikesFirstCall(const std::string& point) {
  for (std::uint64_t seed = 0;; ++seed) {
    std::mt19937_64 random(seed);
    const auto strikes = [&random] { return std::uniform_real_distribution<>(0, 1)(random) < 0.5; };
    if (const bool canary = strikes(); !canary && strikes()) {
      return absl::StrCat(point, ":0.5:", seed);
    }
  }
}

}  // namespace gridclock
