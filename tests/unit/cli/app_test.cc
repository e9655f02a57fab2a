#include "client/cli/app.h"

#include <cstdlib>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include <CLI/CLI.hpp>
#include <gmock/gmock.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "client/cli/command.h"
#include "client/cli/help.h"

namespace gridclock::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

struct Answer {
  int code;
  std::string out, err;
};
Answer Call(const std::vector<std::string>& args) {
  std::ostringstream out, err;
  Console console{out, err, {}};
  const int code = Main(args, console);
  return {code, out.str(), err.str()};
}

TEST(AppTest, HelpIsThePage) {
  EXPECT_THAT(Call({"--help"}).out, HasSubstr("gridclock COMMAND"));
  EXPECT_THAT(Call({"run", "--help"}).out, HasSubstr("gridclock run KERNEL"));
  EXPECT_EQ(Call({"bench", "square", "--shape", "N=3", "-h"}).code, kOk);
}

TEST(AppTest, AWrongCommandLineEndsWithTwo) {
  EXPECT_EQ(Call({}).code, kUsage);
  EXPECT_EQ(Call({"fly"}).code, kUsage);
  const Answer answer = Call({"describe"});
  EXPECT_EQ(answer.code, kUsage);
  EXPECT_THAT(answer.err, HasSubstr("see gridclock describe --help"));
}

TEST(AppTest, NoServerEndsWithThreeAndSaysWhatToDo) {
  const Answer answer = Call({"list", "--server", "127.0.0.1:1"});
  EXPECT_EQ(answer.code, kUnreachable);
  EXPECT_THAT(answer.err, HasSubstr("no server answers at 127.0.0.1:1"));
  EXPECT_THAT(answer.out, IsEmpty());
}

TEST(AppTest, ProgramsGetTheErrorAsJson) {
  const Answer answer = Call({"list", "--json", "--server", "127.0.0.1:1"});
  EXPECT_EQ(answer.code, kUnreachable);
  EXPECT_THAT(answer.out, HasSubstr(R"({"error":{"code":"UNAVAILABLE")"));
}

TEST(AppTest, DoctorTellsWhatIsMissing) {
  const Answer answer = Call({"doctor", "--server", "127.0.0.1:1"});
  EXPECT_EQ(answer.code, kUnreachable);
  EXPECT_THAT(answer.out, HasSubstr("missing: no kernel can run"));
}

TEST(AppTest, DoctorTellsProgramsTheSameAsPeople) {
  const Answer answer = Call({"doctor", "--server", "127.0.0.1:1", "--json"});
  EXPECT_THAT(answer.out, HasSubstr(R"("part":"grpc","ok":true,"status":"ok")"));
  EXPECT_THAT(answer.out, HasSubstr(R"("part":"server","ok":false,"status":"no")"));
}

TEST(AppTest, AFlagThatIsMisspeltIsToldWhichIsNear) {
  const auto near = [](const std::vector<std::string>& args) {
    const Answer answer = Call(args);
    EXPECT_EQ(answer.code, kUsage);
    return answer.err;
  };
  EXPECT_THAT(near({"bench", "square", "--sampels", "3"}), HasSubstr("nearest are '--samples'"));
  EXPECT_THAT(near({"run", "square", "--devise=cpu"}), HasSubstr("nearest are '--device'"));
  EXPECT_THAT(near({"list", "--jsn"}), HasSubstr("the nearest are '--json'"));
  EXPECT_THAT(near({"list", "--nothing-like-it"}), Not(HasSubstr("nearest")));
}

TEST(AppTest, AVariableThatIsMisspeltIsRefused) {
  setenv("GRIDCLOCK_SERVR", "node7:8470", 1);
  const Answer answer = Call({"list"});
  unsetenv("GRIDCLOCK_SERVR");
  EXPECT_EQ(answer.code, kUsage);
  EXPECT_THAT(answer.err, HasSubstr("has 'GRIDCLOCK_SERVR', which nothing reads: behind "
                                    "GRIDCLOCK_ the nearest are 'SERVER'"));
}

TEST(AppTest, VariablesOfTheServerAndOfAServiceAreNobodysTypingErrors) {
  const std::vector<std::string> others = {
      "GRIDCLOCK_PORT",          "GRIDCLOCK_SERVICE_HOST",    "GRIDCLOCK_LISTEN",
      "GRIDCLOCK_TLS_CLIENT_CA", "GRIDCLOCK_METRICS_PORT",    "GRIDCLOCK_METRICS_LISTEN",
      "GRIDCLOCK_LOG_FORMAT",    "GRIDCLOCK_MEMORY",          "GRIDCLOCK_SERVER_PORT_8470_TCP",
      "GRIDCLOCK_TLS_PORT",      "GRIDCLOCK_TLS_SERVICE_HOST"};
  for (const std::string& name : others) setenv(name.c_str(), "1", 1);
  EXPECT_EQ(Call({"list", "--server", "127.0.0.1:1"}).code, kUnreachable);
  for (const std::string& name : others) unsetenv(name.c_str());
}

