// Rows of the table of faults that a fleet must survive, each test named by its row.
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <elf.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/log.h"
#include "server/fleet/runnable.h"
#include "server/fleet/worker_process.h"
#include "tests/faults/fleet_harness.h"
#include "tests/support/held_process.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::_;
using ::testing::HasSubstr;
using Code = absl::StatusCode;

void ExpectCrashed(const absl::Status& status) {
  EXPECT_THAT(status, StatusIs(Code::kUnavailable, _));
  EXPECT_THAT(status, ReasonIs("WORKER_CRASHED"));
  EXPECT_EQ(DetailsOf(status).metadata["execution_state"], "UNKNOWN");
  EXPECT_GT(DetailsOf(status).retry_after, absl::ZeroDuration());
}

// Processor time that the worker used, in ticks of 10 ms.
long Ticks(pid_t pid) {
  std::stringstream text;
  text << std::ifstream(absl::StrCat("/proc/", pid, "/stat")).rdbuf();
  const std::vector<std::string> fields =
      absl::StrSplit(text.str().substr(text.str().rfind(')') + 2), ' ');
  constexpr std::size_t kUserTime = 11;  // Counted behind the name.
  return fields.size() > kUserTime ? std::stol(fields[kUserTime]) : 0;
}

// Waits until the call, which spins, runs in the worker: nothing else there takes so long.
bool Runs(FleetHarness& harness, pid_t worker) {
  const long before = Ticks(worker);
  return Eventually([&] {
    return harness.scheduler().usage()["cpu"].running > 0 && Ticks(worker) >= before + 3;
  });
}

bool AllIsFree(FleetHarness& harness) {
  return Eventually([&] { return harness.allocator().used() == 0; });
}

// A file of this test.
std::string FileNamed(const std::string& name) {
  return absl::StrCat(testing::TempDir(), "/", name, "-", getpid());
}

// A program that does what these lines of a shell say and then becomes a worker.
std::string WorkerAfter(const std::string& lines) {
  const std::string path = FileNamed("worker");
  std::ofstream(path) << "#!/bin/sh\n"
                      << lines << "\nexec " << GRIDCLOCK_TEST_WORKER << " \"$@\"\n";
  return chmod(path.c_str(), 0755) == 0 ? path : "";
}

TEST(FleetFaults, RunsACallOnARealWorker) {
  FleetHarness harness({});
  ASSERT_TRUE(harness.WaitReady());
  EXPECT_EQ(harness.state(), WorkerState::kReady);
  EXPECT_THAT(harness.CheckSquare(), IsOk());
  EXPECT_TRUE(AllIsFree(harness));
}

TEST(FleetFaults, StopLeavesNoProcessBehind) {
  FleetHarness harness({});
  ASSERT_TRUE(harness.WaitReady());
  const pid_t pid = harness.WorkerPid();
  ASSERT_GT(pid, 0);
  harness.fleet().Stop();
  EXPECT_EQ(kill(pid, 0), -1);
  EXPECT_EQ(errno, ESRCH);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a zombie is left";
}

TEST(FleetFaults, E1_KilledWhileIdleNoClientSeesIt) {
  FleetHarness harness({});
  ASSERT_TRUE(harness.WaitReady());
  ASSERT_TRUE(harness.Signal(SIGKILL));
  EXPECT_THAT(harness.CheckSquare(), IsOk());
  EXPECT_EQ(harness.observer().count("lost signal"), 1);
}

TEST(FleetFaults, E1_AWorkerComesBackWhileClientsHoldAllMemory) {
  FleetHarness harness({});
  ASSERT_TRUE(harness.WaitReady());
  ASSERT_OK_AND_ASSIGN(const auto all,
                       harness.allocator().Reserve(harness.allocator().capacity(), "ann"));
  ASSERT_TRUE(harness.Signal(SIGKILL));
  EXPECT_TRUE(harness.WaitReady(2));
}

