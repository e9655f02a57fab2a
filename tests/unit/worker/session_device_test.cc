// Sessions on a device with memory of its own: what is copied, made there, returned and checked.
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <xxhash.h>

#include "kernels/worker/session.h"
#include "proto/types/generator.h"
#include "proto/types/job.h"
#include "tests/support/fake_clock.h"
#include "tests/support/separate_device.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

SeparateDevice* device = nullptr;  // Of the running test, for its kernels.

std::int64_t Size(const Call& call) {
  return Elements(call.InShape(0));
}

absl::Status Scale(const Call& call, float by) {
  const auto* x = device->Reach<const float>(call.inputs[0].data[0]);
  auto* y = device->Reach<float>(call.outputs[0].data[0]);
  if (x == nullptr || y == nullptr) return absl::InternalError("the kernel got host memory");
  if (Size(call) > 0) ++*call.launches;
  for (std::int64_t i = 0; i < Size(call); ++i) y[i] = by * x[i];
  return absl::OkStatus();
}

KernelDef Doubling() {
  KernelDef def;
  def.words = "x: T[*] -> y: T[*] over x where T in {f32}";
  def.reference = {
      .units = [](const Binding& b) { return Elements(b.inputs[0].tensors[0].shape); },
      .unit_elements = [](const Binding&) -> std::int64_t { return 1; },
      .compute = [](const Binding&, absl::FunctionRef<double(std::size_t, std::int64_t)> in,
                    std::int64_t unit, std::size_t,
                    std::span<double> result) { result[0] = 2 * in(0, unit); },
      .accumulation = [](const Binding&) -> std::int64_t { return 1; },
  };
  def.cuda = {
      {.name = "honest", .summary = "", .launch = [](const Call& c) { return Scale(c, 2); }},
      {.name = "wrong", .summary = "", .launch = [](const Call& c) { return Scale(c, 3); }}};
  return def;
}

class Silent final : public SessionHost {
 public:
  bool Cancelled(const WorkerOrder&) override { return false; }
  void OnSamples(const WorkerOrder&, std::int64_t, std::span<const double>, bool) override {}
  std::atomic<std::int64_t>& kernel_since_ns() override { return since_ns_; }

 private:
  std::atomic<std::int64_t> since_ns_{0};
};

constexpr std::uint64_t kMemory = 96 << 20;
constexpr std::uint64_t kArena = 16 << 10;
constexpr std::byte kUntouched{0x5A};
// More than one piece of the staging memory, and no whole number of pages.
constexpr std::int64_t kMany = 5'000'001;

class SessionDeviceTest : public ::testing::Test {
 protected:
  SessionDeviceTest()
      : device_(kMemory),
        registry_(*Registry::Create({{"double", Doubling()}})),
        arena_(kArena, kUntouched),
        session_(*Session::Create(device_, registry_, clock_, arena_)) {
    device = &device_;
  }

  static OperandValue Floats(std::int64_t n) {
    return {.is_list = false, .tensors = {{.dtype = DType::kF32, .shape = {n}}}};
  }
  static WorkerOperand Operand(std::int64_t n) {
    WorkerOperand operand;
    operand.value = Floats(n);
    return operand;
  }
  // Doubles n values that lie in the arena and returns them behind those.
  static WorkerOrder Sent(std::int64_t n) {
    WorkerOrder order;
    order.id = 1;
    order.kernel = "double";
    order.variant = "honest";
    order.kernel_time_limit = absl::Seconds(30);
    const std::uint64_t bytes = OperandBytes(Floats(n));
    order.inputs = {Operand(n)};
    order.inputs[0].memory = {.offset = 0, .size = bytes};
    order.outputs = {Operand(n)};
    order.outputs[0].memory = {.offset = bytes, .size = bytes};
    return order;
  }
  // Doubles n values that are made; nothing has a place in the arena.
  static WorkerOrder Made(std::int64_t n) {
    WorkerOrder order = Sent(1);
    order.inputs = {Operand(n)};
    order.inputs[0].generate = Generator{.kind = GeneratorKind::kRandn, .seed = 7};
    order.outputs = {Operand(n)};
    return order;
  }
  static std::vector<float> Randn(std::int64_t n) {
    std::vector<float> values(n);
    Generate({.kind = GeneratorKind::kRandn, .seed = 7}, DType::kF32, 0,
             std::as_writable_bytes(std::span(values)));
    return values;
  }
  float* ArenaFloats(std::uint64_t offset) {
    return reinterpret_cast<float*>(arena_.data() + offset);
  }
  SessionReport Run(const WorkerOrder& order) { return session_->Run(order, host_); }

