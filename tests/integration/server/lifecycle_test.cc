// The server as a process: health, signals, and what it leaves behind.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "gridclock/v1/system.pb.h"
#include "tests/support/http_client.h"
#include "tests/support/raw_call.h"
#include "tests/support/server_process.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kCheck[] = "/grpc.health.v1.Health/Check";
constexpr char kWatch[] = "/grpc.health.v1.Health/Watch";
const std::string kServing = "\x08\x01";
const std::string kNotServing = "\x08\x02";

std::string HealthRequest(const std::string& service) {
  return service.empty()
             ? ""
             : absl::StrCat("\x0a", std::string(1, static_cast<char>(service.size())), service);
}

std::string Check(const std::shared_ptr<grpc::Channel>& channel, const std::string& service) {
  const RawResult result = RawCall(channel, kCheck, {HealthRequest(service)});
  return result.status.ok() ? result.messages.at(0) : std::string(result.status.message());
}

std::string Spin(absl::Duration busy) {
  v1::RunRequest request;
  request.set_kernel("spin");
  (*request.mutable_attributes())["ns"].set_i64(absl::ToInt64Nanoseconds(busy));
  return request.SerializeAsString();
}

v1::Device::State DeviceState(const std::shared_ptr<grpc::Channel>& channel) {
  const RawResult result = RawCall(channel, "/gridclock.v1.SystemService/ListDevices", {""});
  EXPECT_THAT(result.status, IsOk());
  v1::ListDevicesResponse devices;
  EXPECT_TRUE(devices.ParseFromString(result.messages.empty() ? "" : result.messages[0]));
  return devices.devices_size() == 1 ? devices.devices(0).state() : v1::Device::STATE_UNSPECIFIED;
}

TEST(Health, EachNameIsServed) {
  ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start());
  const auto channel = Connect(server->address());
  for (const std::string name :
       {"", "gridclock.v1.KernelService", "gridclock.v1.SystemService", "device/cpu", "liveness"}) {
    EXPECT_EQ(Check(channel, name), kServing) << name;
  }
  EXPECT_EQ(RawCall(channel, kCheck, {HealthRequest("nobody")}).status.code(),
            absl::StatusCode::kNotFound);
}

// A worker program that waits while there is such a file.
std::string WorkerThatWaits(const std::string& file) {
  return NewScript(absl::StrCat("while [ -e ", file, " ]; do sleep 0.01; done\nexec ",
                                BinaryPath("gridclock-test-worker"), " \"$@\"\n"));
}

TEST(Health, WatchersHearThatAWorkerDiedAndCameBack) {
  const std::string wait = NewFolder() + "/wait";
  ASSERT_OK_AND_ASSIGN(const auto server,
                       ServerProcess::Start({.flags = {"--worker=" + WorkerThatWaits(wait)}}));
  const auto channel = Connect(server->address());
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(2));
  RawStream watch(channel, kWatch, context);
  ASSERT_TRUE(watch.Write(HealthRequest("device/cpu")));
  watch.WritesDone();
  std::string state;
  ASSERT_TRUE(watch.Read(&state));
  EXPECT_EQ(state, kServing);
  // The server looks every 10 ms, between which the next worker may be there.
  std::ofstream(wait) << "now";
  kill(server->Workers().at(0), SIGKILL);
  ASSERT_TRUE(watch.Read(&state));
  EXPECT_EQ(state, kNotServing);
  EXPECT_EQ(Check(channel, "liveness"), kServing);
  const absl::Time let_go = absl::Now();
  std::filesystem::remove(wait);
  ASSERT_TRUE(watch.Read(&state));
  EXPECT_EQ(state, kServing);
  // 12 to 40 ms on a machine that is not busy; a worker that is in quarantine waits for 30 s.
  EXPECT_LT(absl::Now() - let_go, absl::Seconds(20));
  context.TryCancel();
  watch.Finish().IgnoreError();
}