TEST(FleetFaults, E1_TheNextWorkerDoesNotMeasureAgain) {
  FleetHarness harness({});
  ASSERT_TRUE(harness.WaitReady());
  const double measured = harness.device_info().memory_bandwidth;
  EXPECT_GT(measured, 0);
  const absl::Time killed = absl::Now();
  ASSERT_TRUE(harness.Signal(SIGKILL));
  ASSERT_TRUE(harness.WaitReady(2));
  RecordProperty("ready_again_ms", absl::StrCat(absl::ToDoubleMilliseconds(absl::Now() - killed)));
  EXPECT_EQ(harness.device_info().memory_bandwidth, measured);
  EXPECT_THAT(harness.CheckSquare(), IsOk());
}

// Ascending.
class Times {
 public:
  void Add(absl::Duration time) {
    all_.insert(std::upper_bound(all_.begin(), all_.end(), time), time);
  }
  std::size_t size() const { return all_.size(); }
  absl::Duration median() const { return all_[all_.size() / 2]; }

 private:
  std::vector<absl::Duration> all_;
};

// What this machine takes to start the worker's program and to see it end.
absl::Duration TimeToStart() {
  const absl::Time start = absl::Now();
  auto program =
      WorkerProcess::Spawn({.path = GRIDCLOCK_TEST_WORKER, .args = {"--help"}, .environment = {}});
  EXPECT_THAT(program, IsOk());
  EXPECT_EQ(program->Reap(absl::Minutes(1)).value_or(WorkerProcess::Exit{.code = -1}).code, 0);
  return absl::Now() - start;
}

// A machine that computes other things takes long for everything: there the start of the program
// alone is the measure.
TEST(FleetFaults, E1_TheMedianGapIsBelow50MillisecondsOrFiveStartsOfTheProgram) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer makes the start of a process slow";
#endif
  constexpr std::size_t kKills = 21, kMostKills = 101;  // More where the machine is busy meanwhile.
  FleetHarness harness({});
  ASSERT_TRUE(harness.WaitReady());
  Times gaps, starts;
  const auto short_enough = [&] {
    return gaps.median() < std::max(absl::Milliseconds(50), 5 * starts.median());
  };
  while (gaps.size() < kKills || (!short_enough() && gaps.size() < kMostKills)) {
    const absl::Time killed = absl::Now();
    ASSERT_TRUE(harness.Signal(SIGKILL));
    ASSERT_TRUE(harness.WaitReady(static_cast<int>(gaps.size()) + 2));
    ASSERT_THAT(harness.CheckSquare(), IsOk());
    gaps.Add(absl::Now() - killed);
    starts.Add(TimeToStart());
  }
  RecordProperty("median_ms", absl::StrCat(absl::ToDoubleMilliseconds(gaps.median())));
  RecordProperty("start_ms", absl::StrCat(absl::ToDoubleMilliseconds(starts.median())));
  EXPECT_TRUE(short_enough()) << gaps.median() << ", of it the program's start " << starts.median();
}

TEST(FleetFaults, E2_E3_KilledWhileRunningCostsTheRunningCallAlone) {
  FleetHarness harness({});
  ASSERT_TRUE(harness.WaitReady());
  const auto running = harness.Spin(absl::Seconds(20));
  const auto queued = harness.Square({2, 3});
  const auto in_place = harness.Square({4, 5}, /*in_place=*/true);
  ASSERT_TRUE(Runs(harness, harness.WorkerPid()));
  ASSERT_TRUE(harness.Signal(SIGKILL));
  ExpectCrashed(running->Wait());
  EXPECT_THAT(queued->Wait(), IsOk());
  EXPECT_EQ(queued->output(), (std::vector<float>{4, 9}));
  EXPECT_THAT(in_place->Wait(), IsOk());
  EXPECT_EQ(in_place->output(), (std::vector<float>{16, 25}));
}

TEST(FleetFaults, E4_ACatalogueKernelThatCrashesIsOurBug) {
  FleetHarness harness({});
  ASSERT_TRUE(harness.WaitReady());
  for (const char* kind :
       {"segfault", "abort", "misaligned", "trap", "illegal_address", "wild_call"}) {
    EXPECT_THAT(harness.Fault(kind)->Wait(), StatusIs(Code::kInternal, HasSubstr("signal")))
        << kind;
    EXPECT_THAT(harness.CheckSquare(), IsOk());
  }
}

