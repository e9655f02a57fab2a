// What ends a server before it serves, and what its flags mean.
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <signal.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gridclock/v1/modules.pb.h"
#include "gridclock/v1/system.pb.h"
#include "tests/support/raw_call.h"
#include "tests/support/server_process.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::HasSubstr;

TEST(Start, E12_AServerThatIsToldToEndsWhereADeviceCannotBeServed) {
  ASSERT_OK_AND_ASSIGN(
      const auto bad,
      ServerProcess::Start({.flags = {"--worker=" + NewScript("exit 3\n"), "--exit-on-error"},
                            .wait_until_ready = false}));
  EXPECT_EQ(bad->Wait(), 1);
  EXPECT_THAT(bad->Log(), HasSubstr("gridclock-server: --exit-on-error: device 'cpu': its workers "
                                    "end, or hang, before they are ready"));
  ASSERT_OK_AND_ASSIGN(const auto good, ServerProcess::Start({.flags = {"--exit-on-error"}}));
  EXPECT_THAT(GoodCall(Connect(good->address())), IsOk());
  good->Signal(SIGTERM);
  EXPECT_EQ(good->Wait(), 0);
}

absl::Status Compile(const ServerProcess& server) {
  v1::CompileRequest request;
  request.mutable_source()->set_name("kernel.cu");
  request.mutable_source()->set_text("__global__ void nothing() {}\n");
  return RawCall(Connect(server.address()), "/gridclock.v1.ModuleService/Compile",
                 {request.SerializeAsString()})
      .status;
}

// How many compiles count as refused by a server that starts, once `all` have ended as UNAVAILABLE.
double CompilesNotCounted(const ServerProcess& server, double all) {
  const std::string method = "method=\"gridclock.v1.ModuleService/Compile\"";
  EXPECT_TRUE(Eventually([&] {
    return server.Metric(absl::StrCat("gridclock_rpc_requests_total{", method,
                                      ",code=\"UNAVAILABLE\"}")) == all;
  }));
  return server.Metric(absl::StrCat("gridclock_rpc_drained_total{", method, "}")).value_or(0);
}

TEST(Start, ACompilerThatHasNotSaidWhatItCanDoIsStarting) {
  ASSERT_OK_AND_ASSIGN(
      const auto server,
      ServerProcess::Start(
          {.flags = {"--allow-submit", "--compiler=" + NewScript("exec sleep 600\n")}}));
  const absl::Status refused = Compile(*server);
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kUnavailable, HasSubstr("starting")));
  EXPECT_THAT(refused, ReasonIs("COMPILER_STARTING"));
  EXPECT_TRUE(Eventually([&] { return CompilesNotCounted(*server, 1) == 1; }));
}

TEST(Start, ACompilerThatEndsBeforeItHasSaidWhatItCanDoIsLost) {
  ASSERT_OK_AND_ASSIGN(
      const auto server,
      ServerProcess::Start({.flags = {"--allow-submit", "--compiler=" + NewScript("exit 3\n")}}));
  ASSERT_TRUE(Eventually(
      [&] { return server->Metric("gridclock_compiler_restarts_total").value_or(0) > 0; }));
  const absl::Status refused = Compile(*server);
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kUnavailable, HasSubstr("the log says why")));
  EXPECT_THAT(refused, ReasonIs("COMPILER_LOST"));
  EXPECT_EQ(CompilesNotCounted(*server, 1), 0);
}

// Lists a GPU too, whose workers wait for the file and then end.
std::string WorkerWithABadGpu(const std::string& file) {
  return NewScript(absl::StrCat(
      "case \"$*\" in\n*--list-devices*)\n",
      R"(echo '{"name":"cuda:0","kind":"cuda"}'; echo '{"name":"cpu","kind":"cpu"}' ;;)",
      "\n*'--device cuda:0'*) until [ -e ", file, " ]; do sleep 0.05; done; exit 3 ;;\n*) exec ",
      BinaryPath("gridclock-test-worker"), " \"$@\" ;;\nesac\n"));
}

bool Serves(const std::shared_ptr<grpc::Channel>& channel, const std::string& service) {
  const RawResult result =
      RawCall(channel, "/grpc.health.v1.Health/Check",
              {absl::StrCat("\x0a", std::string(1, static_cast<char>(service.size())), service)});
  return result.status.ok() && result.messages.at(0) == "\x08\x01";
}

