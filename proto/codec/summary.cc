// Summaries of runs: timing, phases, flags, launches, verification.
#include <algorithm>
#include <optional>

#include "proto/codec/values.h"
#include "proto/codec/vitals.h"

namespace gridclock {
namespace {

void Encode(const Statistics& in, v1::Statistics* out) {
  out->set_median_ns(in.median);
  out->set_min_ns(in.min);
  out->set_max_ns(in.max);
  out->set_q1_ns(in.q1);
  out->set_q3_ns(in.q3);
  out->set_mean_ns(in.mean);
  out->set_stddev_ns(in.stddev);
  if (in.ci_low) out->set_ci_low_ns(*in.ci_low);
  if (in.ci_high) out->set_ci_high_ns(*in.ci_high);
  if (in.p99) out->set_p99_ns(*in.p99);
}

Statistics Decode(const v1::Statistics& in) {
  Statistics out{.median = in.median_ns(),
                 .min = in.min_ns(),
                 .max = in.max_ns(),
                 .q1 = in.q1_ns(),
                 .q3 = in.q3_ns(),
                 .mean = in.mean_ns(),
                 .stddev = in.stddev_ns(),
                 .ci_low = {},
                 .ci_high = {},
                 .p99 = {}};
  if (in.has_ci_low_ns()) out.ci_low = in.ci_low_ns();
  if (in.has_ci_high_ns()) out.ci_high = in.ci_high_ns();
  if (in.has_p99_ns()) out.p99 = in.p99_ns();
  return out;
}

}  // namespace

void Encode(const Timing& timing, bool with_samples, v1::Timing* out) {
  out->set_method(static_cast<v1::Method>(timing.method));
  out->set_l2(static_cast<v1::L2State>(timing.l2));
  out->set_stop(static_cast<v1::Timing::Stop>(timing.stop));
  out->set_warmups(timing.warmups);
  out->set_warmup_flat(timing.warmup_flat);
  Encode(timing.statistics, out->mutable_statistics());
  if (timing.second) {
    out->set_second_method(static_cast<v1::Method>(timing.second->method));
    out->set_second_median_ns(timing.second->median_ns);
    out->set_second_slack_ns(timing.second->slack_ns);
  }
  if (timing.before) Encode(*timing.before, out->mutable_before());
  if (timing.after) Encode(*timing.after, out->mutable_after());
  out->set_sharing_unknown(timing.sharing_unknown);
  out->set_clock_before_hz(timing.clock_before_hz);
  out->set_clock_after_hz(timing.clock_after_hz);
  out->set_method_floor_ns(timing.method_floor_ns);
  out->set_roofline_ns(timing.roofline_ns);
  out->set_roofline_basis(timing.roofline_basis);
  if (with_samples) {
    out->mutable_samples_ns()->Add(timing.samples_ns.begin(), timing.samples_ns.end());
  }
}

namespace {

std::optional<SecondOpinion> DecodeSecond(const v1::Timing& timing) {
  if (timing.second_method() == v1::METHOD_UNSPECIFIED) return std::nullopt;
  return SecondOpinion{.method = static_cast<Method>(timing.second_method()),
                       .median_ns = timing.second_median_ns(),
                       .slack_ns = timing.second_slack_ns()};
}

}  // namespace

Timing Decode(const v1::Timing& timing) {
  return Timing{
      .method = static_cast<Method>(timing.method()),
      .l2 = static_cast<L2State>(timing.l2()),
      .stop = static_cast<StopReason>(timing.stop()),
      .warmups = timing.warmups(),
      .warmup_flat = timing.warmup_flat(),
      .samples_ns = {timing.samples_ns().begin(), timing.samples_ns().end()},
      .statistics = Decode(timing.statistics()),
      .second = DecodeSecond(timing),
      .method_floor_ns = timing.method_floor_ns(),
      .roofline_ns = timing.roofline_ns(),
      .roofline_basis = timing.roofline_basis(),
      .before = timing.has_before() ? std::optional(Decode(timing.before())) : std::nullopt,
      .after = timing.has_after() ? std::optional(Decode(timing.after())) : std::nullopt,
      .sharing_unknown = timing.sharing_unknown(),
      .clock_before_hz = timing.clock_before_hz(),
      .clock_after_hz = timing.clock_after_hz()};
}

void Encode(const Phase& phase, v1::Phase* out) {
  out->set_kind(static_cast<v1::Phase::Kind>(phase.kind));
  out->set_start_ns(phase.start_ns);
  out->set_end_ns(phase.end_ns);
}

Phase Decode(const v1::Phase& phase) {
  return Phase{.kind = static_cast<PhaseKind>(phase.kind()),
               .start_ns = phase.start_ns(),
               .end_ns = phase.end_ns()};
}

void Encode(const Launch& launch, v1::DeviceKernel* out) {
  out->set_name(launch.name);
  for (const std::uint32_t n : launch.grid) out->add_grid(n);
  for (const std::uint32_t n : launch.block) out->add_block(n);
  out->set_count(launch.count);
}

Launch Decode(const v1::DeviceKernel& launch) {
  Launch out{.name = launch.name(), .grid = {1, 1, 1}, .block = {1, 1, 1}, .count = launch.count()};
  for (int i = 0; i < std::min(3, launch.grid_size()); ++i) out.grid[i] = launch.grid(i);
  for (int i = 0; i < std::min(3, launch.block_size()); ++i) out.block[i] = launch.block(i);
  return out;
}

void Encode(const Verification& verification, v1::Verification* out) {
  out->set_checked(verification.checked);
  out->set_total(verification.total);
  out->set_mismatches(verification.mismatches);
  out->set_undecided(verification.undecided);
  out->set_max_error(verification.max_error);
  out->set_first_mismatch(verification.first_mismatch);
  out->set_max_abs(verification.max_abs);
  out->set_max_rel(verification.max_rel);
  out->set_max_ulp(verification.max_ulp);
  out->set_nan_mismatches(verification.nan_mismatches);
  out->set_launches(verification.launches);
  out->set_fresh_launches(verification.fresh_launches);
  out->set_violations(verification.violations);
  out->set_first_violation(verification.first_violation);
  for (const std::string& text : verification.more_mismatches) out->add_more_mismatches(text);
}

Verification Decode(const v1::Verification& verification) {
  return Verification{.checked = verification.checked(),
                      .total = verification.total(),
                      .mismatches = verification.mismatches(),
                      .undecided = verification.undecided(),
                      .max_error = verification.max_error(),
                      .first_mismatch = verification.first_mismatch(),
                      .max_abs = verification.max_abs(),
                      .max_rel = verification.max_rel(),
                      .max_ulp = verification.max_ulp(),
                      .nan_mismatches = verification.nan_mismatches(),
                      .launches = verification.launches(),
                      .fresh_launches = verification.fresh_launches(),
                      .violations = verification.violations(),
                      .first_violation = verification.first_violation(),
                      .more_mismatches = {verification.more_mismatches().begin(),
                                          verification.more_mismatches().end()}};
}

v1::Flag Encode(Flag flag) {
  return static_cast<v1::Flag>(flag);
}

std::vector<Flag> DecodeFlags(const google::protobuf::RepeatedField<int>& flags) {
  std::vector<Flag> out;
  for (const int flag : flags) {
    if (flag >= 1 && flag <= kFlagCount) out.push_back(static_cast<Flag>(flag));
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

namespace {

void FillRates(const Outcome& outcome, v1::Timing* timing) {
  const double median = outcome.timing->statistics.median;
  if (median <= 0) return;
  timing->set_bytes_per_second(static_cast<double>(outcome.bytes) * 1e9 / median);
  timing->set_flops_per_second(static_cast<double>(outcome.flops) * 1e9 / median);
  timing->set_roofline_fraction(outcome.timing->roofline_ns / median);
}

}  // namespace

void EncodeSummary(const Job& job, const Outcome& outcome, bool with_samples, v1::RunSummary* out) {
  out->set_kernel(job.kernel);
  out->set_variant(outcome.variant);
  out->set_device(job.device);
  if (outcome.timing) {
    Encode(*outcome.timing, with_samples, out->mutable_timing());
    FillRates(outcome, out->mutable_timing());
  }
  for (const Phase& phase : outcome.phases) Encode(phase, out->add_phases());
  for (const Flag flag : outcome.flags) out->add_flags(Encode(flag));
  for (const Launch& launch : outcome.launches) Encode(launch, out->add_device_kernels());
  if (outcome.verification) Encode(*outcome.verification, out->mutable_verification());
  out->set_flops(outcome.flops);
  out->set_bytes(outcome.bytes);
  out->set_peak_device_bytes(outcome.peak_device_bytes);
  out->set_printed(outcome.printed);
  out->set_printed_truncated(outcome.printed_truncated);
}

}  // namespace gridclock
