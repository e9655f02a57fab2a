#include "kernels/timing/measure.h"

#include <algorithm>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/timing/agreement.h"
#include "kernels/timing/statistics.h"

namespace gridclock {
namespace {

constexpr absl::Duration kWindow = absl::Milliseconds(20);
constexpr std::size_t kFlatWindows = 3;
constexpr double kFlatWithin = 0.01;
// A clock that rises by half a per cent while it is sampled makes the median one that no other run
// has: for so long a steady one is waited for. Some step to and fro for ever.
constexpr double kSteadyWithin = 0.0025;
constexpr absl::Duration kSteadyPatience = absl::Milliseconds(200);
constexpr absl::Duration kReportEvery = absl::Milliseconds(50);
constexpr std::size_t kReportAtMost = 4000;
constexpr std::int64_t kEventPairWarmups = 5;
// Where the request does not say. A launch on a GPU may take one of two times, by what its cache
// kept: a few samples may all be of one of them.
constexpr std::int64_t kMinSamples = 10, kMinSamplesOnGpu = 100;
// And its clock goes to and fro: docs/timing.md has what medians of shorter times are worth.
constexpr absl::Duration kLeastSamplingOnGpu = absl::Seconds(1);
// Launches by the second method, where a device has two that must agree.
constexpr std::size_t kAgreementLaunches = 11;
constexpr int kDoubtLaunches = 33;
constexpr int kRecordsLost = 3;  // In a row: then the device has none.
// Of whoever waits for the device, with a second opinion.
constexpr absl::Duration kPatience = absl::Milliseconds(200);

bool IsTeaching(Method method) {
  return method == Method::kHostNoSync || method == Method::kHostSync ||
         method == Method::kEventPair;
}

bool Has(const Device& device, Method method) {
  const auto methods = device.methods();
  return std::find(methods.begin(), methods.end(), method) != methods.end();
}

// The last windows lie within this share of each other, or as close as a timer of this step can
// tell. A clock that cannot be known is 0 in each: flat.
bool IsFlat(std::span<const double> windows, double within, double step = 0) {
  if (windows.size() < kFlatWindows) return false;
  const auto last = windows.last(kFlatWindows);
  const auto [low, high] = std::minmax_element(last.begin(), last.end());
  return *high - *low <= std::max(within * *low, step);
}

// Of samples, taken in `sampled`, whether they are as many as the request says, or else as they
// ought to be.
bool AreEnough(std::size_t samples, absl::Duration sampled, const MeasureOptions& options,
               const DeviceInfo& info) {
  const auto n = static_cast<std::int64_t>(samples);
  if (n >= MostSamples(options, !info.host_memory)) return true;
  if (options.min_samples != 0) return n >= options.min_samples;
  if (info.host_memory) return n >= kMinSamples;
  return n >= kMinSamplesOnGpu && sampled >= kLeastSamplingOnGpu;
}

absl::StatusOr<TimedLaunch> TimeWatched(Device& device, Method method, const Target& target) {
  if (target.watch == nullptr) return device.Time(method, target.launch);
  const LaunchWatch& watch = *target.watch;
  watch.since_ns.store(absl::ToUnixNanos(watch.clock.Now()), std::memory_order_relaxed);
  auto timed = device.Time(method, target.launch);
  watch.since_ns.store(0, std::memory_order_relaxed);
  return timed;
}

// One measurement under way.
class Run {
 public:
  Run(Device& device, const MeasureOptions& options, const Target& target,
      const Surroundings& around)
      : device_(device),
        options_(options),
        target_(target),
        around_(around),
        work_end_(around.clock.Now() + 2 * around.kernel_time_limit + options.budget) {}

  absl::StatusOr<Measurement> Go();

