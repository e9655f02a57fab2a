// What ends a server before it serves.
#include <filesystem>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>
#include <signal.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
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

}  // namespace
}  // namespace gridclock
