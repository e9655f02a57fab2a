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
// So much of a worker's silence counts from one look to the next, at most: what kept this thread
// from looking, as a machine that stood still, may have kept the worker from its beat.
constexpr absl::Duration kLook = absl::Milliseconds(2 * kPollMs);
// After the end of its link a worker that dies is dead within this time: the system needs some of
// it to take back gigabytes. Shorter than a heartbeat, at which an orphan ends itself.
constexpr absl::Duration kDying = absl::Milliseconds(500);

std::string Describe(const std::string& kill_reason, const WorkerProcess::Exit& exit) {
  if (kill_reason == kRestart) return "restarted by an operator";
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
                           DeviceLink& link, WorkerRole role)
    : options_(options),
      context_(context),
      link_(link),
      role_(role),
      device_(link.device),
      lane_(role == WorkerRole::kGuest ? GuestLane(link.device) : link.device),
      wake_(std::make_shared<WakeEvent>()),
      supervisor_(options.supervisor, options.seed) {}

DeviceRunner::~DeviceRunner() {
  Stop();
  Join();
}

void DeviceRunner::StartThread() {
  thread_ = std::thread([this] { Run(); });
}

void DeviceRunner::Stop() {
  stopping_ = true;
  wake_->Wake();
}

void DeviceRunner::Join() {
  if (thread_.joinable()) thread_.join();
}

void DeviceRunner::Start() {
  wanted_ = true;
  wake_->Wake();
}

void DeviceRunner::Blame(const Job& job, absl::string_view why) {
  Strike(context_, *job.program, why);
  Log(LogLevel::kWarning, "guest_ended_by_job",
      {{"device", device_},
       {"kernel", job.kernel},
       {"job", absl::StrCat(job.id)},
       {"client", job.principal},
       {"request_id", job.request_id},
       {"trace_id", TraceId(job.trace)}});
}

void DeviceRunner::Run() {
  while (!stopping_) {
    if (role_ == WorkerRole::kGuest) WaitUntilWanted();
    if (!stopping_) RunOne();
  }
  SetState(WorkerState::kDead);
}

void DeviceRunner::WaitUntilWanted() {
  while (!stopping_ && !wanted_) Sleep(absl::Seconds(1));
  wanted_ = false;
}

void DeviceRunner::RunOne() {
  generation_ = ++link_.generations;
  if (!supervisor_.quarantined()) SetState(WorkerState::kStarting);
  auto life = Spawn();
  Supervisor::End end = Supervisor::End::kItself;
  bool was_ready = false;
  if (life.ok()) {
    if (++lives_ > 1 && role_ == WorkerRole::kTrusted) context_.table.CountRestart(device_);
    end = Serve(*std::move(life), &was_ready);
  } else {
    end = SpawnFailed(life.status());
  }
  if (stopping_) return;
  // A worker that ends by itself may have been misled by what it was told.
  if (end == Supervisor::End::kItself || end == Supervisor::End::kHungStart) SetCalibration("");
  const absl::Time next = supervisor_.OnEnd(end, context_.clock.Now());
  if (supervisor_.quarantined())
    OnQuarantine(next);
  else
    SetState(WorkerState::kDead);
  if (role_ == WorkerRole::kGuest && !was_ready) context_.scheduler.OnGuestNotReady(lane_, next);
  SleepUntil(next);
}

Supervisor::End DeviceRunner::SpawnFailed(const absl::Status& why) {
  Log(LogLevel::kError, "worker_spawn_failed",
      {{"device", lane_}, {"error", std::string(why.message())}});
  last_end_ = "its program cannot be started";  // Clients hear it: no path.
  const Supervisor::End end = Supervisor::EndOfSpawn(why);
  if (end == Supervisor::End::kItself && role_ == WorkerRole::kTrusted) {
    context_.observer.OnWorkerLost(device_, "exit");
  }
  return end;
}

std::string DeviceRunner::Uuid() const {
  const auto uuid = options_.uuids.find(device_);
  return uuid == options_.uuids.end() ? "" : uuid->second;
}

// With workers, at most.
std::uint64_t DeviceRunner::SharedBytes() const {
  return context_.arena.size() + options_.devices.size() * options_.guest_bytes;
}

