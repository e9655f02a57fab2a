#include "server/metrics/doc.h"

#include <fstream>
#include <iterator>
#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "server/metrics/catalogue.h"

namespace gridclock {
namespace {

TEST(DocTest, TheCommittedPageIsTheTable) {
  std::ifstream in(GRIDCLOCK_METRICS_PAGE);
  const std::string page{std::istreambuf_iterator<char>(in), {}};
  EXPECT_EQ(page, MetricsPage()) << "run: gridclock-metrics-doc > docs/metrics.md";
}

TEST(DocTest, NamesFollowTheRulesOfPrometheus) {
  std::set<std::string> seen;
  for (const MetricSpec& spec : MetricSpecs()) {
    const std::string name(spec.name);
    EXPECT_TRUE(seen.insert(name).second) << name;
    EXPECT_TRUE(absl::StartsWith(name, "gridclock_") || absl::StartsWith(name, "process_")) << name;
    EXPECT_EQ(absl::EndsWith(name, "_total"), spec.type == MetricType::kCounter) << name;
    EXPECT_EQ(spec.bounds.empty(), spec.type != MetricType::kHistogram) << name;
    EXPECT_TRUE(std::ranges::is_sorted(spec.bounds)) << name;
    EXPECT_LE(spec.bounds.size(), 30u) << name;
    EXPECT_FALSE(spec.help.empty()) << name;
    EXPECT_FALSE(spec.since.empty()) << name;
  }
}

TEST(DocTest, NothingIsSinceAVersionThatIsNotYet) {
  const auto numbers = [](absl::string_view version) {
    std::vector<int> parts;
    for (const absl::string_view part : absl::StrSplit(version, '.')) {
      EXPECT_TRUE(absl::SimpleAtoi(part, &parts.emplace_back())) << version;
    }
    return parts;
  };
  for (const MetricSpec& spec : MetricSpecs()) {
    EXPECT_LE(numbers(spec.since), numbers(GRIDCLOCK_VERSION)) << spec.name;
  }
}

TEST(DocTest, EveryLabelIsExplained) {
  std::set<absl::string_view> explained;
  for (const LabelSpec& label : LabelSpecs()) explained.insert(label.name);
  std::set<absl::string_view> used;
  for (const MetricSpec& spec : MetricSpecs()) used.insert(spec.labels.begin(), spec.labels.end());
  EXPECT_EQ(explained, used);
}

TEST(DocTest, KernelTimesReachFromAQuarterMicrosecondToAHundredSeconds) {
  const std::span<const double> bounds = SpecOf(Metric::kKernelDuration).bounds;
  EXPECT_DOUBLE_EQ(bounds.front(), 0.25e-6);
  EXPECT_DOUBLE_EQ(bounds.back(), 100);
}

}  // namespace
}  // namespace gridclock
