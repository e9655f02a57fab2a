#include "server/metrics/registry.h"

#include <limits>
#include <utility>

#include "absl/strings/ascii.h"

namespace gridclock {
namespace {

using Families = std::vector<prometheus::MetricFamily>;

prometheus::MetricType PrometheusType(MetricType type) {
  switch (type) {
    case MetricType::kCounter:
      return prometheus::MetricType::Counter;
    case MetricType::kGauge:
      return prometheus::MetricType::Gauge;
    case MetricType::kHistogram:
      return prometheus::MetricType::Histogram;
  }
  return prometheus::MetricType::Untyped;
}

// One byte that is not UTF-8 makes Prometheus refuse the whole page; our words are ASCII.
std::string Printable(std::string text) {
  for (char& c : text) {
    if (!absl::ascii_isascii(c)) c = '?';
  }
  return text;
}

prometheus::ClientMetric Labelled(Metric metric, const LabelValues& values) {
  prometheus::ClientMetric result;
  const std::span<const absl::string_view> names = SpecOf(metric).labels;
  for (std::size_t i = 0; i < names.size() && i < values.size(); ++i) {
    result.label.push_back({std::string(names[i]), Printable(values[i])});
  }
  return result;
}

void SetValue(prometheus::ClientMetric& metric, MetricType type, double value) {
  (type == MetricType::kCounter ? metric.counter.value : metric.gauge.value) = value;
}

void SetHistogram(prometheus::ClientMetric& metric, const Histogram& histogram) {
  const Histogram::Snapshot snapshot = histogram.Read();
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < snapshot.counts.size(); ++i) {
    below += snapshot.counts[i];
    const double bound = i < histogram.bounds().size() ? histogram.bounds()[i]
                                                       : std::numeric_limits<double>::infinity();
    metric.histogram.bucket.push_back({below, bound});
  }
  metric.histogram.sample_count = below;
  metric.histogram.sample_sum = snapshot.sum;
}

Families EmptyFamilies() {
  Families result;
  for (const MetricSpec& spec : MetricSpecs()) {
    result.push_back(
        {std::string(spec.name), std::string(spec.help), PrometheusType(spec.type), {}});
  }
  return result;
}

class Scrape final : public ScrapeValues {
 public:
  explicit Scrape(Families& families) : families_(families) {}
  void Set(Metric metric, LabelValues labels, double value) override {
    prometheus::ClientMetric series = Labelled(metric, labels);
    SetValue(series, SpecOf(metric).type, value);
    families_[static_cast<int>(metric)].metric.push_back(std::move(series));
  }

 private:
  Families& families_;
};

}  // namespace

Registry::Registry(int max_label_sets) : max_label_sets_(max_label_sets) {}

Registry::Series& Registry::Find(Metric metric, LabelValues labels) {
  Family& family = families_[static_cast<int>(metric)];
  if (const auto found = family.find(labels); found != family.end()) return found->second;
  if (family.size() >= max_label_sets_) {
    CountOverflow(metric);
    for (std::string& value : labels) value = "other";
  }
  return family[std::move(labels)];
}

void Registry::CountOverflow(Metric metric) {
  Series& series = families_[static_cast<int>(Metric::kSeriesOverflow)]
                            [LabelValues{std::string(SpecOf(metric).name)}];
  if (!series.tally) series.tally = std::make_unique<Tally>();
  series.tally->Add(1);
}

Tally& Registry::TallyOf(Metric metric, LabelValues labels, double scale) {
  MutexLock lock(mutex_);
  Series& series = Find(metric, std::move(labels));
  if (!series.tally) {
    series.tally = std::make_unique<Tally>();
    series.scale = scale;
  }
  return *series.tally;
}

Histogram& Registry::HistogramOf(Metric metric, LabelValues labels) {
  MutexLock lock(mutex_);
  Series& series = Find(metric, std::move(labels));
  if (!series.histogram) series.histogram = std::make_unique<Histogram>(SpecOf(metric).bounds);
  return *series.histogram;
}

void Registry::SetCollector(std::function<void(ScrapeValues&)> collector) {
  MutexLock lock(collector_mutex_);
  collector_ = std::move(collector);
}

Families Registry::Collect() const {
  Families families = EmptyFamilies();
  {
    // Held during the call, so that SetCollector can promise that the old one has ended.
    MutexLock lock(collector_mutex_);
    Scrape scrape(families);
    if (collector_) collector_(scrape);
  }
  MutexLock lock(mutex_);
  for (const MetricSpec& spec : MetricSpecs()) {
    for (const auto& [labels, series] : families_[static_cast<int>(spec.id)]) {
      prometheus::ClientMetric metric = Labelled(spec.id, labels);
      if (series.histogram) SetHistogram(metric, *series.histogram);
      if (series.tally) SetValue(metric, spec.type, series.tally->Value() * series.scale);
      families[static_cast<int>(spec.id)].metric.push_back(std::move(metric));
    }
  }
  std::erase_if(families, [](const prometheus::MetricFamily& f) { return f.metric.empty(); });
  return families;
}

}  // namespace gridclock
