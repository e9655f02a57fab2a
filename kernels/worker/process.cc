#include "kernels/worker/process.h"

#include <cerrno>
#include <climits>
#include <fstream>

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "kernels/sandbox/victim.h"

namespace gridclock {
namespace {

absl::StatusOr<void*> Map(int fd, std::uint64_t bytes, absl::string_view name) {
  struct stat facts {};
  if (fstat(fd, &facts) != 0) return gridclock::ErrnoToStatus(errno, name);
  if (facts.st_size < 0 || static_cast<std::uint64_t>(facts.st_size) < bytes) {
    return absl::FailedPreconditionError(
        absl::StrCat(name, ": want ", bytes, " bytes, the descriptor has ", facts.st_size));
  }
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (data == MAP_FAILED) return ErrnoToStatus(errno, absl::StrCat("map ", name));
  return data;
}

}  // namespace

absl::Status SettleProcess() {
  const pid_t parent = getppid();
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return ErrnoToStatus(errno, "PR_SET_PDEATHSIG");
  // The parent may have died before it was asked for.
  if (getppid() != parent) return absl::UnavailableError("the server is gone");
  BeFirstVictim();
  prctl(PR_SET_DUMPABLE, 0);
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  const rlimit none{0, 0};
  if (setrlimit(RLIMIT_CORE, &none) != 0) return ErrnoToStatus(errno, "RLIMIT_CORE");
  umask(077);
  if (syscall(SYS_close_range, kStatusFd + 1, UINT_MAX, 0) != 0) {
    return ErrnoToStatus(errno, "close_range");
  }
  for (const int fd : {kLinkFd, kArenaFd, kStatusFd}) {
    if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) {
      return ErrnoToStatus(errno, absl::StrCat("descriptor ", fd, ", which the server must give"));
    }
  }
  signal(SIGPIPE, SIG_IGN);
  // The server's to handle: a terminal's Ctrl-C or its end, and what systemd sends to all of a
  // service.
  signal(SIGHUP, SIG_IGN);
  signal(SIGINT, SIG_IGN);
  signal(SIGTERM, SIG_IGN);
  return absl::OkStatus();
}

absl::Status CloseStandardOutput() {
  const UniqueFd nothing(open("/dev/null", O_WRONLY | O_CLOEXEC));
  if (!nothing || dup2(nothing.get(), STDOUT_FILENO) < 0) return ErrnoToStatus(errno, "/dev/null");
  return absl::OkStatus();
}

absl::Status LimitPrivateMemory(std::uint64_t bytes) {
  std::uint64_t size = 0, resident = 0, shared = 0, text = 0, library = 0, data = 0;
  std::ifstream statm("/proc/self/statm");
  if (!(statm >> size >> resident >> shared >> text >> library >> data)) {
    return absl::InternalError("/proc/self/statm: want six numbers");
  }
  const std::uint64_t most = data * static_cast<std::uint64_t>(sysconf(_SC_PAGE_SIZE)) + bytes;
  const rlimit limit{most, most};
  if (setrlimit(RLIMIT_DATA, &limit) != 0) return ErrnoToStatus(errno, "RLIMIT_DATA");
  return absl::OkStatus();
}

absl::StatusOr<std::span<std::byte>> MapArena(std::uint64_t bytes) {
  if (bytes == 0) return absl::InvalidArgumentError("--arena-bytes: want a size, got 0");
  // A file that shrinks under its mapping kills whoever touches it.
  const int seals = fcntl(kArenaFd, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
    return absl::FailedPreconditionError("the arena is not sealed against shrinking");
  }
  GC_ASSIGN_OR_RETURN(void* data, Map(kArenaFd, bytes, "arena"));
  return std::span(static_cast<std::byte*>(data), bytes);
}

absl::StatusOr<StatusPage*> MapStatusPage() {
  GC_ASSIGN_OR_RETURN(void* data, Map(kStatusFd, sizeof(StatusPage), "status page"));
  return static_cast<StatusPage*>(data);
}

}  // namespace gridclock
