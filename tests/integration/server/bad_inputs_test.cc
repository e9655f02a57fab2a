// Every row of bad_inputs.json against a real server: the right code, reason and text, and the
// server still works. A second test holds the list of rows together.
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/inotify.h>
#include <unistd.h>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "gridclock/v1/admin.pb.h"
#include "gridclock/v1/kernels.pb.h"
#include "gridclock/v1/modules.pb.h"
#include "gridclock/v1/system.pb.h"
#include "grpc/health/v1/health.pb.h"
#include "grpc/reflection/v1alpha/reflection.pb.h"
#include "server/core/rpc_observer.h"
#include "tests/support/raw_call.h"
#include "tests/support/server_process.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kFolder[] = GRIDCLOCK_SOURCE_DIR "/tests";

json ReadTable() {
  std::ifstream file(std::string(kFolder) + "/integration/server/bad_inputs.json");
  return json::parse(file);
}

// "@<TEXT*N>" in a value stands for N times TEXT: long values stay readable.
std::string Expand(std::string text) {
  static const std::regex kRepeat(R"(@<([^>]*)\*(\d+)>)");
  std::smatch match;
  while (std::regex_search(text, match, kRepeat)) {
    std::string repeated;
    for (int i = std::stoi(match[2]); i > 0; --i) repeated += match[1];
    text = match.prefix().str() + repeated + match.suffix().str();
  }
  return text;
}

template <typename Message>
std::string FromText(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return message.SerializeAsString();
}

// "hex" as it is; "text" of the method's request; "texts" of a stream of them.
std::vector<std::string> Messages(const json& row, const std::string& rpc) {
  std::vector<std::string> messages;
  if (row.contains("hex")) return {absl::HexStringToBytes(Expand(row["hex"]))};
  if (row.contains("texts")) {
    for (const auto& text : row["texts"]) {
      messages.push_back(FromText<v1::StreamRunRequest>(Expand(text)));
    }
    return messages;
  }
  const std::string text = Expand(row["text"]);
  if (rpc == "GetKernel") return {FromText<v1::GetKernelRequest>(text)};
  return {FromText<v1::RunRequest>(text)};
}

std::string CodeName(const absl::Status& status) {
  return absl::StatusCodeToString(status.code());
}

// Calls of any method that ended with the code, by the server's own count.
int CountedCalls(const std::string& metrics, const std::string& code) {
  int sum = 0;
  for (const absl::string_view line : absl::StrSplit(metrics, '\n')) {
    if (!absl::StartsWith(line, "gridclock_rpc_requests_total{") ||
        !absl::StrContains(line, absl::StrCat("code=\"", code, "\"}"))) {
      continue;
    }
    int count = 0;
    EXPECT_TRUE(absl::SimpleAtoi(line.substr(line.rfind(' ') + 1), &count)) << line;
    sum += count;
  }
  return sum;
}

// The path in google.rpc.BadRequest is the one that people read.
void ExpectFieldIsNamed(const absl::Status& status) {
  const std::string field = DetailsOf(status).field;
  const bool of_bytes = DetailsOf(status).reason == "UNPARSABLE";
  if (field.empty() && of_bytes) return;
  EXPECT_FALSE(field.empty()) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat(field, ": ")));
  EXPECT_TRUE(of_bytes || absl::StartsWith(status.message(), field)) << status;
}

// What is legal is computed, too: "output_hex" of each row that is answered has its bytes.
void ExpectOutput(const json& row, const RawResult& result) {
  v1::RunResponse response;
  ASSERT_EQ(result.messages.size(), 1U);
  ASSERT_TRUE(response.ParseFromString(result.messages[0]));
  ASSERT_EQ(response.outputs_size(), 1);
  EXPECT_EQ(absl::BytesToHexString(response.outputs(0).data()),
            row.value("output_hex", "<the row has no output_hex>"));
}