// One that watches until the test ends, or what was said instead.
class Watcher {
 public:
  explicit Watcher(const std::shared_ptr<grpc::Channel>& channel)
      : stream_(channel, kWatch, context_) {
    stream_.Write(HealthRequest(""));
    std::string state;
    watches_ = stream_.Read(&state) && state == kServing;
  }
  ~Watcher() {
    context_.TryCancel();
    stream_.Finish().IgnoreError();
  }
  bool watches() const { return watches_; }

 private:
  grpc::ClientContext context_;
  RawStream stream_;
  bool watches_ = false;
};

TEST(Health, AnAddressWatchesWithFourStreamsForEachConnectionThatItMayHave) {
  ASSERT_OK_AND_ASSIGN(const auto server,
                       ServerProcess::Start({.flags = {"--limit-peer-connections=1"}}));
  const auto channel = Connect(server->address());
  auto ended = std::make_unique<Watcher>(channel);
  const Watcher second(channel), third(channel), fourth(channel);
  EXPECT_TRUE(ended->watches() && second.watches() && third.watches() && fourth.watches());
  const absl::Status beyond = RawCall(channel, kWatch, {HealthRequest("")}).status;
  EXPECT_EQ(beyond.code(), absl::StatusCode::kResourceExhausted) << beyond;
  EXPECT_THAT(beyond, ReasonIs("QUEUE_FULL"));
  EXPECT_EQ(Check(channel, ""), kServing);
  ended.reset();
  EXPECT_TRUE(Eventually([&] { return Watcher(channel).watches(); }));
}

TEST(Health, E12_E13_ADeviceWhoseWorkersNeverStartIsNotServing) {
  ASSERT_OK_AND_ASSIGN(const auto server,
                       ServerProcess::Start({.flags = {"--worker=" + NewScript("exit 3\n")},
                                             .wait_until_ready = false}));
  const auto channel = Connect(server->ListensOn());
  ASSERT_TRUE(Eventually([&] { return DeviceState(channel) == v1::Device::QUARANTINED; },
                         absl::Seconds(60)));
  for (const char* service : {"", "gridclock.v1.KernelService", "device/cpu"}) {
    EXPECT_EQ(Check(channel, service), kNotServing) << service;
  }
  for (const char* service : {"liveness", "gridclock.v1.SystemService"}) {
    EXPECT_EQ(Check(channel, service), kServing) << service;
  }
  const absl::Status refused = GoodCall(channel);
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kUnavailable,
                                HasSubstr("(exit code 3): the device is quarantined, and another "
                                          "worker is tried every 30s")));
  EXPECT_EQ(DetailsOf(refused).retry_after, absl::Seconds(30));
  EXPECT_TRUE(
      server->WillLog("device_quarantined device=\"cpu\" reason=\"exit code 3\" "
                      "next_try_seconds=\""));
}

TEST(Health, ADeviceIsBusyWhileItRunsACallAndReadyAgainBehindIt) {
  ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start());
  const auto channel = Connect(server->address());
  EXPECT_EQ(DeviceState(channel), v1::Device::READY);
  const std::string hold = HoldRequest().SerializeAsString();
  std::thread call([&] { EXPECT_THAT(RawCall(channel, kRunMethod, {hold}).status, IsOk()); });
  EXPECT_TRUE(Eventually([&] { return DeviceState(channel) == v1::Device::BUSY; }));
  EXPECT_THAT(server->Metrics(),
              HasSubstr("gridclock_worker_state{device=\"cpu\",state=\"busy\"} 1\n"));
  for (const char* none : {"queue", "client_queue", "client_arena_bytes"}) {
    EXPECT_THAT(server->Metrics(),
                HasSubstr(absl::StrCat("gridclock_usage{name=\"", none, "\"} 0\n")));
  }
  server->LetGo();
  call.join();
  EXPECT_EQ(DeviceState(channel), v1::Device::READY);
}