TEST(AppTest, AnAddressThatIsNoneIsAWrongCommandLine) {
  for (const char* address :
       {"nowhere", "http://127.0.0.1:8471", "http://127.0.0.1:8471/", "[::1"}) {
    for (const auto& [command, flag] : {std::pair("list", "--server"), {"top", "--metrics"}}) {
      const Answer answer = Call({command, flag, address});
      EXPECT_EQ(answer.code, kUsage) << answer.err;
      EXPECT_THAT(answer.err, HasSubstr(absl::StrCat(flag, ": want HOST:PORT, got '", address)));
    }
  }
}

TEST(AppTest, TopDrawsAtMostTwentyTimesASecond) {
  const Answer answer = Call({"top", "--interval", "0", "--metrics", "127.0.0.1:1"});
  EXPECT_EQ(answer.code, kUsage);
  EXPECT_THAT(answer.err, HasSubstr("--interval: want at least 50ms, got '0'"));
}

TEST(AppTest, WatchDoesNotWaitForAFileThatIsNotThere) {
  const Answer answer = Call({"watch", "nofile.cu:x", "--server", "127.0.0.1:1"});
  EXPECT_EQ(answer.code, kFailed);
  EXPECT_THAT(answer.err, HasSubstr("no file 'nofile.cu' to watch"));
}

TEST(AppTest, DoctorShowsVersionsWhateverTheConnection) {
  for (const std::vector<std::string>& wrong :
       {std::vector<std::string>{"--token-file", "/nowhere/token"}, {"--server", "node7"}}) {
    std::vector<std::string> args = {"doctor"};
    args.insert(args.end(), wrong.begin(), wrong.end());
    const Answer answer = Call(args);
    EXPECT_EQ(answer.code, kFailed);
    EXPECT_THAT(answer.out, HasSubstr("protobuf"));
    EXPECT_THAT(answer.out, HasSubstr("missing: no kernel can run ("));
  }
}

absl::StatusOr<ClientOptions> ClientOptionsOf(const GlobalOptions& options) {
  std::ostringstream out, err;
  Console console{out, err, {}};
  return Session{options, console}.MakeClientOptions();
}

TEST(AppTest, TheTimeoutIsOfEveryCall) {
  GlobalOptions options;
  EXPECT_EQ(ClientOptionsOf(options)->timeout, std::nullopt);
  options.timeout = "2m";
  EXPECT_EQ(ClientOptionsOf(options)->timeout, absl::Minutes(2));
}

TEST(AppTest, AnyWordOfTlsAsksForTls) {
  GlobalOptions options;
  EXPECT_FALSE(ClientOptionsOf(options)->tls.has_value());
  options.tls = true;
  EXPECT_EQ(ClientOptionsOf(options)->tls->ca_pem, "");  // The system's.
  options.tls = false;
  options.tls_key = "/dev/null";
  EXPECT_TRUE(ClientOptionsOf(options)->tls.has_value());
}

TEST(AppTest, AKeyWithoutItsCertificateIsRefused) {
  const std::string key = absl::StrCat(testing::TempDir(), "app_test_", getpid(), ".key");
  std::ofstream(key) << "a key";
  const Answer answer = Call({"list", "--server", "127.0.0.1:1", "--tls-key", key});
  EXPECT_EQ(answer.code, kFailed);
  EXPECT_THAT(answer.err, HasSubstr("a certificate and its key go together"));
  unlink(key.c_str());
}

TEST(AppTest, NumbersThatMakeNoSenseAreRefused) {
  EXPECT_EQ(Call({"bench", "square", "--interval", "-1"}).code, kUsage);
  EXPECT_EQ(Call({"bench", "square", "--interval", "0"}).code, kUsage);
  const Answer answer = Call({"load", "square", "--rate", "1000000", "--seconds", "1000000"});
  EXPECT_EQ(answer.code, kUsage);
  EXPECT_THAT(answer.err, HasSubstr("at most 1e+07 requests"));
  const Answer none = Call({"load", "square", "--rate", "0.1", "--seconds", "1"});
  EXPECT_EQ(none.code, kUsage);
  EXPECT_THAT(none.err, HasSubstr("want at least 1 request, got 0.1"));
}

