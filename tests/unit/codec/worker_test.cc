#include "proto/codec/worker.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proto/codec/values.h"
#include "proto/types/status_page.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr std::uint64_t kArena = 4096;

OperandValue Floats(std::int64_t n) {
  return {.is_list = false, .tensors = {{.dtype = DType::kF32, .shape = {n}}}};
}

Job SquareJob() {
  Job job;
  job.id = 42;
  job.kernel = "square";
  job.variant = "simd";
  JobInput& x = job.inputs.emplace_back();
  x.value = Floats(16);
  x.memory = {.offset = 1024, .size = 64};
  JobOutput& y = job.outputs.emplace_back();
  y.name = "y";
  y.value = Floats(16);
  y.memory = {.offset = 2048, .size = 64};
  job.arrived = absl::FromUnixNanos(1000);
  job.deadline = absl::FromUnixNanos(9000);
  job.kernel_time_limit = absl::Seconds(30);
  return job;
}

worker::v1::Order OrderOf(const Job& job) {
  worker::v1::Order order;
  Encode(job, 3, &order);
  return order;
}

Outcome SomeOutcome() {
  Outcome outcome;
  outcome.variant = "simd";
  outcome.timing.emplace().samples_ns = {5};
  outcome.timing->statistics.median = 5;
  outcome.phases = {{.kind = PhaseKind::kFinished, .start_ns = 1500, .end_ns = 1600}};
  outcome.flags = {Flag::kNoisy};
  outcome.outputs.resize(1);
  return outcome;
}

worker::v1::Done DoneOf(const Outcome& outcome) {
  worker::v1::Done done;
  EncodeDone(42, 3, outcome, &done);
  return done;
}

TEST(Orders, GoThereAndBack) {
  Job job = SquareJob();
  job.outputs[0].sink = SinkKind::kChecksum;
  job.outputs[0].in_place_of = 0;
  job.attributes = {1.5};
  job.verify = true;
  WorkerOrder order;

  ASSERT_THAT(Decode(OrderOf(job), kArena, &order), IsOk());

  EXPECT_EQ(order.id, 42u);
  EXPECT_EQ(order.generation, 3u);
  EXPECT_EQ(order.deadline, absl::FromUnixNanos(9000));
  EXPECT_EQ(order.kernel_time_limit, absl::Seconds(30));
  EXPECT_EQ(order.inputs[0].memory, (MemoryRange{.offset = 1024, .size = 64}));
  EXPECT_TRUE(order.outputs[0].checksum);
  EXPECT_EQ(order.outputs[0].in_place_of, 0);
  EXPECT_THAT(order.attributes, ElementsAre(AttributeValue(1.5)));
  EXPECT_FALSE(order.measure.has_value());
}

TEST(Comparisons, NameThePlaceOfEachInputAlsoOfThoseThatAreMade) {
  Job job = SquareJob();
  job.inputs[0].source = SourceKind::kGenerate;
  job.inputs[0].generator.kind = GeneratorKind::kRandn;
  job.check = JobCheck{.kernel = "square", .launches = {.offset = 3072, .size = 64}};
  job.check->launch_bytes = 64;
  job.check->done->seed_changes = {7};
  worker::v1::Comparison comparison;
  EncodeComparison(job, 3, &comparison);
  ASSERT_OK_AND_ASSIGN(const WorkerComparison back, Decode(comparison, kArena));
  EXPECT_EQ(back.inputs[0].memory, (MemoryRange{.offset = 1024, .size = 64}));
  EXPECT_TRUE(back.inputs[0].generate.has_value());
  EXPECT_THAT(back.seed_changes, ElementsAre(7U));
  comparison.mutable_inputs(0)->clear_memory();
  EXPECT_THAT(Decode(comparison, kArena), StatusIs(kInvalid, HasSubstr("no place in the arena")));
}

TEST(Orders, NothingOfTheLastOrderStays) {
  Job rich = SquareJob();
  rich.measure.emplace();
  rich.inputs[0].source = SourceKind::kGenerate;
  rich.inputs[0].generator.kind = GeneratorKind::kOnes;
  rich.outputs[0].in_place_of = 0;
  WorkerOrder order;
  ASSERT_THAT(Decode(OrderOf(rich), kArena, &order), IsOk());

  ASSERT_THAT(Decode(OrderOf(SquareJob()), kArena, &order), IsOk());

  EXPECT_FALSE(order.measure.has_value());
  EXPECT_FALSE(order.inputs[0].generate.has_value());
  EXPECT_FALSE(order.outputs[0].in_place_of.has_value());
}