TEST(Health, MetricsShowTheConnectionsThatAreOpen) {
  ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start());
  auto channel = Connect(server->address());
  EXPECT_THAT(GoodCall(channel), IsOk());
  EXPECT_THAT(server->Metrics(), HasSubstr("gridclock_connections_open 1\n"));
  EXPECT_THAT(server->Metrics(), HasSubstr("gridclock_log_dropped_total 0\n"));
  channel.reset();
  EXPECT_TRUE(Eventually(
      [&] { return absl::StrContains(server->Metrics(), "gridclock_connections_open 0\n"); }));
}

TEST(Lifecycle, ADeviceThatIsNotThereEndsTheServerWithWhatThereIs) {
  const auto server = ServerProcess::Start({.flags = {"--devices=cuda:99"}});
  EXPECT_THAT(server, StatusIs(absl::StatusCode::kUnavailable,
                               HasSubstr("--devices: no 'cuda:99' here; there are")));
}

TEST(Lifecycle, DevicesCanBeFoundWithoutBeingNamed) {
  ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start({.flags = {"--devices=auto"}}));
  EXPECT_THAT(GoodCall(Connect(server->address())), IsOk());
}

TEST(Lifecycle, D8_ConnectionsLeaveTheDescriptorsThatAWorkerNeeds) {
  ASSERT_OK_AND_ASSIGN(
      const auto server,
      ServerProcess::Start({.flags = {"--limit-peer-connections=1000"}, .descriptors = 256}));
  EXPECT_TRUE(server->WillLog("connections_lowered limit=\"1024\" to=\"176\""));
  EXPECT_THAT(server->Metrics(), HasSubstr("gridclock_limit{name=\"connections\"} 176\n"));
  const auto channel = Connect(server->address());
  EXPECT_THAT(GoodCall(channel), IsOk());
  int port = 0;
  ASSERT_TRUE(absl::SimpleAtoi(server->address().substr(server->address().rfind(':') + 1), &port));
  std::vector<UniqueFd> held(400);
  for (UniqueFd& one : held) one = Connect(port);
  ASSERT_TRUE(Eventually([&] {
    return absl::StrContains(server->Metrics(), "result=\"rejected_total\"} 225\n");
  })) << server->Metrics();
  for (int i = 0; i < 6; ++i) {
    const pid_t worker = server->Workers().at(0);
    kill(worker, SIGKILL);
    ASSERT_TRUE(Eventually([&] { return !Lives(worker); }));
    EXPECT_THAT(GoodCall(channel), IsOk()) << i;
  }
  EXPECT_THAT(server->FinalLog(), Not(HasSubstr("worker_spawn_failed")));
}

TEST(Lifecycle, D8_TheDescriptorsThatTheSystemAllowsAreTaken) {
  ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start());
  rlimit limit{};
  ASSERT_EQ(prlimit(server->pid(), RLIMIT_NOFILE, nullptr, &limit), 0);
  EXPECT_EQ(limit.rlim_cur, limit.rlim_max);
}

TEST(Lifecycle, D8_TooFewDescriptorsEndTheServer) {
  ASSERT_OK_AND_ASSIGN(const auto server,
                       ServerProcess::Start({.descriptors = 64, .wait_until_ready = false}));
  EXPECT_EQ(server->Wait(), 2);
  EXPECT_THAT(server->Log(), HasSubstr("RLIMIT_NOFILE lets this process open 64 descriptors"));
}

TEST(Lifecycle, E14_WorkersDieWithAServerThatIsKilled) {
  // Another program may be given its port before the next server takes it.
  for (int tries = 3;; --tries) {
    ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start());
    const auto workers = server->Workers();
    ASSERT_EQ(workers.size(), 1u);
    server->Signal(SIGKILL);
    EXPECT_EQ(server->Wait(), 128 + SIGKILL);
    EXPECT_TRUE(Eventually([&] { return !Lives(workers[0]); }));
    const auto next = ServerProcess::Start({.flags = {"--listen=" + server->address()}});
    if (tries > 1 && absl::StrContains(next.status().message(), "Address already in use")) continue;
    ASSERT_THAT(next, IsOk());
    EXPECT_THAT(GoodCall(Connect(server->address())), IsOk());
    return;
  }
}

