// What a program is held against.
#include "absl/strings/str_cat.h"
#include "tests/unit/core/programs_fixture.h"

namespace gridclock {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using Code = absl::StatusCode;

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
  const absl::Status unknown = Try(WithReference(Request(), "none")).status();
  EXPECT_THAT(unknown, StatusIs(Code::kNotFound, HasSubstr("none")));
  EXPECT_EQ(DetailsOf(unknown).field, "reference.kernel");
  EXPECT_THAT(Try(WithReference(Request(), "no name")),
              StatusIs(Code::kInvalidArgument, HasSubstr("reference.kernel: want a name like")));
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

// Words of the code that is timed may say that it moves nothing, or more than it does.
TEST_F(ProgramsTest, WhatAProgramIsHeldAgainstSaysWhatItMoves) {
  for (const char* claim : {" bytes 1 flops 0", " bytes 1000000 flops 1000000"}) {
    JobRequest by_program = WithReferenceProgram(Request(absl::StrCat(kWords, claim)));
    by_program.reference->program->words = absl::StrCat(kWords, " flops 3000");
    ASSERT_OK_AND_ASSIGN(const Job job, TryWithReference(by_program));
    EXPECT_EQ(job.bytes, 8000);
    EXPECT_EQ(job.flops, 3000);
    EXPECT_EQ(job.check->bytes, 8000);
    EXPECT_EQ(job.check->flops, 3000);
  }
  const JobRequest claims_little = Request(absl::StrCat(kWords, " bytes 1 flops 0"));
  ASSERT_OK_AND_ASSIGN(const Job by_values, Try(WithExpected(claims_little, 1000)));
  EXPECT_EQ(by_values.check->bytes, 4000) << "y at least was written";
  EXPECT_EQ(by_values.bytes, 4000);
}

// A value that is right may be the one that was there before.
TEST_F(ProgramsTest, ValuesOfWhatIsGivenBackInItsPlaceNeedNotBeWritten) {
  const JobRequest request = Request(
      "mine inout x: f32[N] grid (ceil_div(N, 256)) block (256) params x, x, n: int = N bytes 1");
  ASSERT_OK_AND_ASSIGN(const Job job, Try(WithExpected(request, 1000, "expected.x")));
  EXPECT_EQ(job.check->bytes, 1);
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
  EXPECT_THAT(Try(other), StatusIs(Code::kInvalidArgument,
                                   HasSubstr("'expected.z': the program has no such output")));
  JobRequest both = WithExpected(Request(), 1000);
  both.reference->kernel = "same";
  EXPECT_THAT(Try(both), StatusIs(Code::kInvalidArgument, HasSubstr("beside a kernel")));
}

// Of another size the second would have no room, of the same it would count alone.
TEST_F(ProgramsTest, ExpectedValuesAreGivenOnce) {
  for (const std::int64_t elements : {1000, 1001}) {
    JobRequest twice = WithExpected(Request(), 1000);
    twice.inputs.push_back(twice.inputs[1]);
    twice.inputs[2].operand.value.tensors[0].shape = {elements};
    twice.inputs[2].inline_bytes = static_cast<std::uint64_t>(4 * elements);
    EXPECT_THAT(Try(twice), StatusIs(Code::kInvalidArgument,
                                     HasSubstr("'expected.y': is given twice, want each once")));
  }
}

}  // namespace
}  // namespace gridclock
