#include "client/cli/show.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/format.h"
#include "client/cli/names.h"
#include "proto/types/convert.h"

namespace gridclock::cli {
namespace {

std::string Bar(std::int64_t start, std::int64_t end, std::int64_t total, int width) {
  const auto at = [&](std::int64_t t) {
    return static_cast<int>(
        std::lround(static_cast<double>(t) * width / static_cast<double>(total)));
  };
  const int from = std::clamp(at(start), 0, width - 1);
  const int to = std::clamp(std::max(at(end), from + 1), from + 1, width);
  std::string out(static_cast<std::size_t>(from), ' ');
  for (int i = from; i < to; ++i) out += "█";
  return out;
}

// Of a call that was made once: a variant may be several kernels on its device, and of empty
// tensors none.
std::string LaunchesText(const v1::RunSummary& summary) {
  std::int64_t launches = 0;
  // As a server says, which may say anything.
  constexpr std::int64_t kMost = 1'000'000'000;
  for (const v1::DeviceKernel& kernel : summary.device_kernels()) {
    launches = std::min(kMost, launches + std::clamp<std::int64_t>(kernel.count(), 0, kMost));
  }
  if (launches == 0) return "";
  return launches == 1 ? "one launch, " : absl::StrCat("one call of ", launches, " launches, ");
}

std::string TimingText(const v1::RunSummary& summary) {
  const v1::Timing& timing = summary.timing();
  const v1::Statistics& s = timing.statistics();
  if (timing.stop() == v1::Timing::SINGLE_LAUNCH) {
    return absl::StrCat(FormatNs(s.median_ns()), "  (", LaunchesText(summary),
                        NameOf(timing.method()), ")");
  }
  std::string interval;
  if (s.has_ci_low_ns() && s.has_ci_high_ns()) {
    interval =
        absl::StrCat(", interval ", FormatNs(s.ci_low_ns()), " to ", FormatNs(s.ci_high_ns()));
  }
  return absl::StrCat(FormatNs(s.median_ns()), "  (median of ", timing.samples_ns_size(), ", ",
                      NameOf(timing.method()), ", ", NameOf(timing.l2()), interval, ")");
}

constexpr char kTimeInDoubt[] =
    "\n  its time may be that of a result which the code kept since an earlier call (UNVERIFIED): "
    "inputs from a generator are new in each launch";
constexpr char kGraphInDoubt[] =
    "\n  no launch of the graphs that were timed was looked at by itself (UNVERIFIED): the values "
    "are "
    "of one more";

// Of the catalogue: what was compared is of a launch of its own. Of submitted code it tells less.
bool IsSlopeOfTheCatalogue(const v1::RunSummary& summary) {
  return summary.timing().method() == v1::BACK_TO_BACK && summary.verification().launches() == 0;
}

bool IsUnverified(const v1::RunSummary& summary) {
  return Has(summary, v1::UNVERIFIED);
}

constexpr std::int64_t kEdge = 3;     // Elements shown at each end of a long dimension.
constexpr std::int64_t kAllUpTo = 8;  // Dimensions up to here are shown whole.

std::string ElementText(DType dtype, const std::byte* at) {
  if (dtype == DType::kBool) return *at == std::byte{0} ? "False" : "True";
  if (dtype == DType::kI64) {
    std::int64_t value = 0;
    std::copy_n(at, sizeof(value), reinterpret_cast<std::byte*>(&value));
    return absl::StrCat(value);
  }
  if (dtype == DType::kU64) {
    std::uint64_t value = 0;
    std::copy_n(at, sizeof(value), reinterpret_cast<std::byte*>(&value));
    return absl::StrCat(value);
  }
  const int digits = dtype == DType::kF64 ? 12 : SizeOf(dtype) < 4 ? 4 : 7;
  return absl::StrFormat("%.*g", digits, LoadAsDouble(dtype, at, 0));
}

void AppendValues(const TensorSpec& spec, std::size_t dim, const std::byte*& at, std::string* out) {
  if (dim == spec.shape.size()) {
    absl::StrAppend(out, ElementText(spec.dtype, at));
    at += SizeOf(spec.dtype);
    return;
  }
  const std::int64_t count = spec.shape[dim];
  const Shape rest(spec.shape.begin() + static_cast<std::ptrdiff_t>(dim) + 1, spec.shape.end());
  const std::int64_t step = Bytes({.dtype = spec.dtype, .shape = rest});
  const bool all = count <= kAllUpTo;
  *out += '[';
  for (std::int64_t i = 0; i < count; ++i) {
    if (i > 0) *out += dim + 1 == spec.shape.size() ? ", " : ",\n" + std::string(dim + 1, ' ');
    if (!all && i == kEdge) {
      *out += "...";
      at += step * (count - 2 * kEdge);
      i = count - kEdge - 1;
      continue;
    }
    AppendValues(spec, dim + 1, at, out);
  }
  *out += ']';
}

}  // namespace

bool Has(const v1::RunSummary& summary, v1::Flag flag) {
  return std::count(summary.flags().begin(), summary.flags().end(), flag) != 0;
}

namespace {

// By more than what warming up calls flat.
bool ClockMoved(const v1::Timing& timing) {
  const auto [low, high] = std::minmax({timing.clock_before_hz(), timing.clock_after_hz()});
  return low > 0 && high - low > 0.01 * low;
}

}  // namespace

std::string FlagsText(const v1::RunSummary& summary, const Terminal& terminal) {
  std::vector<std::string> words;
  for (const int flag : summary.flags()) {
    const bool bad = flag == v1::IMPOSSIBLE || flag == v1::SUSPECT;
    words.push_back(
        Paint(terminal, bad ? Ink::kRed : Ink::kYellow, NameOf(static_cast<v1::Flag>(flag))));
  }
  const v1::Timing& timing = summary.timing();
  const bool measured = summary.has_timing() && timing.stop() != v1::Timing::SINGLE_LAUNCH;
  if (measured && timing.sharing_unknown()) {
    words.push_back(Paint(terminal, Ink::kYellow, "SHARING_UNKNOWN"));
  }
  if (measured && !timing.warmup_flat() && timing.stop() != v1::Timing::SCHEDULE &&
      !Has(summary, v1::TEACHING_METHOD)) {
    words.push_back(Paint(terminal, Ink::kYellow, "WARMUP_NOT_FLAT"));
  }
  if (ClockMoved(timing)) words.push_back(Paint(terminal, Ink::kYellow, "CLOCK_MOVED"));
  if (timing.stop() == v1::Timing::YIELDED)
    words.push_back(Paint(terminal, Ink::kYellow, "YIELDED"));
  return absl::StrJoin(words, ", ");
}

std::string IntervalText(const v1::Statistics& s) {
  if (!s.has_ci_low_ns() && !s.has_ci_high_ns()) return "-";
  const auto end = [](bool there, double ns) { return there ? FormatNs(ns) : "-"; };
  return absl::StrCat(end(s.has_ci_low_ns(), s.ci_low_ns()), " .. ",
                      end(s.has_ci_high_ns(), s.ci_high_ns()));
}

std::string TimeText(const v1::RunSummary& summary, std::optional<double> before_ns,
                     const Terminal& terminal) {
  const v1::Statistics& statistics = summary.timing().statistics();
  const double median = statistics.median_ns();
  std::string out =
      absl::StrCat(FormatNs(median), "  (median of ", summary.timing().samples_ns_size(), " on ",
                   Escape(summary.device()), ", interval ", IntervalText(statistics), ")");
  if (before_ns.has_value() && *before_ns > 0) {
    absl::StrAppend(&out, absl::StrFormat(", %+.1f %% against ", (median / *before_ns - 1) * 100),
                    FormatNs(*before_ns));
  }
  if (const std::string flags = FlagsText(summary, terminal); !flags.empty()) {
    absl::StrAppend(&out, "  ", flags);
  }
  return out;
}

std::string LaunchesText(const v1::Verification& v) {
  if (v.launches() == 0) return "";
  return absl::StrFormat(" of %d launches, %d of them on values that nobody knew before",
                         v.launches(), v.fresh_launches());
}

// Why the result is UNVERIFIED though no value differs.
std::string WhyUnverified(const v1::Verification& v) {
  if (v.undecided() > v.checked() / 2) {
    return absl::StrFormat(": the tolerance of %d of %d values is larger than the value",
                           v.undecided(), v.checked());
  }
  if (v.launches() > 1 && v.fresh_launches() == 0) {
    return absl::StrFormat(
        ": %d of %d values are right, but all %d launches had the same inputs, and may have taken "
        "the result of an earlier one (inputs from a generator are new in each)",
        v.checked() - v.undecided(), v.total(), v.launches());
  }
  if (v.undecided() > 0) {
    return absl::StrFormat(": %d of %d values cannot be told from others", v.undecided(),
                           v.checked());
  }
  if (v.fresh_launches() > 0) {
    return absl::StrFormat(
        ": %d of %d values are right, but those of another launch would pass in their place, so "
        "that a result that was kept would too (want fewer terms, or other inputs)",
        v.checked(), v.total());
  }
  return "";
}

bool IsTimeAloneInDoubt(const v1::RunSummary& summary) {
  const v1::Verification& v = summary.verification();
  const bool single = summary.timing().stop() == v1::Timing::SINGLE_LAUNCH && v.launches() > 0 &&
                      v.fresh_launches() == 0;
  return IsUnverified(summary) && v.checked() > 0 && v.undecided() == 0 &&
         (single || IsSlopeOfTheCatalogue(summary));
}

bool HasNothingToCompare(const v1::RunSummary& summary) {
  const v1::Verification& v = summary.verification();
  return summary.has_verification() && v.checked() == 0 && v.total() == 0 && v.mismatches() == 0 &&
         v.violations() == 0;
}

std::string MismatchesText(const v1::Verification& v, absl::string_view between) {
  std::string out = Escape(v.first_mismatch());
  for (const std::string& text : v.more_mismatches()) absl::StrAppend(&out, between, Escape(text));
  return out;
}

std::string VerificationText(const v1::RunSummary& summary, const Terminal& terminal) {
  const v1::Verification& v = summary.verification();
  if (v.violations() != 0) {
    return Paint(terminal, Ink::kRed, "FORBIDDEN") +
           absl::StrFormat(" (%d times): ", v.violations()) + Escape(v.first_violation());
  }
  if (v.mismatches() != 0) {
    return Paint(terminal, Ink::kRed, "DIFFERS") +
           absl::StrFormat(" in %d of %d values", v.mismatches(), v.checked()) + LaunchesText(v) +
           ": " + MismatchesText(v, "\n  then ") +
           absl::StrFormat("\n  max abs %.3g, max rel %.3g, max ULP %.3g, NaN on one side alone %d",
                           v.max_abs(), v.max_rel(), v.max_ulp(), v.nan_mismatches());
  }
  if (HasNothingToCompare(summary)) {
    return Paint(terminal, Ink::kYellow, "not verified") +
           ": the outputs are empty, so nothing was compared";
  }
  const bool time_alone = IsTimeAloneInDoubt(summary);
  if (IsUnverified(summary) && !time_alone) {
    return Paint(terminal, Ink::kYellow, "not verified") + WhyUnverified(v);
  }
  const char* doubt = IsSlopeOfTheCatalogue(summary) ? kGraphInDoubt : kTimeInDoubt;
  const std::string error = absl::StrFormat(", largest error %.2g of the tolerance%s",
                                            v.max_error(), time_alone ? doubt : "");
  if (v.checked() < v.total()) {
    return Paint(terminal, Ink::kYellow, "partly verified") +
           absl::StrFormat(" (%d of %d values)", v.checked(), v.total()) + LaunchesText(v) + error;
  }
  return Paint(terminal, Ink::kGreen, "verified") +
         absl::StrFormat(" %d of %d values", v.checked(), v.total()) + LaunchesText(v) + error;
}

std::string VerifiedWord(const v1::RunSummary& summary) {
  const v1::Verification& v = summary.verification();
  if (v.violations() != 0) return "forbidden";
  if (v.mismatches() != 0) return "differs";
  if (IsUnverified(summary) && !IsTimeAloneInDoubt(summary)) return "no";
  if (!summary.has_verification()) return "";
  if (HasNothingToCompare(summary)) return "no";
  return v.checked() < v.total() ? "partly" : "yes";
}

std::string PhasesText(const v1::RunSummary& summary, const Terminal& terminal) {
  std::int64_t total = 1;
  for (const v1::Phase& phase : summary.phases()) total = std::max(total, phase.end_ns());
  std::string out;
  const auto line = [&](const std::string& name, std::int64_t start, std::int64_t end) {
    if (end <= start) return;
    const std::string time = FormatNs(static_cast<double>(end - start));
    const std::string pad(12 - std::min<std::size_t>(11, Width(time)), ' ');
    absl::StrAppend(&out, absl::StrFormat("  %-14s", name), pad, time, "  ",
                    Paint(terminal, Ink::kBlue, Bar(start, end, total, 30)), "\n");
  };
  for (int i = 0; i < summary.phases_size(); ++i) {
    const v1::Phase& phase = summary.phases(i);
    line(NameOf(phase.kind()), phase.start_ns(), phase.end_ns());
    if (phase.kind() != v1::Phase::QUEUED || i + 1 == summary.phases_size()) continue;
    line("to the worker", phase.end_ns(), summary.phases(i + 1).start_ns());
  }
  return out;
}

std::string SummaryText(const v1::RunSummary& summary, const Terminal& terminal) {
  const v1::Timing& timing = summary.timing();
  std::string out = absl::StrCat(
      Paint(terminal, Ink::kBold,
            absl::StrCat(Escape(summary.kernel()), summary.variant().empty() ? "" : ".",
                         Escape(summary.variant()))),
      " on ", Escape(summary.device()), ": ", TimingText(summary), "\n");
  std::string rates;
  if (timing.bytes_per_second() > 0) {
    absl::StrAppend(&rates, "  ", FormatRate(timing.bytes_per_second(), "B/s"));
  }
  if (timing.flops_per_second() > 0) {
    absl::StrAppend(&rates, "  ", FormatRate(timing.flops_per_second(), "FLOP/s"));
  }
  if (timing.roofline_fraction() > 0) {
    absl::StrAppend(&rates, "  ", FormatPercent(timing.roofline_fraction()), " of the roofline");
  }
  if (summary.peak_device_bytes() > 0) {
    absl::StrAppend(&rates, "  ", FormatBytes(static_cast<double>(summary.peak_device_bytes())),
                    " of memory");
  }
  if (!rates.empty()) absl::StrAppend(&out, rates, "\n");
  if (timing.second_method() != v1::METHOD_UNSPECIFIED) {
    absl::StrAppend(&out, "  ", NameOf(timing.second_method()), " says ",
                    FormatNs(timing.second_median_ns()), "\n");
  }
  out += PhasesText(summary, terminal);
  if (summary.has_verification()) {
    absl::StrAppend(&out, "  ", VerificationText(summary, terminal), "\n");
  }
  if (const std::string flags = FlagsText(summary, terminal); !flags.empty()) {
    absl::StrAppend(&out, "  flags: ", flags, "\n");
  }
  if (!summary.printed().empty()) {
    absl::StrAppend(&out, "  printed", summary.printed_truncated() ? " (the beginning)" : "", ":\n",
                    Escape(absl::StripTrailingAsciiWhitespace(summary.printed()), /*lines=*/true),
                    "\n");
  }
  return out;
}

std::string ValuesText(const TensorSpec& spec, std::span<const std::byte> bytes) {
  if (bytes.empty()) return "[]";
  std::string out;
  const std::byte* at = bytes.data();
  AppendValues(spec, 0, at, &out);
  return out;
}

}  // namespace gridclock::cli