// Calls that are under way and memory that they hold, by the server's own count; of a series that
// is not there, "none".
std::vector<std::string> WhatIsHeld(const ServerProcess& server) {
  std::vector<std::string> held;
  const std::string metrics = server.Metrics();
  for (const char* series :
       {"gridclock_usage{name=\"arena_bytes\"}", "gridclock_usage{name=\"stream_memory_bytes\"}",
        "gridclock_rpc_in_flight{"}) {
    bool found = false;
    for (const absl::string_view line : absl::StrSplit(metrics, '\n')) {
      if (!absl::StartsWith(line, series)) continue;
      found = true;
      if (!absl::EndsWith(line, " 0")) held.emplace_back(line);
    }
    if (!found) held.push_back(absl::StrCat(series, " none"));
  }
  return held;
}

// A refusal that any other refusal would pass for shows nothing.
TEST(BadInputs, EachRefusalHasAReasonAndTellsWhatCame) {
  const std::set<std::string> silent = {"UNPARSABLE"};  // Bytes that are no field have no name.
  const std::string of_grpc = "^Received message larger than max";  // Which knows no reasons.
  for (const json& row : ReadTable()["rows"]) {
    if (row["code"] == "OK") continue;
    const std::string name =
        absl::StrCat(row["id"].get<std::string>(), " ", row.value("input", ""));
    EXPECT_EQ(row["reason"].get<std::string>().empty(), row.value("pattern", "") == of_grpc)
        << name << ": no reason";
    EXPECT_GT(row.value("pattern", "").size(), 8U) << name << ": a pattern that tells nothing";
    if (silent.contains(row["reason"])) continue;
    EXPECT_FALSE(row.value("came", "").empty()) << name << ": does not say what came";
  }
}

TEST(BadInputs, EachRowIsAnsweredAndHurtsNobody) {
  ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start());
  const auto channel = Connect(server->address());
  const json table = ReadTable();
  ASSERT_FALSE(table["rows"].empty());
  const auto workers = server->Workers();
  for (const json& row : table["rows"]) {
    const std::string rpc = row.value("rpc", "Run");
    SCOPED_TRACE(absl::StrCat(row["id"].get<std::string>(), " ", row.value("input", "")));
    const RawResult result =
        RawCall(channel, absl::StrCat("/gridclock.v1.KernelService/", rpc), Messages(row, rpc));
    EXPECT_EQ(CodeName(result.status), row["code"]) << result.status;
    EXPECT_EQ(DetailsOf(result.status).reason, row["reason"]);
    EXPECT_THAT(std::string(result.status.message()), HasSubstr(row.value("came", "")));
    if (row["reason"] == "BAD_VALUE" || row["reason"] == "UNPARSABLE") {
      ExpectFieldIsNamed(result.status);
    }
    EXPECT_TRUE(std::regex_search(std::string(result.status.message()),
                                  std::regex(row.value("pattern", ""))))
        << result.status;
    if (row["code"] == "OK") ExpectOutput(row, result);
    EXPECT_TRUE(GoodCall(channel).ok()) << GoodCall(channel);
  }
  EXPECT_EQ(server->Workers(), workers) << "a worker died of a row and was replaced";
  // A call's memory is given back behind its last word.
  EXPECT_TRUE(Eventually([&] { return WhatIsHeld(*server).empty(); }, absl::Seconds(10)))
      << "nothing runs, and is held: " << absl::StrJoin(WhatIsHeld(*server), ", ");
  // A fault of ours would be INTERNAL. What was counted shows that there was something to see.
  const std::string metrics = server->Metrics();
  EXPECT_GT(CountedCalls(metrics, "INVALID_ARGUMENT"), 0);
  EXPECT_EQ(CountedCalls(metrics, "INTERNAL"), 0);
  EXPECT_EQ(CountedCalls(metrics, "UNKNOWN"), 0);
}

struct MethodOfWire {
  std::string path, request;
};

