// Submitted code on a real GPU, through a guest's session.
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "kernels/device/cuda/cuda_device.h"
#include "kernels/device/cuda/facts.h"
#include "kernels/worker/session.h"
#include "module_kernels.h"
#include "proto/types/job.h"
#include "proto/types/launch.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

#define SKIP_WITHOUT_GPU() \
  if (ListCudaDevices().devices.empty()) GTEST_SKIP() << "no GPU here: " << ListCudaDevices().none

constexpr std::uint64_t kStride = 8 << 20;  // Operand i lies there, the code behind all.
constexpr std::uint64_t kCode = 6 * kStride;
constexpr std::uint64_t kMemory = kCode + (4 << 20);

class Nobody final : public SessionHost {
 public:
  bool Cancelled(const WorkerOrder&) override { return false; }
  void OnSamples(const WorkerOrder&, std::int64_t, std::span<const double>, bool) override {}
  // A server that gives each launch the same values, and takes what it left.
  absl::Status Step(const WorkerOrder&, std::uint32_t, CheckStep) override {
    return absl::OkStatus();
  }
  std::atomic<std::int64_t>& kernel_since_ns() override { return since_ns_; }

 private:
  std::atomic<std::int64_t> since_ns_{0};
};

// A guest's session. Never destroyed where it works on the device of another: that has pinned its
// memory.
class GpuGuest {
 public:
  GpuGuest() : GpuGuest(*CudaDevice::Create({})) {}
  explicit GpuGuest(std::shared_ptr<Device> device, bool keep_shared = false)
      : device_(std::move(device)),
        registry_(*Registry::Create({})),
        printed_(*Printed::Create()),
        memory_(kMemory) {
    const GuestParts guest{
        .natives = natives_, .printed = printed_.get(), .keep_shared = keep_shared};
    session_ = *Session::Create(*device_, registry_, clock_, memory_, &guest);
    std::memcpy(memory_.data() + kCode, kModuleKernels, sizeof(kModuleKernels));
  }

  float* At(std::uint64_t operand) {
    return reinterpret_cast<float*>(memory_.data() + operand * kStride);
  }
  std::vector<float> Get(std::uint64_t operand, std::size_t count) {
    return {At(operand), At(operand) + count};
  }
  void Put(std::uint64_t operand, const std::vector<float>& values) {
    std::copy(values.begin(), values.end(), At(operand));
  }
  SessionReport Run(const WorkerOrder& order) { return session_->Run(order, nobody_); }
  Device& device() { return *device_; }
  std::shared_ptr<Device> shared_device() const { return device_; }

 private:
  std::shared_ptr<Device> device_;
  Registry registry_;
  std::unique_ptr<Printed> printed_;
  std::vector<std::byte> memory_;
  Natives natives_;
  MonotonicClock clock_;
  Nobody nobody_;
  std::unique_ptr<Session> session_;
};

GpuGuest& TheGuest() {
  static auto* const guest = new GpuGuest;
  return *guest;
}

struct Step {
  const char* entry;
  const char* words = "";
  bool cooperative = false;
};

OperandValue Floats(std::int64_t n) {
  return {.is_list = false, .tensors = {{.dtype = DType::kF32, .shape = {n}}}};
}

WorkerOperand At(std::uint64_t place, const OperandValue& value) {
  WorkerOperand operand;
  operand.value = value;
  operand.memory = {.offset = place * kStride, .size = OperandBytes(value)};
  return operand;
}

// Inputs lie at 0, 1, ...; outputs follow.
WorkerOrder OrderOf(const char* words, const std::vector<Step>& steps,
                    const std::vector<OperandValue>& inputs,
                    const std::vector<OperandValue>& outputs,
                    std::vector<ProgramGlobal> globals = {},
                    std::vector<AttributeValue> attributes = {}) {
  Program program{.words = *ParseKernelSpec(words), .launches = {}, .globals = std::move(globals)};
  for (const Step& step : steps) {
    program.launches.push_back({.module = "m",
                                .entry = step.entry,
                                .clauses = *ParseClauses(step.words),
                                .cooperative = step.cooperative});
  }
  WorkerOrder order;
  order.id = 1;
  order.kernel = program.words.name;
  order.attributes = std::move(attributes);
  order.kernel_time_limit = absl::Seconds(30);
  for (const OperandValue& value : inputs) order.inputs.push_back(At(order.inputs.size(), value));
  for (const OperandValue& value : outputs) {
    order.outputs.push_back(At(order.inputs.size() + order.outputs.size(), value));
  }
  order.program = {.program = *CompleteProgram(std::move(program)),
                   .modules = {{.id = "m",
                                .kind = ModuleKind::kCubin,
                                .code = {.offset = kCode, .size = sizeof(kModuleKernels)}}}};
  return order;
}

