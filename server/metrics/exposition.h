// The page that Prometheus scrapes, in the format that it asks for: text, OpenMetrics (exemplars),
// or protobuf (exemplars, and native histograms beside the classic buckets).
#ifndef GRIDCLOCK_SERVER_METRICS_EXPOSITION_H_
#define GRIDCLOCK_SERVER_METRICS_EXPOSITION_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/metrics/registry.h"

namespace gridclock {

enum class Format { kText, kOpenMetrics, kProtobuf };

// What an Accept header asks for; text where it asks for nothing that is known here.
Format FormatFor(absl::string_view accept);
absl::string_view ContentTypeOf(Format format);

// A run that shows what a bucket holds.
struct Exemplar {
  std::string run;   // Its name on /runs/.
  double value = 0;  // In the metric's unit.
  absl::Time at;
};
// The run, if it can still be read and one of its values is above `above` and not above `upto`.
using ExemplarFinder =
    std::function<std::optional<Exemplar>(std::uint64_t run, double above, double upto)>;

std::string Expose(Format format, std::span<const FamilyValues> families,
                   const ExemplarFinder& exemplar);

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_METRICS_EXPOSITION_H_
