#include "server/metrics/registry.h"

#include <utility>

#include "absl/strings/ascii.h"

namespace gridclock {
namespace {

// One byte that is not UTF-8 makes Prometheus refuse the whole page; our words are ASCII.
LabelValues Printable(LabelValues values) {
  for (std::string& value : values) {
    for (char& c : value) {
      if (!absl::ascii_isascii(c)) c = '?';
    }
  }
  return values;
}

// Kernels and variants are without number; devices, outcomes and the like stay apart, as a device
// called "other" would be none to look for. A metric without either puts all together.
LabelValues Together(Metric metric, LabelValues values) {
  const std::span<const absl::string_view> names = SpecOf(metric).labels;
  bool any = false;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (names[i] != "kernel" && names[i] != "variant") continue;
    values[i] = "other";
    any = true;
  }
  if (!any) std::ranges::fill(values, "other");
  return values;
}

class Scrape final : public ScrapeValues {
 public:
  explicit Scrape(std::vector<FamilyValues>& families) : families_(families) {}
  void Set(Metric metric, LabelValues labels, double value) override {
    families_[static_cast<int>(metric)].series.push_back(
        {.labels = Printable(std::move(labels)), .value = value, .histogram = std::nullopt});
  }

 private:
  std::vector<FamilyValues>& families_;
};

}  // namespace

Registry::Series& Registry::Find(Metric metric, LabelValues labels) {
  Family& family = families_[static_cast<int>(metric)];
  if (const auto found = family.find(labels); found != family.end()) return found->second;
  const bool is_histogram = SpecOf(metric).type == MetricType::kHistogram;
  const int cap = is_histogram ? caps_.histograms : caps_.label_sets;
  if (family.size() >= static_cast<std::size_t>(cap)) {
    CountOverflow(metric);
    labels = Together(metric, std::move(labels));
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

const Histogram* Registry::FindHistogram(Metric metric, const LabelValues& labels) const {
  MutexLock lock(mutex_);
  const Family& family = families_[static_cast<int>(metric)];
  const auto found = family.find(labels);
  return found == family.end() ? nullptr : found->second.histogram.get();
}

void Registry::SetCollector(std::function<void(ScrapeValues&)> collector) {
  MutexLock lock(collector_mutex_);
  collector_ = std::move(collector);
}

Registry::Listing Registry::List() const {
  Listing out;
  MutexLock lock(mutex_);
  for (std::size_t i = 0; i < families_.size(); ++i) {
    for (const Family::value_type& entry : families_[i]) out[i].push_back(&entry);
  }
  return out;
}

std::vector<FamilyValues> Registry::Collect() const {
  std::vector<FamilyValues> families;
  for (const MetricSpec& spec : MetricSpecs()) families.push_back({spec.id, {}});
  {
    // Held during the call, so that SetCollector can promise that the old one has ended.
    MutexLock lock(collector_mutex_);
    Scrape scrape(families);
    if (collector_) collector_(scrape);
  }
  // Histograms take long to read: without the lock.
  const Listing listing = List();
  for (FamilyValues& family : families) {
    for (const Family::value_type* entry : listing[static_cast<int>(family.metric)]) {
      const auto& [labels, series] = *entry;
      SeriesValue& out = family.series.emplace_back();
      out.labels = Printable(labels);
      if (series.histogram) out.histogram = series.histogram->Read();
      if (series.tally) out.value = static_cast<double>(series.tally->Value()) * series.scale;
    }
  }
  std::erase_if(families, [](const FamilyValues& family) { return family.series.empty(); });
  return families;
}

}  // namespace gridclock