// Its kernel would run for five minutes.
TEST(Lifecycle, E14_AWorkerThatRunsDiesWithAServerThatIsKilled) {
  ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start());
  const auto channel = Connect(server->address());
  const auto worker = server->Workers().at(0);
  absl::Status running;
  std::thread call(
      [&] { running = RawCall(channel, kRunMethod, {Spin(absl::Minutes(5))}).status; });
  EXPECT_TRUE(Eventually([&] { return DeviceState(channel) == v1::Device::BUSY; }));
  server->Signal(SIGKILL);
  call.join();
  EXPECT_EQ(running.code(), absl::StatusCode::kUnavailable) << running;
  EXPECT_TRUE(Eventually([&] { return !Lives(worker); }));
}

TEST(Lifecycle, HowAWorkerEndedIsKnownThoughWhoStartedUsIgnoresItsChildren) {
  signal(SIGCHLD, SIG_IGN);  // The server inherits it.
  const auto server = ServerProcess::Start({.wait_until_ready = false});
  signal(SIGCHLD, SIG_DFL);
  ASSERT_THAT(server, IsOk());
  ASSERT_TRUE(Eventually([&] { return (*server)->Workers().size() == 1; }));
  ASSERT_EQ(kill((*server)->Workers()[0], SIGKILL), 0);
  EXPECT_TRUE((*server)->WillLog("detail=\"signal 9\""));
}

TEST(Lifecycle, WithoutMetricsTheServerServes) {
  const std::vector<std::string> asked[] = {{"--metrics-listen=none", "--drain-grace=5"},
                                            {"--drain-grace=5", "--metrics-listen=none"},
                                            {"--metrics-listen", "none", "--drain-grace=5"},
                                            {"--metrics-listen", "", "--drain-grace=5"}};
  for (const auto& flags : asked) {
    ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start({.flags = flags}));
    EXPECT_THAT(GoodCall(Connect(server->address())), IsOk());
    EXPECT_EQ(server->metrics_address(), "");
    EXPECT_TRUE(server->WillLog("metrics=\"none\""));
  }
}

TEST(Lifecycle, TheLeastArenaServes) {
  ASSERT_OK_AND_ASSIGN(const auto server,
                       ServerProcess::Start({.flags = {"--limit-arena-bytes=4096"}}));
  EXPECT_THAT(RawCall(Connect(server->address()), kRunMethod, {Spin(absl::ZeroDuration())}).status,
              IsOk());
}

TEST(Lifecycle, E17_ASignalLetsCallsEndAndTakesNoNewOnes) {
  ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start());
  const auto channel = Connect(server->address());
  const auto worker = server->Workers().at(0);
  absl::Status running;
  const std::string hold = HoldRequest().SerializeAsString();
  std::thread call([&] { running = RawCall(channel, kRunMethod, {hold}).status; });
  EXPECT_TRUE(Eventually([&] { return DeviceState(channel) == v1::Device::BUSY; }));
  server->Signal(SIGTERM);
  EXPECT_TRUE(Eventually([&] { return Check(channel, "") == kNotServing; }));
  EXPECT_TRUE(
      Eventually([&] { return GoodCall(channel).code() == absl::StatusCode::kUnavailable; }));
  server->LetGo();
  call.join();
  EXPECT_THAT(running, IsOk());
  EXPECT_EQ(server->Wait(), 0);
  EXPECT_FALSE(Lives(worker));
}