TEST(FleetFaults, E5_AStoppedWorkerIsKilledAfterThreeMissedBeats) {
  FleetHarness harness({});
  ASSERT_TRUE(harness.WaitReady());
  const auto running = harness.Spin(absl::Seconds(20));
  ASSERT_TRUE(Runs(harness, harness.WorkerPid()));
  ASSERT_TRUE(harness.Signal(SIGSTOP));
  ExpectCrashed(running->Wait());
  EXPECT_EQ(harness.observer().count("lost hang"), 1);
  EXPECT_THAT(harness.CheckSquare(), IsOk());
}

TEST(FleetFaults, AWorkerIsNotSilentForATimeInWhichTheServerStoodStillToo) {
  FleetHarness harness({});
  ASSERT_TRUE(harness.WaitReady());
  const auto lost = [&] { return harness.observer().count("lost") > 0; };
  for (int i = 0; i < 5; ++i) {
    harness.StandStill(absl::Seconds(10));
    EXPECT_FALSE(Eventually(lost, absl::Milliseconds(250))) << i;
  }
  EXPECT_EQ(harness.state(), WorkerState::kReady);
}

// It computes, as one that measures, for as long as the test wants.
TEST(FleetFaults, AWorkerThatStillMeasuresIsNoHang) {
  const std::string measured = FileNamed("measured");
  const std::string worker = WorkerAfter("while [ ! -e " + measured + " ]; do :; done");
  FleetHarness harness({.worker = worker, .start_limit = absl::Milliseconds(100)});
  const auto hangs = [&] { return harness.observer().count("lost hang"); };
  EXPECT_FALSE(Eventually([&] { return hangs() > 0; }, absl::Seconds(1)));
  std::ofstream(measured).close();
  EXPECT_TRUE(harness.WaitReady());
  EXPECT_EQ(hangs(), 0);
  EXPECT_EQ(unlink(measured.c_str()) + unlink(worker.c_str()), 0);
}

TEST(FleetFaults, AWorkerThatMeasuresWithoutEndIsAHang) {
  const std::string worker = WorkerAfter("while :; do :; done");
  FleetHarness harness({.worker = worker,
                        .start_limit = absl::Milliseconds(50),
                        .longest_start = absl::Milliseconds(100)});
  EXPECT_TRUE(Eventually([&] { return harness.observer().count("lost hang") >= 1; }));
  EXPECT_EQ(unlink(worker.c_str()), 0);
}

TEST(FleetFaults, AWorkerThatStopsWhileItStartsIsAHang) {
  const std::string worker = WorkerAfter("kill -STOP $$");
  FleetHarness harness({.worker = worker,
                        .silence_limit = absl::Milliseconds(300),
                        .start_limit = absl::Milliseconds(100)});
  EXPECT_TRUE(Eventually([&] { return harness.observer().count("lost hang") >= 1; }));
  EXPECT_TRUE(Eventually([&] { return harness.state() == WorkerState::kQuarantined; }));
  EXPECT_EQ(unlink(worker.c_str()), 0);
}

TEST(FleetFaults, E6_AnEndlessKernelEndsAtItsLimit) {
  FleetHarness harness({});
  ASSERT_TRUE(harness.WaitReady());
  const auto endless = harness.Fault("endless", absl::Milliseconds(300));
  const auto behind = harness.Square({3});
  const absl::Status status = endless->Wait();
  EXPECT_THAT(status, StatusIs(Code::kDeadlineExceeded, HasSubstr("0.3 s")));
  EXPECT_THAT(status, ReasonIs("KERNEL_TIME_LIMIT"));
  EXPECT_THAT(behind->Wait(), IsOk());
  EXPECT_EQ(behind->output(), (std::vector<float>{9}));
  EXPECT_EQ(harness.observer().count("lost time_limit"), 1);
}

