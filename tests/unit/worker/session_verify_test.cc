// How a session verifies: with memory of the device, within a time, and without ending the process.
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "kernels/worker/session.h"
#include "tests/support/fake_clock.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

class OneThread final : public Threads {
 public:
  int count() const override { return 1; }
  void ParallelFor(std::int64_t n, std::int64_t,
                   absl::FunctionRef<void(std::int64_t, std::int64_t)> body) override {
    if (n > 0) body(0, n);
  }
};

// Works at once, and has so much memory.
class SmallDevice final : public Device {
 public:
  class Buffer final : public DeviceBuffer {
   public:
    explicit Buffer(std::uint64_t bytes) : bytes_(bytes) {}
    void* data() const override { return const_cast<std::byte*>(bytes_.data()); }
    std::uint64_t size() const override { return bytes_.size(); }

   private:
    std::vector<std::byte> bytes_;
  };

  SmallDevice() { info_.traits.kind = "cpu"; }

  std::uint64_t memory = 1 << 20;

  const DeviceInfo& info() const override { return info_; }
  absl::StatusOr<std::unique_ptr<DeviceBuffer>> Allocate(std::uint64_t bytes) override {
    if (bytes > memory) return absl::ResourceExhaustedError(absl::StrCat("want ", bytes));
    return std::make_unique<Buffer>(bytes);
  }
  bool uses_host_memory() const override { return true; }
  absl::Status CopyIn(void*, std::span<const std::byte>) override { return absl::OkStatus(); }
  absl::Status CopyOut(std::span<std::byte>, const void*) override { return absl::OkStatus(); }
  absl::Status Copy(void*, const void*, std::uint64_t) override { return absl::OkStatus(); }
  absl::Status Fill(void*, std::byte, std::uint64_t) override { return absl::OkStatus(); }
  absl::Status Generate(const Generator& generator, DType dtype, std::int64_t first,
                        std::int64_t count, void* to) override {
    gridclock::Generate(
        generator, dtype, first,
        {static_cast<std::byte*>(to), static_cast<std::size_t>(count * SizeOf(dtype))});
    return absl::OkStatus();
  }
  absl::Status Synchronize() override { return absl::OkStatus(); }
  Threads* threads() override { return &threads_; }
  void* stream() override { return nullptr; }
  std::span<const Method> methods() const override { return methods_; }
  absl::StatusOr<TimedLaunch> Time(Method, absl::FunctionRef<absl::Status()> launch) override {
    const absl::Status status = launch();
    if (!status.ok()) return status;
    return TimedLaunch{
        .duration_ns = 1000, .host_start_ns = 1, .host_returned_ns = 2, .host_end_ns = 1001};
  }
  absl::Status PrepareCache(L2State) override { return absl::OkStatus(); }
  Conditions Observe() override { return {}; }
  // What it was asked a roofline for.
  mutable std::optional<DType> computes_in;
  mutable double part_of_rate = 0;
  mutable std::int64_t moves = 0, writes = 0;
  Roofline RooflineOf(const Work& work, L2State) const override {
    computes_in = work.dtype;
    part_of_rate = work.part_of_rate;
    moves = work.bytes;
    writes = work.written;
    return {};
  }

 private:
  DeviceInfo info_;
  OneThread threads_;
  std::vector<Method> methods_ = {Method::kIsolated};
};

class Host final : public SessionHost {
 public:
  bool cancelled_later = false;  // From the second question on: the first is before the launch.
  bool Cancelled(const WorkerOrder&) override { return asked_++ > 0 && cancelled_later; }
  void OnSamples(const WorkerOrder&, std::int64_t, std::span<const double>, bool) override {}
  std::atomic<std::int64_t>& kernel_since_ns() override { return since_ns_; }

 private:
  int asked_ = 0;
  std::atomic<std::int64_t> since_ns_{0};
};

FakeClock& TheClock() {
  static FakeClock clock;
  return clock;
}