// As systemd does by default, or `kill` of a group.
TEST(Lifecycle, E17_ASignalToAllOfItsProcessesEndsNoCall) {
  ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start({.flags = {"--allow-submit"}}));
  const auto channel = Connect(server->address());
  absl::Status running;
  const std::string hold = HoldRequest().SerializeAsString();
  std::thread call([&] { running = RawCall(channel, kRunMethod, {hold}).status; });
  EXPECT_TRUE(Eventually([&] { return DeviceState(channel) == v1::Device::BUSY; }));
  const std::vector<pid_t> workers = server->Workers();
  for (const pid_t worker : workers) {
    for (const int signal : {SIGHUP, SIGINT, SIGTERM}) kill(worker, signal);
  }
  server->Signal(SIGTERM);
  EXPECT_TRUE(Eventually([&] { return Check(channel, "") == kNotServing; }));
  server->LetGo();
  call.join();
  EXPECT_THAT(running, IsOk());
  EXPECT_EQ(server->Wait(), 0);
  for (const pid_t worker : workers) EXPECT_FALSE(Lives(worker));
}

TEST(Lifecycle, E17_AKernelThatOutlastsTheGraceEndsUnavailable) {
  ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start({.flags = {"--drain-grace=0.2"}}));
  const auto channel = Connect(server->address());
  const auto worker = server->Workers().at(0);
  absl::Status running, waiting;
  std::thread first(
      [&] { running = RawCall(channel, kRunMethod, {Spin(absl::Minutes(5))}).status; });
  EXPECT_TRUE(Eventually([&] { return DeviceState(channel) == v1::Device::BUSY; }));
  std::thread second(
      [&] { waiting = RawCall(channel, kRunMethod, {Spin(absl::Nanoseconds(1))}).status; });
  EXPECT_TRUE(Eventually([&] {  // Until it waits behind the first.
    return absl::StrContains(server->Metrics(), "gridclock_usage{name=\"queue\"} 1\n");
  }));
  server->Signal(SIGTERM);
  EXPECT_EQ(server->Wait(), 0);
  first.join();
  second.join();
  EXPECT_EQ(running.code(), absl::StatusCode::kUnavailable) << running;
  EXPECT_THAT(running, ReasonIs("DRAINING"));
  EXPECT_EQ(waiting.code(), absl::StatusCode::kUnavailable) << waiting;
  EXPECT_THAT(waiting, ReasonIs("DRAINING"));
  EXPECT_FALSE(Lives(worker));
}

// Ones of `mib` MiB, which the client reads from the server as slowly as it likes.
class SlowRead {
 public:
  SlowRead(const std::shared_ptr<grpc::Channel>& channel, int mib)
      : stream_(channel, kStreamRunMethod, context_) {
    v1::StreamRunRequest request;
    request.mutable_header()->set_kernel("copy");
    v1::Input* input = request.mutable_header()->add_inputs();
    input->set_name("x");
    input->mutable_spec()->set_dtype(v1::F32);
    input->mutable_spec()->add_dims(mib * 1024 * 1024 / 4);
    input->mutable_generate()->set_kind(v1::Generator::ONES);
    EXPECT_TRUE(stream_.Write(request.SerializeAsString()));
    stream_.WritesDone();
  }

  // Until so many bytes of outputs are here, or the stream ends. How long the longest step took.
  absl::Duration ReadTo(std::size_t bytes, absl::Duration pause) {
    absl::Duration longest;
    absl::Time began = absl::Now();
    while (read_ < bytes && Step(pause)) {
      const absl::Time now = absl::Now();
      longest = std::max(longest, now - std::exchange(began, now));
    }
    return std::max(longest, absl::Now() - began);
  }
  std::size_t read() const { return read_; }
  absl::Status Finish() { return stream_.Finish(); }

 private:
  bool Step(absl::Duration pause) {
    std::string text;
    if (!stream_.Read(&text)) return false;
    v1::StreamRunResponse message;
    EXPECT_TRUE(message.ParseFromString(text));
    read_ += message.chunk().data().size();
    if (message.has_chunk()) absl::SleepFor(pause);
    return true;
  }

  grpc::ClientContext context_;
  RawStream stream_;
  std::size_t read_ = 0;
};

constexpr std::size_t kMiB = 1 << 20;