TEST(FleetFaults, E7_AKernelThatTakesAllMemoryIsRefusedItAndCostsNoOtherCall) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's shadow leaves no room for a limit of memory";
#endif
  FleetHarness harness({});
  ASSERT_TRUE(harness.WaitReady());
  const auto greedy = harness.Fault("allocate");
  const auto behind = harness.Square({2, 3}, /*in_place=*/true);
  const absl::Status status = greedy->Wait();
  EXPECT_THAT(status, StatusIs(Code::kResourceExhausted, HasSubstr("'fault/naive'")));
  EXPECT_THAT(status, ReasonIs("MEMORY_FULL"));
  EXPECT_THAT(behind->Wait(), IsOk());
  EXPECT_EQ(behind->output(), (std::vector<float>{4, 9}));
  EXPECT_TRUE(harness.WaitReady(2)) << "its memory is given back with its process";
  EXPECT_THAT(harness.CheckSquare(), IsOk());
}

class BrokenFrames : public ::testing::TestWithParam<const char*> {};

TEST_P(BrokenFrames, E8_AWorkerThatSendsThemIsKilled) {
  FleetHarness harness({.fault = StrikesFirstCall(GetParam())});
  ASSERT_TRUE(harness.WaitReady());
  const absl::Status status = harness.Square({1, 2})->Wait();
  ExpectCrashed(status);
  EXPECT_TRUE(Eventually([&] { return harness.observer().count("lost protocol") == 1; }));
  EXPECT_TRUE(harness.WaitReady(2));
}
INSTANTIATE_TEST_SUITE_P(All, BrokenFrames,
                         ::testing::Values("garbage_frame", "oversized_frame", "truncated_frame"));

TEST(FleetFaults, E9_AnUnknownIdIsForgivenOnce) {
  // Strikes at every report after the canary's, so the second call breaks it.
  FleetHarness harness({.fault = StrikesFirstCall("unknown_id")});
  ASSERT_TRUE(harness.WaitReady());
  EXPECT_THAT(harness.CheckSquare(), IsOk());
  for (int i = 0; i < 40 && harness.observer().count("lost protocol") == 0; ++i) {
    EXPECT_THAT(harness.CheckSquare(), IsOk());
  }
  EXPECT_TRUE(Eventually([&] { return harness.observer().count("lost protocol") == 1; }));
  EXPECT_GE(harness.observer().count("stray answer"), 2);  // The next worker has the fault too.
  EXPECT_TRUE(harness.WaitReady(2));
}

// It may be another client's.
TEST(FleetFaults, E9_AnUnknownIdIsNotNamedAsTheJobThatEndedItsWorker) {
  testing::internal::CaptureStderr();
  {
    FleetHarness harness({.fault = StrikesFirstCall("unknown_id")});
    ASSERT_TRUE(harness.WaitReady());
    EXPECT_TRUE(Eventually([&] {
      return !harness.CheckSquare().ok() || harness.observer().count("lost protocol") > 0;
    }));
  }
  FlushLog();
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::ContainsRegex("worker_lost[^\n]*protocol[^\n]*job(=|\":)\"0\""));
}

TEST(FleetFaults, E9_AnAnswerGivenTwiceEndsACallOnce) {
  FleetHarness harness({.fault = StrikesFirstCall("duplicate_done")});
  ASSERT_TRUE(harness.WaitReady());
  EXPECT_THAT(harness.CheckSquare(), IsOk());
  EXPECT_EQ(harness.observer().count("finished"), 1);
  EXPECT_EQ(harness.observer().count("lost"), 0);
}

TEST(FleetFaults, E10_AnAnswerLargerThanItsOrderIsOurBugAndEndsTheWorker) {
  FleetHarness harness({.fault = StrikesFirstCall("output_too_large")});
  ASSERT_TRUE(harness.WaitReady());
  EXPECT_THAT(harness.Square({1})->Wait(), StatusIs(Code::kInternal, HasSubstr("does not fit")));
  EXPECT_TRUE(Eventually([&] { return harness.observer().count("lost protocol") == 1; }));
  EXPECT_TRUE(harness.WaitReady(2));
}

TEST(FleetFaults, E11_AnExitWithCodeZeroIsACrash) {
  FleetHarness harness({.fault = StrikesFirstCall("exit_zero")});
  ASSERT_TRUE(harness.WaitReady());
  const absl::Status status = harness.Square({1})->Wait();
  ExpectCrashed(status);
  EXPECT_THAT(status, StatusIs(Code::kUnavailable, HasSubstr("exit code 0")));
  EXPECT_TRUE(harness.WaitReady(2));
}