using Compute = decltype(Reference::compute);

// Leaves y as it is, which holds zeros; the reference is the test's.
KernelDef Kernel(Compute compute) {
  KernelDef def;
  def.words = "x: T[*] -> y: T[*] where T in {f32}";
  def.reference = {.units = [](const Binding&) -> std::int64_t { return 1000; },
                   .unit_elements = [](const Binding&) -> std::int64_t { return 1; },
                   .compute = compute,
                   .accumulation = [](const Binding&) -> std::int64_t { return 1; },
                   // Each unit is a part of its own.
                   .unit_terms = [](const Binding&) -> std::int64_t { return 1 << 21; }};
  def.cpu = {{"naive", "", [](const Call&) { return absl::OkStatus(); }}};
  return def;
}

class SessionVerifyTest : public ::testing::Test {
 protected:
  SessionReport Verify(Compute compute, std::optional<DType> arithmetic = {},
                       double part_of_rate = 1) {
    KernelDef def = Kernel(compute);
    def.cpu[0].arithmetic = arithmetic;
    def.cpu[0].part_of_rate = part_of_rate;
    auto registry = Registry::Create({{"some", std::move(def)}});
    EXPECT_THAT(registry, IsOk());
    alignas(64) std::byte arena[8192] = {};
    auto session = Session::Create(device_, *registry, TheClock(), arena);
    EXPECT_THAT(session, IsOk());
    const OperandValue value{.is_list = false,
                             .tensors = {{.dtype = DType::kF32, .shape = {1000}}}};
    WorkerOrder order;
    order.id = 1;
    order.kernel = "some";
    order.variant = "naive";
    WorkerOperand& x = order.inputs.emplace_back();
    x.value = value;
    x.memory = {.offset = 0, .size = 4032};
    WorkerOperand& y = order.outputs.emplace_back(x);
    y.memory.offset = 4096;
    order.verify = true;
    order.kernel_time_limit = absl::Seconds(30);
    return (*session)->Run(order, host_);
  }

  SmallDevice device_;
  Host host_;
};

void Zero(const Binding&, absl::FunctionRef<double(std::size_t, std::int64_t)>, std::int64_t,
          std::size_t, std::span<double> result) {
  result[0] = 0;
}

TEST_F(SessionVerifyTest, TheRooflineIsThatOfTheInputsUnlessTheVariantSaysOtherwise) {
  EXPECT_THAT(Verify(Zero).status, IsOk());
  EXPECT_EQ(device_.computes_in, DType::kF32);
  EXPECT_EQ(device_.part_of_rate, 1);
  EXPECT_THAT(Verify(Zero, DType::kF16, 0.5).status, IsOk());
  EXPECT_EQ(device_.computes_in, DType::kF16);
  EXPECT_EQ(device_.part_of_rate, 0.5);
  EXPECT_EQ(device_.moves, 8000);
  EXPECT_EQ(device_.writes, 4000) << "what is written may stay in a cache";
}

TEST_F(SessionVerifyTest, CountsTheMemoryOfTheVerification) {
  const SessionReport report = Verify(Zero);

  ASSERT_THAT(report.status, IsOk());
  EXPECT_EQ(report.outcome.peak_device_bytes, 2 * 4032u + 128u);
  EXPECT_EQ(report.outcome.verification->mismatches, 0);
}

TEST_F(SessionVerifyTest, TooLittleMemoryForTheVerificationIsSaidSo) {
  device_.memory = 64;

  const SessionReport report = Verify(Zero);

  EXPECT_THAT(report.status, StatusIs(absl::StatusCode::kResourceExhausted,
                                      HasSubstr("verifying 'some/naive': want 128")));
  EXPECT_FALSE(report.spoiled);
}

std::int64_t PeakKib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

