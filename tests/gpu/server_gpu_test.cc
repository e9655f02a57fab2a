// A server and its workers on real GPUs, over the wire: results, sizes, and faults that cost one
// call. GRIDCLOCK_GPU_ROUNDS sets how often each fault strikes (25).
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <signal.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "gridclock/v1/system.pb.h"
#include "tests/gpu/server_gpu_fixture.h"

namespace gridclock {
namespace {

using ::testing::AllOf;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::Lt;
using Code = absl::StatusCode;

// The goals of a fault: the code within this time of the fault or limit, and the next
// kernel within that time of the answer.
constexpr absl::Duration kAnswerWithin = absl::Seconds(1);
constexpr absl::Duration kNextWithin = absl::Seconds(2);
// So much later than without faults the slowest call on another GPU may be answered.
constexpr absl::Duration kOthersWithin = absl::Milliseconds(50);
constexpr absl::Duration kBefore = absl::Seconds(5);  // How long calls go on without faults.

const int kRounds = RoundsOr(25);

// How a fault's call ends, and how long it is under way by its own will.
struct Ends {
  Code code;
  const char* reason;
  absl::Duration takes;
};
constexpr Ends kFaulted{Code::kFailedPrecondition, "KERNEL_FAULT", absl::ZeroDuration()};
constexpr Ends kTooLong{Code::kDeadlineExceeded, "KERNEL_TIME_LIMIT", absl::Seconds(2)};
constexpr Ends kNoMemory{Code::kResourceExhausted, "MEMORY_FULL", absl::ZeroDuration()};

class ServerGpuTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    gpus_ = Gpus();
    if (gpus_ == 0) return;
    auto server =
        ServerProcess::Start({.flags = {"--devices=cuda", "--exit-on-error"}, .worker = kWorker});
    ASSERT_THAT(server, IsOk());
    server_ = std::move(*server);
  }
  static void TearDownTestSuite() { server_ = nullptr; }
  void SetUp() override {
    if (gpus_ == 0) GTEST_SKIP() << "no GPU here";
    ASSERT_NE(server_, nullptr);
    channel_ = Connect(server_->address());
    ASSERT_TRUE(Eventually([&] { return Square("").ok(); }, absl::Seconds(60)));
  }

  absl::Status Square(const std::string& device) {
    v1::RunRequest request = InlineRequest("square", {1, 2, 3});
    request.set_device(device);
    return Run(request).status();
  }
  static v1::RunRequest Fault(const std::string& kind) {
    v1::RunRequest request;
    request.set_kernel("fault");
    request.set_device("cuda:0");
    (*request.mutable_attributes())["kind"].set_word(kind);
    return request;
  }
  absl::StatusOr<v1::RunResponse> Run(const v1::RunRequest& request) const {
    const RawResult result = RawCall(channel_, kRunMethod, {request.SerializeAsString()});
    if (!result.status.ok()) return result.status;
    v1::RunResponse response;
    if (result.messages.empty() || !response.ParseFromString(result.messages[0])) {
      return absl::InternalError("no RunResponse came");
    }
    return response;
  }
  // How many of some calls at once, each of 5 ms, each device served; "none" those that failed.
  std::map<std::string, int> ServedBy(const std::string& wanted) const {
    constexpr int kAtOnce = 8, kCallsOfEach = 20;
    v1::RunRequest request;
    request.set_kernel("spin");
    request.set_device(wanted);
    (*request.mutable_attributes())["ns"].set_i64(5'000'000);
    absl::Mutex mutex;
    std::map<std::string, int> served;
    std::vector<std::thread> clients;
    clients.reserve(kAtOnce);
    for (int i = 0; i < kAtOnce; ++i) {
      clients.emplace_back([&] {
        for (int call = 0; call < kCallsOfEach; ++call) {
          const auto response = Run(request);
          EXPECT_THAT(response, IsOk());
          const absl::MutexLock lock(&mutex);
          ++served[response.ok() ? response->summary().device() : "none"];
        }
      });
    }
    for (std::thread& client : clients) client.join();
    return served;
  }
  std::vector<v1::Device> Devices() const {
    const RawResult result = RawCall(channel_, kListDevices, {""});
    v1::ListDevicesResponse response;
    if (result.messages.empty() || !response.ParseFromString(result.messages[0])) return {};
    return {response.devices().begin(), response.devices().end()};
  }
  void Strike(const std::string& kind, const Ends& ends, int rounds = kRounds);
  void StrikeBesideOthers(const std::string& kind, const Ends& ends);

