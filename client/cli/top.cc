#include "client/cli/top.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/cli/format.h"

namespace gridclock::cli {
namespace {

constexpr std::size_t kRuns = 10;
constexpr std::size_t kColumns = 30;  // Of bars, two slots each.

double Number(const Json& json, const char* name) {
  const auto found = json.find(name);
  return json.is_object() && found != json.end() && found->is_number() ? found->get<double>() : 0;
}

std::string Text(const Json& json, const char* name) {
  const auto found = json.find(name);
  const bool there = json.is_object() && found != json.end() && found->is_string();
  return there ? Escape(found->get<std::string>()) : "-";
}

Json List(const Json& json, const char* name) {
  const auto found = json.find(name);
  return json.is_object() && found != json.end() && found->is_array() ? *found : Json::array();
}

std::string Whole(const Json& json, const char* name) {
  return absl::StrFormat("%.0f", Number(json, name));
}

std::string Rate(double rate) {
  return absl::StrFormat(rate < 9.95 ? "%.1f" : "%.0f", rate);
}

std::string Temperature(const Json& device) {
  const double celsius = Number(device, "temperature_celsius");
  return celsius > 0 ? absl::StrFormat("%.0f °C", celsius) : "-";
}

std::string DevicesTable(const Json& status) {
  Table table(
      {"device", "state", "queued", "at worker", "temperature", "memory", "restarts", "model"});
  for (const Json& device : List(status, "devices")) {
    const bool drained = device.is_object() && device.value("drained", Json()) == Json(true);
    table.Add({Text(device, "name"),
               absl::StrCat(Text(device, "state"), drained ? ", drained" : ""),
               Whole(device, "queued"), Whole(device, "running"), Temperature(device),
               FormatBytes(Number(device, "memory_bytes")), Whole(device, "restarts"),
               Text(device, "model")});
  }
  return table.ToText();
}

// Mean of what is there of each pair.
std::vector<double> Halved(const Json& slots) {
  const auto at = [&](std::size_t i) { return slots[i].is_number() ? slots[i].get<double>() : 0; };
  std::vector<double> out;
  for (std::size_t i = 0; i + 1 < slots.size() && out.size() < kColumns; i += 2) {
    const double first = at(i), second = at(i + 1);
    out.push_back(first > 0 && second > 0 ? (first + second) / 2 : first + second);
  }
  return out;
}

std::string KernelsTable(const Json& status) {
  const Json kernels = List(status, "kernels");
  if (kernels.empty()) return "no kernel has run yet\n";
  Table table({"kernel", "device", "per second", "median", "p90", "p99", "runs", "not ok",
               "median, last two minutes"});
  for (const Json& kernel : kernels) {
    table.Add({Text(kernel, "kernel"), Text(kernel, "device"),
               Rate(Number(kernel, "runs_per_second")), FormatNs(Number(kernel, "p50_ns")),
               FormatNs(Number(kernel, "p90_ns")), FormatNs(Number(kernel, "p99_ns")),
               Whole(kernel, "runs"), Whole(kernel, "failed"),
               Bars(Halved(List(kernel, "medians_ns")))});
  }
  return table.ToText();
}

std::string Flags(const Json& run) {
  std::vector<std::string> words;
  for (const Json& flag : List(run, "flags")) {
    if (flag.is_string()) {
      words.push_back(absl::AsciiStrToUpper(Escape(flag.get<std::string>())));
    }
  }
  return absl::StrJoin(words, " ");
}

std::string RunsTable(const Json& runs) {
  if (!runs.is_array() || runs.empty()) return "";
  Table table({"run", "kernel", "device", "outcome", "time", "flags"});
  for (std::size_t i = 0; i < std::min(kRuns, runs.size()); ++i) {
    const Json& run = runs[i];
    const std::string variant = Text(run, "variant");
    const auto statistics = run.find("statistics");
    const double median =
        run.is_object() && statistics != run.end() ? Number(*statistics, "median_ns") : 0;
    table.Add({Whole(run, "id"),
               variant == "-" || variant.empty() ? Text(run, "kernel")
                                                 : absl::StrCat(Text(run, "kernel"), ".", variant),
               Text(run, "device"), Text(run, "outcome"), FormatNs(median), Flags(run)});
  }
  return table.ToText();
}

std::string Clipped(const std::string& text, const Terminal& terminal) {
  if (terminal.out_width <= 0) return text;
  std::vector<std::string> lines;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    lines.emplace_back(Fit(line, static_cast<std::size_t>(terminal.out_width)));
  }
  return absl::StrJoin(lines, "\n");
}

}  // namespace

std::string Bars(const std::vector<double>& values) {
  static constexpr absl::string_view kBars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const double most = values.empty() ? 0 : *std::max_element(values.begin(), values.end());
  std::string out;
  for (const double value : values) {
    const bool there = value > 0 && std::isfinite(value) && std::isfinite(most);
    absl::StrAppend(&out, there ? kBars[std::lround(7 * value / most)] : " ");
  }
  return out;
}

std::string TopText(const std::string& server, const Json& status, const Json& runs,
                    const Terminal& terminal) {
  double rate = 0;
  for (const Json& kernel : List(status, "kernels")) rate += Number(kernel, "runs_per_second");
  const auto ready = status.find("ready");
  const bool serves = status.is_object() && ready != status.end() && *ready == true;
  const std::string text = absl::StrCat(
      "Gridclock ", Text(status, "version"), " at ", Escape(server), ": ",
      serves ? "serving" : "not ready", ", up for ",
      absl::FormatDuration(absl::Seconds(std::floor(Number(status, "uptime_seconds")))), ", ",
      Rate(rate), " runs per second\n\n", DevicesTable(status), "\n", KernelsTable(status), "\n",
      RunsTable(runs));
  return Clipped(text, terminal);
}

}  // namespace gridclock::cli
