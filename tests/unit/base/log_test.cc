#include "base/log.h"

#include <array>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace gridclock {
namespace {

using ::testing::ExitedWithCode;
using ::testing::HasSubstr;

// Each test logs in a process of its own, as the log lives as long as the process.

TEST(LogDeathTest, TheLastLineIsWrittenWhenTheProcessExits) {
  const auto many_lines = [] {
    for (int i = 0; i < 1000; ++i) Log(LogLevel::kInfo, "before");
    Log(LogLevel::kWarning, "last", {{"word", "a\nb"}});
  };
  const auto last = HasSubstr(" W last word=\"a\\nb\"\n");
  EXPECT_EXIT((many_lines(), std::exit(0)), ExitedWithCode(0), last);
  EXPECT_EXIT((many_lines(), FlushLog(), _exit(0)), ExitedWithCode(0), last);
}

// From now on stderr is a pipe that is full and that nobody reads.
void BlockStderr() {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) _exit(10);
  fcntl(ends[1], F_SETFL, O_NONBLOCK);
  const std::array<char, 4096> bytes{};
  while (write(ends[1], bytes.data(), bytes.size()) > 0) continue;
  fcntl(ends[1], F_SETFL, 0);
  dup2(ends[1], STDERR_FILENO);
}

TEST(LogDeathTest, LinesThatNobodyReadsAreDroppedAndCounted) {
  const auto log_twenty_thousand = [] {
    BlockStderr();
    if (DroppedLogLines() != 0) _exit(11);
    for (int i = 0; i < 20'000; ++i) Log(LogLevel::kInfo, "line");
    // 8192 wait, and one may have been taken to be written.
    const std::uint64_t kept = 20'000 - DroppedLogLines();
    _exit(kept == 8192 || kept == 8193 ? 0 : 12);
  };
  EXPECT_EXIT(log_twenty_thousand(), ExitedWithCode(0), "");
}

TEST(LogDeathTest, ReadersThatDoNotReadHoldNobodyUpForLong) {
  const auto flush = [] {
    BlockStderr();
    Log(LogLevel::kInfo, "line");
    FlushLog(absl::Milliseconds(20));
    _exit(0);
  };
  EXPECT_EXIT(flush(), ExitedWithCode(0), "");
}

}  // namespace
}  // namespace gridclock
