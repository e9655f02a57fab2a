// What the metrics add to a request. One unary Run makes four calls: rpc started, job finished,
// rpc bytes, rpc finished.
#include <benchmark/benchmark.h>

#include "server/metrics/job_metrics.h"
#include "server/metrics/rpc_metrics.h"

namespace gridclock {
namespace {

struct Fixture {
  Fixture() {
    jobs.SetKnowsKernel([](absl::string_view) { return true; });
    job.kernel = "square";
    job.device = "cpu";
    JobInput& input = job.inputs.emplace_back();
    input.value.tensors = {TensorSpec{.dtype = DType::kF32, .shape = {16}}};
    job.outputs.emplace_back().value = input.value;
    result.waited = absl::Microseconds(2);
    result.outcome.emplace();
    result.outcome->timing.emplace();
    result.outcome->timing->samples_ns = {900};
    result.outcome->phases = {{PhaseKind::kLaunched, 0, 1000}, {PhaseKind::kFinished, 0, 900}};
  }
  Registry registry{{}};
  JobMetrics jobs{registry};
  RpcMetrics rpcs{registry};
  Job job;
  JobResult result;
};

Fixture& Shared() {
  static Fixture fixture;
  return fixture;
}

void Request(benchmark::State& state) {
  Fixture& f = Shared();
  while (state.KeepRunning()) {
    f.rpcs.OnRpcStarted(RpcMethod::kRun);
    f.jobs.OnFinished(f.job, f.result);
    f.rpcs.OnRpcBytes(RpcMethod::kRun, 120, 200);
    f.rpcs.OnRpcFinished(RpcMethod::kRun, absl::OkStatus(), absl::Microseconds(80));
  }
}
BENCHMARK(Request)->Threads(1)->Threads(2);

void Scrape(benchmark::State& state) {
  while (state.KeepRunning()) benchmark::DoNotOptimize(Shared().registry.Collect());
}
BENCHMARK(Scrape);

}  // namespace
}  // namespace gridclock
