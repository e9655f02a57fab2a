// Files of tokens and certificates that a real server reads again: by AdminService and by SIGHUP.
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <future>
#include <memory>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "absl/strings/str_cat.h"
#include "base/unique_fd.h"
#include "client/cpp/client.h"
#include "gridclock/v1/admin.pb.h"
#include "tests/integration/server/operator.h"
#include "tests/support/credentials.h"
#include "tests/support/raw_call.h"
#include "tests/support/server_process.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

absl::StatusOr<std::unique_ptr<ServerProcess>> StartWithTokens(const std::string& path) {
  return ServerProcess::Start({.flags = {"--token-file=" + path}, .environment = kJsonLog});
}

TEST(Reload, TokensHoldFromTheNextCallOnAndABrokenFileChangesNothing) {
  const std::string path = NewFolder() + "/tokens";
  Write(path, Tokens({{"ann", "read"}, {"root", "admin"}}));
  ASSERT_OK_AND_ASSIGN(const auto server, StartWithTokens(path));
  const auto ann = Operator(*server, "ann-secret"), bob = Operator(*server, "bob-secret"),
             root = Operator(*server, "root-secret");
  EXPECT_THAT(ann->ListDevices().status(), IsOk());
  EXPECT_THAT(bob->ListDevices().status(), StatusIs(Code::kUnauthenticated, HasSubstr("")));
  Write(path, "bob everything sha256:00:11\n");
  ASSERT_OK_AND_ASSIGN(const v1::ReloadResponse broken, root->Reload());
  ASSERT_EQ(broken.parts_size(), 1);
  EXPECT_EQ(broken.parts(0).name(), "tokens");
  EXPECT_THAT(broken.parts(0).error(), HasSubstr("'" + path + "': line 1: want roles"));
  EXPECT_THAT(LinesOf(*server, "admin_reload", 1)[0].dump(),
              ContainsRegex("warning.*line 1: want roles.*tokens .failed, the old stay"));
  EXPECT_THAT(ann->ListDevices().status(), IsOk());
  EXPECT_THAT(server->Metrics(), HasSubstr("gridclock_reload_success{part=\"tokens\"} 0\n"));
  EXPECT_THAT(LinesOf(*server, "reload_failed", 1)[0]["error"].dump(), HasSubstr("line 1"));
  Write(path, Tokens({{"bob", "read"}, {"root", "admin"}}));
  ASSERT_OK_AND_ASSIGN(const v1::ReloadResponse good, root->Reload());
  EXPECT_EQ(good.parts(0).error(), "");
  EXPECT_THAT(ann->ListDevices().status(), StatusIs(Code::kUnauthenticated, HasSubstr("")));
  EXPECT_THAT(bob->ListDevices().status(), IsOk());
  EXPECT_THAT(server->Metrics(), HasSubstr("gridclock_reload_success{part=\"tokens\"} 1\n"));
}

double PeakKib(const ServerProcess& server) {
  return std::stod(
      Output(absl::StrCat("awk '/VmHWM/ {print $2}' /proc/", server.pid(), "/status")));
}

// A log at the wrong path: read whole, it took the server's memory and ended it.
TEST(Reload, OfAHugeFileNoMoreIsReadThanATokenFileMayHave) {
  const std::string path = NewFolder() + "/tokens";
  Write(path, Tokens({{"root", "admin"}}));
  ASSERT_OK_AND_ASSIGN(const auto server, StartWithTokens(path));
  const auto root = Operator(*server, "root-secret");
  const double before = PeakKib(*server);
  std::filesystem::resize_file(path, 1 << 30);
  ASSERT_OK_AND_ASSIGN(const v1::ReloadResponse huge, root->Reload());
  EXPECT_EQ(huge.parts(0).error(),
            absl::StrCat("--token-file: want at most 4 MiB, '", path, "' is larger"));
  EXPECT_LT(PeakKib(*server) - before, 64 << 10);
  EXPECT_THAT(server->Metrics(), HasSubstr("gridclock_reload_success{part=\"tokens\"} 0\n"));
  EXPECT_THAT(root->ListJobs().status(), IsOk());
}

TEST(Reload, ASighupReadsTheFilesAndEndsNothing) {
  const std::string path = NewFolder() + "/tokens";
  Write(path, Tokens({{"ann", "read"}}));
  ASSERT_OK_AND_ASSIGN(const auto server, StartWithTokens(path));
  const auto bob = Operator(*server, "bob-secret");
  Write(path, Tokens({{"bob", "read"}}));
  server->Signal(SIGHUP);
  EXPECT_TRUE(Eventually([&] { return bob->ListDevices().ok(); }));
  std::remove(path.c_str());
  server->Signal(SIGHUP);
  LinesOf(*server, "reload_failed", 1);
  EXPECT_THAT(bob->ListDevices().status(), IsOk());
  server->Signal(SIGTERM);
  EXPECT_EQ(server->Wait(), 0);
}

