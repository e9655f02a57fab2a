#include "client/cli/top.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace gridclock::cli {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const Json& Status() {
  static const Json status = Json::parse(R"({
    "version": "0.2.0", "ready": true, "uptime_seconds": 75.5,
    "devices": [{"name": "cuda:0", "model": "NVIDIA H200", "state": "busy", "memory_bytes": 1073741824,
                 "memory_used_bytes": 734003200,
                 "queue": 3, "queue_limit": 256, "queued": 5, "running": 1, "restarts": 1, "temperature_celsius": 41.6}],
    "kernels": [{"kernel": "softmax", "device": "cuda:0", "runs": 12, "failed": 1, "runs_per_second": 4.25,
                 "p50_ns": 4280.0, "p90_ns": 4820.0, "p99_ns": null,
                 "mean_of_runs_ns": [null, null, 100, 100, 400, null, 800, 800]}]})");
  return status;
}

const Json& Runs() {
  static const Json runs = Json::parse(R"([{
    "id": 4711, "kernel": "softmax", "variant": "online", "device": "cuda:0", "outcome": "ok",
    "statistics": {"median_ns": 4200.0}, "flags": ["noisy", "shared_device"]}])");
  return runs;
}

TEST(TopTest, ShowsDevicesKernelsAndRuns) {
  const std::string text = TopText("node:8471", Status(), Runs(), {});
  EXPECT_THAT(
      text, HasSubstr("Gridclock 0.2.0 serving at node:8471, up for 1m15s, 4.2 runs per second\n"));
  for (const char* word :
       {"NVIDIA H200", "42 °C", "3 of 256", "700 MiB of 1.00 GiB", "4.28 µs", "4.82 µs", "4711",
        "softmax.online", "4.20 µs", "NOISY SHARED_DEVICE", " ▂▅█"}) {
    EXPECT_THAT(text, HasSubstr(word));
  }
}

TEST(TopTest, AnOldReadingIsNotShownAsOfNow) {
  Json status = Status();
  status["devices"][0]["read_seconds_ago"] = 59.0;
  status["devices"][0]["memory_read_seconds_ago"] = 59.0;
  const std::string fresh = TopText("node:8471", status, Runs(), {});
  EXPECT_THAT(fresh, HasSubstr("42 °C"));
  EXPECT_THAT(fresh, HasSubstr("700 MiB of"));
  status["devices"][0]["read_seconds_ago"] = 61.0;
  status["devices"][0]["memory_read_seconds_ago"] = 61.0;
  const std::string old = TopText("node:8471", status, Runs(), {});
  EXPECT_THAT(old, Not(HasSubstr("°C")));
  EXPECT_THAT(old, Not(HasSubstr("700 MiB")));
  EXPECT_THAT(old, HasSubstr("1.00 GiB"));
}

TEST(TopTest, ANarrowTerminalShowsTheState) {
  Json status = Status();
  EXPECT_THAT(TopText("127.0.0.1:8471", status, Runs(), {.out_width = 40}), HasSubstr(" serving "));
  status["ready"] = false;
  EXPECT_THAT(TopText("127.0.0.1:8471", status, Runs(), {.out_width = 40}),
              HasSubstr(" not ready "));
}

TEST(TopTest, NoLineIsWiderThanTheTerminal) {
  for (const int width : {20, 40, 80}) {
    const std::string text = TopText("node:8471", Status(), Runs(), {.out_width = width});
    for (const absl::string_view line : absl::StrSplit(text, '\n')) {
      EXPECT_LE(Width(line), static_cast<std::size_t>(width)) << line;
    }
  }
}

// "4.28 µs" is no "4.28", and 4711 no 471.
TEST(TopTest, ACutLineIsMarkedAndNoNumberInItIsCut) {
  const std::vector<std::string> whole =
      absl::StrSplit(TopText("node:8471", Status(), Runs(), {}), '\n');
  for (int width = 1; width <= 110; ++width) {
    const std::vector<std::string> lines =
        absl::StrSplit(TopText("node:8471", Status(), Runs(), {.out_width = width}), '\n');
    ASSERT_EQ(lines.size(), whole.size());
    for (std::size_t i = 0; i < lines.size(); ++i) {
      SCOPED_TRACE(absl::StrCat(width, ": ", lines[i]));
      EXPECT_LE(Width(lines[i]), static_cast<std::size_t>(width));
      absl::string_view kept = lines[i];
      if (!absl::ConsumeSuffix(&kept, "…")) {
        EXPECT_EQ(lines[i], whole[i]);
        continue;
      }
      ASSERT_THAT(whole[i], StartsWith(std::string(kept)));
      const absl::string_view rest = absl::string_view(whole[i]).substr(kept.size());
      EXPECT_FALSE(!kept.empty() && absl::ascii_isdigit(kept.back()) && rest[0] != ' ');
      const std::size_t gap = kept.rfind("  ");
      const bool ends_with_number = gap != kept.npos && absl::ascii_isdigit(kept[gap + 2]);
      EXPECT_TRUE(!ends_with_number || absl::StartsWith(rest, "  "));
    }
  }
}

