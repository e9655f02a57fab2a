// A server with a GPU, called over the wire: results, streams, and what the faults of a kernel
// cost. Skipped where there is no GPU.
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/support/raw_call.h"
#include "tests/support/server_process.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::HasSubstr;

constexpr int kFaults = 25;
constexpr absl::Duration kFaultIsTold = absl::Seconds(1);
constexpr absl::Duration kBackInService = absl::Seconds(2);

v1::RunRequest OnGpu(v1::RunRequest request) {
  request.set_device("cuda:0");
  return request;
}

absl::StatusOr<v1::RunResponse> Answer(const std::shared_ptr<grpc::Channel>& channel,
                                       const v1::RunRequest& request) {
  const RawResult result = RawCall(channel, kRunMethod, {request.SerializeAsString()});
  if (!result.status.ok()) return result.status;
  v1::RunResponse response;
  if (!response.ParseFromString(result.messages.at(0))) {
    return absl::InternalError("want a RunResponse");
  }
  return response;
}

std::vector<float> FloatsOf(const std::string& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

std::vector<float> Normal(std::size_t n, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(n);
  for (float& value : x) value = normal(random);
  return x;
}

bool HasGpu() {
  const std::string command = BinaryPath("gridclock-test-worker") + " --list-devices";
  std::string listed;
  if (FILE* out = popen(command.c_str(), "r"); out != nullptr) {
    char text[4096];
    while (fgets(text, sizeof(text), out) != nullptr) listed += text;
    pclose(out);
  }
  return absl::StrContains(listed, "cuda");
}

class GpuServerTest : public ::testing::Test {
 protected:
  void Start(const std::string& devices = "cuda:0") {
    if (!HasGpu()) GTEST_SKIP() << "no GPU here";
    ASSERT_OK_AND_ASSIGN(server_,
                         ServerProcess::Start({.flags = {absl::StrCat("--devices=", devices)}}));
    channel_ = Connect(server_->address());
  }
  // The server's own process stays the same.
  void TearDown() override {
    if (server_ == nullptr) return;
    EXPECT_EQ(kill(server_->pid(), 0), 0);
    server_->Signal(SIGTERM);
    EXPECT_EQ(server_->Wait(), 0) << server_->Log();
  }

  absl::Status Square() {
    auto answer = Answer(channel_, OnGpu(InlineRequest("square", {1, -2, 3})));
    if (!answer.ok()) return answer.status();
    const std::vector<float> y = FloatsOf(answer->outputs(0).data());
    return y == std::vector<float>{1, 4, 9} ? absl::OkStatus()
                                            : absl::InternalError("square gave wrong numbers");
  }
  absl::Status Fault(const std::string& kind, double limit_seconds = 0) {
    v1::RunRequest request;
    request.set_kernel("fault");
    (*request.mutable_attributes())["kind"].set_word(kind);
    request.set_kernel_time_limit_seconds(limit_seconds);
    return Answer(channel_, OnGpu(request)).status();
  }
  // Calls the kernel again and again: each fault is told in time, and the next kernel is served.
  void FaultOften(const std::string& kind, absl::StatusCode code, const std::string& reason,
                  absl::Duration limit = absl::ZeroDuration()) {
    absl::Duration slowest_told, slowest_back;
    for (int i = 0; i < kFaults; ++i) {
      const absl::Time start = absl::Now();
      const absl::Status status = Fault(kind, absl::ToDoubleSeconds(limit));
      const absl::Time told = absl::Now();
      EXPECT_EQ(status.code(), code) << status;
      EXPECT_THAT(status, ReasonIs(reason));
      EXPECT_TRUE(Eventually([&] { return Square().ok(); }, absl::Seconds(10)));
      slowest_told = std::max(slowest_told, told - start - limit);
      slowest_back = std::max(slowest_back, absl::Now() - told);
    }
    std::printf("%-16s %d times: told within %s, served again within %s\n", kind.c_str(), kFaults,
                absl::FormatDuration(slowest_told).c_str(),
                absl::FormatDuration(slowest_back).c_str());
    EXPECT_LE(slowest_told, kFaultIsTold);
    EXPECT_LE(slowest_back, kBackInService);
  }

  std::unique_ptr<ServerProcess> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

#define START_OR_SKIP(...) \
  Start(__VA_ARGS__);      \
  if (IsSkipped()) return; \
  ASSERT_NE(server_, nullptr)

TEST_F(GpuServerTest, ComputesWhatTheClientComputes) {
  START_OR_SKIP();
  for (const std::size_t n : {1, 3, 255, 1000, 4097, 100'003}) {
    const std::vector<float> x = Normal(n, n);
    ASSERT_OK_AND_ASSIGN(const auto answer, Answer(channel_, OnGpu(InlineRequest("square", x))));
    const std::vector<float> y = FloatsOf(answer.outputs(0).data());
    ASSERT_EQ(y.size(), n);
    for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(y[i], x[i] * x[i]) << i << " of " << n;
    EXPECT_EQ(answer.summary().device(), "cuda:0");
    EXPECT_GT(answer.summary().timing().statistics().median_ns(), 0);
  }
}

TEST_F(GpuServerTest, InPlaceAndVerifiedCallsWork) {
  START_OR_SKIP();
  v1::RunRequest request = OnGpu(InlineRequest("square", Normal(5000, 7)));
  request.add_in_place("y");
  request.set_verify(true);
  ASSERT_OK_AND_ASSIGN(const auto answer, Answer(channel_, request));
  EXPECT_EQ(answer.summary().verification().checked(), 5000);
  EXPECT_EQ(answer.summary().verification().mismatches(), 0);
}

TEST_F(GpuServerTest, ATensorBeyondTheArenaIsMadeAndLeftOnTheDevice) {
  START_OR_SKIP();
  v1::RunRequest request;
  request.set_kernel("square");
  v1::Input& x = *request.add_inputs();
  x.set_name("x");
  x.mutable_spec()->set_dtype(v1::F32);
  x.mutable_spec()->add_dims(std::int64_t{1} << 30);  // 4 GiB; the arena has 256 MiB.
  x.mutable_generate()->set_kind(v1::Generator::RANDN);
  request.add_outputs()->set_name("y");
  request.mutable_outputs(0)->set_sink(v1::OutputRequest::DISCARD);
  request.mutable_measure()->set_method(v1::DEVICE_TIME);
  request.mutable_measure()->set_budget_seconds(0.2);
  ASSERT_OK_AND_ASSIGN(const auto answer, Answer(channel_, OnGpu(request)));
  EXPECT_GE(answer.summary().peak_device_bytes(), std::uint64_t{8} << 30);
}

TEST_F(GpuServerTest, G5_DeviceMemoryThatIsNotThereIsRefusedWithTheNumbers) {
  START_OR_SKIP();
  v1::RunRequest request;
  request.set_kernel("square");
  v1::Input& x = *request.add_inputs();
  x.set_name("x");
  x.mutable_spec()->set_dtype(v1::F64);
  x.mutable_spec()->add_dims(std::int64_t{1} << 37);  // 1 TiB, and as much for the output.
  x.mutable_generate()->set_kind(v1::Generator::ONES);
  request.add_outputs()->set_name("y");
  request.mutable_outputs(0)->set_sink(v1::OutputRequest::DISCARD);
  const absl::Status status = Answer(channel_, OnGpu(request)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("2199023255552"));
  EXPECT_THAT(Square(), IsOk());
}

TEST_F(GpuServerTest, AKindOfDeviceThatIsNotHereIsNamed) {
  START_OR_SKIP();
  v1::RunRequest request = InlineRequest("square", {1});
  request.set_device("cpu");
  const absl::Status status = Answer(channel_, request).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(status, ReasonIs("NO_DEVICE"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("cuda"));
}

TEST_F(GpuServerTest, G1_IllegalAddress) {
  START_OR_SKIP();
  FaultOften("illegal_address", absl::StatusCode::kFailedPrecondition, "KERNEL_FAULT");
}
TEST_F(GpuServerTest, G1_FailedAssert) {
  START_OR_SKIP();
  FaultOften("assert", absl::StatusCode::kFailedPrecondition, "KERNEL_FAULT");
}
TEST_F(GpuServerTest, G1_MisalignedAddress) {
  START_OR_SKIP();
  FaultOften("misaligned", absl::StatusCode::kFailedPrecondition, "KERNEL_FAULT");
}
TEST_F(GpuServerTest, G4_EndlessKernel) {
  START_OR_SKIP();
  FaultOften("endless", absl::StatusCode::kDeadlineExceeded, "KERNEL_TIME_LIMIT", absl::Seconds(2));
}

TEST_F(GpuServerTest, RequestsOnOtherDevicesNeverNotice) {
  START_OR_SKIP("cpu,cuda:0");
  std::atomic<bool> stop{false};
  std::atomic<int> right{0};
  absl::Status first_loss;
  std::thread other([&] {
    const auto channel = Connect(server_->address());
    while (!stop) {
      v1::RunRequest request = InlineRequest("square", {1, 2, 3});
      request.set_device("cpu");
      const auto answer = Answer(channel, request);
      if (!answer.ok()) {
        first_loss.Update(answer.status());
      } else if (FloatsOf(answer->outputs(0).data()) == std::vector<float>{1, 4, 9}) {
        ++right;
      }
    }
  });
  for (int i = 0; i < 5; ++i) {
    EXPECT_FALSE(Fault("illegal_address").ok());
    EXPECT_TRUE(Eventually([&] { return Square().ok(); }));
  }
  stop = true;
  other.join();
  EXPECT_THAT(first_loss, IsOk());
  EXPECT_GT(right, 100);
}

TEST_F(GpuServerTest, G14_AKilledServerLeavesTheGpuFree) {
  START_OR_SKIP();
  ASSERT_THAT(Square(), IsOk());
  const std::vector<pid_t> workers = server_->Workers();
  ASSERT_EQ(workers.size(), 1u);
  server_->Signal(SIGKILL);
  EXPECT_EQ(server_->Wait(), 128 + SIGKILL);
  EXPECT_TRUE(Eventually([&] { return kill(workers[0], 0) != 0; }, absl::Seconds(5)));
  server_.reset();
}

}  // namespace
}  // namespace gridclock