TEST(Reload, WithoutFilesASighupIsALineInTheLog) {
  ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start({.environment = kJsonLog}));
  server->Signal(SIGHUP);
  LinesOf(*server, "reload", 1);
  EXPECT_THAT(GoodCall(Connect(server->address())), IsOk());
}

std::string ReadOf(const Certificates& files, const std::string& name) {
  return Read(files.Path(name));
}

double ShownExpiry(const ServerProcess& server) {
  const std::string name = "\ngridclock_tls_certificate_expiry_time_seconds ";
  const std::string text = server.Metrics();
  const std::size_t at = text.find(name);
  return at == std::string::npos ? 0 : std::strtod(text.c_str() + at + name.size(), nullptr);
}

TEST(Reload, NewConnectionsGetTheNewCertificate) {
  const Certificates before(NewFolder()), after(NewFolder());
  const std::string folder = NewFolder();
  const auto install = [&](const std::string& key, const std::string& certificate) {
    Write(folder + "/key", key);
    Write(folder + "/pem", certificate);
  };
  install(ReadOf(before, "server.key"), ReadOf(before, "server.pem"));
  ASSERT_OK_AND_ASSIGN(const auto server,
                       ServerProcess::Start({.flags = {"--tls-cert=" + folder + "/pem",
                                                       "--tls-key=" + folder + "/key"},
                                             .environment = kJsonLog}));
  const auto old_connection = before.Connect(server->address(), false);
  EXPECT_THAT(GoodCall(old_connection), IsOk());
  EXPECT_EQ(GoodCall(after.Connect(server->address(), false)).code(), Code::kUnavailable);
  const double expiry = ShownExpiry(*server);
  EXPECT_NEAR(expiry, absl::ToDoubleSeconds(absl::Now() + absl::Hours(48) - absl::UnixEpoch()),
              600);

  // Half of a pair: the old one stays.
  install(ReadOf(before, "server.key"), ReadOf(after, "server.pem"));
  server->Signal(SIGHUP);
  EXPECT_THAT(LinesOf(*server, "reload_failed", 1)[0]["error"].dump(),
              HasSubstr("does not belong"));
  EXPECT_THAT(server->Metrics(), HasSubstr("gridclock_reload_success{part=\"certificates\"} 0\n"));
  EXPECT_THAT(GoodCall(before.Connect(server->address(), false)), IsOk());
  EXPECT_EQ(ShownExpiry(*server), expiry);

  // What OpenSSL reads and does not serve: gRPC would keep the old one, and nobody would know.
  MakeWeakPair(folder);
  install(Read(folder + "/weak.key"), Read(folder + "/weak.pem"));
  server->Signal(SIGHUP);
  EXPECT_THAT(LinesOf(*server, "reload_failed", 2)[1]["error"].dump(),
              HasSubstr("ee key too small"));
  EXPECT_THAT(server->Metrics(), HasSubstr("gridclock_reload_success{part=\"certificates\"} 0\n"));
  EXPECT_THAT(GoodCall(before.Connect(server->address(), false)), IsOk());
  EXPECT_EQ(ShownExpiry(*server), expiry);

  install(ReadOf(after, "server.key"), ReadOf(after, "server.pem"));
  server->Signal(SIGHUP);
  LinesOf(*server, "reload", 1);
  EXPECT_THAT(GoodCall(after.Connect(server->address(), false)), IsOk());
  EXPECT_EQ(GoodCall(before.Connect(server->address(), false)).code(), Code::kUnavailable);
  EXPECT_THAT(GoodCall(old_connection), IsOk());  // It stands as it began.
}

// What is left of a copy that broke off, and what OpenSSL and gRPC read differently.
TEST(Reload, AFileThatIsCutShortChangesNothing) {
  const Certificates files(NewFolder());
  const std::string good = ReadOf(files, "server.pem"), authority = ReadOf(files, "ca.pem");
  const std::string key = ReadOf(files, "server.key");
  const std::string cut = authority.substr(0, authority.size() / 2);
  const std::string folder = NewFolder();
  const auto install = [&](const std::string& pem, const std::string& ca, const std::string& own) {
    Write(folder + "/pem", pem);
    Write(folder + "/ca", ca);
    Write(folder + "/key", own);
  };
  install(good, authority, key);
  ASSERT_OK_AND_ASSIGN(const auto server,
                       ServerProcess::Start({.flags = {"--tls-cert=" + folder + "/pem",
                                                       "--tls-key=" + folder + "/key",
                                                       "--tls-client-ca=" + folder + "/ca"},
                                             .environment = kJsonLog}));
  std::size_t refused = 0;
  const auto expect_refusal = [&](const std::string& error) {
    server->Signal(SIGHUP);
    ++refused;
    EXPECT_THAT(LinesOf(*server, "reload_failed", refused)[refused - 1]["error"].dump(),
                HasSubstr(error));
    EXPECT_THAT(GoodCall(files.Connect(server->address(), true)), IsOk());
  };
  install(good + cut, authority, key);
  expect_refusal("/pem': certificate number 2 cannot be read");
  install(good, authority + good + cut, key);
  expect_refusal("/ca': certificate number 3 cannot be read");
  install(good + std::string(1, '\0') + authority, authority, key);
  expect_refusal(absl::StrCat("/pem' has a byte 0 behind ", good.size(), " others"));
  install(good, authority, key + std::string(1, '\0'));
  expect_refusal("/key' has a byte 0");
}

