// gridclock-compiler: compiles what clients submit, for gridclock-server, which starts it.
#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>

#include <CLI/CLI.hpp>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/frames.h"
#include "base/log.h"
#include "base/status.h"
#include "kernels/compiler/children.h"
#include "kernels/sandbox/victim.h"
#include "proto/types/status_page.h"

namespace gridclock {
namespace {

struct Flags {
  std::string cuda_home;
  double seconds = 5;
  std::size_t order_bytes = 0;
  Children::Limits limits;
};

void Declare(CLI::App& app, Flags& flags) {
  WorkLimits& work = flags.limits.work;
  app.add_option("--cuda-home", flags.cuda_home, "Folder of the CUDA toolkit");
  app.add_option("--seconds", flags.seconds, "CPU time of a compile, and its time by the clock");
  app.add_option("--memory-bytes", work.sandbox.memory_bytes, "Address space of a compile");
  app.add_option("--order-bytes", flags.order_bytes, "Longest order of the server")->required();
  app.add_option("--log-bytes", work.log_bytes, "Longest log of a compile");
}

absl::Status Settle() {
  const pid_t parent = getppid();
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return ErrnoToStatus(errno, "PR_SET_PDEATHSIG");
  if (getppid() != parent) return absl::UnavailableError("the server is gone");
  BeFirstVictim();
  prctl(PR_SET_DUMPABLE, 0);
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (syscall(SYS_close_range, kLinkFd + 1, UINT_MAX, 0) != 0 ||
      fcntl(kLinkFd, F_SETFD, FD_CLOEXEC) != 0) {
    return ErrnoToStatus(errno, "the descriptor that the server must give");
  }
  signal(SIGPIPE, SIG_IGN);
  // The server's to handle: a terminal's Ctrl-C or its end, and what systemd sends to all of a
  // service.
  signal(SIGHUP, SIG_IGN);
  signal(SIGINT, SIG_IGN);
  signal(SIGTERM, SIG_IGN);
  return absl::OkStatus();
}

absl::StatusOr<Tools> MakeTools(const Flags& flags) {
  Tools tools;
  tools.toolkit = FindToolkit(flags.cuda_home);
  tools.landlock = LandlockVersion();
  auto nvrtc = Nvrtc::Open(tools.toolkit.nvrtc);
  if (nvrtc.ok()) {
    tools.nvrtc = *std::move(nvrtc);
  } else {
    tools.no_nvrtc = std::string(nvrtc.status().message());
  }
  GC_RETURN_IF_ERROR(WarmUp(tools, /*arch=*/""));
  return tools;
}

class Loop {
 public:
  Loop(const Tools& tools, const Flags& flags)
      : children_(tools, flags.limits, clock_, [this] { ForgetOthers(); }),
        reader_(FrameReader(flags.order_bytes)) {
    worker::v1::FromCompiler message;
    message.mutable_hello()->set_protocol(kWorkerProtocol);
    Describe(tools, message.mutable_hello());
    Say(message);
  }

  // Until the server is gone.
  absl::Status Run() {
    while (true) {
      if (!SendSome(kLinkFd, unsent_)) return absl::OkStatus();
      children_.Prepare();
      Wait();
      switch (ReadSome(kLinkFd, *reader_)) {
        case StreamRead::kEnd:
          return absl::OkStatus();
        case StreamRead::kBytes:
          GC_RETURN_IF_ERROR(TakeMessages());
          break;
        case StreamRead::kNothing:
          break;
      }
      for (worker::v1::CompilerAnswer& answer : children_.TakeAnswers()) {
        worker::v1::FromCompiler message;
        *message.mutable_answer() = std::move(answer);
        Say(message);
      }
    }
  }

 private:
  void Say(const worker::v1::FromCompiler& message) {
    AppendFrame(message.SerializeAsString(), &unsent_);
  }

  // In a child: what came of other orders and goes to others.
  void ForgetOthers() {
    reader_.reset();
    std::string().swap(unsent_);
  }

  void Wait() const {
    const short events = unsent_.empty() ? POLLIN : POLLIN | POLLOUT;
    std::vector<pollfd> polled = {{.fd = kLinkFd, .events = events, .revents = 0}};
    children_.AddPolled(&polled);
    const absl::Time end = children_.NextDeadline();
    const absl::Duration left =
        std::clamp(end - clock_.Now(), absl::ZeroDuration(), absl::Hours(1));
    poll(polled.data(), polled.size(),
         static_cast<int>(absl::ToInt64Milliseconds(left + absl::Microseconds(999))));
  }

  absl::Status TakeMessages() {
    while (true) {
      GC_ASSIGN_OR_RETURN(const std::optional<std::string> bytes, reader_->Next());
      if (!bytes) return absl::OkStatus();
      worker::v1::ToCompiler message;
      if (!message.ParseFromString(*bytes)) return absl::InternalError("an order is no message");
      if (message.has_order()) children_.Start(message.order());
      if (message.message_case() == worker::v1::ToCompiler::kCancel) {
        children_.Cancel(message.cancel());
      }
    }
  }

  const MonotonicClock clock_;
  Children children_;
  std::optional<FrameReader> reader_;
  std::string unsent_;
};

absl::Status Serve(const Flags& flags) {
  GC_RETURN_IF_ERROR(Settle());
  GC_ASSIGN_OR_RETURN(const Tools tools, MakeTools(flags));
  return Loop(tools, flags).Run();
}

int Main(int argc, char** argv) {
  Flags flags;
  CLI::App app("Compiles for gridclock-server, which starts it. Not meant to be run by hand.",
               "gridclock-compiler");
  Declare(app, flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  flags.limits.work.sandbox.cpu_seconds =
      static_cast<std::uint32_t>(std::max(1.0, std::ceil(flags.seconds)));
  flags.limits.wall = absl::Seconds(flags.seconds);
  flags.limits.cpus = std::thread::hardware_concurrency();
  const absl::Status status = Serve(flags);
  if (status.ok() || absl::IsUnavailable(status)) return 0;
  Log(LogLevel::kError, "compiler_failed", {{"error", std::string(status.message())}});
  return 1;
}

}  // namespace
}  // namespace gridclock

// A child inherits the memory of the process that forks it, also what is free there: so nothing of
// an order stays in what is given back.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
void operator delete(void* memory) noexcept {
  if (memory != nullptr) explicit_bzero(memory, malloc_usable_size(memory));
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  operator delete(memory);
}
#endif

int main(int argc, char** argv) {
  return gridclock::Main(argc, argv);
}
