// Who may connect and call: tokens, roles, TLS, addresses, reflection; and what the program needs.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/descriptor_database.h>
#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "grpc/reflection/v1alpha/reflection.pb.h"
#include "tests/support/credentials.h"
#include "tests/support/raw_call.h"
#include "tests/support/server_process.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

namespace reflection = grpc::reflection::v1alpha;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

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
  EXPECT_THAT(server->FinalLog(), AllOf(HasSubstr("stopped"), Not(HasSubstr("secret"))));
}

TEST(Access, TlsServesThoseWhoSpeakIt) {
  const Certificates files(NewFolder());
  ASSERT_OK_AND_ASSIGN(const auto server,
                       ServerProcess::Start({.flags = {"--tls-cert=" + files.Path("server.pem"),
                                                       "--tls-key=" + files.Path("server.key")}}));
  EXPECT_THAT(CallWith(files.Connect(server->address(), false), {}), IsOk());
  EXPECT_EQ(CallWith(Connect(server->address()), {}).code(), absl::StatusCode::kUnavailable);
}

TEST(Access, B11_AMessageThatIsTooLongIsRefusedBehindTheEncryptionToo) {
  const Certificates files(NewFolder());
  ASSERT_OK_AND_ASSIGN(const auto server,
                       ServerProcess::Start({.flags = {"--tls-cert=" + files.Path("server.pem"),
                                                       "--tls-key=" + files.Path("server.key")}}));
  const auto channel = files.Connect(server->address(), false);
  EXPECT_THAT(RawCall(channel, kRunMethod, {std::string(64 << 20, 'x')}).status,
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("larger than max (8519681 vs. 8519680)")));
  EXPECT_THAT(CallWith(channel, {}), IsOk());
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

// It would give the role to nobody.
TEST(Access, ARoleOfLocalCallersIsRefusedWhereNobodyIsOne) {
  const std::string sentence = " without --token-file is for local callers";
  for (const std::string flag : {"--allow-submit", "--allow-admin"}) {
    ExpectRefusal({"--listen=0.0.0.0:0", "--insecure-public", flag}, flag + sentence);
  }
  const Certificates files(NewFolder());
  ExpectRefusal({"--tls-cert=" + files.Path("server.pem"), "--tls-key=" + files.Path("server.key"),
                 "--tls-client-ca=" + files.Path("ca.pem"), "--allow-admin"},
                "--allow-admin" + sentence);
}

TEST(Access, AMisspeltFlagOfTheEnvironmentIsRefused) {
  ExpectRefusal({},
                "the environment has 'GRIDCLOCK_LIMIT_QEUE', which is no limit: behind GRIDCLOCK_ "
                "the nearest are 'LIMIT_QUEUE'",
                {"GRIDCLOCK_LIMIT_QEUE=1"});
  ExpectRefusal({},
                "the environment has 'GRIDCLOCK_LISTN', which is no flag: behind GRIDCLOCK_ the "
                "nearest are 'LISTEN'",
                {"GRIDCLOCK_PORT=tcp://10.0.0.7:50051", "GRIDCLOCK_TLS_PORT=tcp://10.0.0.8:443",
                 "GRIDCLOCK_LISTN=127.0.0.1:0"});
}

TEST(Access, ASecurityFileWithoutANameIsNotTakenForNone) {
  const std::string want = ": want a file, got ''";
  for (const std::string flag : {"--token-file", "--tls-client-ca"}) {
    ExpectRefusal({flag, ""}, flag + want);
  }
  ExpectRefusal({"--tls-cert", "", "--tls-key", ""}, "--tls-cert" + want);
  for (const std::string name : {"GRIDCLOCK_TOKEN_FILE", "GRIDCLOCK_TLS_KEY"}) {
    ExpectRefusal({}, name + want, {name + "="});
  }
}

TEST(Access, ASwitchOfTheEnvironmentIsTrueOrFalse) {
  ExpectRefusal({}, "--allow-admin: want true or false, got 'maybe'",
                {"GRIDCLOCK_ALLOW_ADMIN=maybe"});
}