TEST(Reload, APipeIsNoFile) {
  const std::string path = NewFolder() + "/tokens";
  Write(path, Tokens({{"root", "admin"}}));
  ASSERT_OK_AND_ASSIGN(const auto server, StartWithTokens(path));
  std::remove(path.c_str());
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const auto root = Operator(*server, "root-secret");
  ASSERT_OK_AND_ASSIGN(const v1::ReloadResponse pipe, root->Reload());
  EXPECT_EQ(pipe.parts(0).error(),
            absl::StrCat("--token-file: want a regular file, got '", path, "'"));
}

// ---- A file system that does not answer. ----

// A server whose reloads begin with a pipe: they wait while somebody holds its other end.
struct SlowServer {
  SlowServer() {
    Write(tokens, Tokens({{"ann", "read"}, {"root", "admin"}}));
    EXPECT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  }
  absl::StatusOr<std::unique_ptr<ServerProcess>> Start() const {
    return ServerProcess::Start({.flags = {"--token-file=" + tokens, "--reload-pipe=" + pipe},
                                 .environment = kJsonLog,
                                 .program = "gridclock-test-server"});
  }
  // Once a reload reads it; until this is closed.
  UniqueFd Hold() const {
    UniqueFd held;
    EXPECT_TRUE(Eventually([&] {
      held.reset(open(pipe.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
      return static_cast<bool>(held);
    }));
    return held;
  }

  const std::string folder = NewFolder(), tokens = folder + "/tokens", pipe = folder + "/pipe";
};

std::future<absl::StatusOr<v1::ReloadResponse>> BeginReload(const Client& client) {
  return std::async(std::launch::async, [&client] { return client.Reload(); });
}

TEST(Reload, WhileOneReadsNobodyWaitsAndASighupIsNotLost) {
  const SlowServer slow;
  ASSERT_OK_AND_ASSIGN(const auto server, slow.Start());
  const auto root = Operator(*server, "root-secret"), ann = Operator(*server, "ann-secret"),
             bob = Operator(*server, "bob-secret");
  auto first = BeginReload(*root);
  UniqueFd held = slow.Hold();
  EXPECT_THAT(ann->ListDevices().status(), IsOk());
  EXPECT_THAT(server->Metrics(), HasSubstr("gridclock_reload_success{part=\"tokens\"} 1\n"));
  const absl::Status second = root->Reload().status();
  EXPECT_THAT(second, StatusIs(Code::kUnavailable, HasSubstr("still reads its files")));
  EXPECT_THAT(second, ReasonIs("RELOADING"));
  server->Signal(SIGHUP);
  LinesOf(*server, "reload_waits", 1);
  held.reset();
  ASSERT_OK_AND_ASSIGN(const v1::ReloadResponse done, first.get());
  EXPECT_EQ(done.parts_size(), 2);
  EXPECT_THAT(LinesOf(*server, "admin_reload", 2)[0]["result"].dump(), HasSubstr("UNAVAILABLE"));

  held = slow.Hold();  // That of the signal.
  Write(slow.tokens, Tokens({{"bob", "read"}}));
  EXPECT_THAT(bob->ListDevices().status(), StatusIs(Code::kUnauthenticated, HasSubstr("")));
  held.reset();
  EXPECT_TRUE(Eventually([&] { return bob->ListDevices().ok(); }));
}

TEST(Reload, SigtermEndsAServerWhoseReadDoesNotEnd) {
  const SlowServer slow;
  ASSERT_OK_AND_ASSIGN(const auto server, slow.Start());
  const auto root = Operator(*server, "root-secret");
  auto waits = BeginReload(*root);
  const UniqueFd held = slow.Hold();
  server->Signal(SIGTERM);
  EXPECT_THAT(waits.get().status(), ReasonIs("DRAINING"));
  EXPECT_EQ(server->Wait(), 0);
  LinesOf(*server, "stopped", 1);
}

TEST(Reload, SigtermIsHeardWhileTheReadOfASighupDoesNotEnd) {
  const SlowServer slow;
  ASSERT_OK_AND_ASSIGN(const auto server, slow.Start());
  server->Signal(SIGHUP);
  const UniqueFd held = slow.Hold();
  server->Signal(SIGTERM);
  EXPECT_EQ(server->Wait(), 0);
  LinesOf(*server, "stopped", 1);
}

}  // namespace
}  // namespace gridclock