bool IsBusy(const std::shared_ptr<grpc::Channel>& channel) {
  const RawResult result = RawCall(channel, "/gridclock.v1.SystemService/ListDevices", {""});
  v1::ListDevicesResponse devices;
  return result.status.ok() && devices.ParseFromString(result.messages.at(0)) &&
         devices.devices(0).state() == v1::Device::BUSY;
}

TEST(Start, AServerThatIsToldToEndsIsNotReadyBeforeAllDevicesAndLetsCallsEnd) {
  const std::string folder = NewFolder();
  const std::string ready = folder + "/ready", fail = folder + "/fail";
  ASSERT_OK_AND_ASSIGN(const auto server,
                       ServerProcess::Start({.flags = {"--devices=cpu,cuda:0", "--exit-on-error",
                                                       "--worker=" + WorkerWithABadGpu(fail),
                                                       "--ready-file=" + ready},
                                             .wait_until_ready = false}));
  const auto channel = Connect(server->ListensOn());
  ASSERT_TRUE(Eventually([&] { return Serves(channel, "device/cpu"); }, absl::Seconds(120)));
  absl::Status running;
  std::thread call(
      [&] { running = RawCall(channel, kRunMethod, {HoldRequest().SerializeAsString()}).status; });
  EXPECT_TRUE(Eventually([&] { return IsBusy(channel); }));
  EXPECT_FALSE(Serves(channel, ""));
  EXPECT_FALSE(std::filesystem::exists(ready));
  std::ofstream(fail) << "now";
  EXPECT_TRUE(Eventually([&] { return absl::StrContains(server->Log(), "start_failed"); }));
  server->LetGo();
  EXPECT_EQ(server->Wait(), 1);
  call.join();
  EXPECT_THAT(running, IsOk());
  EXPECT_FALSE(std::filesystem::exists(ready));
  EXPECT_THAT(server->Log(), HasSubstr("gridclock-server: --exit-on-error: device 'cuda:0'"));
}

TEST(Start, TheLogSaysWhereSubmittedCodeHasLessRoomThanOtherCalls) {
  for (const auto& [bytes, small] : {std::pair("64M", true), {"128M", false}}) {
    ASSERT_OK_AND_ASSIGN(
        const auto server,
        ServerProcess::Start({.flags = {"--allow-submit", "--limit-client-arena-bytes=128M",
                                        absl::StrCat("--limit-guest-bytes=", bytes)}}));
    const std::string log = server->FinalLog();
    EXPECT_EQ(absl::StrContains(log,
                                " W guest_memory_small guest_bytes=\"67108864\" "
                                "client_arena_bytes=\"134217728\""),
              small)
        << log;
  }
}

TEST(Start, TheLogSaysWhatIsAllowedAndWhatHasNoEffect) {
  ASSERT_OK_AND_ASSIGN(
      const auto server,
      ServerProcess::Start({.flags = {"--allow-admin", "--allow-cubin", "--limit-arena-bytes=64M",
                                      "--arena-warm-bytes=65M"}}));
  const std::string log = server->FinalLog();
  EXPECT_THAT(log, HasSubstr("allow_submit=\"off\" allow_admin=\"on\" insecure_public=\"off\""));
  EXPECT_THAT(log, HasSubstr(" W allow_cubin_has_no_effect "));
  EXPECT_THAT(log, HasSubstr("arena_warm_bytes_lowered asked=\"68157440\" to=\"67108864\""));
}

