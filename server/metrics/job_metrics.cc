#include "server/metrics/job_metrics.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/log.h"
#include "base/status.h"

namespace gridclock {
namespace {

constexpr char kOther[] = "other";
constexpr char kUser[] = "user";  // Submitted code, whatever its words call it.
constexpr double kSecondsPerNano = 1e-9;

// That its time is not to be trusted.
bool IsDoubt(Flag flag) {
  return flag == Flag::kSuspect || flag == Flag::kImpossible || flag == Flag::kThrottled ||
         flag == Flag::kSharedDevice;
}

// By its client's own deadline, ready and not yet launched. What the server ends has a reason.
bool IsExpired(const JobResult& result, absl::string_view outcome) {
  return result.was_ready && outcome == "deadline" && DetailsOf(result.status).reason.empty() &&
         !result.outcome && result.launched_for == absl::ZeroDuration();
}

// Device work where the worker knows it, else from the first launch to the return of the last.
std::int64_t DeviceNs(const Outcome& outcome) {
  std::int64_t launched = 0;
  for (const Phase& phase : outcome.phases) {
    if (phase.kind == PhaseKind::kFinished) return phase.end_ns - phase.start_ns;
    if (phase.kind == PhaseKind::kLaunched) launched = phase.end_ns - phase.start_ns;
  }
  return launched;
}

// Never less than was shown of it while it ran.
std::int64_t BusyNs(const JobResult& result) {
  return std::max(result.outcome ? DeviceNs(*result.outcome) : 0,
                  absl::ToInt64Nanoseconds(result.launched_for));
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

// The worker, another process, may have sent any number; one that fits no integer counts nothing.
std::int64_t Whole(double value) {
  constexpr double kMost = 1e18;
  return value >= 0 && value <= kMost ? static_cast<std::int64_t>(value) : 0;
}

}  // namespace

JobMetrics::JobMetrics(Registry& registry) : registry_(registry) {
  // rate() misses the first event of a series that was not there before: show the usual ones as 0.
  for (const char* reason :
       {"queue_full", "memory_full", "too_large", "worker_starting", "draining", "device_drained",
        "worker_crashed", "bad_value", "signature_mismatch", "unknown_name"}) {
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

void JobMetrics::OnFinished(const Job& job, const JobResult& result) {
  std::optional<JobSeries> made;
  const JobSeries& series = SeriesOf(job, made);
  const absl::string_view outcome = OutcomeWord(result);
  CountOutcome(series, outcome);
  if (IsExpired(result, outcome)) registry_.TallyOf(Metric::kQueueExpired, {job.device}).Add(1);
  if (result.waited) series.queue_wait->Observe(absl::ToDoubleSeconds(*result.waited));
  // Before the launches are observed: see LatencyWindow::Touch.
  runs_.Add(*series.trail, job, result, outcome, absl::Now());
  series.busy_ns->Add(BusyNs(result));
  if (outcome == "mismatch") CountWrong(job, *result.outcome, series);
  if (!result.outcome) return;  // It never ran, or its worker said nothing: no bytes counted.
  series.bytes_in->Add(BytesIn(job));
  if (result.status.ok()) series.bytes_out->Add(BytesOut(job));
  CountPhases(*result.outcome, series);
  if (series.variant_jobs != nullptr) series.variant_jobs->Add(1);
  if (!result.outcome->timing) return;
  // What a guest says of its times calls no operator.
  if (job.measure && job.program == nullptr) CountMeasurement(*result.outcome, series.measurements);
  if (HasLatencies(*result.outcome)) CountLaunches(job, *result.outcome->timing, series);
}

void JobMetrics::OnWorkerUp(absl::string_view device) {
  for (const char* reason :
       {"exit", "signal", "hang", "protocol", "time_limit", "deadline", "cancelled", "restart"}) {
    registry_.TallyOf(Metric::kWorkerRestarts, {std::string(device), reason});
  }
  registry_.TallyOf(Metric::kWorkerStrayAnswers, {std::string(device)});
  registry_.TallyOf(Metric::kQueueExpired, {std::string(device)});
  MeasurementsOn(std::string(device));
}

void JobMetrics::OnWorkerLost(absl::string_view device, absl::string_view reason) {
  registry_.TallyOf(Metric::kWorkerRestarts, {std::string(device), std::string(LossWord(reason))})
      .Add(1);
}

void JobMetrics::OnStrayAnswer(absl::string_view device) {
  registry_.TallyOf(Metric::kWorkerStrayAnswers, {std::string(device)}).Add(1);
}

void JobMetrics::OnGuestLost(absl::string_view device, absl::string_view reason) {
  const absl::string_view word = reason == "retired" ? reason : LossWord(reason);
  registry_.TallyOf(Metric::kGuestEnds, {std::string(device), std::string(word)}).Add(1);
}

bool JobMetrics::Knows(absl::string_view kernel) const {
  MutexLock lock(mutex_);
  return knows_kernel_ && knows_kernel_(kernel);
}

const JobMetrics::JobSeries& JobMetrics::SeriesOf(const Job& job, std::optional<JobSeries>& made) {
  // A program may be called like a kernel of the catalogue.
  const bool submitted = job.program != nullptr;
  const SeriesKey named =
      submitted ? SeriesKey{kUser, "", job.device} : SeriesKey{job.kernel, job.variant, job.device};
  if (const JobSeries* found = series_.Find(named)) return *found;
  // Names that nobody lists are without number: they would fill the cache.
  const bool known = submitted || Knows(job.kernel);
  const SeriesKey key = known ? named : SeriesKey{kOther, kOther, job.device};
  if (const JobSeries* found = series_.Find(key)) return *found;
  made = Resolve(key, submitted);
  series_.Insert(key, *made);
  return *made;
}

JobMetrics::JobSeries JobMetrics::Resolve(const SeriesKey& key, bool submitted) {
  const std::string kernel(key.kernel), variant(key.variant), device(key.device);
  Histogram& duration = registry_.HistogramOf(Metric::kKernelDuration, {kernel, device});
  // Where there were too many it is of many kernels: no latency of this one.
  const Histogram* own = registry_.FindHistogram(Metric::kKernelDuration, {kernel, device});
  std::array<Histogram*, kPhaseCount> phases{};
  for (std::size_t i = 0; i < kPhaseCount; ++i) {
    const std::string phase(PhaseLabel(static_cast<PhaseKind>(i + 1)));
    phases[i] = &registry_.HistogramOf(Metric::kPhaseDuration, {phase, device});
  }
  Tally *variant_jobs = nullptr, *kernel_bytes = nullptr, *roofline_ns = nullptr, *wrong = nullptr;
  if (!submitted) {
    variant_jobs = &registry_.TallyOf(Metric::kKernelVariantJobs, {kernel, variant, device});
    kernel_bytes = &registry_.TallyOf(Metric::kKernelBytes, {kernel, device});
    roofline_ns = &registry_.TallyOf(Metric::kKernelRoofline, {kernel, device}, kSecondsPerNano);
    // As 0 before the first, unless its first job is wrong: GridclockWrongResults sees that too.
    if (kernel != kOther) wrong = &registry_.TallyOf(Metric::kWrongResults, {kernel, device});
  }
  return {
      .trail = &runs_.TrailOf(kernel, device, own),
      .duration = &duration,
      .ok = &registry_.TallyOf(Metric::kKernelRuns, {kernel, device, "ok"}),
      .wrong = wrong,
      .variant_jobs = variant_jobs,
      .queue_wait = &registry_.HistogramOf(Metric::kQueueWait, {device}),
      .busy_ns = &busy_.Of(device),
      .bytes_in = &registry_.TallyOf(Metric::kTransferBytes, {"in", device}),
      .bytes_out = &registry_.TallyOf(Metric::kTransferBytes, {"out", device}),
      .copy_in = &registry_.HistogramOf(Metric::kTransferDuration, {"in", device}),
      .copy_out = &registry_.HistogramOf(Metric::kTransferDuration, {"out", device}),
      .phases = phases,
      .kernel_bytes = kernel_bytes,
      .roofline_ns = roofline_ns,
      .measurements = MeasurementsOn(device),
  };
}

JobMetrics::MeasurementSeries JobMetrics::MeasurementsOn(const std::string& device) {
  MeasurementSeries series{.all = &registry_.TallyOf(Metric::kMeasurements, {device}),
                           .doubtful = &registry_.TallyOf(Metric::kMeasurementsDoubtful, {device})};
  for (std::size_t i = 0; i < kFlagCount; ++i) {
    const std::string flag(FlagWord(static_cast<Flag>(i + 1)));
    series.flags[i] = &registry_.TallyOf(Metric::kMeasurementsFlagged, {device, flag});
  }
  return series;
}

void JobMetrics::CountOutcome(const JobSeries& series, absl::string_view outcome) {
  if (outcome == "ok") return series.ok->Add(1);
  // Rare enough for a lookup; series that never happened are not made for every kernel.
  const RunLog::Trail& trail = *series.trail;
  registry_.TallyOf(Metric::kKernelRuns, {trail.kernel, trail.device, std::string(outcome)}).Add(1);
}

// Plain variants lose more than the reference lets pass, of terms that round the same way each
// time: who names one chooses that.
void JobMetrics::CountWrong(const Job& job, const Outcome& outcome, const JobSeries& series) {
  if (series.wrong == nullptr || job.variant_named) return;
  series.wrong->Add(1);
  Log(LogLevel::kWarning, "wrong_result",
      {{"device", job.device},
       {"kernel", job.kernel},
       {"variant", job.variant},
       {"mismatches", absl::StrCat(outcome.verification->mismatches)},
       {"violations", absl::StrCat(outcome.verification->violations)},
       {"checked", absl::StrCat(outcome.verification->checked)},
       {"job", absl::StrCat(job.id)},
       {"client", job.principal},
       {"request_id", job.request_id},
       {"trace_id", TraceId(job.trace)}});
}

// A device that works in place has neither copy, or an empty one.
void JobMetrics::CountPhases(const Outcome& outcome, const JobSeries& series) {
  for (const Phase& phase : outcome.phases) {
    if (phase.end_ns <= phase.start_ns) continue;
    const double seconds = static_cast<double>(phase.end_ns - phase.start_ns) * kSecondsPerNano;
    const std::size_t index = static_cast<std::size_t>(phase.kind) - 1;
    if (index < kPhaseCount) series.phases[index]->Observe(seconds);  // From another process.
    if (phase.kind == PhaseKind::kInputCopied) series.copy_in->Observe(seconds);
    if (phase.kind == PhaseKind::kOutputCopied) series.copy_out->Observe(seconds);
  }
}

void JobMetrics::CountMeasurement(const Outcome& outcome, const MeasurementSeries& series) {
  series.all->Add(1);
  if (std::ranges::any_of(outcome.flags, IsDoubt)) series.doubtful->Add(1);
  for (const Flag flag : outcome.flags) {
    const std::size_t index = static_cast<std::size_t>(flag) - 1;
    if (index < series.flags.size()) series.flags[index]->Add(1);  // From another process.
  }
}

void JobMetrics::CountLaunches(const Job& job, const Timing& timing, const JobSeries& series) {
  const std::vector<double>& samples = timing.samples_ns;
  const auto launches = static_cast<double>(samples.size());
  if (series.kernel_bytes != nullptr) {
    series.kernel_bytes->Add(Whole(launches * static_cast<double>(job.bytes)));
    series.roofline_ns->Add(Whole(launches * timing.roofline_ns));
  }
  if (samples.size() == 1) return series.duration->Observe(samples[0] * kSecondsPerNano, job.id);
  series.duration->ObserveAll(samples, kSecondsPerNano);
  // The usual launch, and the slowest: who looks at a tail looks for that one.
  for (const double ns : {timing.statistics.median, timing.statistics.max}) {
    if (ns > 0) series.duration->Mark(ns * kSecondsPerNano, job.id);
  }
}

std::optional<Exemplar> JobMetrics::ExemplarOf(JobId id, double above, double upto) const {
  std::optional<RunRecord> run = runs_.Find(id);
  if (!run) return std::nullopt;
  for (const double ns : {run->statistics.median, run->statistics.max}) {
    const double seconds = ns * kSecondsPerNano;
    if (seconds <= above || seconds > upto) continue;
    const absl::Time finished = run->finished;
    runs_.Keep(*std::move(run));
    return Exemplar{absl::StrCat(id), seconds, finished};
  }
  return std::nullopt;
}

}  // namespace gridclock
