#include "server/fleet/worker_process.h"

#include <csignal>
#include <optional>

#include <sys/wait.h>

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
