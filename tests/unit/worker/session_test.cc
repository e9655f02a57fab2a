#include "kernels/worker/session.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/device/cpu/cpu_device.h"
#include "proto/types/generator.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::int64_t kN = 1000;
constexpr std::uint64_t kBytes = 4096;  // Of one operand, with room to align the next.

std::vector<float> Randn(std::uint64_t seed) {
  std::vector<float> values(kN);
  Generate({.kind = GeneratorKind::kRandn, .seed = seed}, DType::kF32, 0,
           std::as_writable_bytes(std::span(values)));
  return values;
}

absl::Status Double(const Call& call) {
  for (std::int64_t i = 0; i < kN; ++i) call.Out<float>(0)[i] = 2 * call.In<float>(0)[i];
  return absl::OkStatus();
}

// Right the first time; from then on it copies what it found then.
absl::Status KeepTheFirst(const Call& call) {
  static auto& kept = *new std::vector<float>;
  if (kept.empty()) {
    const absl::Status status = Double(call);
    kept.assign(call.Out<float>(0), call.Out<float>(0) + kN);
    return status;
  }
  std::copy(kept.begin(), kept.end(), call.Out<float>(0));
  return absl::OkStatus();
}

// Right for the values of seed 1 alone, and quicker than right for all others.
absl::Status KnowTheSeed(const Call& call) {
  if (call.In<float>(0)[0] == Randn(1)[0]) return Double(call);
  return absl::OkStatus();
}

KernelDef Doubling() {
  KernelDef def;
  def.words = "x: T[*] -> y: T[*] over x where T in {f32}";
  def.summary = "doubles";
  def.formula = "y = 2 x";
  def.reference = {
      .units = [](const Binding&) { return kN; },
      .unit_elements = [](const Binding&) -> std::int64_t { return 1; },
      .compute = [](const Binding&, absl::FunctionRef<double(std::size_t, std::int64_t)> in,
                    std::int64_t unit, std::size_t,
                    std::span<double> result) { result[0] = 2 * in(0, unit); },
      .accumulation = [](const Binding&) -> std::int64_t { return 1; },
  };
  def.cpu = {{.name = "honest", .summary = "", .launch = Double},
             {.name = "keeps_the_first", .summary = "", .launch = KeepTheFirst},
             {.name = "knows_the_seed", .summary = "", .launch = KnowTheSeed},
             {.name = "fails", .summary = "", .launch = [](const Call&) -> absl::Status {
                return absl::InternalError("it was launched");
              }}};
  return def;
}

absl::Status Fill(const Call& call) {
  std::fill_n(call.Out<double>(0), 1, call.binding->F64("value"));
  return absl::OkStatus();
}

