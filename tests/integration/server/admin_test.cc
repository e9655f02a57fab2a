// What operators do to a real server, and what its log says of it.
#include <csignal>
#include <future>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "client/cpp/client.h"
#include "gridclock/v1/admin.pb.h"
#include "gridclock/v1/system.pb.h"
#include "tests/integration/server/operator.h"
#include "tests/support/credentials.h"
#include "tests/support/http_client.h"
#include "tests/support/raw_call.h"
#include "tests/support/server_process.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr absl::Duration kLong = absl::Seconds(30);

absl::StatusOr<std::unique_ptr<ServerProcess>> AdminServer() {
  return ServerProcess::Start({.flags = {"--allow-admin"}});
}

// A call that keeps the device busy until somebody ends it.
std::future<absl::Status> Spin(const Client& client) {
  auto done = std::make_shared<std::promise<absl::Status>>();
  auto call = std::make_shared<RunCall>();
  call->kernel = "spin";
  call->attributes = {{"ns", absl::ToInt64Nanoseconds(kLong)}};
  client.RunAsync(*call, {}, [done, call](const absl::StatusOr<RunResult>& result) {
    done->set_value(result.status());
  });
  return done->get_future();
}

std::vector<v1::ActiveJob> JobsOf(const Client& client) {
  auto jobs = client.ListJobs();
  EXPECT_THAT(jobs.status(), IsOk());
  return jobs.ok() ? *std::move(jobs) : std::vector<v1::ActiveJob>();
}

bool Runs(const Client& client) {
  return Eventually([&] {
    const auto jobs = JobsOf(client);
    return !jobs.empty() && jobs[0].state() == v1::ActiveJob::RUNNING;
  });
}

TEST(Admin, JobsAreListedAndCancelled) {
  ASSERT_OK_AND_ASSIGN(const auto server,
                       ServerProcess::Start({.flags = {"--allow-admin"}, .environment = kJsonLog}));
  const auto client = Operator(*server);
  auto running = Spin(*client);
  ASSERT_TRUE(Runs(*client));
  const v1::ActiveJob job = JobsOf(*client).at(0);
  EXPECT_EQ(job.client(), "local");
  EXPECT_EQ(job.kernel(), "spin");
  EXPECT_EQ(job.device(), "cpu");
  EXPECT_GT(job.age_seconds(), 0);

  EXPECT_THAT(client->CancelJob(job.id() + 1).status(),
              StatusIs(Code::kNotFound, HasSubstr(absl::StrCat("'", job.id(), "'"))));
  ASSERT_THAT(client->CancelJob(job.id()).status(), IsOk());
  EXPECT_EQ(JobsOf(*client).at(0).state(), v1::ActiveJob::STOPPING);
  // Its launch goes on; with its worker it ends now.
  v1::RestartWorkerRequest restart;
  restart.set_device("cpu");
  restart.set_now(true);
  ASSERT_THAT(client->RestartWorker(restart).status(), IsOk());
  const absl::Status ended = running.get();
  EXPECT_THAT(ended, StatusIs(Code::kCancelled, HasSubstr("operator")));
  EXPECT_THAT(ended, ReasonIs("BY_OPERATOR"));
  EXPECT_THAT(GoodCall(Connect(server->address())), IsOk());

  const auto lines = LinesOf(*server, "admin_cancel_job", 2);
  EXPECT_EQ(lines[0]["who"], "local");
  EXPECT_THAT(lines[0]["result"].dump(), HasSubstr("NOT_FOUND"));
  EXPECT_EQ(lines[1]["what"],
            absl::StrCat("job ", job.id(), " of 'local', kernel 'spin' on 'cpu'"));
  EXPECT_EQ(lines[1]["result"], "OK");
  EXPECT_EQ(lines[1]["trace_id"].dump().size(), 34U);
}

