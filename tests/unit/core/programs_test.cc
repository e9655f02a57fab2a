// Submitted code at the gate: texts become a program, and a call of it a job for a device that can
// run it, or an error that says what was wanted and what came.
#include "server/core/programs.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "server/core/admission.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using Code = absl::StatusCode;

constexpr char kWords[] =
    "mine x: f32[N] -> y: f32[N] grid (ceil_div(N, 256)) block (256) params x, y, n: int = N";

ModuleEntry EntryOf(const std::string& name, const std::string& display,
                    std::vector<std::uint32_t> sizes) {
  ModuleEntry entry;
  entry.name = name;
  entry.display = display;
  entry.max_threads = 1024;
  std::uint32_t offset = 0;
  for (const std::uint32_t size : sizes) {
    EntryParameter& parameter = entry.parameters.emplace_back();
    parameter.offset = offset;
    parameter.size = size;
    offset += size;
  }
  return entry;
}

class ProgramsTest : public ::testing::Test {
 protected:
  ProgramsTest() {
    limits_.arena_bytes = 1 << 20;
    limits_.client_arena_bytes = 1 << 19;
    ResolveDefaults(limits_, 0);
    Learn("cpu", "cpu", 0);
    Learn("cuda:0", "cuda", 90);
    auto code = std::make_shared<ModuleCode>();
    code->facts.kind = ModuleKind::kCuda;
    code->facts.arch = "sm_90a";
    code->facts.entries = {EntryOf("_Z6squarePKfPfi", "square", {8, 8, 4}),
                           EntryOf("_Z4soft", "soft<float, 256>", {8, 8})};
    code->cubin = "ELF";
    Add("ann", "m1", code);
    auto failed = std::make_shared<ModuleCode>();
    failed->facts.failed = true;
    Add("ann", "bad", failed);
    auto native = std::make_shared<ModuleCode>();
    native->facts.kind = ModuleKind::kTestNative;
    native->facts.entries = {EntryOf("square", "square", {})};
    Add("ann", "native", native);
  }
  void Learn(const std::string& device, const std::string& kind, std::int64_t sm,
             std::uint64_t memory_bytes = 0, std::int64_t units = 0) {
    DeviceInfo info;
    info.memory_bytes = memory_bytes;
    info.units = units;
    info.name = device;
    info.traits = {.kind = kind, .sm = sm};
    info.host_memory = kind == "cpu";
    std::vector<KernelSpec> kernels;
    for (const char* words :
         {"same x: f32[N] -> y: f32[N]", "two a: f32[N], b: f32[N] -> y: f32[N]",
          "total x: f32[N] -> y: f32[]"}) {
      kernels.push_back(*ParseKernelSpec(words));
    }
    ASSERT_THAT(table_.Learn(info, kernels), IsOk());
  }
  void Add(const std::string& principal, const std::string& id, ModulePtr module) {
    ASSERT_THAT(modules_.Add(principal, id, std::move(module)), IsOk());
  }
  static JobRequest Request(const std::string& words = kWords) {
    JobRequest request;
    request.principal = "ann";
    request.device = "cuda:0";
    InputRequest input;
    input.operand = {"x", {.is_list = false, .tensors = {{DType::kF32, {1000}}}}};
    input.inline_bytes = 4000;
    request.inputs = {input};
    request.program = ProgramRequest{
        .words = words,
        .launches = {{.module = "m1", .entry = "square", .words = "", .cooperative = false}},
        .globals = {}};
    return request;
  }
  // Of a module that takes so much memory: `local` for each thread of an entry that is not
  // launched.
  JobRequest RequestOf(std::uint64_t variables, std::uint64_t local) {
    auto code = std::make_shared<ModuleCode>();
    code->facts.kind = ModuleKind::kCuda;
    code->facts.arch = "sm_90a";
    code->facts.entries = {EntryOf("square", "square", {8, 8, 4}), EntryOf("deep", "deep", {8})};
    code->facts.entries[1].local_bytes = local;
    code->facts.global_bytes = variables;
    code->cubin = "ELF";
    Add("ann", "large", code);
    JobRequest request = Request();
    request.program->launches[0].module = "large";
    return request;
  }
  static JobRequest Native() {
    JobRequest request = Request();
    request.device = "cpu";
    request.program->launches[0].module = "native";
    return request;
  }
  absl::StatusOr<Job> Try(const JobRequest& request) {
    auto program = programs_.Find(request);
    if (!program.ok()) return program.status();
    return Admit(
        request, table_, limits_, [](absl::string_view) { return 0; }, *std::move(program));
  }

