// A child process with the descriptors of a worker. Spawned, never forked: a fork of a server with
// gigabytes mapped takes tens of milliseconds and copies its locks.
#ifndef GRIDCLOCK_SERVER_FLEET_WORKER_PROCESS_H_
#define GRIDCLOCK_SERVER_FLEET_WORKER_PROCESS_H_

#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/unique_fd.h"

namespace gridclock {

class WorkerProcess {
 public:
  struct Options {
    std::string path;                                 // Absolute.
    std::vector<std::string> args;                    // Without the program's name.
    std::vector<std::string> environment;             // All of it: "NAME=value".
    int link_fd = -1, arena_fd = -1, status_fd = -1;  // Borrowed; -1: none.
  };
  // The calling thread MUST live as long as the worker: its death is the worker's signal to end
  // (PR_SET_PDEATHSIG, which the worker sets, is about the thread that spawned it).
  static absl::StatusOr<WorkerProcess> Spawn(const Options& options);
  WorkerProcess(WorkerProcess&& other) noexcept;
  // Kills and reaps what is still there: no orphan, no zombie. One that even so does not end within
  // a moment is left behind.
  ~WorkerProcess();

  pid_t pid() const { return pid_; }
  int pidfd() const { return pidfd_.get(); }       // Readable once it ended.
  int output_fd() const { return output_.get(); }  // What it prints; never blocks.
  // What it has worked; nothing where the system does not tell.
  std::optional<absl::Duration> CpuTime() const;
  // What ends a worker that does not listen. It ignores SIGTERM, which may come to all processes of
  // a service at once, while the server still lets its calls end.
  static constexpr int kEnd = SIGUSR2;
  // Thread-safe; nothing happens once it ended.
  void Signal(int signal) const;

  struct Exit {
    int code = 0;  // If signal is 0.
    int signal = 0;
  };
  // Waits for the end; nullopt if that takes longer than `limit`. At most once with a result.
  std::optional<Exit> Reap(absl::Duration limit);

 private:
  WorkerProcess(pid_t pid, UniqueFd pidfd, UniqueFd output);
  pid_t pid_ = -1;
  UniqueFd pidfd_, output_;
};

// Of the server's environment, what a worker may see.
std::vector<std::string> WorkerEnvironment();
// The same for the worker of the device with this UUID. Of a GPU's MIG instances a process sees one
// alone: the first, unless this names another.
std::vector<std::string> EnvironmentFor(std::vector<std::string> environment,
                                        absl::string_view uuid);

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_FLEET_WORKER_PROCESS_H_
