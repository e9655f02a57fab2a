// Every metric of the server in one table. Families are made from it, docs/metrics.md is printed
// from it, and tests hold dashboards and rules against it.
#ifndef GRIDCLOCK_SERVER_METRICS_CATALOGUE_H_
#define GRIDCLOCK_SERVER_METRICS_CATALOGUE_H_

#include <span>

#include "absl/strings/string_view.h"

namespace gridclock {

// In the order of the table.
enum class Metric {
  kBuildInfo,
  kRpcRequests,
  kRpcDrained,
  kRpcTurnedAway,
  kRpcDuration,
  kRpcInFlight,
  kRpcBytes,
  kConnections,
  kConnectionsOpen,
  kKernelDuration,
  kKernelRuns,
  kWrongResults,
  kKernelVariantJobs,
  kKernelBytes,
  kKernelRoofline,
  kQueueWait,
  kQueueExpired,
  kQueueDepth,
  kQueueCapacity,
  kJobsRunning,
  kAdmissionRejected,
  kDeviceBusy,
  kTransferBytes,
  kTransferDuration,
  kPhaseDuration,
  kMeasurements,
  kMeasurementsDoubtful,
  kMeasurementsFlagged,
  kWorkerUp,
  kWorkerState,
  kDeviceDrained,
  kWorkerRestarts,
  kWorkerStrayAnswers,
  kGuestEnds,
  kDeviceInfo,
  kDeviceMemory,
  kDeviceExclusive,
  kDeviceTemperature,
  kDevicePower,
  kDeviceClock,
  kDeviceClockReason,
  kDeviceBandwidth,
  kDeviceFlops,
  kCalibrationFloor,
  kCalibrationOffset,
  kCalibrationActivityOffset,
  kCalibrationSerialRecord,
  kCalibrationEventPair,
  kCalibrationStep,
  kCalibrationTimerStep,
  kCompiles,
  kCompileDuration,
  kModuleAnswers,
  kCompilerUp,
  kCompilerRestarts,
  kReloadSuccess,
  kReloadTime,
  kCertificateExpiry,
  kLimit,
  kUsage,
  kSeriesOverflow,
  kLogDropped,
  kProtobufComplaints,
  kProcessCpu,
  kProcessStart,
  kProcessResident,
  kProcessVirtual,
  kProcessOpenFds,
  kProcessMaxFds,
  kProcessThreads,
};
inline constexpr int kMetricCount = static_cast<int>(Metric::kProcessThreads) + 1;

enum class MetricType { kCounter, kGauge, kHistogram };

struct MetricSpec {
  Metric id;
  absl::string_view name;
  MetricType type;
  absl::string_view unit;  // "seconds", "bytes", or what it counts: "requests".
  std::span<const absl::string_view> labels;
  absl::string_view help;
  absl::string_view since;              // Version of Gridclock.
  std::span<const double> bounds = {};  // Upper bounds of a histogram's buckets, in `unit`.
};

std::span<const MetricSpec> MetricSpecs();
const MetricSpec& SpecOf(Metric metric);

// What a label may be; docs/metrics.md prints it.
struct LabelSpec {
  absl::string_view name, values;
};
std::span<const LabelSpec> LabelSpecs();

absl::string_view TypeName(MetricType type);

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_METRICS_CATALOGUE_H_
