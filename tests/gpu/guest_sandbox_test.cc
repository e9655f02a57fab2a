// A guest's sandbox around a live CUDA context: what it denies while a kernel runs, and that the
// GPU works on behind it.
#include "kernels/worker/guest_sandbox.h"

#include <cerrno>
#include <cstdio>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/device/cuda/cuda_device.h"
#include "kernels/device/cuda/cuda_error.h"
#include "kernels/sandbox/landlock.h"
#include "tests/gpu/test_kernels.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

constexpr int kNoGpu = 77;

#define TELL(status)                                                                 \
  if (const absl::Status& told = (status); !told.ok()) {                             \
    std::fprintf(stderr, "%s: %s\n", #status, std::string(told.ToString()).c_str()); \
    _exit(10);                                                                       \
  }

int ErrnoOf(long result) {
  return result < 0 ? errno : 0;
}

int TryFork() {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  return ErrnoOf(child);
}

// Whether each is denied, while the stream of the device is busy.
bool AllDenied() {
  char program[] = "/bin/true";
  char* const arguments[] = {program, nullptr};
  const int errors[] = {ErrnoOf(socket(AF_INET, SOCK_STREAM, 0)),
                        ErrnoOf(socket(AF_UNIX, SOCK_STREAM, 0)),
                        ErrnoOf(execve(program, arguments, arguments + 1)),
                        TryFork(),
                        ErrnoOf(open("/tmp/gridclock-gpu-probe", O_WRONLY | O_CREAT, 0600)),
                        ErrnoOf(open("/proc/self/mem", O_RDWR)),
                        ErrnoOf(kill(getppid(), 0))};
  bool all = true;
  for (const int error : errors) {
    std::fprintf(stderr, "errno %d\n", error);
    all = all && (error == EPERM || error == EACCES);
  }
  return all;
}

// What a guest's kernels need of the driver behind the sandbox.
absl::Status UseEverything(CudaDevice& device) {
  std::vector<std::byte> host(8 << 20, std::byte{3}), back(host.size());
  GC_RETURN_IF_ERROR(device.RegisterHost(host));
  GC_ASSIGN_OR_RETURN(const auto buffer, device.Allocate(host.size()));
  GC_RETURN_IF_ERROR(device.CopyIn(buffer->data(), host));
  GC_RETURN_IF_ERROR(device.CopyOut(back, buffer->data()));
  GC_RETURN_IF_ERROR(device.Synchronize());
  if (back != host) return absl::InternalError("copies came back changed");
  const auto spin = [&] {
    return CudaStatus(LaunchSpin(20'000, static_cast<cudaStream_t>(device.stream())), "spin");
  };
  for (const Method method : device.methods()) {
    device.NewLaunch();
    const auto timed = device.Time(method, spin);
    GC_RETURN_IF_ERROR(timed.status());
    std::fprintf(stderr, "method %d: %.0f ns\n", static_cast<int>(method), timed->duration_ns);
  }
  return device.PrepareCache(L2State::kColdClean);
}

[[noreturn]] void BeAGuest() {
  TELL(DropGuestRights());
  auto device = CudaDevice::Create({});
  if (DetailsOf(device.status()).reason == "NO_DEVICE") _exit(kNoGpu);
  TELL(device.status());
  const auto files = RestrictGuestFiles(/*weak=*/false);
  TELL(files.status());
  TELL(RestrictGuestCalls());
  std::fprintf(stderr, "%s\n", files->c_str());
  TELL(CudaStatus(LaunchSpin(300'000'000, static_cast<cudaStream_t>((*device)->stream())), "spin"));
  if (!AllDenied()) _exit(11);
  if (cudaStreamQuery(static_cast<cudaStream_t>((*device)->stream())) != cudaErrorNotReady) {
    _exit(12);  // The kernel was not running meanwhile.
  }
  TELL((*device)->Synchronize());
  TELL(UseEverything(**device));
  _exit(0);
}

TEST(GuestSandbox, DeniesWhileAKernelRunsAndLetsTheGpuWork) {
  if (LandlockVersion() < 3) GTEST_SKIP() << "Landlock here is " << LandlockVersion();
  // The driver is first met in the child: it does not outlive a fork.
  const pid_t child = fork();
  if (child == 0) BeAGuest();
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNoGpu) GTEST_SKIP() << "no GPU here";
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0) << "11: something was let; 12: the kernel had ended; 10: above";
}

}  // namespace
}  // namespace gridclock
