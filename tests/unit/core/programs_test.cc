// Submitted code at the gate: texts become a program, and a call of it a job for a device that can
// run it, or an error that says what was wanted and what came.
#include "server/core/programs.h"

#include "tests/unit/core/programs_fixture.h"

namespace gridclock {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using Code = absl::StatusCode;

TEST_F(ProgramsTest, AProgramBecomesAJobOfItsWords) {
  ASSERT_OK_AND_ASSIGN(const Job job, Try(Request()));
  EXPECT_EQ(job.kernel, "mine");
  EXPECT_EQ(job.variant, "");
  EXPECT_EQ(job.device, "cuda:0");
  ASSERT_NE(job.program, nullptr);
  EXPECT_EQ(job.program->program.launches[0].entry, "_Z6squarePKfPfi");
  EXPECT_THAT(job.program->program.launches[0].clauses.params, SizeIs(3));
  ASSERT_THAT(job.program->modules, SizeIs(1));
  EXPECT_EQ(job.program->modules[0].code->cubin, "ELF");
  EXPECT_EQ(job.outputs[0].name, "y");
}

TEST_F(ProgramsTest, ItsKernelTimeHasABoundOfItsOwn) {
  JobRequest request = Request();
  request.kernel_time_limit = absl::Seconds(30);
  EXPECT_THAT(Try(request), IsOk());
  request.kernel_time_limit = absl::Seconds(31);
  EXPECT_THAT(Try(request),
              StatusIs(Code::kInvalidArgument, HasSubstr("at most 30 for submitted")));
  request.kernel_time_limit = absl::ZeroDuration();
  request.measure.emplace().budget = absl::Seconds(31);
  EXPECT_THAT(Try(request),
              StatusIs(Code::kInvalidArgument, HasSubstr("at most 30 for submitted")));
  request.measure->budget = absl::Seconds(30);
  request.measure->warmup_limit = absl::Seconds(60);
  EXPECT_EQ(Try(request)->kernel_time_limit, absl::Seconds(30)) << "of each launch too";
}

TEST_F(ProgramsTest, ANativeFunctionRunsOnTheCpuAlone) {
  ASSERT_OK_AND_ASSIGN(const Job job, Try(Native()));
  EXPECT_EQ(job.device, "cpu");
  EXPECT_EQ(job.program->modules[0].code, nullptr);
  EXPECT_EQ(job.program->modules[0].kind, ModuleKind::kTestNative);
  JobRequest anywhere = Native();
  anywhere.device = "";
  ASSERT_OK_AND_ASSIGN(const Job placed, Try(anywhere));
  EXPECT_EQ(placed.device, "cpu");
  JobRequest on_gpu = Native();
  on_gpu.device = "cuda:0";
  EXPECT_THAT(Try(on_gpu), StatusIs(Code::kFailedPrecondition, HasSubstr("CPU device")));
}

TEST_F(ProgramsTest, TheSameWordsAreReadOnce) {
  ASSERT_OK_AND_ASSIGN(const auto first, programs_.Find(Request()));
  ASSERT_OK_AND_ASSIGN(const auto second, programs_.Find(Request()));
  EXPECT_EQ(first, second);
  JobRequest other = Request();
  other.program->launches[0].words = "block (128)";
  ASSERT_OK_AND_ASSIGN(const auto third, programs_.Find(other));
  EXPECT_NE(first, third);
  programs_.Forget("m1");
  ASSERT_OK_AND_ASSIGN(const auto fourth, programs_.Find(Request()));
  EXPECT_NE(first, fourth);
}

TEST_F(ProgramsTest, WhatIsAnothersOrDeletedIsNotThere) {
  ASSERT_THAT(programs_.Find(Request()), IsOk());
  JobRequest bobs = Request();
  bobs.principal = "bob";
  EXPECT_THAT(Try(bobs), ReasonIs("NO_MODULE"));
  EXPECT_TRUE(modules_.Remove("ann", "m1"));
  EXPECT_THAT(Try(Request()), StatusIs(Code::kNotFound, HasSubstr("no module 'm1'")));
}

TEST_F(ProgramsTest, AnEntryIsCalledAsPeopleOrLinkersDo) {
  JobRequest request = Request("mine x: f32[N] -> y: f32[N] grid (1) block (256) params x, y");
  for (const char* name : {"soft<float, 256>", "soft<float,256>", "_Z4soft"}) {
    request.program->launches[0].entry = name;
    EXPECT_THAT(Try(request), IsOk()) << name;
  }
}

TEST_F(ProgramsTest, F18_OverloadsAreToldApartByTheirLinkersNames) {
  JobRequest request = Request("mine x: f32[N] -> y: f32[N] grid (1) block (256) params x, y");
  request.program->launches[0].entry = "fill";
  const auto job = Try(request);
  EXPECT_THAT(job, ReasonIs("BAD_VALUE"));
  EXPECT_THAT(job, StatusIs(Code::kInvalidArgument,
                            AllOf(HasSubstr("program.launches[0].entry"), HasSubstr("'fill' is 2"),
                                  HasSubstr("'_Z4fillPfS_', '_Z4fillPiS_'"))));
  request.program->launches[0].entry = "_Z4fillPiS_";
  ASSERT_OK_AND_ASSIGN(const auto program, programs_.Find(request));
  EXPECT_EQ(program->program.launches[0].entry, "_Z4fillPiS_");
}

TEST_F(ProgramsTest, AnUnknownEntryIsToldTheNearest) {
  JobRequest request = Request();
  request.program->launches[0].entry = "sqare";
  const auto job = Try(request);
  EXPECT_THAT(job, ReasonIs("NO_ENTRY"));
  EXPECT_THAT(job,
              StatusIs(Code::kNotFound,
                       AllOf(HasSubstr("program.launches[0].entry"), HasSubstr("'sqare'"),
                             HasSubstr("nearest are 'square'"), HasSubstr("'soft<float, 256>'"))));
}

TEST_F(ProgramsTest, WordsThatDoNotHoldAreQuoted) {
  EXPECT_THAT(Try(Request("mine x: f32[N -> y")),
              StatusIs(Code::kInvalidArgument, HasSubstr("program.words")));
  EXPECT_THAT(Try(Request("mine x: f32[N] -> y: f32[N] params x, y, n: int = N")),
              StatusIs(Code::kInvalidArgument, HasSubstr("no 'grid'")));
  JobRequest request = Request();
  request.program->launches[0].words = "grid 256)";
  EXPECT_THAT(Try(request),
              StatusIs(Code::kInvalidArgument, HasSubstr("program.launches[0].words")));
  request = Request();
  request.program->launches.clear();
  EXPECT_THAT(Try(request), StatusIs(Code::kInvalidArgument, HasSubstr("want 1 to 64")));
  request = Request("");
  request.program->launches.push_back(request.program->launches[0]);
  EXPECT_THAT(Try(request), StatusIs(Code::kInvalidArgument, HasSubstr("several launches")));
}

TEST_F(ProgramsTest, ParametersAreHeldAgainstTheEntry) {
  EXPECT_THAT(Try(Request("mine x: f32[N] -> y: f32[N] grid (1) block (256) params x, y")),
              StatusIs(Code::kInvalidArgument,
                       AllOf(HasSubstr("it takes 3 parameters"), HasSubstr("the words give 2"))));
  EXPECT_THAT(
      Try(Request("mine x: f32[N] -> y: f32[N] grid (1) block (256) params x, y, n: int64 = N")),
      StatusIs(Code::kInvalidArgument, HasSubstr("parameter 2 takes 4 bytes")));
  EXPECT_THAT(Try(Request("mine x: f32[N] -> y: f32[N] grid (1) block (2048) params x, y, "
                          "n: int = N")),
              StatusIs(Code::kInvalidArgument, HasSubstr("2048")));
}

TEST_F(ProgramsTest, CodeRunsOnGpusOfItsArchitecture) {
  JobRequest request = Request();
  request.device = "cpu";
  EXPECT_THAT(Try(request), ReasonIs("NO_DEVICE"));
  EXPECT_THAT(Try(request),
              StatusIs(Code::kFailedPrecondition,
                       AllOf(HasSubstr("sm_90a"), HasSubstr("9.0 alone"), HasSubstr("no GPU"))));
  Learn("cuda:0", "cuda", 100);
  EXPECT_THAT(Try(Request()),
              StatusIs(Code::kFailedPrecondition, HasSubstr("compute capability 10.0")));
  auto older = std::make_shared<ModuleCode>();
  older->facts.arch = "sm_80";
  older->facts.entries = {EntryOf("_Z6squarePKfPfi", "square", {8, 8, 4})};
  Add("ann", "m2", older);
  JobRequest with_older = Request();
  with_older.program->launches[0].module = "m2";
  Learn("cuda:0", "cuda", 86);
  EXPECT_THAT(Try(with_older), IsOk());
  Learn("cuda:0", "cuda", 90);
  EXPECT_THAT(Try(with_older), StatusIs(Code::kFailedPrecondition, HasSubstr("8.0 and later 8.x")));
}

TEST_F(ProgramsTest, AModuleThatIsNotInMemoryIsFetched) {
  int fetched = 0;
  Programs programs(
      modules_, strikes_,
      [&](const std::string& principal, const std::string& id) -> absl::StatusOr<ModuleCode> {
        if (principal != "ann" || id != "kept") return absl::NotFoundError("");
        ++fetched;
        ModuleCode code;
        code.facts.kind = ModuleKind::kTestNative;
        code.facts.entries = {EntryOf("square", "square", {})};
        return code;
      });
  JobRequest request = Native();
  request.program->launches[0].module = "kept";
  EXPECT_THAT(programs.Find(request), IsOk());
  EXPECT_THAT(programs.Find(request), IsOk());
  EXPECT_EQ(fetched, 1);
  request.principal = "bob";
  EXPECT_THAT(programs.Find(request), ReasonIs("NO_MODULE"));
  EXPECT_THAT(Try(Native()), IsOk());
}

TEST_F(ProgramsTest, AModuleThatWasDroppedForOthersIsFetchedAgain) {
  Limits limits;
  limits.module_memory_bytes = 100'000;
  ModuleTable modules(limits);
  int fetched = 0;
  ModuleCode code;
  code.facts.entries = {EntryOf("square", "square", {8, 8, 4})};
  code.cubin = std::string(40'000, 'x');
  Programs programs(modules, strikes_,
                    [&](const std::string&, const std::string& id) -> absl::StatusOr<ModuleCode> {
                      ++fetched;
                      return id == "m1" ? absl::StatusOr<ModuleCode>(code)
                                        : absl::NotFoundError("");
                    });
  modules.SetRelease([&](absl::string_view id) { programs.Forget(id); });
  ASSERT_OK_AND_ASSIGN(auto waiting, programs.Find(Request()));
  const auto add = [&](const std::string& client) {
    return modules.Add(client, client, std::make_shared<const ModuleCode>(code));
  };
  ASSERT_THAT(add("bob"), IsOk());
  ASSERT_THAT(add("carol"), IsOk());  // bob's goes: a job of ann's waits.
  EXPECT_NE(modules.Find("ann", "m1"), nullptr);
  EXPECT_EQ(modules.Find("bob", "bob"), nullptr);
  EXPECT_EQ(fetched, 1);
  waiting.reset();
  ASSERT_THAT(add("bob"), IsOk());
  EXPECT_EQ(modules.Find("ann", "m1"), nullptr);
  ASSERT_THAT(programs.Find(Request()), IsOk());
  EXPECT_EQ(fetched, 2);
}

// A client's words that do not hold are read at each call, on a thread that all clients share.
TEST_F(ProgramsTest, OfOneClientFewLongWordsAreReadAtOnce) {
  const auto long_one = [](const std::string& principal) {
    JobRequest request = Request(kWords + std::string(Programs::kLongWords, ' '));
    request.principal = principal;
    request.program->launches[0].module = "gone";
    return request;
  };
  int read = 0;
  std::vector<absl::Status> meanwhile;
  Programs programs(
      modules_, strikes_,
      [&](const std::string& principal, const std::string&) -> absl::StatusOr<ModuleCode> {
        if (principal == "ann" && ++read <= Programs::kMostReading) {
          meanwhile.push_back(programs.Find(long_one("ann")).status());
          meanwhile.push_back(programs.Find(long_one("bob")).status());
        }
        return absl::NotFoundError("");
      });
  EXPECT_THAT(programs.Find(long_one("ann")), ReasonIs("NO_MODULE"));
  EXPECT_THAT(meanwhile, ElementsAre(ReasonIs("QUEUE_FULL"), ReasonIs("NO_MODULE"),
                                     ReasonIs("NO_MODULE"), ReasonIs("NO_MODULE")));
  EXPECT_EQ(read, Programs::kMostReading);
  EXPECT_THAT(programs.Find(long_one("ann")), ReasonIs("NO_MODULE"));
}

TEST_F(ProgramsTest, WhatCannotBeRunIsRefused) {
  JobRequest request = Request();
  request.program->launches[0].module = "bad";
  EXPECT_THAT(Try(request), ReasonIs("COMPILE_FAILED"));
  for (int i = 0; i < ModuleStrikes::kMost; ++i) strikes_.Add("m1", "signal 11");
  EXPECT_THAT(Try(Request()), ReasonIs("QUARANTINED"));
  EXPECT_THAT(Try(Native()), IsOk());
}

TEST_F(ProgramsTest, AProgramIsNoKernelOfTheCatalogue) {
  JobRequest request = Request();
  request.kernel = "square";
  EXPECT_THAT(Try(request), StatusIs(Code::kInvalidArgument, HasSubstr("kernel: want none")));
  request = Request();
  request.variant = "naive";
  EXPECT_THAT(Try(request), StatusIs(Code::kInvalidArgument, HasSubstr("variant: want none")));
  request = Request();
  request.verify = true;
  EXPECT_THAT(Try(request), StatusIs(Code::kInvalidArgument, HasSubstr("reference: want what")));
}

// The limit is of the GPU's memory: 8,000 bytes of tensors and what the module declares.
TEST_F(ProgramsTest, VariablesOfAModuleTakeMemoryOfTheGpu) {
  constexpr std::uint64_t kVariables = 1'000'000;
  const JobRequest request = RequestOf(/*variables=*/kVariables, /*local=*/0);
  Learn("cuda:0", "cuda", 90, kVariables + 8000 + 64);
  EXPECT_THAT(Try(request), IsOk());
  Learn("cuda:0", "cuda", 90, kVariables + 8000 - 64);
  EXPECT_THAT(Try(request), ReasonIs("TOO_LARGE"));
  EXPECT_THAT(Try(request), StatusIs(Code::kResourceExhausted, HasSubstr("device_memory")));
  EXPECT_THAT(Try(Request()), IsOk());
}

// As the driver takes it: for all 2,048 threads of each multiprocessor, though 1,000 are launched.
TEST_F(ProgramsTest, LocalMemoryOfThreadsTakesMemoryOfTheGpu) {
  constexpr std::uint64_t kThread = 64 * 1024, kAll = (kThread + 512) * 2048 * 132;
  const JobRequest request = RequestOf(/*variables=*/0, /*local=*/kThread);
  Learn("cuda:0", "cuda", 90, kAll + 8000 + 64, 132);
  ASSERT_OK_AND_ASSIGN(const Job job, Try(request));
  EXPECT_EQ(job.local_bytes, kAll);
  Learn("cuda:0", "cuda", 90, kAll + 8000 - 64, 132);
  EXPECT_THAT(Try(request), ReasonIs("TOO_LARGE"));
  EXPECT_THAT(Try(request),
              StatusIs(Code::kResourceExhausted,
                       HasSubstr("with 17855152128 bytes of local memory for all threads that fit "
                                 "its 132 multiprocessors at once, needs 17855160192 bytes")));
  ASSERT_OK_AND_ASSIGN(const Job without, Try(Request()));
  EXPECT_EQ(without.local_bytes, 0U);
}

TEST_F(ProgramsTest, VariablesBeyondAllMemoryAreRefused) {
  const JobRequest request = RequestOf(/*variables=*/~std::uint64_t{0}, /*local=*/0);
  Learn("cuda:0", "cuda", 90, std::uint64_t{141} << 30);
  EXPECT_THAT(Try(request), StatusIs(Code::kResourceExhausted, HasSubstr("more than 2^63")));
}

TEST_F(ProgramsTest, ACallMustFitTheMemoryOfAGuest) {
  limits_.guest_bytes = 4096;
  EXPECT_THAT(Try(Request()), ReasonIs("TOO_LARGE"));
  EXPECT_THAT(Try(Request()), StatusIs(Code::kResourceExhausted, HasSubstr("guest_bytes")));
}

}  // namespace
}  // namespace gridclock
