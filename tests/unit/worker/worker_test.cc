#include <algorithm>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <xxhash.h>

#include "tests/support/status_matchers.h"
#include "tests/unit/worker/worker_process.h"

namespace gridclock {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr std::uint64_t kOut = 1 << 20;  // Where outputs lie; inputs lie at 0.

OperandValue Vector(std::int64_t n) {
  return {.is_list = false, .tensors = {{.dtype = DType::kF32, .shape = {n}}}};
}

Job Square(JobId id, std::int64_t n) {
  Job job;
  job.id = id;
  job.kernel = "square";
  job.variant = "simd";
  job.device = "cpu";
  const std::uint64_t bytes = OperandBytes(Vector(n));
  JobInput& x = job.inputs.emplace_back();
  x.value = Vector(n);
  x.memory = {.offset = 0, .size = bytes};
  JobOutput& y = job.outputs.emplace_back();
  y.name = "y";
  y.value = Vector(n);
  y.memory = {.offset = kOut, .size = bytes};
  job.arrived = absl::FromUnixNanos(1);
  job.deadline = absl::InfiniteFuture();
  job.kernel_time_limit = absl::Seconds(30);
  return job;
}

Job InPlace(Job job) {
  job.outputs[0].memory = job.inputs[0].memory;
  job.outputs[0].in_place_of = 0;
  return job;
}

Job Fault(JobId id, const std::string& kind) {
  Job job = Square(id, 0);
  job.kernel = "fault";
  job.inputs.clear();
  job.outputs.clear();
  job.attributes = {kind};
  return job;
}

Job Spin(JobId id, std::int64_t ns) {
  Job job = Fault(id, "");
  job.kernel = "spin";
  job.attributes = {ns};
  return job;
}

// With the name of a variant that the worker has.
Job Fitted(Job job, const WorkerHello& hello) {
  for (const KernelSpec& spec : hello.kernels) {
    if (spec.name == job.kernel) job.variant = spec.variants.front().name;
  }
  return job;
}

TEST(Worker, SaysWhatItIs) {
  WorkerProcess worker;

  const WorkerHello hello = worker.Hello();

  EXPECT_EQ(hello.protocol, 1u);
  EXPECT_EQ(hello.role, WorkerRole::kTrusted);
  EXPECT_EQ(hello.device.name, "cpu");
  EXPECT_EQ(hello.device.level, "x86-64-v2");
  EXPECT_EQ(hello.device.units, 2);
  std::vector<std::string> names;
  for (const KernelSpec& spec : hello.kernels) names.push_back(spec.name);
  EXPECT_THAT(names, Contains("square"));
  EXPECT_THAT(names, Contains("fault"));
}

TEST(Worker, SquaresInTheArena) {
  WorkerProcess worker;
  worker.Hello();
  const Job job = Square(7, 3);
  std::copy_n(std::vector<float>{1, 2, -3}.data(), 3, worker.At<float>(0));

  worker.Order(job);
  const worker::v1::ToServer reply = worker.Next();

  ASSERT_TRUE(reply.has_done()) << reply.DebugString();
  EXPECT_EQ(reply.done().id(), 7u);
  EXPECT_EQ(reply.done().generation(), 1u);
  ASSERT_OK_AND_ASSIGN(const Outcome outcome, Decode(reply.done(), job, {}));
  EXPECT_THAT(std::vector<float>(worker.At<float>(kOut), worker.At<float>(kOut) + 3),
              ElementsAre(1, 4, 9));
  EXPECT_EQ(outcome.timing->stop, StopReason::kSingleLaunch);
  EXPECT_THAT(outcome.timing->samples_ns, SizeIs(1));
  ASSERT_THAT(outcome.launches, SizeIs(1));
  EXPECT_EQ(outcome.launches[0].name, "square/simd");
  EXPECT_EQ(outcome.launches[0].count, 1);
  EXPECT_EQ(outcome.peak_device_bytes, 128u);
}

TEST(Worker, RunsABatchInOrder) {
  WorkerProcess worker;
  worker.Hello();

  for (JobId id = 1; id <= 40; ++id) worker.Order(Square(id, 16));

  for (JobId id = 1; id <= 40; ++id) EXPECT_EQ(worker.Next().done().id(), id);
}

TEST(Worker, WorksInPlaceOnce) {
  WorkerProcess worker;
  worker.Hello();
  worker.At<float>(0)[0] = 3;

  worker.Order(InPlace(Square(1, 1)));

  EXPECT_TRUE(worker.Next().has_done());
  EXPECT_EQ(worker.At<float>(0)[0], 9);
}

TEST(Worker, MeasuresInPlaceOnTheSubmittedValues) {
  WorkerProcess worker;
  worker.Hello();
  Job job = InPlace(Square(1, 1));
  job.measure =
      MeasureOptions{.max_samples = 20, .warmup_limit = absl::Milliseconds(1), .schedule = {}};
  job.verify = true;
  worker.At<float>(0)[0] = 3;

  worker.Order(job);
  SampleBuffer samples;
  worker::v1::ToServer frame = worker.Next();
  for (; frame.has_samples(); frame = worker.Next()) {
    ASSERT_THAT(samples.Add(frame.samples(), job), IsOk());
  }

  ASSERT_TRUE(frame.has_done()) << frame.DebugString();
  ASSERT_OK_AND_ASSIGN(const Outcome outcome, Decode(frame.done(), job, samples.Take()));
  EXPECT_EQ(worker.At<float>(0)[0], 9);
  EXPECT_EQ(outcome.verification->mismatches, 0);
  EXPECT_EQ(outcome.verification->checked, 1);
}

TEST(Worker, SamplesGoAheadOfTheEnd) {
  WorkerProcess worker;
  worker.Hello();
  Job job = Square(1, 1024);
  job.measure = MeasureOptions{.schedule = Schedule{.wait = 0, .warmup = 1, .active = 9000}};
  job.streamed = true;

  worker.Order(job);
  SampleBuffer samples;
  int frames = 0;
  worker::v1::ToServer frame = worker.Next();
  for (; frame.has_samples(); frame = worker.Next(), ++frames) {
    ASSERT_THAT(samples.Add(frame.samples(), job), IsOk());
  }

  EXPECT_GE(frames, 3);
  ASSERT_TRUE(frame.has_done()) << frame.DebugString();
  EXPECT_EQ(frame.done().timing().samples_ns_size(), 0);
  ASSERT_OK_AND_ASSIGN(const Outcome outcome, Decode(frame.done(), job, samples.Take()));
  EXPECT_THAT(outcome.timing->samples_ns, SizeIs(9000));
  EXPECT_EQ(outcome.timing->stop, StopReason::kSchedule);
}

// What is done around a launch is not in its time: the check, the emptying of caches.
TEST(Worker, SamplesAreOfTheKernelAlone) {
  WorkerProcess worker;
  Job job = Fitted(Spin(5, 2'000'000), worker.Hello());
  job.measure = MeasureOptions{.l2 = L2State::kColdDirty,
                               .schedule = Schedule{.wait = 0, .warmup = 1, .active = 20}};
  worker.Order(job);
  SampleBuffer samples;
  worker::v1::ToServer frame = worker.Next();
  for (; frame.has_samples(); frame = worker.Next()) {
    ASSERT_THAT(samples.Add(frame.samples(), job), IsOk());
  }
  const std::vector<double> taken = samples.Take();
  ASSERT_THAT(taken, SizeIs(20));
  EXPECT_GE(*std::min_element(taken.begin(), taken.end()), 2e6);
  EXPECT_LT(*std::min_element(taken.begin(), taken.end()), 2.5e6);
}

TEST(Worker, CancelInTheMiddleKeepsTheSamplesSoFar) {
  WorkerProcess worker;
  const WorkerHello hello = worker.Hello();
  Job job = Fitted(Spin(5, 2'000'000), hello);
  job.measure = MeasureOptions{.max_samples = 100'000,
                               .relative_interval = 1e-6,
                               .budget = absl::Seconds(60),
                               .warmup_limit = absl::Milliseconds(10),
                               .schedule = {}};

  worker.Order(job);
  SampleBuffer samples;
  worker::v1::ToServer frame = worker.Next();
  ASSERT_TRUE(frame.has_samples()) << frame.DebugString();
  worker::v1::FromServer cancel;
  cancel.mutable_cancel()->set_id(5);
  worker.Send(cancel);
  for (; frame.has_samples(); frame = worker.Next()) {
    ASSERT_THAT(samples.Add(frame.samples(), job), IsOk());
  }

  ASSERT_TRUE(frame.has_failed()) << frame.DebugString();
  ASSERT_OK_AND_ASSIGN(const WorkerFailure failure, Decode(frame.failed(), job, samples.Take()));
  EXPECT_THAT(failure.status, StatusIs(absl::StatusCode::kCancelled, HasSubstr("cancelled")));
  ASSERT_TRUE(failure.partial.has_value());
  EXPECT_THAT(failure.partial->timing->samples_ns, Each(Ge(2e6)));
  EXPECT_THAT(failure.partial->flags, Contains(Flag::kInterrupted));
}

TEST(Worker, AMeasurementThatIsToMakeRoomIsWholeAsFarAsItGot) {
  WorkerProcess worker;
  const WorkerHello hello = worker.Hello();
  const MeasureOptions endless = {.max_samples = 100'000,
                                  .relative_interval = 1e-6,
                                  .budget = absl::Seconds(60),
                                  .warmup_limit = absl::Milliseconds(10),
                                  .schedule = {}};
  for (const JobId id : {5, 6}) {
    Job job = Fitted(Spin(id, 2'000'000), hello);
    job.measure = endless;
    worker.Order(job);
    SampleBuffer samples;
    worker::v1::ToServer frame = worker.Next();
    worker::v1::FromServer yield;
    yield.mutable_yield()->set_id(9);  // Of no order: nothing ends.
    worker.Send(yield);
    ASSERT_THAT(samples.Add(frame.samples(), job), IsOk());
    frame = worker.Next();
    ASSERT_TRUE(frame.has_samples()) << frame.DebugString();
    yield.mutable_yield()->set_id(id);
    worker.Send(yield);
    for (; frame.has_samples(); frame = worker.Next()) {
      ASSERT_THAT(samples.Add(frame.samples(), job), IsOk());
    }
    ASSERT_TRUE(frame.has_done()) << frame.DebugString();
    ASSERT_OK_AND_ASSIGN(const Outcome outcome, Decode(frame.done(), job, samples.Take()));
    EXPECT_EQ(outcome.timing->stop, StopReason::kYielded);
    EXPECT_THAT(outcome.timing->samples_ns, Each(Ge(2e6)));
    EXPECT_THAT(outcome.flags, testing::Not(Contains(Flag::kInterrupted)));
  }
}

TEST(Worker, ALaunchThatTookLongerThanItsLimitFails) {
  WorkerProcess worker;
  Job job = Fitted(Spin(5, 20'000'000), worker.Hello());
  job.kernel_time_limit = absl::Milliseconds(5);
  worker.Order(job);
  const worker::v1::ToServer frame = worker.Next();
  ASSERT_TRUE(frame.has_failed()) << frame.DebugString();
  ASSERT_OK_AND_ASSIGN(const WorkerFailure failure, Decode(frame.failed(), job, {}));
  EXPECT_THAT(failure.status,
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("the limit is 5ms")));
  EXPECT_EQ(DetailsOf(failure.status).reason, "KERNEL_TIME_LIMIT");
}

