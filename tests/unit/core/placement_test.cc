// Which of several devices gets a call.
#include "server/core/placement.h"

#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"
#include "server/core/admission.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Code = absl::StatusCode;
using State = WorkerState;

TEST(ChooseDevice, TheLeastLoadedGpuBeforeTheCpu) {
  EXPECT_EQ(ChooseDevice({}), std::nullopt);
  const std::vector<Candidate> all = {{State::kReady, /*gpu=*/false, 0},
                                      {State::kBusy, true, 3},
                                      {State::kReady, true, 2},
                                      {State::kReady, true, 2}};
  EXPECT_EQ(ChooseDevice(all), 2U);
}

TEST(ChooseDevice, OneThatStartsIsTakenAfterThoseThatAreUp) {
  const std::vector<Candidate> some = {{State::kDead, true, 0}, {State::kBusy, true, 9}};
  EXPECT_EQ(ChooseDevice(some), 1U);
  const std::vector<Candidate> dead = {{State::kReady, false, 0}, {State::kDead, true, 0}};
  EXPECT_EQ(ChooseDevice(dead), 1U);  // It is back in a moment.
}

TEST(ChooseDevice, AQuarantinedOneOnlyWhereThereIsNoOther) {
  const std::vector<Candidate> some = {{State::kQuarantined, true, 0}, {State::kReady, false, 9}};
  EXPECT_EQ(ChooseDevice(some), 1U);
  EXPECT_EQ(ChooseDevice(std::span(some).first(1)), 0U);
}

TEST(ChooseDevice, ADrainedOneOnlyWhereThereIsNoOther) {
  const std::vector<Candidate> some = {{State::kReady, true, 0, /*drained=*/true},
                                       {State::kQuarantined, false, 9}};
  EXPECT_EQ(ChooseDevice(some), 1U);
  EXPECT_EQ(ChooseDevice(std::span(some).first(1)), 0U);
}

constexpr std::uint64_t kGpuBytes = std::uint64_t{141} << 30;

// Eight GPUs and the CPU.
class PlacementTest : public ::testing::Test {
 protected:
  static std::vector<std::string> Names() {
    std::vector<std::string> names = {"cpu"};
    for (int i = 0; i < 8; ++i) names.push_back(absl::StrCat("cuda:", i));
    return names;
  }
  static KernelSpec Square(const std::string& kind) {
    KernelSpec spec = *ParseKernelSpec("square x: T[*] -> y: T[*] over x where T in {f32}");
    spec.variants.push_back({.name = "naive", .device_kind = kind, .summary = "", .clauses = {}});
    return spec;
  }
  PlacementTest() : table_(Names()) {
    limits_.arena_bytes = 16.0 * (1 << 30);
    limits_.client_arena_bytes = limits_.arena_bytes;
    for (const std::string& name : Names()) Meet(name);
  }
  void Meet(const std::string& name) {
    DeviceInfo info;
    info.name = name;
    info.traits.kind = name.substr(0, name.find(':'));
    if (info.traits.kind == "cuda") {
      info.traits.sm = 90;
      info.uuid = "GPU-" + name.substr(5);
      info.host_memory = false;
      info.memory_bytes = kGpuBytes;
    }
    ASSERT_THAT(table_.Learn(info, {Square(info.traits.kind)}), IsOk());
    table_.SetState(name, State::kReady);
  }
  // square of n elements that are made, whose result nobody wants.
  static JobRequest Made(std::int64_t n, const std::string& device) {
    JobRequest request;
    request.kernel = "square";
    request.device = device;
    InputRequest& x = request.inputs.emplace_back();
    x.operand = {"x", {.is_list = false, .tensors = {{DType::kF32, {n}}}}};
    x.source = SourceKind::kGenerate;
    x.generator = {.kind = GeneratorKind::kRandn, .seed = 1};
    request.outputs = {{"y", SinkKind::kDiscard}};
    return request;
  }
  absl::StatusOr<Job> Try(const JobRequest& request) {
    return Admit(request, table_, limits_,
                 [this](absl::string_view device) { return depth_[std::string(device)]; });
  }

  KernelTable table_;
  Limits limits_;
  std::map<std::string, int> depth_;
};

TEST_F(PlacementTest, CallsSpreadOverTheGpus) {
  for (int i = 0; i < 80; ++i) ++depth_[Try(Made(4, i % 2 == 0 ? "" : "cuda"))->device];
  for (int i = 0; i < 8; ++i) EXPECT_EQ(depth_[absl::StrCat("cuda:", i)], 10);
  EXPECT_EQ(depth_["cpu"], 0);
}

TEST_F(PlacementTest, NoneGoesToADeadOrQuarantinedGpuWhileOthersAreUp) {
  table_.SetState("cuda:3", State::kDead);
  table_.SetState("cuda:5", State::kQuarantined);
  for (int i = 0; i < 60; ++i) ++depth_[Try(Made(4, "cuda"))->device];
  EXPECT_EQ(depth_["cuda:3"] + depth_["cuda:5"], 0);
  EXPECT_EQ(depth_["cuda:0"], 10);
}

TEST_F(PlacementTest, ANamedDeviceIsTakenWhateverItsLoad) {
  depth_["cuda:6"] = 100;
  EXPECT_EQ(Try(Made(4, "cuda:6"))->device, "cuda:6");
  EXPECT_EQ(Try(Made(4, "GPU-6"))->device, "cuda:6");
  EXPECT_EQ(Try(Made(4, "cpu"))->device, "cpu");
  table_.SetState("cuda:6", State::kDead);
  EXPECT_EQ(Try(Made(4, "cuda:6"))->device, "cuda:6");
}

