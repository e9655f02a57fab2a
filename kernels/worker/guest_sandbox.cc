#include "kernels/worker/guest_sandbox.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <vector>

#include <fcntl.h>
#include <glob.h>
#include <linux/sockios.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "kernels/sandbox/call_filter.h"
#include "kernels/sandbox/capabilities.h"
#include "kernels/sandbox/landlock.h"

namespace gridclock {
namespace {

constexpr int kLeastLandlock = 3;  // Before it a file that may be read can be emptied.

std::vector<std::string> Existing(std::span<const std::string> patterns) {
  std::vector<std::string> files;
  for (const std::string& pattern : patterns) {
    glob_t found{};
    if (glob(pattern.c_str(), 0, nullptr, &found) == 0) {
      files.insert(files.end(), found.gl_pathv, found.gl_pathv + found.gl_pathc);
    }
    globfree(&found);
  }
  return files;
}

std::vector<std::string> DeviceFiles() {
  const std::string patterns[] = {"/dev/null", "/dev/nvidia*", "/dev/nvidia-caps/*"};
  return Existing(patterns);
}

// Where libraries lie and what the driver asks of the kernel. Neither keys, tokens and tensors in
// other folders nor other clients' compiled code.
std::vector<std::string> ReadableFiles() {
  std::vector<std::string> patterns = {"/usr",  "/lib*", "/opt", "/etc/ld.so.cache",
                                       "/proc", "/sys",  "/dev"};
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path folder = program.parent_path();
  if (!error) patterns.insert(patterns.end(), {folder.string(), (folder / "../lib").string()});
  if (const char* libraries = getenv("LD_LIBRARY_PATH"); libraries != nullptr) {
    const std::vector<std::string> more = absl::StrSplit(libraries, ':', absl::SkipEmpty());
    patterns.insert(patterns.end(), more.begin(), more.end());
  }
  return Existing(patterns);
}

// The kernel reads 32 bits of a command, and the filter sees 64.
std::uint64_t Word(int command) {
  return static_cast<std::uint32_t>(command);
}

constexpr int kDenied[] = {
    // Other machines and processes.
    SCMP_SYS(socket), SCMP_SYS(socketpair), SCMP_SYS(connect), SCMP_SYS(bind), SCMP_SYS(listen),
    SCMP_SYS(accept), SCMP_SYS(accept4), SCMP_SYS(kill), SCMP_SYS(tkill), SCMP_SYS(rt_sigqueueinfo),
    SCMP_SYS(rt_tgsigqueueinfo), SCMP_SYS(pidfd_send_signal), SCMP_SYS(pidfd_getfd),
    SCMP_SYS(ptrace), SCMP_SYS(process_vm_readv), SCMP_SYS(process_vm_writev),
    SCMP_SYS(process_madvise), SCMP_SYS(kcmp), SCMP_SYS(shmget), SCMP_SYS(shmat), SCMP_SYS(msgget),
    SCMP_SYS(semget), SCMP_SYS(mq_open),
    // New programs and processes.
    SCMP_SYS(execve), SCMP_SYS(execveat), SCMP_SYS(fork), SCMP_SYS(vfork), SCMP_SYS(unshare),
    SCMP_SYS(setns), SCMP_SYS(setpriority), SCMP_SYS(ioprio_set), SCMP_SYS(migrate_pages),
    SCMP_SYS(move_pages),
    // Memory that no limit of the process counts, and its size under whoever else holds it.
    SCMP_SYS(memfd_create), SCMP_SYS(memfd_secret), SCMP_SYS(fallocate), SCMP_SYS(ftruncate),
    // Files again: Landlock holds for threads that began after it, not for the driver's.
    SCMP_SYS(creat), SCMP_SYS(truncate), SCMP_SYS(unlink), SCMP_SYS(unlinkat), SCMP_SYS(rename),
    SCMP_SYS(renameat), SCMP_SYS(renameat2), SCMP_SYS(link), SCMP_SYS(linkat), SCMP_SYS(symlink),
    SCMP_SYS(symlinkat), SCMP_SYS(mkdir), SCMP_SYS(mkdirat), SCMP_SYS(rmdir), SCMP_SYS(mknod),
    SCMP_SYS(mknodat),
    // Files beyond what Landlock knows of.
    SCMP_SYS(mount), SCMP_SYS(umount2), SCMP_SYS(open_tree), SCMP_SYS(move_mount), SCMP_SYS(fsopen),
    SCMP_SYS(fsmount), SCMP_SYS(fspick), SCMP_SYS(fsconfig), SCMP_SYS(mount_setattr),
    SCMP_SYS(pivot_root), SCMP_SYS(chroot), SCMP_SYS(chmod), SCMP_SYS(fchmod), SCMP_SYS(fchmodat),
    SCMP_SYS(chown), SCMP_SYS(fchown), SCMP_SYS(lchown), SCMP_SYS(fchownat), SCMP_SYS(utime),
    SCMP_SYS(utimes), SCMP_SYS(utimensat), SCMP_SYS(futimesat), SCMP_SYS(setxattr),
    SCMP_SYS(lsetxattr), SCMP_SYS(fsetxattr), SCMP_SYS(open_by_handle_at),
    SCMP_SYS(name_to_handle_at), SCMP_SYS(fanotify_init), SCMP_SYS(swapon), SCMP_SYS(swapoff),
    SCMP_SYS(quotactl),
    // The kernel itself.
    SCMP_SYS(bpf), SCMP_SYS(perf_event_open), SCMP_SYS(io_uring_setup), SCMP_SYS(io_uring_enter),
    SCMP_SYS(io_uring_register), SCMP_SYS(userfaultfd), SCMP_SYS(keyctl), SCMP_SYS(add_key),
    SCMP_SYS(request_key), SCMP_SYS(init_module), SCMP_SYS(finit_module), SCMP_SYS(delete_module),
    SCMP_SYS(kexec_load), SCMP_SYS(kexec_file_load), SCMP_SYS(reboot), SCMP_SYS(syslog),
    SCMP_SYS(acct), SCMP_SYS(settimeofday), SCMP_SYS(clock_settime), SCMP_SYS(adjtimex),
    SCMP_SYS(clock_adjtime), SCMP_SYS(sethostname), SCMP_SYS(setdomainname), SCMP_SYS(iopl),
    SCMP_SYS(ioperm), SCMP_SYS(personality), SCMP_SYS(vhangup)};

}  // namespace

absl::Status DropGuestRights() {
  return DropCapabilities();
}

absl::StatusOr<std::string> RestrictGuestFiles(bool weak) {
  // Where memory runs out a guest goes first.
  std::ofstream score("/proc/self/oom_score_adj");
  if (!(score << 1000 << std::flush)) return ErrnoToStatus(errno, "/proc/self/oom_score_adj");
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return ErrnoToStatus(errno, "no_new_privs");
  const int version = LandlockVersion();
  if (version < kLeastLandlock && !weak) {
    return absl::FailedPreconditionError(
        absl::StrCat("submitted code runs only behind Landlock of version ", kLeastLandlock,
                     " (Linux 6.2) or later, and here is ", version,
                     "; run a newer kernel, or allow a weaker sandbox"));
  }
  if (version == 0) return "no landlock";
  GC_RETURN_IF_ERROR(RestrictFiles(
      {.readable = ReadableFiles(), .executable = {}, .devices = DeviceFiles()}, version));
  return absl::StrCat("landlock ", version);
}

absl::Status RestrictGuestCalls() {
  CallFilter filter(SCMP_ACT_ALLOW);
  filter.CoverAllThreads();
  for (const int call : kDenied) filter.Add(SCMP_ACT_ERRNO(EPERM), call);
  // Threads, and no processes. The flags of clone3 cannot be seen: libraries then do without it.
  filter.Add(SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3));
  filter.Add(SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0));
  // Landlock holds for threads that began after it: those of the driver may open what exists, as
  // they do with their devices, and make or empty nothing. The flags of openat2 cannot be seen.
  filter.Add(SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(openat2));
  for (const auto flag : {O_CREAT, O_TRUNC, O_TMPFILE, O_WRONLY}) {
    const auto set = static_cast<std::uint64_t>(flag);
    filter.Add(SCMP_ACT_ERRNO(EPERM), SCMP_SYS(open), SCMP_A1(SCMP_CMP_MASKED_EQ, set, set));
    filter.Add(SCMP_ACT_ERRNO(EPERM), SCMP_SYS(openat), SCMP_A2(SCMP_CMP_MASKED_EQ, set, set));
  }
  // Signals by way of a file, and outliving the server.
  for (const int command : {F_SETOWN, F_SETOWN_EX, F_SETSIG}) {
    filter.Add(SCMP_ACT_ERRNO(EPERM), SCMP_SYS(fcntl), SCMP_A1(SCMP_CMP_EQ, Word(command), 0));
  }
  for (const int command : {FIOSETOWN, SIOCSPGRP}) {
    filter.Add(SCMP_ACT_ERRNO(EPERM), SCMP_SYS(ioctl), SCMP_A1(SCMP_CMP_EQ, Word(command), 0));
  }
  filter.Add(SCMP_ACT_ERRNO(EPERM), SCMP_SYS(prctl), SCMP_A0(SCMP_CMP_EQ, PR_SET_PDEATHSIG, 0));
  // abort() signals itself; limits and turns of others are no business of a guest.
  const auto self = static_cast<std::uint64_t>(getpid());
  filter.Add(SCMP_ACT_ERRNO(EPERM), SCMP_SYS(tgkill), SCMP_A0(SCMP_CMP_NE, self, 0));
  filter.Add(SCMP_ACT_ERRNO(EPERM), SCMP_SYS(prlimit64), SCMP_A0(SCMP_CMP_NE, 0, 0));
  for (const int call : {SCMP_SYS(sched_setaffinity), SCMP_SYS(sched_setscheduler),
                         SCMP_SYS(sched_setparam), SCMP_SYS(sched_setattr)}) {
    filter.Add(SCMP_ACT_ERRNO(EPERM), call, SCMP_A0(SCMP_CMP_NE, 0, 0));
  }
  return filter.Load();
}

}  // namespace gridclock
