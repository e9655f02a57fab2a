// Preloaded into a server under callgrind: valgrind before 3.21 has no pidfd_open, without which a
// server starts no worker. A pipe that becomes readable at the child's end stands for the pidfd.
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <thread>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

std::array<std::atomic<pid_t>, 4096> children;  // By the number of the pipe's end.

pid_t ChildOf(long fd) {
  return fd >= 0 && fd < static_cast<long>(children.size()) ? children[fd].load() : 0;
}

long Open(pid_t pid) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return -1;
  if (ends[0] >= static_cast<int>(children.size())) {
    errno = EMFILE;
    return -1;
  }
  children[ends[0]] = pid;
  std::thread([pid, end = ends[1]] {
    siginfo_t info{};
    while (waitid(P_PID, pid, &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
    }
    if (write(end, "", 1) == 1) close(end);
  }).detach();
  return ends[0];
}

}  // namespace

extern "C" long syscall(long number, ...) noexcept {
  static const auto real = reinterpret_cast<long (*)(long, ...)>(dlsym(RTLD_NEXT, "syscall"));
  std::array<long, 6> a{};
  va_list list;
  va_start(list, number);
  for (long& each : a) each = va_arg(list, long);
  va_end(list);
  if (number == SYS_pidfd_open) return Open(static_cast<pid_t>(a[0]));
  if (number == SYS_pidfd_send_signal && ChildOf(a[0]) > 0) {
    return kill(ChildOf(a[0]), static_cast<int>(a[1]));
  }
  return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

extern "C" int waitid(idtype_t type, id_t id, siginfo_t* info, int options) {
  static const auto real =
      reinterpret_cast<int (*)(idtype_t, id_t, siginfo_t*, int)>(dlsym(RTLD_NEXT, "waitid"));
  const pid_t child = type == P_PIDFD ? ChildOf(id) : 0;
  return child > 0 ? real(P_PID, child, info, options) : real(type, id, info, options);
}
