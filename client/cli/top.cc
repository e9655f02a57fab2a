#include "client/cli/top.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/cli/format.h"

namespace gridclock::cli {
namespace {

using Lines = std::vector<std::pair<Ink, std::string>>;

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
  return rate < 9.95 ? absl::StrFormat("%.1f", rate) : absl::StrFormat("%.0f", rate);
}

// What a device said longer ago than a minute is not how it is.
double Reading(const Json& device, const char* name, const char* seconds_ago) {
  constexpr double kOld = 60;
  return Number(device, seconds_ago) > kOld ? 0 : Number(device, name);
}

std::string Temperature(const Json& device) {
  const double celsius = Reading(device, "temperature_celsius", "read_seconds_ago");
  return celsius > 0 ? absl::StrFormat("%.0f °C", celsius) : "-";
}

// "700 MiB of 1.00 GiB" where the device tells what is in use.
std::string Memory(const Json& device) {
  const std::string total = FormatBytes(Number(device, "memory_bytes"));
  const double used = Reading(device, "memory_used_bytes", "memory_read_seconds_ago");
  return used > 0 ? absl::StrCat(FormatBytes(used), " of ", total) : total;
}

// "3 of 256", as on the page; servers before 0.2.0 do not tell.
std::string Queue(const Json& device) {
  return device.is_object() && device.contains("queue")
             ? absl::StrCat(Whole(device, "queue"), " of ", Whole(device, "queue_limit"))
             : "-";
}

// Lines of a table below its heading. Where they are fewer than rows, the last says how many rows
// are left out.
struct Room {
  std::size_t Rows() const { return lines < wanted ? lines - 1 : wanted; }
  std::size_t LeftOut() const { return lines < wanted ? all - Rows() : 0; }