TEST(Orders, RangesMustLieInTheArena) {
  WorkerOrder order;
  Job job = SquareJob();
  job.outputs[0].memory = {.offset = kArena, .size = 64};
  EXPECT_THAT(Decode(OrderOf(job), kArena, &order), StatusIs(kInvalid, HasSubstr("outside")));
  job.outputs[0].memory = {.offset = std::uint64_t{0} - 64, .size = 128};
  EXPECT_THAT(Decode(OrderOf(job), kArena, &order), StatusIs(kInvalid, HasSubstr("outside")));
  job.outputs[0].memory = {.offset = 64, .size = ~std::uint64_t{0}};
  EXPECT_THAT(Decode(OrderOf(job), kArena, &order), StatusIs(kInvalid, HasSubstr("outside")));
  job.outputs[0].memory = {.offset = 4, .size = 64};
  EXPECT_THAT(Decode(OrderOf(job), kArena, &order), StatusIs(kInvalid, HasSubstr("multiple")));
  job.outputs[0].memory = {.offset = 64, .size = 60};
  EXPECT_THAT(Decode(OrderOf(job), kArena, &order),
              StatusIs(kInvalid, HasSubstr("takes 64 bytes, its memory 60")));
}

TEST(Orders, AnOutputIsInPlaceOfAnInputThatExists) {
  WorkerOrder order;
  worker::v1::Order wire = OrderOf(SquareJob());
  wire.mutable_outputs(0)->set_in_place_of(2);
  EXPECT_THAT(Decode(wire, kArena, &order), StatusIs(kInvalid, HasSubstr("wants 1 to 1")));
  wire.mutable_outputs(0)->set_in_place_of(-1);
  EXPECT_THAT(Decode(wire, kArena, &order), StatusIs(kInvalid, HasSubstr("got -1")));
  wire.mutable_outputs(0)->set_in_place_of(std::numeric_limits<std::int32_t>::min());
  EXPECT_THAT(Decode(wire, kArena, &order), StatusIs(kInvalid, HasSubstr("got -2147483648")));
}

// A program of two launches of two modules, the second of which its guest has already.
Job ProgramJob() {
  Job job = SquareJob();
  job.kernel = "twice";
  job.variant.clear();
  Program program{
      .words = *ParseKernelSpec("twice x: f32[N] -> y: f32[N]; k: f64 = 2 grid (N) block (32) "
                                "scratch t: f32[N] params x, y"),
      .launches = {{.module = "m1", .entry = "first", .clauses = *ParseClauses("params x, t")},
                   {.module = "m2",
                    .entry = "second",
                    .clauses = *ParseClauses("block (64) shared 4*N params t, y"),
                    .cooperative = true}},
      .globals = {{.module = "m2", .name = "scale", .from = "k"}}};
  job.program = std::make_shared<JobProgram>(
      JobProgram{.program = *CompleteProgram(program),
                 .modules = {{.id = "m1", .kind = ModuleKind::kCubin, .code = nullptr},
                             {.id = "m2", .kind = ModuleKind::kTestNative, .code = nullptr}}});
  job.module_code = {{.offset = 128, .size = 1000}, {}};
  return job;
}

TEST(Orders, BringPrograms) {
  const Job job = ProgramJob();
  WorkerOrder order;

  ASSERT_THAT(Decode(OrderOf(job), kArena, &order), IsOk());

  ASSERT_TRUE(order.program.has_value());
  EXPECT_EQ(order.program->program, job.program->program);
  ASSERT_THAT(order.program->modules, SizeIs(2));
  EXPECT_EQ(order.program->modules[0].id, "m1");
  EXPECT_EQ(order.program->modules[0].kind, ModuleKind::kCubin);
  EXPECT_EQ(order.program->modules[0].code, (MemoryRange{.offset = 128, .size = 1000}));
  EXPECT_EQ(order.program->modules[1].kind, ModuleKind::kTestNative);
  EXPECT_EQ(order.program->modules[1].code, MemoryRange());

  ASSERT_THAT(Decode(OrderOf(SquareJob()), kArena, &order), IsOk());
  EXPECT_FALSE(order.program.has_value());
}