constexpr const char* kSquare =
    "mine x: f32[N] -> y: f32[N] grid (ceil_div(N, 256)) block (256) params x, y, n: int = N";

TEST(CudaModule, Squares) {
  SKIP_WITHOUT_GPU();
  TheGuest().Put(0, {1, 2, -3});
  const SessionReport report =
      TheGuest().Run(OrderOf(kSquare, {{"square"}}, {Floats(3)}, {Floats(3)}));
  ASSERT_THAT(report.status, IsOk());
  EXPECT_THAT(TheGuest().Get(1, 3), ElementsAre(1, 4, 9));
  EXPECT_THAT(report.outcome.printed, IsEmpty());
}

TEST(CudaModule, IsMeasuredByEachMethodInPlace) {
  SKIP_WITHOUT_GPU();
  constexpr std::int64_t kN = 1 << 20;
  WorkerOrder order = OrderOf(
      "add_to x: f32[N], b: f32[N] -> y: f32[N] over x grid (ceil_div(N, 256)) block (256) "
      "params x, b, n: int = N",
      {{"add_in_place"}}, {Floats(kN), Floats(kN)}, {Floats(kN)});
  order.outputs[0].in_place_of = 0;
  std::fill_n(TheGuest().At(0), kN, 1.0F);
  std::fill_n(TheGuest().At(1), kN, 2.0F);
  for (const Method method : TheGuest().device().methods()) {
    order.measure.emplace().method = method;
    order.measure->budget = absl::Milliseconds(300);
    const SessionReport report = TheGuest().Run(order);
    ASSERT_THAT(report.status, IsOk()) << static_cast<int>(method);
    EXPECT_THAT(TheGuest().Get(2, kN), Each(3.0F)) << static_cast<int>(method);
    std::printf("method %d: %.0f ns\n", static_cast<int>(method),
                report.outcome.timing->statistics.median);
  }
}

// What the driver lets a block have is what the server's table says of the device.
TEST(CudaModule, HasAllSharedMemoryOfTheDeviceAndNotAByteMore) {
  SKIP_WITHOUT_GPU();
  const std::int64_t most = Attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, 0);
  EXPECT_EQ(most, LaunchLimitsOf(TheGuest().device().info().traits).shared_bytes);
  const std::int64_t n = most / 4;
  for (std::int64_t i = 0; i < n; ++i) TheGuest().At(0)[i] = static_cast<float>(i);
  const auto run = [](std::int64_t elements, const std::string& bytes) {
    const std::string words = absl::StrCat("reverse x: f32[N] -> y: f32[N] grid (1) block (512) ",
                                           "shared ", bytes, " params x, y, n: int = N");
    return TheGuest()
        .Run(OrderOf(words.c_str(), {{"reverse"}}, {Floats(elements)}, {Floats(elements)}))
        .status;
  };
  const auto expect_all_of_it = [&] {
    TheGuest().At(1)[0] = TheGuest().At(1)[n - 1] = -1;
    ASSERT_THAT(run(n, absl::StrCat(most)), IsOk());
    EXPECT_EQ(TheGuest().At(1)[0], static_cast<float>(n - 1));
    EXPECT_EQ(TheGuest().At(1)[n - 1], 0);
  };
  expect_all_of_it();
  // With less, and again with what it had.
  ASSERT_THAT(run(100, "bytes(x)"), IsOk());
  expect_all_of_it();
  // The words are held against the device before the entry with its own memory is.
  EXPECT_THAT(run(n, absl::StrCat(most + 1)),
              StatusIs(kInvalid, AllOf(HasSubstr(absl::StrCat(most)), HasSubstr("shared"),
                                       HasSubstr(absl::StrCat(most + 1)))));
  EXPECT_FALSE(TheGuest().device().poisoned());
  expect_all_of_it();
}

// How many words of shared memory the last of some checked launches finds as those before left
// them; -1 if it fails.
float WordsLeft(GpuGuest& guest) {
  WorkerOrder order =
      OrderOf("leftover -> y: f32[1] grid (1) block (1) params y", {{"leftover"}}, {}, {Floats(1)});
  order.outputs[0].memory.size += 2 * kCheckMargin;
  order.measure = {.method = Method::kIsolated, .min_samples = 5, .max_samples = 5, .schedule = {}};
  order.checked_launches = 6;
  const SessionReport report = guest.Run(order);
  EXPECT_THAT(report.status, IsOk());
  return report.status.ok() ? guest.At(0)[kCheckMargin / sizeof(float)] : -1;
}

TEST(CudaModule, WhatLaunchesLeftInSharedMemoryIsGoneInTheLastCheckedOne) {
  SKIP_WITHOUT_GPU();
  static auto* const keeping = new GpuGuest(TheGuest().shared_device(), /*keep_shared=*/true);
  const float kept = WordsLeft(*keeping);
  ASSERT_GE(kept, 0);
  if (kept == 0) GTEST_SKIP() << "nothing is left in shared memory here";
  EXPECT_EQ(WordsLeft(TheGuest()), 0) << "without the defence there are " << kept;
}

