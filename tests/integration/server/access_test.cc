// Who may connect and call: tokens, roles, TLS, addresses, reflection; and what the program needs.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "tests/support/credentials.h"
#include "tests/support/raw_call.h"
#include "tests/support/server_process.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// alice may read and run, bob may only read.
std::string TokenFile(const std::string& folder) {
  const std::string path = folder + "/tokens";
  Write(path, absl::StrCat("# name roles hash\nalice read,run ", HashedToken("alice-secret"),
                           "\nbob read ", HashedToken("bob-secret")));
  return path;
}

absl::Status CallWith(const std::shared_ptr<grpc::Channel>& channel,
                      const std::vector<std::string>& authorizations) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  for (const auto& value : authorizations) context.AddMetadata("authorization", value);
  return RawCall(channel, kRunMethod, {InlineRequest("square", {1}).SerializeAsString()}, context)
      .status;
}

TEST(Access, H1_H2_ACallNeedsATokenWithTheRole) {
  const std::string tokens = TokenFile(NewFolder());
  ASSERT_OK_AND_ASSIGN(const auto server,
                       ServerProcess::Start({.flags = {"--token-file=" + tokens}}));
  const auto channel = Connect(server->address());
  EXPECT_THAT(CallWith(channel, {"Bearer alice-secret"}), IsOk());
  const auto refused = StatusIs(absl::StatusCode::kUnauthenticated, HasSubstr("Bearer TOKEN"));
  EXPECT_THAT(CallWith(channel, {}), refused);
  EXPECT_THAT(CallWith(channel, {""}), refused);
  EXPECT_THAT(CallWith(channel, {"Bearer "}), refused);
  EXPECT_THAT(CallWith(channel, {"Bearer wrong"}), refused);
  EXPECT_THAT(CallWith(channel, {"alice-secret"}), refused);
  EXPECT_THAT(CallWith(channel, {"Bearer alice-secret", "Bearer bob-secret"}), refused);
  EXPECT_THAT(CallWith(channel, {absl::StrCat("Bearer ", std::string(5000, 'x'))}), refused);
  EXPECT_THAT(CallWith(channel, {"Bearer bob-secret"}),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("'run'")));
  EXPECT_THAT(server->Log(), Not(HasSubstr("secret")));
}

TEST(Access, TlsServesThoseWhoSpeakIt) {
  const Certificates files(NewFolder());
  ASSERT_OK_AND_ASSIGN(const auto server,
                       ServerProcess::Start({.flags = {"--tls-cert=" + files.Path("server.pem"),
                                                       "--tls-key=" + files.Path("server.key")}}));
  EXPECT_THAT(CallWith(files.Connect(server->address(), false), {}), IsOk());
  EXPECT_EQ(CallWith(Connect(server->address()), {}).code(), absl::StatusCode::kUnavailable);
}

TEST(Access, H3_WithoutAClientCertificateThereIsNoConnection) {
  const Certificates files(NewFolder());
  ASSERT_OK_AND_ASSIGN(
      const auto server,
      ServerProcess::Start({.flags = {"--tls-cert=" + files.Path("server.pem"),
                                      "--tls-key=" + files.Path("server.key"),
                                      "--tls-client-ca=" + files.Path("ca.pem")}}));
  EXPECT_THAT(CallWith(files.Connect(server->address(), true), {}), IsOk());
  EXPECT_EQ(CallWith(files.Connect(server->address(), false), {}).code(),
            absl::StatusCode::kUnavailable);
}

void ExpectRefusal(const std::vector<std::string>& flags, const std::string& sentence,
                   const std::vector<std::string>& environment = {}) {
  ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start({.flags = flags,
                                                                .environment = environment,
                                                                .wait_until_ready = false}));
  EXPECT_EQ(server->Wait(), 2);
  EXPECT_THAT(server->Log(), HasSubstr(sentence));
}

TEST(Access, H8_TokensAreNotTakenInPlainTextFromOthers) {
  const std::string tokens = TokenFile(NewFolder());
  ExpectRefusal({"--listen=0.0.0.0:0", "--insecure-public", "--token-file=" + tokens},
                "everyone on the way can read the tokens");
}

TEST(Access, H9_AnOpenAddressWithoutTlsIsRefused) {
  ExpectRefusal({"--listen=0.0.0.0:0"}, "--insecure-public");
}

TEST(Access, AMisspeltLimitOfTheEnvironmentIsRefused) {
  ExpectRefusal({},
                "the environment has 'GRIDCLOCK_LIMIT_QEUE', which is no limit: the nearest are "
                "'GRIDCLOCK_LIMIT_QUEUE'",
                {"GRIDCLOCK_LIMIT_QEUE=1"});
}