TEST(Worker, CancelOfAWaitingOrder) {
  WorkerProcess worker;
  const WorkerHello hello = worker.Hello();
  worker.Hold();  // Else it may have run both before it hears of the cancel.
  worker.Order(Fitted(Spin(1, 1000), hello));
  worker.Order(Square(2, 4));
  worker::v1::FromServer cancel;
  cancel.mutable_cancel()->set_id(2);
  worker.Send(cancel);
  worker.LetGo();

  EXPECT_EQ(worker.Next().done().id(), 1u);
  const worker::v1::ToServer frame = worker.Next();
  EXPECT_EQ(frame.failed().id(), 2u);
  EXPECT_EQ(frame.failed().code(), 1);
}

TEST(Worker, DropsAStaleOrder) {
  WorkerProcess worker;
  worker.Hello();

  worker.Order(Square(1, 4), /*generation=*/3);
  worker.Order(Square(2, 4), /*generation=*/2);
  worker.Order(Square(3, 4), /*generation=*/3);

  EXPECT_EQ(worker.Next().done().id(), 1u);
  EXPECT_EQ(worker.Next().done().id(), 3u);
}

TEST(Worker, LivesOnAfterFramesThatAreNoOrders) {
  WorkerProcess worker;
  worker.Hello();
  Job outside = Square(1, 4);
  outside.outputs[0].memory.offset = WorkerProcess::kArenaBytes;
  Job unknown = Square(2, 4);
  unknown.kernel = "no_such_kernel";

  worker.SendBytes("\xff\xff\xff garbage");
  worker.SendBytes(std::string(70 * 1024, 'x'));
  worker.Order(outside);
  worker.Order(unknown);
  worker.Order(Square(3, 4));

  worker::v1::ToServer frame = worker.Next();
  EXPECT_EQ(frame.failed().id(), 1u);
  EXPECT_THAT(frame.failed().message(), HasSubstr("outside the arena"));
  frame = worker.Next();
  EXPECT_EQ(frame.failed().id(), 2u);
  EXPECT_EQ(frame.failed().code(), static_cast<int>(absl::StatusCode::kNotFound));
  EXPECT_EQ(worker.Next().done().id(), 3u);
}