// This program's own, with one byte changed: as made for another architecture.
std::string ForeignProgram() {
  std::string bytes(64, '\0');
  std::ifstream("/proc/self/exe", std::ios::binary).read(bytes.data(), 64);
  bytes[offsetof(Elf64_Ehdr, e_machine)] ^= 0x40;
  return bytes;
}

TEST(FleetFaults, E12_WhatThisMachineCannotRunIsSaidAtTheStart) {
  const std::string path = FileNamed("no-program");
  const std::pair<std::string, const char*> cases[] = {
      {"words\n", "the file is no program"},
      {"", "the file is no program"},
      {ForeignProgram(), "it is made for another architecture"}};
  for (const auto& [content, why] : cases) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
    ASSERT_EQ(chmod(path.c_str(), 0755), 0);
    EXPECT_THAT(CheckRunnable("a worker program", path),
                StatusIs(Code::kFailedPrecondition, AllOf(HasSubstr(path), HasSubstr(why))));
  }
  EXPECT_EQ(unlink(path.c_str()), 0);
  EXPECT_THAT(CheckRunnable("a worker program", "/proc/self/exe"), IsOk());
}

TEST(FleetFaults, E12_AMissingOrForbiddenProgramIsSaidAtTheStart) {
  MonotonicClock clock;
  FakeObserver observer;
  ASSERT_OK_AND_ASSIGN(const Arena arena, Arena::Create(1 << 20, 0));
  ArenaAllocator allocator(1 << 20, 1 << 20);
  KernelTable table({"cpu"});
  Scheduler scheduler(clock, Limits(), allocator, observer);
  const FleetContext context = {.table = table,
                                .scheduler = scheduler,
                                .clock = clock,
                                .observer = observer,
                                .arena = arena,
                                .allocator = allocator};
  FleetOptions options;
  for (const char* path : {"/no/such/worker", "/etc/passwd", "/tmp"}) {
    options.worker_path = path;
    EXPECT_THAT(Fleet::Create(options, context),
                StatusIs(Code::kFailedPrecondition, HasSubstr(path)));
  }
}

TEST(FleetFaults, E12_AProgramThatIsNoneOpensTheBreaker) {
  const std::string path = FileNamed("not-a-worker");
  std::ofstream(path) << "#!/no/such/interpreter\n";
  ASSERT_EQ(chmod(path.c_str(), 0755), 0);
  Supervisor::Options supervisor;
  supervisor.first_wait = absl::Milliseconds(1);
  FleetHarness harness({.worker = path, .supervisor = supervisor});
  EXPECT_TRUE(Eventually([&] { return harness.state() == WorkerState::kQuarantined; }));
  EXPECT_EQ(unlink(path.c_str()), 0);
}

TEST(FleetFaults, E13_ACrashLoopOpensTheBreakerAndCallsFailAtOnce) {
  Supervisor::Options supervisor;
  supervisor.first_wait = absl::Milliseconds(1);
  FleetHarness harness({.fault = "die_before_hello:1:1", .supervisor = supervisor});
  // Each of its workers measures its device first.
  ASSERT_TRUE(
      Eventually([&] { return harness.state() == WorkerState::kQuarantined; }, absl::Seconds(240)));
  EXPECT_EQ(harness.observer().count("lost exit"), 5);
  Job job;
  job.device = "cpu";
  job.deadline = absl::InfiniteFuture();
  const absl::Status status =
      harness.scheduler().Submit(std::move(job), std::make_shared<FakeListener>(), true).status();
  EXPECT_THAT(status, StatusIs(Code::kUnavailable, HasSubstr("again and again")));
}