TEST(AppTest, WhatIsNoNumberIsRefused) {
  using Flags = std::vector<std::string>;
  for (const Flags& args : {Flags{"bench", "square", "--interval"},
                            {"bench", "square", "--confidence"},
                            {"load", "square", "--rate"},
                            {"load", "square", "--seconds"},
                            {"check", "square", "--against", "square", "--tolerance"}}) {
    Flags call = args;
    call.emplace_back("nan");
    const Answer answer = Call(call);
    EXPECT_EQ(answer.code, kUsage) << args.back();
    EXPECT_THAT(answer.err, HasSubstr(args.back() + ": want ")) << args.back();
    EXPECT_THAT(answer.err, HasSubstr(", got nan")) << args.back();
  }
}

TEST(AppTest, WhatWouldBeTakenForSomethingElseIsRefused) {
  const auto why = [](const std::vector<std::string>& args) {
    const Answer answer = Call(args);
    EXPECT_EQ(answer.code, kUsage) << args.back();
    return answer.err;
  };
  for (const char* seed : {"-1", "18446744073709551616", "1.5", "x"}) {
    EXPECT_THAT(why({"run", "square", "x=ones:f32[1]", "--seed", seed}),
                HasSubstr("want a whole number of 0 to 2^64 - 1, got "));
  }
  EXPECT_THAT(why({"bench", "square.naive", "--variant", "simd"}),
              HasSubstr("square.naive names a variant already, got simd"));
  EXPECT_THAT(why({"run", "square.naive", "--variant", "simd"}), HasSubstr("names a variant"));
  EXPECT_THAT(why({"bench", "square", "--csv", "--json"}), HasSubstr("want one of them"));
  for (const char* flag : {"--budget", "--samples", "--min-samples", "--interval"}) {
    EXPECT_THAT(why({"bench", "square", "--schedule", "0:1:2:3", flag, "1"}),
                HasSubstr("excludes"));
  }
  for (const char* command : {"list", "devices", "doctor", "ping", "top"}) {
    EXPECT_THAT(why({command, "--timeout", "soon"}), HasSubstr("--timeout: want a time"))
        << command;
  }
  EXPECT_THAT(why({"admin", "foo"}), HasSubstr("foo; see gridclock admin --help"));
  EXPECT_THAT(why({"admin"}), HasSubstr("want jobs, cancel, drain"));
  EXPECT_THAT(why({"admin", "cancel", "abc"}),
              HasSubstr("JOB: want a number as gridclock admin jobs shows, got abc"));
  EXPECT_THAT(why({"watch", "k.cu:f", "--json"}), HasSubstr("watch is for people"));
  EXPECT_THAT(why({"compile", "a.npy"}), HasSubstr("want FILE.cu, FILE.ptx or FILE.cubin"));
  EXPECT_THAT(why({"ping", "--server", "127.0.0.1:8470/foo"}),
              HasSubstr("--server: want HOST:PORT"));
  EXPECT_THAT(why({"list", "--server", "127.0.0.1"}), HasSubstr("--server: want HOST:PORT, got"));
  EXPECT_THAT(why({"runn", "square"}), HasSubstr("no command 'runn'; there are list, describe, "));
}

TEST(AppTest, AFlagThatWouldDoNothingIsRefused) {
  using Flags = std::vector<std::string>;
  for (const Flags& flag : {Flags{"--words", "w"},
                            {"--grid", "1"},
                            {"--block", "1"},
                            {"--cluster", "1"},
                            {"--shared", "1"},
                            {"--params", "x"},
                            {"--global", "a=b"},
                            {"--cooperative"},
                            {"--arch", "sm_80"},
                            {"--std", "c++20"},
                            {"-D", "A"},
                            {"--fast-math"},
                            {"--no-fmad"},
                            {"--line-info"},
                            {"--max-registers", "32"}}) {
    for (const Flags& command : {Flags{"run"}, {"bench"}, {"check", "--against", "square"}}) {
      Flags args = command;
      args.insert(args.end(), {"square", "x=ones:f32[1]"});
      args.insert(args.end(), flag.begin(), flag.end());
      const Answer answer = Call(args);
      EXPECT_EQ(answer.code, kUsage) << command[0];
      EXPECT_THAT(answer.err, HasSubstr(flag[0] + ": for kernels of a file")) << command[0];
    }
  }
  for (const char* verify : {"--seed=1", "--verify", "--verify=a.npy"}) {
    for (const char* command : {"run", "bench"}) {
      const Answer answer = Call({command, "k.cu:k", "--verify-with", "axis=1", verify});
      EXPECT_EQ(answer.code, kUsage) << verify;
      EXPECT_THAT(answer.err, HasSubstr("want --verify=REFERENCE too")) << verify;
    }
  }
}

