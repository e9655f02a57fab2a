#include "server/fleet/device_runner.h"

#include <array>
#include <csignal>
#include <cstring>
#include <utility>

#include <poll.h>
#include <sys/eventfd.h>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status.h"

namespace gridclock {
namespace {

// How often times are checked when nothing else happens.
constexpr int kPollMs = 100;
// After the end of its link a worker that dies is dead within this time: the system needs some of
// it to take back gigabytes. Shorter than a heartbeat, at which an orphan ends itself.
constexpr absl::Duration kDying = absl::Milliseconds(500);

std::string Describe(const std::string& kill_reason, const WorkerProcess::Exit& exit) {
  if (!kill_reason.empty()) return absl::StrCat("killed: ", kill_reason);
  if (exit.signal != 0) return absl::StrCat("signal ", exit.signal);
  return absl::StrCat("exit code ", exit.code);
}

}  // namespace

WakeEvent::WakeEvent() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
void WakeEvent::Wake() const {
  eventfd_write(fd_.get(), 1);
}
void WakeEvent::Clear() const {
  eventfd_t value;
  eventfd_read(fd_.get(), &value);
}

DeviceRunner::DeviceRunner(const FleetOptions& options, const FleetContext& context,
                           std::string device, const MemoryRange& canary_memory)
    : options_(options),
      context_(context),
      device_(std::move(device)),
      canary_memory_(canary_memory),
      wake_(std::make_shared<WakeEvent>()),
      supervisor_(options.supervisor, options.seed) {}

DeviceRunner::~DeviceRunner() {
  Stop();
  Join();
}

void DeviceRunner::Start() {
  thread_ = std::thread([this] { Run(); });
}

void DeviceRunner::Stop() {
  stopping_ = true;
  wake_->Wake();
}

void DeviceRunner::Join() {
  if (thread_.joinable()) thread_.join();
}

void DeviceRunner::Run() {
  while (!stopping_) {
    ++generation_;
    if (generation_ > 1) context_.table.CountRestart(device_);
    if (!supervisor_.quarantined()) context_.table.SetState(device_, WorkerState::kStarting);
    auto life = Spawn();
    Supervisor::End end = Supervisor::End::kItself;
    if (life.ok()) {
      end = Serve(*std::move(life));
    } else {
      Log(LogLevel::kError, "worker_spawn_failed",
          {{"device", device_}, {"error", std::string(life.status().message())}});
      context_.observer.OnWorkerLost(device_, "exit");
    }
    if (stopping_) break;
    // A worker that ends by itself may have been misled by what it was told.
    if (end == Supervisor::End::kItself) calibration_.clear();
    const absl::Time next = supervisor_.OnEnd(end, context_.clock.Now());
    if (supervisor_.quarantined())
      OnQuarantine();
    else
      context_.table.SetState(device_, WorkerState::kDead);
    SleepUntil(next);
  }
  context_.table.SetState(device_, WorkerState::kDead);
}

absl::StatusOr<DeviceRunner::Life> DeviceRunner::Spawn() {
  GC_ASSIGN_OR_RETURN(auto ends, PacketSocket::Pair());
  GC_ASSIGN_OR_RETURN(StatusMemory status, StatusMemory::Create());
  std::vector<std::string> args = {"--device",
                                   device_,
                                   "--role",
                                   "trusted",
                                   absl::StrCat("--arena-bytes=", context_.arena.size()),
                                   absl::StrCat("--memory-bytes=", options_.worker_memory_bytes)};
  if (const auto uuid = options_.uuids.find(device_); uuid != options_.uuids.end()) {
    args.push_back(absl::StrCat("--uuid=", uuid->second));
  }
  const absl::Time spawned = context_.clock.Now();
  if (!calibration_.empty()) args.push_back(absl::StrCat("--calibration=", calibration_));
  GC_ASSIGN_OR_RETURN(WorkerProcess process,
                      WorkerProcess::Spawn({.path = options_.worker_path,
                                            .args = std::move(args),
                                            .environment = options_.environment,
                                            .link_fd = ends.second.fd(),
                                            .arena_fd = context_.arena.fd(),
                                            .status_fd = status.fd()}));
  Log(LogLevel::kInfo, "worker_spawned",
      {{"device", device_}, {"pid", absl::StrCat(process.pid())}});
  auto worker = std::make_shared<Worker>(Worker::Parts{
      .role = WorkerRole::kTrusted,
      .process = std::move(process),
      .link = std::make_unique<PacketLink>(std::move(ends.first)),
      .status = std::move(status),
      .arena = context_.arena,
      .allocator = context_.allocator,
      .on_unsendable =
          [&scheduler = context_.scheduler, generation = generation_](JobId id, absl::Status why) {
            scheduler.OnDone(id, generation, {.status = std::move(why), .outcome = std::nullopt});
          },
      .wake = [wake = wake_] { wake->Wake(); }});
  GC_ASSIGN_OR_RETURN(auto reader,
                      AnswerReader::Create(context_, device_, worker, generation_, canary_memory_));
  worker->SetReader(reader);
  return Life{.worker = std::move(worker),
              .reader = std::move(reader),
              .output = WorkerOutput(device_),
              .spawned = spawned,
              .measures = calibration_.empty()};
}

Supervisor::End DeviceRunner::Serve(Life life) {
  while (Poll(life)) {
    const AnswerReader::Progress progress = life.reader->progress();
    if (progress.ready && !std::exchange(life.told_ready, true)) {
      const absl::Time now = context_.clock.Now();
      supervisor_.OnReady(now);
      if (!life.measures) context_.scheduler.OnStartTook(device_, now - life.spawned);
      Log(LogLevel::kInfo, "worker_ready", {{"device", device_}});
    }
    if (std::exchange(life.answers, progress.answers) != progress.answers) life.output.NextRun();
    CheckTimes(life, progress);
    if (life.kill_failed && stopping_) {
      life.reader->Close();
      return Supervisor::End::kOutside;
    }
  }
  life.reader->Read(/*to_the_end=*/true);
  life.reader->Close();
  if (life.told_ready) calibration_ = life.reader->session().calibration();
  return Bury(life);
}

bool DeviceRunner::Poll(Life& life) {
  Link& link = life.worker->link();
  const bool reading = life.reader->progress().ended == absl::InfiniteFuture();
  std::array<pollfd, 5> fds = {
      {{.fd = reading ? life.reader->fd() : -1, .events = POLLIN, .revents = 0},
       {.fd = life.worker->process().pidfd(), .events = POLLIN, .revents = 0},
       {.fd = life.output_ended ? -1 : life.worker->process().output_fd(),
        .events = POLLIN,
        .revents = 0},
       {.fd = wake_->fd(), .events = POLLIN, .revents = 0},
       {.fd = reading && link.pending() ? link.fd() : -1, .events = POLLOUT, .revents = 0}}};
  const int timeout = reading && !stopping_ ? kPollMs : 10;
  if (poll(fds.data(), fds.size(), timeout) <= 0) return true;
  if (fds[4].revents & POLLOUT) life.worker->Flush();
  if (fds[0].revents != 0) life.reader->Read(/*to_the_end=*/false);
  if (fds[2].revents & POLLIN) {
    life.output.Drain(life.worker->process().output_fd());
  } else if (fds[2].revents != 0) {
    life.output_ended = true;
  }
  if (fds[3].revents & POLLIN) wake_->Clear();
  return (fds[1].revents & POLLIN) == 0;
}

void DeviceRunner::CheckTimes(Life& life, const AnswerReader::Progress& progress) {
  const absl::Time now = context_.clock.Now();
  if (life.worker->deaf()) life.deaf = std::min(life.deaf, now);
  // Whoever broke the protocol was killed for that already.
  if (now - std::min(progress.ended, life.deaf) > kDying) life.worker->Kill("exit");
  CheckKill(life, now);
  if (stopping_) return CheckStop(life, now);
  const bool slow_start = !progress.ready && now - life.spawned > options_.start_limit;
  const bool silent = progress.ready && now - progress.heard > options_.silence_limit;
  if (slow_start || silent) life.worker->Kill("hang");
}

void DeviceRunner::CheckStop(Life& life, absl::Time now) {
  if (life.stop_asked == absl::InfiniteFuture()) {
    life.stop_asked = now;
    life.worker->Shutdown();
  }
  if (now - life.stop_asked > options_.stop_limit) life.worker->Kill("exit");
  if (now - life.stop_asked > options_.stop_limit / 2 && !std::exchange(life.terminated, true)) {
    life.worker->process().Signal(SIGTERM);
  }
}

void DeviceRunner::CheckKill(Life& life, absl::Time now) {
  const std::string reason = life.worker->kill_reason();
  if (reason.empty()) return;
  life.killed = std::min(life.killed, now);
  if (now - life.killed <= options_.kill_limit || std::exchange(life.kill_failed, true)) return;
  Log(LogLevel::kError, "worker_cannot_be_ended",
      {{"device", device_}, {"pid", absl::StrCat(life.worker->process().pid())}});
  context_.scheduler.OnKillFailed(
      device_,
      {.reason = reason,
       .detail = absl::StrCat("killed: ", reason, ", and still there"),
       .planned = life.stop_asked != absl::InfiniteFuture()},
      WhyDown("cannot be ended; the device is served again when it is gone"));
  context_.table.SetState(device_, WorkerState::kQuarantined);
}

Supervisor::End DeviceRunner::Bury(Life& life) {
  Worker& worker = *life.worker;
  worker.process().Signal(SIGKILL);  // If only its link ended.
  const WorkerProcess::Exit exit =
      worker.process().Reap(options_.kill_limit).value_or(WorkerProcess::Exit{});
  life.output.Drain(worker.process().output_fd());
  const std::string kill_reason = worker.kill_reason();
  const bool by_signal = kill_reason.empty() && exit.signal != 0;
  const Session& session = life.reader->session();
  const JobId running = worker.running().id;
  const WorkerLoss loss = {.reason = !kill_reason.empty() ? kill_reason
                                     : by_signal          ? "signal"
                                                          : "exit",
                           .signal = by_signal ? exit.signal : 0,
                           .running = session.culprit() != 0 ? session.culprit() : running,
                           .detail = Describe(kill_reason, exit),
                           .planned = life.stop_asked != absl::InfiniteFuture()};
  // One that had to be killed, or died, while it was to stop is lost all the same.
  const bool as_asked = life.stop_asked != absl::InfiniteFuture() && kill_reason.empty() &&
                        exit.signal == 0 && exit.code == 0;
  Log(as_asked ? LogLevel::kInfo : LogLevel::kWarning, as_asked ? "worker_stopped" : "worker_lost",
      {{"device", device_},
       {"reason", loss.reason},
       {"detail", loss.detail},
       {"running", absl::StrCat(running)}});
  if (session.ready())
    context_.scheduler.OnWorkerLost(device_, generation_, loss);
  else
    context_.observer.OnWorkerLost(device_, loss.reason);
  if (loss.running != 0 || session.spoiled()) return Supervisor::End::kJob;
  return by_signal && !IsOwnFault(exit.signal) ? Supervisor::End::kOutside
                                               : Supervisor::End::kItself;
}

void DeviceRunner::OnQuarantine() {
  Log(LogLevel::kError, "device_quarantined", {{"device", device_}});
  context_.scheduler.OnDeviceDown(device_,
                                  WhyDown("ends again and again; another is tried now and then"));
  // Last: who sees the state may count on the rest.
  context_.table.SetState(device_, WorkerState::kQuarantined);
}

absl::Status DeviceRunner::WhyDown(absl::string_view what) const {
  return WithDetails(
      absl::UnavailableError(absl::StrCat("the worker of device '", device_, "' ", what)),
      {.reason = "WORKER_CRASHED",
       .field = "",
       .retry_after = options_.supervisor.probe_every,
       .metadata = {{"execution_state", "NOT_STARTED"}}});
}

void DeviceRunner::SleepUntil(absl::Time time) {
  while (!stopping_) {
    const absl::Duration left = time - context_.clock.Now();
    if (left <= absl::ZeroDuration()) return;
    pollfd wake = {.fd = wake_->fd(), .events = POLLIN, .revents = 0};
    const std::int64_t ms = absl::ToInt64Milliseconds(left) + 1;
    if (poll(&wake, 1, static_cast<int>(std::min<std::int64_t>(ms, 1000))) > 0) wake_->Clear();
  }
}

}  // namespace gridclock