// Its job is over; the outputs, which hold memory, are as good as none of them read.
TEST(Admin, AJobWhoseOutputsNobodyReadsIsListedAndCutOff) {
  ASSERT_OK_AND_ASSIGN(const auto server, AdminServer());
  const auto client = Operator(*server);
  grpc::ClientContext context;
  RawStream stream(ConnectNarrowly(server->address()), kStreamRunMethod, context);
  v1::StreamRunRequest request;
  request.mutable_header()->set_kernel("copy");
  v1::Input* input = request.mutable_header()->add_inputs();
  input->set_name("x");
  input->mutable_spec()->set_dtype(v1::F32);
  input->mutable_spec()->add_dims(8 << 20);
  input->mutable_generate()->set_kind(v1::Generator::ONES);
  ASSERT_TRUE(stream.Write(request.SerializeAsString()));
  stream.WritesDone();
  ASSERT_TRUE(Eventually([&] {
    const auto jobs = JobsOf(*client);
    return !jobs.empty() && jobs[0].state() == v1::ActiveJob::SENDING;
  }));
  const v1::ActiveJob job = JobsOf(*client).at(0);
  EXPECT_EQ(job.client(), "local");
  EXPECT_EQ(job.kernel(), "copy");
  EXPECT_GT(job.age_seconds(), 0);
  ASSERT_OK_AND_ASSIGN(const v1::ActiveJob cut_off, client->CancelJob(job.id()));
  EXPECT_EQ(cut_off.state(), v1::ActiveJob::SENDING);
  EXPECT_TRUE(Eventually([&] { return JobsOf(*client).empty(); }));
  EXPECT_TRUE(
      Eventually([&] { return server->Metric("gridclock_usage{name=\"arena_bytes\"") == 0; }));
  EXPECT_EQ(client->CancelJob(job.id()).status().code(), Code::kNotFound);
  for (std::string ignored; stream.Read(&ignored);) continue;
  EXPECT_EQ(stream.Finish().code(), Code::kCancelled);
}

v1::ListDevicesResponse DevicesOf(const std::shared_ptr<grpc::Channel>& channel) {
  v1::ListDevicesResponse devices;
  const RawResult result = RawCall(channel, "/gridclock.v1.SystemService/ListDevices", {""});
  EXPECT_TRUE(result.status.ok() && devices.ParseFromString(result.messages.at(0)));
  return devices;
}

TEST(Admin, ADrainedDeviceIsNotServingUntilItIsUndrained) {
  ASSERT_OK_AND_ASSIGN(const auto server, AdminServer());
  const auto client = Operator(*server);
  const auto channel = Connect(server->address());
  v1::DrainDeviceRequest drain;
  drain.set_device("cpu");
  EXPECT_THAT(client->DrainDevice(drain).status(), ReasonIs("LAST_DEVICE"));
  EXPECT_THAT(client->CheckHealth("device/cpu"), IsOk());

  drain.set_allow_last(true);
  ASSERT_OK_AND_ASSIGN(const v1::DrainDeviceResponse drained, client->DrainDevice(drain));
  EXPECT_TRUE(drained.changed());
  EXPECT_EQ(drained.device(), "cpu");
  for (const std::string service : {"device/cpu", "", "gridclock.v1.KernelService"}) {
    EXPECT_TRUE(Eventually([&] { return !client->CheckHealth(service).ok(); })) << service;
  }
  EXPECT_THAT(client->CheckHealth("gridclock.v1.SystemService"), IsOk());
  EXPECT_TRUE(DevicesOf(channel).devices(0).drained());
  EXPECT_THAT(GoodCall(channel), StatusIs(Code::kUnavailable, HasSubstr("drained")));
  const std::string drained_calls =
      "gridclock_rpc_drained_total{method=\"gridclock.v1.KernelService/Run\"} 1\n";
  EXPECT_THAT(server->Metrics(), AllOf(HasSubstr("gridclock_device_drained{device=\"cpu\"} 1\n"),
                                       HasSubstr("gridclock_worker_up{device=\"cpu\"} 1\n"),
                                       HasSubstr(drained_calls)));

  ASSERT_THAT(client->UndrainDevice("cpu").status(), IsOk());
  EXPECT_THAT(GoodCall(channel), IsOk());
  EXPECT_TRUE(Eventually([&] { return client->CheckHealth("device/cpu").ok(); }));
  EXPECT_FALSE(DevicesOf(channel).devices(0).drained());
}