TEST(CudaModule, LaunchesCooperatively) {
  SKIP_WITHOUT_GPU();
  const auto order = [](const char* grid) {
    const std::string words =
        std::string("everywhere x: f32[N] -> y: f32[N] block (128) scratch parts: f32[65536] ") +
        "params x, parts, y, n: int = N grid " + grid;
    return OrderOf(words.c_str(), {{"sum_everywhere", "", true}}, {Floats(1000)}, {Floats(1000)});
  };
  std::fill_n(TheGuest().At(0), 1000, 1.0F);
  ASSERT_THAT(TheGuest().Run(order("(64)")).status, IsOk());
  EXPECT_THAT(TheGuest().Get(1, 1000), Each(1000.0F));
  EXPECT_THAT(TheGuest().Run(order("(65536)")).status,
              StatusIs(kInvalid, HasSubstr("cudaErrorCooperativeLaunchTooLarge")));
  EXPECT_FALSE(TheGuest().device().poisoned());
}

TEST(CudaModule, LaunchesClusters) {
  SKIP_WITHOUT_GPU();
  if (TheGuest().device().info().traits.sm < 90) GTEST_SKIP() << "no clusters on this GPU";
  WorkerOrder order = OrderOf("neighbours -> y: f32[8] grid (8) block (1) cluster (4) params y",
                              {{"neighbours"}}, {}, {Floats(8)});
  ASSERT_THAT(TheGuest().Run(order).status, IsOk());
  EXPECT_THAT(TheGuest().Get(0, 8), ElementsAre(41, 42, 43, 40, 41, 42, 43, 40));
}

