// load: requests at a given rate, whether or not the earlier ones were answered.
#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>

#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "client/cli/command.h"
#include "client/cli/format.h"
#include "client/cli/json.h"
#include "client/cli/load_stats.h"
#include "client/cli/measure_flags.h"
#include "client/cli/progress.h"

namespace gridclock::cli {
namespace {

constexpr std::int64_t kDefaultDim = 1024;
constexpr double kKeptUp = 0.9;  // Of the rate, refusals too; below that the requests pile up.
constexpr double kMostRequests = 1e7;  // The latency of each is kept.

struct LoadOptions {
  CallFlags call;
  double rate = 100, seconds = 5;
  int concurrency = 1000;

  std::int64_t requests() const { return std::llround(rate * seconds); }
};

// Counts the requests under way. Shared by the loop and by gRPC's threads.
class Load {
 public:
  explicit Load(int concurrency) : concurrency_(concurrency) {}

  // Waits for a free place.
  void Begin() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return running_ < concurrency_; });
    ++running_;
  }
  void End(const absl::Status& status, absl::Duration latency) {
    const std::lock_guard<std::mutex> lock(mutex_);
    stats_.Add(status, latency);
    --running_;
    changed_.notify_all();
  }
  LoadStats WaitForAll() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return running_ == 0; });
    return stats_;
  }
  std::string Text() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return absl::StrCat(stats_.ok(), " ok, ", stats_.answered() - stats_.ok(), " failed, ",
                        running_, " under way");
  }

 private:
  const int concurrency_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int running_ = 0;
  LoadStats stats_;
};

// Sends until the time is over; answers how long that and the last answer took.
absl::Duration Send(const Session& session, const Client& client, const RunCall& call,
                    const LoadOptions& options, Load* load) {
  ProgressLine line(session.console);
  const absl::Time start = absl::Now();
  const std::int64_t count = options.requests();
  for (std::int64_t i = 0; i < count; ++i) {
    const absl::Time due = start + absl::Seconds(static_cast<double>(i) / options.rate);
    const absl::Duration ahead = due - absl::Now();
    if (ahead > absl::Microseconds(50)) absl::SleepFor(ahead);
    load->Begin();
    client.RunAsync(call, {}, [load, due](const absl::StatusOr<RunResult>& result) {
      load->End(result.status(), absl::Now() - due);
    });
    line.Show(load->Text());
  }
  load->WaitForAll();
  return std::max(absl::Now() - start, absl::Seconds(static_cast<double>(count) / options.rate));
}

void Show(const Session& session, const LoadOptions& options, const LoadStats& stats,
          absl::Duration took) {
  const double achieved = static_cast<double>(stats.ok()) / absl::ToDoubleSeconds(took);
  std::ostream& out = session.console.out;
  const std::optional<double> p50 = stats.QuantileNs(0.5), p90 = stats.P90Ns(), p99 = stats.P99Ns(),
                              most = stats.QuantileNs(1);
  if (session.options.json) {
    const auto known = [](std::optional<double> ns) { return ns ? Json(*ns) : Json(); };
    Json errors = Json::object();
    for (const auto& [code, count] : stats.errors()) errors[code] = count;
    out << Dump({{"requests", stats.answered()},
                 {"ok", stats.ok()},
                 {"errors", errors},
                 {"rate_wanted", options.rate},
                 {"rate_achieved", achieved},
                 {"latency_ns",
                  {{"p50", known(p50)},
                   {"p90", known(p90)},
                   {"p99", known(p99)},
                   {"max", known(most)}}}})
        << "\n";
    return;
  }
  out << stats.answered() << " requests, " << stats.ok() << " ok, "
      << absl::StrFormat("%.1f a second of %.1f wanted", achieved, options.rate) << "\n"
      << "latency  p50 " << FormatNs(p50.value_or(0)) << "  p90 " << FormatNs(p90.value_or(0))
      << "  p99 " << FormatNs(p99.value_or(0)) << "  max " << FormatNs(most.value_or(0)) << "\n";
  if (static_cast<double>(stats.answered()) <
      kKeptUp * options.rate * absl::ToDoubleSeconds(took)) {
    out << "the server did not keep up with the rate: these latencies grow with --seconds\n";
  }
  for (const auto& [code, count] : stats.errors()) out << count << "  " << Escape(code) << "\n";
}

absl::StatusOr<std::unique_ptr<Client>> ConnectWithoutRetries(const Session& session) {
  GC_ASSIGN_OR_RETURN(ClientOptions options, session.MakeClientOptions());
  options.retry.max_attempts = 1;  // Every refusal shall be seen.
  return Client::Connect(options);
}

absl::StatusOr<int> RunLoad(const Session& session, const LoadOptions& options) {
  if (options.rate * options.seconds > kMostRequests) {
    return UsageError(absl::StrCat("--rate times --seconds: want at most ", kMostRequests,
                                   " requests, got ", options.rate * options.seconds));
  }
  if (options.requests() == 0) {
    return UsageError(absl::StrCat("--rate times --seconds: want at least 1 request, got ",
                                   options.rate * options.seconds));
  }
  GC_ASSIGN_OR_RETURN(const auto client, ConnectWithoutRetries(session));
  GC_ASSIGN_OR_RETURN(const KernelSpec spec,
                      client->GetKernel(ParseKernelName(options.call.kernel).kernel));
  GC_ASSIGN_OR_RETURN(MadeCall made, MakeCall(spec, options.call, kDefaultDim));
  GC_ASSIGN_OR_RETURN(made.call.timeout, session.Timeout());
  if (made.call.timeout == absl::InfiniteDuration()) made.call.timeout = absl::Seconds(30);
  Load load(options.concurrency);
  const absl::Duration took = Send(session, *client, made.call, options, &load);
  const LoadStats stats = load.WaitForAll();
  Show(session, options, stats, took);
  return stats.ok() > 0 ? kOk : kFailed;
}

}  // namespace

CommandEntry AddLoad(CLI::App& program) {
  auto* app = program.add_subcommand("load");
  const auto options = std::make_shared<LoadOptions>();
  options->call.generate = "client";
  AddCallFlags(*app, &options->call);
  app->add_option("--rate", options->rate)->check(Between(0.001, 1e6));
  app->add_option("--seconds", options->seconds)->check(Between(0.001, 1e6));
  app->add_option("--concurrency", options->concurrency)->check(CLI::Range(1, 100'000));
  return {app, [options](const Session& session) { return RunLoad(session, *options); }};
}

}  // namespace gridclock::cli