std::vector<std::string> DeviceRunner::Arguments(std::uint64_t arena_bytes,
                                                 const std::string& calibration) const {
  std::vector<std::string> args = {"--device",
                                   device_,
                                   "--role",
                                   role_ == WorkerRole::kGuest ? "guest" : "trusted",
                                   absl::StrCat("--arena-bytes=", arena_bytes),
                                   absl::StrCat("--shared-bytes=", SharedBytes()),
                                   absl::StrCat("--device-count=", options_.devices.size())};
  if (!Uuid().empty()) args.push_back(absl::StrCat("--uuid=", Uuid()));
  if (role_ == WorkerRole::kGuest && options_.weak_sandbox) args.emplace_back("--weak-sandbox");
  // A guest may be timing beside a catalogue's worker that is idle.
  if (options_.guest_bytes > 0) args.emplace_back("--no-vitals");
  if (!calibration.empty()) args.push_back(absl::StrCat("--calibration=", calibration));
  return args;
}

absl::StatusOr<DeviceRunner::Life> DeviceRunner::Spawn() {
  GC_ASSIGN_OR_RETURN(auto ends, PacketSocket::Pair());
  GC_ASSIGN_OR_RETURN(StatusMemory status, StatusMemory::Create());
  std::unique_ptr<GuestMemory> guest_memory;
  if (role_ == WorkerRole::kGuest) {
    GC_ASSIGN_OR_RETURN(
        guest_memory, GuestMemory::Create(options_.guest_bytes, link_.copiers, options_.defences));
  }
  const Arena& mapped = guest_memory != nullptr ? guest_memory->arena() : context_.arena;
  const absl::Time spawned = context_.clock.Now();
  const std::string calibration = Calibration();
  GC_ASSIGN_OR_RETURN(
      WorkerProcess process,
      WorkerProcess::Spawn({.path = options_.worker_path,
                            .args = Arguments(mapped.size(), calibration),
                            .environment = EnvironmentFor(options_.environment, Uuid()),
                            .link_fd = ends.second.fd(),
                            .arena_fd = mapped.fd(),
                            .status_fd = status.fd()}));
  Log(LogLevel::kInfo, "worker_spawned", {{"device", lane_}, {"pid", absl::StrCat(process.pid())}});
  auto worker = std::make_shared<Worker>(Worker::Parts{
      .role = role_,
      .process = std::move(process),
      .link = std::make_unique<PacketLink>(std::move(ends.first)),
      .status = std::move(status),
      .arena = context_.arena,
      .on_unsendable =
          [&scheduler = context_.scheduler, generation = generation_](JobId id, absl::Status why) {
            scheduler.OnDone(id, generation, {.status = std::move(why), .outcome = std::nullopt});
          },
      .wake = [wake = wake_] { wake->Wake(); },
      .guest_memory = std::move(guest_memory)});
  GC_ASSIGN_OR_RETURN(auto reader,
                      AnswerReader::Create(context_, device_, worker, generation_, link_.canary));
  worker->SetReader(reader);
  return Life{.worker = std::move(worker),
              .reader = reader,
              // Code may run in a guest from when it is ready, and write past what catches it.
              .output = WorkerOutput(lane_,
                                     [reader, guest = role_ == WorkerRole::kGuest] {
                                       return guest && reader->progress().ready;
                                     }),
              .spawned = spawned,
              .measures = calibration.empty()};
}

std::string DeviceRunner::Calibration() const {
  const MutexLock lock(link_.mutex);
  return link_.calibration;
}

// What a guest says of the device is believed by nobody.
void DeviceRunner::SetCalibration(std::string calibration) {
  if (role_ == WorkerRole::kGuest) return;
  const MutexLock lock(link_.mutex);
  link_.calibration = std::move(calibration);
}

void DeviceRunner::SetState(WorkerState state, const absl::Status& why) {
  if (role_ == WorkerRole::kTrusted) context_.table.SetState(device_, state, why);
}

