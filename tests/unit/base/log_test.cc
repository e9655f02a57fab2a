#include "base/log.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/log_limit.h"
#include "base/unique_fd.h"

namespace gridclock {
namespace {

using ::testing::ExitedWithCode;
using ::testing::HasSubstr;
using ::testing::ResultOf;
using ::testing::Truly;

// Each test logs in a process of its own, as the log lives as long as the process. Its form is what
// programs get: the tests of everything else run with plain text.
class LogDeathTest : public ::testing::Test {
 protected:
  LogDeathTest() { unsetenv("GRIDCLOCK_LOG_FORMAT"); }
};

// From now on stderr is a pipe that is full and that nobody reads. Gives its other end.
UniqueFd BlockStderr() {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) _exit(10);
  UniqueFd reader(ends[0]);
  const UniqueFd writer(ends[1]);
  fcntl(writer.get(), F_SETFL, O_NONBLOCK);
  const std::array<char, 4096> bytes{};
  while (write(writer.get(), bytes.data(), bytes.size()) > 0) continue;
  fcntl(writer.get(), F_SETFL, 0);
  dup2(writer.get(), STDERR_FILENO);
  return reader;
}

// How many lines of this event stand in a log.
auto LinesOf(const std::string& event) {
  return [key = absl::StrCat("\"event\":\"", event, "\"")](const std::string& log) {
    const std::vector<std::string> lines = absl::StrSplit(log, '\n');
    return std::ranges::count_if(
        lines, [&](const std::string& line) { return absl::StrContains(line, key); });
  };
}

std::string ReadAll(const UniqueFd& fd) {
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = read(fd.get(), buffer, sizeof(buffer))) > 0;) text.append(buffer, n);
  return text;
}

TEST_F(LogDeathTest, TheLastLineIsWrittenWhenTheProcessExits) {
  const auto many_lines = [] {
    for (int i = 0; i < 1000; ++i) Log(LogLevel::kInfo, "before");
    Log(LogLevel::kWarning, "last", {{"word", "a\nb"}});
  };
  const auto last = HasSubstr(R"("level":"warning","event":"last","word":"a\nb"})"
                              "\n");
  EXPECT_EXIT((many_lines(), std::exit(0)), ExitedWithCode(0), last);
  EXPECT_EXIT((many_lines(), FlushLog(), _exit(0)), ExitedWithCode(0), last);
}

TEST_F(LogDeathTest, NoValueEndsALineOrForgesAField) {
  const auto hostile = [] {
    Log(LogLevel::kInfo, "x", {{"v", "a\",\"admin\":\"yes\n{\"event\":\"forged\"}\x1b[31m\xff\\"}});
    std::exit(0);
  };
  EXPECT_EXIT(hostile(), ExitedWithCode(0),
              HasSubstr(R"("v":"a\",\"admin\":\"yes\n{\"event\":\"forged\"}\\x1b[31m\\xff\\"})"
                        "\n"));
  const auto hidden = [] {
    Log(LogLevel::kInfo, "x", {{"v", "\u061c\u200b\u200e\u200f\u2028\u2029\ufeff"}});
    std::exit(0);
  };
  EXPECT_EXIT(hidden(), ExitedWithCode(0),
              HasSubstr(R"("v":"\\xd8\\x9c\\xe2\\x80\\x8b\\xe2\\x80\\x8e\\xe2\\x80\\x8f)"
                        R"(\\xe2\\x80\\xa8\\xe2\\x80\\xa9\\xef\\xbb\\xbf"})"
                        "\n"));
}

TEST_F(LogDeathTest, PlainTextIsThereForWhoAsks) {
  const auto plain = [] {
    setenv("GRIDCLOCK_LOG_FORMAT", "plain", 1);
    Log(LogLevel::kWarning, "last", {{"word", "a\nb"}});
    std::exit(0);
  };
  EXPECT_EXIT(plain(), ExitedWithCode(0), HasSubstr(" W last word=\"a\\nb\"\n"));
}

TEST_F(LogDeathTest, APersonGetsColoursAndNoneOfAClients) {
  const auto pretty = [] {
    setenv("GRIDCLOCK_LOG_FORMAT", "pretty", 1);
    Log(LogLevel::kError, "last", {{"word", "a\n\x1b[2J"}});
    std::exit(0);
  };
  EXPECT_EXIT(pretty(), ExitedWithCode(0),
              HasSubstr(" E \x1b[31mlast word=\"a\\n\\\\x1b[2J\"\x1b[0m\n"));
}

TEST_F(LogDeathTest, ATerminalIsTakenForAPerson) {
  const auto on_a_terminal = [] {
    const UniqueFd ours(posix_openpt(O_RDWR | O_NOCTTY));
    if (grantpt(ours.get()) != 0 || unlockpt(ours.get()) != 0) _exit(10);
    const UniqueFd theirs(open(ptsname(ours.get()), O_RDWR | O_NOCTTY));
    dup2(theirs.get(), STDERR_FILENO);
    Log(LogLevel::kWarning, "last", {{"word", "a"}});
    FlushLog();
    std::string shown;
    char part[256];
    for (ssize_t got = 0; !absl::StrContains(shown, '\n'); shown.append(part, got)) {
      if ((got = read(ours.get(), part, sizeof(part))) <= 0) break;
    }
    _exit(absl::StrContains(shown, " W \x1b[33mlast word=\"a\"\x1b[0m\r\n") ? 0 : 11);
  };
  EXPECT_EXIT(on_a_terminal(), ExitedWithCode(0), "");
}

