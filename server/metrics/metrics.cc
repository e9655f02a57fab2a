#include "server/metrics/metrics.h"

#include <random>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "server/metrics/compile_metrics.h"
#include "server/metrics/job_metrics.h"
#include "server/metrics/process.h"
#include "server/metrics/registry.h"
#include "server/metrics/rpc_metrics.h"
#include "server/metrics/state.h"
#include "server/metrics/status_page.h"

namespace gridclock {
namespace {

constexpr char kHtml[] = "text/html; charset=utf-8";
constexpr char kCss[] = "text/css; charset=utf-8";
constexpr char kScript[] = "text/javascript; charset=utf-8";
constexpr char kJson[] = "application/json";

// A browser names text/html before whatever else it takes.
bool WantsJson(absl::string_view accept) {
  return absl::StartsWith(accept, "application/json");
}

class ServerMetrics final : public Metrics {
 public:
  explicit ServerMetrics(const Options& options)
      : registry_(options.caps),
        jobs_(registry_),
        rpcs_(registry_),
        compiles_(registry_),
        version_(options.version),
        started_(absl::Now()) {
    registry_.TallyOf(Metric::kBuildInfo, {options.version, options.revision, options.cuda}).Add(1);
    Collect(nullptr);
  }
  ~ServerMetrics() override { Stop(); }

  absl::Status Listen(MetricsServer::Options options);

  JobObserver& job_observer() override { return jobs_; }
  RpcObserver& rpc_observer() override { return rpcs_; }
  CompileObserver& compile_observer() override { return compiles_; }
  void Watch(Sources sources) override;
  int port() const override { return port_; }
  std::string Text(Format format) const override;
  void Stop() override;

 private:
  void Collect(std::shared_ptr<const Sources> sources);
  std::string NotReady() const ABSL_LOCKS_EXCLUDED(mutex_);
  std::optional<MetricsServer::Page> PageAt(absl::string_view path, absl::string_view accept) const;
  std::optional<MetricsServer::Page> RunAt(absl::string_view name, absl::string_view accept) const;
  StatusView View(std::size_t most_runs) const ABSL_LOCKS_EXCLUDED(mutex_);

