#include "server/fleet/worker_process.h"

#include <algorithm>
#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/support/held_process.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

absl::StatusOr<WorkerProcess> Sleep() {
  return WorkerProcess::Spawn({.path = "/bin/sleep", .args = {"3600"}, .environment = {}});
}

TEST(WorkerProcess, IsReapedOnceItEnded) {
  ASSERT_OK_AND_ASSIGN(WorkerProcess process, Sleep());
  EXPECT_FALSE(process.Reap(absl::Milliseconds(10)).has_value());
  process.Signal(SIGKILL);
  const auto exit = process.Reap(absl::Minutes(1));
  ASSERT_TRUE(exit.has_value());
  EXPECT_EQ(exit->signal, SIGKILL);
}

// All that a process says before it ends.
std::string Output(WorkerProcess& process) {
  EXPECT_TRUE(process.Reap(absl::Minutes(1)).has_value());
  char text[4096];
  const ssize_t got = read(process.output_fd(), text, sizeof(text));
  return {text, static_cast<std::size_t>(std::max<ssize_t>(0, got))};
}

TEST(WorkerProcess, OfAMigInstanceSeesThatAlone) {
  const std::vector<std::string> all = {"LD_LIBRARY_PATH=/opt", "CUDA_VISIBLE_DEVICES=MIG-1,MIG-2"};
  const auto spawned = [&](absl::string_view uuid) {
    return WorkerProcess::Spawn(
        {.path = "/usr/bin/env", .args = {}, .environment = EnvironmentFor(all, uuid)});
  };
  ASSERT_OK_AND_ASSIGN(WorkerProcess instance, spawned("MIG-2"));
  EXPECT_EQ(Output(instance), "LD_LIBRARY_PATH=/opt\nCUDA_VISIBLE_DEVICES=MIG-2\n");
  ASSERT_OK_AND_ASSIGN(WorkerProcess whole, spawned("GPU-1"));
  EXPECT_EQ(Output(whole), "LD_LIBRARY_PATH=/opt\nCUDA_VISIBLE_DEVICES=MIG-1,MIG-2\n");
  ASSERT_OK_AND_ASSIGN(WorkerProcess cpu, spawned(""));
  EXPECT_EQ(Output(cpu), "LD_LIBRARY_PATH=/opt\nCUDA_VISIBLE_DEVICES=MIG-1,MIG-2\n");
}

TEST(WorkerProcess, OneThatCannotBeEndedIsLeftBehind) {
  const MonotonicClock clock;
  std::optional<HeldProcess> held;
  pid_t pid = 0;
  absl::Time began;
  {
    ASSERT_OK_AND_ASSIGN(const WorkerProcess process, Sleep());
    pid = process.pid();
    held.emplace(pid);
    if (!held->held()) GTEST_SKIP() << "nobody may trace here";
    began = clock.Now();
  }
  EXPECT_LT(clock.Now() - began, absl::Seconds(30));
  EXPECT_EQ(kill(pid, 0), 0);
  held->LetGo();
  EXPECT_EQ(waitpid(pid, nullptr, 0), pid);
}

}  // namespace
}  // namespace gridclock