TEST(Access, AKeyWithoutItsCertificateIsRefused) {
  ExpectRefusal({"--tls-key=/dev/null"}, "--tls-cert and --tls-key go together");
}

TEST(Access, AKeyOfAnotherCertificateIsRefused) {
  const Certificates files(NewFolder());
  ExpectRefusal({"--tls-cert=" + files.Path("server.pem"), "--tls-key=" + files.Path("client.key")},
                "--tls-key does not belong to --tls-cert");
}

TEST(Access, APemThatCannotBeReadIsRefusedByItsFlag) {
  const Certificates files(NewFolder());
  const std::string cert = files.Path("server.pem"), key = files.Path("server.key");
  const std::string locked = files.Path("locked.key");
  Output(
      absl::StrCat("openssl rsa -aes128 -passout pass:word -in ", key, " -out ", locked, " 2>&1"));
  ExpectRefusal({"--tls-cert=nosuch", "--tls-key=" + key},
                "--tls-cert: cannot read 'nosuch': No such file or directory");
  ExpectRefusal({"--tls-cert=" + key, "--tls-key=" + key},
                absl::StrCat("--tls-cert: '", key, "' holds no certificate as PEM"));
  for (const std::string& wrong : {cert, locked}) {
    ExpectRefusal({"--tls-cert=" + cert, "--tls-key=" + wrong},
                  absl::StrCat("--tls-key: '", wrong, "' holds no private key as PEM"));
  }
  ExpectRefusal({"--tls-cert=" + cert, "--tls-key=" + key, "--tls-client-ca=" + key},
                absl::StrCat("--tls-client-ca: '", key, "' holds no certificate as PEM"));
  ExpectRefusal({"--token-file=nosuch"}, "--token-file: cannot read 'nosuch': No such file");
}

TEST(Access, ATokenFileThatCannotBeReadIsRefusedByLine) {
  const std::string path = NewFolder() + "/tokens";
  Write(path, "# fine\nalice everything sha256:00:11\n");
  ExpectRefusal({"--token-file=" + path}, "line 2");
}

RawResult ListServices(const std::shared_ptr<grpc::Channel>& channel) {
  return RawCall(channel, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
                 {std::string("\x3a\x01*", 3)});
}

TEST(Access, H10_ReflectionIsThereOnlyIfItIsTurnedOn) {
  ASSERT_OK_AND_ASSIGN(const auto with, ServerProcess::Start({.flags = {"--reflection=on"}}));
  const RawResult listed = ListServices(Connect(with->address()));
  ASSERT_THAT(listed.status, IsOk());
  EXPECT_THAT(listed.messages.at(0), HasSubstr("gridclock.v1.KernelService"));
  ASSERT_OK_AND_ASSIGN(const auto without, ServerProcess::Start({.flags = {"--reflection=off"}}));
  EXPECT_EQ(ListServices(Connect(without->address())).status.code(),
            absl::StatusCode::kUnimplemented);
}

TEST(Access, H10_ReflectionAsksForNoTokenSoItIsOffByDefaultWhereThereAreTokens) {
  ASSERT_OK_AND_ASSIGN(const auto server,
                       ServerProcess::Start({.flags = {"--token-file=" + TokenFile(NewFolder())}}));
  EXPECT_EQ(ListServices(Connect(server->address())).status.code(),
            absl::StatusCode::kUnimplemented);
}

TEST(Access, H10_ReflectionIsOffByDefaultWhereOthersCanConnect) {
  const std::pair<std::string, absl::StatusCode> addresses[] = {
      {"127.0.0.1:0", absl::StatusCode::kOk}, {"0.0.0.0:0", absl::StatusCode::kUnimplemented}};
  for (const auto& [address, code] : addresses) {
    ASSERT_OK_AND_ASSIGN(
        const auto server,
        ServerProcess::Start({.flags = {"--listen=" + address, "--insecure-public"}}));
    EXPECT_EQ(ListServices(Connect(server->address())).status.code(), code) << address;
    const bool warned = absl::StrContains(server->Log(), "open_to_all");
    EXPECT_EQ(warned, address == "0.0.0.0:0") << server->Log();
  }
}

TEST(Access, D13_OnePeerCannotHoldAllConnections) {
  ASSERT_OK_AND_ASSIGN(const auto server,
                       ServerProcess::Start({.flags = {"--limit-peer-connections=2"}}));
  auto first = Connect(server->address());
  const auto second = Connect(server->address());
  const auto third = Connect(server->address());
  EXPECT_THAT(GoodCall(first), IsOk());
  EXPECT_THAT(GoodCall(second), IsOk());
  EXPECT_EQ(GoodCall(third).code(), absl::StatusCode::kUnavailable);
  first.reset();
  EXPECT_TRUE(Eventually([&] { return GoodCall(Connect(server->address())).ok(); }));
}

}  // namespace
}  // namespace gridclock
