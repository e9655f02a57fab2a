// A child that SIGKILL does not end, as one that a driver holds.
#ifndef GRIDCLOCK_TESTS_SUPPORT_HELD_PROCESS_H_
#define GRIDCLOCK_TESTS_SUPPORT_HELD_PROCESS_H_

#include <csignal>
#include <utility>

#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gridclock {

// It stops on its way out until it is let go: another process traces it, as to a tracer that is the
// parent waitid would tell of the stop.
class HeldProcess {
 public:
  explicit HeldProcess(pid_t pid) {
    int held[2];
    if (pipe(held) != 0) return;
    tracer_ = fork();
    if (tracer_ == 0) {
      const char done = ptrace(PTRACE_SEIZE, pid, nullptr, PTRACE_O_TRACEEXIT) == 0 ? 1 : 0;
      if (write(held[1], &done, 1) == 1) pause();
      _exit(0);
    }
    char done = 0;
    held_ = tracer_ > 0 && read(held[0], &done, 1) == 1 && done == 1;
    close(held[0]);
    close(held[1]);
  }
  HeldProcess(const HeldProcess&) = delete;
  ~HeldProcess() { LetGo(); }

  // False where the system lets nobody trace.
  bool held() const { return held_; }
  void LetGo() {
    const pid_t tracer = std::exchange(tracer_, -1);
    if (tracer <= 0) return;
    kill(tracer, SIGKILL);
    waitpid(tracer, nullptr, 0);
  }

 private:
  pid_t tracer_ = -1;
  bool held_ = false;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_TESTS_SUPPORT_HELD_PROCESS_H_
