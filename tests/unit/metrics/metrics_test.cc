#include "server/metrics/metrics.h"

#include <cstdio>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/metrics/catalogue.h"
#include "tests/support/http_client.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

absl::StatusOr<std::unique_ptr<Metrics>> Serve() {
  return Metrics::Create({.address = "127.0.0.1:0", .version = "0.1.0", .revision = "abc123"});
}

DeviceStatus Cpu(WorkerState state) {
  DeviceStatus status;
  status.state = state;
  status.info.name = "cpu";
  return status;
}

// Its worker said all that there is to say of a GPU.
DeviceStatus Gpu() {
  DeviceStatus status;
  status.state = WorkerState::kReady;
  status.met = true;
  DeviceInfo& info = status.info;
  info.name = "cuda:0";
  info.uuid = "GPU-1";
  info.model = "NVIDIA H200";
  info.traits.sm = 90;
  info.driver = "580.65";
  info.memory_bytes = 1000;
  info.memory_bandwidth = 2e12;
  info.launch_offset_ns = 1500;
  info.kernel_offset_ns = -750;
  info.copy_offset_ns = 500;
  info.serial_record_offset_ns = 1250;
  info.empty_event_pair_ns = 500;
  info.clock_step_ns = 32;
  info.device_timer_step_ns = 1024;
  info.methods = {{.method = Method::kDeviceTime, .floor_ns = 1250, .missing = ""},
                  {.method = Method::kHostSync, .floor_ns = 0, .missing = "a reason"}};
  info.flop_rates = {{.dtype = DType::kF32, .flops_per_second = 6e13}};
  VitalsNow& said = status.vitals.emplace();
  said.at = absl::Now();
  said.vitals.state = {.sm_clock_hz = 1.98e9,
                       .memory_clock_hz = 3.2e9,
                       .power_watts = 412.5,
                       .temperature_celsius = 41,
                       .clock_reasons = {"sw_power_cap", "other_4000"}};
  said.vitals.state.memory_used_bytes = 700;
  said.vitals.exclusive = false;
  return status;
}

Sources FullSources() {
  Sources sources;
  sources.knows_kernel = [](absl::string_view) { return true; };
  sources.devices = [] { return std::vector{Cpu(WorkerState::kBusy), Gpu()}; };
  sources.queue_usage = [] {
    return std::map<std::string, Scheduler::Usage>{
        {"cpu", {.queued = 5, .fuller_queue = 3, .running = 1}}};
  };
  sources.limit_usage = [] { return std::map<std::string, double>{{"queue", 3}}; };
  sources.compiler_up = [] { return true; };
  sources.reloads = [] {
    return std::vector<Reloader::Part>{{.name = "tokens",
                                        .last = absl::InvalidArgumentError("line 1"),
                                        .read = absl::FromUnixSeconds(1000)}};
  };
  sources.certificate_expiry = [] { return absl::FromUnixSeconds(2000); };
  sources.open_connections = [] { return 4; };
  sources.limits.queue = 256;
  sources.dropped_log_lines = [] { return 5; };
  sources.protobuf_complaints = [] { return 6; };
  return sources;
}

void RunSomeJobs(Metrics& metrics) {
  Job job;
  job.id = 9;
  job.kernel = "square";
  job.device = "cpu";
  JobResult result;
  result.outcome.emplace();
  result.outcome->timing.emplace();
  result.outcome->timing->samples_ns = {1500};
  result.outcome->phases = {{PhaseKind::kInputCopied, 0, 2000}};
  result.outcome->flags = {Flag::kSharedDevice};
  metrics.rpc_observer().OnRpcStarted(RpcMethod::kRun);
  metrics.job_observer().OnWorkerUp("cpu");
  metrics.job_observer().OnGuestLost("cpu", "retired");
  metrics.job_observer().OnFinished(job, result);
  metrics.rpc_observer().OnRpcFinished(RpcMethod::kRun, absl::OkStatus(), absl::Microseconds(90));
}

