#include "server/metrics/job_metrics.h"

#include <utility>

#include "server/metrics/words.h"

namespace gridclock {
namespace {

constexpr char kOther[] = "other";
constexpr double kSecondsPerNano = 1e-9;

bool IsTeaching(Method method) {
  return method == Method::kHostNoSync || method == Method::kHostSync ||
         method == Method::kEventPair;
}

// Device work where the worker knows it, else from the first launch to the return of the last.
std::int64_t BusyNs(const Outcome& outcome) {
  std::int64_t launched = 0;
  for (const Phase& phase : outcome.phases) {
    if (phase.kind == PhaseKind::kFinished) return phase.end_ns - phase.start_ns;
    if (phase.kind == PhaseKind::kLaunched) launched = phase.end_ns - phase.start_ns;
  }
  return launched;
}

std::int64_t BytesIn(const Job& job) {
  std::uint64_t bytes = 0;
  for (const JobInput& input : job.inputs) {
    if (input.source != SourceKind::kGenerate) bytes += WireBytes(input.value);
  }
  return static_cast<std::int64_t>(bytes);
}

std::int64_t BytesOut(const Job& job) {
  std::uint64_t bytes = 0;
  for (const JobOutput& output : job.outputs) {
    const bool sent = output.sink == SinkKind::kInline || output.sink == SinkKind::kStream;
    if (sent) bytes += WireBytes(output.value);
  }
  return static_cast<std::int64_t>(bytes);
}

}  // namespace

JobMetrics::JobMetrics(Registry& registry)
    : registry_(registry), measurements_(registry.TallyOf(Metric::kMeasurements, {})) {
  for (int i = 0; i < kFlagCount; ++i) {
    const Flag flag = static_cast<Flag>(i + 1);
    flags_[i] = &registry.TallyOf(Metric::kMeasurementsFlagged, {std::string(FlagWord(flag))});
  }
  // rate() misses the first event of a series that was not there before: show the usual ones as 0.
  for (const char* reason : {"queue_full", "memory_full", "too_large", "worker_starting",
                             "draining", "invalid_argument", "not_found"}) {
    registry.TallyOf(Metric::kAdmissionRejected, {reason});
  }
}

void JobMetrics::SetKnowsKernel(std::function<bool(absl::string_view)> knows_kernel) {
  MutexLock lock(mutex_);
  knows_kernel_ = std::move(knows_kernel);
}

void JobMetrics::OnRejected(absl::string_view, const absl::Status& status) {
  registry_.TallyOf(Metric::kAdmissionRejected, {RejectionWord(status)}).Add(1);
}

void JobMetrics::OnDispatched(const Job& job, absl::Duration waited) {
  SeriesOf(job).queue_wait->Observe(absl::ToDoubleSeconds(waited));
}

void JobMetrics::OnFinished(const Job& job, const JobResult& result) {
  const PairSeries series = SeriesOf(job);
  CountOutcome(job, result, series);
  if (!result.outcome) return;  // It never ran: no bytes counted, no time taken.
  series.bytes_in->Add(BytesIn(job));
  if (result.status.ok()) series.bytes_out->Add(BytesOut(job));
  series.busy_ns->Add(BusyNs(*result.outcome));
  CountMeasurement(job, *result.outcome, series);
}

void JobMetrics::OnWorkerUp(absl::string_view device) {
  for (const char* reason : {"exit", "signal", "hang", "protocol", "time_limit"}) {
    registry_.TallyOf(Metric::kWorkerRestarts, {std::string(device), reason});
  }
}

void JobMetrics::OnWorkerLost(absl::string_view device, absl::string_view reason) {
  registry_.TallyOf(Metric::kWorkerRestarts, {std::string(device), std::string(LossWord(reason))})
      .Add(1);
}

bool JobMetrics::Knows(absl::string_view kernel) const {
  MutexLock lock(mutex_);
  return knows_kernel_ && knows_kernel_(kernel);
}

JobMetrics::PairSeries JobMetrics::SeriesOf(const Job& job) {
  if (const PairSeries* found = pairs_.Find(job.kernel, job.device)) return *found;
  const std::string kernel = Knows(job.kernel) ? job.kernel : kOther;
  if (const PairSeries* found = pairs_.Find(kernel, job.device)) return *found;
  const PairSeries made = Resolve(kernel, job.device);
  pairs_.Insert(kernel, job.device, made);
  return made;
}

JobMetrics::PairSeries JobMetrics::Resolve(const std::string& kernel, const std::string& device) {
  return {
      .duration = &registry_.HistogramOf(Metric::kKernelDuration, {kernel, device}),
      .ok = &registry_.TallyOf(Metric::kKernelRuns, {kernel, device, "ok"}),
      .queue_wait = &registry_.HistogramOf(Metric::kQueueWait, {device}),
      .busy_ns = &registry_.TallyOf(Metric::kDeviceBusy, {device}, kSecondsPerNano),
      .bytes_in = &registry_.TallyOf(Metric::kTransferBytes, {"in", device}),
      .bytes_out = &registry_.TallyOf(Metric::kTransferBytes, {"out", device}),
  };
}

void JobMetrics::CountOutcome(const Job& job, const JobResult& result, const PairSeries& series) {
  const absl::string_view word = OutcomeWord(result);
  if (word == "ok") return series.ok->Add(1);
  // Rare enough for a lookup; series that never happened are not made for every kernel.
  const std::string kernel = Knows(job.kernel) ? job.kernel : kOther;
  registry_.TallyOf(Metric::kKernelRuns, {kernel, job.device, std::string(word)}).Add(1);
}

void JobMetrics::CountMeasurement(const Job& job, const Outcome& outcome,
                                  const PairSeries& series) {
  for (const Flag flag : outcome.flags) {
    const std::size_t index = static_cast<std::size_t>(flag) - 1;
    if (index < flags_.size()) flags_[index]->Add(1);  // The flags came from another process.
  }
  if (!outcome.timing) return;
  if (job.measure) measurements_.Add(1);
  if (IsTeaching(outcome.timing->method)) return;
  series.duration->ObserveAll(outcome.timing->samples_ns, kSecondsPerNano);
}

}  // namespace gridclock