TEST(Access, ALogFormatThatIsNoneIsRefused) {
  ExpectRefusal({}, "GRIDCLOCK_LOG_FORMAT: want json, plain or pretty, got 'xml'",
                {"GRIDCLOCK_LOG_FORMAT=xml"});
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

// gRPC would take it, and no client could connect.
TEST(Access, ACertificateThatOpenSslDoesNotServeIsRefused) {
  const Certificates files(NewFolder());
  MakeWeakPair(files.folder);
  const std::string weak = files.Path("weak.pem");
  ExpectRefusal({"--tls-cert=" + weak, "--tls-key=" + files.Path("weak.key")},
                absl::StrCat("--tls-cert: '", weak,
                             "': OpenSSL takes no such certificate (number "
                             "1): ee key too small"));
  ExpectRefusal({"--tls-cert=" + files.Path("server.pem"), "--tls-key=" + files.Path("server.key"),
                 "--tls-client-ca=" + weak},
                absl::StrCat("--tls-client-ca: '", weak, "': OpenSSL takes no such certificate"));
}

// OpenSSL takes what comes before for all that there is.
TEST(Access, ACertificateThatIsCutShortBehindOthersIsRefused) {
  const Certificates files(NewFolder());
  const std::string cert = files.Path("server.pem"), key = files.Path("server.key"),
                    cut = files.Path("cut.pem");
  const std::string authority = Read(files.Path("ca.pem"));
  Write(cut, Read(cert) + authority.substr(0, authority.size() / 2));
  const std::string sentence = absl::StrCat("'", cut, "': certificate number 2 cannot be read");
  ExpectRefusal({"--tls-cert=" + cut, "--tls-key=" + key}, "--tls-cert: " + sentence);
  ExpectRefusal({"--tls-cert=" + cert, "--tls-key=" + key, "--tls-client-ca=" + cut},
                "--tls-client-ca: " + sentence);
}

// OpenSSL reads on behind one, and gRPC does not.
TEST(Access, AFileWithAByte0IsRefused) {
  const Certificates files(NewFolder());
  const std::string cert = files.Path("server.pem"), key = files.Path("server.key"),
                    tokens = TokenFile(files.folder);
  const auto spoil = [&](const std::string& path) {
    const std::string text = Read(path), spoilt = path + ".spoilt";
    Write(spoilt, text + std::string(1, '\0') + text);
    return std::make_pair(
        spoilt, absl::StrCat(": want text, '", spoilt, "' has a byte 0 behind ", text.size()));
  };
  const auto [bad_cert, of_cert] = spoil(cert);
  const auto [bad_key, of_key] = spoil(key);
  const auto [bad_tokens, of_tokens] = spoil(tokens);
  ExpectRefusal({"--tls-cert=" + bad_cert, "--tls-key=" + key}, "--tls-cert" + of_cert);
  ExpectRefusal({"--tls-cert=" + cert, "--tls-key=" + bad_key}, "--tls-key" + of_key);
  ExpectRefusal({"--tls-cert=" + cert, "--tls-key=" + key, "--tls-client-ca=" + bad_cert},
                "--tls-client-ca" + of_cert);
  ExpectRefusal({"--token-file=" + bad_tokens}, "--token-file" + of_tokens);
}

TEST(Access, WhatIsNoFileIsNotWaitedFor) {
  const std::string pipe = NewFolder() + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {pipe, std::string("/dev/null"), std::string("/")}) {
    ExpectRefusal({"--token-file=" + path},
                  absl::StrCat("--token-file: want a regular file, got '", path, "'"));
  }
}

TEST(Access, ATokenThatTheServerWouldNotTakeIsNotHashed) {
  const auto hash = [](int size) {
    return Output(absl::StrCat("printf %0", size, "d 0 | ", BinaryPath("gridclock-server"),
                               " --hash-token 2>&1"));
  };
  EXPECT_THAT(hash(256), StartsWith("sha256:"));
  EXPECT_EQ(hash(257), "--hash-token: want a token of at most 256 bytes, got 257\n");
}

TEST(Access, ATokenFileThatCannotBeReadIsRefusedByLine) {
  const std::string path = NewFolder() + "/tokens";
  Write(path, "# fine\nalice everything sha256:00:11\n");
  ExpectRefusal({"--token-file=" + path}, "line 2");
}

RawResult Reflect(const std::shared_ptr<grpc::Channel>& channel,
                  const std::vector<reflection::ServerReflectionRequest>& requests,
                  const std::string& authorization = "") {
  grpc::ClientContext context;
  if (!authorization.empty()) context.AddMetadata("authorization", authorization);
  std::vector<std::string> messages;
  messages.reserve(requests.size());
  for (const auto& request : requests) messages.push_back(request.SerializeAsString());
  return RawCall(channel, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
                 messages, context);
}

RawResult ListServices(const std::shared_ptr<grpc::Channel>& channel,
                       const std::string& authorization = "") {
  reflection::ServerReflectionRequest request;
  request.set_list_services("*");
  return Reflect(channel, {request}, authorization);
}

std::vector<reflection::ServerReflectionResponse> Responses(const RawResult& result) {
  std::vector<reflection::ServerReflectionResponse> responses;
  for (const std::string& message : result.messages) {
    EXPECT_TRUE(responses.emplace_back().ParseFromString(message));
  }
  return responses;
}

reflection::ServerReflectionRequest Symbol(const std::string& name) {
  reflection::ServerReflectionRequest request;
  request.set_file_containing_symbol(name);
  return request;
}

TEST(Access, H10_ReflectionIsThereOnlyIfItIsTurnedOn) {
  ASSERT_OK_AND_ASSIGN(const auto with, ServerProcess::Start({.flags = {"--reflection=on"}}));
  const RawResult listed = ListServices(Connect(with->address()));
  ASSERT_THAT(listed.status, IsOk());
  EXPECT_THAT(listed.messages.at(0), HasSubstr("gridclock.v1.KernelService"));
  ASSERT_OK_AND_ASSIGN(const auto without, ServerProcess::Start({.flags = {"--reflection=off"}}));
  EXPECT_THAT(ListServices(Connect(without->address())).status,
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("--reflection=on")));
}

