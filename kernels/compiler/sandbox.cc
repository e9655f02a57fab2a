#include "kernels/compiler/sandbox.h"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/unique_fd.h"

namespace gridclock {
namespace {

// Debian 12's header ends with the first version; these are the fields up to version 6.
struct RulesetAttributes {
  std::uint64_t files = 0, network = 0, scoped = 0;
};
constexpr std::size_t kRulesetBytes[] = {8, 8, 8, 16, 16, 24};     // By version, from 1.
constexpr std::uint64_t kFileRights[] = {13, 14, 15, 15, 16, 16};  // Their number.
constexpr int kKnownVersions = 6;
constexpr std::uint64_t kAllNetwork = 3;  // TCP: bind and connect.
constexpr std::uint64_t kAllScopes = 3;   // Abstract sockets and signals.

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

absl::Status AddRule(int ruleset, const std::string& path, std::uint64_t rights) {
  const UniqueFd fd(open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!fd) return ErrnoToStatus(errno, path);
  struct stat facts {};
  if (fstat(fd.get(), &facts) != 0) return ErrnoToStatus(errno, path);
  if (!S_ISDIR(facts.st_mode)) rights &= ~std::uint64_t{LANDLOCK_ACCESS_FS_READ_DIR};
  landlock_path_beneath_attr rule{};
  rule.allowed_access = rights;
  rule.parent_fd = fd.get();
  if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0) {
    return absl::OkStatus();
  }
  return ErrnoToStatus(errno, absl::StrCat("landlock rule for ", path));
}

absl::Status RestrictFiles(const Sandbox& sandbox, int version) {
  const int known = std::min(version, kKnownVersions);
  const RulesetAttributes attributes{.files = (std::uint64_t{1} << kFileRights[known - 1]) - 1,
                                     .network = known >= 4 ? kAllNetwork : 0,
                                     .scoped = known >= 6 ? kAllScopes : 0};
  const UniqueFd ruleset(static_cast<int>(
      syscall(SYS_landlock_create_ruleset, &attributes, kRulesetBytes[known - 1], 0)));
  if (!ruleset) return ErrnoToStatus(errno, "landlock ruleset");
  constexpr std::uint64_t kRead = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
  for (const std::string& path : sandbox.readable) {
    GC_RETURN_IF_ERROR(AddRule(ruleset.get(), path, kRead));
  }
  for (const std::string& path : sandbox.executable) {
    GC_RETURN_IF_ERROR(AddRule(ruleset.get(), path, kRead | LANDLOCK_ACCESS_FS_EXECUTE));
  }
  if (syscall(SYS_landlock_restrict_self, ruleset.get(), 0) == 0) return absl::OkStatus();
  return ErrnoToStatus(errno, "landlock");
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

// Of a server that root runs: a compile can do no more than anybody's.
absl::Status DropCapabilities() {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  const __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};
  if (syscall(SYS_capset, &header, none) == 0) return absl::OkStatus();
  return ErrnoToStatus(errno, "capset");
}

class Filter {
 public:
  Filter() : context_(seccomp_init(SCMP_ACT_KILL_PROCESS)) {}
  ~Filter() {
    if (context_ != nullptr) seccomp_release(context_);
  }
  template <typename... Conditions>
  void Add(std::uint32_t action, int call, Conditions... conditions) {
    if (context_ == nullptr || failed_ != 0) return;
    failed_ = seccomp_rule_add(context_, action, call, sizeof...(conditions), conditions...);
  }
  absl::Status Load() {
    if (context_ == nullptr) return absl::InternalError("seccomp: no filter");
    if (failed_ == 0) failed_ = seccomp_load(context_);
    return failed_ == 0 ? absl::OkStatus() : ErrnoToStatus(-failed_, "seccomp");
  }

 private:
  scmp_filter_ctx context_;
  int failed_ = 0;
};

absl::Status RestrictCalls(bool may_open, bool may_become) {
  Filter filter;
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
  filter.Add(SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3));
  filter.Add(SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(statx));
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

int LandlockVersion() {
  const long version =
      syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  return version > 0 ? static_cast<int>(version) : 0;
}

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
  if (landlock > 0) GC_RETURN_IF_ERROR(RestrictFiles(sandbox, landlock));
  return RestrictCalls(/*may_open=*/landlock > 0, becomes);
}

}  // namespace gridclock