TEST(FleetFaults, AGuestThatNeverStartsIsNotTriedBesideAMeasurement) {
  const std::string starts = FileNamed("guest-starts");
  const auto count = [&starts] {
    std::ifstream file(starts);
    return std::count(std::istreambuf_iterator<char>(file), {}, '\n');
  };
  Supervisor::Options supervisor;
  supervisor.first_wait = absl::Milliseconds(1);
  supervisor.probe_every = absl::Milliseconds(20);
  const std::string worker =
      WorkerAfter("case \"$*\" in *'--role guest'*) echo >> " + starts + "; exit 1;; esac");
  FleetHarness harness({.worker = worker, .supervisor = supervisor, .guest_bytes = 1 << 20});
  ASSERT_TRUE(Eventually([&] { return count() > supervisor.breaker_ends; }));

  const auto measured = harness.MeasuredSpins();
  ASSERT_TRUE(Eventually([&] { return harness.scheduler().usage()["cpu"].running == 1; }));
  const auto before = count();
  EXPECT_FALSE(Eventually([&] { return count() > before; }, absl::Milliseconds(500)));
  harness.scheduler().Cancel(measured->id(), absl::CancelledError("by the test"));
  EXPECT_THAT(measured->Wait(), StatusIs(Code::kCancelled, _));
  EXPECT_TRUE(Eventually([&] { return count() > before; }));
  EXPECT_EQ(unlink(starts.c_str()) + unlink(worker.c_str()), 0);
}

TEST(FleetFaults, E16_AClosedLinkIsTheEndOfAWorkerThatLivesOn) {
  FleetHarness harness({.fault = StrikesFirstCall("close_socket")});
  ASSERT_TRUE(harness.WaitReady());
  ExpectCrashed(harness.Square({1})->Wait());
  EXPECT_EQ(harness.observer().count("lost exit"), 1);
  EXPECT_TRUE(harness.WaitReady(2));
}

TEST(FleetFaults, AWorkerThatCannotBeEndedCostsItsDeviceUntilItIsGone) {
  FleetHarness harness({.kill_limit = absl::Milliseconds(200)});
  ASSERT_TRUE(harness.WaitReady());
  HeldProcess held(harness.WorkerPid());
  if (!held.held()) GTEST_SKIP() << "nobody may trace here";
  const auto endless = harness.Fault("endless", absl::Seconds(2));
  const auto behind = harness.Square({3});
  EXPECT_THAT(endless->Wait(), ReasonIs("KERNEL_TIME_LIMIT"));
  const absl::Status status = behind->Wait();
  ExpectCrashed(status);
  EXPECT_THAT(status, StatusIs(Code::kUnavailable, HasSubstr("still there")));
  EXPECT_TRUE(Eventually([&] { return harness.state() == WorkerState::kQuarantined; }));
  EXPECT_THAT(harness.Square({1})->Wait(),
              StatusIs(Code::kUnavailable, HasSubstr("cannot be ended")));
  held.LetGo();
  EXPECT_TRUE(harness.WaitReady(2));
  EXPECT_THAT(harness.CheckSquare(), IsOk());
  EXPECT_TRUE(AllIsFree(harness));
}

TEST(FleetFaults, AWorkerThatCannotBeEndedDoesNotHoldUpTheEndOfTheServer) {
  FleetHarness harness({.kill_limit = absl::Milliseconds(200)});
  ASSERT_TRUE(harness.WaitReady());
  const pid_t worker = harness.WorkerPid();
  const HeldProcess held(worker);
  if (!held.held()) GTEST_SKIP() << "nobody may trace here";
  const auto running = harness.Spin(absl::Seconds(20));
  ASSERT_TRUE(Runs(harness, worker));
  harness.fleet().Stop();
  EXPECT_THAT(running->Wait(), ReasonIs("DRAINING"));
}

TEST(FleetFaults, AnOrderTooLongForAFrameGoesThroughTheArena) {
  FleetHarness harness({});
  ASSERT_TRUE(harness.WaitReady());
  // No catalogue kernel takes so much; what the worker answers shows that it read all of it.
  const auto call = harness.EmptyWithAttributes(50'000);
  EXPECT_THAT(call->Wait(), StatusIs(Code::kInvalidArgument, HasSubstr("attribute")));
  EXPECT_EQ(harness.observer().count("lost"), 0);
  EXPECT_THAT(harness.CheckSquare(), IsOk());
  EXPECT_TRUE(AllIsFree(harness));
}

}  // namespace
}  // namespace gridclock
