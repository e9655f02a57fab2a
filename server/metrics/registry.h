// The series of a server: made from the catalogue, found by their labels, collected by a scrape.
#ifndef GRIDCLOCK_SERVER_METRICS_REGISTRY_H_
#define GRIDCLOCK_SERVER_METRICS_REGISTRY_H_

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/mutex.h"
#include "server/metrics/catalogue.h"
#include "server/metrics/instruments.h"

namespace gridclock {

// Values in the order of MetricSpec::labels.
using LabelValues = std::vector<std::string>;

// What a scrape learns at the moment of the scrape.
class ScrapeValues {
 public:
  virtual ~ScrapeValues() = default;
  virtual void Set(Metric metric, LabelValues labels, double value) = 0;
};

// A series as it was when it was collected. Its labels are ASCII.
struct SeriesValue {
  LabelValues labels;
  double value = 0;
  std::optional<Histogram::Snapshot> histogram;  // Of a histogram, in place of `value`.
};
struct FamilyValues {
  Metric metric{};
  std::vector<SeriesValue> series;
};

// Thread-safe. Series live as long as the registry; look one up once and keep the reference, as a
// lookup takes a lock.
class Registry final {
 public:
  // How many label sets one metric may have; those of more kernels and variants are put together
  // under "other". A histogram has thirty lines for each label set: with these the page of a server
  // with one device stays under 1 MB however many names of some 25 characters there are.
  struct Caps {
    int label_sets = 400;
    int histograms = 200;
  };
  static Caps CapsFor(std::size_t devices) {
    const int factor = static_cast<int>(std::max<std::size_t>(devices, 1));
    return {.label_sets = Caps().label_sets * factor, .histograms = Caps().histograms * factor};
  }
  explicit Registry(const Caps& caps) : caps_(caps) {}

  // The metric's value is the tally times `scale`: nanoseconds are counted, seconds are shown.
  Tally& TallyOf(Metric metric, LabelValues labels, double scale = 1) ABSL_LOCKS_EXCLUDED(mutex_);
  Histogram& HistogramOf(Metric metric, LabelValues labels) ABSL_LOCKS_EXCLUDED(mutex_);
  // Null if this label set has no histogram of its own; makes none and counts nothing.
  const Histogram* FindHistogram(Metric metric, const LabelValues& labels) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // In place of any `collector` before. When it returns, no scrape runs the one before any more.
  void SetCollector(std::function<void(ScrapeValues&)> collector)
      ABSL_LOCKS_EXCLUDED(collector_mutex_);

  // Families in the order of the catalogue; those without a series are left out.
  std::vector<FamilyValues> Collect() const ABSL_LOCKS_EXCLUDED(mutex_, collector_mutex_);

 private:
  struct Series {
    std::unique_ptr<Tally> tally;
    std::unique_ptr<Histogram> histogram;
    double scale = 1;
  };
  using Family = std::map<LabelValues, Series>;
  using Listing = std::array<std::vector<const Family::value_type*>, kMetricCount>;

  Series& Find(Metric metric, LabelValues labels) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CountOverflow(Metric metric) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // All series that there are; they change no more.
  Listing List() const ABSL_LOCKS_EXCLUDED(mutex_);

  const Caps caps_;
  mutable Mutex mutex_;
  std::array<Family, kMetricCount> families_ ABSL_GUARDED_BY(mutex_);
  mutable Mutex collector_mutex_;
  std::function<void(ScrapeValues&)> collector_ ABSL_GUARDED_BY(collector_mutex_);
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_METRICS_REGISTRY_H_