TEST(MetricsTest, ShowsWhatTheServerSays) {
  ASSERT_OK_AND_ASSIGN(const auto metrics, Serve());
  metrics->Watch(FullSources());
  const std::string text = BodyOf(Fetch(metrics->port(), "/metrics"));
  EXPECT_THAT(
      text, HasSubstr(R"(gridclock_build_info{version="0.1.0",revision="abc123",cuda="none"} 1)"));
  EXPECT_THAT(text, HasSubstr("gridclock_worker_up{device=\"cpu\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("gridclock_worker_state{device=\"cpu\",state=\"busy\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("gridclock_worker_state{device=\"cpu\",state=\"dead\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("gridclock_queue_depth{device=\"cpu\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("gridclock_device_drained{device=\"cpu\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("gridclock_reload_success{part=\"tokens\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("gridclock_tls_certificate_expiry_time_seconds 2000\n"));
  EXPECT_THAT(text, HasSubstr("gridclock_reload_time_seconds{part=\"tokens\"} 1000\n"));
  EXPECT_THAT(text, HasSubstr("gridclock_queue_capacity{device=\"cpu\"} 256\n"));
  EXPECT_THAT(text, HasSubstr("gridclock_jobs_running{device=\"cpu\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("gridclock_limit{name=\"queue\"} 256\n"));
  EXPECT_THAT(text, HasSubstr("gridclock_usage{name=\"queue\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("gridclock_connections_open 4\n"));
  EXPECT_THAT(text, HasSubstr("gridclock_log_dropped_total 5\n"));
  EXPECT_THAT(text, HasSubstr("gridclock_protobuf_complaints_total 6\n"));
}

TEST(MetricsTest, ShowsWhatAGpuSaidOfItself) {
  ASSERT_OK_AND_ASSIGN(const auto metrics, Serve());
  metrics->Watch(FullSources());
  const std::string text = metrics->Text();
  EXPECT_THAT(text, HasSubstr("gridclock_device_info{device=\"cuda:0\",uuid=\"GPU-1\","
                              "model=\"NVIDIA H200\",arch=\"sm_90\",driver=\"580.65\","
                              "partition=\"\"} 1\n"));
  EXPECT_THAT(text,
              HasSubstr("gridclock_device_memory_bytes{device=\"cuda:0\",state=\"total\"} 1000\n"));
  EXPECT_THAT(
      text,
      HasSubstr(
          "gridclock_calibration_floor_seconds{device=\"cuda:0\",timing=\"device_time\"} 1.25"));
  EXPECT_THAT(text, HasSubstr("gridclock_calibration_activity_offset_seconds{device=\"cuda:0\","
                              "activity=\"kernel\"} -7.5"));
  EXPECT_THAT(text, HasSubstr("gridclock_calibration_serial_record_offset_seconds{"
                              "device=\"cuda:0\"} 1.25e-06\n"));
  EXPECT_THAT(text, HasSubstr("gridclock_calibration_device_timer_step_seconds{"
                              "device=\"cuda:0\"} 1.024e-06\n"));
  // What is not known is not shown as 0, and of a device that never started nothing is known.
  EXPECT_THAT(text, Not(HasSubstr("timing=\"host_sync\"")));
  EXPECT_THAT(text, Not(HasSubstr("gridclock_device_info{device=\"cpu\"")));
}

TEST(MetricsTest, ShowsTheVitalsOfAGpuWhileTheyAreFresh) {
  ASSERT_OK_AND_ASSIGN(const auto metrics, Serve());
  DeviceStatus gpu = Gpu();
  Sources sources = FullSources();
  sources.devices = [&] { return std::vector{gpu}; };
  metrics->Watch(std::move(sources));
  const std::string text = metrics->Text();
  for (const char* line :
       {"gridclock_device_temperature_celsius{device=\"cuda:0\"} 41\n",
        "gridclock_device_power_watts{device=\"cuda:0\"} 412.5\n",
        "gridclock_device_clock_hertz{device=\"cuda:0\",clock=\"sm\"} 1980000000\n",
        "gridclock_device_clock_hertz{device=\"cuda:0\",clock=\"memory\"} 3200000000\n",
        "gridclock_device_memory_bytes{device=\"cuda:0\",state=\"used\"} 700\n",
        "gridclock_device_clock_held_down{device=\"cuda:0\",reason=\"sw_power_cap\"} 1\n",
        "gridclock_device_clock_held_down{device=\"cuda:0\",reason=\"gpu_idle\"} 0\n",
        "gridclock_device_exclusive{device=\"cuda:0\"} 0\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  EXPECT_THAT(text, Not(HasSubstr("other_4000")));  // The words of a label are a closed set.

  gpu.vitals->vitals.exclusive.reset();
  EXPECT_THAT(metrics->Text(), Not(HasSubstr("gridclock_device_exclusive{")));
  gpu.vitals->at -= absl::Seconds(61);
  EXPECT_THAT(metrics->Text(), AllOf(Not(HasSubstr("gridclock_device_temperature_celsius{")),
                                     Not(HasSubstr("state=\"used\""))));
}

// One server for all: the end of a listener takes up to two seconds.
class PagesTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    metrics = *Serve();
    metrics->Watch(FullSources());
    RunSomeJobs(*metrics);
  }
  static void TearDownTestSuite() { metrics.reset(); }

  inline static std::unique_ptr<Metrics> metrics;
};

TEST_F(PagesTest, ShowDevicesKernelsAndRuns) {
  const std::string answer = Fetch(metrics->port(), "/");
  EXPECT_THAT(answer, HasSubstr("Content-Type: text/html; charset=utf-8\r\n"));
  const std::string page = BodyOf(answer);
  EXPECT_THAT(page, HasSubstr("<h3>cuda:0</h3><span class=\"chip s-ready\">ready</span>"));
  EXPECT_THAT(page, HasSubstr("NVIDIA H200"));
  EXPECT_THAT(page, HasSubstr("<dt>queue</dt><dd>3 of 256</dd>"));
  EXPECT_THAT(page, ContainsRegex("<dt>memory</dt><dd><span class=\"whole\">700 B</span> of "
                                  "<span class=\"whole\">1000 B</span> <small>[0-9]+ s ago<"));
  EXPECT_THAT(page, HasSubstr("<h3>square</h3><span class=\"device\">cpu</span>"));
  EXPECT_THAT(page, HasSubstr("<span>2 min ago</span><span>1.50 µs</span><span>now</span>"));
  EXPECT_THAT(page, HasSubstr("<polyline class=\"line\""));
  EXPECT_THAT(page, HasSubstr("href=\"/runs/9\""));
  for (const char* path : {"/part", "/runs"}) {
    EXPECT_THAT(BodyOf(Fetch(metrics->port(), path)), HasSubstr("href=\"/runs/9\"")) << path;
  }
}

TEST(MetricsTest, ThePageShowsTheNewestRunsAndLeadsToTheOthers) {
  ASSERT_OK_AND_ASSIGN(const auto metrics, Serve());
  Job job;
  job.kernel = "square";
  job.device = "cpu";
  for (job.id = 1; job.id <= 21; ++job.id) {
    metrics->job_observer().OnFinished(job, {.status = absl::CancelledError(""), .outcome = {}});
  }
  for (const char* path : {"/", "/part"}) {
    const std::string page = BodyOf(Fetch(metrics->port(), path));
    EXPECT_THAT(page, AllOf(HasSubstr("/runs/21\""), HasSubstr("/runs/2\""))) << path;
    EXPECT_THAT(page, Not(HasSubstr("/runs/1\""))) << path;
    EXPECT_THAT(page, HasSubstr("<a href=\"/runs\">the last 21 runs</a>")) << path;
  }
  const std::string all = BodyOf(Fetch(metrics->port(), "/runs"));
  EXPECT_THAT(all, AllOf(HasSubstr("/runs/1\""), Not(HasSubstr("the last 21 runs"))));
  EXPECT_THAT(BodyOf(Fetch(metrics->port(), "/runs.json")), HasSubstr("\"id\":1,"));
}

TEST_F(PagesTest, ARunHasAPageAndTheSameAsJson) {
  const std::string page = BodyOf(Fetch(metrics->port(), "/runs/9"));
  EXPECT_THAT(page, HasSubstr("<span>input copied</span>"));
  EXPECT_THAT(page, HasSubstr("<b>2.00 µs</b>"));
  EXPECT_THAT(page, HasSubstr("shared device"));
  const std::string json = BodyOf(Fetch(metrics->port(), "/runs/9.json"));
  EXPECT_THAT(json,
              HasSubstr("\"phases\":[{\"kind\":\"input_copied\",\"start_ns\":0,\"end_ns\":2000}]"));
  EXPECT_THAT(json, HasSubstr("\"flags\":[\"shared_device\"]"));
  const std::string status = BodyOf(Fetch(metrics->port(), "/status.json"));
  EXPECT_THAT(status, HasSubstr("\"kernel\":\"square\""));
  EXPECT_THAT(status, HasSubstr("\"queue\":3,\"queue_limit\":256,\"queued\":5,\"running\":1"));
  EXPECT_THAT(status, HasSubstr("\"memory_used_bytes\":700,\"memory_read_seconds_ago\":"));
  for (const char* path : {"/runs/8", "/runs/", "/runs/-9", "/runs/+9", "/runs/%209", "/runs/9x",
                           "/runs/9/", "/runs/99999999999999999999", "/runs/../status.json/9"}) {
    EXPECT_THAT(Fetch(metrics->port(), path), StartsWith("HTTP/1.1 4")) << path;
  }
}

TEST_F(PagesTest, AMeasurementSaysWhyItStoppedAndAPhaseOfNoTimeIsNotDrawn) {
  Job job;
  job.id = 12;
  job.kernel = "gelu";
  job.device = "cpu";
  job.measure.emplace();
  JobResult result;
  result.outcome.emplace();
  result.outcome->timing.emplace();
  result.outcome->timing->samples_ns = {1500, 1600};
  result.outcome->timing->stop = StopReason::kYielded;
  result.outcome->phases = {{PhaseKind::kQueued, 100, 100}, {PhaseKind::kLaunched, 100, 2000}};
  metrics->job_observer().OnFinished(job, result);
  const std::string page = BodyOf(Fetch(metrics->port(), "/runs/12"));
  EXPECT_THAT(page, HasSubstr("<dt>stop</dt><dd>yielded</dd>"));
  EXPECT_THAT(page, HasSubstr("<rect class=\"p-launched\""));
  EXPECT_THAT(page, HasSubstr("<span>queued</span>"));
  EXPECT_THAT(page, Not(HasSubstr("<rect class=\"p-queued\"")));
  EXPECT_THAT(BodyOf(Fetch(metrics->port(), "/runs/12.json")), HasSubstr("\"stop\":\"yielded\""));
}

TEST_F(PagesTest, NothingFollowsFromTheTimeOfATeachingMethod) {
  Job job;
  job.kernel = "gelu";
  job.device = "cpu";
  JobResult result;
  result.outcome.emplace();
  result.outcome->bytes = 1000;
  result.outcome->timing.emplace();
  result.outcome->timing->samples_ns = {1500};
  result.outcome->timing->roofline_ns = 900;
  for (const auto& [id, method] : {std::pair(4, Method::kHostSync), {5, Method::kIsolated}}) {
    job.id = id;
    result.outcome->timing->method = method;
    metrics->job_observer().OnFinished(job, result);
  }
  EXPECT_THAT(BodyOf(Fetch(metrics->port(), "/runs/4")), HasSubstr("host_sync"));
  for (const char* fact : {"<dt>bandwidth</dt>", "<dt>of the roofline</dt>"}) {
    EXPECT_THAT(BodyOf(Fetch(metrics->port(), "/runs/4")), Not(HasSubstr(fact)));
    EXPECT_THAT(BodyOf(Fetch(metrics->port(), "/runs/5")), HasSubstr(fact));
  }
}

// What the exemplar of the bucket up to 2.5 us says.
std::string RunIdIn(const Metrics& metrics) {
  const std::string before = "le=\"2.5e-06\"} 1 # {run_id=\"";
  const std::string text = metrics.Text(Format::kOpenMetrics);
  const std::size_t at = text.find(before);
  if (at == std::string::npos) return "";
  const std::size_t begin = at + before.size();
  return text.substr(begin, text.find('"', begin) - begin);
}

TEST_F(PagesTest, AnExemplarNamesARunThatCanBeRead) {
  const std::string run = RunIdIn(*metrics);
  EXPECT_THAT(run, MatchesRegex("[0-9a-f]{8}-[59]"));
  const std::string page = Fetch(metrics->port(), absl::StrCat("/runs/", run, ".json"));
  EXPECT_THAT(page, StartsWith("HTTP/1.1 200 "));
  EXPECT_EQ(page, Fetch(metrics->port(), absl::StrCat("/runs/", run.substr(9), ".json")));
}

// Each begins to count anew, and what a Prometheus keeps outlives one.
TEST_F(PagesTest, AnExemplarOfAnotherServerIsNoRunOfThisOne) {
  const auto other = *Serve();
  RunSomeJobs(*other);
  const std::string run = RunIdIn(*other);
  EXPECT_THAT(run, MatchesRegex("[0-9a-f]{8}-9"));
  EXPECT_THAT(Fetch(metrics->port(), absl::StrCat("/runs/", run)), StartsWith("HTTP/1.1 404 "));
}

TEST_F(PagesTest, WhatIsNoPageNamesThoseThatAre) {
  const std::string none = Fetch(metrics->port(), "/nothing");
  EXPECT_THAT(none, StartsWith("HTTP/1.1 404 "));
  for (const char* page : {"/", "/kernels", "/runs", "/runs.json", "/status.json", "/metrics",
                           "/healthz", "/readyz"}) {
    EXPECT_THAT(none, ContainsRegex(absl::StrCat(" ", page, "[ \n]")));
    EXPECT_THAT(Fetch(metrics->port(), page), Not(StartsWith("HTTP/1.1 404 "))) << page;
  }
}

TEST_F(PagesTest, ARunThatIsNotThereIsNoPageThatIsNotThere) {
  for (const char* path : {"/runs/99999", "/runs/99999.json", "/runs/5e1f09c3-9"}) {
    const std::string none = Fetch(metrics->port(), path);
    EXPECT_THAT(none, StartsWith("HTTP/1.1 404 ")) << path;
    EXPECT_THAT(BodyOf(none), StartsWith("no run of that ID: it is forgotten, or of another"));
  }
  EXPECT_THAT(BodyOf(Fetch(metrics->port(), "/runs/9x")), StartsWith("no such page; there are /"));
}

// A kernel's time limit ends its worker: whether it ran is not known here.
TEST_F(PagesTest, OfARunWithoutPhasesItIsNotSaidThatItNeverBegan) {
  Job job;
  job.id = 6;
  job.kernel = "spin";
  job.device = "cpu";
  metrics->job_observer().OnFinished(
      job, {.status = absl::DeadlineExceededError("time limit"), .outcome = {}});
  const std::string page = BodyOf(Fetch(metrics->port(), "/runs/6"));
  EXPECT_THAT(page, HasSubstr("It has no phases: it ended before its worker answered."));
}

int Count(absl::string_view text, absl::string_view part) {
  int count = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(MetricsTest, TheBusiestKernelsAreShownAndTheRestIsALinkAway) {
  ASSERT_OK_AND_ASSIGN(const auto metrics, Serve());
  metrics->Watch(FullSources());
  const auto cards = [&](const char* path) {
    const std::string page = BodyOf(Fetch(metrics->port(), path));
    return std::pair(Count(page, "launches by their time"),
                     absl::StrContains(page, R"(<a href="/kernels">)"));
  };
  EXPECT_EQ(cards("/"), std::pair(0, false));
  Job job;
  job.device = "cpu";
  JobResult result;
  result.outcome.emplace();
  result.outcome->timing.emplace();
  result.outcome->timing->samples_ns = {1500};
  for (int i = 0; i < 40; ++i) {
    job.kernel = absl::StrCat("made_", i);
    metrics->job_observer().OnFinished(job, result);
  }
  EXPECT_EQ(cards("/"), std::pair(24, true));
  EXPECT_EQ(cards("/part"), std::pair(24, true));
  EXPECT_EQ(cards("/kernels"), std::pair(40, false));
  // The busiest is shown, and every card in the order of names.
  job.kernel = "made_39";
  metrics->job_observer().OnFinished(job, result);
  const std::string page = BodyOf(Fetch(metrics->port(), "/"));
  EXPECT_THAT(page, ContainsRegex("<h3>made_0</h3>.*<h3>made_1</h3>.*<h3>made_10</h3>.*made_39"));
}

// What a worker says is shown, not believed: neither its text nor its numbers break a page.
TEST_F(PagesTest, NothingThatAWorkerSaysIsMarkup) {
  Sources sources = FullSources();
  sources.devices = [] {
    DeviceStatus device = Gpu();
    device.info.model = "<script>alert(1)</script>";
    device.info.name = "\"><img src=x>";
    return std::vector{device};
  };
  metrics->Watch(sources);
  Job job;
  job.id = 3;
  job.kernel = "<b>k";
  job.device = "</style>";
  JobResult result;
  result.outcome.emplace();
  result.outcome->variant = "<i onload=a()>";
  result.outcome->flags = {static_cast<Flag>(99)};
  result.outcome->phases = {{static_cast<PhaseKind>(77), 900, -5}};
  result.outcome->launches = {{.name = "k<float, 4>(\"x\")", .count = 1}};
  metrics->job_observer().OnFinished(job, result);
  for (const char* path : {"/", "/part", "/runs", "/runs/3"}) {
    const std::string page = BodyOf(Fetch(metrics->port(), path));
    for (const char* markup :
         {"<script>alert", "<img", "<b>k", "</style>", "<i onload", "k<float"}) {
      EXPECT_THAT(page, Not(HasSubstr(markup))) << path;
    }
  }
  EXPECT_THAT(BodyOf(Fetch(metrics->port(), "/runs/3")),
              HasSubstr("k&lt;float, 4&gt;(&quot;x&quot;)"));
}

// A GPU that is busy is not asked between its jobs.
TEST(MetricsTest, AGpuIsAlsoKnownByWhatItsMeasurementsSay) {
  ASSERT_OK_AND_ASSIGN(const auto metrics, Serve());
  Sources sources = FullSources();
  absl::Duration ago = absl::Minutes(2);
  sources.devices = [&ago] {
    DeviceStatus device = Gpu();
    device.vitals->at = absl::Now() - ago;
    return std::vector{device};
  };
  metrics->Watch(sources);
  EXPECT_THAT(metrics->Text(), Not(HasSubstr("gridclock_device_temperature_celsius{")));
  Job job;
  job.kernel = "square";
  job.device = "cuda:0";
  JobResult result;
  result.outcome.emplace().timing.emplace().after =
      DeviceState{.temperature_celsius = 63, .clock_reasons = {"sw_power_cap"}};
  metrics->job_observer().OnFinished(job, result);
  EXPECT_THAT(metrics->Text(),
              HasSubstr("gridclock_device_temperature_celsius{device=\"cuda:0\"} 63\n"));
  EXPECT_THAT(
      metrics->Text(),
      HasSubstr(R"(gridclock_device_clock_held_down{device="cuda:0",reason="sw_power_cap"} 1)"));
  EXPECT_THAT(metrics->Text(), Not(HasSubstr(R"(device="cuda:0",state="used")")));
  ago = -absl::Seconds(1);
  EXPECT_THAT(metrics->Text(),
              HasSubstr("gridclock_device_temperature_celsius{device=\"cuda:0\"} 41\n"));
}

TEST(MetricsTest, EveryLimitIsShown) {
  ASSERT_OK_AND_ASSIGN(const auto metrics, Serve());
  metrics->Watch(FullSources());
  for (const LimitSpec& spec : LimitSpecs()) {
    EXPECT_THAT(metrics->Text(),
                HasSubstr(absl::StrCat("gridclock_limit{name=\"", spec.name, "\"}")));
  }
}

// A metric of the table that nothing fills would be a promise that is not kept. The overflow
// counter alone has nothing to show here.
TEST(MetricsTest, EveryMetricOfTheTableIsServed) {
  ASSERT_OK_AND_ASSIGN(const auto metrics, Serve());
  metrics->Watch(FullSources());
  RunSomeJobs(*metrics);
  for (const MetricSpec& spec : MetricSpecs()) {
    if (spec.id == Metric::kSeriesOverflow) continue;
    EXPECT_THAT(metrics->Text(), HasSubstr(absl::StrCat("# TYPE ", spec.name, " ")));
  }
}

TEST(MetricsTest, PromtoolHasNothingToSay) {
  ASSERT_OK_AND_ASSIGN(const auto metrics, Serve());
  metrics->Watch(FullSources());
  RunSomeJobs(*metrics);
  FILE* promtool = popen("promtool check metrics 2>&1", "w");
  ASSERT_NE(promtool, nullptr);
  const std::string text = BodyOf(Fetch(metrics->port(), "/metrics"));
  ASSERT_EQ(fwrite(text.data(), 1, text.size(), promtool), text.size());
  EXPECT_EQ(pclose(promtool), 0);
}

TEST(MetricsTest, APageOfNothingIsNotEmpty) {
  ASSERT_OK_AND_ASSIGN(const auto metrics, Serve());
  const std::string page = BodyOf(Fetch(metrics->port(), "/"));
  EXPECT_THAT(page, HasSubstr("The server is starting."));
  EXPECT_THAT(page, HasSubstr("No kernel has run yet."));
  EXPECT_THAT(page, HasSubstr("A run shows up here when it has ended."));
}

TEST(MetricsTest, IsReadyWhileADeviceIs) {
  ASSERT_OK_AND_ASSIGN(const auto metrics, Serve());
  EXPECT_EQ(BodyOf(Fetch(metrics->port(), "/readyz")), "not ready: the server starts\n");
  Sources sources;
  sources.devices = [] { return std::vector{Cpu(WorkerState::kDead), Cpu(WorkerState::kReady)}; };
  metrics->Watch(sources);
  EXPECT_THAT(Fetch(metrics->port(), "/readyz"), StartsWith("HTTP/1.1 200 "));
  DeviceStatus drained = Cpu(WorkerState::kReady);
  drained.drained = true;
  sources.devices = [&] { return std::vector{Cpu(WorkerState::kQuarantined), drained}; };
  metrics->Watch(sources);
  EXPECT_THAT(Fetch(metrics->port(), "/readyz"), StartsWith("HTTP/1.1 503 "));
  EXPECT_EQ(BodyOf(Fetch(metrics->port(), "/readyz")),
            "not ready: no device takes calls: cpu is quarantined, cpu is drained\n");
  EXPECT_THAT(Fetch(metrics->port(), "/healthz"), StartsWith("HTTP/1.1 200 "));
}

TEST(MetricsTest, AskedWhetherItIsReadyTheServerHasTheWord) {
  ASSERT_OK_AND_ASSIGN(const auto metrics, Serve());
  Sources sources = FullSources();
  sources.not_ready = [] { return std::string("the server ends"); };
  metrics->Watch(sources);
  EXPECT_THAT(Fetch(metrics->port(), "/readyz"), StartsWith("HTTP/1.1 503 "));
  EXPECT_EQ(BodyOf(Fetch(metrics->port(), "/readyz")), "not ready: the server ends\n");
}

TEST(MetricsTest, AsksNobodyAfterStop) {
  ASSERT_OK_AND_ASSIGN(const auto metrics, Serve());
  int asked = 0;
  Sources sources;
  sources.devices = [&asked] {
    ++asked;
    return std::vector{Cpu(WorkerState::kReady)};
  };
  metrics->Watch(sources);
  metrics->Stop();
  metrics->Stop();
  EXPECT_THAT(metrics->Text(), Not(HasSubstr("gridclock_worker_up")));
  EXPECT_EQ(Fetch(metrics->port(), "/metrics"), "");
  EXPECT_EQ(asked, 0);
  metrics->job_observer().OnWorkerUp("cpu");
}

TEST(MetricsTest, SaysWhyItCannotListen) {
  EXPECT_THAT(Metrics::Create({.address = "nonsense"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'nonsense'")));
}

}  // namespace
}  // namespace gridclock