TEST(CudaModule, SetsVariables) {
  SKIP_WITHOUT_GPU();
  const auto order = [](double k, std::vector<ProgramGlobal> globals) {
    return OrderOf(
        "affine x: f32[N], o: f32[4] -> y: f32[N]; k: f64 = 1, h: i64 = 0 "
        "grid (1) block (32) params x, y, n: int = N",
        {{"affine"}}, {Floats(5), Floats(4)}, {Floats(5)}, std::move(globals),
        {k, std::int64_t{100}});
  };
  const std::vector<ProgramGlobal> all = {
      {"m", "scale", "k"}, {"m", "offsets", "o"}, {"m", "deep::hidden", "h"}};
  TheGuest().Put(0, {1, 2, 3, 4, 5});
  TheGuest().Put(1, {0.25, 0.5, 0.75, 1});
  ASSERT_THAT(TheGuest().Run(order(2, all)).status, IsOk());
  EXPECT_THAT(TheGuest().Get(2, 5), ElementsAre(102.25, 104.5, 106.75, 109, 110.25));
  ASSERT_THAT(TheGuest().Run(order(10, all)).status, IsOk());
  EXPECT_EQ(TheGuest().At(2)[0], 110.25);
  EXPECT_THAT(TheGuest().Run(order(1, {{"m", "no_such", "k"}})).status,
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no variable 'no_such'")));
  EXPECT_THAT(TheGuest().Run(order(1, {{"m", "scale", "o"}})).status,
              StatusIs(kInvalid, HasSubstr("the input has 16 bytes, the variable 4")));
}

TEST(CudaModule, SetsVariablesBeforeEachLaunch) {
  SKIP_WITHOUT_GPU();
  for (const Method method : {Method::kIsolated, Method::kBackToBack}) {
    WorkerOrder order = OrderOf("counted x: f32[1] -> y: f32[1] grid (1) block (1) params y",
                                {{"counted"}}, {Floats(1)}, {Floats(1)}, {{"m", "counter", "x"}});
    order.measure = {.method = method, .min_samples = 5, .max_samples = 5, .schedule = {}};
    TheGuest().Put(0, {7});
    const SessionReport report = TheGuest().Run(order);
    ASSERT_THAT(report.status, IsOk());
    EXPECT_GT(report.outcome.launches[0].count, 5);
    EXPECT_EQ(TheGuest().At(1)[0], 7) << static_cast<int>(method);
  }
}

TEST(CudaModule, BringsBackWhatIsPrinted) {
  SKIP_WITHOUT_GPU();
  const auto run = [](std::int64_t n) {
    return TheGuest()
        .Run(OrderOf("say x: f32[N] -> y: f32[N] grid (1) block (1) params x, n: int = N",
                     {{"say"}}, {Floats(n)}, {Floats(n)}))
        .outcome;
  };
  TheGuest().Put(0, {1.5, 2});
  EXPECT_EQ(run(2).printed, "x[0] is 1.5\nx[1] is 2\n");
  const Outcome much = run(4000);
  EXPECT_THAT(much.printed, StartsWith("x[0] is 1.5\n"));
  EXPECT_LE(much.printed.size(), kMostPrinted);
  EXPECT_TRUE(much.printed_truncated);
  EXPECT_THAT(run(0).printed, IsEmpty());
}

TEST(CudaModule, GivesListsByTableAndByValue) {
  SKIP_WITHOUT_GPU();
  const OperandValue list{
      .is_list = true,
      .tensors = {{.dtype = DType::kF32, .shape = {2}}, {.dtype = DType::kF32, .shape = {3}}}};
  std::fill_n(TheGuest().At(0), 32, 4.0F);  // The second begins 64 bytes on.
  ASSERT_THAT(TheGuest()
                  .Run(OrderOf("twice a: f32[*]... -> c: f32[*]... grid (count(a)) block (32) "
                               "params table(a), table(c), sizes(a), n: int = count(a)",
                               {{"double_all"}}, {list}, {list}))
                  .status,
              IsOk());
  EXPECT_THAT(TheGuest().Get(1, 2), Each(8.0F));
  EXPECT_THAT(std::vector<float>(TheGuest().At(1) + 16, TheGuest().At(1) + 19), Each(8.0F));
  ASSERT_THAT(TheGuest()
                  .Run(OrderOf("firsts a: f32[*]... -> y: f32[8] grid (1) block (8) "
                               "params pointers(a), y",
                               {{"firsts"}}, {list}, {Floats(8)}))
                  .status,
              IsOk());
  EXPECT_THAT(TheGuest().Get(1, 8), ElementsAre(4, 4, -1, -1, -1, -1, -1, -1));
}

TEST(CudaModule, GivesValuesOfEachType) {
  SKIP_WITHOUT_GPU();
  const WorkerOrder order = OrderOf(
      "types x: f32[N] -> y: f32[8]; e: f64 = 0.5 grid (1) block (1) params y, a: int = 0 - N, "
      "b: unsigned = N, c: int64 = 0 - 2*N, d: uint64 = 3*N, e: float = e, f: double = e, "
      "g: bool = N == 5, null",
      {{"every_type"}}, {Floats(5)}, {Floats(8)}, {}, {0.5});
  ASSERT_THAT(TheGuest().Run(order).status, IsOk());
  EXPECT_THAT(TheGuest().Get(1, 8), ElementsAre(-5, 5, -10, 15, 0.5, 0.5, 1, 1));
}

TEST(CudaModule, RunsLaunchesInOrderWithScratch) {
  SKIP_WITHOUT_GPU();
  TheGuest().Put(0, {1, 2, 3});
  const WorkerOrder order = OrderOf(
      "fourth x: f32[N] -> y: f32[N] grid (1) block (32) scratch t: f32[N] params x, t, n: int = N",
      {{"square"}, {"square", "params t, y, n: int = N"}}, {Floats(3)}, {Floats(3)});
  ASSERT_THAT(TheGuest().Run(order).status, IsOk());
  EXPECT_THAT(TheGuest().Get(1, 3), ElementsAre(1, 16, 81));
}

TEST(CudaModule, SaysWhatIsWrongAndWorksOn) {
  SKIP_WITHOUT_GPU();
  EXPECT_THAT(TheGuest().Run(OrderOf(kSquare, {{"no_such"}}, {Floats(3)}, {Floats(3)})).status,
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no entry 'no_such'")));
  WorkerOrder order = OrderOf(kSquare, {{"square"}}, {Floats(3)}, {Floats(3)});
  order.program->modules[0].id = "n";
  order.program->program.launches[0].module = "n";
  order.program->modules[0].code = {.offset = 5 * kStride, .size = 4096};  // Zeros.
  EXPECT_THAT(TheGuest().Run(order).status,
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("kernel image")));
  EXPECT_FALSE(TheGuest().device().poisoned());
  TheGuest().Put(0, {1, 2, -3});
  ASSERT_THAT(TheGuest().Run(OrderOf(kSquare, {{"square"}}, {Floats(3)}, {Floats(3)})).status,
              IsOk());
  EXPECT_THAT(TheGuest().Get(1, 3), ElementsAre(1, 4, 9));
}

[[noreturn]] void FaultAndTell() {
  GpuGuest guest;
  const SessionReport report = guest.Run(
      OrderOf("bad -> y: f32[1] grid (1) block (1) params y", {{"illegal"}}, {}, {Floats(1)}));
  if (DetailsOf(report.status).reason != "KERNEL_FAULT") _exit(11);
  if (!report.spoiled) _exit(12);
  if (!guest.device().poisoned()) _exit(13);
  _exit(0);
}

TEST(CudaModuleFaultDeathTest, AnIllegalAddressIsTheKernelsFault) {
  SKIP_WITHOUT_GPU();
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(FaultAndTell(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace gridclock
