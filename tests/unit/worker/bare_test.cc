#include "kernels/worker/bare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <xxhash.h>

#include "absl/strings/str_format.h"
#include "kernels/device/cpu/cpu_device.h"
#include "proto/types/generator.h"
#include "tests/support/separate_device.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::HasSubstr;
using Code = absl::StatusCode;

int launches = 0;

// y = a + b; and a, which it works on in place, becomes a + 1.
absl::Status AddAndStep(const Call& call) {
  ++launches;
  auto* a = call.Out<float>(0);
  for (std::int64_t i = 0; i < Elements(call.InShape(0)); ++i) {
    call.Out<float>(1)[i] = a[i] + call.In<float>(1)[i];
    a[i] += 1;
  }
  return absl::OkStatus();
}

absl::Status JoinLists(const Call& call) {
  for (std::size_t i = 0; i < call.inputs[0].data.size(); ++i) {
    call.Out<float>(0)[i] = call.In<float>(0, i)[0];
  }
  return absl::OkStatus();
}

absl::Status TakeAll(const Call&) {
  throw std::bad_alloc();
}

SeparateDevice* separate = nullptr;  // Of the running test, for its kernel.

absl::Status Double(const Call& call) {
  const auto* x = separate->Reach<const float>(call.inputs[0].data[0]);
  auto* y = separate->Reach<float>(call.outputs[0].data[0]);
  for (std::int64_t i = 0; i < Elements(call.InShape(0)); ++i) y[i] = 2 * x[i];
  if (x[0] < 0) separate->Break();
  return absl::OkStatus();
}

KernelDef Def(const std::string& words, LaunchFn launch, LaunchFn on_gpu = nullptr) {
  KernelDef def;
  def.words = words;
  def.summary = "of a test";
  def.formula = "-";
  def.cpu = {{.name = "plain", .summary = "", .launch = launch}};
  if (on_gpu != nullptr) def.cuda = {{.name = "apart", .summary = "", .launch = on_gpu}};
  return def;
}

Registry Kernels() {
  return *Registry::Create({{"step", Def("inout a: f32[*], b: f32[*] -> y: f32[*]", AddAndStep)},
                            {"join", Def("p: f32[1]... -> y: f32[3]", JoinLists)},
                            {"greedy", Def("x: f32[*] -> y: f32[*]", TakeAll, Double)}});
}

std::vector<float> Randn(std::uint64_t seed, std::size_t n) {
  std::vector<float> values(n);
  Generate({.kind = GeneratorKind::kRandn, .seed = seed}, DType::kF32, 0,
           std::as_writable_bytes(std::span(values)));
  return values;
}

std::string Checksum(const std::vector<float>& values) {
  return absl::StrFormat("%016x", XXH3_64bits(values.data(), 4 * values.size()));
}

class BareTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::string> Run(const std::vector<std::string>& words, std::int64_t repeat = 1) {
    const BareOptions options{.call = {.words = words, .seed = 7}, .repeat = repeat};
    return RunBare(*device_, registry_, options);
  }

  std::unique_ptr<CpuDevice> device_ = *CpuDevice::Create({.threads = 1, .calibrate = false});
  Registry registry_ = Kernels();
};

TEST_F(BareTest, LaunchesOnceOnTheValuesOfItsSeeds) {
  std::vector<float> a = Randn(7, 100), b = Randn(8, 100), y(100);
  for (std::size_t i = 0; i < 100; ++i) {
    y[i] = a[i] + b[i];
    a[i] += 1;
  }
  launches = 0;
  ASSERT_OK_AND_ASSIGN(const std::string told, Run({"step", "b=f32[100]", "a=randn:f32[100]"}));
  EXPECT_EQ(launches, 1);
  EXPECT_THAT(told, HasSubstr("1 launch; a: f32[100], checksum " + Checksum(a)));
  EXPECT_THAT(told, HasSubstr("; y: f32[100], checksum " + Checksum(y) + "\n"));
}

TEST_F(BareTest, LaunchesAsOftenAsAsked) {
  launches = 0;
  ASSERT_OK_AND_ASSIGN(const std::string told, Run({"step", "a=zeros:f32[2]", "b=ones:f32[2]"}, 3));
  EXPECT_EQ(launches, 3);
  EXPECT_THAT(told, HasSubstr("3 launches; a: f32[2], checksum " + Checksum({3, 3})));
  EXPECT_THAT(told, HasSubstr("; y: f32[2], checksum " + Checksum({3, 3})));
}

TEST_F(BareTest, ANameSaidAgainIsTheNextTensorOfAList) {
  ASSERT_OK_AND_ASSIGN(const std::string told,
                       Run({"join", "p=full:4:f32[1]", "p=full:4:f32[1]", "p=full:4:f32[1]"}));
  EXPECT_THAT(told, HasSubstr("y: f32[3], checksum " + Checksum({4, 4, 4})));
  EXPECT_THAT(
      Run({"join", "p=ones:f32[1]", "p=zeros:f32[1]"}),
      StatusIs(Code::kInvalidArgument, HasSubstr("p: the tensors of a list are made by one")));
}

TEST_F(BareTest, AKernelThatGetsNoMemorySaysSo) {
  EXPECT_THAT(
      Run({"greedy", "x=f32[4]"}),
      StatusIs(Code::kResourceExhausted, HasSubstr("kernel 'greedy/plain': out of memory")));
}

class BareGpuTest : public BareTest {
 protected:
  BareGpuTest() { separate = &gpu_; }
  absl::StatusOr<std::string> Run(const std::string& x) {
    return RunBare(gpu_, registry_, {.call = {.words = {"greedy", x}}});
  }

  SeparateDevice gpu_{1 << 20};
};

TEST_F(BareGpuTest, OperandsLieInTheDevicesMemory) {
  ASSERT_OK_AND_ASSIGN(const std::string told, Run("x=arange:f32[3]"));
  EXPECT_THAT(told, HasSubstr("greedy/apart on cuda:0"));
  EXPECT_THAT(told, HasSubstr("checksum " + Checksum({0, 2, 4})));
}

TEST_F(BareGpuTest, AFaultIsTold) {
  const auto told = Run("x=full:-1:f32[3]");
  EXPECT_THAT(told, StatusIs(Code::kFailedPrecondition, HasSubstr("kernel 'greedy/apart': cuda")));
  EXPECT_THAT(told, ReasonIs("KERNEL_FAULT"));
}

}  // namespace
}  // namespace gridclock