void DeviceRunner::NoteReady(Life& life) {
  const absl::Time now = context_.clock.Now();
  supervisor_.OnReady(now);
  SetCalibration(life.reader->calibration());
  if (!life.measures) context_.scheduler.OnStartTook(lane_, now - life.spawned);
  Log(LogLevel::kInfo, "worker_ready", {{"device", lane_}});
}

Supervisor::End DeviceRunner::Serve(Life life, bool* was_ready) {
  while (Poll(life)) {
    const AnswerReader::Progress progress = life.reader->progress();
    if (progress.ready && !std::exchange(life.told_ready, true)) NoteReady(life);
    if (std::exchange(life.answers, progress.answers) != progress.answers) life.output.NextRun();
    CheckTimes(life, progress);
    if (life.kill_failed && stopping_) {
      life.reader->Close();
      return Supervisor::End::kOutside;
    }
  }
  life.reader->Read(/*to_the_end=*/true);
  life.reader->Close();
  *was_ready = life.reader->session().ready();
  if (*was_ready && !std::exchange(life.told_ready, true)) NoteReady(life);
  return Bury(life);
}

bool DeviceRunner::Poll(Life& life) {
  life.worker->FeedGuest();
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
  const bool slow_start = !progress.ready && TooSlow(life, now);
  NoteSilence(life, progress.heard, now);
  const bool silent = progress.ready && life.silence > options_.silence_limit;
  if (slow_start || silent) life.worker->Kill("hang");
}

void DeviceRunner::NoteSilence(Life& life, absl::Time heard, absl::Time now) {
  if (std::exchange(life.heard, heard) != heard) life.silence = absl::ZeroDuration();
  life.silence += std::min(now - std::max(heard, life.looked), kLook);
  life.looked = now;
}

bool DeviceRunner::TooSlow(Life& life, absl::Time now) const {
  constexpr absl::Duration kWork = absl::Milliseconds(10);
  const absl::Duration worked = life.worker->process().CpuTime().value_or(absl::ZeroDuration());
  if (worked - life.worked >= kWork) {
    life.worked = worked;
    life.works = now;
  }
  const absl::Duration age = now - life.spawned;
  const bool works = now - std::max(life.works, life.spawned) <= options_.silence_limit;
  return age > (works ? options_.longest_start : options_.start_limit);
}

void DeviceRunner::CheckStop(Life& life, absl::Time now) {
  if (life.stop_asked == absl::InfiniteFuture()) {
    life.stop_asked = now;
    life.worker->Shutdown();
  }
  if (now - life.stop_asked > options_.stop_limit) life.worker->Kill("exit");
  // One that is not ready does not listen, and has nothing to end in order.
  const absl::Duration patience = life.told_ready ? options_.stop_limit / 2 : absl::ZeroDuration();
  if (now - life.stop_asked >= patience && !std::exchange(life.terminated, true)) {
    life.worker->process().Signal(WorkerProcess::kEnd);
  }
}

void DeviceRunner::CheckKill(Life& life, absl::Time now) {
  const std::string reason = life.worker->kill_reason();
  if (reason.empty()) return;
  life.killed = std::min(life.killed, now);
  if (now - life.killed <= options_.kill_limit || std::exchange(life.kill_failed, true)) return;
  Log(LogLevel::kError, "worker_cannot_be_ended",
      {{"device", lane_}, {"pid", absl::StrCat(life.worker->process().pid())}});
  const absl::Status why = WhyDown("cannot be ended; the device is served again when it is gone");
  context_.scheduler.OnKillFailed(lane_,
                                  {.reason = reason,
                                   .detail = absl::StrCat("killed: ", reason, ", and still there"),
                                   .planned = life.stop_asked != absl::InfiniteFuture()},
                                  why);
  context_.table.SetState(device_, WorkerState::kQuarantined, why);
}

