#include "server/core/admission.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Code = absl::StatusCode;

KernelSpec Spec(const std::string& words, const std::string& device_kind = "cpu") {
  KernelSpec spec = *ParseKernelSpec(words);
  VariantSpec variant;
  variant.name = "simd";
  variant.device_kind = device_kind;
  spec.variants.push_back(variant);
  return spec;
}

constexpr char kSquare[] = "square x: T[*] -> y: T[*] over x where T in {f32, f16}";
constexpr char kMatmul[] =
    "matmul a: T[*, M, K], b: T[*, K, N] -> c: T[*, M, N] flops 2*numel(c)*K";
constexpr char kUpdate[] = "update inout p: f32[*], g: f32[*]; lr: f64 = 1e-3 in [0, inf)";
constexpr char kEmpty[] = "empty";

class AdmissionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    limits_.arena_bytes = 1 << 20;
    limits_.client_arena_bytes = 1 << 19;
    limits_.inline_bytes = 4096;
    Learn("cpu", "cpu");
    Learn("cpu2", "cpu2");
  }
  void Learn(const std::string& device, const std::string& kind) {
    DeviceInfo info;
    info.name = device;
    info.traits.kind = kind;
    const std::vector<KernelSpec> kernels = {Spec(kSquare, kind), Spec(kMatmul, kind),
                                             Spec(kUpdate, kind), Spec(kEmpty, kind)};
    ASSERT_THAT(table_.Learn(info, kernels), IsOk());
  }
  static InputRequest Inline(const std::string& name, const TensorSpec& tensor,
                             std::uint64_t bytes) {
    InputRequest input;
    input.operand = {name, {.is_list = false, .tensors = {tensor}}};
    input.inline_bytes = bytes;
    return input;
  }
  static JobRequest Square(const Shape& shape = {4}, std::uint64_t bytes = 16) {
    JobRequest request;
    request.kernel = "square";
    request.device = "cpu";
    request.inputs = {Inline("x", {DType::kF32, shape}, bytes)};
    return request;
  }
  static JobRequest Streamed(const Shape& shape) {
    JobRequest request = Square(shape, 0);
    request.inputs[0].source = SourceKind::kStream;
    request.streamed = true;
    return request;
  }
  absl::StatusOr<Job> Try(const JobRequest& request) {
    return Admit(request, table_, limits_,
                 [this](absl::string_view device) { return depth_[std::string(device)]; });
  }

  KernelTable table_{{"cpu", "cpu2"}};
  Limits limits_;
  std::map<std::string, int> depth_;
};

TEST_F(AdmissionTest, MakesAJobOfAGoodRequest) {
  JobRequest request = Square();
  request.principal = "ann";
  ASSERT_OK_AND_ASSIGN(const Job job, Try(request));
  EXPECT_EQ(job.kernel, "square");
  EXPECT_EQ(job.variant, "simd");
  EXPECT_FALSE(job.variant_named);
  EXPECT_EQ(job.device, "cpu");
  EXPECT_EQ(job.principal, "ann");
  ASSERT_EQ(job.inputs.size(), 1u);
  EXPECT_EQ(job.inputs[0].memory, (MemoryRange{0, 64}));
  ASSERT_EQ(job.outputs.size(), 1u);
  EXPECT_EQ(job.outputs[0].name, "y");
  EXPECT_EQ(job.outputs[0].sink, SinkKind::kInline);
  EXPECT_EQ(job.outputs[0].memory, (MemoryRange{64, 64}));
  EXPECT_EQ(job.memory.size, 128u);
  EXPECT_EQ(job.kernel_time_limit, absl::Seconds(30));
  EXPECT_EQ(job.bytes, 32);
}

// ---- Shapes and sizes. ----

TEST_F(AdmissionTest, A1_A2_AnElementCountThatOverflowsIsRefused) {
  const std::int64_t big = std::int64_t{1} << 32;
  const auto elements = Try(Square({big, big}, 0));
  EXPECT_THAT(elements, StatusIs(Code::kInvalidArgument,
                                 HasSubstr("inputs[0].spec.dims: element count overflows")));
  EXPECT_EQ(DetailsOf(elements.status()).field, "inputs[0].spec.dims");
  EXPECT_THAT(Try(Square({std::int64_t{1} << 62}, 0)),
              StatusIs(Code::kInvalidArgument, HasSubstr("f32[4611686018427387904]")));
}