// Every method that the server can count, and so all that it serves: one that is added is among
// them.
std::vector<MethodOfWire> AllMethods() {
  // What is linked is known by its files.
  for (const google::protobuf::Descriptor* message :
       {v1::RunRequest::descriptor(), v1::CompileRequest::descriptor(),
        v1::ListJobsRequest::descriptor(), v1::ListDevicesRequest::descriptor(),
        grpc::health::v1::HealthCheckRequest::descriptor(),
        grpc::reflection::v1alpha::ServerReflectionRequest::descriptor()}) {
    EXPECT_NE(message, nullptr);
  }
  std::vector<MethodOfWire> methods;
  for (std::size_t i = 0; i < kRpcMethodCount; ++i) {
    const auto [service, name] = NameOf(static_cast<RpcMethod>(i));
    const auto* method = google::protobuf::DescriptorPool::generated_pool()->FindMethodByName(
        absl::StrCat(service, ".", name));
    if (method == nullptr) {
      ADD_FAILURE() << "no .proto here has " << service << "/" << name;
      continue;
    }
    methods.push_back({absl::StrCat("/", service, "/", name), method->input_type()->full_name()});
  }
  return methods;
}

TEST(BadInputs, B1_EveryMethodRefusesBytesThatAreNoMessage) {
  ASSERT_OK_AND_ASSIGN(const auto server,
                       ServerProcess::Start({.flags = {"--allow-submit", "--allow-admin"}}));
  const auto channel = Connect(server->address());
  const std::vector<MethodOfWire> methods = AllMethods();
  EXPECT_EQ(methods.size(), kRpcMethodCount);
  for (const MethodOfWire& method : methods) {
    const absl::Status status = RawCall(channel, method.path, {"\xff\xff\xff\xff"}).status;
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                                 HasSubstr(absl::StrCat("cannot parse ", method.request))))
        << method.path;
    EXPECT_THAT(status, ReasonIs("UNPARSABLE")) << method.path;
  }
  EXPECT_THAT(GoodCall(channel), IsOk());
  EXPECT_EQ(CountedCalls(server->Metrics(), "INTERNAL"), 0);
}

TEST(BadInputs, WhatIsRefusedIsCountedOnce) {
  ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start());
  const auto channel = Connect(server->address());
  const auto run = [&](const v1::RunRequest& request) {
    return RawCall(channel, kRunMethod, {request.SerializeAsString()}).status.code();
  };
  EXPECT_EQ(run(InlineRequest("no_such_kernel", {1})), absl::StatusCode::kNotFound);
  v1::StreamRunRequest stream;
  *stream.mutable_header() = InlineRequest("no_such_kernel", {1});
  EXPECT_EQ(RawCall(channel, kStreamRunMethod, {stream.SerializeAsString()}).status.code(),
            absl::StatusCode::kNotFound);
  v1::RunRequest named = InlineRequest("square", {1});
  named.set_request_id("a");
  EXPECT_EQ(run(named), absl::StatusCode::kOk);
  named.mutable_inputs(0)->set_data("abcd");
  EXPECT_EQ(run(named), absl::StatusCode::kInvalidArgument);
  v1::RunRequest negative = InlineRequest("square", {1});
  negative.mutable_inputs(0)->mutable_spec()->set_dims(0, -1);
  EXPECT_EQ(run(negative), absl::StatusCode::kInvalidArgument);
  *stream.mutable_header() = negative;
  EXPECT_EQ(RawCall(channel, kStreamRunMethod, {stream.SerializeAsString()}).status.code(),
            absl::StatusCode::kInvalidArgument);
  v1::RunRequest submitted = InlineRequest("square", {1});
  submitted.mutable_program()->set_words("f(x: f32[N]) -> y: f32[N]");
  EXPECT_EQ(run(submitted), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(RawCall(channel, kRunMethod, {"\xff"}).status.code(),
            absl::StatusCode::kInvalidArgument)
      << "what could not be read is no request";
  const std::string metrics = server->Metrics();
  EXPECT_THAT(metrics,
              HasSubstr("gridclock_admission_rejected_total{reason=\"unknown_name\"} 2\n"));
  EXPECT_THAT(metrics, HasSubstr("gridclock_admission_rejected_total{reason=\"bad_value\"} 3\n"));
  EXPECT_THAT(metrics, HasSubstr("gridclock_admission_rejected_total{reason=\"submit_off\"} 1\n"));
  EXPECT_THAT(metrics, Not(HasSubstr("gridclock_admission_rejected_total{reason=\"unparsable\"}")));
}

