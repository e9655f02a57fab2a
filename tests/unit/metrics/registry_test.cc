#include "server/metrics/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "server/metrics/exposition.h"

namespace gridclock {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string TextOf(const Registry& registry) {
  return Expose(Format::kText, registry.Collect(), nullptr);
}

TEST(RegistryTest, ShowsASeriesWithItsLabelsAndHelp) {
  Registry registry({});
  registry.TallyOf(Metric::kKernelRuns, {"square", "cpu", "ok"}).Add(3);
  const std::string text = TextOf(registry);
  EXPECT_THAT(text, HasSubstr("# TYPE gridclock_kernel_runs_total counter\n"));
  EXPECT_THAT(
      text,
      HasSubstr(R"(gridclock_kernel_runs_total{kernel="square",device="cpu",outcome="ok"} 3)"));
  EXPECT_THAT(text, Not(HasSubstr("gridclock_worker_up")));
}

TEST(RegistryTest, TheSameLabelsAreTheSameSeries) {
  Registry registry({});
  Tally& first = registry.TallyOf(Metric::kWorkerRestarts, {"cpu", "exit"});
  EXPECT_EQ(&first, &registry.TallyOf(Metric::kWorkerRestarts, {"cpu", "exit"}));
  EXPECT_NE(&first, &registry.TallyOf(Metric::kWorkerRestarts, {"cpu", "signal"}));
}

TEST(RegistryTest, CountsNanosecondsAndShowsSeconds) {
  Registry registry({});
  registry.TallyOf(Metric::kDeviceBusy, {"cpu"}, 1e-9).Add(1'500'000'000);
  EXPECT_THAT(TextOf(registry),
              HasSubstr(R"(gridclock_device_busy_seconds_total{device="cpu"} 1.5)"));
}

TEST(RegistryTest, BucketsOfAHistogramAreCumulative) {
  Registry registry({});
  Histogram& histogram = registry.HistogramOf(Metric::kQueueWait, {"cpu"});
  histogram.Observe(10e-6);
  histogram.Observe(2);
  const std::string text = TextOf(registry);
  EXPECT_THAT(text, HasSubstr(R"(gridclock_queue_wait_seconds_count{device="cpu"} 2)"));
  EXPECT_THAT(text, HasSubstr(R"(gridclock_queue_wait_seconds_bucket{device="cpu",le="1.0"} 1)"));
  EXPECT_THAT(text, HasSubstr(R"(gridclock_queue_wait_seconds_bucket{device="cpu",le="2.5"} 2)"));
  EXPECT_THAT(text, HasSubstr(R"(gridclock_queue_wait_seconds_bucket{device="cpu",le="+Inf"} 2)"));
}

TEST(RegistryTest, TooManyLabelSetsBecomeOtherAndAreCounted) {
  Registry registry({.label_sets = 2});
  for (const char* device : {"a", "b", "c", "d"}) {
    registry.TallyOf(Metric::kDeviceBusy, {device}).Add(1);
  }
  const std::string text = TextOf(registry);
  EXPECT_THAT(text, HasSubstr(R"(gridclock_device_busy_seconds_total{device="b"} 1)"));
  EXPECT_THAT(text, HasSubstr(R"(gridclock_device_busy_seconds_total{device="other"} 2)"));
  EXPECT_THAT(text, Not(HasSubstr(R"(device="c")")));
  EXPECT_THAT(
      text,
      HasSubstr(
          R"(gridclock_metric_series_overflow_total{metric="gridclock_device_busy_seconds_total"} 2)"));
}

TEST(RegistryTest, OfTooManyKernelsDevicesAndOutcomesStayApart) {
  Registry registry({.label_sets = 1});
  registry.TallyOf(Metric::kKernelRuns, {"a", "cpu", "ok"}).Add(1);
  registry.TallyOf(Metric::kKernelRuns, {"b", "cpu", "ok"}).Add(1);
  registry.TallyOf(Metric::kKernelRuns, {"c", "cpu", "ok"}).Add(1);
  registry.TallyOf(Metric::kKernelRuns, {"b", "cuda:0", "fault"}).Add(1);
  registry.TallyOf(Metric::kKernelVariantJobs, {"a", "simd", "cpu"}).Add(1);
  registry.TallyOf(Metric::kKernelVariantJobs, {"a", "plain", "cuda:0"}).Add(1);
  const std::string text = TextOf(registry);
  const std::string runs = "gridclock_kernel_runs_total";
  EXPECT_THAT(text, HasSubstr(runs + R"({kernel="other",device="cpu",outcome="ok"} 2)"));
  EXPECT_THAT(text, HasSubstr(runs + R"({kernel="other",device="cuda:0",outcome="fault"} 1)"));
  EXPECT_THAT(text, HasSubstr("gridclock_kernel_variant_jobs_total"
                              R"({kernel="other",variant="other",device="cuda:0"} 1)"));
}

// 28 kernels of four variants on a CPU and eight GPUs, and as many again.
TEST(RegistryTest, ANodeOfEightGpusHasRoomForItsKernels) {
  constexpr int kDevices = 9;
  Registry registry(Registry::CapsFor(kDevices));
  for (int device = 0; device < kDevices; ++device) {
    for (int kernel = 0; kernel < 56; ++kernel) {
      const std::string name = absl::StrCat("k", kernel), on = absl::StrCat("cuda:", device);
      registry.HistogramOf(Metric::kKernelDuration, {name, on});
      for (const char* variant : {"a", "b", "c", "d"}) {
        registry.TallyOf(Metric::kKernelVariantJobs, {name, variant, on});
      }
    }
  }
  EXPECT_THAT(TextOf(registry), Not(HasSubstr("gridclock_metric_series_overflow_total")));
}

// Prometheus refuses a whole page for one bad label.
TEST(RegistryTest, LabelsAreEscapedAndAlwaysUtf8) {
  Registry registry({});
  registry.TallyOf(Metric::kDeviceBusy, {"a\"b\\c\nd\xff"}).Add(1);
  EXPECT_THAT(TextOf(registry), HasSubstr(R"({device="a\"b\\c\nd?"} 1)"));
}

TEST(RegistryTest, AsksTheCollectorAtEachScrape) {
  Registry registry({});
  int asked = 0;
  registry.SetCollector(
      [&asked](ScrapeValues& values) { values.Set(Metric::kQueueDepth, {"cpu"}, ++asked); });
  EXPECT_THAT(TextOf(registry), HasSubstr(R"(gridclock_queue_depth{device="cpu"} 1)"));
  EXPECT_THAT(TextOf(registry), HasSubstr(R"(gridclock_queue_depth{device="cpu"} 2)"));
  registry.SetCollector(nullptr);
  EXPECT_THAT(TextOf(registry), Not(HasSubstr("gridclock_queue_depth")));
}

}  // namespace
}  // namespace gridclock