void DeviceRunner::LogEnd(bool as_asked, const WorkerLoss& loss) const {
  const auto held = context_.scheduler.Sent(loss.running, generation_);
  const Job none{};
  const Job& job = held != nullptr ? held->job() : none;
  Log(as_asked ? LogLevel::kInfo : LogLevel::kWarning, as_asked ? "worker_stopped" : "worker_lost",
      {{"device", lane_},
       {"reason", loss.reason},
       {"detail", loss.detail},
       {"kernel", job.kernel},
       {"job", absl::StrCat(job.id)},  // Not what a guest names: that may be another client's.
       {"client", job.principal},
       {"request_id", job.request_id},
       {"trace_id", held != nullptr ? TraceId(job.trace) : ""}});
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
  const bool retired = kill_reason == "retired", restarted = kill_reason == kRestart;
  const WorkerLoss loss = {.reason = !kill_reason.empty() ? kill_reason
                                     : by_signal          ? "signal"
                                                          : "exit",
                           .signal = by_signal ? exit.signal : 0,
                           .running = session.culprit() != 0 ? session.culprit() : running,
                           .detail = Describe(kill_reason, exit),
                           .planned = life.stop_asked != absl::InfiniteFuture() || retired,
                           .spoiled = session.spoiled()};
  // One that had to be killed, or died, while it was to stop is lost all the same; before it is
  // ready a signal is how it is asked.
  const bool by_request = life.terminated && !session.ready() && exit.signal == WorkerProcess::kEnd;
  const bool as_asked = retired || restarted ||
                        (life.stop_asked != absl::InfiniteFuture() && kill_reason.empty() &&
                         (by_request || (exit.signal == 0 && exit.code == 0)));
  LogEnd(as_asked, loss);
  last_end_ = loss.detail;
  if (life.kill_failed && role_ == WorkerRole::kGuest) {
    context_.table.SetState(device_, WorkerState::kReady);
  }
  if (session.ready())
    context_.scheduler.OnWorkerLost(lane_, generation_, loss);
  else if (role_ == WorkerRole::kTrusted && !as_asked)
    context_.observer.OnWorkerLost(device_, loss.reason);
  if (restarted) {
    SetCalibration("");  // Whoever restarts a worker may doubt what it measured.
    return Supervisor::End::kOutside;
  }
  // What ran in a guest may have ended it in any way: no client can have it taken for broken.
  if (role_ == WorkerRole::kGuest && session.ready()) return Supervisor::End::kJob;
  if (!session.ready() && kill_reason == "hang") return Supervisor::End::kHungStart;
  // The order that it was killed for may have ended just before.
  if (loss.running != 0 || session.spoiled() || IsForOneOrder(kill_reason)) {
    return Supervisor::End::kJob;
  }
  return by_signal && !IsOwnFault(exit.signal) ? Supervisor::End::kOutside
                                               : Supervisor::End::kItself;
}

void DeviceRunner::OnQuarantine(absl::Time next) {
  Log(LogLevel::kError, "device_quarantined",
      {{"device", lane_},
       {"reason", last_end_},
       {"next_try_seconds", absl::StrCat(absl::ToInt64Seconds(next - context_.clock.Now()))}});
  const absl::Status why =
      WhyDown(absl::StrCat("ends again and again, or does not start (", last_end_,
                           "): the device is quarantined, and another worker is tried every ",
                           absl::FormatDuration(options_.supervisor.probe_every)));
  context_.scheduler.OnDeviceDown(lane_, why);
  // Last: who sees the state may count on the rest.
  SetState(WorkerState::kQuarantined, why);
}

absl::Status DeviceRunner::WhyDown(absl::string_view what) const {
  return WithDetails(
      absl::UnavailableError(absl::StrCat("the worker of device '", lane_, "' ", what)),
      {.reason = "WORKER_CRASHED",
       .field = "",
       .retry_after = options_.supervisor.probe_every,
       .metadata = {{"execution_state", "NOT_STARTED"}}});
}

void DeviceRunner::SleepUntil(absl::Time time) {
  while (!stopping_) {
    const absl::Duration left = time - context_.clock.Now();
    if (left <= absl::ZeroDuration()) return;
    Sleep(left);
  }
}

void DeviceRunner::Sleep(absl::Duration most) {
  pollfd wake = {.fd = wake_->fd(), .events = POLLIN, .revents = 0};
  const std::int64_t ms = absl::ToInt64Milliseconds(most) + 1;
  if (poll(&wake, 1, static_cast<int>(std::min<std::int64_t>(ms, 1000))) > 0) wake_->Clear();
}

}  // namespace gridclock
