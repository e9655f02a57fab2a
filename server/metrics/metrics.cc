#include "server/metrics/metrics.h"

#include <utility>

#include <prometheus/text_serializer.h>

#include "base/mutex.h"
#include "base/status.h"
#include "server/metrics/compile_metrics.h"
#include "server/metrics/job_metrics.h"
#include "server/metrics/process.h"
#include "server/metrics/registry.h"
#include "server/metrics/rpc_metrics.h"
#include "server/metrics/state.h"

namespace gridclock {
namespace {

class ServerMetrics final : public Metrics {
 public:
  explicit ServerMetrics(const Options& options)
      : registry_(options.max_label_sets),
        jobs_(registry_),
        rpcs_(registry_),
        compiles_(registry_) {
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
  std::string Text() const override {
    return prometheus::TextSerializer().Serialize(registry_.Collect());
  }
  void Stop() override;

 private:
  void Collect(std::shared_ptr<const Sources> sources);
  bool Ready() const ABSL_LOCKS_EXCLUDED(mutex_);

  Registry registry_;
  JobMetrics jobs_;
  RpcMetrics rpcs_;
  CompileMetrics compiles_;
  int port_ = 0;
  // Held while /readyz asks them, so that Stop() can promise that nobody does any more.
  mutable Mutex mutex_;
  std::shared_ptr<const Sources> sources_ ABSL_GUARDED_BY(mutex_);  // With the collector.
  std::unique_ptr<MetricsServer> http_ ABSL_GUARDED_BY(stop_mutex_);
  Mutex stop_mutex_;
};

absl::Status ServerMetrics::Listen(MetricsServer::Options options) {
  GC_ASSIGN_OR_RETURN(auto http,
                      MetricsServer::Create(options, {.metrics = [this] { return Text(); },
                                                      .ready = [this] { return Ready(); }}));
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
  registry_.SetCollector([sources = std::move(sources)](ScrapeValues& values) {
    if (sources) CollectState(*sources, values);
    CollectProcess(values);
  });
}

bool ServerMetrics::Ready() const {
  MutexLock lock(mutex_);
  return sources_ && IsReady(*sources_);
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
  void OnDispatched(const Job&, absl::Duration) override {}
  void OnFinished(const Job&, const JobResult&) override {}
  void OnWorkerUp(absl::string_view) override {}
  void OnWorkerLost(absl::string_view, absl::string_view) override {}
};

class DeafRpcs final : public RpcObserver {
 public:
  void OnRpcStarted(RpcMethod) override {}
  void OnRpcFinished(RpcMethod, absl::StatusCode, absl::Duration) override {}
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
