#include "server/metrics/exposition.h"

#include <algorithm>
#include <random>

#include <gmock/gmock.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/util/delimited_message_util.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "io/prometheus/client/metrics.pb.h"

namespace gridclock {
namespace {

namespace client = ::io::prometheus::client;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kProtobuf[] =
    "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited";

TEST(FormatTest, TheClientSaysWhatItTakes) {
  EXPECT_EQ(FormatFor(""), Format::kText);
  EXPECT_EQ(FormatFor("*/*"), Format::kText);
  EXPECT_EQ(FormatFor("text/html, */*;q=0.1"), Format::kText);
  EXPECT_EQ(FormatFor("application/openmetrics-text; version=1.0.0; charset=utf-8"),
            Format::kOpenMetrics);
  // As Prometheus 2.42 asks, without and with native histograms.
  EXPECT_EQ(FormatFor("application/openmetrics-text;version=1.0.0,application/openmetrics-text;"
                      "version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"),
            Format::kOpenMetrics);
  EXPECT_EQ(FormatFor(absl::StrCat(kProtobuf, ",application/openmetrics-text;version=1.0.0;q=0.8,",
                                   "text/plain;version=0.0.4;q=0.5,*/*;q=0.1")),
            Format::kProtobuf);
  EXPECT_EQ(FormatFor(absl::StrCat(kProtobuf, ";q=0.3,text/plain;q=0.5")), Format::kText);
}

TEST(FormatTest, WhatIsNoAcceptHeaderIsText) {
  EXPECT_EQ(FormatFor(";;;,,,q=;"), Format::kText);
  EXPECT_EQ(FormatFor("application/vnd.google.protobuf"), Format::kText);
  EXPECT_EQ(FormatFor("application/openmetrics-text;q=nan"), Format::kText);
  EXPECT_EQ(FormatFor("application/openmetrics-text;q=0"), Format::kText);
}

// A run with number 5 took 1.5 us; others are forgotten.
std::optional<Exemplar> Run5(std::uint64_t run, double above, double upto) {
  if (run != 5 || above >= 1.5e-6 || upto < 1.5e-6) return std::nullopt;
  return Exemplar{"5", 1.5e-6, absl::FromUnixMillis(1'700'000'000'042)};
}

TEST(ExpositionTest, OpenMetricsNamesRunsAndEnds) {
  Registry registry({});
  registry.TallyOf(Metric::kKernelRuns, {"square", "cpu", "ok"}).Add(3);
  Histogram& histogram = registry.HistogramOf(Metric::kKernelDuration, {"square", "cpu"});
  histogram.Observe(1.5e-6);
  histogram.Mark(1.5e-6, 5);
  histogram.Mark(1, 4);
  const std::string text = Expose(Format::kOpenMetrics, registry.Collect(), &Run5);
  EXPECT_THAT(text, HasSubstr("# TYPE gridclock_kernel_runs counter\n"));
  EXPECT_THAT(text, HasSubstr("\ngridclock_kernel_runs_total{kernel=\"square\",device=\"cpu\","
                              "outcome=\"ok\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("le=\"2.5e-06\"} 1 # {run_id=\"5\"} 1.5e-06 1700000000.042\n"));
  EXPECT_THAT(text, Not(HasSubstr("run_id=\"4\"")));
  EXPECT_THAT(text, EndsWith("\n# EOF\n"));
}

TEST(ExpositionTest, PlainTextHasNoExemplars) {
  Registry registry({});
  registry.HistogramOf(Metric::kKernelDuration, {"square", "cpu"}).Mark(1.5e-6, 5);
  EXPECT_THAT(Expose(Format::kText, registry.Collect(), &Run5), Not(HasSubstr("run_id")));
}

std::vector<client::MetricFamily> Decoded(const std::string& page) {
  google::protobuf::io::ArrayInputStream stream(page.data(), static_cast<int>(page.size()));
  std::vector<client::MetricFamily> families;
  bool end = false;
  for (client::MetricFamily family;
       google::protobuf::util::ParseDelimitedFromZeroCopyStream(&family, &stream, &end);) {
    families.push_back(family);
  }
  EXPECT_TRUE(end);
  return families;
}

// As Prometheus reads spans and deltas: the counts by upper bound.
std::vector<std::pair<double, std::int64_t>> NativeOf(const client::Histogram& histogram) {
  std::vector<std::pair<double, std::int64_t>> out;
  std::int64_t count = 0;
  int index = 0, delta = 0;
  for (const client::BucketSpan& span : histogram.positive_span()) {
    index += span.offset();
    for (std::uint32_t i = 0; i < span.length(); ++i, ++index) {
      count += histogram.positive_delta(delta++);
      out.emplace_back(std::exp2(index / std::exp2(histogram.schema())), count);
    }
  }
  EXPECT_EQ(delta, histogram.positive_delta_size());
  return out;
}

double QuantileOf(const client::Histogram& histogram, double part) {
  double below = 0;
  for (const auto& [upper, count] : NativeOf(histogram)) {
    below += static_cast<double>(count);
    if (below >= part * static_cast<double>(histogram.sample_count())) return upper;
  }
  return 0;
}

TEST(ExpositionTest, ProtobufCarriesBothKindsOfBuckets) {
  Registry registry({});
  Histogram& histogram = registry.HistogramOf(Metric::kKernelDuration, {"square", "cpu"});
  for (const double value : {1e-12, 1.5e-6, 1.5e-6, 1.7e-6, 3.0}) histogram.Observe(value);
  histogram.Mark(1.5e-6, 5);
  const auto families = Decoded(Expose(Format::kProtobuf, registry.Collect(), &Run5));
  ASSERT_EQ(families.size(), 1);
  EXPECT_EQ(families[0].name(), "gridclock_kernel_duration_seconds");
  EXPECT_EQ(families[0].type(), client::HISTOGRAM);
  const client::Histogram& read = families[0].metric(0).histogram();
  EXPECT_EQ(read.sample_count(), 5);
  EXPECT_EQ(read.zero_count(), 1);
  std::int64_t native = 0;
  for (const auto& [upper, count] : NativeOf(read)) {
    native += count;
    EXPECT_TRUE(count == 0 || upper > 1.5e-6) << upper;
  }
  EXPECT_EQ(native, 4);
  const client::Bucket& bucket = read.bucket(3);
  EXPECT_EQ(bucket.upper_bound(), 2.5e-6);
  EXPECT_EQ(bucket.cumulative_count(), 4);
  EXPECT_EQ(bucket.exemplar().label(0).value(), "5");
}

// What the issue of a latency page is: quantiles within the width of a bucket, 9.1 %.
TEST(ExpositionTest, QuantilesOfNativeHistogramsAreWithinABucketOfExactOnes) {
  std::mt19937_64 random(7);
  for (const double median : {0.8e-6, 12e-6, 3e-3, 0.7}) {
    Registry registry({});
    Histogram& histogram = registry.HistogramOf(Metric::kKernelDuration, {"square", "cpu"});
    std::lognormal_distribution<double> times(std::log(median), 0.4);
    std::vector<double> samples;
    samples.reserve(459);
    for (int i = 0; i < 459; ++i) samples.push_back(times(random));
    histogram.ObserveAll(samples, 1);
    std::sort(samples.begin(), samples.end());
    const auto families = Decoded(Expose(Format::kProtobuf, registry.Collect(), nullptr));
    const client::Histogram& read = families[0].metric(0).histogram();
    for (const double part : {0.5, 0.99}) {
      const double exact = samples[static_cast<std::size_t>(std::ceil(part * 459)) - 1];
      EXPECT_NEAR(QuantileOf(read, part) / exact, 1, 0.091) << median << " " << part;
      EXPECT_NEAR(histogram.Read().Quantile(part) / exact, 1, 0.091) << median << " " << part;
    }
  }
}

// Whatever clients call their kernels, the page is bounded, and nothing is lost.
TEST(ExpositionTest, AHundredThousandNamesStayUnderAMegabyte) {
  Registry registry({});
  for (int i = 0; i < 100'000; ++i) {
    const std::string name = absl::StrCat("submitted_kernel_", i);
    registry.TallyOf(Metric::kKernelRuns, {name, "cpu", "ok"}).Add(1);
    registry.HistogramOf(Metric::kKernelDuration, {name, "cpu"}).Observe(1e-6 * (i % 1000 + 1));
  }
  const auto families = registry.Collect();
  for (const Format format : {Format::kText, Format::kOpenMetrics, Format::kProtobuf}) {
    EXPECT_LT(Expose(format, families, nullptr).size(), 1'000'000);
  }
  const std::string text = Expose(Format::kText, families, nullptr);
  EXPECT_THAT(text, HasSubstr("gridclock_kernel_runs_total{kernel=\"other\",device=\"cpu\","
                              "outcome=\"ok\"} 99600\n"));
  EXPECT_THAT(text, HasSubstr("duration_seconds_count{kernel=\"other\",device=\"cpu\"} 99800\n"));
}

}  // namespace
}  // namespace gridclock