  FakeClock clock_;
  Silent host_;
  SeparateDevice device_;
  const Registry registry_;
  std::vector<std::byte> arena_;
  const std::unique_ptr<Session> session_;
};

TEST_F(SessionDeviceTest, CopiesInputsThereAndOutputsBack) {
  for (int i = 0; i < 1000; ++i) ArenaFloats(0)[i] = static_cast<float>(i);

  const SessionReport report = Run(Sent(1000));

  ASSERT_THAT(report.status, IsOk());
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(ArenaFloats(4032)[i], 2.0F * static_cast<float>(i));
  EXPECT_EQ(ArenaFloats(0)[999], 999);
  EXPECT_THAT(std::span(arena_).subspan(2 * 4032), Each(kUntouched));
  EXPECT_EQ(report.outcome.peak_device_bytes, 2 * 4032U);
  EXPECT_GE(device_.pinned_bytes(), arena_.size());
  EXPECT_EQ(device_.used(), 0U);
}

TEST_F(SessionDeviceTest, SaysWhenTheLaunchWasBackAndWhenItsWorkEnded) {
  const SessionReport report = Run(Sent(1000));
  const auto took = [&](PhaseKind kind) {
    for (const Phase& phase : report.outcome.phases) {
      if (phase.kind == kind) return phase.end_ns - phase.start_ns;
    }
    return std::int64_t{-1};
  };
  EXPECT_EQ(took(PhaseKind::kLaunched), 10);
  EXPECT_EQ(took(PhaseKind::kFinished), 1000);
}

TEST_F(SessionDeviceTest, WhatDoesNotTravelNeedsNoArena) {
  WorkerOrder order = Made(kMany);
  order.outputs[0].checksum = true;

  const SessionReport report = Run(order);

  ASSERT_THAT(report.status, IsOk());
  std::vector<float> want = Randn(kMany);
  for (float& value : want) value *= 2;
  EXPECT_EQ(report.outcome.outputs[0].checksum, XXH3_64bits(want.data(), 4 * want.size()));
  EXPECT_THAT(arena_, Each(kUntouched));
}

TEST_F(SessionDeviceTest, MakesWhatIsTheSameEverywhere) {
  WorkerOrder order = Made(kMany);
  order.inputs[0].generate = Generator{.kind = GeneratorKind::kFull, .a = 1.5};
  order.outputs[0].checksum = true;

  const SessionReport report = Run(order);

  ASSERT_THAT(report.status, IsOk());
  const std::vector<float> want(kMany, 3.0F);
  EXPECT_EQ(report.outcome.outputs[0].checksum, XXH3_64bits(want.data(), 4 * want.size()));
}

TEST_F(SessionDeviceTest, VerifiesThroughPagesOfTheDevice) {
  WorkerOrder order = Made(kMany);
  order.verify = true;

  const SessionReport report = Run(order);

  ASSERT_THAT(report.status, IsOk());
  EXPECT_EQ(report.outcome.verification->mismatches, 0);
  EXPECT_EQ(report.outcome.verification->checked, kMany);
  EXPECT_EQ(report.outcome.verification->total, kMany);
}

TEST_F(SessionDeviceTest, FindsWhatIsWrong) {
  WorkerOrder order = Made(kMany);
  order.variant = "wrong";
  order.verify = true;

  const SessionReport report = Run(order);

  ASSERT_THAT(report.status, IsOk());
  EXPECT_GT(report.outcome.verification->mismatches, kMany / 2);
}