// The most memory that the server's pages took since the mark was set, in bytes.
void ResetPeak(const ServerProcess& server) {
  std::ofstream(absl::StrCat("/proc/", server.pid(), "/clear_refs")) << "5";
}
std::int64_t PeakBytes(const ServerProcess& server) {
  std::ifstream file(absl::StrCat("/proc/", server.pid(), "/status"));
  for (std::string line; std::getline(file, line);) {
    std::int64_t kibibytes = 0;
    absl::string_view rest = line;
    if (!absl::ConsumePrefix(&rest, "VmHWM:") || !absl::ConsumeSuffix(&rest, " kB")) continue;
    if (absl::SimpleAtoi(rest, &kibibytes)) return kibibytes * 1024;
  }
  return 0;
}

// Parsed, two million empty messages would take 157 MiB; a length of 2 GiB must not be believed.
TEST(BadInputs, B2_B5_WhatAMessageClaimsTakesNoMemory) {
  ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start());
  const auto channel = Connect(server->address());
  ASSERT_THAT(GoodCall(channel), IsOk());
  for (const json& row : ReadTable()["rows"]) {
    if (row["id"] != "B2" && row["id"] != "B5") continue;
    SCOPED_TRACE(row["input"].get<std::string>());
    const std::string rpc = row.value("rpc", "Run");
    const auto messages = Messages(row, rpc);
    std::int64_t sent = 0;
    for (const std::string& message : messages) sent += static_cast<std::int64_t>(message.size());
    ResetPeak(*server);
    const std::int64_t before = PeakBytes(*server);
    ASSERT_GT(before, 0);
    const std::string method = absl::StrCat("/gridclock.v1.KernelService/", rpc);
    EXPECT_FALSE(RawCall(channel, method, messages).status.ok());
    EXPECT_LT(PeakBytes(*server) - before, (std::int64_t{24} << 20) + 4 * sent);
  }
}

// Whether `path` is opened while `action` runs.
bool IsOpenedBy(const std::string& path, const std::function<void()>& action) {
  const UniqueFd watch(inotify_init1(IN_NONBLOCK));
  EXPECT_GE(inotify_add_watch(watch.get(), path.c_str(), IN_OPEN), 0) << path;
  action();
  char events[4096];
  return read(watch.get(), events, sizeof(events)) > 0;
}

TEST(BadInputs, B8_NoNameIsOpenedAsAFile) {
  ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start());
  const auto channel = Connect(server->address());
  const std::string path = NewFolder() + "/secret";
  std::ofstream(path) << "words";
  EXPECT_TRUE(IsOpenedBy(path, [&] { std::ifstream file(path); })) << "the watch sees nothing";
  std::string up;
  for (int i = 0; i < 32; ++i) up += "../";
  using Name = std::string* (*)(v1::RunRequest&);
  constexpr Name kNames[] = {
      [](v1::RunRequest& run) { return run.mutable_kernel(); },
      [](v1::RunRequest& run) { return run.mutable_variant(); },
      [](v1::RunRequest& run) { return run.mutable_device(); },
      [](v1::RunRequest& run) { return run.mutable_inputs(0)->mutable_name(); },
      [](v1::RunRequest& run) { return run.add_outputs()->mutable_name(); },
      [](v1::RunRequest& run) { return run.add_in_place(); }};
  EXPECT_FALSE(IsOpenedBy(path, [&] {
    for (const std::string& wrong : {path, up + path.substr(1), "file://" + path}) {
      for (const Name name : kNames) {
        v1::RunRequest run = InlineRequest("square", {1});
        *name(run) = wrong;
        EXPECT_FALSE(RawCall(channel, kRunMethod, {run.SerializeAsString()}).status.ok());
      }
    }
  }));
  EXPECT_THAT(GoodCall(channel), IsOk());
}