TEST_F(PlacementTest, OneThatNeverStartedGetsNothing) {
  KernelTable fresh(Names());
  DeviceInfo cpu;
  cpu.name = "cpu";
  cpu.traits.kind = "cpu";
  ASSERT_THAT(fresh.Learn(cpu, {Square("cpu")}), IsOk());
  const auto none = [](absl::string_view) { return 0; };

  EXPECT_EQ(Admit(Made(4, ""), fresh, limits_, none)->device, "cpu");
  const auto early = Admit(Made(4, "cuda:0"), fresh, limits_, none);
  EXPECT_THAT(early, StatusIs(Code::kUnavailable, HasSubstr("cuda:0")));
  EXPECT_THAT(early, ReasonIs("WORKER_STARTING"));
  fresh.SetState("cuda:0", WorkerState::kQuarantined,
                 WithReason(absl::UnavailableError("quarantined"), "WORKER_CRASHED"));
  EXPECT_THAT(Admit(Made(4, "cuda:0"), fresh, limits_, none), ReasonIs("WORKER_CRASHED"));
}

TEST_F(PlacementTest, WhatDoesNotTravelTakesNoArena) {
  ASSERT_OK_AND_ASSIGN(const Job job, Try(Made(5'300'000'000, "cuda")));
  EXPECT_EQ(job.memory.size, 0U);
  EXPECT_EQ(job.operand_bytes, 2 * 4 * 5'300'000'000U);
  EXPECT_THAT(Try(Made(5'300'000'000, "cpu")), ReasonIs("TOO_LARGE"));

  JobRequest returned = Made(1000, "cuda");
  returned.outputs.clear();
  returned.streamed = true;
  ASSERT_OK_AND_ASSIGN(const Job half, Try(returned));
  EXPECT_EQ(half.memory.size, 4032U);
  EXPECT_EQ(half.inputs[0].memory.size, 0U);
  EXPECT_EQ(half.outputs[0].memory, (MemoryRange{0, 4032}));
}

TEST_F(PlacementTest, AnOrderThatNoFrameHoldsTakesArenaBehindTheTensors) {
  KernelSpec sums = *ParseKernelSpec("sums x: f32[*]... -> y: f32[1]");
  sums.variants.push_back({.name = "naive", .device_kind = "cpu", .summary = "", .clauses = {}});
  DeviceInfo cpu;
  cpu.name = cpu.traits.kind = "cpu";
  ASSERT_THAT(table_.Learn(cpu, {sums}), IsOk());
  const auto of = [this](std::size_t tensors) {
    JobRequest request = Made(16, "cpu");
    request.kernel = "sums";
    request.inputs[0].operand.value = {
        .is_list = true, .tensors = std::vector<TensorSpec>(tensors, {DType::kF32, {16}})};
    return Try(request);
  };
  ASSERT_OK_AND_ASSIGN(const Job shorter, of(100));
  EXPECT_EQ(shorter.order.size, 0U);
  EXPECT_EQ(shorter.memory.size, 101 * 64U);
  ASSERT_OK_AND_ASSIGN(const Job longer, of(10'000));
  EXPECT_EQ(longer.order.offset, 10'001 * 64U);
  EXPECT_GE(longer.order.size, MostOrderBytes(longer));
  EXPECT_EQ(longer.memory.size, longer.order.offset + longer.order.size);
  limits_.client_arena_bytes = 10'001 * 64;
  EXPECT_THAT(of(10'000), ReasonIs("TOO_LARGE"));
}

TEST_F(PlacementTest, MoreThanTheDeviceHasIsRefusedInNumbers) {
  const auto job = Try(Made(20'000'000'000, "cuda:0"));
  EXPECT_THAT(
      job, StatusIs(Code::kResourceExhausted, AllOf(HasSubstr("160000000000"), HasSubstr("cuda:0"),
                                                    HasSubstr(absl::StrCat(kGpuBytes)))));
  EXPECT_THAT(job, ReasonIs("TOO_LARGE"));
  EXPECT_EQ(DetailsOf(job.status()).metadata["needed"], "160000000000");
}

TEST_F(PlacementTest, AMethodThatADeviceLacksIsRefusedWithTheReason) {
  JobRequest request = Made(4, "cuda:3");
  request.measure.emplace();
  request.measure->method = Method::kDeviceTime;
  EXPECT_THAT(Try(request), IsOk());
  DeviceInfo info = table_.Devices().at(4).info;  // Behind the CPU and three.
  info.methods = {{.method = Method::kDeviceTime, .floor_ns = 0, .missing = "no CUPTI"}};
  ASSERT_THAT(table_.Learn(info, {Square("cuda")}), IsOk());

  EXPECT_THAT(Try(request), StatusIs(Code::kInvalidArgument,
                                     AllOf(HasSubstr("measure.method"), HasSubstr("no CUPTI"))));
  request.device = "cuda";
  depth_ = {{"cuda:0", 1}, {"cuda:1", 1}, {"cuda:2", 1}};
  EXPECT_EQ(Try(request)->device, "cuda:4");  // Though cuda:3 has nothing to do.
}

TEST_F(PlacementTest, AnInPlaceOutputSharesItsInputsRangeOnlyIfThatHasOne) {
  JobRequest request = Made(1000, "cuda");
  request.outputs.clear();
  request.in_place = {"y"};
  request.streamed = true;
  ASSERT_OK_AND_ASSIGN(const Job made, Try(request));
  EXPECT_EQ(made.outputs[0].memory, (MemoryRange{0, 4032}));

  request.inputs[0].source = SourceKind::kStream;
  ASSERT_OK_AND_ASSIGN(const Job sent, Try(request));
  EXPECT_EQ(sent.outputs[0].memory, sent.inputs[0].memory);
  EXPECT_EQ(sent.memory.size, 4032U);
}

}  // namespace
}  // namespace gridclock