// A burst, and then no more than five for each second that the log says it took.
bool HasNoMoreOfTheFloodThanItsTimeAllows(const std::string& log) {
  const std::string key = R"("event":"took","ms":")";
  const std::size_t took = log.find(key);
  if (took == std::string::npos) return false;
  const long ms = std::stol(log.substr(took + key.size()));
  const auto lines = LinesOf("flood")(log);
  return lines >= 50 && lines <= 50 + 5 * ms / 1000;
}

TEST_F(LogDeathTest, TheSameOverAndOverIsLeftOutAndCounted) {
  const auto flood = [] {
    const absl::Time start = absl::Now();
    for (int i = 0; i < 500; ++i) Log(LogLevel::kInfo, "flood");
    const std::int64_t ms = absl::ToInt64Milliseconds(absl::Now() - start) + 1;
    Log(LogLevel::kInfo, "took", {{"ms", absl::StrCat(ms)}});
    std::exit(0);
  };
  EXPECT_EXIT(flood(), ExitedWithCode(0), Truly(HasNoMoreOfTheFloodThanItsTimeAllows));
}

TEST_F(LogDeathTest, AnAuditIsNeverLeftOut) {
  const auto flood = [] {
    for (int i = 0; i < 500; ++i) LogAudit(LogLevel::kInfo, "admin_reload");
    std::exit(0);
  };
  EXPECT_EXIT(flood(), ExitedWithCode(0), ResultOf(LinesOf("admin_reload"), 500));
}

// What stands in a pipe that nobody read until the log had taken all.
TEST_F(LogDeathTest, NoFloodOfOtherLinesDropsAnAudit) {
  const auto flood = [] {
    const UniqueFd reader = BlockStderr();
    Log(LogLevel::kInfo, "held");  // Whose writer waits now.
    LogAudit(LogLevel::kInfo, "admin_reload");
    for (int i = 0; i < 20'000; ++i) Log(LogLevel::kInfo, absl::StrCat("line", i));
    if (DroppedLogLines() == 0) _exit(11);
    std::thread end([] {
      FlushLog(absl::Seconds(30));
      close(STDERR_FILENO);
    });
    const std::string text = ReadAll(reader);
    end.join();
    _exit(absl::StrContains(text, R"("event":"admin_reload"})") ? 0 : 12);
  };
  EXPECT_EXIT(flood(), ExitedWithCode(0), "");
}

TEST(LogLimitTest, ABurstAndThenAFewASecond) {
  LogLimit limit;
  const absl::Time start = absl::FromUnixSeconds(1000);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(limit.Take("flood", start), 0);
  for (int i = 0; i < 7; ++i) EXPECT_EQ(limit.Take("flood", start), std::nullopt);
  EXPECT_EQ(limit.Take("other", start), 0);
  EXPECT_EQ(limit.Take("flood", start + absl::Milliseconds(200)), 7);
  EXPECT_EQ(limit.Take("flood", start + absl::Milliseconds(200)), std::nullopt);
  EXPECT_EQ(limit.Take("flood", start - absl::Hours(1)), std::nullopt);
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(limit.Take("flood", start + absl::Hours(1)).has_value());
  EXPECT_EQ(limit.Take("flood", start + absl::Hours(1)), std::nullopt);
}

TEST(LogLimitTest, WhatWasLeftOutIsSaidBehindTheFlood) {
  LogLimit limit;
  const absl::Time start = absl::FromUnixSeconds(1000);
  for (int i = 0; i < 57; ++i) static_cast<void>(limit.Take("flood", start));
  EXPECT_TRUE(limit.TakeQuiet(start + absl::Seconds(4)).empty());
  EXPECT_EQ(limit.TakeQuiet(start + absl::Seconds(5)),
            (std::map<std::string, std::uint64_t>{{"flood", 7}}));
  EXPECT_TRUE(limit.TakeQuiet(start + absl::Seconds(6)).empty());
  EXPECT_EQ(limit.Take("flood", start + absl::Seconds(6)), 0);
}

TEST(LogLimitTest, EventsWithoutNumberTakeNoMemoryWithoutEnd) {
  LogLimit limit;
  const absl::Time start = absl::FromUnixSeconds(1000);
  for (int i = 0; i < 100'000; ++i) EXPECT_EQ(limit.Take(absl::StrCat("event", i), start), 0);
}

TEST_F(LogDeathTest, LinesThatNobodyReadsAreDroppedAndCounted) {
  const auto log_twenty_thousand = [] {
    const UniqueFd reader = BlockStderr();
    if (DroppedLogLines() != 0) _exit(11);
    // Of many kinds: of one the log would take a few only.
    for (int i = 0; i < 20'000; ++i) Log(LogLevel::kInfo, absl::StrCat("line", i));
    // 8192 wait, and one may have been taken to be written.
    const std::uint64_t kept = 20'000 - DroppedLogLines();
    _exit(kept == 8192 || kept == 8193 ? 0 : 12);
  };
  EXPECT_EXIT(log_twenty_thousand(), ExitedWithCode(0), "");
}

TEST_F(LogDeathTest, ReadersThatDoNotReadHoldNobodyUpForLong) {
  const auto flush = [] {
    const UniqueFd reader = BlockStderr();
    Log(LogLevel::kInfo, "line");
    FlushLog(absl::Milliseconds(20));
    _exit(0);
  };
  EXPECT_EXIT(flush(), ExitedWithCode(0), "");
}

}  // namespace
}  // namespace gridclock