std::set<std::string> WantedIds() {
  std::set<std::string> ids;
  const auto add = [&](char group, int first, int last) {
    for (int i = first; i <= last; ++i) ids.insert(absl::StrCat(std::string(1, group), i));
  };
  add('A', 1, 22);
  add('B', 1, 15);
  add('C', 1, 11);
  add('D', 15, 19);
  add('E', 1, 18);
  add('F', 1, 26);
  add('G', 1, 14);
  return ids;
}

enum class Need { kNothing, kGpu };

// Ids at the start of the names of tests, in C++ or Python, each with '_' behind it. Those that
// need a GPU are skipped elsewhere, and stand in a folder of their own.
std::set<std::string> IdsOfTests(Need need) {
  static const std::regex kCpp(R"(TEST(?:_F|_P)?\(\s*\w+,\s*((?:[A-H]\d+_)+))");
  static const std::regex kPython(R"(def test_((?:[a-h]\d+_)+))");
  std::set<std::string> ids;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kFolder)) {
    const std::string extension = entry.path().extension();
    if (extension != ".cc" && extension != ".py") continue;
    const bool gpu = absl::StrContains(entry.path().string(), "/tests/gpu/");
    if (gpu != (need == Need::kGpu)) continue;
    std::stringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    const std::string content = text.str();
    const std::regex& pattern = extension == ".cc" ? kCpp : kPython;
    for (std::sregex_iterator it(content.begin(), content.end(), pattern), end; it != end; ++it) {
      for (const auto id : absl::StrSplit((*it)[1].str(), '_', absl::SkipEmpty())) {
        ids.insert(absl::AsciiStrToUpper(id));
      }
    }
  }
  return ids;
}

// Without those of parts of a row, as "B9: a wrong CRC32C": the rest of it is covered.
std::set<std::string> IdsWithReasons(const json& table) {
  std::set<std::string> ids;
  for (const auto& [id, reason] : table.items()) {
    EXPECT_FALSE(reason.get<std::string>().empty()) << id << " stands for no reason";
    EXPECT_TRUE(WantedIds().contains(id.substr(0, id.find(':')))) << id << " is not wanted";
    if (!absl::StrContains(id, ':')) ids.insert(id);
  }
  return ids;
}

// An id may be in the table and have tests of rooms besides; but what waits for later has neither,
// and what only a GPU shows is not shown wherever CI has none.
TEST(BadInputs, EveryIdIsCoveredOrWaitsForAReason) {
  const json table = ReadTable();
  std::set<std::string> covered = IdsOfTests(Need::kNothing);
  for (const json& row : table["rows"]) covered.insert(row["id"]);
  const std::set<std::string> on_gpus = IdsOfTests(Need::kGpu);
  const std::set<std::string> later = IdsWithReasons(table["later"]);
  const std::set<std::string> needs_gpu = IdsWithReasons(table["needs_gpu"]);
  for (const std::string& id : WantedIds()) {
    const bool gpu_alone = on_gpus.contains(id) && !covered.contains(id);
    EXPECT_EQ(gpu_alone, needs_gpu.contains(id))
        << id
        << (gpu_alone ? " is shown by GPUs alone" : " needs no GPU, or no test on one has it");
    EXPECT_NE(covered.contains(id) || gpu_alone, later.contains(id))
        << id << (later.contains(id) ? " is covered and waits for later" : " is nowhere");
  }
}

}  // namespace
}  // namespace gridclock