  std::size_t all = 0, wanted = 0, lines = 0;
};

Room RoomFor(std::size_t all, std::size_t most = SIZE_MAX) {
  const std::size_t wanted = std::min(all, most);
  return {.all = all, .wanted = wanted, .lines = wanted};
}

// Each table gets as many lines as the others, and what a short one leaves goes to the rest.
void Share(int height, std::array<Room, 3>* rooms) {
  constexpr std::size_t kAround =
      8;  // The title, the last line, two lines above each table's rows.
  constexpr std::size_t kLeast = 2;
  std::array<Room*, 3> order = {&(*rooms)[0], &(*rooms)[1], &(*rooms)[2]};
  std::ranges::stable_sort(order, {}, &Room::wanted);
  std::size_t left = std::max(static_cast<std::size_t>(height), kAround) - kAround;
  std::size_t tables = order.size();
  for (Room* room : order) {
    room->lines = std::min(room->wanted, std::max(left / tables--, kLeast));
    left -= std::min(left, room->lines);
  }
}

// The heading, and each row in its ink; a blank line in front.
void Append(const Table& table, const std::vector<Ink>& inks, const Room& room, Lines* lines) {
  lines->emplace_back(Ink::kPlain, "");
  const std::string text = table.ToText();
  std::size_t row = 0;
  for (const absl::string_view line : absl::StrSplit(absl::StripSuffix(text, "\n"), '\n')) {
    lines->emplace_back(row == 0 ? Ink::kDim : inks[row - 1], line);
    ++row;
  }
  if (room.LeftOut() > 0) {
    lines->emplace_back(Ink::kDim, absl::StrCat("and ", room.LeftOut(), " more"));
  }
}

Ink InkOfState(absl::string_view state) {
  if (state == "ready" || state == "busy") return Ink::kPlain;
  return state == "starting" ? Ink::kYellow : Ink::kRed;
}

void AppendDevices(const Json& devices, const Room& room, Lines* lines) {
  Table table(
      {"device", "state", "queue", "running", "temperature", "memory", "restarts", "model"});
  std::vector<Ink> inks;
  for (std::size_t i = 0; i < room.Rows(); ++i) {
    const Json& device = devices[i];
    const bool drained = device.is_object() && device.value("drained", Json()) == Json(true);
    table.Add({Text(device, "name"),
               absl::StrCat(Text(device, "state"), drained ? ", drained" : ""), Queue(device),
               Whole(device, "running"), Temperature(device), Memory(device),
               Whole(device, "restarts"), Text(device, "model")});
    inks.push_back(InkOfState(Text(device, "state")));
  }
  Append(table, inks, room, lines);
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

// The busiest, which a server names first, by name: else rows would jump at every look.
void AppendKernels(const Json& all, const Room& room, Lines* lines) {
  std::vector<Json> kernels(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(room.Rows()));
  std::ranges::stable_sort(kernels, {}, [](const Json& kernel) {
    return std::pair(Text(kernel, "kernel"), Text(kernel, "device"));
  });
  if (kernels.empty()) {
    lines->insert(lines->end(), {{Ink::kPlain, ""}, {Ink::kDim, "no kernel has run yet"}});
    return;
  }
  Table table({"kernel", "device", "per second", "median", "p90", "p99", "runs", "not ok",
               "mean of runs, two minutes"});
  for (const Json& kernel : kernels) {
    table.Add({Text(kernel, "kernel"), Text(kernel, "device"),
               Rate(Number(kernel, "runs_per_second")), FormatNs(Number(kernel, "p50_ns")),
               FormatNs(Number(kernel, "p90_ns")), FormatNs(Number(kernel, "p99_ns")),
               Whole(kernel, "runs"), Whole(kernel, "failed"),
               Bars(Halved(List(kernel, "mean_of_runs_ns")))});
  }
  Append(table, std::vector<Ink>(kernels.size(), Ink::kPlain), room, lines);
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

void AppendRuns(const Json& runs, const Room& room, Lines* lines) {
  if (room.all == 0) return;
  Table table({"run", "kernel", "device", "outcome", "time", "flags"});
  std::vector<Ink> inks;
  for (std::size_t i = 0; i < room.Rows(); ++i) {
    const Json& run = runs[i];
    const std::string variant = Text(run, "variant");
    const auto statistics = run.find("statistics");
    const double median =
        run.is_object() && statistics != run.end() ? Number(*statistics, "median_ns") : 0;
    table.Add({Whole(run, "id"),
               variant == "-" || variant.empty() ? Text(run, "kernel")
                                                 : absl::StrCat(Text(run, "kernel"), ".", variant),
               Text(run, "device"), Text(run, "outcome"), FormatNs(median), Flags(run)});
    inks.push_back(Text(run, "outcome") != "ok" ? Ink::kRed
                   : Flags(run).empty()         ? Ink::kPlain
                                                : Ink::kYellow);
  }
  Append(table, inks, room, lines);
}

// A line behind the last would scroll the first away.
std::string Drawn(const Lines& lines, const Terminal& terminal) {
  std::size_t count = lines.size();
  if (terminal.out_height > 1) {
    count = std::min(count, static_cast<std::size_t>(terminal.out_height) - 1);
  }
  std::string out;
  for (std::size_t i = 0; i < count; ++i) {
    std::string line = lines[i].second;
    if (terminal.out_width > 0) line = FitCells(line, static_cast<std::size_t>(terminal.out_width));
    absl::StrAppend(&out, Paint(terminal, lines[i].first, line), "\n");
  }
  return out;
}

}  // namespace

std::string Bars(const std::vector<double>& values) {
  static constexpr absl::string_view kBars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const double most = values.empty() ? 0 : *std::max_element(values.begin(), values.end());
  std::string out;
  for (const double value : values) {
    const bool there = value > 0 && std::isfinite(value) && std::isfinite(most);
    absl::StrAppend(&out, there ? kBars[std::lround(7 * (value / most))] : " ");
  }
  return out;
}

std::string TopText(const std::string& server, const Json& status, const Json& runs,
                    const Terminal& terminal) {
  double rate = 0;
  for (const Json& kernel : List(status, "kernels")) rate += Number(kernel, "runs_per_second");
  const auto ready = status.find("ready");
  const bool serves = status.is_object() && ready != status.end() && *ready == true;
  const std::string title = absl::StrCat(
      "Gridclock ", Text(status, "version"), serves ? " serving" : " not ready", " at ",
      Escape(server), ", up for ",
      absl::FormatDuration(absl::Seconds(std::floor(Number(status, "uptime_seconds")))), ", ",
      Rate(rate), " runs per second");
  Lines lines = {{Ink::kBold, title}};
  const Json devices = List(status, "devices"), kernels = List(status, "kernels");
  std::array<Room, 3> rooms = {RoomFor(devices.size()), RoomFor(kernels.size()),
                               RoomFor(runs.is_array() ? runs.size() : 0, kRuns)};
  if (terminal.out_height > 1) Share(terminal.out_height, &rooms);
  AppendDevices(devices, rooms[0], &lines);
  AppendKernels(kernels, rooms[1], &lines);
  AppendRuns(runs, rooms[2], &lines);
  return Drawn(lines, terminal);
}

}  // namespace gridclock::cli