TEST(Orders, AProgramThatComesAgainIsTheSameUntilItChanges) {
  Job job = ProgramJob();
  WorkerOrder order;
  ASSERT_THAT(Decode(OrderOf(job), kArena, &order), IsOk());
  ASSERT_THAT(Decode(OrderOf(job), kArena, &order), IsOk());
  EXPECT_EQ(order.program->program, job.program->program);

  job.module_code = {};
  ASSERT_THAT(Decode(OrderOf(job), kArena, &order), IsOk());
  EXPECT_EQ(order.program->modules[0].code, MemoryRange());
  worker::v1::Order wrong = OrderOf(job);
  wrong.mutable_program()->mutable_launches(0)->set_module(9);
  EXPECT_THAT(Decode(wrong, kArena, &order), StatusIs(kInvalid, HasSubstr("module 9")));
  EXPECT_FALSE(order.program.has_value());
  ASSERT_THAT(Decode(OrderOf(job), kArena, &order), IsOk());
  EXPECT_EQ(order.program->program, job.program->program);
}

TEST(Orders, ProgramsNameModulesThatCameWithThem) {
  WorkerOrder order;
  const worker::v1::Order good = OrderOf(ProgramJob());
  worker::v1::Order wire = good;
  wire.mutable_program()->mutable_launches(0)->set_module(2);
  EXPECT_THAT(Decode(wire, kArena, &order), StatusIs(kInvalid, HasSubstr("module 2 of 2")));
  wire = good;
  wire.mutable_program()->mutable_globals(0)->set_module(7);
  EXPECT_THAT(Decode(wire, kArena, &order), StatusIs(kInvalid, HasSubstr("module 7 of 2")));
  wire = good;
  wire.mutable_program()->mutable_modules(0)->mutable_code()->set_size(kArena);
  EXPECT_THAT(Decode(wire, kArena, &order), StatusIs(kInvalid, HasSubstr("outside")));
  wire = good;
  wire.mutable_program()->mutable_modules(0)->set_kind(v1::Module::CUDA);
  EXPECT_THAT(Decode(wire, kArena, &order), StatusIs(kInvalid, HasSubstr("CUBIN or TEST_NATIVE")));
  wire = good;
  wire.mutable_program()->mutable_launches(0)->mutable_clauses()->add_params()->set_name("q");
  EXPECT_THAT(Decode(wire, kArena, &order), StatusIs(kInvalid, HasSubstr("launches")));
}

// Lists of `count` tensors each, and all else as long as it can be.
Job LongJob(int count) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  constexpr MemoryRange kFar = {.offset = ~0ULL - 1, .size = ~0ULL};
  const TensorSpec tensor = {DType::kF32, Shape(8, kMost)};
  const OperandValue value = {.is_list = true, .tensors = std::vector<TensorSpec>(count, tensor)};
  Job job;
  job.id = job.memory.offset = ~0ULL;
  job.kernel = job.variant = std::string(128, 'k');
  job.deadline = absl::FromUnixNanos(kMost);
  job.kernel_time_limit = absl::Nanoseconds(kMost);
  job.measure.emplace();
  job.streamed = true;
  for (int i = 0; i < 3; ++i) {
    job.inputs.push_back({.value = value,
                          .source = SourceKind::kGenerate,
                          .generator = {GeneratorKind::kUniform, 1e300, 1e301, ~0ULL},
                          .memory = kFar});
    job.outputs.push_back(
        {.name = std::string(128, 'y'), .value = value, .memory = kFar, .in_place_of = 1000});
    job.attributes.emplace_back(kMost);
    job.attributes.emplace_back(std::string(1000, 'w'));
  }
  return job;
}

