#include "server/fleet/worker_output.h"

#include <cstdlib>
#include <string>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "base/unique_fd.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::size_t kMost = WorkerOutput::kMostBytes;

// A worker's end of the pipe and the output that reads it, as the fleet sets them up.
class WorkerOutputTest : public ::testing::Test {
 protected:
  void SetUp() override {
    int fds[2];
    ASSERT_EQ(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    read_ = UniqueFd(fds[0]);
    write_ = UniqueFd(fds[1]);
    ASSERT_GT(fcntl(fds[1], F_SETPIPE_SZ, 1 << 20), 1 << 19);
  }
  void Print(const std::string& text) {
    ASSERT_EQ(write(write_.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  bool PipeIsEmpty() {
    char byte = 0;
    return read(read_.get(), &byte, 1) < 0;
  }

  UniqueFd read_, write_;
  WorkerOutput output_{"cpu"};
};

TEST_F(WorkerOutputTest, KeepsWhatFits) {
  Print(std::string(kMost, 'x'));
  output_.Drain(read_.get());
  EXPECT_EQ(output_.dropped(), 0u);
  EXPECT_TRUE(PipeIsEmpty());
}

TEST_F(WorkerOutputTest, DropsTheRestOfARunButReadsIt) {
  Print(std::string(kMost, 'x'));
  output_.Drain(read_.get());
  Print("one more");
  output_.Drain(read_.get());
  EXPECT_EQ(output_.dropped(), 8u);
  EXPECT_TRUE(PipeIsEmpty()) << "a full pipe would hold up the worker";
}

TEST_F(WorkerOutputTest, TheNextRunMayPrintAgain) {
  Print(std::string(kMost + 1, 'x'));
  output_.Drain(read_.get());
  EXPECT_EQ(output_.dropped(), 1u);
  output_.NextRun();
  EXPECT_EQ(output_.dropped(), 0u);
  Print("again");
  output_.Drain(read_.get());
  EXPECT_EQ(output_.dropped(), 0u);
}

TEST_F(WorkerOutputTest, OneDrainEndsThoughTheWorkerPrintsOn) {
  Print(std::string(512 * 1024, 'x'));
  output_.Drain(read_.get());
  EXPECT_FALSE(PipeIsEmpty());
  EXPECT_EQ(output_.dropped(), 256 * 1024 - kMost);
}

TEST_F(WorkerOutputTest, AClosedPipeIsTheEnd) {
  Print("last words");
  write_ = UniqueFd();
  output_.Drain(read_.get());
  output_.Drain(read_.get());
  EXPECT_EQ(output_.dropped(), 0u);
}

// ---- What goes into the log. Its writer is a thread that ends with the process. ----

class WorkerOutputLog : public WorkerOutputTest {
 protected:
  void SetUp() override {
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
    WorkerOutputTest::SetUp();
  }
  [[noreturn]] void PrintAndExit(const std::vector<std::string>& prints) {
    for (const std::string& text : prints) {
      Print(text);
      output_.Drain(read_.get());
    }
    std::exit(0);
  }
};

TEST_F(WorkerOutputLog, ALineOfTheWorkerIsALineOfTheLog) {
  EXPECT_EXIT(
      PrintAndExit({"one\ntw", "o\nunfinished"}), testing::ExitedWithCode(0),
      AllOf(HasSubstr("worker_output device=\"cpu\" line=\"one\""),
            HasSubstr("worker_output device=\"cpu\" line=\"two\""), Not(HasSubstr("unfinished"))));
}

TEST_F(WorkerOutputLog, WhatItPrintsCannotForgeALineOrColourATerminal) {
  EXPECT_EXIT(
      PrintAndExit({"\x1b[31m\" forged=\"1\r\n"}), testing::ExitedWithCode(0),
      AllOf(HasSubstr(R"(line="\\x1b[31m\" forged=\"1\\x0d")"), Not(HasSubstr("\x1b[31m"))));
}

TEST_F(WorkerOutputLog, ALineWithoutEndIsCut) {
  EXPECT_EXIT(PrintAndExit({std::string(1024, 'a') + "b\n"}), testing::ExitedWithCode(0),
              AllOf(HasSubstr("line=\"" + std::string(1024, 'a') + "\""), HasSubstr("line=\"b\"")));
}

// A guest's own words until it is ready are the worker's; what comes then may be its client's.
TEST_F(WorkerOutputLog, WhatMayBeAClientsIsCountedAndNotShown) {
  bool is_clients = false;
  WorkerOutput output("cpu", [&is_clients] { return is_clients; });
  const auto print_and_exit = [&] {
    Print("own\nhalf");
    output.Drain(read_.get());
    is_clients = true;
    Print("secret\n");
    output.Drain(read_.get());
    std::exit(0);
  };
  EXPECT_EXIT(print_and_exit(), testing::ExitedWithCode(0),
              AllOf(HasSubstr("line=\"own\""), Not(HasSubstr("secret")),
                    HasSubstr("worker_output_withheld device=\"cpu\" bytes=\"7\"")));
}

TEST_F(WorkerOutputLog, SaysOnceThatTheRestIsDropped) {
  EXPECT_EXIT(PrintAndExit({std::string(kMost, 'x'), "secret\n", "secret\n"}),
              testing::ExitedWithCode(0),
              AllOf(HasSubstr("output is dropped"), Not(ContainsRegex("is dropped.*is dropped")),
                    Not(HasSubstr("secret"))));
}

}  // namespace
}  // namespace gridclock