// A stream that takes nothing, as a full disk.
class FullDisk final : public std::streambuf {};

TEST(AppTest, OutputThatIsLostIsAnError) {
  FullDisk disk;
  std::ostream out(&disk);
  std::ostringstream err;
  Console console{out, err, {}};
  EXPECT_EQ(Main({"--help"}, console), kFailed);
  EXPECT_THAT(err.str(), HasSubstr("standard output could not be written"));
}

TEST(AdviceTest, WhatCanNeverFitIsNotToBeTriedAgain) {
  using Metadata = std::map<std::string, std::string>;
  const auto advice = [](std::optional<absl::Duration> retry_after, const Metadata& metadata) {
    const absl::Status full = absl::ResourceExhaustedError("full");
    const ErrorDetails details{
        .reason = "A_REASON", .field = "", .retry_after = retry_after, .metadata = metadata};
    return Advice(WithDetails(full, details), {});
  };
  EXPECT_EQ(advice(absl::Seconds(1), {}), "try again later");
  EXPECT_EQ(advice(std::nullopt, {}), "");
  EXPECT_EQ(
      advice(std::nullopt,
             {{"limit", "client_arena_bytes"}, {"value", "4294967296"}, {"needed", "8589934592"}}),
      "use smaller tensors, or start the server with a larger --limit-client-arena-bytes");
  EXPECT_THAT(advice(std::nullopt, {{"limit", "device_memory"}, {"value", "1"}, {"needed", "2"}}),
              HasSubstr("a device with more memory"));
}

TEST(AdviceTest, TheLimitOfSubmittedCodeIsItsOwn) {
  const auto advice = [](const std::string& reason, const std::string& limit) {
    return Advice(WithDetails(absl::DeadlineExceededError("late"),
                              {.reason = reason,
                               .field = reason.empty() ? "kernel_time_limit_seconds" : "",
                               .retry_after = std::nullopt,
                               .metadata = {{"limit", limit}}}),
                  {});
  };
  EXPECT_THAT(advice("KERNEL_TIME_LIMIT", "kernel_seconds"), HasSubstr("--limit-max-kernel"));
  EXPECT_THAT(advice("KERNEL_TIME_LIMIT", "submitted_kernel_seconds"),
              HasSubstr("--limit-submitted-kernel-seconds"));
  EXPECT_THAT(advice("", "submitted_kernel_seconds"),
              HasSubstr("--limit-submitted-kernel-seconds"));
  EXPECT_THAT(advice("", "max_kernel_seconds"), HasSubstr("--limit-max-kernel-seconds"));
  EXPECT_THAT(advice("MODULE_QUOTA", "client_modules"), HasSubstr("gridclock modules delete"));
}

TEST(AdviceTest, ATokenThatWasSentIsNotAskedFor) {
  const absl::Status unknown = absl::UnauthenticatedError("want a token");
  GlobalOptions options;
  unsetenv("GRIDCLOCK_TOKEN");
  EXPECT_THAT(Advice(unknown, options), HasSubstr("give a token with --token-file FILE"));
  setenv("GRIDCLOCK_TOKEN", "", 1);
  EXPECT_THAT(Advice(unknown, options), HasSubstr("give a token with --token-file FILE"));
  setenv("GRIDCLOCK_TOKEN", "a-token", 1);
  EXPECT_EQ(Advice(unknown, options), "the server does not know the token of GRIDCLOCK_TOKEN");
  unsetenv("GRIDCLOCK_TOKEN");
  options.token_file = "ann.token";
  EXPECT_EQ(Advice(unknown, options), "the server does not know the token of ann.token");
}

TEST(AdviceTest, AServerWithoutTokensHasNoneToAskFor) {
  const auto advice = [](const char* said) {
    return Advice(WithReason(absl::PermissionDeniedError(said), "ROLE_MISSING"), {});
  };
  EXPECT_EQ(advice("this call needs the role 'admin', which this token lacks"),
            "ask for a token with the role that it names");
  EXPECT_EQ(
      advice("this call needs the role 'admin', which is off: start the server with --allow-admin"),
      "");
}

TEST(AdviceTest, ATemplateIsGivenItsArguments) {
  const auto advice = [](const char* said) {
    return Advice(WithReason(absl::InvalidArgumentError(said), "COMPILE_FAILED"), {});
  };
  EXPECT_THAT(advice("error: no __global__ function was found; a template needs a name expression"),
              HasSubstr("--instance 'NAME<float, 256>'"));
  EXPECT_EQ(advice("k.cu(1): error: expected a ';'"), "");
}