KernelDef Filling() {
  KernelDef def;
  def.words = "-> y: f64[1]; value: f64";
  def.summary = "fills";
  def.formula = "y = value";
  def.reference = {
      .units = [](const Binding&) -> std::int64_t { return 1; },
      .unit_elements = [](const Binding&) -> std::int64_t { return 1; },
      .compute = [](const Binding& binding, absl::FunctionRef<double(std::size_t, std::int64_t)>,
                    std::int64_t, std::size_t,
                    std::span<double> result) { result[0] = binding.F64("value"); },
      .accumulation = [](const Binding&) -> std::int64_t { return 1; },
  };
  def.cpu = {{.name = "plain", .summary = "", .launch = Fill}};
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

class SessionTest : public ::testing::Test {
 protected:
  SessionTest()
      : device_(*CpuDevice::Create({.threads = 1, .calibrate = false})),
        registry_(*Registry::Create({{"double", Doubling()}, {"fill", Filling()}})),
        arena_(*device_->Allocate(2 * kBytes)),
        session_(
            *Session::Create(*device_, registry_, clock_,
                             std::span(static_cast<std::byte*>(arena_->data()), arena_->size()))) {}

  // Doubles randn of seed 1, seven times measured and then verified.
  WorkerOrder Order(const std::string& variant) const {
    const OperandValue value{.is_list = false, .tensors = {{.dtype = DType::kF32, .shape = {kN}}}};
    WorkerOrder order;
    order.id = 1;
    order.kernel = "double";
    order.variant = variant;
    WorkerOperand& x = order.inputs.emplace_back();
    x.value = value;
    x.memory = {.offset = 0, .size = kBytes};
    x.generate = Generator{.kind = GeneratorKind::kRandn, .seed = 1};
    WorkerOperand& y = order.outputs.emplace_back();
    y.value = value;
    y.memory = {.offset = kBytes, .size = kBytes};
    order.measure = MeasureOptions{.schedule = Schedule{.wait = 0, .warmup = 2, .active = 5}};
    order.verify = true;
    return order;
  }
  SessionReport Run(const WorkerOrder& order) {
    Silent host;
    return session_->Run(order, host);
  }
  float* Floats(std::uint64_t offset) const {
    return reinterpret_cast<float*>(static_cast<std::byte*>(arena_->data()) + offset);
  }
  // What the outputs would be for the values that were asked for.
  static std::vector<float> Doubled(std::vector<float> values) {
    for (float& value : values) value *= 2;
    return values;
  }

  const MonotonicClock clock_;
  const std::unique_ptr<CpuDevice> device_;
  const Registry registry_;
  const std::unique_ptr<DeviceBuffer> arena_;
  const std::unique_ptr<Session> session_;
};

TEST_F(SessionTest, ReturnsTheResultOfTheSubmittedSeed) {
  const SessionReport report = Run(Order("honest"));

  ASSERT_THAT(report.status, IsOk());
  EXPECT_EQ(report.outcome.verification->mismatches, 0);
  EXPECT_EQ(report.outcome.verification->checked, kN);
  EXPECT_EQ(report.outcome.timing->samples_ns.size(), 5U);
  EXPECT_EQ(report.outcome.launches[0].count, 8);  // The last one on fresh values.
  EXPECT_EQ(std::vector<float>(Floats(kBytes), Floats(kBytes) + kN), Doubled(Randn(1)));
  EXPECT_EQ(std::vector<float>(Floats(0), Floats(0) + kN), Randn(1));
}

TEST_F(SessionTest, ReturnsTheResultOfTheSubmittedSeedInPlace) {
  WorkerOrder order = Order("honest");
  order.outputs[0].memory = order.inputs[0].memory;
  order.outputs[0].in_place_of = 0;

  const SessionReport report = Run(order);

  ASSERT_THAT(report.status, IsOk());
  EXPECT_EQ(report.outcome.verification->mismatches, 0);
  EXPECT_EQ(std::vector<float>(Floats(0), Floats(0) + kN), Doubled(Randn(1)));
}

// What a kernel's loops would make of a dimension of 2^60 beside one of 0 is not tried.
TEST_F(SessionTest, LaunchesNothingWhereTheOutputsHaveNoElements) {
  WorkerOrder order = Order("fails");
  order.verify = false;
  EXPECT_THAT(Run(order).status, StatusIs(absl::StatusCode::kInternal, "it was launched"));
  for (WorkerOperand* operand : {&order.inputs[0], &order.outputs[0]}) {
    operand->value.tensors[0].shape = {std::int64_t{1} << 60, 0};
  }
  const SessionReport report = Run(order);
  ASSERT_THAT(report.status, IsOk());
  EXPECT_EQ(report.outcome.timing->samples_ns.size(), 5U);
  EXPECT_THAT(report.outcome.launches, IsEmpty());
}

TEST_F(SessionTest, WorksInTheArenaAlone) {
  WorkerOrder order = Order("honest");
  order.outputs[0].memory = {};

  EXPECT_THAT(Run(order).status, StatusIs(absl::StatusCode::kInvalidArgument,
                                          HasSubstr("output 0 takes 4032 bytes and has no place")));
}

TEST_F(SessionTest, FindsAVariantThatKeepsAnEarlierResult) {
  const SessionReport report = Run(Order("keeps_the_first"));

  ASSERT_THAT(report.status, IsOk());
  EXPECT_GT(report.outcome.verification->mismatches, kN / 2);
}

TEST_F(SessionTest, ChecksTheTimedLaunchesToo) {
  const SessionReport report = Run(Order("knows_the_seed"));

  ASSERT_THAT(report.status, IsOk());
  EXPECT_GT(report.outcome.verification->mismatches, kN / 2);
  EXPECT_THAT(report.outcome.verification->first_mismatch, HasSubstr("y[0]: want"));
}

TEST_F(SessionTest, LaunchesNoMoreThanMeasuredWhereNoValueDependsOnASeed) {
  WorkerOrder ones = Order("honest");
  ones.inputs[0].generate = Generator{.kind = GeneratorKind::kOnes};
  WorkerOrder sent = Order("honest");
  sent.inputs[0].generate.reset();
  WorkerOrder unverified = Order("honest");
  unverified.verify = false;

  for (const WorkerOrder& order : {ones, sent, unverified}) {
    const SessionReport report = Run(order);
    ASSERT_THAT(report.status, IsOk());
    EXPECT_EQ(report.outcome.launches[0].count, 7);
  }
}

TEST_F(SessionTest, GivesTheSignOfTheZeroThatWasAskedFor) {
  const auto filled_with = [&](double zero) {
    WorkerOrder order;
    order.id = 1;
    order.kernel = "fill";
    order.attributes = {zero};
    WorkerOperand& y = order.outputs.emplace_back();
    y.value = {.is_list = false, .tensors = {{.dtype = DType::kF64, .shape = {1}}}};
    y.memory = {.offset = 0, .size = kBytes};
    EXPECT_THAT(Run(order).status, IsOk());
    double got = 1;
    std::memcpy(&got, arena_->data(), sizeof(got));
    return got;
  };

  EXPECT_FALSE(std::signbit(filled_with(0.0)));
  EXPECT_TRUE(std::signbit(filled_with(-0.0)));
  EXPECT_FALSE(std::signbit(filled_with(0.0)));
}

}  // namespace
}  // namespace gridclock