int MetricsPort(const ServerProcess& server) {
  const std::string& address = server.metrics_address();
  int port = 0;
  EXPECT_TRUE(absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
  return port;
}

TEST(Lifecycle, E17_ASignalLetsASlowReaderHaveAllOfItsOutputs) {
  ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start());
  SlowRead slow(Connect(server->address()), 32);
  slow.ReadTo(2 * kMiB, absl::ZeroDuration());
  server->Signal(SIGTERM);
  EXPECT_TRUE(Eventually([&] {
    return absl::StrContains(Fetch(MetricsPort(*server), "/readyz"),
                             "not ready: the server ends\n");
  }));
  slow.ReadTo(33 * kMiB, absl::Milliseconds(80));  // Long after the job is over.
  EXPECT_EQ(slow.read(), 32 * kMiB);
  EXPECT_THAT(slow.Finish(), IsOk());
  EXPECT_EQ(server->Wait(), 0);
}

TEST(Lifecycle, E17_AReaderThatOutlastsTheGraceHearsWhy) {
  for (int tries = 3;; --tries) {
    // All of its chunks would take it half a minute.
    ASSERT_OK_AND_ASSIGN(
        const auto server,
        ServerProcess::Start({.flags = {"--drain-grace=0.5", "--limit-chunk-bytes=64K"}}));
    SlowRead slow(ConnectNarrowly(server->address()), 32);
    slow.ReadTo(2 * kMiB, absl::ZeroDuration());
    server->Signal(SIGTERM);
    const absl::Duration longest_step = slow.ReadTo(33 * kMiB, absl::Milliseconds(60));
    EXPECT_LT(slow.read(), 32 * kMiB);
    const absl::Status status = slow.Finish();
    EXPECT_EQ(server->Wait(), 0);
    // The server waits 1 s for the reason to get out, which a busy machine may keep us from
    // reading.
    if (tries > 1 && longest_step > absl::Seconds(1)) continue;
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_THAT(status, ReasonIs("DRAINING"));
    return;
  }
}

TEST(Lifecycle, E17_StreamsThatAskForNothingHoldNoDrainUp) {
  ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start({.flags = {"--drain-grace=600"}}));
  const auto channel = Connect(server->address());
  grpc::ClientContext of_watch, of_silent;
  RawStream watch(channel, kWatch, of_watch);
  ASSERT_TRUE(watch.Write(HealthRequest("")));
  std::string state;
  ASSERT_TRUE(watch.Read(&state));
  RawStream silent(channel, kStreamRunMethod, of_silent);
  v1::StreamRunRequest begin;
  begin.mutable_header()->set_kernel("copy");
  ASSERT_TRUE(silent.Write(begin.SerializeAsString()));
  ASSERT_TRUE(Eventually([&] {
    return absl::StrContains(
        server->Metrics(),
        "gridclock_rpc_in_flight{method=\"gridclock.v1.KernelService/StreamRun\"} 1\n");
  }));
  server->Signal(SIGTERM);
  EXPECT_EQ(server->Wait(), 0);
  const absl::Status status = silent.Finish();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_THAT(status, ReasonIs("DRAINING"));
  of_watch.TryCancel();
  watch.Finish().IgnoreError();
}

class SecondSignal : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Lifecycle, SecondSignal, ::testing::Values(SIGTERM, SIGINT));

TEST_P(SecondSignal, E18_EndsAtOnce) {
  ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start({.flags = {"--drain-grace=600"}}));
  const auto channel = Connect(server->address());
  const auto worker = server->Workers().at(0);
  const std::string hold = HoldRequest().SerializeAsString();
  std::thread call([&] {
    EXPECT_EQ(RawCall(channel, kRunMethod, {hold}).status.code(), absl::StatusCode::kUnavailable);
  });
  EXPECT_TRUE(Eventually([&] { return DeviceState(channel) == v1::Device::BUSY; }));
  server->Signal(SIGTERM);
  EXPECT_TRUE(Eventually([&] { return Check(channel, "") == kNotServing; }));
  server->Signal(GetParam());
  EXPECT_EQ(server->Wait(), 128 + GetParam());
  EXPECT_TRUE(Eventually([&] { return !Lives(worker); }));
  call.join();
}

