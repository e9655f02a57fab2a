// What a server did lately, as plain values: for the page, for `gridclock top`, for exemplars.
#ifndef GRIDCLOCK_SERVER_CORE_ACTIVITY_H_
#define GRIDCLOCK_SERVER_CORE_ACTIVITY_H_

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/types/job.h"

namespace gridclock {

// A job that ended. It tells nothing of whose it was, nor any text of a client.
struct RunRecord {
  JobId id = 0;
  TraceContext trace;           // Of its call.
  absl::Time finished;          // By the calendar.
  std::string kernel;           // As in metrics: "other" if it is not of the catalogue.
  std::string variant, device;  // The variant is empty if it never ran.
  absl::string_view outcome;    // The word of metrics: "ok", "fault".
  bool ran = false;             // What follows is set.
  bool measured = false;        // Else it launched once.
  Method method = Method::kIsolated;
  StopReason stop = StopReason::kSingleLaunch;
  std::int64_t samples = 0, warmups = 0;
  Statistics statistics;   // A single launch is its own median.
  double roofline_ns = 0;  // 0: unknown.
  std::int64_t flops = 0, bytes = 0;
  std::vector<Phase> phases;
  std::vector<Flag> flags;
  std::vector<Launch> launches;
  std::optional<Verification> verification;  // Without its text.
};

// The runs that ended within one stretch of two seconds; latencies in nanoseconds.
struct LatencySlot {
  std::uint32_t ended = 0;
  std::uint32_t runs = 0;  // Those of them whose latency is known.
  double least = 0, most = 0, sum = 0;
  double fastest = 0, slowest = 0;  // Of all their launches; 0: unknown.
};
inline constexpr int kLatencySlots = 60;

// Launches whose time lay above the last bucket's bound and not above this one.
struct LatencyBucket {
  double upper_ns = 0;
  std::uint64_t launches = 0;
};

// A kernel on a device.
struct KernelActivity {
  std::string kernel, device;
  std::uint64_t runs = 0, failed = 0;  // Since the server started.
  double runs_per_second = 0;          // Over the last ten seconds.
  // What follows is of the last two minutes, teaching methods left out.
  // Of launches; 0: there was none, it is not known, or they are too few to tell (quantile.h).
  double p50_ns = 0, p90_ns = 0, p99_ns = 0;
  double fastest_ns = 0, slowest_ns = 0;  // The quantiles lie between them.
  std::vector<LatencySlot> slots;         // Of runs' medians, oldest first, kLatencySlots of them.
  std::vector<LatencyBucket> buckets;  // Of launches, from the first to the last that is not empty.
};

// What a device said of itself when it last measured.
struct DeviceReading {
  DeviceState state;
  absl::Time at = absl::InfinitePast();
};

struct Activity {
  std::vector<KernelActivity> kernels;  // The busiest of late first.
  std::map<std::string, DeviceReading> readings;
  std::vector<RunRecord> runs;  // Newest first, as many as were asked for.
  std::size_t runs_kept = 0;    // As many as there are.
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_CORE_ACTIVITY_H_
