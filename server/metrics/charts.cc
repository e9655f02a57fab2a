#include "server/metrics/charts.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "base/units.h"
#include "server/metrics/words.h"

namespace gridclock {
namespace {

// Of all drawings, in units of their own: they are stretched to the width that there is.
constexpr double kWidth = 240, kHeight = 48;
constexpr std::size_t kMostBars = 32;

std::string Coordinate(double value) {
  return absl::StrFormat("%.1f", value);
}

struct Point {
  double x = 0, y = 0;
};

void AddPoint(const Point& point, std::string* out) {
  absl::StrAppend(out, out->empty() ? "" : " ", Coordinate(point.x), ",", Coordinate(point.y));
}

// Of all slots; without a run both are 0.
struct Range {
  explicit Range(const KernelActivity& kernel) {
    for (const LatencySlot& slot : kernel.slots) {
      if (slot.runs == 0) continue;
      least = least == 0 ? slot.least : std::min(least, slot.least);
      most = std::max(most, slot.most);
    }
  }
  double least = 0, most = 0;
};

// Where times lie in the drawing: the logarithm, so that half and twice are as far.
class Scale {
 public:
  explicit Scale(const KernelActivity& kernel) {
    const auto [least, most] = Range(kernel);
    // At least a third up and down of what there is, or noise would look like a mountain.
    low_ = std::log2(std::max(least, 1e-3)) - 0.4;
    high_ = std::log2(std::max(most, 1e-3)) + 0.4;
  }
  double Y(double ns) const {
    return kHeight * (1 - (std::log2(std::max(ns, 1e-3)) - low_) / (high_ - low_));
  }

