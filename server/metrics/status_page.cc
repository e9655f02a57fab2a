#include "server/metrics/status_page.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "absl/strings/str_format.h"
#include "base/units.h"
#include "server/metrics/charts.h"
#include "server/metrics/html.h"
#include "server/metrics/run_page.h"
#include "server/metrics/words.h"

namespace gridclock {
namespace {

constexpr std::size_t kKernelsShown = 24;

double ValueOr0(const std::map<std::string, double>& values, const std::string& name) {
  const auto found = values.find(name);
  return found == values.end() ? 0 : found->second;
}

std::string RateText(double per_second) {
  if (per_second <= 0) return "0";
  return per_second < 9.95 ? absl::StrFormat("%.1f", per_second)
                           : absl::StrFormat("%.0f", per_second);
}

// "3 d 4 h", "12 min", "8 s": the two largest units at most.
std::string AgeText(absl::Duration age) {
  const std::int64_t s = std::max<std::int64_t>(absl::ToInt64Seconds(age), 0);
  if (s < 120) return absl::StrCat(s, " s");
  if (s < 7200) return absl::StrCat(s / 60, " min");
  if (s < 172800) return absl::StrCat(s / 3600, " h ", s % 3600 / 60, " min");
  return absl::StrCat(s / 86400, " d ", s % 86400 / 3600, " h");
}

Html Meter(double used, double capacity) {
  Html out;
  const double part = capacity > 0 ? std::clamp(used / capacity, 0.0, 1.0) : 0;
  out.Add(
      R"(<svg class="meter$0" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">)"
      R"(<rect class="rest" width="100" height="4"/><rect class="used" width="$1" height="4"/>)"
      "</svg>",
      part > 0.8 ? " full" : "", absl::StrFormat("%.1f", part * 100));
  return out;
}

Html Tile(absl::string_view name, absl::string_view value, const Html& below) {
  Html out;
  out.Add(R"(<div class="tile"><dt>$0</dt><dd>$1</dd>)", name, value).Add(below).Add("</div>");
  return out;
}

Html Note(absl::string_view text) {
  Html out;
  out.Add(R"(<small>$0</small>)", text);
  return out;
}

Html Tiles(const StatusView& view) {
  const auto up = std::ranges::count_if(view.devices, IsUp, &DeviceStatus::state);
  double rate = 0;
  std::uint64_t runs = 0, failed = 0;
  for (const KernelActivity& kernel : view.activity.kernels) {
    rate += kernel.runs_per_second;
    runs += kernel.runs;
    failed += kernel.failed;
  }
  int queued = 0;
  for (const auto& [device, usage] : view.queues) queued += usage.queued;
  const double arena = ValueOr0(view.usage, "arena_bytes");
  Html out;
  out.Add(R"(<dl class="tiles" data-panel="summary">)");
  out.Add(Tile("devices up", absl::StrCat(up, " of ", view.devices.size()),
               Note(view.compiler_up ? *view.compiler_up ? "compiler ready" : "compiler down"
                                     : "no compiler")));
  out.Add(Tile("runs per second", RateText(rate),
               Note(absl::StrCat(runs, " runs, ", failed, " not ok"))));
  out.Add(Tile("waiting", absl::StrCat(queued),
               Note(absl::StrCat(ValueOr0(view.usage, "connections"), " connections"))));
  out.Add(Tile("memory for tensors", FormatBytes(arena),
               Note(absl::StrCat("of ", FormatBytes(view.limits.arena_bytes)))
                   .Add(Meter(arena, view.limits.arena_bytes))));
  out.Add("</dl>");
  return out;
}

void AddReading(const StatusView& view, const std::string& device, Html* out) {
  const auto reading = view.activity.readings.find(device);
  if (reading == view.activity.readings.end()) return;
  const DeviceState& state = reading->second.state;
  const std::string age = AgeText(view.now - reading->second.at);
  if (state.temperature_celsius > 0) {
    out->Add("<div><dt>temperature</dt><dd>$0 °C <small>$1 ago</small></dd></div>",
             absl::StrFormat("%.0f", state.temperature_celsius), age);
  }
  if (state.power_watts > 0) {
    out->Add("<div><dt>power</dt><dd>$0 W <small>$1 ago</small></dd></div>",
             absl::StrFormat("%.0f", state.power_watts), age);
  }
  if (state.sm_clock_hz > 0) {
    out->Add("<div><dt>clock</dt><dd>$0 <small>$1 ago</small></dd></div>",
             FormatRate(state.sm_clock_hz, "Hz"), age);
  }
}

void AddMemory(const StatusView& view, const DeviceStatus& device, Html* out) {
  const auto total = static_cast<double>(device.info.memory_bytes);
  if (total <= 0) return;
  const auto used =
      static_cast<double>(device.vitals ? device.vitals->vitals.state.memory_used_bytes : 0);
  if (used <= 0) {
    out->Add("<div><dt>memory</dt><dd>$0</dd></div>", FormatBytes(total));
    return;
  }
  out->Add(
         R"(<div><dt>memory</dt><dd><span class="whole">$0</span> of <span class="whole">$1</span> )"
         "<small>$2 ago</small></dd>",
         FormatBytes(used), FormatBytes(total), AgeText(view.now - device.vitals->at))
      .Add(Meter(used, total))
      .Add("</div>");
}

Html DeviceCard(const StatusView& view, const DeviceStatus& device) {
  const DeviceInfo& info = device.info;
  const auto found = view.queues.find(info.name);
  const Scheduler::Usage usage = found == view.queues.end() ? Scheduler::Usage() : found->second;
  const absl::string_view state = StateWord(device.state);
  Html out;
  out.Add(R"(<article class="card"><header><h3>$0</h3><span class="chip s-$1">$1</span>)",
          info.name, state);
  if (device.drained) out.Add(R"(<span class="chip flag">drained</span>)");
  out.Add("</header>");
  out.Add(R"(<p class="model">$0</p><dl class="facts">)",
          info.model.empty() ? "its worker has not said yet what it is" : info.model);
  out.Add("<div><dt>queue</dt><dd>$0 of $1</dd>", usage.fuller_queue, view.limits.queue)
      .Add(Meter(usage.fuller_queue, view.limits.queue))
      .Add("</div><div><dt>running</dt><dd>$0</dd></div>", usage.running);
  AddMemory(view, device, &out);
  if (info.memory_bandwidth > 0) {
    out.Add("<div><dt>bandwidth</dt><dd>$0</dd></div>", FormatRate(info.memory_bandwidth, "B/s"));
  }
  if (info.launch_floor_ns > 0) {
    out.Add("<div><dt>empty launch</dt><dd>$0</dd></div>", FormatNs(info.launch_floor_ns));
  }
  AddReading(view, info.name, &out);
  out.Add("<div><dt>restarts</dt><dd>$0</dd></div></dl></article>", device.restarts);
  return out;
}

Html Recent(const KernelActivity& kernel) {
  Html out;
  const std::string range = RangeOfRuns(kernel);
  if (range.empty()) return out.Add(R"(<p class="none">no time in the last 2 min</p>)");
  out.Add(Sparkline(kernel));
  out.Add(R"(<p class="axis"><span>2 min ago</span><span>$0</span><span>now</span></p>)", range);
  return out;
}

Html KernelCard(const KernelActivity& kernel) {
  Html out;
  out.Add(R"(<article class="card"><header><h3>$0</h3>)", kernel.kernel);
  if (kernel.failed > 0) out.Add(R"(<span class="chip o-bad">$0 not ok</span>)", kernel.failed);
  out.Add(R"(<span class="device">$0</span></header>)", kernel.device);
  out.Add(R"(<p class="big"><b>$0</b> median</p>)", FormatNs(kernel.p50_ns)).Add(Recent(kernel));
  out.Add(LatencyBars(kernel));
  if (!kernel.buckets.empty()) {
    out.Add(R"(<p class="axis"><span>$0</span><span>launches by time</span><span>$1</span></p>)",
            FormatNs(kernel.fastest_ns), FormatNs(kernel.slowest_ns));
  }
  out.Add(
      R"(<dl class="facts four"><div><dt>p90</dt><dd>$0</dd></div><div><dt>p99</dt><dd>$1</dd></div>)",
      FormatNs(kernel.p90_ns), FormatNs(kernel.p99_ns));
  out.Add("<div><dt>runs</dt><dd>$0</dd></div><div><dt>a second</dt><dd>$1</dd></div>", kernel.runs,
          RateText(kernel.runs_per_second));
  out.Add("</dl></article>");
  return out;
}

Html Devices(const StatusView& view) {
  Html out;
  out.Add(R"(<section data-panel="devices"><h2>Devices</h2><div class="cards wide">)");
  for (const DeviceStatus& device : view.devices) out.Add(DeviceCard(view, device));
  if (view.devices.empty()) out.Add(R"(<p class="none">The server is starting.</p>)");
  out.Add("</div></section>");
  return out;
}

// The busiest, in an order that stays: else cards would jump while one reads them.
Html Kernels(const StatusView& view, std::size_t most) {
  const std::vector<KernelActivity>& kernels = view.activity.kernels;
  const std::size_t shown = std::min(most, kernels.size());
  std::vector<const KernelActivity*> cards;
  for (std::size_t i = 0; i < shown; ++i) cards.push_back(&kernels[i]);
  std::ranges::sort(cards, {}, [](const KernelActivity* kernel) {
    return std::tie(kernel->kernel, kernel->device);
  });
  Html out;
  out.Add(R"(<section data-panel="kernels"><h2>Kernels</h2><div class="cards">)");
  for (const KernelActivity* kernel : cards) out.Add(KernelCard(*kernel));
  if (kernels.empty()) {
    out.Add(R"(<p class="none">No kernel has run yet. Try )"
            "<code>gridclock bench square --shape N=1000000</code>.</p>");
  }
  out.Add("</div>");
  if (shown < kernels.size()) {
    out.Add(R"(<p class="more"><a href="/kernels">all $0 kernels</a></p>)", kernels.size());
  }
  out.Add("</section>");
  return out;
}

Html Runs(const StatusView& view) {
  const std::vector<RunRecord>& runs = view.activity.runs;
  Html out;
  out.Add(R"(<section data-panel="runs"><h2>Recent runs</h2>)");
  if (runs.empty()) out.Add(R"(<p class="none">A run shows up here when it has ended.</p>)");
  if (!runs.empty()) {
    out.Add(R"(<div class="runs"><p class="heads"><span>run</span><span>kernel</span>)"
            R"(<span>device</span><span>outcome</span><span>flags</span><span>launch</span>)"
            R"(<span>ended</span><span>phases</span></p>)");
    for (const RunRecord& run : runs) out.Add(RunRow(run, AgeText(view.now - run.finished)));
    out.Add("</div>").Add(PhaseLegend());
    if (runs.size() < view.activity.runs_kept) {
      out.Add(R"(<p class="more"><a href="/runs">the last $0 runs</a></p>)",
              view.activity.runs_kept);
    }
  }
  out.Add("</section>");
  return out;
}

}  // namespace

std::string StatusPart(const StatusView& view) {
  Html out;
  out.Add(R"(<p class="lead"><span class="chip s-$0">$1</span> version $2, up for $3</p>)",
          view.ready ? "ready" : "dead", view.ready ? "serving" : "not ready", view.version,
          AgeText(view.now - view.started));
  out.Add(Tiles(view)).Add(Devices(view)).Add(Kernels(view, kKernelsShown)).Add(Runs(view));
  return out.Take();
}

std::string StatusPage(const StatusView& view) {
  return PageShell("Gridclock", "/part", StatusPart(view));
}

std::string KernelsPage(const StatusView& view) {
  Html out;
  out.Add(R"(<p class="lead"><a href="/">all of the server</a></p>)")
      .Add(Kernels(view, view.activity.kernels.size()));
  return PageShell("Kernels - Gridclock", "", out.Take());
}

std::string RunsPage(const StatusView& view) {
  Html out;
  out.Add(R"(<p class="lead"><a href="/">all of the server</a></p>)").Add(Runs(view));
  return PageShell("Runs - Gridclock", "", out.Take());
}

}  // namespace gridclock