  static int gpus_;
  static std::unique_ptr<ServerProcess> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

int ServerGpuTest::gpus_ = 0;
std::unique_ptr<ServerProcess> ServerGpuTest::server_;

TEST_F(ServerGpuTest, DevicesSayWhatTheyAre) {
  const std::vector<v1::Device> devices = Devices();
  ASSERT_EQ(devices.size(), static_cast<std::size_t>(gpus_));
  for (const v1::Device& device : devices) {
    EXPECT_EQ(device.kind(), "cuda");
    EXPECT_TRUE(device.own_memory());
    EXPECT_GE(device.compute_capability(), 75);
    EXPECT_GT(device.units(), 0);
    EXPECT_GT(device.memory_bytes(), 0U);
    EXPECT_GT(device.memory_bytes_per_second(), 1e11);
    EXPECT_GT(device.l2_bytes(), 0U);
    EXPECT_GT(device.launch_floor_ns(), 0);
    EXPECT_FALSE(device.driver().empty());
    EXPECT_FALSE(device.cuda().empty());
    EXPECT_FALSE(device.methods().empty());
    EXPECT_FALSE(device.flop_rates().empty());
    EXPECT_THAT(Square(device.uuid()), IsOk());
  }
}

// NVML, worker, link, server and page: what an operator's dashboard shows of a GPU. It is asked
// while the GPU waits for work.
TEST_F(ServerGpuTest, TheMetricsPageTellsTheStateOfEachGpu) {
  for (const v1::Device& device : Devices()) {
    const std::string label = absl::StrCat("{device=\"", device.name(), "\"");
    const auto value = [&](const std::string& name, const std::string& more = "") {
      return server_->Metric(absl::StrCat("gridclock_device_", name, label, more)).value_or(0);
    };
    EXPECT_THAT(Square(device.name()), IsOk());
    EXPECT_TRUE(Eventually([&] { return value("memory_bytes", ",state=\"used\"") > 0; }));
    EXPECT_EQ(value("info", absl::StrCat(",uuid=\"", device.uuid(), "\"")), 1) << device.uuid();
    EXPECT_THAT(value("temperature_celsius"), AllOf(Gt(10), Lt(120)));
    EXPECT_THAT(value("power_watts"), AllOf(Gt(5), Lt(3000)));
    EXPECT_THAT(value("clock_hertz", ",clock=\"sm\""), AllOf(Gt(1e8), Lt(5e9)));
    EXPECT_THAT(value("clock_hertz", ",clock=\"memory\""), AllOf(Gt(1e8), Lt(2e10)));
    const double total = value("memory_bytes", ",state=\"total\"");
    EXPECT_EQ(total, static_cast<double>(device.memory_bytes()));
    // A context alone takes a hundred megabytes.
    EXPECT_THAT(value("memory_bytes", ",state=\"used\""), AllOf(Gt(1e8), Lt(total)));
  }
}

TEST_F(ServerGpuTest, ValuesGoThereAndComeBack) {
  v1::RunRequest request = InlineRequest("square", {1, -2, 3, 0.5});
  request.set_verify(true);
  for (const bool in_place : {false, true}) {
    if (in_place) request.add_in_place("y");
    const auto response = Run(request);
    ASSERT_THAT(response, IsOk());
    const std::string& data = response->outputs(0).data();
    const auto* y = reinterpret_cast<const float*>(data.data());
    EXPECT_EQ(std::vector<float>(y, y + 4), (std::vector<float>{1, 4, 9, 0.25}));
    EXPECT_EQ(response->summary().verification().mismatches(), 0);
    EXPECT_EQ(response->summary().verification().checked(), 4);
  }
}

TEST_F(ServerGpuTest, FiveBillionElementsAreMadeCheckedAndNotReturned) {
  constexpr std::int64_t kMany = 5'300'000'000;
  if (Devices()[0].memory_bytes() < std::uint64_t{2} * 4 * kMany)
    GTEST_SKIP() << "too little memory";
  v1::RunRequest request = Made(kMany);
  request.set_verify(true);
  const auto response = Run(request);
  ASSERT_THAT(response, IsOk());
  const v1::Verification& found = response->summary().verification();
  EXPECT_EQ(found.mismatches(), 0) << found.first_mismatch();
  EXPECT_EQ(found.total(), kMany);
  EXPECT_GE(found.checked(), 100'000'000);
  EXPECT_GE(response->summary().peak_device_bytes(), std::uint64_t{2} * 4 * kMany);
}

// Of "want 9 bytes of device memory, 3 of 12 are free": 3 and 12.
std::pair<std::int64_t, std::int64_t> FreeAndAll(const absl::Status& status) {
  const std::vector<std::string> told = absl::StrSplit(status.message(), "device memory, ");
  long long free = -1, all = -1;
  std::sscanf(told.back().c_str(), "%lld of %lld are free", &free, &all);
  return {free, all};
}

TEST_F(ServerGpuTest, G5_TooMuchIsRefusedInNumbersAndTheNextCallWorks) {
  const auto bytes = static_cast<std::int64_t>(Devices()[0].memory_bytes());
  const auto never = Run(Made(bytes / 4));
  EXPECT_THAT(never, StatusIs(Code::kResourceExhausted, HasSubstr(absl::StrCat(bytes))));
  EXPECT_THAT(never, ReasonIs("TOO_LARGE"));
  // All of it but 8 MiB, of which the driver holds more: the result has no room beside the input.
  const std::int64_t elements = (bytes / 8 - (1 << 20)) / 64 * 64;
  const auto not_now = Run(Made(elements));
  EXPECT_THAT(not_now, StatusIs(Code::kResourceExhausted,
                                HasSubstr(absl::StrCat("output 0 of 'square/vec4', beside ",
                                                       4 * elements, " bytes before: want ",
                                                       4 * elements, " bytes of device memory"))));
  EXPECT_THAT(not_now, ReasonIs("MEMORY_FULL"));
  const auto [free, all] = FreeAndAll(not_now.status());
  EXPECT_THAT(all, AllOf(Gt(4 * elements), Lt(bytes)));
  EXPECT_THAT(free, AllOf(Gt(0), Lt(4 * elements), Le(all - 4 * elements)));
  EXPECT_THAT(Square("cuda:0"), IsOk());
}

TEST_F(ServerGpuTest, AKindThatIsNotHereIsSaidSo) {
  EXPECT_THAT(Square("cpu"), AllOf(StatusIs(Code::kFailedPrecondition, HasSubstr("'cuda:0'")),
                                   ReasonIs("NO_DEVICE")));
}

// Calls one after the other, until it is ended, on a device that another one's faults must not
// reach.
class Others {
 public:
  explicit Others(std::function<absl::Status()> call)
      : thread_([this, call = std::move(call)] {
          while (!stop_) {
            const absl::Time start = absl::Now();
            ++(call().ok() ? good_ : bad_);
            slowest_ = std::max(slowest_, absl::Now() - start);
          }
        }) {}
  Others(const Others&) = delete;
  Others& operator=(const Others&) = delete;
  ~Others() { End(); }
  void End() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  int good() const { return good_; }
  int bad() const { return bad_; }
  absl::Duration slowest() const { return slowest_; }  // Once it is ended.