 private:
  double low_ = 0, high_ = 1;
};

// Stretches without a run between two others: a line over them would be an invention.
void AddStretch(const KernelActivity& kernel, const Scale& scale, std::size_t begin,
                std::size_t end, Html* out) {
  const double step = kWidth / static_cast<double>(kernel.slots.size());
  std::string line, above, below;
  for (std::size_t i = begin; i < end; ++i) {
    const LatencySlot& slot = kernel.slots[i];
    // A single slot is drawn as wide as it is.
    const double left = static_cast<double>(i) * step;
    for (const double x : {left + step * 0.1, left + step * 0.9}) {
      AddPoint({x, scale.Y(slot.sum / slot.runs)}, &line);
      AddPoint({x, scale.Y(slot.most)}, &above);
    }
  }
  for (std::size_t i = end; i-- > begin;) {
    const double left = static_cast<double>(i) * step;
    for (const double x : {left + step * 0.9, left + step * 0.1}) {
      AddPoint({x, scale.Y(kernel.slots[i].least)}, &below);
    }
  }
  out->Add(R"(<polygon class="band" points="$0 $1"/><polyline class="line" points="$2"/>)", above,
           below, line);
}

std::vector<LatencyBucket> Coarser(const std::vector<LatencyBucket>& fine, std::size_t factor) {
  std::vector<LatencyBucket> out;
  for (std::size_t i = 0; i < fine.size(); ++i) {
    if (i % factor == 0) out.emplace_back();
    out.back().upper_ns = fine[i].upper_ns;
    out.back().launches += fine[i].launches;
  }
  return out;
}

std::int64_t EndOf(const RunRecord& run) {
  std::int64_t end = 1;
  for (const Phase& phase : run.phases) end = std::max(end, phase.end_ns);
  return end;
}

}  // namespace

Html Sparkline(const KernelActivity& kernel) {
  Html out;
  out.Add(R"(<svg class="spark" viewBox="0 0 240 48" preserveAspectRatio="none" role="img" )"
          R"(aria-label="time of runs over two minutes: mean, least and most of each two seconds">)"
          R"(<path class="grid" d="M0 12H240M0 24H240M0 36H240"/>)");
  const Scale scale(kernel);
  for (std::size_t i = 0; i < kernel.slots.size();) {
    std::size_t end = i;
    while (end < kernel.slots.size() && kernel.slots[end].runs > 0) ++end;
    if (end > i) AddStretch(kernel, scale, i, end, &out);
    i = std::max(end, i + 1);
  }
  out.Add("</svg>");
  return out;
}

std::string RangeOfRuns(const KernelActivity& kernel) {
  const auto [least, most] = Range(kernel);
  if (most == 0) return "";
  return least == most ? FormatNs(most) : absl::StrCat(FormatNs(least), " to ", FormatNs(most));
}

Html LatencyBars(const KernelActivity& kernel) {
  Html out;
  if (kernel.buckets.empty()) return out;
  const std::vector<LatencyBucket> bars =
      Coarser(kernel.buckets, (kernel.buckets.size() + kMostBars - 1) / kMostBars);
  std::uint64_t most = 1;
  for (const LatencyBucket& bar : bars) most = std::max(most, bar.launches);
  out.Add(R"(<svg class="bars" viewBox="0 0 240 48" preserveAspectRatio="none" role="img" )"
          R"(aria-label="launches by their time">)");
  // A few bars fill the middle, not the whole width.
  const double step = std::min(kWidth / static_cast<double>(bars.size()), 16.0);
  double x = (kWidth - step * static_cast<double>(bars.size())) / 2;
  for (const LatencyBucket& bar : bars) {
    const double part = static_cast<double>(bar.launches) / static_cast<double>(most);
    // What is there is seen, however little it is.
    const double height = bar.launches == 0 ? 0 : std::max(1.5, part * (kHeight - 2));
    out.Add(R"(<rect x="$0" y="$1" width="$2" height="$3"><title>up to $4: $5</title></rect>)",
            Coordinate(x), Coordinate(kHeight - height), Coordinate(step * 0.86),
            Coordinate(height), FormatNs(bar.upper_ns), bar.launches);
    x += step;
  }
  out.Add("</svg>");
  return out;
}

Html PhaseBar(const RunRecord& run) {
  Html out;
  if (run.phases.empty()) return out;
  const auto scale = kWidth / static_cast<double>(EndOf(run));
  out.Add(R"(<svg class="phases" viewBox="0 0 240 10" preserveAspectRatio="none" role="img" )"
          R"(aria-label="phases"><rect class="rest" width="240" height="10"/>)");
  for (const Phase& phase : run.phases) {
    if (phase.end_ns <= phase.start_ns) continue;
    const double width = static_cast<double>(phase.end_ns - phase.start_ns) * scale;
    out.Add(R"(<rect class="p-$0" x="$1" width="$2" height="10"><title>$3: $4</title></rect>)",
            PhaseLabel(phase.kind), Coordinate(static_cast<double>(phase.start_ns) * scale),
            Coordinate(std::max(width, 1.0)), PhaseLabel(phase.kind),
            FormatNs(static_cast<double>(phase.end_ns - phase.start_ns)));
  }
  out.Add("</svg>");
  return out;
}

Html PhaseTimeline(const RunRecord& run) {
  Html out;
  const auto scale = kWidth / static_cast<double>(EndOf(run));
  out.Add(R"(<ol class="timeline">)");
  for (const Phase& phase : run.phases) {
    const absl::string_view word = PhaseLabel(phase.kind);
    const auto took = static_cast<double>(phase.end_ns - phase.start_ns);
    const double width = std::max(took * scale, 1.0);
    const double start = static_cast<double>(phase.start_ns) * scale;
    out.Add(R"(<li><span>$0</span><svg viewBox="0 0 240 10" preserveAspectRatio="none">)"
            R"(<rect class="rest" width="240" height="10"/>)",
            absl::StrReplaceAll(word, {{"_", " "}}));
    if (took > 0) {
      out.Add(R"(<rect class="p-$0" x="$1" width="$2" height="10"/>)", word,
              Coordinate(std::min(start, kWidth - width)), Coordinate(width));
    }
    out.Add("</svg><b>$0</b></li>", took > 0 ? FormatNs(took) : "0");
  }
  out.Add("</ol>");
  return out;
}

}  // namespace gridclock
