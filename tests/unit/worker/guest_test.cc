// A real guest on the CPU device: its process, its sandbox, programs of native functions.
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/sandbox/landlock.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/worker/worker_process.h"

namespace gridclock {
namespace {

using ::testing::AnyOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::SizeIs;
using ::testing::StartsWith;

// Operand i lies there; the last is the output.
constexpr std::uint64_t kStride = 1 << 20;

struct Step {
  const char* entry;
  const char* words;
};

// Native functions of one module over tensors of `n` floats.
Job NativeJob(JobId id, const char* words, const std::vector<Step>& steps,
              const std::vector<TensorSpec>& inputs, const TensorSpec& output) {
  Program program{.words = *ParseKernelSpec(words), .launches = {}, .globals = {}};
  for (const Step& step : steps) {
    program.launches.push_back(
        {.module = "m", .entry = step.entry, .clauses = *ParseClauses(step.words)});
  }
  Job job;
  job.id = id;
  job.kernel = program.words.name;
  job.device = "cpu";
  std::uint64_t at = 0;
  const auto place = [&](const OperandValue& value) {
    return MemoryRange{.offset = kStride * at++, .size = OperandBytes(value)};
  };
  for (const TensorSpec& tensor : inputs) {
    JobInput& input = job.inputs.emplace_back();
    input.value = {.is_list = false, .tensors = {tensor}};
    input.memory = place(input.value);
  }
  JobOutput& y = job.outputs.emplace_back();
  y.name = "y";
  y.value = {.is_list = false, .tensors = {output}};
  y.memory = place(y.value);
  job.arrived = absl::FromUnixNanos(1);
  job.deadline = absl::InfiniteFuture();
  job.kernel_time_limit = absl::Seconds(30);
  job.program = std::make_shared<JobProgram>(
      JobProgram{.program = *CompleteProgram(std::move(program)),
                 .modules = {{.id = "m", .kind = ModuleKind::kTestNative, .code = nullptr}}});
  return job;
}

TensorSpec Floats(std::int64_t n) {
  return {.dtype = DType::kF32, .shape = {n}};
}

Job Square(JobId id, std::int64_t n, const char* entry = "square") {
  return NativeJob(id, "mine x: f32[N] -> y: f32[N] grid (1) block (1) params x, y, n: int = N",
                   {{entry, ""}}, {Floats(n)}, Floats(n));
}

class Guest : public ::testing::Test {
 protected:
  Guest() : guest_("", "guest"), hello_(guest_.Hello()) {}

  void Put(std::uint64_t operand, const std::vector<float>& values) {
    std::copy(values.begin(), values.end(), guest_.At<float>(operand * kStride));
  }
  std::vector<float> Get(std::uint64_t operand, std::size_t count) {
    const auto* values = guest_.At<float>(operand * kStride);
    return {values, values + count};
  }
  absl::StatusOr<Outcome> Run(const Job& job) {
    guest_.Order(job);
    const worker::v1::ToServer reply = guest_.Next();
    if (reply.has_done()) return Decode(reply.done(), job, {});
    GC_ASSIGN_OR_RETURN(const WorkerFailure failure, Decode(reply.failed(), job, {}));
    return failure.status;
  }