TEST(AdviceTest, WhyNoConnectionStands) {
  const auto advice = [](const char* said) {
    GlobalOptions options;
    options.server = "127.0.0.1:1";
    return Advice(absl::UnavailableError(said), options);
  };
  EXPECT_THAT(advice("Connection refused"), HasSubstr("gridclock-server or ./dev up"));
  EXPECT_THAT(advice("Connection refused"), Not(HasSubstr("TLS")));
  EXPECT_THAT(advice("Socket closed"), HasSubstr("or it speaks TLS: --tls-ca FILE"));
  EXPECT_THAT(advice("Connection refused"), Not(HasSubstr("no more connections")));
  for (const char* said : {"Socket closed", "recvmsg:Connection reset by peer"}) {
    EXPECT_THAT(advice(said), HasSubstr("takes no more connections from this address"));
  }
  GlobalOptions encrypted;
  encrypted.tls_ca = "ca.pem";
  const auto closed = absl::UnavailableError("Socket closed");
  EXPECT_THAT(Advice(closed, encrypted),
              AllOf(HasSubstr("wants a certificate of yours: --tls-cert and --tls-key"),
                    Not(HasSubstr("speaks TLS"))));
  encrypted.tls_cert = "me.pem";
  EXPECT_THAT(Advice(closed, encrypted), HasSubstr("not take the certificate of --tls-cert"));
  EXPECT_THAT(advice("error:0A000086:SSL routines::certificate verify failed"),
              HasSubstr("name its authority with --tls-ca FILE"));
  EXPECT_THAT(advice("Peer name node7 is not in peer certificate"), HasSubstr("--tls-name NAME"));
  EXPECT_THAT(advice("SSL routines::wrong version number"), HasSubstr("does not speak TLS"));
  EXPECT_THAT(advice("Failed parsing HTTP/2"), HasSubstr("127.0.0.1:1 is no gRPC port"));
}

TEST(AppTest, AFileThatIsNotWhatTheFlagWantsIsNamed) {
  const std::string file = absl::StrCat(testing::TempDir(), "app_test_", getpid(), ".file");
  std::ofstream(file) << "ann read,run sha256:ab:cd\n";
  EXPECT_THAT(Call({"list", "--token-file", file}).err,
              HasSubstr("the server's file of hashes; want the token itself"));
  std::ofstream(file) << "a-token\n";
  EXPECT_THAT(Call({"list", "--server", "203.0.113.1:1", "--token-file", file}).err,
              HasSubstr("on a command line --insecure-token"));
  std::ofstream(file) << "-----BEGIN "
                      << "PRIVATE KEY-----\n";
  EXPECT_THAT(Call({"list", "--tls-ca", file}).err,
              HasSubstr("--tls-ca: no CERTIFICATE in PEM in " + file + "; it holds a private key"));
  unlink(file.c_str());
}

std::set<std::string> LongOptionsIn(const std::string& text) {
  static const std::regex kOption("--[a-z][a-z0-9-]*");
  std::set<std::string> out;
  for (std::sregex_iterator it(text.begin(), text.end(), kOption), end; it != end; ++it) {
    out.insert(it->str());
  }
  return out;
}

// The page is written by hand; so the options that it names are held against those that exist.
TEST(AppTest, EveryOptionIsInTheHelpAndTheOtherWayRound) {
  CLI::App program;
  const CommandEntry commands[] = {AddList(program),    AddDescribe(program), AddDevices(program),
                                   AddPing(program),    AddWait(program),     AddDoctor(program),
                                   AddRun(program),     AddBench(program),    AddLoad(program),
                                   AddCompile(program), AddCheck(program),    AddWatch(program)};
  const std::set<std::string> global = LongOptionsIn(HelpOf(CliPage(), ""));
  for (const CommandEntry& command : commands) {
    const std::string name = command.app->get_name();
    std::set<std::string> named = LongOptionsIn(HelpOf(CliPage(), name)), there;
    for (const CLI::Option* option : command.app->get_options()) {
      for (const std::string& word : option->get_lnames()) there.insert("--" + word);
    }
    there.erase("--help");
    for (const std::string& option : there) EXPECT_EQ(named.count(option), 1U) << name << option;
    for (const std::string& option : named) {
      EXPECT_EQ(there.count(option) + global.count(option), 1U) << name << " " << option;
    }
  }
}

}  // namespace
}  // namespace gridclock::cli