 private:
  std::atomic<bool> stop_{false};
  std::atomic<int> good_{0}, bad_{0};
  absl::Duration slowest_;
  std::thread thread_;  // Behind what it uses.
};

// Wrong is a round with another code, a next kernel that fails, or another server.
void ServerGpuTest::Strike(const std::string& kind, const Ends& ends, int rounds) {
  v1::RunRequest fault = Fault(kind);
  if (ends.takes > absl::ZeroDuration()) {
    fault.set_kernel_time_limit_seconds(absl::ToDoubleSeconds(ends.takes));
  }
  absl::Duration slowest_answer, slowest_next;
  int wrong = 0;
  for (int round = 0; round < rounds; ++round) {
    const absl::Time start = absl::Now();
    const absl::Status status = Run(fault).status();
    const absl::Time answered = absl::Now();
    EXPECT_EQ(status.code(), ends.code) << status;
    EXPECT_THAT(status, ReasonIs(ends.reason));
    const absl::Status next = Square("cuda:0");
    EXPECT_THAT(next, IsOk());
    const bool same_server = server_->Wait(absl::ZeroDuration()) < 0;
    EXPECT_TRUE(same_server);
    const bool told = status.code() == ends.code && DetailsOf(status).reason == ends.reason;
    wrong += told && next.ok() && same_server ? 0 : 1;
    slowest_answer = std::max(slowest_answer, answered - start - ends.takes);
    slowest_next = std::max(slowest_next, absl::Now() - answered);
    if (round == 0) std::printf("%s: %s\n", kind.c_str(), std::string(status.message()).c_str());
  }
  EXPECT_LE(slowest_answer, kAnswerWithin);
  EXPECT_LE(slowest_next, kNextWithin);
  std::printf("%-16s %3d rounds  answer %6.3f s (goal 1)  next kernel %6.3f s (goal 2)  %d wrong\n",
              kind.c_str(), rounds, absl::ToDoubleSeconds(slowest_answer),
              absl::ToDoubleSeconds(slowest_next), wrong);
}

// "QUEUED 0.000..0.012, LAUNCHED 0.012..0.171": in seconds since the request arrived.
std::string PhasesText(const v1::RunResponse& response) {
  return absl::StrJoin(
      response.summary().phases(), ", ", [](std::string* out, const v1::Phase& phase) {
        absl::StrAppendFormat(out, "%s %.3f..%.3f", v1::Phase::Kind_Name(phase.kind()),
                              1e-9 * static_cast<double>(phase.start_ns()),
                              1e-9 * static_cast<double>(phase.end_ns()));
      });
}

// The others' calls are on another GPU, where there is one.
void ServerGpuTest::StrikeBesideOthers(const std::string& kind, const Ends& ends) {
  if (gpus_ < 2) {
    std::printf("one GPU alone: no calls beside %s\n", kind.c_str());
    return Strike(kind, ends);
  }
  constexpr int kFirstCalls = 20, kCalls = 1000;
  v1::RunRequest square = InlineRequest("square", {1, 2, 3});
  square.set_device("cuda:1");
  const auto call = [&] {
    const absl::Time start = absl::Now();
    const auto response = Run(square);
    const absl::Duration took = absl::Now() - start;
    if (response.ok() && took > kOthersWithin) {
      std::printf("a call on cuda:1 beside %s took %.3f s: %s\n", kind.c_str(),
                  absl::ToDoubleSeconds(took), PhasesText(*response).c_str());
    }
    return response.status();
  };
  // First calls load what later ones find.
  int in_a_row = 0;
  ASSERT_TRUE(Eventually([&] { return (in_a_row = call().ok() ? in_a_row + 1 : 0) >= kFirstCalls; },
                         absl::Seconds(60)));
  // Of more calls the slowest is slower: so about as many as there will be beside the fault.
  Others before(call);
  absl::SleepFor(kBefore);
  ASSERT_TRUE(Eventually([&] { return before.good() >= kCalls; }, absl::Seconds(60)));
  before.End();
  Others beside(call);
  Strike(kind, ends);
  ASSERT_TRUE(Eventually([&] { return beside.good() >= kCalls; }, absl::Seconds(60)));
  beside.End();
  const absl::Duration later = beside.slowest() - before.slowest();
  EXPECT_EQ(before.bad() + beside.bad(), 0);
  EXPECT_LE(later, kOthersWithin);
  std::printf("calls on cuda:1 beside %s: %d good, %d bad, the slowest %.6f s later than without\n",
              kind.c_str(), beside.good(), beside.bad(), absl::ToDoubleSeconds(later));
}

constexpr const char* kFaults[] = {"illegal_address", "assert", "misaligned", "trap"};

TEST_F(ServerGpuTest, G1_G3_AFaultCostsOneCall) {
  for (const char* kind : kFaults) StrikeBesideOthers(kind, kFaulted);
}

// What becomes of it is what becomes of the others: it is seen, and not measured.
TEST_F(ServerGpuTest, G1_ACallOfWhereNoCodeIsCostsOneCallToo) {
  Strike("wild_call", kFaulted, std::max(1, kRounds / 5));
}

TEST_F(ServerGpuTest, G4_AnEndlessKernelEndsAtItsLimit) {
  StrikeBesideOthers("endless", kTooLong);
}

TEST_F(ServerGpuTest, G6_AllMemoryTakenByAKernelIsGivenBack) {
  StrikeBesideOthers("allocate", kNoMemory);
}

// Which call goes where is the server's choice; each waits long enough for the next to see it.
TEST_F(ServerGpuTest, CallsThatNameNoGpuAreServedByAllOfThem) {
  if (gpus_ < 2) GTEST_SKIP() << "one GPU alone";
  for (const char* wanted : {"", "cuda"}) {
    SCOPED_TRACE(absl::StrCat("device '", wanted, "'"));
    const std::map<std::string, int> served = ServedBy(wanted);
    EXPECT_EQ(served.size(), static_cast<std::size_t>(gpus_));
    std::printf("calls that name '%s': on %zu of %d GPUs: %s\n", wanted, served.size(), gpus_,
                absl::StrJoin(served, ", ", absl::PairFormatter(" ")).c_str());
  }
}

TEST_F(OwnServerGpuTest, CallsOnTheCpuNeverNoticeAFaultOfAGpu) {
  Start("cpu,cuda:0");
  if (IsSkipped() || HasFatalFailure()) return;
  // The server is ready with the CPU's worker; the GPU's takes seconds more.
  for (const char* device : {"cpu", "cuda:0"}) {
    ASSERT_TRUE(Eventually(
        [&] {
          return Call(device, InlineRequest("square", {1, 2, 3})).ok();
        },
        absl::Seconds(60)));
  }
  Others others([&] { return Call("cpu", InlineRequest("square", {1, 2, 3})); });
  v1::RunRequest fault;
  fault.set_kernel("fault");
  (*fault.mutable_attributes())["kind"].set_word("illegal_address");
  for (int round = 0; round < kRounds; ++round) {
    EXPECT_THAT(Call("cuda:0", fault), ReasonIs("KERNEL_FAULT"));
    EXPECT_TRUE(Eventually([&] {
      return Call("cuda:0", InlineRequest("square", {1, 2, 3})).ok();
    }));
  }
  others.End();
  EXPECT_EQ(others.bad(), 0);
  EXPECT_GT(others.good(), 100);
}

// Killed while a kernel runs that would never end: the GPU is free for the next server, all of its
// memory but what the driver holds.
TEST_F(OwnServerGpuTest, G14_AKilledServerLeavesNoWorkerOnTheGpu) {
  Start("cuda:0");
  if (IsSkipped() || HasFatalFailure()) return;
  ASSERT_THAT(Call("cuda:0", InlineRequest("square", {1, 2, 3})), IsOk());
  const std::vector<pid_t> workers = server_->Workers();
  ASSERT_EQ(workers.size(), 1U);
  std::thread endless([&] {
    v1::RunRequest request;
    request.set_kernel("fault");
    (*request.mutable_attributes())["kind"].set_word("endless");
    request.set_kernel_time_limit_seconds(60);
    EXPECT_FALSE(Call("cuda:0", request).ok());
  });
  const bool runs = Eventually([&] {
    return server_->Metrics().find("gridclock_jobs_running{device=\"cuda:0\"} 1") !=
           std::string::npos;
  });
  server_->Signal(SIGKILL);
  endless.join();
  ASSERT_TRUE(runs);
  EXPECT_EQ(server_->Wait(), 128 + SIGKILL);
  EXPECT_TRUE(Eventually([&] { return !Lives(workers[0]); }, absl::Seconds(5)));

  Start("cuda:0");
  if (HasFatalFailure()) return;
  EXPECT_THAT(Call("cuda:0", InlineRequest("square", {1, 2, 3})), IsOk());
  EXPECT_THAT(Call("cuda:0", Made(static_cast<std::int64_t>(MemoryBytes() / 10 * 9 / 8))), IsOk());
}

// Each launch is within the limit, the first slope of it would not be: no worker is killed for
// that.
TEST_F(OwnServerGpuTest, ASlopeThatCannotBeginWithinTheLimitCostsNoWorker) {
  Start("cuda:0");
  if (IsSkipped() || HasFatalFailure()) return;
  const std::vector<pid_t> workers = server_->Workers();
  const auto measure = [&](std::int64_t ns) {
    v1::RunRequest request;
    request.set_kernel("spin");
    (*request.mutable_attributes())["ns"].set_i64(ns);
    request.mutable_measure()->set_method(v1::BACK_TO_BACK);
    request.mutable_measure()->set_budget_seconds(0.1);
    request.set_kernel_time_limit_seconds(2);
    return Call("cuda:0", request);
  };
  const absl::Status status = measure(300'000'000);
  EXPECT_THAT(status, ReasonIs("KERNEL_TIME_LIMIT"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("back_to_back starts with 11 launches"));
  EXPECT_EQ(server_->Workers(), workers);
  EXPECT_THAT(measure(100'000'000), IsOk());
  EXPECT_EQ(server_->Workers(), workers);
}

// ---- Inputs that are copied to the GPU while they arrive. ----

constexpr std::uint64_t kChunk = 1 << 20;

std::string SquareHeader(std::uint64_t bytes) {
  v1::StreamRunRequest request;
  v1::RunRequest& header = *request.mutable_header();
  header.set_kernel("square");
  header.set_device("cuda:0");
  v1::Input* x = header.add_inputs();
  x->set_name("x");
  x->mutable_spec()->set_dtype(v1::F32);
  x->mutable_spec()->add_dims(static_cast<std::int64_t>(bytes / 4));
  x->mutable_stream();
  return request.SerializeAsString();
}

// Each float says where it is, as far as its square is exact.
float ValueAt(std::uint64_t index) {
  return static_cast<float>(index % 4093);
}

bool SendChunks(RawStream& stream, std::uint64_t bytes) {
  std::vector<float> values(kChunk / 4);
  for (std::uint64_t at = 0; at < bytes; at += kChunk) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = ValueAt(at / 4 + i);
    v1::StreamRunRequest request;
    request.mutable_chunk()->set_name("x");
    request.mutable_chunk()->set_offset(at);
    request.mutable_chunk()->set_data(values.data(), kChunk);
    if (!stream.Write(request.SerializeAsString())) return false;
  }
  return true;
}

// Of floats from `offset` on, how many are not the squares of what was sent.
std::uint64_t WrongSquares(const std::string& data, std::uint64_t offset) {
  const auto* values = reinterpret_cast<const float*>(data.data());
  std::uint64_t wrong = 0;
  for (std::size_t i = 0; i < data.size() / 4; ++i) {
    const float x = ValueAt(offset / 4 + i);
    if (values[i] != x * x) ++wrong;
  }
  return wrong;
}

std::int64_t PhaseNs(const v1::RunSummary& summary, v1::Phase::Kind kind) {
  for (const v1::Phase& phase : summary.phases()) {
    if (phase.kind() == kind) return phase.end_ns() - phase.start_ns();
  }
  return -1;
}

// Back it is copied at once, and behind the last byte: a copy there that takes a third of that or
// less had done most of its work before. The first round pins the memory.
TEST_F(OwnServerGpuTest, ALargeInputIsCopiedWhileItArrives) {
  constexpr std::uint64_t kBytes = std::uint64_t{512} << 20;
  Start("cuda:0", {"--limit-arena-bytes=4G", "--limit-client-arena-bytes=4G"});
  if (IsSkipped() || HasFatalFailure()) return;
  for (int round = 0; round < 4; ++round) {
    grpc::ClientContext context;
    RawStream stream(channel_, kStreamRunMethod, context);
    ASSERT_TRUE(stream.Write(SquareHeader(kBytes)));
    if (!SendChunks(stream, kBytes)) FAIL() << stream.Finish();
    stream.WritesDone();
    std::uint64_t got = 0, wrong = 0;
    v1::StreamRunResponse response;
    for (std::string message; stream.Read(&message);) {
      ASSERT_TRUE(response.ParseFromString(message));
      if (!response.has_chunk()) continue;
      wrong += WrongSquares(response.chunk().data(), got);
      got += response.chunk().data().size();
    }
    ASSERT_THAT(stream.Finish(), IsOk());
    EXPECT_EQ(got, kBytes);
    EXPECT_EQ(wrong, 0U);
    const std::int64_t in = PhaseNs(response.summary(), v1::Phase::INPUT_COPIED);
    const std::int64_t out = PhaseNs(response.summary(), v1::Phase::OUTPUT_COPIED);
    std::printf("%llu MiB: copied behind the last byte in %.3f ms, back in %.3f ms\n",
                static_cast<unsigned long long>(kBytes >> 20), static_cast<double>(in) * 1e-6,
                static_cast<double>(out) * 1e-6);
    EXPECT_GE(in, 0);
    if (round > 0) {
      EXPECT_LT(3 * in, out);
    }
  }
}

// Together they would hold two fifths of the device.
TEST_F(OwnServerGpuTest, UploadsThatNeverEndHoldNoMemoryAgainstOthers) {
  Start("cuda:0", {"--limit-arena-bytes=64G", "--limit-client-arena-bytes=64G"});
  if (IsSkipped() || HasFatalFailure()) return;
  const std::uint64_t memory = MemoryBytes();
  const std::uint64_t each = std::min(memory / 10, std::uint64_t{14} << 30) / kChunk * kChunk;
  struct Open {
    explicit Open(const std::shared_ptr<grpc::Channel>& channel)
        : stream(channel, kStreamRunMethod, context) {}
    grpc::ClientContext context;
    RawStream stream;
  };
  std::vector<std::unique_ptr<Open>> uploads;
  for (int i = 0; i < 4; ++i) {
    Open& upload = *uploads.emplace_back(std::make_unique<Open>(channel_));
    ASSERT_TRUE(upload.stream.Write(SquareHeader(each)));
    if (!SendChunks(upload.stream, 64 * kChunk)) FAIL() << upload.stream.Finish();
  }

  v1::RunRequest large;
  large.set_kernel("square");
  v1::Input* x = large.add_inputs();
  x->set_name("x");
  x->mutable_spec()->set_dtype(v1::F32);
  x->mutable_spec()->add_dims(static_cast<std::int64_t>(memory / 10 * 9 / 8));
  x->mutable_generate()->set_kind(v1::Generator::ZEROS);
  v1::OutputRequest* y = large.add_outputs();
  y->set_name("y");
  y->set_sink(v1::OutputRequest::DISCARD);
  EXPECT_THAT(Call("cuda:0", large), IsOk());

  for (const auto& upload : uploads) {
    upload->context.TryCancel();
    EXPECT_EQ(upload->stream.Finish().code(), Code::kCancelled);
  }
  EXPECT_THAT(Call("cuda:0", InlineRequest("square", {1, 2, 3})), IsOk());
}

}  // namespace
}  // namespace gridclock