  WorkerProcess guest_;
  WorkerHello hello_;
};

TEST_F(Guest, SaysWhatItIs) {
  EXPECT_EQ(hello_.role, WorkerRole::kGuest);
  EXPECT_THAT(hello_.kernels, IsEmpty());
  EXPECT_THAT(hello_.test_natives, IsSupersetOf({"square", "add", "crash", "endless"}));
  EXPECT_THAT(hello_.sandbox, HasSubstr("seccomp"));
}

TEST_F(Guest, RunsAProgramInItsMemory) {
  Put(0, {1, 2, -3});
  ASSERT_OK_AND_ASSIGN(const Outcome outcome, Run(Square(1, 3)));
  EXPECT_THAT(Get(1, 3), ElementsAre(1, 4, 9));
  EXPECT_THAT(outcome.timing->samples_ns, SizeIs(1));
  EXPECT_EQ(outcome.launches[0].name, "mine");
  EXPECT_THAT(outcome.printed, IsEmpty());
}

TEST_F(Guest, RunsLaunchesInOrderWithScratchBetweenThem) {
  const Job job = NativeJob(
      1,
      "sum_of_squares a: f32[N], b: f32[N] -> y: f32[N] grid (1) block (1) scratch t: f32[N] "
      "params n: int = N",
      {{"square", "params a, t, n: int = N"},
       {"square", "params b, y, n: int = N"},
       {"add", "params t, y, y, n: int = N"}},
      {Floats(3), Floats(3)}, Floats(3));
  Put(0, {1, 2, 3});
  Put(1, {10, 20, 30});
  ASSERT_THAT(Run(job).status(), IsOk());
  EXPECT_THAT(Get(2, 3), ElementsAre(101, 404, 909));
  EXPECT_THAT(Get(0, 3), ElementsAre(1, 2, 3));
}

TEST_F(Guest, RunsInPlaceAgainAndAgainOnWhatWasSent) {
  Job job = NativeJob(1,
                      "add_to x: f32[N], z: f32[N] -> y: f32[N] over x grid (1) block (1) "
                      "params x, z, y, n: int = N",
                      {{"add", ""}}, {Floats(2), Floats(2)}, Floats(2));
  job.outputs[0].memory = job.inputs[0].memory;
  job.outputs[0].in_place_of = 0;
  job.measure.emplace();
  job.measure->max_samples = 5;
  job.measure->min_samples = 5;
  Put(0, {1, 2});
  Put(1, {10, 20});
  guest_.Order(job);
  worker::v1::ToServer reply = guest_.Next();
  while (reply.has_samples()) reply = guest_.Next();
  ASSERT_TRUE(reply.has_done()) << reply.DebugString();
  EXPECT_THAT(Get(0, 2), ElementsAre(11, 22));
}

TEST_F(Guest, SetsVariablesBeforeEachLaunch) {
  Job job = NativeJob(1, "count x: f32[1] -> y: f32[1] grid (1) block (1) params y",
                      {{"count", ""}}, {Floats(1)}, Floats(1));
  auto program = std::make_shared<JobProgram>(*job.program);
  program->program.globals = {{.module = "m", .name = "counter", .from = "x"}};
  job.program = program;
  job.measure.emplace();
  job.measure->max_samples = 5;
  job.measure->min_samples = 5;
  Put(0, {7});
  guest_.Order(job);
  worker::v1::ToServer reply = guest_.Next();
  while (reply.has_samples()) reply = guest_.Next();
  ASSERT_TRUE(reply.has_done()) << reply.DebugString();
  EXPECT_THAT(Get(1, 1), ElementsAre(7));
}

TEST_F(Guest, BringsBackWhatWasPrinted) {
  const Job job = NativeJob(1, "say x: f32[N] -> y: f32[N] grid (1) block (1) params x, n: int = N",
                            {{"print", ""}}, {Floats(2)}, Floats(2));
  Put(0, {1, 2.5});
  ASSERT_OK_AND_ASSIGN(const Outcome outcome, Run(job));
  EXPECT_EQ(outcome.printed, "x[0] is 1\nx[1] is 2.5\n");
  EXPECT_FALSE(outcome.printed_truncated);
  ASSERT_OK_AND_ASSIGN(const Outcome silent, Run(Square(2, 1)));
  EXPECT_THAT(silent.printed, IsEmpty());
}

TEST_F(Guest, CutsWhatWasPrinted) {
  const Job job = NativeJob(1, "say x: f32[N] -> y: f32[N] grid (1) block (1) params x, n: int = N",
                            {{"print", ""}}, {Floats(20'000)}, Floats(20'000));
  ASSERT_OK_AND_ASSIGN(const Outcome outcome, Run(job));
  EXPECT_THAT(outcome.printed, StartsWith("x[0] is 0\nx[1] is 0\n"));
  EXPECT_EQ(outcome.printed.size(), kMostPrinted);
  EXPECT_TRUE(outcome.printed_truncated);
  ASSERT_OK_AND_ASSIGN(const Outcome silent, Run(Square(2, 1)));
  EXPECT_THAT(silent.printed, IsEmpty());
}

TEST_F(Guest, AnOutputThatIsLeftIsNotTheOneBefore) {
  Put(0, {3});
  ASSERT_THAT(Run(Square(1, 1)).status(), IsOk());
  ASSERT_THAT(Get(1, 1), ElementsAre(9));
  ASSERT_THAT(Run(Square(2, 1, "leave")).status(), IsOk());
  EXPECT_NE(Get(1, 1)[0], 9);
}

TEST_F(Guest, AGridWithoutBlocksLaunchesNothing) {
  Job job = NativeJob(1, "none x: f32[N] -> y: f32[N] grid (N) block (1) params x, y, n: int = N",
                      {{"crash", ""}}, {Floats(0)}, Floats(0));
  ASSERT_OK_AND_ASSIGN(const Outcome outcome, Run(job));
  EXPECT_THAT(outcome.launches, IsEmpty());
}

TEST_F(Guest, SaysWhatIsWrongAndLivesOn) {
  Put(0, {3});
  EXPECT_THAT(Run(Square(1, 1, "no_such")),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no native function 'no_such'")));
  Job job = Square(2, 1);
  auto program = std::make_shared<JobProgram>(*job.program);
  program->modules[0].kind = ModuleKind::kCubin;
  job.program = program;
  EXPECT_THAT(Run(job), StatusIs(absl::StatusCode::kFailedPrecondition,
                                 HasSubstr("module 'm' was never given to this guest")));
  job.module_code = {{.offset = 0, .size = 64}};
  EXPECT_THAT(Run(job), StatusIs(absl::StatusCode::kFailedPrecondition,
                                 HasSubstr("device cpu runs no submitted code")));
  EXPECT_THAT(Run(Square(3, 1)).status(), IsOk());
  EXPECT_THAT(Get(1, 1), ElementsAre(9));
}

TEST_F(Guest, RunsNoKernelOfTheCatalogue) {
  Job job = Square(1, 1);
  job.program = nullptr;
  job.kernel = "square";
  EXPECT_THAT(Run(job), StatusIs(absl::StatusCode::kNotFound, HasSubstr("no kernel 'square'")));
}

TEST_F(Guest, DiesOfWhatCrashes) {
  guest_.Order(Square(1, 1, "crash"));
  EXPECT_FALSE(guest_.Bytes().has_value());
  EXPECT_EQ(guest_.page().running.load(), 1U);
  EXPECT_NE(guest_.Wait(), 0);
}

// What a guest's sandbox answers, in the order of the probe.
// Nothing here ends a fork bomb with KERNEL_FAULT, because none begins: each fork is refused, and
// what the call makes of that is its own.
TEST_F(Guest, E15_CanNeitherConnectNorExecNorForkNorReadNorWriteNorSignalNorSlowOthers) {
  if (LandlockVersion() < 3) GTEST_SKIP() << "Landlock here is " << LandlockVersion();
  char path[64] = "/tmp/gridclock-guest-probe-XXXXXX";
  const UniqueFd file(mkstemp(path));
  ASSERT_EQ(write(file.get(), "kept", 4), 4);
  Job job = NativeJob(1,
                      "probe x: u8[64] -> y: i32[12]; parent: i64 grid (1) block (1) "
                      "params x, y, parent: int = parent",
                      {{"probe", ""}}, {{.dtype = DType::kU8, .shape = {64}}},
                      {.dtype = DType::kI32, .shape = {12}});
  job.attributes = {static_cast<std::int64_t>(getpid())};
  std::memcpy(guest_.At<char>(0), path, sizeof(path));
  ASSERT_THAT(Run(job).status(), IsOk());
  const auto* errors = guest_.At<std::int32_t>(kStride);
  EXPECT_THAT(std::vector<int>(errors, errors + 12), Each(AnyOf(EPERM, EACCES)));
  struct stat facts {};
  EXPECT_EQ(fstat(file.get(), &facts), 0);
  EXPECT_EQ(facts.st_size, 4);
  unlink(path);
}

TEST_F(Guest, EndsWithItsServer) {
  guest_.CloseSocket();
  EXPECT_EQ(guest_.Wait(), 0);
}

TEST(TrustedWorker, RunsNoSubmittedCode) {
  WorkerProcess worker;
  EXPECT_THAT(worker.Hello().test_natives, IsEmpty());
  const Job job = Square(1, 1);
  worker.Order(job);
  const worker::v1::ToServer reply = worker.Next();
  ASSERT_TRUE(reply.has_failed());
  EXPECT_THAT(reply.failed().message(), HasSubstr("trusted worker runs no submitted code"));
}

}  // namespace
}  // namespace gridclock