TEST(Worker, TakesALongMessageFromTheArena) {
  WorkerProcess worker;
  worker.Hello();
  worker::v1::FromServer order;
  Encode(Square(1, 4), 1, order.mutable_order());
  const std::string bytes = order.SerializeAsString();
  std::copy(bytes.begin(), bytes.end(), worker.At<char>(2 << 20));

  worker::v1::FromServer where;
  where.mutable_long_message()->set_offset(2 << 20);
  where.mutable_long_message()->set_size(bytes.size());
  worker.Send(where);

  EXPECT_EQ(worker.Next().done().id(), 1u);
}

TEST(Worker, GeneratesVerifiesAndSumsUp) {
  WorkerProcess worker;
  worker.Hello();
  Job job = Square(1, 100'000);
  job.inputs[0].source = SourceKind::kGenerate;
  job.inputs[0].generator = {.kind = GeneratorKind::kRandn, .seed = 42};
  job.outputs[0].sink = SinkKind::kChecksum;
  job.verify = true;

  worker.Order(job);
  const worker::v1::ToServer frame = worker.Next();

  ASSERT_TRUE(frame.has_done()) << frame.DebugString();
  ASSERT_OK_AND_ASSIGN(const Outcome outcome, Decode(frame.done(), job, {}));
  EXPECT_EQ(outcome.verification->checked, 100'000);
  EXPECT_EQ(outcome.verification->total, 100'000);
  EXPECT_EQ(outcome.verification->mismatches, 0) << outcome.verification->first_mismatch;
  EXPECT_EQ(outcome.outputs[0].checksum, XXH3_64bits(worker.At<char>(kOut), 400'000));
  EXPECT_NE(worker.At<float>(0)[0], worker.At<float>(0)[1]);
}

TEST(Worker, SaysUnverifiedWhereThereIsNoReference) {
  WorkerProcess worker;
  const WorkerHello hello = worker.Hello();
  Job job = Fitted(Spin(1, 1000), hello);
  job.verify = true;

  worker.Order(job);
  const worker::v1::ToServer frame = worker.Next();

  ASSERT_OK_AND_ASSIGN(const Outcome outcome, Decode(frame.done(), job, {}));
  EXPECT_THAT(outcome.flags, Contains(Flag::kUnverified));
  EXPECT_FALSE(outcome.verification.has_value());
}

TEST(Worker, TheKernelTimeLimitEndsAMeasurement) {
  WorkerProcess worker;
  const WorkerHello hello = worker.Hello();
  Job job = Fitted(Spin(1, 1'000'000), hello);
  job.measure = MeasureOptions{.max_samples = 100'000, .relative_interval = 1e-6, .schedule = {}};
  job.kernel_time_limit = absl::Milliseconds(50);

  worker.Order(job);
  worker::v1::ToServer frame = worker.Next();
  while (frame.has_samples()) frame = worker.Next();

  EXPECT_EQ(frame.failed().reason(), "KERNEL_TIME_LIMIT");
  EXPECT_TRUE(frame.failed().has_partial());
}

TEST(Worker, MarksWhatItRuns) {
  WorkerProcess worker;
  const WorkerHello hello = worker.Hello();
  EXPECT_EQ(worker.page().running, 0u);
  EXPECT_EQ(worker.page().kernel_since_ns, 0);

  worker.Order(Fitted(Spin(8, 1000), hello));
  EXPECT_TRUE(worker.Next().has_done());
  EXPECT_EQ(worker.page().kernel_since_ns, 0);

  worker.Order(Fitted(Fault(9, "segfault"), hello));
  EXPECT_EQ(worker.Bytes(), std::nullopt);

  EXPECT_EQ(worker.page().running, 9u);
  EXPECT_GT(worker.page().since_ns, 0);
  EXPECT_GE(worker.page().kernel_since_ns, worker.page().since_ns);
  EXPECT_TRUE(WIFSIGNALED(worker.Wait()));
}

TEST(Worker, EndsWithItsServer) {
  WorkerProcess worker;
  worker.Hello();

  worker.CloseSocket();

  EXPECT_EQ(worker.Wait(), 0);
}

TEST(Worker, EndsWithItsServerAlsoWhileAKernelNeverReturns) {
  WorkerProcess worker;
  const WorkerHello hello = worker.Hello();
  worker.Order(Fitted(Fault(1, "endless"), hello));
  worker.AwaitLaunch();

  worker.CloseSocket();

  EXPECT_EQ(worker.Wait(), 0);
}

TEST(Worker, ShutdownEndsIt) {
  WorkerProcess worker;
  worker.Hello();
  worker::v1::FromServer shutdown;
  shutdown.mutable_shutdown();

  worker.Send(shutdown);

  EXPECT_EQ(worker.Wait(), 0);
}

TEST(WorkerFault, DiesBeforeHello) {
  WorkerProcess worker("die_before_hello:1:1");

  EXPECT_EQ(worker.Bytes(), std::nullopt);
  const int status = worker.Wait();
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 3);
}

TEST(WorkerFault, TruncatedFrame) {
  WorkerProcess worker("truncated_frame:1:1");
  worker.Hello();

  worker.Order(Square(1, 4));

  const auto bytes = worker.Bytes();
  ASSERT_TRUE(bytes.has_value());
  worker::v1::ToServer message;
  EXPECT_FALSE(message.ParseFromString(*bytes) && message.has_done() &&
               message.done().checksums_size() == 1);
}

TEST(WorkerFault, OversizedFrame) {
  WorkerProcess worker("oversized_frame:1:1");
  worker.Hello();

  worker.Order(Square(1, 4));

  EXPECT_EQ(worker.Bytes()->size(), 80u * 1024);
}

TEST(WorkerFault, UnknownIdAndDuplicate) {
  WorkerProcess worker("unknown_id:1:1,duplicate_done:1:1");
  worker.Hello();

  worker.Order(Square(1, 4));

  std::vector<std::uint64_t> ids(3);
  for (std::uint64_t& id : ids) id = worker.Next().done().id();
  EXPECT_THAT(ids, ElementsAre(1u, 1'000'001u, 1u));
}

TEST(WorkerFault, MoreOutputsThanOrdered) {
  WorkerProcess worker("output_too_large:1:1");
  worker.Hello();
  const Job job = Square(1, 4);

  worker.Order(job);

  EXPECT_THAT(
      Decode(worker.Next().done(), job, {}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("2 outputs reported, 1 ordered")));
}

TEST(WorkerFault, ExitsWithZero) {
  WorkerProcess worker("exit_zero:1:1");
  worker.Hello();

  worker.Order(Square(1, 4));

  EXPECT_EQ(worker.Bytes(), std::nullopt);
  EXPECT_EQ(worker.Wait(), 0);
}

TEST(WorkerFault, ClosesTheSocketAndLives) {
  WorkerProcess worker("close_socket:1:1");
  worker.Hello();

  worker.Order(Square(1, 4));

  EXPECT_EQ(worker.Bytes(), std::nullopt);
  EXPECT_EQ(kill(worker.pid(), 0), 0);
}

}  // namespace
}  // namespace gridclock