// Who waits for the file would wait for ever.
TEST(Start, AReadyFileThatCannotBeWrittenEndsTheStart) {
  const std::string folder = NewFolder();
  for (const std::string& path : {absl::StrCat(folder, "/no/such"), folder}) {
    EXPECT_THAT(ServerProcess::Start({.flags = {"--ready-file=" + path}}),
                StatusIs(absl::StatusCode::kUnavailable,
                         HasSubstr(absl::StrCat("--ready-file: cannot write '", path, "': "))));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

TEST(Start, BytesMayBeGivenInStepsOf1024) {
  ASSERT_OK_AND_ASSIGN(
      const auto server,
      ServerProcess::Start({.flags = {"--limit-chunk-bytes=64K", "--limit-header-bytes=1.5MiB",
                                      "--limit-inline-bytes=64 KiB", "--limit-rpc-bytes=2GB",
                                      "--limit-window-bytes=1e6"},
                            .environment = {"GRIDCLOCK_LIMIT_CONTROL_BYTES=512K"}}));
  for (const auto& [name, bytes] : {std::pair("chunk_bytes", 65536),
                                    {"header_bytes", 1572864},
                                    {"inline_bytes", 65536},
                                    {"window_bytes", 1000000},
                                    {"control_bytes", 524288}}) {
    EXPECT_THAT(server->Metrics(),
                HasSubstr(absl::StrCat("gridclock_limit{name=\"", name, "\"} ", bytes, "\n")));
  }
  EXPECT_THAT(server->Metrics(), HasSubstr("gridclock_limit{name=\"rpc_bytes\"} 2147483648\n"));
  for (const char* wrong : {"1T", "K", "64k", "4 M B", "3G"}) {
    ASSERT_OK_AND_ASSIGN(
        const auto refused,
        ServerProcess::Start(
            {.flags = {absl::StrCat("--limit-window-bytes=", wrong)}, .wait_until_ready = false}));
    EXPECT_EQ(refused->Wait(), 2) << wrong;
    EXPECT_THAT(refused->Log(), HasSubstr("--limit-window-bytes: want 4096 to"));
  }
}

TEST(Start, ALimitUnderWhichNoCallFitsIsRefused) {
  for (const auto& [flag, text] :
       {std::pair("--limit-chunk-bytes=0", "--limit-chunk-bytes: want 4096 to"),
        {"--limit-message-bytes=16383", "--limit-message-bytes: want 16384 to"},
        {"--limit-message-bytes=1M",
         "is too short for the chunks that --limit-chunk-bytes 1048576"},
        {"--limit-queue=1.5", "--limit-queue: want a whole number of jobs, got 1.5"},
        {"--limit-queue=0", "--limit-queue: want 1 to 1000000000000000 jobs, got 0"},
        {"--limit-arena-bytes=4095",
         "--limit-arena-bytes 4095 is too little for any call: want 4096 or more, or 0"}}) {
    ASSERT_OK_AND_ASSIGN(const auto refused,
                         ServerProcess::Start({.flags = {flag}, .wait_until_ready = false}));
    EXPECT_EQ(refused->Wait(), 2) << flag;
    EXPECT_THAT(refused->Log(), HasSubstr(text));
  }
}

TEST(Start, AnAddressThatIsTakenEndsTheServerWithItsFlag) {
  ASSERT_OK_AND_ASSIGN(const auto first, ServerProcess::Start());
  for (const auto& [flag, address] :
       {std::pair("--listen", first->address()), {"--metrics-listen", first->metrics_address()}}) {
    ASSERT_OK_AND_ASSIGN(const auto second,
                         ServerProcess::Start({.flags = {absl::StrCat(flag, "=", address)},
                                               .wait_until_ready = false}));
    EXPECT_EQ(second->Wait(), 1);
    EXPECT_THAT(second->Log(),
                HasSubstr(absl::StrCat("gridclock-server: ", flag, ": cannot listen on ", address,
                                       ": Address already in use\n")));
  }
}

TEST(Start, AnAddressOfMetricsThatCannotBeIsRefusedBeforeAnythingStarts) {
  for (const auto& [flags, text] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"--metrics-listen=localhost"}, "--metrics-listen: want HOST:PORT such as"},
           {{"--metrics-listen=127.0.0.1:99999"}, "--metrics-listen: want HOST:PORT such as"},
           {{"--metrics-listen=[::1]:18481"},
            "--metrics-listen: want an address of IPv4 such as 127.0.0.1:8471, got '[::1]:18481'"},
           {{"--listen=127.0.0.1:18481", "--metrics-listen=127.0.0.1:18481"},
            "--listen and --metrics-listen both name 127.0.0.1:18481"}}) {
    ASSERT_OK_AND_ASSIGN(const auto refused,
                         ServerProcess::Start({.flags = flags, .wait_until_ready = false}));
    EXPECT_EQ(refused->Wait(), 2) << text;
    EXPECT_THAT(refused->Log(), HasSubstr(text));
  }
}

TEST(Start, AFlagOutOfItsRangeEndsTheServer) {
  for (const char* bytes : {"-1", "nan"}) {
    ASSERT_OK_AND_ASSIGN(
        const auto server,
        ServerProcess::Start(
            {.flags = {absl::StrCat("--arena-warm-bytes=", bytes)}, .wait_until_ready = false}));
    EXPECT_EQ(server->Wait(), 2);
    EXPECT_THAT(server->Log(), HasSubstr("want 0 to 1000000000000000 bytes"));
  }
}

}  // namespace
}  // namespace gridclock