TEST(Access, H10_ReflectionAsksForATokenOfWhoMayRead) {
  const std::string tokens = NewFolder() + "/tokens";
  Write(tokens, absl::StrCat("bob read ", HashedToken("bob-secret"), "\ncarol run ",
                             HashedToken("carol-secret")));
  ASSERT_OK_AND_ASSIGN(const auto server,
                       ServerProcess::Start({.flags = {"--token-file=" + tokens}}));
  const auto channel = Connect(server->address());
  EXPECT_THAT(ListServices(channel, "Bearer bob-secret").status, IsOk());
  const RawResult refused = ListServices(channel);
  EXPECT_EQ(refused.status.code(), absl::StatusCode::kUnauthenticated) << refused.status;
  EXPECT_TRUE(refused.messages.empty());
  EXPECT_THAT(ListServices(channel, "Bearer carol-secret").status,
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("'read'")));
}

// As tools do that were built without our .proto files.
TEST(Access, ReflectionShowsEachServiceWithAllThatItsFileImports) {
  ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start());
  const auto channel = Connect(server->address());
  const auto listed = Responses(ListServices(channel));
  ASSERT_EQ(listed.size(), 1u);
  std::vector<reflection::ServerReflectionRequest> requests;
  for (const auto& service : listed[0].list_services_response().service()) {
    requests.push_back(Symbol(service.name()));
  }
  EXPECT_EQ(requests.size(), 6u);
  requests.push_back(Symbol("google.rpc.ErrorInfo"));
  const auto shown = Responses(Reflect(channel, requests));
  ASSERT_EQ(shown.size(), requests.size()) << "one stream takes many requests";
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const std::string& name = requests[i].file_containing_symbol();
    google::protobuf::SimpleDescriptorDatabase files;
    for (const std::string& file : shown[i].file_descriptor_response().file_descriptor_proto()) {
      google::protobuf::FileDescriptorProto parsed;
      ASSERT_TRUE(parsed.ParseFromString(file));
      EXPECT_TRUE(files.Add(parsed)) << "once each";
    }
    google::protobuf::DescriptorPool pool(&files);
    EXPECT_NE(pool.FindFileContainingSymbol(name), nullptr) << name;
    EXPECT_EQ(shown[i].original_request().file_containing_symbol(), name);
  }
}

TEST(Access, ReflectionSaysWhatItDoesNotHave) {
  ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start());
  const auto channel = Connect(server->address());
  reflection::ServerReflectionRequest file, extension, numbers;
  file.set_file_by_filename("nosuch.proto");
  extension.mutable_file_containing_extension()->set_containing_type("gridclock.v1.Input");
  numbers.set_all_extension_numbers_of_type("gridclock.v1.Input");
  // What server and workers say to each other is nobody's business.
  const auto responses = Responses(
      Reflect(channel, {Symbol("gridclock.worker.v1.WorkerHello"), file, extension, {}, numbers}));
  ASSERT_EQ(responses.size(), 5u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(responses[i].error_response().error_code(), 5) << i;
  EXPECT_EQ(responses[3].error_response().error_code(), 12);
  EXPECT_EQ(responses[4].all_extension_numbers_response().base_type_name(), "gridclock.v1.Input");
  file.set_file_by_filename(std::string(5000, 'x'));
  EXPECT_THAT(Reflect(channel, {file}).status, ReasonIs("TOO_LARGE"));
  EXPECT_THAT(RawCall(channel, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
                      {"no message"})
                  .status,
              ReasonIs("UNPARSABLE"));
}

TEST(Access, H10_ReflectionIsOffByDefaultWhereOthersCanConnect) {
  const std::pair<std::string, absl::StatusCode> addresses[] = {
      {"127.0.0.1:0", absl::StatusCode::kOk}, {"0.0.0.0:0", absl::StatusCode::kUnimplemented}};
  for (const auto& [address, code] : addresses) {
    ASSERT_OK_AND_ASSIGN(const auto server,
                         ServerProcess::Start({.flags = {"--listen=" + address, "--insecure-public",
                                                         "--drain-delay=0"}}));
    EXPECT_EQ(ListServices(Connect(server->address())).status.code(), code) << address;
    const std::string log = server->FinalLog();
    EXPECT_EQ(absl::StrContains(log, "open_to_all"), address == "0.0.0.0:0") << log;
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
  EXPECT_TRUE(server->WillLog("last_peer=\"127.0.0.1\" limit=\"peer_connections\" open=\"2\""));
  first.reset();
  EXPECT_TRUE(Eventually([&] { return GoodCall(Connect(server->address())).ok(); }));
}

}  // namespace
}  // namespace gridclock