TEST_F(AdmissionTest, A3_ANegativeDimensionIsRefused) {
  EXPECT_THAT(Try(Square({4, -1}, 0)),
              StatusIs(Code::kInvalidArgument, HasSubstr("dimension 1 is -1")));
}

TEST_F(AdmissionTest, A4_A5_NoElementsAndScalarsAreLegal) {
  EXPECT_THAT(Try(Square({0}, 0)), IsOk());
  EXPECT_THAT(Try(Square({}, 4)), IsOk());
}

TEST_F(AdmissionTest, A6_ARankOverEightIsRefused) {
  EXPECT_THAT(Try(Square({1, 1, 1, 1, 1, 1, 1, 1, 1}, 4)),
              StatusIs(Code::kInvalidArgument, HasSubstr("rank 9 is over the maximum of 8")));
}

TEST_F(AdmissionTest, A7_A8_BytesMustFitTheShape) {
  EXPECT_THAT(Try(Square({4}, 15)),
              StatusIs(Code::kInvalidArgument, HasSubstr("expected 16 bytes, got 15")));
  EXPECT_THAT(Try(Square({4}, 17)),
              StatusIs(Code::kInvalidArgument, HasSubstr("inputs[0].data: expected 16 bytes")));
}

TEST_F(AdmissionTest, A10_A11_A12_WhatTheWordsDoNotTakeIsRefused) {
  JobRequest request = Square({4}, 32);
  request.inputs[0].operand.value.tensors[0].dtype = DType::kF64;
  EXPECT_THAT(Try(request), StatusIs(Code::kInvalidArgument, HasSubstr("f64")));
  request = Square();
  request.inputs[0].operand.name = "z";
  EXPECT_THAT(Try(request), StatusIs(Code::kInvalidArgument, HasSubstr("kernel 'square'")));
  request.kernel = "matmul";
  request.inputs = {Inline("a", {DType::kF32, {2, 3}}, 24), Inline("b", {DType::kF32, {5, 2}}, 40)};
  EXPECT_THAT(Try(request), StatusIs(Code::kInvalidArgument, HasSubstr("K")));
}

TEST_F(AdmissionTest, A13_AnOutputLargerThanTheArenaIsRefusedWithItsSize) {
  JobRequest request;
  request.kernel = "matmul";
  request.device = "cpu";
  request.inputs = {Inline("a", {DType::kF32, {512, 1}}, 2048),
                    Inline("b", {DType::kF32, {1, 512}}, 2048)};
  const auto job = Try(request);
  EXPECT_THAT(job, StatusIs(Code::kResourceExhausted, HasSubstr("1052672 bytes")));
  EXPECT_THAT(job, ReasonIs("TOO_LARGE"));
  // 2^40 x 2^40 results: more than any number of bytes.
  const std::int64_t tall = std::int64_t{1} << 40;
  request.inputs[0] = Inline("a", {DType::kF32, {tall, 0}}, 0);
  request.inputs[1] = Inline("b", {DType::kF32, {0, tall}}, 0);
  EXPECT_THAT(Try(request), Not(IsOk()));
}