TEST(Admin, D19_AnAnswerThatIsKeptIsGivenWhereTheDeviceTakesNoCalls) {
  ASSERT_OK_AND_ASSIGN(const auto server, AdminServer());
  const auto channel = Connect(server->address());
  const auto request_of = [](const std::string& kernel) {
    v1::RunRequest request = InlineRequest(kernel, {1, 2});
    request.set_request_id("a");
    return request.SerializeAsString();
  };
  const RawResult first = RawCall(channel, kRunMethod, {request_of("square")});
  ASSERT_THAT(first.status, IsOk());
  v1::DrainDeviceRequest drain;
  drain.set_device("cpu");
  drain.set_allow_last(true);
  ASSERT_THAT(Operator(*server)->DrainDevice(drain).status(), IsOk());
  EXPECT_THAT(GoodCall(channel), StatusIs(Code::kUnavailable, HasSubstr("drained")));
  const RawResult again = RawCall(channel, kRunMethod, {request_of("square")});
  EXPECT_THAT(again.status, IsOk());
  EXPECT_EQ(again.messages, first.messages);
  EXPECT_THAT(RawCall(channel, kRunMethod, {request_of("relu")}).status,
              StatusIs(Code::kInvalidArgument, HasSubstr("request_id")));
}

TEST(Admin, ACallThatRunsWhileItsDeviceIsDrainedEndsWell) {
  ASSERT_OK_AND_ASSIGN(const auto server, AdminServer());
  const auto client = Operator(*server);
  RunCall call;
  call.kernel = "hold";
  std::promise<absl::Status> ended;
  client->RunAsync(
      call, {}, [&](const absl::StatusOr<RunResult>& result) { ended.set_value(result.status()); });
  ASSERT_TRUE(Runs(*client));
  v1::DrainDeviceRequest drain;
  drain.set_device("cpu");
  drain.set_allow_last(true);
  ASSERT_OK_AND_ASSIGN(const v1::DrainDeviceResponse drained, client->DrainDevice(drain));
  EXPECT_EQ(drained.jobs(), 1U);
  server->LetGo();
  EXPECT_THAT(ended.get_future().get(), IsOk());
}

TEST(Admin, ARestartGivesTheDeviceAnotherWorker) {
  ASSERT_OK_AND_ASSIGN(const auto server, AdminServer());
  const auto client = Operator(*server);
  const auto channel = Connect(server->address());
  const auto before = server->Workers();
  v1::RestartWorkerRequest restart;
  restart.set_device("cpu");
  ASSERT_THAT(client->RestartWorker(restart).status(), IsOk());
  EXPECT_TRUE(Eventually([&] { return DevicesOf(channel).devices(0).restarts() == 1; }));
  EXPECT_THAT(GoodCall(channel), IsOk());  // It waits for the new worker.
  EXPECT_NE(server->Workers(), before);
  EXPECT_THAT(server->Metrics(),
              HasSubstr("gridclock_worker_restarts_total{device=\"cpu\",reason=\"restart\"} 1\n"));

  auto running = Spin(*client);
  ASSERT_TRUE(Runs(*client));
  restart.set_now(true);
  ASSERT_THAT(client->RestartWorker(restart).status(), IsOk());
  const absl::Status lost = running.get();
  EXPECT_THAT(lost, StatusIs(Code::kUnavailable, HasSubstr("restarted by an operator")));
  EXPECT_THAT(lost, ReasonIs("WORKER_CRASHED"));
  EXPECT_THAT(GoodCall(channel), IsOk());
}

// ---- Who may. ----

TEST(Admin, LocalCallersMayNotUnlessTheServerSaysSo) {
  ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start());
  const auto client = Operator(*server);
  const absl::Status refused = client->ListJobs().status();
  EXPECT_THAT(refused, StatusIs(Code::kPermissionDenied, HasSubstr("--allow-admin")));
  EXPECT_THAT(refused, ReasonIs("ROLE_MISSING"));
  EXPECT_THAT(client->Reload().status(), ReasonIs("ROLE_MISSING"));
  EXPECT_THAT(GoodCall(Connect(server->address())), IsOk());
}

