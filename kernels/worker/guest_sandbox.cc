#include "kernels/worker/guest_sandbox.h"

#include <cerrno>
#include <vector>

#include <glob.h>
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/sandbox/call_filter.h"
#include "kernels/sandbox/capabilities.h"
#include "kernels/sandbox/landlock.h"

namespace gridclock {
namespace {

constexpr int kLeastLandlock = 3;  // Before it a file that may be read can be emptied.

std::vector<std::string> DeviceFiles() {
  std::vector<std::string> files = {"/dev/null"};
  for (const char* pattern : {"/dev/nvidia*", "/dev/nvidia-caps/*"}) {
    glob_t found{};
    if (glob(pattern, 0, nullptr, &found) == 0) {
      files.insert(files.end(), found.gl_pathv, found.gl_pathv + found.gl_pathc);
    }
    globfree(&found);
  }
  return files;
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
    SCMP_SYS(setns),
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

absl::StatusOr<std::string> RestrictGuestFiles(bool weak) {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return ErrnoToStatus(errno, "no_new_privs");
  const int version = LandlockVersion();
  if (version < kLeastLandlock && !weak) {
    return absl::FailedPreconditionError(
        absl::StrCat("submitted code runs only behind Landlock of version ", kLeastLandlock,
                     " (Linux 6.2) or later, and here is ", version,
                     "; run a newer kernel, or allow a weaker sandbox"));
  }
  GC_RETURN_IF_ERROR(DropCapabilities());
  if (version == 0) return "no landlock";
  GC_RETURN_IF_ERROR(
      RestrictFiles({.readable = {"/"}, .executable = {}, .devices = DeviceFiles()}, version));
  return absl::StrCat("landlock ", version);
}

absl::Status RestrictGuestCalls() {
  CallFilter filter(SCMP_ACT_ALLOW);
  filter.CoverAllThreads();
  for (const int call : kDenied) filter.Add(SCMP_ACT_ERRNO(EPERM), call);
  // Threads, and no processes. The flags of clone3 cannot be seen: libraries then do without it.
  filter.Add(SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3));
  filter.Add(SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0));
  // abort() signals itself; limits of others are no business of a guest.
  const auto self = static_cast<std::uint64_t>(getpid());
  filter.Add(SCMP_ACT_ERRNO(EPERM), SCMP_SYS(tgkill), SCMP_A0(SCMP_CMP_NE, self, 0));
  filter.Add(SCMP_ACT_ERRNO(EPERM), SCMP_SYS(prlimit64), SCMP_A0(SCMP_CMP_NE, 0, 0));
  return filter.Load();
}

}  // namespace gridclock
