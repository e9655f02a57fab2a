// A real gridclock-server with its workers, for the length of a test.
#ifndef GRIDCLOCK_TESTS_SUPPORT_SERVER_PROCESS_H_
#define GRIDCLOCK_TESTS_SUPPORT_SERVER_PROCESS_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace gridclock {

class ServerProcess {
 public:
  struct Options {
    std::vector<std::string> flags = {};  // Behind those for free ports, worker and ready file.
    std::vector<std::string> environment = {};  // "GRIDCLOCK_FAULT=..."; added to ours.
    std::string program = "gridclock-server";
    std::string worker = "gridclock-test-worker";
    std::string log = "";  // Where it writes its log; "": a file of its own, for Log().
    int descriptors = 0;   // RLIMIT_NOFILE, hard and soft; 0: ours.
    bool wait_until_ready = true;
  };

  // Waits until calls can be served. UNAVAILABLE with the log if the server ends before that.
  static absl::StatusOr<std::unique_ptr<ServerProcess>> Start(Options options);
  static absl::StatusOr<std::unique_ptr<ServerProcess>> Start() { return Start(Options()); }
  // Kills what is still alive.
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  const std::string& address() const { return address_; }  // "127.0.0.1:41873"
  const std::string& metrics_address() const { return metrics_address_; }
  // That of one that may never be ready, by its log.
  std::string ListensOn() const;
  pid_t pid() const { return pid_; }
  // Children of the server that live now.
  std::vector<pid_t> Workers() const;
  std::string Log() const;
  // Waits for these words there: lines are written behind what they tell of.
  bool WillLog(const std::string& words) const;
  // All of it. Ends the server.
  std::string FinalLog();
  // The page of /metrics.
  std::string Metrics() const;
  // The value of the first series there that begins with these words, as `name{device="cpu"`.
  std::optional<double> Metric(const std::string& series) const;

  void Signal(int signal) const;
  // Ends the call of the kernel `hold` that runs, or the next one.
  void LetGo() const;
  // The exit code, or 128 + the signal that ended it; -1 if it still lives after `limit`.
  int Wait(absl::Duration limit = absl::Seconds(60));

 private:
  ServerProcess(std::string folder, pid_t pid) : folder_(std::move(folder)), pid_(pid) {}
  absl::Status WaitUntilReady();

  std::string folder_;
  pid_t pid_;
  bool ended_ = false;
  int code_ = -1;
  std::string address_, metrics_address_;
};

// Whether there is such a process that has not ended: nobody may have reaped it yet.
bool Lives(pid_t pid);

// The programs that were built, or, of tests that run elsewhere, in the folder GRIDCLOCK_BIN; and a
// folder for a test's own files: "" if none can be made.
std::string BinaryPath(const std::string& name);
std::string NewFolder();
// A program of lines for /bin/sh.
std::string NewScript(const std::string& lines);

// True as soon as `condition` is; false if it is not within `limit`.
template <typename Condition>
bool Eventually(const Condition& condition, absl::Duration limit = absl::Seconds(60));

}  // namespace gridclock

#include "absl/time/clock.h"

namespace gridclock {

template <typename Condition>
bool Eventually(const Condition& condition, absl::Duration limit) {
  const absl::Time end = absl::Now() + limit;
  while (!condition()) {
    if (absl::Now() > end) return false;
    absl::SleepFor(absl::Milliseconds(5));
  }
  return true;
}

}  // namespace gridclock

#endif  // GRIDCLOCK_TESTS_SUPPORT_SERVER_PROCESS_H_