  Registry registry_;
  JobMetrics jobs_;
  RpcMetrics rpcs_;
  CompileMetrics compiles_;
  const std::string version_;
  const absl::Time started_;
  // Of this process alone: its runs are counted from 1 again, and exemplars outlive it.
  const std::string life_ = absl::StrCat(absl::Hex(std::random_device()(), absl::kZeroPad8));
  int port_ = 0;
  // Held while /readyz asks them, so that Stop() can promise that nobody does any more.
  mutable Mutex mutex_;
  std::shared_ptr<const Sources> sources_ ABSL_GUARDED_BY(mutex_);  // With the collector.
  std::unique_ptr<MetricsServer> http_ ABSL_GUARDED_BY(stop_mutex_);
  Mutex stop_mutex_;
};

absl::Status ServerMetrics::Listen(MetricsServer::Options options) {
  GC_ASSIGN_OR_RETURN(
      auto http,
      MetricsServer::Create(
          options, {.page = [this](absl::string_view path,
                                   absl::string_view accept) { return PageAt(path, accept); },
                    .not_ready = [this] { return NotReady(); }}));
  port_ = http->port();
  MutexLock lock(stop_mutex_);
  http_ = std::move(http);
  return absl::OkStatus();
}

void ServerMetrics::Watch(Sources sources) {
  jobs_.SetKnowsKernel(sources.knows_kernel);
  const auto shared = std::make_shared<const Sources>(std::move(sources));
  {
    MutexLock lock(mutex_);
    sources_ = shared;
  }
  Collect(shared);
}

void ServerMetrics::Collect(std::shared_ptr<const Sources> sources) {
  registry_.SetCollector([this, sources = std::move(sources)](ScrapeValues& values) {
    const auto ended = jobs_.Ended();
    const auto usage = sources && sources->queue_usage ? sources->queue_usage()
                                                       : decltype(sources->queue_usage())();
    jobs_.Collect(ended, usage, values);
    if (sources) CollectState(*sources, usage, jobs_.readings(), values);
    CollectProcess(values);
  });
}

std::string ServerMetrics::Text(Format format) const {
  return Expose(format, registry_.Collect(), [this](std::uint64_t run, double above, double upto) {
    std::optional<Exemplar> found = jobs_.ExemplarOf(run, above, upto);
    if (found) found->run = absl::StrCat(life_, "-", found->run);
    return found;
  });
}

StatusView ServerMetrics::View(std::size_t most_runs) const {
  StatusView view;
  view.version = version_;
  view.now = absl::Now();
  view.started = started_;
  view.activity = jobs_.Read(view.now, most_runs);
  MutexLock lock(mutex_);
  if (sources_) Fill(*sources_, &view);
  return view;
}

std::optional<MetricsServer::Page> ServerMetrics::PageAt(absl::string_view path,
                                                         absl::string_view accept) const {
  if (path == "/metrics") {
    const Format format = FormatFor(accept);
    return MetricsServer::Page{std::string(ContentTypeOf(format)), Text(format)};
  }
  if (path == "/") return MetricsServer::Page{kHtml, StatusPage(View(kRunsShown))};
  if (path == "/part") return MetricsServer::Page{kHtml, StatusPart(View(kRunsShown))};
  if (path == "/status.json") return MetricsServer::Page{kJson, StatusJson(View(0))};
  if (path == "/runs.json") return MetricsServer::Page{kJson, RunsJson(View(RunLog::kRuns))};
  if (path == "/page.css") return MetricsServer::Page{kCss, std::string(PageStyle())};
  if (path == "/page.js") return MetricsServer::Page{kScript, std::string(PageScript())};
  if (path == "/kernels") return MetricsServer::Page{kHtml, KernelsPage(View(0))};
  if (path == "/runs") {
    if (WantsJson(accept)) return MetricsServer::Page{kJson, RunsJson(View(RunLog::kRuns))};
    return MetricsServer::Page{kHtml, RunsPage(View(RunLog::kRuns))};
  }
  if (absl::ConsumePrefix(&path, "/runs/")) return RunAt(path, accept);
  return std::nullopt;
}

std::optional<MetricsServer::Page> ServerMetrics::RunAt(absl::string_view name,
                                                        absl::string_view accept) const {
  const bool json = absl::ConsumeSuffix(&name, ".json") || WantsJson(accept);
  // A bare number is for people.
  absl::ConsumePrefix(&name, absl::StrCat(life_, "-"));
  JobId id = 0;
  // SimpleAtoi also takes blanks and signs.
  const bool is_number = name.find_first_not_of("0123456789") == absl::string_view::npos;
  if (!is_number || !absl::SimpleAtoi(name, &id)) return std::nullopt;
  const std::optional<RunRecord> run = jobs_.Find(id);
  if (!run) return std::nullopt;
  if (json) return MetricsServer::Page{kJson, RunJson(*run)};
  return MetricsServer::Page{kHtml, RunPage(*run, absl::Now())};
}

std::string ServerMetrics::NotReady() const {
  MutexLock lock(mutex_);
  return sources_ ? WhyNotReady(*sources_) : WhyNotReady({});
}

void ServerMetrics::Stop() {
  MutexLock lock(stop_mutex_);
  http_.reset();
  {
    MutexLock sources_lock(mutex_);
    sources_.reset();
  }
  jobs_.SetKnowsKernel(nullptr);
  Collect(nullptr);
}

class DeafJobs final : public JobObserver {
 public:
  void OnRejected(absl::string_view, const absl::Status&) override {}
  void OnFinished(const Job&, const JobResult&) override {}
  void OnWorkerUp(absl::string_view) override {}
  void OnWorkerLost(absl::string_view, absl::string_view) override {}
};

class DeafRpcs final : public RpcObserver {
 public:
  void OnRpcStarted(RpcMethod) override {}
  void OnRpcFinished(RpcMethod, const absl::Status&, absl::Duration) override {}
};

class DeafCompiles final : public CompileObserver {
 public:
  void OnCompiled(ModuleKind, CompileOutcome, absl::Duration) override {}
  void OnModule(ModuleOrigin) override {}
  void OnCompilerLost() override {}
};

}  // namespace

// Without state, so that one for the whole program is no secret channel between its parts.
JobObserver& NullJobObserver() {
  static DeafJobs observer;
  return observer;
}
RpcObserver& NullRpcObserver() {
  static DeafRpcs observer;
  return observer;
}

CompileObserver& NullCompileObserver() {
  static DeafCompiles observer;
  return observer;
}

absl::StatusOr<std::unique_ptr<Metrics>> Metrics::Create(Options options) {
  auto metrics = std::make_unique<ServerMetrics>(options);
  MetricsServer::Options http = options.http;
  http.address = options.address;
  GC_RETURN_IF_ERROR(metrics->Listen(std::move(http)));
  return metrics;
}

}  // namespace gridclock