TEST_F(SessionDeviceTest, RestoresAndVerifiesWhatWorksInPlace) {
  for (int i = 0; i < 1000; ++i) ArenaFloats(0)[i] = static_cast<float>(i);
  WorkerOrder order = Sent(1000);
  order.outputs[0].memory = order.inputs[0].memory;
  order.outputs[0].in_place_of = 0;
  order.measure = MeasureOptions{.schedule = Schedule{.wait = 0, .warmup = 2, .active = 5}};
  order.verify = true;

  const SessionReport report = Run(order);

  ASSERT_THAT(report.status, IsOk());
  EXPECT_EQ(report.outcome.verification->mismatches, 0);
  EXPECT_EQ(report.outcome.verification->checked, 1000);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(ArenaFloats(0)[i], 2.0F * static_cast<float>(i));
  EXPECT_EQ(report.outcome.peak_device_bytes, 2 * 4032U);  // The operand, and its copy.
}

TEST_F(SessionDeviceTest, ReturnsTheResultOfTheSubmittedSeedInPlace) {
  WorkerOrder order = Made(1000);
  order.outputs[0].memory = {.offset = 64, .size = 4032};
  order.outputs[0].in_place_of = 0;
  order.measure = MeasureOptions{.schedule = Schedule{.wait = 0, .warmup = 2, .active = 5}};
  order.verify = true;

  const SessionReport report = Run(order);

  ASSERT_THAT(report.status, IsOk());
  EXPECT_EQ(report.outcome.verification->mismatches, 0);
  const std::vector<float> randn = Randn(1000);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(ArenaFloats(64)[i], 2 * randn[i]);
}

// Back to back a kernel finds in place what the launch before left there.
TEST_F(SessionDeviceTest, WhatIsReturnedAfterASlopeIsOfOneLaunch) {
  for (const bool verify : {false, true}) {
    for (const bool made : {false, true}) {
      for (int i = 0; i < 1000; ++i) ArenaFloats(0)[i] = static_cast<float>(i);
      WorkerOrder order = made ? Made(1000) : Sent(1000);
      order.outputs[0].memory = {.offset = 0, .size = 4032};
      order.outputs[0].in_place_of = 0;
      order.measure = MeasureOptions{.method = Method::kBackToBack,
                                     .schedule = Schedule{.wait = 0, .warmup = 0, .active = 3}};
      order.verify = verify;

      const SessionReport report = Run(order);

      ASSERT_THAT(report.status, IsOk());
      const std::vector<float> randn = Randn(1000);
      for (int i = 0; i < 1000; ++i) {
        ASSERT_EQ(ArenaFloats(0)[i], 2 * (made ? randn[i] : static_cast<float>(i)));
      }
      const std::int64_t differ =
          verify ? report.outcome.verification.value().mismatches : std::int64_t{0};
      EXPECT_EQ(differ, 0);
      EXPECT_THAT(report.outcome.flags, Contains(Flag::kUnverified).Times(verify ? 1 : 0));
      // One to see how long it takes, three samples of three launches each, and the one whose
      // values are returned.
      EXPECT_EQ(report.outcome.launches[0].count, 1 + 3 * 3 + 1);
    }
  }
}

TEST_F(SessionDeviceTest, OfEmptyTensorsThereIsNoLaunch) {
  const SessionReport empty = Run(Made(0));
  ASSERT_THAT(empty.status, IsOk());
  EXPECT_THAT(empty.outcome.launches, IsEmpty());

  const SessionReport report = Run(Made(1000));
  ASSERT_THAT(report.outcome.launches, SizeIs(1));
  EXPECT_EQ(report.outcome.launches[0].count, 1);
}