  absl::StatusOr<Job> TryWithReference(const JobRequest& request) {
    auto program = programs_.Find(request);
    if (!program.ok()) return program.status();
    auto reference = programs_.FindReference(request);
    if (!reference.ok()) return reference.status();
    return Admit(
        request, table_, limits_, [](absl::string_view) { return 0; }, *std::move(program),
        *std::move(reference));
  }

  Limits limits_;
  KernelTable table_{{"cpu", "cuda:0"}};
  ModuleTable modules_{Limits()};
  ModuleStrikes strikes_;
  Programs programs_{modules_, strikes_};
};

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
  EXPECT_EQ(Try(request)->kernel_time_limit, absl::Seconds(30));
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

// ---- What a program is held against. ----

JobRequest WithReference(JobRequest request, const std::string& kernel) {
  request.verify = true;
  request.reference = ReferenceRequest{.kernel = kernel, .attributes = {}, .terms = 0};
  return request;
}

JobRequest WithExpected(JobRequest request, std::int64_t elements,
                        const std::string& name = "expected.y") {
  request = WithReference(std::move(request), "");
  InputRequest expected = request.inputs[0];
  expected.operand = {name, {.is_list = false, .tensors = {{DType::kF32, {elements}}}}};
  expected.inline_bytes = static_cast<std::uint64_t>(4 * elements);
  request.inputs.push_back(expected);
  return request;
}

TEST_F(ProgramsTest, AKernelOfTheCatalogueIsAReference) {
  ASSERT_OK_AND_ASSIGN(const Job job, Try(WithReference(Request(), "same")));
  ASSERT_TRUE(job.check.has_value());
  EXPECT_EQ(job.check->kernel, "same");
  EXPECT_FALSE(job.check->fresh);  // The input was sent.
  EXPECT_EQ(job.check->most_launches, 1);
  EXPECT_EQ(job.check->launch_bytes, 4032U);
  EXPECT_EQ(job.check->launches.offset + job.check->launches.size, job.memory.size);
}

TEST_F(ProgramsTest, WhatIsMadeFromASeedIsFreshAndOneLaunchMoreIsOfTheSubmittedValues) {
  JobRequest request = WithReference(Request(), "same");
  request.inputs[0].source = SourceKind::kGenerate;
  request.inputs[0].inline_bytes = 0;
  request.inputs[0].generator = {.kind = GeneratorKind::kRandn, .seed = 3};
  request.measure = MeasureOptions();
  request.measure->max_samples = 50;
  ASSERT_OK_AND_ASSIGN(const Job job, Try(request));
  EXPECT_TRUE(job.check->fresh);
  EXPECT_EQ(job.measure->max_samples, 32);  // 512 KiB of the client, a quarter, 4032 bytes each.
  EXPECT_EQ(job.check->most_launches, 33);
  request.measure->method = Method::kBackToBack;
  EXPECT_EQ(Try(request)->check->most_launches, 1);
}