TEST(Orders, TakeNoMoreBytesThanIsReservedForThem) {
  for (const int count : {0, 1, 100, 10'000}) {
    Job job = LongJob(count);
    worker::v1::FromServer frame;
    Encode(job, ~0ULL, frame.mutable_order());
    EXPECT_LE(frame.ByteSizeLong(), MostOrderBytes(job)) << count;

    job.check.emplace();
    job.check->kernel = std::string(128, 'r');
    job.check->attributes = job.attributes;
    job.check->expected = job.inputs;
    job.check->most_launches = 10'000;
    job.check->launch_bytes = ~0ULL;
    job.check->done->seed_changes.assign(10'000, ~0ULL);
    EncodeComparison(job, ~0ULL, frame.mutable_comparison());
    EXPECT_LE(frame.ByteSizeLong(), MostOrderBytes(job)) << count;
  }
}

TEST(Arrivals, LieInsideTheArena) {
  const WorkerArrival good = {
      .id = 42, .generation = 3, .input = 1, .memory = {.offset = 1024, .size = 64}, .bytes = 10};
  const auto decode = [](const WorkerArrival& arrival) {
    worker::v1::Arrival wire;
    Encode(arrival, &wire);
    return Decode(wire, kArena);
  };
  ASSERT_OK_AND_ASSIGN(const WorkerArrival same, decode(good));
  EXPECT_EQ(same.id, 42U);
  EXPECT_EQ(same.generation, 3U);
  EXPECT_EQ(same.input, 1U);
  EXPECT_EQ(same.memory, good.memory);
  EXPECT_EQ(same.bytes, 10U);

  WorkerArrival bad = good;
  bad.memory.offset = kArena - 32 + 64;
  EXPECT_THAT(decode(bad), StatusIs(kInvalid, HasSubstr("outside the arena")));
  bad = good;
  bad.memory.size = std::numeric_limits<std::uint64_t>::max();
  EXPECT_THAT(decode(bad), StatusIs(kInvalid, HasSubstr("outside the arena")));
  bad = good;
  bad.memory.offset = 1025;
  EXPECT_THAT(decode(bad), StatusIs(kInvalid, HasSubstr("not a multiple")));
  for (const std::uint64_t bytes : {0, 65}) {
    bad = good;
    bad.bytes = bytes;
    EXPECT_THAT(decode(bad), StatusIs(kInvalid, HasSubstr("want 1 to 64")));
  }
}

TEST(Hellos, GoInSeveralFramesAndComeTogether) {
  ASSERT_OK_AND_ASSIGN(KernelSpec spec, ParseKernelSpec("square x: f32[*] -> y: f32[*]"));
  spec.notes = std::string(10'000, 'n');
  WorkerHello hello;
  hello.protocol = kWorkerProtocol;
  hello.device.name = "cpu";
  hello.device.traits.kind = "cpu";
  hello.device.units = 2;
  hello.device.copy_offset_ns = -3;
  hello.device.serial_record_offset_ns = 1300;
  for (int i = 0; i < 20; ++i) hello.kernels.push_back(spec);
  hello.test_natives = {"square", "crash"};
  hello.sandbox = "landlock 7, seccomp";

  ASSERT_OK_AND_ASSIGN(const auto frames, EncodeHello(hello));
  HelloAssembler assembler;
  bool complete = false;
  for (const auto& frame : frames) {
    EXPECT_LE(frame.ByteSizeLong(), kFrameLimit);
    EXPECT_FALSE(complete);
    ASSERT_OK_AND_ASSIGN(complete, assembler.Add(frame.hello()));
  }

  EXPECT_GE(frames.size(), 4u);
  EXPECT_TRUE(complete);
  EXPECT_EQ(assembler.hello().kernels, hello.kernels);
  EXPECT_EQ(assembler.hello().test_natives, hello.test_natives);
  EXPECT_EQ(assembler.hello().sandbox, hello.sandbox);
  EXPECT_EQ(assembler.hello().device.copy_offset_ns, -3);
  EXPECT_EQ(assembler.hello().device.serial_record_offset_ns, 1300);
  EXPECT_THAT(assembler.Add(frames[0].hello()), StatusIs(kInvalid, HasSubstr("had ended")));
}

TEST(Hellos, OfAnotherProtocolAreRefused) {
  worker::v1::Hello hello;
  hello.set_protocol(99);
  EXPECT_THAT(HelloAssembler().Add(hello), StatusIs(kInvalid, HasSubstr("protocol 99; want 1")));
}

TEST(Hellos, WithImpossibleFactsAreRefused) {
  worker::v1::Hello hello;
  hello.set_protocol(kWorkerProtocol);
  hello.set_role(worker::v1::TRUSTED);
  EXPECT_THAT(HelloAssembler().Add(hello), StatusIs(kInvalid, HasSubstr("must name its device")));
  hello.mutable_device()->set_name("cpu");
  hello.mutable_device()->set_kind("cpu");
  hello.mutable_device()->set_units(1);
  hello.mutable_device()->set_launch_floor_ns(std::numeric_limits<double>::infinity());
  EXPECT_THAT(HelloAssembler().Add(hello), StatusIs(kInvalid, HasSubstr("not finite")));
  hello.mutable_device()->set_launch_floor_ns(1);
  hello.mutable_device()->set_serial_record_offset_ns(-1);
  EXPECT_THAT(HelloAssembler().Add(hello), StatusIs(kInvalid, HasSubstr("not finite")));
}

TEST(Reports, ASingleLaunchCarriesItsSample) {
  ASSERT_OK_AND_ASSIGN(const Outcome outcome, Decode(DoneOf(SomeOutcome()), SquareJob(), {}));

  EXPECT_THAT(outcome.timing->samples_ns, ElementsAre(5));
  EXPECT_EQ(outcome.phases[0],
            (Phase{.kind = PhaseKind::kFinished, .start_ns = 500, .end_ns = 600}));
  EXPECT_THAT(outcome.flags, ElementsAre(Flag::kNoisy));
}

TEST(Reports, SamplesOfAMeasurementCameAhead) {
  Job job = SquareJob();
  job.measure.emplace();
  Outcome outcome = SomeOutcome();
  outcome.timing->stop = StopReason::kInterval;
  outcome.timing->samples_ns = {1, 2, 3};

  const worker::v1::Done done = DoneOf(outcome);
  EXPECT_EQ(done.timing().samples_ns_size(), 0);
  ASSERT_OK_AND_ASSIGN(const Outcome back, Decode(done, job, {1, 2, 3}));

  EXPECT_THAT(back.timing->samples_ns, ElementsAre(1, 2, 3));
  EXPECT_THAT(Decode(done, job, {}), StatusIs(kInvalid, HasSubstr("without a sample")));
}

TEST(Reports, ThatContradictTheOrderAreRefused) {
  const Job job = SquareJob();
  const auto refuse = [&](auto spoil, absl::string_view why) {
    worker::v1::Done done = DoneOf(SomeOutcome());
    spoil(done);
    EXPECT_THAT(Decode(done, job, {}), StatusIs(kInvalid, HasSubstr(std::string(why))));
  };
  refuse([](auto& d) { d.set_variant("other"); }, "ran variant 'other', ordered 'simd'");
  refuse([](auto& d) { d.add_checksums(1); }, "2 outputs reported, 1 ordered");
  refuse([](auto& d) { d.clear_checksums(); }, "0 outputs reported");
  refuse([](auto& d) { d.mutable_timing()->set_samples_ns(0, std::nan("")); }, "not a time");
  refuse([](auto& d) { d.mutable_timing()->add_samples_ns(1); }, "more samples");
  refuse([](auto& d) { d.mutable_timing()->set_roofline_ns(-1); }, "not a time");
  refuse([](auto& d) { d.mutable_timing()->set_warmups(-1); }, "not a time");
  refuse([](auto& d) { d.mutable_timing()->set_method(static_cast<v1::Method>(9)); }, "unknown");
  refuse([](auto& d) { d.mutable_phases(0)->set_start_ns(1); }, "cannot be");
  refuse([](auto& d) { d.mutable_phases(0)->set_end_ns(1400); }, "cannot be");
  refuse([](auto& d) { d.mutable_phases(0)->set_kind(v1::Phase::QUEUED); }, "cannot be");
  refuse([](auto& d) { d.mutable_phases(0)->set_kind(static_cast<v1::Phase::Kind>(8)); },
         "cannot be");
  refuse([](auto& d) { *d.add_phases() = d.phases(0); }, "cannot be");
  refuse([](auto& d) { d.mutable_verification()->set_mismatches(1); }, "contradict");
  refuse([](auto& d) { d.mutable_verification()->set_undecided(1); }, "contradict");
  refuse(
      [](auto& d) {
        for (int i = 0; i < 300; ++i) d.add_device_kernels();
      },
      "too many device kernels");
}

TEST(Reports, MismatchesAreFewAndClean) {
  Outcome outcome = SomeOutcome();
  outcome.verification =
      Verification{.checked = 9,
                   .total = 9,
                   .mismatches = 5,
                   .first_mismatch = "y[0]: \x1b[2J",
                   .more_mismatches = {"y[1]", "y[2]: \n\a", "y[3]", std::string(5000, 'y')}};
  worker::v1::Done done = DoneOf(outcome);
  EXPECT_LT(done.verification().more_mismatches(3).size(), 2100U);
  ASSERT_OK_AND_ASSIGN(const Outcome back, Decode(done, SquareJob(), {}));
  EXPECT_EQ(back.verification->first_mismatch, "y[0]: \\x1b[2J");
  ASSERT_THAT(back.verification->more_mismatches, SizeIs(4));
  EXPECT_EQ(back.verification->more_mismatches[0], "y[1]");
  EXPECT_EQ(back.verification->more_mismatches[1], "y[2]: \n\\x07");

  done.mutable_verification()->set_more_mismatches(3, std::string(5000, 'y'));
  ASSERT_OK_AND_ASSIGN(const Outcome cut, Decode(done, SquareJob(), {}));
  EXPECT_LT(cut.verification->more_mismatches[3].size(), 2100U);

  done.mutable_verification()->add_more_mismatches("y[5]");
  EXPECT_THAT(Decode(done, SquareJob(), {}), StatusIs(kInvalid, HasSubstr("5 mismatches named")));
  done.mutable_verification()->mutable_more_mismatches()->DeleteSubrange(2, 3);
  done.mutable_verification()->set_mismatches(2);
  EXPECT_THAT(Decode(done, SquareJob(), {}),
              StatusIs(kInvalid, HasSubstr("behind the first, of 2")));
}

TEST(Reports, OnlySubmittedCodePrints) {
  Outcome outcome = SomeOutcome();
  outcome.variant.clear();
  outcome.timing->stop = StopReason::kSingleLaunch;
  outcome.printed = "x is 1\n";
  outcome.printed_truncated = true;
  const Job job = ProgramJob();
  ASSERT_OK_AND_ASSIGN(const Outcome told, Decode(DoneOf(outcome), job, {}));
  EXPECT_EQ(told.printed, "x is 1\n");
  EXPECT_TRUE(told.printed_truncated);

  worker::v1::Done done = DoneOf(outcome);
  done.set_printed(std::string(kMostPrinted + 1, 'x'));
  EXPECT_THAT(Decode(done, job, {}), StatusIs(kInvalid, HasSubstr("16385 bytes printed")));
  done = DoneOf(outcome);
  done.set_variant("simd");
  EXPECT_THAT(Decode(done, SquareJob(), {}), StatusIs(kInvalid, HasSubstr("prints nothing")));
}

TEST(Reports, AMeasurementIsByTheMethodAndTheCacheStateOrdered) {
  Job job = SquareJob();
  job.measure.emplace();
  job.measure->method = Method::kHostSync;
  job.measure->l2 = L2State::kColdClean;
  Timing ordered;
  ordered.method = Method::kHostSync;
  ordered.l2 = L2State::kColdClean;
  ordered.stop = StopReason::kBudget;
  ordered.samples_ns = {1};
  const auto decode = [&](std::optional<Timing> timing, std::vector<double> ahead) {
    Outcome outcome = SomeOutcome();
    outcome.timing = std::move(timing);
    return Decode(DoneOf(outcome), job, std::move(ahead));
  };
  EXPECT_THAT(decode(ordered, {1}), IsOk());
  const auto refused = StatusIs(kInvalid, HasSubstr("no measurement by the method"));
  EXPECT_THAT(decode(std::nullopt, {1}), refused);
  Timing other = ordered;
  other.method = Method::kIsolated;
  EXPECT_THAT(decode(other, {1}), refused);
  other = ordered;
  other.l2 = L2State::kHot;
  EXPECT_THAT(decode(other, {1}), refused);
  other = ordered;
  other.stop = StopReason::kSingleLaunch;
  EXPECT_THAT(decode(other, {}), refused);
}

TEST(Reports, AVerificationThatWasOrderedIsThereOrSaidToBeMissing) {
  Job job = SquareJob();
  job.verify = true;
  Outcome outcome = SomeOutcome();
  EXPECT_THAT(Decode(DoneOf(outcome), job, {}), StatusIs(kInvalid, HasSubstr("no verification")));
  outcome.verification.emplace();
  EXPECT_THAT(Decode(DoneOf(outcome), job, {}), IsOk());
  outcome.verification.reset();
  outcome.flags = {Flag::kUnverified};
  EXPECT_THAT(Decode(DoneOf(outcome), job, {}), IsOk());
}

TEST(Reports, AFailureNeedNotCarryWhatItDidNotReach) {
  Job job = SquareJob();
  job.measure.emplace();
  job.verify = true;
  const Outcome partial = SomeOutcome();
  worker::v1::Failed failed;
  EncodeFailed(42, 3, absl::CancelledError("by the client"), false, &partial, &failed);
  EXPECT_THAT(Decode(failed, job, {}), IsOk());
}

TEST(Reports, FailuresKeepTheirReasonAndWhatWasMeasured) {
  const Outcome partial = SomeOutcome();
  worker::v1::Failed failed;
  EncodeFailed(42, 3, WithReason(absl::DeadlineExceededError("too long"), "KERNEL_TIME_LIMIT"),
               false, &partial, &failed);

  ASSERT_OK_AND_ASSIGN(const WorkerFailure failure, Decode(failed, SquareJob(), {}));

  EXPECT_THAT(failure.status, StatusIs(absl::StatusCode::kDeadlineExceeded, "too long"));
  EXPECT_THAT(failure.status, ReasonIs("KERNEL_TIME_LIMIT"));
  EXPECT_EQ(failure.partial->timing->statistics.median, 5);
}

TEST(Reports, AFailureHasACode) {
  worker::v1::Failed failed;
  EXPECT_THAT(Decode(failed, SquareJob(), {}), StatusIs(kInvalid, HasSubstr("code 0")));
  failed.set_code(17);
  EXPECT_THAT(Decode(failed, SquareJob(), {}), StatusIs(kInvalid, HasSubstr("code 17")));
}

TEST(SampleBuffer, PutsFramesTogether) {
  Job job = SquareJob();
  job.measure.emplace().max_samples = 4;
  SampleBuffer buffer;
  worker::v1::ToServer frame;
  EncodeSamples(42, 0, std::vector<double>{1, 2}, false, &frame);
  ASSERT_THAT(buffer.Add(frame.samples(), job), IsOk());
  EncodeSamples(42, 0, std::vector<double>{9, 9, 9}, true, &frame);
  EXPECT_THAT(buffer.Add(frame.samples(), job), StatusIs(kInvalid, HasSubstr("nobody asked")));
  job.streamed = true;
  ASSERT_THAT(buffer.Add(frame.samples(), job), IsOk());
  EncodeSamples(42, 2, std::vector<double>{3}, false, &frame);
  ASSERT_THAT(buffer.Add(frame.samples(), job), IsOk());

  EXPECT_THAT(buffer.Add(frame.samples(), job),
              StatusIs(kInvalid, HasSubstr("begin at 2; want 3")));
  EncodeSamples(42, 3, std::vector<double>{4, 5}, false, &frame);
  EXPECT_THAT(buffer.Add(frame.samples(), job), StatusIs(kInvalid, HasSubstr("the 4 samples")));
  EncodeSamples(42, 3, std::vector<double>{-1}, false, &frame);
  EXPECT_THAT(buffer.Add(frame.samples(), job), StatusIs(kInvalid, HasSubstr("not a time")));

  EXPECT_THAT(buffer.Take(), ElementsAre(1, 2, 3));
}

TEST(SampleBuffer, WhereNobodySaysHowManyAGpuMayHaveTenTimesAsMany) {
  for (const auto& [host_memory, most] : {std::pair{true, 1000}, {false, 10'000}}) {
    Job job = SquareJob();
    job.measure.emplace();
    job.host_memory = host_memory;
    worker::v1::ToServer frame;
    SampleBuffer buffer, more;
    EncodeSamples(42, 0, std::vector<double>(static_cast<std::size_t>(most), 1), false, &frame);
    EXPECT_THAT(buffer.Add(frame.samples(), job), IsOk());
    EncodeSamples(42, 0, std::vector<double>(static_cast<std::size_t>(most) + 1, 1), false, &frame);
    EXPECT_THAT(more.Add(frame.samples(), job), StatusIs(kInvalid, HasSubstr("samples")));
  }
}

}  // namespace
}  // namespace gridclock