 private:
  absl::StatusOr<double> Launch(Method method) { return Launch(method, target_.prepare); }
  absl::StatusOr<double> Launch(Method method, absl::FunctionRef<absl::Status()> prepare);
  absl::StatusOr<TimedLaunch> LaunchNow(Method method, absl::FunctionRef<absl::Status()> prepare);
  absl::Status LaunchFirst();
  absl::Status StartsWithin(double launch_ns) const;
  absl::Status WarmUp();
  absl::Status WarmUpTimes(std::int64_t times);
  absl::StatusOr<double> Window();
  absl::Status TakeSample();
  absl::Status SampleUntilRule();
  absl::Status SampleBySchedule();
  bool RuleSaysStop(absl::Time started);
  bool NarrowEnough();
  // A schedule or a method to learn from says how often it warms up, whatever the times.
  bool DoesNotWaitForFlat() const { return options_.schedule || IsTeaching(options_.method); }
  bool Interrupted();
  // No further launch is to be added to those that there are.
  bool Ends() { return Interrupted() || around_.yields(); }
  void Report(bool all);
  std::optional<Method> SecondMethod() const;
  Offset OffsetOf(double mine, double others) const;
  bool Agrees(double mine, double others) const;
  bool ClockExplains(double was, double is);
  absl::Status CheckAgreement();
  absl::StatusOr<bool> LaunchSeen(Method method, std::vector<double>* times);
  absl::Status WithoutSecond();
  void WidenByStep(Statistics* statistics) const;
  void Finish();
  absl::Status Doubt() {
    Raise(Flag::kSuspect);
    return absl::OkStatus();
  }
  void Raise(Flag flag) { out_.flags.push_back(flag); }