// A log that takes nothing: a pipe that is full and that nobody reads.
class StuckLog {
 public:
  StuckLog() : folder_(NewFolder()) {
    EXPECT_EQ(mkfifo(path().c_str(), 0600), 0);
    fd_ = UniqueFd(open(path().c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
    const std::string block(4096, '.');
    while (write(fd_.get(), block.data(), block.size()) > 0) {
    }
    EXPECT_EQ(errno, EAGAIN);
  }
  ~StuckLog() { std::filesystem::remove_all(folder_); }
  std::string path() const { return folder_ + "/log"; }

 private:
  const std::string folder_;
  UniqueFd fd_;
};

TEST(Lifecycle, E22_ALogThatNobodyReadsHoldsNothingUp) {
  const StuckLog log;
  ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start({.log = log.path()}));
  const auto channel = Connect(server->address());
  EXPECT_THAT(GoodCall(channel), IsOk());
  const pid_t worker = server->Workers().at(0);
  kill(worker, SIGKILL);  // Its end and its successor's start are logged.
  EXPECT_TRUE(Eventually([&] { return !Lives(worker); }));
  EXPECT_TRUE(Eventually([&] { return Check(channel, "device/cpu") == kServing; }));
  EXPECT_THAT(GoodCall(channel), IsOk());
  server->Signal(SIGTERM);
  EXPECT_EQ(server->Wait(), 0) << "the end waits for the log's reader";
}

TEST(Lifecycle, AnIdleServerEndsWithinSeconds) {
  ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start());
  EXPECT_THAT(GoodCall(Connect(server->address())), IsOk());
  server->Signal(SIGTERM);
  EXPECT_EQ(server->Wait(absl::Seconds(20)), 0);
}

TEST(Lifecycle, AWorkerThatEndsWithItsServerIsNotReportedAsLost) {
  // One that a busy machine keeps from its end for a second is ended by a signal, and is lost.
  for (int tries = 5;; --tries) {
    ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start());
    const absl::Time asked = absl::Now();
    server->Signal(SIGTERM);
    EXPECT_EQ(server->Wait(), 0);
    if (tries > 1 && absl::Now() - asked > absl::Milliseconds(900)) continue;
    EXPECT_THAT(server->Log(), HasSubstr(" I worker_stopped device=\"cpu\""));
    EXPECT_THAT(server->Log(), Not(HasSubstr("worker_lost")));
    return;
  }
}

// It measures its device, or waits behind that.
TEST(Lifecycle, AWorkerThatIsNotReadyYetIsNotReportedAsLostEither) {
  ASSERT_OK_AND_ASSIGN(
      const auto server,
      ServerProcess::Start(
          {.environment = {"GRIDCLOCK_FAULT=wait_before_hello:1:1"}, .wait_until_ready = false}));
  ASSERT_TRUE(server->WillLog("worker_spawned"));
  server->Signal(SIGTERM);
  EXPECT_EQ(server->Wait(), 0);
  EXPECT_THAT(server->Log(), HasSubstr(" I worker_stopped device=\"cpu\""));
  EXPECT_THAT(server->Log(), Not(HasSubstr("worker_lost")));
}

TEST(Lifecycle, E7_WhereMemoryRunsOutTheSystemEndsAWorkerAndNotTheServer) {
  ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start());
  const auto score = [](pid_t pid) {
    std::string text;
    std::ifstream(absl::StrCat("/proc/", pid, "/oom_score_adj")) >> text;
    return text;
  };
  EXPECT_EQ(score(server->Workers().at(0)), "1000");
  EXPECT_EQ(score(server->pid()), score(getpid())) << "as it was started";
}

TEST(Lifecycle, AWorkerThatDiesUnaskedIsReportedAsLost) {
  ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start());
  kill(server->Workers().at(0), SIGKILL);
  EXPECT_TRUE(server->WillLog(" W worker_lost device=\"cpu\" reason=\"signal\""));
}

}  // namespace
}  // namespace gridclock
