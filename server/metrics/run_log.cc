#include "server/metrics/run_log.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "proto/types/quantile.h"
#include "server/metrics/words.h"

namespace gridclock {
namespace {

constexpr double kNanos = 1e9;
constexpr absl::Duration kRateTime = absl::Seconds(10);

constexpr std::int64_t kSlotSeconds = 2;
static_assert(LatencyWindow::kStretchSeconds % kSlotSeconds == 0);
std::int64_t SlotAt(absl::Time time) {
  return absl::ToUnixSeconds(time) / kSlotSeconds;
}

void FillTiming(const Timing& timing, RunRecord* record) {
  record->statistics = timing.statistics;
  record->method = timing.method;
  record->stop = timing.stop;
  record->samples = static_cast<std::int64_t>(timing.samples_ns.size());
  record->warmups = timing.warmups;
  record->roofline_ns = timing.roofline_ns;
  // A worker takes no statistics of a single launch.
  double& median = record->statistics.median;
  if (median == 0 && !timing.samples_ns.empty()) median = timing.samples_ns[0];
}

// Assigns to what is there, whose memory is used again.
void Fill(const Job& job, const JobResult& result, RunRecord* record) {
  record->ran = result.outcome.has_value();
  record->measured = job.measure.has_value();
  const bool timed = record->ran && result.outcome->timing.has_value();
  if (!timed) record->statistics = Statistics();
  record->verification.reset();
  record->roofline_ns = 0;
  record->samples = record->warmups = 0;
  if (!record->ran) {
    record->variant.clear();
    record->phases.clear();
    record->flags.clear();
    record->launches.clear();
    return;
  }
  const Outcome& outcome = *result.outcome;
  record->variant = outcome.variant;
  record->flops = outcome.flops;
  record->bytes = outcome.bytes;
  record->phases = outcome.phases;
  record->flags = outcome.flags;
  record->launches = outcome.launches;
  // A program's are called what its client called them.
  if (job.program != nullptr) record->launches.clear();
  if (timed) FillTiming(*outcome.timing, record);
  if (outcome.verification) {
    record->verification = outcome.verification;
    record->verification->first_mismatch.clear();  // It shows values of the client.
    record->verification->more_mismatches.clear();
    record->verification->first_violation.clear();  // It has an operand's name by the client.
  }
}

// The slot of now; those between the last one and it become empty.
LatencySlot& SlotOf(RunLog::Trail& trail, std::int64_t now) {
  if (now < trail.last_slot - kLatencySlots) {  // The clock was set back.
    trail.slots = {};
    trail.last_slot = now;
  }
  const std::int64_t passed = std::min<std::int64_t>(now - trail.last_slot, kLatencySlots);
  for (std::int64_t i = 0; i < passed; ++i) trail.slots[(now - i) % kLatencySlots] = {};
  trail.last_slot = std::max(trail.last_slot, now);
  return trail.slots[trail.last_slot % kLatencySlots];
}

// The least and the most of launches; both 0: there was none.
struct LaunchRange {
  void Add(double least_ns, double most_ns) {
    if (!(most_ns > 0)) return;
    least = most == 0 ? least_ns : std::min(least, least_ns);
    most = std::max(most, most_ns);
  }
  double least = 0, most = 0;
};

// Of those that a histogram takes.
LaunchRange RangeOf(const std::vector<double>& samples_ns) {
  LaunchRange range;
  for (const double ns : samples_ns) {
    if (std::isfinite(ns)) range.Add(ns, ns);
  }
  return range;
}

// Of the stretch of time that the trail's LatencyWindow counts.
LaunchRange RangeOf(const RunLog::Trail& trail, absl::Time now) {
  LaunchRange range;
  const std::int64_t first =
      std::max(LatencyWindow::StartOf(now) / kSlotSeconds, trail.last_slot - kLatencySlots + 1);
  for (std::int64_t at = first; at <= trail.last_slot; ++at) {
    const LatencySlot& slot = trail.slots[at % kLatencySlots];
    range.Add(slot.fastest, slot.slowest);
  }
  return range;
}

void AddLatency(LatencySlot& slot, double ns, const LaunchRange& launches) {
  slot.least = slot.runs == 0 ? ns : std::min(slot.least, ns);
  slot.most = std::max(slot.most, ns);
  slot.sum += ns;
  ++slot.runs;
  LaunchRange all{slot.fastest, slot.slowest};
  all.Add(launches.least, launches.most);
  slot.fastest = all.least;
  slot.slowest = all.most;
}

KernelActivity ActivityOf(const RunLog::Trail& trail, std::int64_t now) {
  KernelActivity out{.kernel = trail.kernel,
                     .device = trail.device,
                     .runs = trail.runs,
                     .failed = trail.failed,
                     .slots = {},
                     .buckets = {}};
  const std::int64_t rate_slots = absl::ToInt64Seconds(kRateTime) / kSlotSeconds;
  std::uint64_t recent = 0;
  for (std::int64_t at = now - kLatencySlots + 1; at <= now; ++at) {
    const bool kept = at <= trail.last_slot && at > trail.last_slot - kLatencySlots;
    out.slots.push_back(kept ? trail.slots[at % kLatencySlots] : LatencySlot());
    // The newest is not over yet.
    if (at < now && at >= now - rate_slots) recent += out.slots.back().ended;
  }
  out.runs_per_second = static_cast<double>(recent) / absl::ToDoubleSeconds(kRateTime);
  return out;
}

void FillBuckets(const std::vector<std::uint64_t>& counts, KernelActivity* kernel) {
  const auto is_full = [](std::uint64_t count) { return count > 0; };
  const auto first = std::find_if(counts.begin(), counts.end(), is_full);
  const auto last = std::find_if(counts.rbegin(), counts.rend(), is_full).base();
  for (auto at = first; at < last; ++at) {
    kernel->buckets.push_back({NativeUpperBound(at - counts.begin()) * kNanos, *at});
  }
  // No launch took longer than the slowest.
  if (kernel->buckets.empty() || kernel->slowest_ns == 0) return;
  double& upper = kernel->buckets.back().upper_ns;
  upper = std::min(upper, kernel->slowest_ns);
}

}  // namespace

RunLog::Trail& RunLog::TrailOf(const std::string& kernel, const std::string& device,
                               const Histogram* launches) {
  MutexLock lock(mutex_);
  std::unique_ptr<Trail>& trail = trails_[{kernel, device}];
  if (trail == nullptr) trail = std::make_unique<Trail>(kernel, device, launches);
  return *trail;
}

void RunLog::Add(Trail& trail, const Job& job, const JobResult& result, absl::string_view outcome,
                 absl::Time now) {
  const std::int64_t slot = SlotAt(now);
  LaunchRange launches;
  const bool has_latencies = result.outcome && HasLatencies(*result.outcome);
  if (has_latencies) launches = RangeOf(result.outcome->timing->samples_ns);
  trail.launches.Touch(now);
  MutexLock lock(mutex_);
  Kept& kept = PlaceFor(job.id);
  kept.trail = &trail;
  RunRecord& record = kept.run;
  record.trace = job.trace;
  record.finished = now;
  record.outcome = outcome;
  Fill(job, result, &record);
  ++trail.runs;
  if (outcome != "ok") ++trail.failed;
  const double median = record.statistics.median;
  LatencySlot& now_slot = SlotOf(trail, slot);
  ++now_slot.ended;
  if (median > 0 && has_latencies) AddLatency(now_slot, median, launches);
  const bool measured = record.ran && result.outcome->timing && result.outcome->timing->after;
  if (measured && job.program == nullptr) {
    readings_[trail.device] = {*result.outcome->timing->after, now};
  }
}

RunLog::Kept& RunLog::PlaceFor(JobId id) {
  if (ring_.size() < kRuns) ring_.emplace_back();
  Kept& kept = ring_[next_];
  kept.run.id = ids_[next_] = id;
  next_ = (next_ + 1) % kRuns;
  return kept;
}

const RunLog::Kept* RunLog::NewestOf(JobId id) const {
  for (std::size_t at = next_; at-- > 0;) {
    if (ids_[at] == id) return &ring_[at];
  }
  for (std::size_t at = ring_.size(); at-- > next_;) {
    if (ids_[at] == id) return &ring_[at];
  }
  return nullptr;
}

std::map<std::string, DeviceReading> RunLog::readings() const {
  MutexLock lock(mutex_);
  return readings_;
}

RunRecord RunLog::Named(const Kept& kept) {
  RunRecord run = kept.run;
  run.kernel = kept.trail->kernel;
  run.device = kept.trail->device;
  return run;
}

std::optional<RunRecord> RunLog::Find(JobId id) const {
  {
    MutexLock lock(handed_out_mutex_);
    const auto kept = handed_out_.find(id);
    if (kept != handed_out_.end()) return kept->second;
  }
  MutexLock lock(mutex_);
  const Kept* kept = NewestOf(id);
  return kept == nullptr ? std::nullopt : std::optional(Named(*kept));
}

void RunLog::Keep(RunRecord run) const {
  const JobId id = run.id;
  MutexLock lock(handed_out_mutex_);
  handed_out_.try_emplace(id, std::move(run));
  // Numbers grow: the first is the oldest.
  if (handed_out_.size() > kHandedOut) handed_out_.erase(handed_out_.begin());
}

Activity RunLog::Read(absl::Time now, std::size_t most_runs) const {
  std::vector<const Trail*> trails;
  Activity out = ReadKept(now, most_runs, &trails);
  for (std::size_t i = 0; i < trails.size(); ++i) FillLatencies(*trails[i], now, &out.kernels[i]);
  std::ranges::stable_sort(out.kernels, [](const KernelActivity& a, const KernelActivity& b) {
    return a.runs_per_second != b.runs_per_second ? a.runs_per_second > b.runs_per_second
                                                  : a.runs > b.runs;
  });
  return out;
}

void RunLog::FillLatencies(const Trail& trail, absl::Time now, KernelActivity* kernel) const {
  // Without the lock: a histogram takes longer to read than a run may wait.
  const std::vector<std::uint64_t> counts = trail.launches.Read(now);
  const std::uint64_t launches = std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
  if (launches == 0) return;
  // After the counts, as a run is added before its launches are observed: none lies outside.
  const LaunchRange range = [&] {
    MutexLock lock(mutex_);
    return RangeOf(trail, now);
  }();
  kernel->fastest_ns = range.least;
  kernel->slowest_ns = range.most;
  // A quantile read from buckets may lie beside every launch that there was.
  const auto quantile = [&](double part) {
    const double ns = QuantileOf(counts, part) * kNanos;
    return range.most == 0 ? ns : std::clamp(ns, range.least, range.most);
  };
  kernel->p50_ns = quantile(0.5);
  if (launches >= kSamplesForP90) kernel->p90_ns = quantile(0.9);
  if (launches >= kSamplesForP99) kernel->p99_ns = quantile(0.99);
  FillBuckets(counts, kernel);
}

Activity RunLog::ReadKept(absl::Time now, std::size_t most_runs,
                          std::vector<const Trail*>* trails) const {
  Activity out;
  const std::int64_t slot = SlotAt(now);
  MutexLock lock(mutex_);
  for (const auto& [names, trail] : trails_) {
    out.kernels.push_back(ActivityOf(*trail, slot));
    trails->push_back(trail.get());
  }
  out.readings = readings_;
  out.runs_kept = ring_.size();
  const std::size_t newest = next_ + ring_.size() - 1;
  for (std::size_t i = 0; i < std::min(most_runs, ring_.size()); ++i) {
    out.runs.push_back(Named(ring_[(newest - i) % ring_.size()]));
  }
  return out;
}

}  // namespace gridclock