  Device& device_;
  const MeasureOptions& options_;
  const Target& target_;
  const Surroundings& around_;
  // Caches are flushed and inputs restored between launches, which kernel time does not count.
  const absl::Time work_end_;
  Measurement out_;
  absl::Duration kernel_time_;
  std::int64_t windows_ = 0;
  std::size_t reported_ = 0;
  absl::Time last_report_;
  std::size_t next_check_ = 0;
  // The samples are of another time than both methods saw after them, by no more than the clock's.
  bool clock_moved_ = false;
  bool no_record_ = false;  // Of the last launch of the second opinion, by the device.
};

absl::StatusOr<double> Run::Launch(Method method, absl::FunctionRef<absl::Status()> prepare) {
  for (int lost = 0;;) {
    const absl::StatusOr<TimedLaunch> timed = LaunchNow(method, prepare);
    // The samples that there are must not be lost over the record of one launch. But steps are
    // counted by who checks them, and each is of one launch.
    const bool again = target_.steps == nullptr &&
                       DetailsOf(timed.status()).reason == "RECORD_LOST" && ++lost < kRecordsLost;
    if (again && !Interrupted()) continue;
    GC_RETURN_IF_ERROR(timed.status());
    // Where time is up a time by the other kind of record is better than none.
    if (!timed->provisional || Interrupted()) return timed->duration_ns;
  }
}

absl::StatusOr<TimedLaunch> Run::LaunchNow(Method method,
                                           absl::FunctionRef<absl::Status()> prepare) {
  GC_RETURN_IF_ERROR(prepare());
  GC_RETURN_IF_ERROR(device_.PrepareCache(options_.l2));
  GC_ASSIGN_OR_RETURN(TimedLaunch timed, TimeWatched(device_, method, target_));
  if (!timed.kernels.empty()) {
    out_.kernels = std::move(timed.kernels);
    out_.copies = timed.copies;
  }
  if (out_.launches == 0) out_.first_start_ns = timed.host_start_ns;
  out_.launches += timed.launches;
  out_.last_return_ns = timed.host_returned_ns;
  out_.last_end_ns = timed.host_end_ns;
  kernel_time_ += absl::Nanoseconds(timed.host_end_ns - timed.host_start_ns);
  return timed;
}

bool Run::Interrupted() {
  if (!out_.interruption.ok()) return true;
  if (around_.cancelled()) {
    out_.interruption = absl::CancelledError("cancelled while measuring");
  } else if (kernel_time_ >= around_.kernel_time_limit) {
    out_.interruption =
        WithReason(absl::DeadlineExceededError(absl::StrCat(
                       "all launches together took ", absl::FormatDuration(kernel_time_),
                       "; the limit is ", absl::FormatDuration(around_.kernel_time_limit))),
                   "KERNEL_TIME_LIMIT");
  } else if (around_.clock.Now() >= around_.deadline) {
    out_.interruption = absl::DeadlineExceededError("the deadline passed while measuring");
  } else if (around_.clock.Now() >= work_end_) {
    out_.interruption = WithReason(
        absl::DeadlineExceededError(absl::StrCat(
            "measuring took twice the kernel time limit of ",
            absl::FormatDuration(around_.kernel_time_limit), " and its budget of ",
            absl::FormatDuration(options_.budget), ", launches only ",
            absl::FormatDuration(kernel_time_),
            "; the rest went into caches and inputs: ask for fewer samples or a hot cache")),
        "WORK_TIME_LIMIT");
  }
  return !out_.interruption.ok();
}

// Launches for 20 ms, at least once; the median of their times.
absl::StatusOr<double> Run::Window() {
  const absl::Time end = around_.clock.Now() + kWindow;
  std::vector<double> times;
  do {
    GC_ASSIGN_OR_RETURN(times.emplace_back(), Launch(options_.method));
    ++out_.timing.warmups;
  } while (around_.clock.Now() < end && !Interrupted());
  return Median(times);
}

// The first launch of a kernel may load it. Neither plain events hold the device back meanwhile,
// nor its own record of a launch that it does not know yet. And the first slope is of many launches
// in one piece: of what takes long it is not begun where it cannot end.
absl::Status Run::LaunchFirst() {
  const bool slope = options_.method == Method::kBackToBack;
  if (IsTeaching(options_.method) || !(device_.loads_lazily() || slope)) return absl::OkStatus();
  const bool record = options_.method == Method::kDeviceTime;
  const auto launch = [&] {
    ++out_.timing.warmups;
    return Launch(record ? Method::kDeviceTime : Method::kEventPair);
  };
  GC_ASSIGN_OR_RETURN(double ns, launch());
  if (!slope || Interrupted()) return out_.interruption;
  const absl::Status starts = StartsWithin(ns);
  if (starts.ok() || 2 * kernel_time_ > around_.kernel_time_limit) return starts;
  GC_ASSIGN_OR_RETURN(ns, launch());  // Without what loading took.
  return StartsWithin(ns);
}

absl::Status Run::StartsWithin(double launch_ns) const {
  const absl::Duration one = absl::Nanoseconds(launch_ns), all = kFirstSlopeLaunches * one;
  const std::string starts = absl::StrCat("back_to_back starts with ", kFirstSlopeLaunches,
                                          " launches, of ", absl::FormatDuration(one), " each; ");
  if (around_.clock.Now() + all > around_.deadline) {
    return absl::DeadlineExceededError(
        absl::StrCat(starts, "the call's deadline comes before that"));
  }
  if (kernel_time_ + all <= around_.kernel_time_limit) return absl::OkStatus();
  return WithReason(
      absl::DeadlineExceededError(absl::StrCat(starts, "the limit of all launches is ",
                                               absl::FormatDuration(around_.kernel_time_limit),
                                               ": time it by isolated, or ask for a longer limit")),
      "KERNEL_TIME_LIMIT");
}

absl::Status Run::WarmUp() {
  if (options_.method == Method::kHostSync || options_.method == Method::kHostNoSync) {
    return absl::OkStatus();  // What is taught here is that the first call counts.
  }
  if (options_.method == Method::kEventPair) return WarmUpTimes(kEventPairWarmups);
  const absl::Time started = around_.clock.Now(), limit = started + options_.warmup_limit;
  const bool by_events = !device_.info().host_memory && options_.method != Method::kBackToBack;
  const double step = by_events ? device_.info().clock_step_ns : 0;
  std::vector<double> medians, clocks;
  // One window, whoever waits: a first launch alone would tell of cold caches and slow clocks.
  while (around_.clock.Now() < limit && !(medians.empty() ? Interrupted() : Ends())) {
    GC_ASSIGN_OR_RETURN(medians.emplace_back(), Window());
    clocks.push_back(device_.ClockHz());
    around_.on_samples(windows_++, std::span(&medians.back(), 1), true);
    const bool patient = around_.clock.Now() - started < kSteadyPatience;
    out_.timing.warmup_flat = IsFlat(medians, kFlatWithin, step) && IsFlat(clocks, kFlatWithin);
    if (out_.timing.warmup_flat && (!patient || IsFlat(clocks, kSteadyWithin))) break;
  }
  return absl::OkStatus();
}

absl::Status Run::WarmUpTimes(std::int64_t times) {
  for (std::int64_t i = 0; i < times && !Ends(); ++i) {
    GC_RETURN_IF_ERROR(Launch(options_.method).status());
    ++out_.timing.warmups;
  }
  return absl::OkStatus();
}

absl::Status Run::TakeSample() {
  if (out_.timing.samples_ns.empty() && !IsTeaching(options_.method)) {
    out_.timing.clock_before_hz = device_.ClockHz();
  }
  const SampleSteps* steps = target_.steps;
  if (steps == nullptr) {
    GC_ASSIGN_OR_RETURN(out_.timing.samples_ns.emplace_back(), Launch(options_.method));
  } else {
    GC_ASSIGN_OR_RETURN(out_.timing.samples_ns.emplace_back(),
                        Launch(options_.method, steps->before));
    GC_RETURN_IF_ERROR(steps->after());
  }
  Report(/*all=*/false);
  return absl::OkStatus();
}

bool Run::NarrowEnough() {
  const auto interval = RelativeInterval(Summarise(out_.timing.samples_ns, options_.confidence));
  return interval && *interval <= options_.relative_interval;
}

bool Run::RuleSaysStop(absl::Time started) {
  const std::size_t n = out_.timing.samples_ns.size();
  const absl::Duration sampled = around_.clock.Now() - started;
  if (n >= next_check_ && AreEnough(n, sampled, options_, device_.info())) {
    // Sorting all samples after each would cost more than taking them.
    next_check_ = n + std::max<std::size_t>(1, n / 10);
    out_.timing.stop = StopReason::kInterval;
    if (NarrowEnough()) return true;
  }
  out_.timing.stop = StopReason::kMaxSamples;
  if (static_cast<std::int64_t>(n) >= MostSamples(options_, !device_.info().host_memory)) {
    return true;
  }
  out_.timing.stop = StopReason::kBudget;
  if (sampled >= options_.budget) return true;
  out_.timing.stop = StopReason::kYielded;
  return Ends();
}

absl::Status Run::SampleUntilRule() {
  const absl::Time started = around_.clock.Now();
  // Also when interrupted while warming up: a result is never empty.
  do {
    GC_RETURN_IF_ERROR(TakeSample());
  } while (!RuleSaysStop(started) && !Interrupted());
  return absl::OkStatus();
}

absl::Status Run::SampleBySchedule() {
  const Schedule& schedule = *options_.schedule;
  out_.timing.stop = StopReason::kSchedule;
  for (std::int64_t round = 0; round < schedule.repeat && !Ends(); ++round) {
    GC_RETURN_IF_ERROR(WarmUpTimes(schedule.wait));
    GC_RETURN_IF_ERROR(WarmUpTimes(schedule.warmup));
    for (std::int64_t i = 0; i < schedule.active && !Ends(); ++i) {
      GC_RETURN_IF_ERROR(TakeSample());
    }
  }
  const auto taken = static_cast<std::int64_t>(out_.timing.samples_ns.size());
  if (taken < schedule.repeat * schedule.active) out_.timing.stop = StopReason::kYielded;
  return out_.timing.samples_ns.empty() ? TakeSample() : absl::OkStatus();
}

void Run::Report(bool all) {
  const std::span<const double> samples(out_.timing.samples_ns);
  const absl::Time now = around_.clock.Now();
  const bool due =
      now - last_report_ >= kReportEvery || samples.size() - reported_ >= kReportAtMost;
  if (!due && !all) return;
  last_report_ = now;
  if (reported_ == samples.size()) return;
  around_.on_samples(static_cast<std::int64_t>(reported_), samples.subspan(reported_), false);
  reported_ = samples.size();
}

// The device has no record of the launch, or lost it, or could not time it. No record is as it
// should be where there is nothing to do, which takes no longer than an empty launch.
absl::Status Run::WithoutSecond() {
  const double most_ns = kNothingWithinFloors * device_.info().launch_floor_ns + kNothingWithinNs;
  const bool nothing = target_.work.bytes == 0 && Median(out_.timing.samples_ns) <= most_ns;
  if (!nothing || !no_record_) Raise(Flag::kSuspect);
  return absl::OkStatus();
}

// One more launch, after the samples, into `times`; false if the device has no record of it or
// could not time it. The samples are taken, and must not be lost over that.
absl::StatusOr<bool> Run::LaunchSeen(Method method, std::vector<double>* times) {
  const auto time = Launch(method);
  no_record_ = absl::IsNotFound(time.status());
  const bool unseen =
      no_record_ || absl::IsUnavailable(time.status()) || absl::IsAborted(time.status());
  if (unseen && !device_.poisoned()) return false;
  GC_RETURN_IF_ERROR(time.status());
  times->push_back(*time);
  return true;
}

std::optional<Method> Run::SecondMethod() const {
  const bool both = Has(device_, Method::kIsolated) && Has(device_, Method::kDeviceTime);
  if (!both || IsTeaching(options_.method)) return std::nullopt;
  return options_.method == Method::kDeviceTime ? Method::kIsolated : Method::kDeviceTime;
}

// Of medians by the method asked for and by the second one.
Offset Run::OffsetOf(double mine, double others) const {
  const double device_ns = options_.method == Method::kDeviceTime ? mine : others;
  const Further further = FurtherOf(out_.kernels, out_.copies);
  return options_.method == Method::kBackToBack
             ? SlopeOffset(device_.info(), further, device_ns)
             : IsolatedOffset(device_.info(), further, device_ns);
}

bool Run::Agrees(double mine, double others) const {
  const bool mine_is_device = options_.method == Method::kDeviceTime;
  return Agree(mine_is_device ? others : mine, mine_is_device ? mine : others,
               OffsetOf(mine, others));
}

// Whether times by one method, of the samples and of now, are apart by no more than the clock was
// meanwhile: what only waits for memory may be apart by less.
bool Run::ClockExplains(double was, double is) {
  const auto [low, high] = std::minmax({out_.timing.clock_before_hz, out_.timing.clock_after_hz});
  const double now = device_.ClockHz();
  if (low <= 0 || now <= 0) return false;
  const double least = was * std::min(1.0, low / now), most = was * std::max(1.0, high / now);
  return Agree(std::clamp(is, least, most), is, Offset());
}

absl::Status Run::CheckAgreement() {
  const auto may_ask = SecondMethod();
  if (!may_ask) return absl::OkStatus();
  const Method method = options_.method, second = *may_ask;
  std::vector<double> mine, others;
  // Whoever waits does so for one launch, or for what takes no time to speak of.
  const absl::Time patience = around_.clock.Now() + kPatience;
  const auto ends = [&] {
    return Interrupted() || (around_.yields() && around_.clock.Now() >= patience);
  };
  for (std::size_t i = 0; i < kAgreementLaunches && !(i > 0 ? ends() : Interrupted()); ++i) {
    GC_ASSIGN_OR_RETURN(const bool seen, LaunchSeen(second, &others));
    if (!seen) return WithoutSecond();
  }
  if (others.empty()) return absl::OkStatus();
  const double sampled = Median(out_.timing.samples_ns);
  out_.timing.second = {.method = second,
                        .median_ns = Median(others),
                        .slack_ns = OffsetOf(sampled, Median(others)).slack_ns()};
  if (Agrees(sampled, Median(others))) return absl::OkStatus();
  // Once more, turn by turn: what moved between the two series was not the method.
  others.clear();
  for (int i = 0; i < kDoubtLaunches && !ends(); ++i) {
    GC_ASSIGN_OR_RETURN(const bool seen, LaunchSeen(method, &mine));
    if (!seen) return Doubt();
    GC_ASSIGN_OR_RETURN(const bool seen_by_second, LaunchSeen(second, &others));
    if (!seen_by_second) return Doubt();
  }
  if (mine.size() < kAgreementLaunches) return Doubt();
  const double is = Median(mine), theirs = Median(others);
  // Then the samples are of another time than both methods see now.
  const bool moved = !Agree(sampled, is, Offset());
  if (!Agrees(is, theirs) || (!moved && !Agrees(sampled, theirs))) return Doubt();
  clock_moved_ = moved && ClockExplains(sampled, is);
  if (moved && !clock_moved_) return Doubt();
  out_.timing.second = {
      .method = second, .median_ns = theirs, .slack_ns = OffsetOf(is, theirs).slack_ns()};
  return absl::OkStatus();
}

// What an empty launch costs by the method; of the teaching methods nothing is claimed.
double FloorOf(const DeviceInfo& info, Method method) {
  if (IsTeaching(method)) return 0;
  for (const MethodFacts& facts : info.methods) {
    if (facts.method == method) return facts.floor_ns;
  }
  return method == Method::kIsolated ? info.launch_floor_ns : 0;
}

// Floor and roofline. True if the median is faster than physics, also by what the device shows when
// it is asked once more.
bool Describe(Device& device, const Target& target, Timing* timing) {
  timing->method_floor_ns = FloorOf(device.info(), timing->method);
  auto roofline = device.RooflineOf(target.work, timing->l2);
  const double median = timing->statistics.median;
  if (median < roofline.ns) roofline = device.RecheckRoofline(target.work, timing->l2);
  timing->roofline_ns = roofline.ns;
  timing->roofline_basis = roofline.basis;
  return median < roofline.ns;
}

// A sample may be off by half a step of the timer whatever their number. More of them make that no
// less, so the rule that ends a measurement does not count it. A slope divides it by its launches.
void Run::WidenByStep(Statistics* statistics) const {
  const bool on_gpu = !device_.info().host_memory;
  const bool by_host =
      options_.method == Method::kHostSync || options_.method == Method::kHostNoSync;
  if (!statistics->ci_low || options_.method == Method::kBackToBack || (on_gpu && by_host)) return;
  const double half = device_.info().clock_step_ns / 2;
  statistics->ci_low = std::max(0.0, *statistics->ci_low - half);
  statistics->ci_high = *statistics->ci_high + half;
}

void Run::Finish() {
  Timing& timing = out_.timing;
  timing.statistics = Summarise(timing.samples_ns, options_.confidence);
  WidenByStep(&timing.statistics);
  if (Describe(device_, target_, &timing)) Raise(Flag::kImpossible);
  const bool flat = timing.warmup_flat || DoesNotWaitForFlat();
  if (!NarrowEnough() || !flat || clock_moved_) Raise(Flag::kNoisy);
  if (!out_.interruption.ok()) {
    timing.stop = StopReason::kInterrupted;
    Raise(Flag::kInterrupted);
  }
  if (IsTeaching(options_.method)) Raise(Flag::kTeachingMethod);
  std::sort(out_.flags.begin(), out_.flags.end());
}

absl::StatusOr<Measurement> Run::Go() {
  out_.timing.method = options_.method;
  out_.timing.l2 = options_.l2;
  device_.NewLaunch();
  out_.timing.before = device_.Observe().state;  // The next one tells of the time from here on.
  GC_RETURN_IF_ERROR(LaunchFirst());
  if (!options_.schedule) GC_RETURN_IF_ERROR(WarmUp());
  last_report_ = around_.clock.Now();
  GC_RETURN_IF_ERROR(options_.schedule ? SampleBySchedule() : SampleUntilRule());
  if (!IsTeaching(options_.method)) out_.timing.clock_after_hz = device_.ClockHz();
  Report(/*all=*/true);
  const bool sampled = out_.interruption.ok();
  GC_RETURN_IF_ERROR(CheckAgreement());
  // Sampling had ended by its rule: time that runs out over a second opinion costs that alone.
  if (sampled && absl::IsDeadlineExceeded(out_.interruption)) {
    out_.interruption = absl::OkStatus();
    if (!out_.timing.second) Raise(Flag::kSuspect);
  }
  const Conditions conditions = device_.Observe();
  if (conditions.throttled) Raise(Flag::kThrottled);
  // The count of cycles is in memory that submitted code could write; what the driver says is not.
  // Nor is it known of a neighbour how much of what both methods saw was its doing.
  if (clock_moved_ && (!conditions.throttled || conditions.shared)) Raise(Flag::kSuspect);
  if (conditions.shared) Raise(Flag::kSharedDevice);
  out_.timing.sharing_unknown = conditions.sharing_unknown;
  out_.timing.after = conditions.state;
  Finish();
  return std::move(out_);
}

// A launch that waited for the device, to load what it needs, has run all the same, and must not
// run twice: its time is that of the host, and says so.
absl::StatusOr<TimedLaunch> TimeOnce(Device& device, const Target& target, Method* method) {
  const MonotonicClock clock;
  TimedLaunch by_host;
  by_host.host_start_ns = absl::ToUnixNanos(clock.Now());
  auto timed = TimeWatched(device, *method, target);
  if (timed.ok() || DetailsOf(timed.status()).reason != "LAUNCH_WAITED") return timed;
  by_host.host_end_ns = by_host.host_returned_ns = absl::ToUnixNanos(clock.Now());
  by_host.duration_ns = static_cast<double>(by_host.host_end_ns - by_host.host_start_ns);
  *method = Method::kHostSync;
  return by_host;
}

}  // namespace

absl::StatusOr<Measurement> LaunchOnce(Device& device, const Target& target) {
  Method method = Has(device, Method::kIsolated) ? Method::kIsolated : Method::kEventPair;
  GC_RETURN_IF_ERROR(target.steps != nullptr ? target.steps->before() : target.prepare());
  GC_ASSIGN_OR_RETURN(const TimedLaunch timed, TimeOnce(device, target, &method));
  if (target.steps != nullptr) GC_RETURN_IF_ERROR(target.steps->after());
  Measurement out;
  out.timing.method = method;
  out.timing.sharing_unknown = true;  // Looking would take longer than the launch.
  out.launches = 1;
  out.first_start_ns = timed.host_start_ns;
  out.last_return_ns = timed.host_returned_ns;
  out.last_end_ns = timed.host_end_ns;
  const double ns = timed.duration_ns;
  out.timing.samples_ns = {ns};
  Statistics& statistics = out.timing.statistics;
  for (double* value : {&statistics.median, &statistics.min, &statistics.max, &statistics.q1,
                        &statistics.q3, &statistics.mean}) {
    *value = ns;
  }
  if (Describe(device, target, &out.timing)) out.flags.push_back(Flag::kImpossible);
  if (IsTeaching(method)) out.flags.push_back(Flag::kTeachingMethod);
  return out;
}

absl::StatusOr<Measurement> Measure(Device& device, const MeasureOptions& options,
                                    const Target& target, const Surroundings& surroundings) {
  if (!Has(device, options.method)) {
    return InvalidField("measure.method",
                        absl::StrCat("want a method of device '", device.info().name,
                                     "', got number ", static_cast<int>(options.method)));
  }
  if (options.method == Method::kBackToBack && options.l2 != L2State::kHot) {
    return InvalidField(
        "measure.l2",
        "launches back to back find what the one before left in the cache: want hot "
        "with method back_to_back, or another method, got cold");
  }
  return Run(device, options, target, surroundings).Go();
}

}  // namespace gridclock