TEST(TopTest, TheFirstLinesStayWhereTheTerminalIsLow) {
  const std::string text = TopText("node:8471", Status(), Runs(), {.out_height = 5});
  EXPECT_THAT(text, StartsWith("Gridclock 0.2.0"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4) << text;
}

// Eight GPUs and what ran on them, in a terminal of 24 lines.
TEST(TopTest, EachTableHasAShareOfTheHeight) {
  Json status = Status(), runs = Json::array();
  for (int i = 1; i < 8; ++i) {
    status["devices"].push_back(status["devices"][0]);
    status["kernels"].push_back(status["kernels"][0]);
  }
  for (int i = 0; i < 200; ++i) runs.push_back(Runs()[0]);
  const std::string text = TopText("a", status, runs, {.out_width = 80, .out_height = 24});
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 23) << text;
  EXPECT_THAT(text, HasSubstr("\nand 4 more\n\nkernel"));
  EXPECT_THAT(text, HasSubstr("\nand 4 more\n\n run"));
  EXPECT_THAT(text, HasSubstr("\nand 195 more\n"));
  EXPECT_THAT(text, HasSubstr("NOISY SHARED_DEVICE"));
  EXPECT_THAT(TopText("a", status, runs, {}), Not(HasSubstr(" more\n")));
}

TEST(TopTest, TheBusiestKernelsStandInTheOrderOfTheirNames) {
  Json status = Status();
  const Json kernel = status["kernels"][0];
  status["kernels"].clear();
  for (const auto& [name, device] :
       {std::pair("relu", "cuda:1"), {"relu", "cuda:0"}, {"gelu", "cuda:0"}}) {
    status["kernels"].push_back(kernel);
    status["kernels"].back()["kernel"] = name;
    status["kernels"].back()["device"] = device;
  }
  EXPECT_THAT(TopText("a", status, Json::array(), {}),
              ContainsRegex("gelu +cuda:0[^\n]+\nrelu +cuda:0[^\n]+\nrelu +cuda:1"));
}

TEST(TopTest, ColoursSayWhatToLookAt) {
  Json status = Status(), runs = Runs();
  const Terminal terminal = {.colour = true, .out_width = 30};
  EXPECT_THAT(TopText("node", status, runs, terminal), HasSubstr("\x1b[33m4711"));
  EXPECT_THAT(TopText("node", status, runs, terminal), HasSubstr("\ncuda:0"));
  status["devices"][0]["state"] = "dead";
  runs[0]["outcome"] = "fault";
  EXPECT_THAT(TopText("node", status, runs, terminal), HasSubstr("\x1b[31m4711"));
  EXPECT_THAT(TopText("node", status, runs, terminal), HasSubstr("\x1b[31mcuda:0"));
}

TEST(TopTest, WhatAnotherVersionLeavesOutOrAddsIsNoError) {
  const std::vector<std::string> odd = {
      "null",
      "[]",
      "{}",
      "7",
      R"({"devices": 5, "kernels": [3, null, {}]})",
      R"({"ready": "yes", "devices": [{"name": 4}], "kernels": [{"mean_of_runs_ns": ["x", {}]}]})"};
  for (const std::string& text : odd) {
    EXPECT_THAT(TopText("a", Json::parse(text), Json::parse(text), {}), HasSubstr("Gridclock "));
  }
  EXPECT_THAT(TopText("a", Json::object(), Json::parse(R"([5, {"statistics": 3}, null])"), {}),
              HasSubstr("no kernel has run yet"));
}

TEST(TopTest, TextOfAServerCannotColourATerminal) {
  Json status = Status();
  status["devices"][0]["model"] = "\x1b[31mred";
  EXPECT_THAT(TopText("a", status, Runs(), {}), Not(HasSubstr("\x1b")));
}

TEST(TopTest, BarsGrowWithTheirValues) {
  EXPECT_EQ(Bars({}), "");
  EXPECT_EQ(Bars({0, 0}), "  ");
  EXPECT_EQ(Bars({1, 7, 0, 3.5}), "▂█ ▅");
  EXPECT_EQ(Bars({1.7e308, 0.85e308}), "█▅");
}

}  // namespace
}  // namespace gridclock::cli
