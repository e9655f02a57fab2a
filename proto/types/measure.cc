#include "proto/types/measure.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/units.h"

namespace gridclock {
namespace {

std::string NumberText(std::int64_t number) {
  return absl::StrCat(number);
}
std::string NumberText(double number) {
  return FormatPlain(number);
}

template <typename T>
absl::Status Within(absl::string_view field, T value, T low, T high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return InvalidField(field, absl::StrCat("want ", NumberText(low), " to ", NumberText(high),
                                          ", got ", NumberText(value)));
}

}  // namespace

void Verification::Add(const Verification& other) {
  checked += other.checked;
  total += other.total;
  mismatches += other.mismatches;
  undecided += other.undecided;
  undecided_output = undecided_output || other.undecided_output;
  apart += other.apart;
  alike_output = alike_output || other.alike_output;
  nan_mismatches += other.nan_mismatches;
  launches += other.launches;
  fresh_launches += other.fresh_launches;
  violations += other.violations;
  max_error = std::max(max_error, other.max_error);
  max_abs = std::max(max_abs, other.max_abs);
  max_rel = std::max(max_rel, other.max_rel);
  max_ulp = std::max(max_ulp, other.max_ulp);
  if (!other.first_mismatch.empty()) NameMismatch(other.first_mismatch);
  for (const std::string& text : other.more_mismatches) NameMismatch(text);
  if (first_violation.empty()) first_violation = other.first_violation;
}

void Verification::NameMismatch(std::string text) {
  if (first_mismatch.empty()) {
    first_mismatch = std::move(text);
  } else if (1 + more_mismatches.size() < kMostNamedMismatches) {
    more_mismatches.push_back(std::move(text));
  }
}

absl::Status CheckBudget(double seconds) {
  return Within("measure.budget_seconds", seconds, 1e-6, 600.0);
}

absl::Status CheckWarmupLimit(double seconds) {
  return Within("measure.warmup_limit_seconds", seconds, 0.0, 60.0);
}

std::int64_t MostSamples(const MeasureOptions& options, bool on_gpu) {
  if (options.max_samples != 0) return options.max_samples;
  return std::max<std::int64_t>(on_gpu ? 10'000 : 1000, options.min_samples);
}

absl::Status Validate(const MeasureOptions& options) {
  constexpr std::int64_t kMost = 1'000'000;
  if (options.max_samples != 0) {
    GC_RETURN_IF_ERROR(Within<std::int64_t>("measure.max_samples", options.max_samples, 1, kMost));
  }
  if (options.min_samples != 0) {
    const std::int64_t most = options.max_samples != 0 ? options.max_samples : kMost;
    GC_RETURN_IF_ERROR(Within<std::int64_t>("measure.min_samples", options.min_samples, 1, most));
  }
  GC_RETURN_IF_ERROR(Within("measure.relative_interval", options.relative_interval, 1e-6, 1.0));
  GC_RETURN_IF_ERROR(Within("measure.confidence", options.confidence, 0.5, 0.999));
  GC_RETURN_IF_ERROR(CheckBudget(absl::ToDoubleSeconds(options.budget)));
  GC_RETURN_IF_ERROR(CheckWarmupLimit(absl::ToDoubleSeconds(options.warmup_limit)));
  if (!options.schedule) return absl::OkStatus();
  const Schedule& schedule = *options.schedule;
  GC_RETURN_IF_ERROR(Within<std::int64_t>("measure.schedule.wait", schedule.wait, 0, kMost));
  GC_RETURN_IF_ERROR(Within<std::int64_t>("measure.schedule.warmup", schedule.warmup, 0, kMost));
  GC_RETURN_IF_ERROR(Within<std::int64_t>("measure.schedule.active", schedule.active, 1, kMost));
  GC_RETURN_IF_ERROR(Within<std::int64_t>("measure.schedule.repeat", schedule.repeat, 1, kMost));
  const std::int64_t samples = schedule.active * schedule.repeat;
  if (samples <= kMost) return absl::OkStatus();
  return InvalidField("measure.schedule.repeat",
                      absl::StrCat("want active * repeat of 1 to ", kMost, ", got ", samples));
}

}  // namespace gridclock
