// Programs of submitted code through a real server, with native functions of the test worker in
// place of device code.
#ifndef GRIDCLOCK_TESTS_INTEGRATION_SERVER_SUBMITTED_FIXTURE_H_
#define GRIDCLOCK_TESTS_INTEGRATION_SERVER_SUBMITTED_FIXTURE_H_

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "gridclock/v1/modules.pb.h"
#include "tests/support/raw_call.h"
#include "tests/support/server_process.h"
#include "tests/support/status_matchers.h"

namespace gridclock {

using Code = absl::StatusCode;

inline constexpr char kLoadMethod[] = "/gridclock.v1.ModuleService/Load";
inline constexpr char kSquareWords[] =
    "mine x: f32[N] -> y: f32[N] grid (1) block (32) params x, y, n: int = N";
inline constexpr char kAnn[] = "ann-secret", kBob[] = "bob-secret", kCarol[] = "carol-secret";

inline std::string Hash(const std::string& token) {
  const std::string command =
      absl::StrCat("printf ", token, " | ", BinaryPath("gridclock-server"), " --hash-token");
  std::string out;
  FILE* pipe = popen(command.c_str(), "r");
  char buffer[256];
  while (pipe != nullptr && fgets(buffer, sizeof(buffer), pipe) != nullptr) out += buffer;
  if (pipe != nullptr) pclose(pipe);
  return out;
}

template <typename T>
std::vector<T> ValuesOf(const std::string& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

struct Answer {
  absl::Status status;
  v1::RunResponse response;

  template <typename T = float>
  std::vector<T> Output(int index = 0) const {
    if (!status.ok() || index >= response.outputs_size()) return {};
    return ValuesOf<T>(response.outputs(index).data());
  }
};

class Submitted : public ::testing::Test {
 protected:
  // ann and bob may submit, carol may not.
  void StartServer(std::vector<std::string> flags = {},
                   const std::string& program = "gridclock-server") {
    const std::string tokens = NewFolder() + "/tokens";
    std::ofstream(tokens) << "ann read,run,submit " << Hash(kAnn) << "bob read,run,submit "
                          << Hash(kBob) << "carol read,run " << Hash(kCarol);
    flags.insert(flags.begin(), {"--allow-submit", "--token-file=" + tokens});
    ASSERT_OK_AND_ASSIGN(server_,
                         ServerProcess::Start({.flags = std::move(flags), .program = program}));
    channel_ = Connect(server_->address());
  }
  RawResult Call(const std::string& token, const std::string& method,
                 const std::vector<std::string>& messages) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(5));
    context.AddMetadata("authorization", "Bearer " + token);
    return RawCall(channel_, method, messages, context);
  }
  Answer Run(const std::string& token, const v1::RunRequest& request) {
    const RawResult result = Call(token, kRunMethod, {request.SerializeAsString()});
    Answer answer{.status = result.status, .response = {}};
    if (result.status.ok()) answer.response.ParseFromString(result.messages.at(0));
    return answer;
  }
  RawResult Load(const std::string& token, const std::string& native) {
    v1::LoadRequest request;
    request.set_test_native(native);
    RawResult result;
    // The first guest may be starting.
    Eventually([&] {
      result = Call(token, kLoadMethod, {request.SerializeAsString()});
      return DetailsOf(result.status).reason != "WORKER_STARTING";
    });
    return result;
  }
  // The id of a module that has this function.
  std::string Native(const std::string& token, const std::string& native) {
    const RawResult result = Load(token, native);
    EXPECT_THAT(result.status, IsOk()) << native;
    v1::Module module;
    if (!result.messages.empty()) module.ParseFromString(result.messages[0]);
    return module.id();
  }
  static void AddLaunch(const std::string& module, const std::string& entry,
                        const std::string& words, v1::RunRequest& request) {
    v1::Program::Launch* launch = request.mutable_program()->add_launches();
    launch->set_module(module);
    launch->set_entry(entry);
    launch->set_words(words);
  }
  // One launch of a native function.
  v1::RunRequest Request(const std::string& token, const std::string& native,
                         const std::string& words, const std::vector<float>& x) {
    v1::RunRequest request = InlineRequest("", x);
    if (x.empty()) request.clear_inputs();
    request.mutable_program()->set_words(words);
    AddLaunch(Native(token, native), native, "", request);
    return request;
  }
  v1::RunRequest Square(const std::string& token, const std::vector<float>& x = {1, 2, 3}) {
    return Request(token, "square", kSquareWords, x);
  }
  absl::Status CheckSquare(const std::string& token) {
    const Answer answer = Run(token, Square(token));
    if (!answer.status.ok()) return answer.status;
    if (answer.Output() == std::vector<float>{1, 4, 9}) return absl::OkStatus();
    return absl::DataLossError("wrong squares");
  }
  // The process that runs this principal's code.
  int GuestPid(const std::string& token) {
    const Answer answer =
        Run(token, Request(token, "pid", "pid -> y: i32[1] grid (1) block (1) params y", {}));
    EXPECT_THAT(answer.status, IsOk());
    const auto pid = answer.Output<std::int32_t>();
    return pid.size() == 1 ? pid[0] : 0;
  }

  std::unique_ptr<ServerProcess> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_TESTS_INTEGRATION_SERVER_SUBMITTED_FIXTURE_H_