TEST(Admin, ATokenNeedsTheRole) {
  const std::string path = NewFolder() + "/tokens";
  Write(path, Tokens({{"ann", "read,run"}, {"root", "admin"}}));
  ASSERT_OK_AND_ASSIGN(const auto server,
                       ServerProcess::Start({.flags = {"--token-file=" + path, "--allow-admin"},
                                             .environment = kJsonLog}));
  EXPECT_EQ(LinesOf(*server, "allow_admin_has_no_effect", 1)[0]["level"], "warning");
  const auto ann = Operator(*server, "ann-secret");
  v1::DrainDeviceRequest drain;
  drain.set_device("cpu");
  drain.set_allow_last(true);
  v1::RestartWorkerRequest restart;
  restart.set_device("cpu");
  const auto stranger = Operator(*server);
  for (int i = 0; i < 100; ++i) {
    EXPECT_THAT(stranger->ListJobs().status(), StatusIs(Code::kUnauthenticated, HasSubstr("")));
  }
  for (const absl::Status& status :
       {ann->ListJobs().status(), ann->CancelJob(1).status(), ann->DrainDevice(drain).status(),
        ann->UndrainDevice("cpu").status(), ann->RestartWorker(restart).status(),
        ann->Reload().status()}) {
    EXPECT_THAT(status, StatusIs(Code::kPermissionDenied, HasSubstr("'admin', which this token")));
  }
  EXPECT_THAT(Operator(*server, "root-secret")->ListJobs().status(), IsOk());
  // A flood of strangers has hidden none of them.
  for (const json& line : LinesOf(*server, "admin_refused", 6)) EXPECT_EQ(line["who"], "ann");
  EXPECT_GE(LinesNow(*server, "admin_unknown").size(), 50U);
  EXPECT_EQ(LinesOf(*server, "admin_list_jobs", 1)[0]["who"], "root");
  EXPECT_THAT(server->Log(), Not(HasSubstr("secret")));
}

// ---- Bad input. ----