// A client's bytes would take sixteen times their size of the worker.
TEST_F(SessionVerifyTest, AReferenceThatComputesAGigabyteTogetherIsRefusedBeforeItHasMemory) {
  constexpr std::int64_t kElements = std::int64_t{1} << 27;
  KernelDef def = Kernel(Zero);
  def.words = "x: T[*] -> y: T[*] where T in {u8}";
  def.reference.units = [](const Binding&) -> std::int64_t { return 1; };
  def.reference.unit_elements = [](const Binding&) -> std::int64_t { return kElements; };
  ASSERT_OK_AND_ASSIGN(const Registry registry, Registry::Create({{"some", std::move(def)}}));
  // Its pages are never touched.
  const std::unique_ptr<std::byte[]> memory(new std::byte[2 * kElements]);
  ASSERT_OK_AND_ASSIGN(const auto session,
                       Session::Create(device_, registry, TheClock(),
                                       {memory.get(), static_cast<std::size_t>(2 * kElements)}));
  WorkerComparison comparison;
  comparison.kernel = "some";
  WorkerOperand operand;
  operand.value = {.is_list = false, .tensors = {{.dtype = DType::kU8, .shape = {kElements}}}};
  operand.memory = {.offset = 0, .size = static_cast<std::uint64_t>(kElements)};
  comparison.inputs = {operand};
  comparison.outputs = {operand};
  comparison.output_names = {"y"};
  comparison.launches = {.offset = static_cast<std::uint64_t>(kElements),
                         .size = static_cast<std::uint64_t>(kElements)};
  comparison.launch_bytes = static_cast<std::uint64_t>(kElements);
  comparison.seed_changes = {0};
  const std::int64_t before = PeakKib();

  const SessionReport report = session->Compare(comparison, [] { return false; });

  EXPECT_THAT(report.status,
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("2147483648 bytes")));
  EXPECT_THAT(report.status, ReasonIs("TOO_LARGE"));
  EXPECT_LT(PeakKib() - before, 64 * 1024);
}

TEST_F(SessionVerifyTest, AReferenceThatGetsNoMemoryDoesNotEndTheProcess) {
  const SessionReport report =
      Verify([](const Binding&, absl::FunctionRef<double(std::size_t, std::int64_t)>, std::int64_t,
                std::size_t, std::span<double>) { throw std::bad_alloc(); });

  EXPECT_THAT(report.status, StatusIs(absl::StatusCode::kResourceExhausted,
                                      HasSubstr("verifying 'some/naive': out of memory")));
  EXPECT_THAT(report.status, ReasonIs("MEMORY_FULL"));
}

TEST_F(SessionVerifyTest, ALongVerificationEndsItselfAndDoesNotBlameTheKernel) {
  const SessionReport report =
      Verify([](const Binding&, absl::FunctionRef<double(std::size_t, std::int64_t)>, std::int64_t,
                std::size_t, std::span<double> result) {
        TheClock().Advance(absl::Seconds(1));
        result[0] = 0;
      });

  EXPECT_THAT(report.status,
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("verifying it took longer")));
  EXPECT_THAT(report.status, ReasonIs("VERIFY_TIME_LIMIT"));
  EXPECT_TRUE(report.launched);
}

TEST_F(SessionVerifyTest, AVerificationCanBeCancelled) {
  host_.cancelled_later = true;

  EXPECT_THAT(Verify(Zero).status,
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("while verifying")));
}

TEST_F(SessionVerifyTest, AToleranceWiderThanTheValuesIsUnverified) {
  const SessionReport report =
      Verify([](const Binding&, absl::FunctionRef<double(std::size_t, std::int64_t)>, std::int64_t,
                std::size_t, std::span<double> result) { result[0] = 1e-40; });

  ASSERT_THAT(report.status, IsOk());
  EXPECT_EQ(report.outcome.verification->mismatches, 0);
  EXPECT_THAT(report.outcome.flags, Contains(Flag::kUnverified));
}

}  // namespace
}  // namespace gridclock
