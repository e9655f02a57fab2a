#include "kernels/compiler/sandbox.h"

#include <cerrno>

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/sandbox/call_filter.h"
#include "kernels/sandbox/capabilities.h"

namespace gridclock {
namespace {

// Of a sanitizer's program the address space tells nothing.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kShadowMemory = true;
#else
constexpr bool kShadowMemory = false;
#endif

absl::Status Limit(int resource, std::uint64_t value, absl::string_view name) {
  const rlimit limit{value, value};
  if (setrlimit(static_cast<__rlimit_resource_t>(resource), &limit) == 0) return absl::OkStatus();
  return gridclock::ErrnoToStatus(errno, name);
}

absl::Status SetLimits(const SandboxLimits& limits) {
  if (!kShadowMemory) GC_RETURN_IF_ERROR(Limit(RLIMIT_AS, limits.memory_bytes, "RLIMIT_AS"));
  GC_RETURN_IF_ERROR(Limit(RLIMIT_CPU, limits.cpu_seconds, "RLIMIT_CPU"));
  GC_RETURN_IF_ERROR(Limit(RLIMIT_FSIZE, limits.file_bytes, "RLIMIT_FSIZE"));
  GC_RETURN_IF_ERROR(Limit(RLIMIT_CORE, 0, "RLIMIT_CORE"));
  return Limit(RLIMIT_NOFILE, 64, "RLIMIT_NOFILE");
}

constexpr int kAllowed[] = {SCMP_SYS(read),
                            SCMP_SYS(write),
                            SCMP_SYS(close),
                            SCMP_SYS(newfstatat),
                            SCMP_SYS(fstat),
                            SCMP_SYS(stat),
                            SCMP_SYS(lseek),
                            SCMP_SYS(mmap),
                            SCMP_SYS(munmap),
                            SCMP_SYS(mremap),
                            SCMP_SYS(mprotect),
                            SCMP_SYS(madvise),
                            SCMP_SYS(brk),
                            SCMP_SYS(futex),
                            SCMP_SYS(gettid),
                            SCMP_SYS(getpid),
                            SCMP_SYS(clock_gettime),
                            SCMP_SYS(gettimeofday),
                            SCMP_SYS(getrandom),
                            SCMP_SYS(getcwd),
                            SCMP_SYS(getrusage),
                            SCMP_SYS(sysinfo),
                            SCMP_SYS(sched_yield),
                            SCMP_SYS(sched_get_priority_min),
                            SCMP_SYS(sched_getaffinity),
                            SCMP_SYS(sched_get_priority_max),
                            SCMP_SYS(rt_sigaction),
                            SCMP_SYS(rt_sigprocmask),
                            SCMP_SYS(rt_sigreturn),
                            SCMP_SYS(exit),
                            SCMP_SYS(exit_group),
                            SCMP_SYS(pread64),
                            SCMP_SYS(access),
                            SCMP_SYS(readlink),
                            SCMP_SYS(set_robust_list),
                            SCMP_SYS(rseq),
                            SCMP_SYS(sigaltstack),
                            SCMP_SYS(nanosleep),
                            SCMP_SYS(clock_nanosleep),
                            SCMP_SYS(uname),
                            SCMP_SYS(times),
                            SCMP_SYS(ftruncate),
                            SCMP_SYS(writev)};
// What a program needs to become another one, and that one to start.
constexpr int kAllowedToBecome[] = {
    SCMP_SYS(execve),  SCMP_SYS(arch_prctl), SCMP_SYS(set_tid_address), SCMP_SYS(getuid),
    SCMP_SYS(geteuid), SCMP_SYS(getgid),     SCMP_SYS(getegid)};

absl::Status RestrictCalls(bool may_open, bool may_become) {
  CallFilter filter(SCMP_ACT_KILL_PROCESS);
  for (const int call : kAllowed) filter.Add(SCMP_ACT_ALLOW, call);
  if (may_become) {
    for (const int call : kAllowedToBecome) filter.Add(SCMP_ACT_ALLOW, call);
  }
  if (!may_open) {
    for (const int call : {SCMP_SYS(open), SCMP_SYS(openat)}) {
      filter.Add(SCMP_ACT_ERRNO(EACCES), call);
    }
  } else if (may_become) {
    for (const int call : {SCMP_SYS(open), SCMP_SYS(openat)}) filter.Add(SCMP_ACT_ALLOW, call);
  } else {
    // To read alone: Landlock before version 3 lets files be emptied.
    constexpr std::uint64_t kWriting = O_ACCMODE | O_CREAT | O_TRUNC;
    filter.Add(SCMP_ACT_ALLOW, SCMP_SYS(open), SCMP_A1(SCMP_CMP_MASKED_EQ, kWriting, O_RDONLY));
    filter.Add(SCMP_ACT_ALLOW, SCMP_SYS(openat), SCMP_A2(SCMP_CMP_MASKED_EQ, kWriting, O_RDONLY));
  }
  // Asked for by libraries that live without them.
  filter.Add(SCMP_ACT_ERRNO(ENOTTY), SCMP_SYS(ioctl));
  filter.Add(SCMP_ACT_ERRNO(EACCES), SCMP_SYS(getdents64));
  filter.Add(SCMP_ACT_ERRNO(EACCES), SCMP_SYS(unlink));
  filter.Add(SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(statx));
  filter.Add(SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3));
  // Threads, and no processes.
  constexpr std::uint64_t kThread = CLONE_THREAD | CLONE_VM;
  filter.Add(SCMP_ACT_ALLOW, SCMP_SYS(clone), SCMP_A0(SCMP_CMP_MASKED_EQ, kThread, kThread));
  // abort() signals itself. NVRTC sets the limit of its stack, which counts as memory; the others
  // can only be lowered.
  filter.Add(SCMP_ACT_ALLOW, SCMP_SYS(tgkill),
             SCMP_A0(SCMP_CMP_EQ, static_cast<std::uint64_t>(getpid()), 0));
  filter.Add(SCMP_ACT_ALLOW, SCMP_SYS(prlimit64), SCMP_A0(SCMP_CMP_EQ, 0, 0));
  return filter.Load();
}

}  // namespace

std::string SandboxText(int landlock) {
  return landlock > 0 ? absl::StrCat("landlock ", landlock, ", seccomp")
                      : "seccomp without files (no Landlock here)";
}

absl::Status EnterSandbox(const Sandbox& sandbox, int landlock) {
  const bool becomes = !sandbox.executable.empty();
  if (becomes && landlock < kLandlockOfTools) {
    return absl::FailedPreconditionError(absl::StrCat("want Landlock of version ", kLandlockOfTools,
                                                      " (Linux 6.2) or later, got ", landlock,
                                                      ": no program can be started safely"));
  }
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return ErrnoToStatus(errno, "PR_SET_PDEATHSIG");
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return ErrnoToStatus(errno, "no_new_privs");
  prctl(PR_SET_DUMPABLE, 0);
  GC_RETURN_IF_ERROR(SetLimits(sandbox.limits));
  GC_RETURN_IF_ERROR(DropCapabilities());
  if (landlock > 0) {
    GC_RETURN_IF_ERROR(RestrictFiles(
        {.readable = sandbox.readable, .executable = sandbox.executable, .devices = {}}, landlock));
  }
  return RestrictCalls(/*may_open=*/landlock > 0, becomes);
}

}  // namespace gridclock