TEST_F(AdmissionTest, OneClientsShareOfTheArenaIsABoundToo) {
  EXPECT_THAT(Try(Streamed({80'000})),
              StatusIs(Code::kResourceExhausted, HasSubstr("client_arena_bytes")));
}

TEST_F(AdmissionTest, A15_A16_AttributesAndMeasureOptionsAreHeldToTheirBounds) {
  JobRequest request;
  request.kernel = "update";
  request.device = "cpu";
  request.inputs = {Inline("p", {DType::kF32, {4}}, 16), Inline("g", {DType::kF32, {4}}, 16)};
  request.attributes = {{"lr", -1.0}};
  EXPECT_THAT(Try(request), StatusIs(Code::kInvalidArgument, HasSubstr("lr")));
  request = Square();
  request.measure.emplace().max_samples = 2'000'000;
  EXPECT_THAT(Try(request), StatusIs(Code::kInvalidArgument, HasSubstr("max_samples")));
}

// ---- Names and devices. ----

TEST_F(AdmissionTest, B7_B8_NamesAreNames) {
  for (const std::string& name :
       {std::string("../../etc/passwd"), std::string("a\nb"), std::string("a\0b", 3),
        std::string("\x1b[31m"), std::string("."), std::string(), std::string(129, 'a')}) {
    JobRequest request = Square();
    request.kernel = name;
    const auto job = Try(request);
    EXPECT_THAT(job, StatusIs(Code::kInvalidArgument, HasSubstr("want a name")));
    EXPECT_LT(job.status().message().size(), 500u);
    EXPECT_EQ(job.status().message().find('\n'), absl::string_view::npos);
    request = Square();
    request.inputs[0].operand.name = name;
    EXPECT_THAT(Try(request), StatusIs(Code::kInvalidArgument, HasSubstr("inputs[0].name")));
  }
}

TEST_F(AdmissionTest, RequestIdsArePrintable) {
  JobRequest request = Square();
  request.request_id = "0b3f/retry-1";
  EXPECT_THAT(Try(request), IsOk());
  request.request_id = "two words";
  EXPECT_THAT(Try(request), StatusIs(Code::kInvalidArgument, HasSubstr("request_id")));
}

TEST_F(AdmissionTest, C1_AnUnknownKernelGetsItsNearestNames) {
  JobRequest request = Square();
  request.kernel = "sqare";
  EXPECT_THAT(Try(request), StatusIs(Code::kNotFound, HasSubstr("'square'")));
}

TEST_F(AdmissionTest, C8_AnUnknownDeviceGetsTheList) {
  JobRequest request = Square();
  request.device = "cuda:99";
  EXPECT_THAT(Try(request), StatusIs(Code::kNotFound, HasSubstr("'cpu', 'cpu2'")));
  request.device = "cuda";
  EXPECT_THAT(Try(request), StatusIs(Code::kFailedPrecondition, HasSubstr("'cpu', 'cpu2'")));
  EXPECT_THAT(Try(request), ReasonIs("NO_DEVICE"));
  request.device = "cuda:/dev";
  EXPECT_THAT(Try(request), StatusIs(Code::kInvalidArgument, HasSubstr("device")));
}

TEST_F(AdmissionTest, AnyDeviceMeansTheLeastLoadedOneThatIsNotQuarantined) {
  JobRequest request = Square();
  request.device = "";
  depth_ = {{"cpu", 3}, {"cpu2", 1}};
  EXPECT_EQ(Try(request)->device, "cpu2");
  table_.SetState("cpu2", WorkerState::kQuarantined);
  EXPECT_EQ(Try(request)->device, "cpu");
}

TEST_F(AdmissionTest, AJobSaysThatItsClientNamedTheVariant) {
  JobRequest request = Square();
  request.variant = "simd";
  EXPECT_TRUE(Try(request)->variant_named);
}

TEST_F(AdmissionTest, AnUnknownVariantIsNotFound) {
  JobRequest request = Square();
  request.variant = "vec4";
  EXPECT_THAT(Try(request), StatusIs(Code::kNotFound, HasSubstr("vec4")));
}

TEST_F(AdmissionTest, ACpuHasNoMethodsOfAGpu) {
  JobRequest request = Square();
  request.measure.emplace().method = Method::kDeviceTime;
  EXPECT_THAT(Try(request), StatusIs(Code::kInvalidArgument, HasSubstr("GPU")));
}

// ---- Sources, sinks, in place. ----

TEST_F(AdmissionTest, OnlyStreamRunHasStreams) {
  JobRequest request = Streamed({4});
  ASSERT_OK_AND_ASSIGN(const Job job, Try(request));
  EXPECT_EQ(job.outputs[0].sink, SinkKind::kStream);
  request.streamed = false;
  EXPECT_THAT(Try(request), StatusIs(Code::kInvalidArgument, HasSubstr("StreamRun")));
  request = Square();
  request.outputs = {{"y", SinkKind::kStream}};
  EXPECT_THAT(Try(request), StatusIs(Code::kInvalidArgument, HasSubstr("StreamRun")));
}

TEST_F(AdmissionTest, TensorsOverTheInlineLimitGoByStreamRun) {
  EXPECT_THAT(Try(Square({1025}, 4100)), StatusIs(Code::kInvalidArgument, HasSubstr("StreamRun")));
  JobRequest request = Square({1025}, 0);
  request.inputs[0].source = SourceKind::kGenerate;
  EXPECT_THAT(Try(request), StatusIs(Code::kInvalidArgument, HasSubstr("get them by StreamRun")));
  request.outputs = {{"y", SinkKind::kChecksum}};
  EXPECT_THAT(Try(request), IsOk());
}

TEST_F(AdmissionTest, SinksNameOutputsOnce) {
  JobRequest request = Square();
  request.outputs = {{"z", SinkKind::kDiscard}};
  EXPECT_THAT(Try(request), StatusIs(Code::kInvalidArgument, HasSubstr("outputs ['y']")));
  request.outputs = {{"y", SinkKind::kDiscard}, {"y", SinkKind::kInline}};
  EXPECT_THAT(Try(request), StatusIs(Code::kInvalidArgument, HasSubstr("outputs[1].name")));
  request.outputs = {{"y", SinkKind::kDiscard}};
  EXPECT_EQ(Try(request)->outputs[0].sink, SinkKind::kDiscard);
}

TEST_F(AdmissionTest, A22_InPlaceOnlyWhereTheWordsAllowIt) {
  JobRequest request = Square();
  request.in_place = {"y"};
  ASSERT_OK_AND_ASSIGN(const Job job, Try(request));
  EXPECT_EQ(job.outputs[0].in_place_of, 0);
  EXPECT_EQ(job.outputs[0].memory, job.inputs[0].memory);
  EXPECT_EQ(job.memory.size, 64u);
  request.in_place = {"y", "y"};
  EXPECT_THAT(Try(request), StatusIs(Code::kInvalidArgument, HasSubstr("in_place[1]")));
  request.in_place = {"x"};
  EXPECT_THAT(Try(request), StatusIs(Code::kInvalidArgument, HasSubstr("in_place[0]")));
}

TEST_F(AdmissionTest, AnInoutInputIsAnOutputInItsOwnPlace) {
  JobRequest request;
  request.kernel = "update";
  request.device = "cpu";
  request.inputs = {Inline("g", {DType::kF32, {4}}, 16), Inline("p", {DType::kF32, {4}}, 16)};
  ASSERT_OK_AND_ASSIGN(const Job job, Try(request));
  ASSERT_EQ(job.outputs.size(), 1u);
  EXPECT_EQ(job.outputs[0].name, "p");
  EXPECT_EQ(job.outputs[0].in_place_of, 0);
  EXPECT_EQ(job.outputs[0].memory, job.inputs[0].memory);
}

TEST_F(AdmissionTest, VerifyNeedsOutputs) {
  JobRequest request = Square();
  request.verify = true;
  EXPECT_THAT(Try(request), IsOk());
  request.kernel = "empty";
  request.inputs.clear();
  EXPECT_THAT(Try(request), StatusIs(Code::kInvalidArgument, HasSubstr("no outputs")));
}

TEST_F(AdmissionTest, KernelTimeHasBounds) {
  JobRequest request = Square();
  request.kernel_time_limit = absl::Seconds(601);
  EXPECT_THAT(Try(request), StatusIs(Code::kInvalidArgument, HasSubstr("at most 600")));
  request.kernel_time_limit = absl::Seconds(600) + absl::Nanoseconds(100);
  EXPECT_THAT(Try(request), StatusIs(Code::kInvalidArgument, HasSubstr("got 600.0000001")));
  request.kernel_time_limit = absl::Seconds(-1);
  EXPECT_THAT(Try(request), Not(IsOk()));
  request.kernel_time_limit = absl::Seconds(600);
  EXPECT_EQ(Try(request)->kernel_time_limit, absl::Seconds(600));
  request.kernel_time_limit = absl::ZeroDuration();
  request.measure.emplace().budget = absl::Seconds(100);
  EXPECT_EQ(Try(request)->kernel_time_limit, absl::Seconds(101)) << "it asks for its budget";
  limits_.max_kernel_seconds = 100;
  EXPECT_EQ(Try(request)->kernel_time_limit, absl::Seconds(100)) << "of each launch too";
  limits_.max_kernel_seconds = 99;
  EXPECT_THAT(Try(request), StatusIs(Code::kInvalidArgument, HasSubstr("measure.budget_seconds")));
  limits_.max_kernel_seconds = 100;
  request.measure->budget += absl::Nanoseconds(100);
  EXPECT_THAT(Try(request), StatusIs(Code::kInvalidArgument, HasSubstr("100, got 100.0000001")));
}

}  // namespace
}  // namespace gridclock