TEST(Admin, A_BadNamesAreAnsweredAndLeaveOneLineEach) {
  ASSERT_OK_AND_ASSIGN(const auto server,
                       ServerProcess::Start({.flags = {"--allow-admin"}, .environment = kJsonLog}));
  const auto client = Operator(*server);
  const std::string forged = "cpu\"}\n{\"event\":\"admin_reload\",\"who\":\"root\"}\x1b[31m";
  struct Row {
    std::string device;
    Code code;
    std::string text;
  };
  const Row rows[] = {{"", Code::kInvalidArgument, "want a name"},
                      {"cuda", Code::kFailedPrecondition, "no device of kind"},
                      {"cuda:7", Code::kNotFound, "the devices are 'cpu'"},
                      {forged, Code::kNotFound, "no device"},
                      {std::string(10'000, 'x'), Code::kNotFound, "no device"}};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.device.substr(0, 20));
    v1::DrainDeviceRequest drain;
    drain.set_device(row.device);
    EXPECT_THAT(client->DrainDevice(drain).status(), StatusIs(row.code, HasSubstr(row.text)));
    EXPECT_THAT(client->UndrainDevice(row.device).status(),
                StatusIs(row.code, HasSubstr(row.text)));
    v1::RestartWorkerRequest restart;
    restart.set_device(row.device);
    EXPECT_THAT(client->RestartWorker(restart).status(), StatusIs(row.code, HasSubstr(row.text)));
  }
  const auto channel = Connect(server->address());
  for (const std::string method :
       {"ListJobs", "CancelJob", "DrainDevice", "UndrainDevice", "RestartWorker", "Reload"}) {
    EXPECT_THAT(RawCall(channel, "/gridclock.v1.AdminService/" + method, {"\xff\xff\xff"}).status,
                StatusIs(Code::kInvalidArgument, HasSubstr("cannot parse")));
  }
  EXPECT_THAT(RawCall(channel, "/gridclock.v1.AdminService/Stop", {""}).status,
              StatusIs(Code::kUnimplemented,
                       HasSubstr("no method '/gridclock.v1.AdminService/Stop' here")));
  EXPECT_THAT(GoodCall(channel), IsOk());
  // Each method was called once more, with what is no message.
  for (const char* event : {"admin_drain_device", "admin_undrain_device", "admin_restart_worker"}) {
    LinesOf(*server, event, std::size(rows) + 1);
  }
  LinesOf(*server, "admin_reload", 1);
  EXPECT_THAT(server->Log(), AllOf(Not(HasSubstr("\x1b")), Not(HasSubstr(std::string(65, 'x')))));
}

// Whoever floods the log with refusals or with jobs that are none hides no line of an action.
TEST(Admin, EachCallIsALineHoweverManyThereAre) {
  ASSERT_OK_AND_ASSIGN(const auto server,
                       ServerProcess::Start({.flags = {"--allow-admin"}, .environment = kJsonLog}));
  const auto client = Operator(*server);
  for (int i = 0; i < 199; ++i) {
    EXPECT_THAT(client->CancelJob(1'000'000).status(), StatusIs(Code::kNotFound, HasSubstr("")));
  }
  auto running = Spin(*client);
  ASSERT_TRUE(Runs(*client));
  const v1::ActiveJob job = JobsOf(*client).at(0);
  ASSERT_THAT(client->CancelJob(job.id()).status(), IsOk());

  EXPECT_EQ(LinesOf(*server, "admin_cancel_job", 200)[199]["what"],
            absl::StrCat("job ", job.id(), " of 'local', kernel 'spin' on 'cpu'"));
  v1::RestartWorkerRequest restart;
  restart.set_device("cpu");
  restart.set_now(true);
  ASSERT_THAT(client->RestartWorker(restart).status(), IsOk());
  EXPECT_THAT(running.get(), ReasonIs("BY_OPERATOR"));
}

TEST(Log, TheLinesOfACallNameIt) {
  ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start({.environment = kJsonLog}));
  RunCall call;
  call.kernel = "fault";
  call.attributes = {{"kind", std::string("segfault")}};
  call.request_id = "night-42";
  EXPECT_THAT(Operator(*server)->Run(call).status(),
              StatusIs(Code::kInternal, HasSubstr("signal 11")));
  const json failed = LinesOf(*server, "call_failed", 1)[0];
  EXPECT_EQ(failed["method"], "gridclock.v1.KernelService/Run");
  EXPECT_EQ(failed["code"], "INTERNAL");
  EXPECT_EQ(failed["reason"], "");
  EXPECT_EQ(failed["client"], "local");
  EXPECT_EQ(failed["request_id"], "night-42");
  EXPECT_EQ(failed["job"], "1");
  const json lost = LinesOf(*server, "worker_lost", 1)[0];
  EXPECT_EQ(lost["kernel"], "fault");
  EXPECT_EQ(lost["client"], "local");
  EXPECT_EQ(lost["request_id"], "night-42");
  EXPECT_EQ(lost["job"], failed["job"]);
  EXPECT_EQ(lost["trace_id"], failed["trace_id"]);
}

TEST(Log, NoLineHoldsAValueOfATensor) {
  ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start({.environment = kJsonLog}));
  const auto channel = Connect(server->address());
  v1::RunRequest request = InlineRequest("square", {123457, 123457});
  const auto run = [&] {
    return RawCall(channel, kRunMethod, {request.SerializeAsString()}).status;
  };
  EXPECT_THAT(run(), IsOk());
  request.set_verify(true);
  EXPECT_THAT(run(), IsOk());
  request.mutable_inputs(0)->mutable_data()->append("123457");  // More than its shape takes.
  EXPECT_THAT(run(), StatusIs(Code::kInvalidArgument, HasSubstr("bytes")));
  kill(server->Workers().at(0), SIGKILL);
  LinesOf(*server, "worker_lost", 1);
  EXPECT_THAT(server->Log(), Not(HasSubstr("123457")));
  EXPECT_THAT(server->Log(), Not(HasSubstr("15241830849")));  // Its square.
}

TEST(Log, AWorkerThatRanNothingIsLostWithoutACall) {
  ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start({.environment = kJsonLog}));
  kill(server->Workers().at(0), SIGKILL);
  const json lost = LinesOf(*server, "worker_lost", 1)[0];
  EXPECT_EQ(lost["detail"], "signal 9");
  EXPECT_EQ(lost["job"], "0");
  EXPECT_EQ(lost["kernel"], "");
}

}  // namespace
}  // namespace gridclock