// The trusted worker makes them where the job pays for them, also for a GPU, which makes its own.
TEST_F(ProgramsTest, InputsThatAreMadeForAComparisonCountAgainstTheClientsMemory) {
  JobRequest request = Request();
  request.inputs[0].source = SourceKind::kGenerate;
  request.inputs[0].inline_bytes = 0;
  request.inputs[0].generator = {.kind = GeneratorKind::kRandn, .seed = 3};
  request.inputs[0].operand.value.tensors[0].shape = {40'000};
  request.outputs = {{.name = "y", .sink = SinkKind::kDiscard}};
  ASSERT_OK_AND_ASSIGN(const Job plain, Try(request));
  EXPECT_EQ(plain.memory.size, 0U);
  request = WithReference(std::move(request), "same");
  ASSERT_OK_AND_ASSIGN(const Job job, Try(request));
  EXPECT_EQ(job.inputs[0].memory.size, 160'000U);
  EXPECT_EQ(job.memory.size, 3 * 160'000U);
  limits_.client_arena_bytes = 470'000;  // Under the three.
  EXPECT_THAT(Try(request), ReasonIs("TOO_LARGE"));
}

TEST_F(ProgramsTest, OfAChecksumTheServerNeedsTheBytes) {
  JobRequest request = Request();
  request.outputs = {{.name = "y", .sink = SinkKind::kChecksum}};
  ASSERT_OK_AND_ASSIGN(const Job job, Try(request));
  EXPECT_EQ(job.outputs[0].memory.size, 4032U);
}

TEST_F(ProgramsTest, AScheduleOfMoreLaunchesThanCanBeCheckedIsRefused) {
  JobRequest request = WithReference(Request(), "same");
  request.measure = MeasureOptions();
  request.measure->schedule = Schedule{.wait = 0, .warmup = 0, .active = 10, .repeat = 3};
  EXPECT_THAT(Try(request), IsOk());
  request.measure->schedule->repeat = 4;
  EXPECT_THAT(Try(request), StatusIs(Code::kInvalidArgument, HasSubstr("at most 32 launches")));
}

TEST_F(ProgramsTest, AReferenceMustFitTheProgram) {
  EXPECT_THAT(Try(WithReference(Request(), "none")), StatusIs(Code::kNotFound, HasSubstr("none")));
  EXPECT_THAT(Try(WithReference(Request(), "two")),
              StatusIs(Code::kInvalidArgument, HasSubstr("'two' has 2 inputs; the program has 1")));
  EXPECT_THAT(
      Try(WithReference(Request(), "total")),
      StatusIs(Code::kInvalidArgument, HasSubstr("gives f32[] of these inputs; the program gives "
                                                 "f32[1000]")));
  JobRequest request = WithReference(Request(), "same");
  request.verify = false;
  EXPECT_THAT(Try(request), StatusIs(Code::kInvalidArgument, HasSubstr("reference: want none")));
}

JobRequest WithReferenceProgram(const JobRequest& request) {
  JobRequest out = WithReference(request, "");
  out.reference->program = request.program;
  return out;
}

TEST_F(ProgramsTest, AReferenceProgramIsReadLikeAnother) {
  JobRequest request = WithReferenceProgram(Request());
  ASSERT_OK_AND_ASSIGN(const auto found, programs_.FindReference(request));
  EXPECT_EQ(found->modules[0].id, "m1");
  const auto refused = [&] { return programs_.FindReference(request).status(); };

  auto& launch = request.reference->program->launches[0];
  launch.module = "none";
  EXPECT_THAT(refused(), StatusIs(Code::kNotFound, HasSubstr("no module 'none'")));
  EXPECT_THAT(refused(), ReasonIs("NO_MODULE"));
  EXPECT_EQ(DetailsOf(refused()).field, "reference.program.launches[0].module");
  launch.module = "m1";
  launch.entry = "sqare";
  EXPECT_THAT(refused(), ReasonIs("NO_ENTRY"));
  launch.entry = "square";
  request.principal = "bob";
  EXPECT_THAT(refused(), ReasonIs("NO_MODULE"));
  request.principal = "ann";
  EXPECT_THAT(refused(), IsOk());
  request.reference->program->launches.clear();
  EXPECT_THAT(refused(), StatusIs(Code::kInvalidArgument, HasSubstr("want 1 to 64, got none")));
  EXPECT_EQ(DetailsOf(refused()).field, "reference.program.launches");
}

TEST_F(ProgramsTest, WordsOfAReferenceAreInferredWithItsOwnAttributes) {
  auto code = std::make_shared<ModuleCode>();
  code->facts.kind = ModuleKind::kCuda;
  code->facts.arch = "sm_90a";
  ModuleEntry& entry = code->facts.entries.emplace_back();
  entry.name = entry.display = "scale";
  entry.max_threads = 1024;
  entry.parameters = {{.offset = 0, .size = 8, .type = "float const*", .name = "x"},
                      {.offset = 8, .size = 8, .type = "float*", .name = "y"},
                      {.offset = 16, .size = 4, .type = "float", .name = "factor"}};
  code->cubin = "ELF";
  Add("ann", "m2", code);
  JobRequest request = WithReference(Request(), "");
  request.reference->program = ProgramRequest{.words = "",
                                              .launches = {{.module = "m2",
                                                            .entry = "scale",
                                                            .words = "grid (4) block (256)",
                                                            .cooperative = false}},
                                              .globals = {}};
  EXPECT_THAT(programs_.FindReference(request),
              StatusIs(Code::kInvalidArgument, HasSubstr("factor")));
  request.reference->attributes = {{"factor", 2.0}};
  ASSERT_OK_AND_ASSIGN(const auto found, programs_.FindReference(request));
  EXPECT_EQ(found->program.words.attributes[0].name, "factor");
}

TEST_F(ProgramsTest, AReferenceProgramStandsAloneAndIsForPrograms) {
  JobRequest both = WithReferenceProgram(Request());
  both.reference->kernel = "same";
  EXPECT_THAT(TryWithReference(both), StatusIs(Code::kInvalidArgument, HasSubstr("reference")));
  JobRequest of_catalogue = WithReferenceProgram(Request());
  of_catalogue.program.reset();
  of_catalogue.kernel = "same";
  EXPECT_THAT(Admit(
                  of_catalogue, table_, limits_, [](absl::string_view) { return 0; }, nullptr),
              StatusIs(Code::kInvalidArgument, HasSubstr("reference: want none")));
}

// Words of the code that is timed may say that it moves nothing.
TEST_F(ProgramsTest, WhatAProgramIsHeldAgainstSaysTheLeastThatItMoves) {
  const JobRequest claims_little = Request(absl::StrCat(kWords, " bytes 1 flops 0"));
  JobRequest by_program = WithReferenceProgram(claims_little);
  by_program.reference->program->words = absl::StrCat(kWords, " flops 3000");
  ASSERT_OK_AND_ASSIGN(const Job job, TryWithReference(by_program));
  EXPECT_EQ(job.bytes, 1);
  EXPECT_EQ(job.check->bytes, 8000);
  EXPECT_EQ(job.check->flops, 3000);

  ASSERT_OK_AND_ASSIGN(const Job by_values, Try(WithExpected(claims_little, 1000)));
  EXPECT_EQ(by_values.check->bytes, 4000) << "y at least was written";
}

// A value that is right may be the one that was there before.
TEST_F(ProgramsTest, ValuesOfWhatIsGivenBackInItsPlaceNeedNotBeWritten) {
  const JobRequest request = Request(
      "mine inout x: f32[N] grid (ceil_div(N, 256)) block (256) params x, x, n: int = N bytes 1");
  ASSERT_OK_AND_ASSIGN(const Job job, Try(WithExpected(request, 1000, "expected.x")));
  EXPECT_EQ(job.check->bytes, 0);
}

TEST_F(ProgramsTest, ExpectedValuesAreNoInputsOfTheProgram) {
  ASSERT_OK_AND_ASSIGN(const Job job, Try(WithExpected(Request(), 1000)));
  EXPECT_THAT(job.inputs, SizeIs(1));
  ASSERT_THAT(job.check->expected, SizeIs(1));
  EXPECT_EQ(job.check->expected[0].memory.size, 4032U);
  EXPECT_EQ(job.check->terms, 1);
  EXPECT_THAT(Try(WithExpected(Request(), 999)),
              StatusIs(Code::kInvalidArgument, HasSubstr("want f32[1000], got f32[999]")));
  EXPECT_THAT(Try(WithReference(Request(), "")),
              StatusIs(Code::kInvalidArgument, HasSubstr("'expected.y'")));
  JobRequest other = WithExpected(Request(), 1000);
  other.inputs[1].operand.name = "expected.z";
  EXPECT_THAT(Try(other), StatusIs(Code::kInvalidArgument, HasSubstr("'expected.y'")));
  JobRequest both = WithExpected(Request(), 1000);
  both.reference->kernel = "same";
  EXPECT_THAT(Try(both), StatusIs(Code::kInvalidArgument, HasSubstr("beside a kernel")));
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