TEST_F(SessionDeviceTest, TooLittleMemoryIsSaidInNumbersAndTheNextOrderWorks) {
  const SessionReport full = Run(Made(20'000'000));

  EXPECT_THAT(full.status,
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("output 0 of 'double/honest'"), HasSubstr("80000000"),
                             HasSubstr(absl::StrCat(kMemory)))));
  EXPECT_THAT(full.status, ReasonIs("MEMORY_FULL"));
  EXPECT_FALSE(full.spoiled);
  EXPECT_EQ(device_.used(), 0U);
  EXPECT_THAT(Run(Made(1000)).status, IsOk());
}

TEST_F(SessionDeviceTest, ABrokenDeviceIsTheKernelsFaultAndEndsTheProcess) {
  device_.BreakAtNextLaunch();

  const SessionReport report = Run(Made(1000));

  EXPECT_THAT(report.status,
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("double/honest"), HasSubstr("cudaErrorIllegalAddress"))));
  EXPECT_THAT(report.status, ReasonIs("KERNEL_FAULT"));
  EXPECT_TRUE(report.spoiled);
}

TEST_F(SessionDeviceTest, AnInputThatIsNowhereIsRefused) {
  WorkerOrder order = Sent(1000);
  order.inputs[0].memory = {};

  EXPECT_THAT(Run(order).status,
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("neither sent nor made")));
}

TEST_F(SessionDeviceTest, EmptyOperandsHaveAddressesToo) {
  EXPECT_THAT(Run(Made(0)).status, IsOk());
}

// Submitted code that says whether shared memory is as a launch before left it.
void Leftover(const NativeCall& call) {
  constexpr std::uint32_t kMark = 0x5EC2E755;
  *device->Reach<float>(call.Pointer<float>(0)) = device->shared == kMark ? 1 : 0;
  device->shared = kMark;
}

// A server that has the output of each checked launch taken.
class Taking final : public SessionHost {
 public:
  explicit Taking(const float& output) : output_(output) {}
  bool Cancelled(const WorkerOrder&) override { return false; }
  void OnSamples(const WorkerOrder&, std::int64_t, std::span<const double>, bool) override {}
  absl::Status Step(const WorkerOrder&, std::uint32_t, CheckStep step) override {
    if (step == CheckStep::kTake) taken.push_back(output_);
    return absl::OkStatus();
  }
  std::atomic<std::int64_t>& kernel_since_ns() override { return since_ns_; }

  std::vector<float> taken;

 private:
  const float& output_;
  std::atomic<std::int64_t> since_ns_{0};
};

class SharedMemoryTest : public SessionDeviceTest {
 protected:
  // Of each checked launch, the last of which is not timed.
  std::vector<float> Found(bool keep_shared) {
    const Natives natives = {.functions = {{"leftover", Leftover}}, .variables = {}};
    const GuestParts guest{.natives = natives, .keep_shared = keep_shared};
    const auto session = *Session::Create(device_, registry_, clock_, arena_, &guest);
    WorkerOrder order = Sent(1);
    order.inputs.clear();
    order.outputs[0].memory = {.offset = 0, .size = 4 + 2 * kCheckMargin};
    order.program = {.program = *CompleteProgram(
                         {.words = *ParseKernelSpec("f -> y: f32[1] grid (1) block (1) params y"),
                          .launches = {{.module = "m", .entry = "leftover", .clauses = {}}},
                          .globals = {}}),
                     .modules = {{.id = "m", .kind = ModuleKind::kTestNative, .code = {}}}};
    order.measure = MeasureOptions{.schedule = Schedule{.wait = 0, .warmup = 2, .active = 3}};
    order.checked_launches = 4;
    Taking host(*ArenaFloats(kCheckMargin));
    EXPECT_THAT(session->Run(order, host).status, IsOk());
    return host.taken;
  }
};

TEST_F(SharedMemoryTest, IsOverwrittenBeforeTheLastCheckedLaunchAlone) {
  EXPECT_THAT(Found(/*keep_shared=*/false), ElementsAre(1, 1, 1, 0));
  EXPECT_THAT(Found(/*keep_shared=*/true), ElementsAre(1, 1, 1, 1));
}

}  // namespace
}  // namespace gridclock
