#include "server/fleet/worker_process.h"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "proto/types/status_page.h"

namespace gridclock {
namespace {

// Above all descriptors that a worker gets, so that none is overwritten before it is copied.
constexpr int kFirstFreeFd = 16;

// What a destructor gives a process that it killed: a driver may keep one for ever.
constexpr absl::Duration kLastWait = absl::Seconds(2);
constexpr useconds_t kReapPollUs = 1000;

class FileActions {
 public:
  FileActions() { posix_spawn_file_actions_init(&actions_); }
  ~FileActions() { posix_spawn_file_actions_destroy(&actions_); }
  posix_spawn_file_actions_t* get() { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

class Attributes {
 public:
  Attributes() { posix_spawnattr_init(&attributes_); }
  ~Attributes() { posix_spawnattr_destroy(&attributes_); }
  posix_spawnattr_t* get() { return &attributes_; }

 private:
  posix_spawnattr_t attributes_;
};

// The server blocks and handles signals; a worker starts with a clean slate.
void ResetSignals(Attributes& attributes) {
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(attributes.get(), &none);
  posix_spawnattr_setsigdefault(attributes.get(), &all);
  posix_spawnattr_setflags(attributes.get(), POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (const std::string& text : strings) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

struct Pipe {
  UniqueFd read, write;
};
absl::StatusOr<Pipe> MakePipe() {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return ErrnoToStatus(errno, "pipe");
  Pipe made{UniqueFd(fds[0]), UniqueFd(fds[1])};
  fcntl(made.read.get(), F_SETFL, O_NONBLOCK);
  return made;
}

// Says where each descriptor of the child comes from; the copies in `high` must live until then.
absl::Status Place(const WorkerProcess::Options& options, int output, FileActions& actions,
                   std::vector<UniqueFd>& high) {
  const std::array<std::pair<int, int>, 5> places = {{{output, STDOUT_FILENO},
                                                      {output, STDERR_FILENO},
                                                      {options.link_fd, kLinkFd},
                                                      {options.arena_fd, kArenaFd},
                                                      {options.status_fd, kStatusFd}}};
  posix_spawn_file_actions_addopen(actions.get(), STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  for (const auto& [from, to] : places) {
    if (from < 0) continue;
    high.emplace_back(fcntl(from, F_DUPFD_CLOEXEC, kFirstFreeFd));
    if (!high.back()) return ErrnoToStatus(errno, "dup");
    posix_spawn_file_actions_adddup2(actions.get(), high.back().get(), to);
  }
  posix_spawn_file_actions_addclosefrom_np(actions.get(), kStatusFd + 1);
  posix_spawn_file_actions_addchdir_np(actions.get(), "/");
  return absl::OkStatus();
}

int PidfdOpen(pid_t pid) {
  return static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
}

}  // namespace

absl::StatusOr<WorkerProcess> WorkerProcess::Spawn(const Options& options) {
  GC_ASSIGN_OR_RETURN(Pipe output, MakePipe());
  FileActions actions;
  Attributes attributes;
  std::vector<UniqueFd> high;
  GC_RETURN_IF_ERROR(Place(options, output.write.get(), actions, high));
  ResetSignals(attributes);
  std::vector<std::string> args = options.args;
  args.insert(args.begin(), options.path);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, options.path.c_str(), actions.get(), attributes.get(),
                                Pointers(args).data(), Pointers(options.environment).data());
  if (error != 0) return gridclock::ErrnoToStatus(error, absl::StrCat("spawn ", options.path));
  UniqueFd pidfd(PidfdOpen(pid));
  if (!pidfd) {
    const int why = errno;
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    return ErrnoToStatus(why, "pidfd_open");
  }
  return WorkerProcess(pid, std::move(pidfd), std::move(output.read));
}

WorkerProcess::WorkerProcess(pid_t pid, UniqueFd pidfd, UniqueFd output)
    : pid_(pid), pidfd_(std::move(pidfd)), output_(std::move(output)) {}

WorkerProcess::WorkerProcess(WorkerProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      pidfd_(std::move(other.pidfd_)),
      output_(std::move(other.output_)) {}

WorkerProcess::~WorkerProcess() {
  if (pid_ < 0) return;
  Signal(SIGKILL);
  if (!Reap(kLastWait)) Log(LogLevel::kError, "process_left", {{"pid", absl::StrCat(pid_)}});
}

std::optional<absl::Duration> WorkerProcess::CpuTime() const {
  clockid_t clock{};
  timespec time{};
  if (clock_getcpuclockid(pid_, &clock) != 0 || clock_gettime(clock, &time) != 0) {
    return std::nullopt;
  }
  return absl::DurationFromTimespec(time);
}

void WorkerProcess::Signal(int signal) const {
  // By descriptor, not by number: a number may belong to another process by now.
  syscall(SYS_pidfd_send_signal, pidfd_.get(), signal, nullptr, 0);
}

std::optional<WorkerProcess::Exit> WorkerProcess::Reap(absl::Duration limit) {
  const MonotonicClock clock;
  const absl::Time end = clock.Now() + limit;
  const auto by_fd = static_cast<idtype_t>(P_PIDFD);
  siginfo_t info = {};
  while (waitid(by_fd, pidfd_.get(), &info, WEXITED | WNOHANG) == 0 || errno == EINTR) {
    if (info.si_pid != 0) break;
    if (clock.Now() >= end) return std::nullopt;
    usleep(kReapPollUs);
  }
  pid_ = -1;
  if (info.si_code == CLD_EXITED) return Exit{.code = info.si_status, .signal = 0};
  return Exit{.code = 0, .signal = info.si_status};
}

std::vector<std::string> WorkerEnvironment() {
  // LD_LIBRARY_PATH: where a release brings its libraries with it.
  // CUDA_*: which GPUs there are for it, in which order, and by whose leave.
  constexpr std::array<const char*, 7> kAllowed = {
      "GRIDCLOCK_CPU_LEVEL",   "GRIDCLOCK_FAULT",   "LD_LIBRARY_PATH",
      "CUDA_VISIBLE_DEVICES",  "CUDA_DEVICE_ORDER", "CUDA_MPS_PIPE_DIRECTORY",
      "CUDA_MPS_LOG_DIRECTORY"};
  std::vector<std::string> environment;
  for (const char* name : kAllowed) {
    if (const char* value = std::getenv(name))
      environment.push_back(absl::StrCat(name, "=", value));
  }
  return environment;
}

std::vector<std::string> EnvironmentFor(std::vector<std::string> environment,
                                        absl::string_view uuid) {
  static constexpr absl::string_view kVisible = "CUDA_VISIBLE_DEVICES=";
  if (!absl::StartsWith(uuid, "MIG-")) return environment;
  std::erase_if(environment,
                [](const std::string& word) { return absl::StartsWith(word, kVisible); });
  environment.push_back(absl::StrCat(kVisible, uuid));
  return environment;
}

}  // namespace gridclock
