#include "server/metrics/catalogue.h"

#include <array>

namespace gridclock {
namespace {

using enum MetricType;
using Label = absl::string_view;

// 1-2.5-5 per decade: a quantile read from them is at most about 60 % off at 27 series each. Powers
// of four would be half the series, but would be too coarse to see a kernel become slower without
// native histograms beside them. From 0.25 us, as GPUs run kernels of 0.8 us.
constexpr double kKernelBounds[] = {0.25e-6, 0.5e-6, 1e-6,   2.5e-6, 5e-6, 10e-6,  25e-6,
                                    50e-6,   100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3,
                                    10e-3,   25e-3,  50e-3,  0.1,    0.25, 0.5,    1,
                                    2.5,     5,      10,     25,     50,   100};
// No request over a socket takes less than 10 us.
constexpr double kRequestBounds[] = {10e-6, 25e-6, 50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3,
                                     5e-3,  10e-3, 25e-3, 50e-3,  0.1,    0.25,   0.5,  1,
                                     2.5,   5,     10,    25,     50,     100};

constexpr Label kBuild[] = {"version", "revision", "cuda"};
constexpr Label kMethod[] = {"method"};
constexpr Label kMethodCode[] = {"method", "code"};
constexpr Label kMethodDirection[] = {"method", "direction"};
constexpr Label kResult[] = {"result"};
constexpr Label kKernelDevice[] = {"kernel", "device"};
constexpr Label kKernelVariantDevice[] = {"kernel", "variant", "device"};
constexpr Label kKernelDeviceOutcome[] = {"kernel", "device", "outcome"};
constexpr Label kDevice[] = {"device"};
constexpr Label kReason[] = {"reason"};
constexpr Label kDirectionDevice[] = {"direction", "device"};
constexpr Label kPhaseDevice[] = {"phase", "device"};
constexpr Label kDeviceFlag[] = {"device", "flag"};
constexpr Label kDeviceState[] = {"device", "state"};
constexpr Label kDeviceClockName[] = {"device", "clock"};
constexpr Label kDeviceReason[] = {"device", "reason"};
constexpr Label kDeviceFacts[] = {"device", "uuid", "model", "arch", "driver", "partition"};
constexpr Label kDeviceDType[] = {"device", "dtype"};
constexpr Label kDeviceTiming[] = {"device", "timing"};
constexpr Label kDeviceActivity[] = {"device", "activity"};
constexpr Label kKindOutcome[] = {"kind", "outcome"};
constexpr Label kKind[] = {"kind"};
constexpr Label kOrigin[] = {"origin"};
constexpr Label kName[] = {"name"};
constexpr Label kMetric[] = {"metric"};
constexpr Label kPart[] = {"part"};

constexpr std::array<MetricSpec, kMetricCount> kTable = {{
    {Metric::kBuildInfo, "gridclock_build_info", kGauge, "info", kBuild,
     "Always 1; the labels tell what is running.", "0.1.0"},
    {Metric::kRpcRequests, "gridclock_rpc_requests_total", kCounter, "requests", kMethodCode,
     "Calls that ended, by gRPC method and status code. What gRPC refuses itself (a message over "
     "twice "
     "limit-message-bytes, one that is compressed) is CANCELLED here; metadata that is too large "
     "and "
     "methods that nobody has do not count.",
     "0.1.0"},
    {Metric::kRpcDrained, "gridclock_rpc_drained_total", kCounter, "requests", kMethod,
     "Those of gridclock_rpc_requests_total that were refused or ended because an operator drains "
     "the device or the server, or refused because its first worker or its compiler is starting or "
     "a reload reads; "
     "their code is UNAVAILABLE.",
     "0.2.0"},
    {Metric::kRpcTurnedAway, "gridclock_rpc_turned_away_total", kCounter, "requests", kMethod,
     "Those of gridclock_rpc_requests_total for which the server had no room: refused with "
     "QUEUE_FULL or MEMORY_FULL and RetryInfo, or ended by QUEUE_WAIT.",
     "0.2.0"},
    {Metric::kRpcDuration, "gridclock_rpc_duration_seconds", kHistogram, "seconds", kMethod,
     "From the start of a call to its end, queue and kernel included.", "0.1.0", kRequestBounds},
    {Metric::kRpcInFlight, "gridclock_rpc_in_flight", kGauge, "requests", kMethod,
     "Calls that have started and not ended.", "0.1.0"},
    {Metric::kRpcBytes, "gridclock_rpc_bytes_total", kCounter, "bytes", kMethodDirection,
     "Whole messages received (in) and sent (out), without HTTP/2.", "0.1.0"},
    {Metric::kConnections, "gridclock_connections_total", kCounter, "connections", kResult,
     "Connections that came, by what the acceptor did with them; those of cut_off_... were "
     "counted as accepted before.",
     "0.1.0"},
    {Metric::kConnectionsOpen,
     "gridclock_connections_open",
     kGauge,
     "connections",
     {},
     "Connections that are open.",
     "0.1.0"},
    {Metric::kKernelDuration, "gridclock_kernel_duration_seconds", kHistogram, "seconds",
     kKernelDevice,
     "Time of one launch by the method isolated, which single launches are timed by; "
     "of all states of the cache; warm-ups and results with IMPOSSIBLE are left out.",
     "0.1.0", kKernelBounds},
    {Metric::kKernelRuns, "gridclock_kernel_runs_total", kCounter, "jobs", kKernelDeviceOutcome,
     "Admitted jobs that ended, by how; one job may launch its kernel many times.", "0.1.0"},
    {Metric::kWrongResults, "gridclock_wrong_results_total", kCounter, "jobs", kKernelDevice,
     "Verified jobs of listed kernels whose values differ from the reference, or that wrote where "
     "they may not; those whose client named the variant are left out.",
     "0.2.0"},
    {Metric::kKernelVariantJobs, "gridclock_kernel_variant_jobs_total", kCounter, "jobs",
     kKernelVariantDevice, "Jobs that ran, by the variant of the kernel that ran.", "0.2.0"},
    {Metric::kKernelBytes, "gridclock_kernel_bytes_total", kCounter, "bytes", kKernelDevice,
     "Bytes that the launches in gridclock_kernel_duration_seconds had to move, by the kernel's "
     "words.",
     "0.2.0"},
    {Metric::kKernelRoofline, "gridclock_kernel_roofline_seconds_total", kCounter, "seconds",
     kKernelDevice,
     "Least time that memory and arithmetic of the device allow for the same launches.", "0.2.0"},
    {Metric::kQueueWait, "gridclock_queue_wait_seconds", kHistogram, "seconds", kDevice,
     "From all inputs in memory to the order first sent to a worker; of jobs that ended.", "0.1.0",
     kRequestBounds},
    {Metric::kQueueExpired, "gridclock_queue_expired_total", kCounter, "jobs", kDevice,
     "Jobs that had all their inputs and were never launched because the deadline that their "
     "client set passed.",
     "0.2.0"},
    {Metric::kQueueDepth, "gridclock_queue_depth", kGauge, "jobs", kDevice,
     "Jobs that wait for the device, at its worker too; their inputs are there. Submitted code has "
     "a "
     "queue of its own: of the fuller of the two.",
     "0.1.0"},
    {Metric::kQueueCapacity, "gridclock_queue_capacity", kGauge, "jobs", kDevice,
     "Jobs that may wait in one queue of the device; the next one is rejected if its client has "
     "others.",
     "0.1.0"},
    {Metric::kJobsRunning, "gridclock_jobs_running", kGauge, "jobs", kDevice,
     "Jobs that run on the device: 0 or 1.", "0.1.0"},
    {Metric::kAdmissionRejected, "gridclock_admission_rejected_total", kCounter, "requests",
     kReason, "Requests that could be read and did not become a job, by reason.", "0.1.0"},
    {Metric::kDeviceBusy, "gridclock_device_busy_seconds_total", kCounter, "seconds", kDevice,
     "Time from the first launch of each job to the end of its last, of those that run now until "
     "now; copies, generated inputs and verification are not in it. Its rate is the utilisation.",
     "0.1.0"},
    {Metric::kTransferBytes, "gridclock_transfer_bytes_total", kCounter, "bytes", kDirectionDevice,
     "Tensor bytes of jobs of the device that ran: what their clients sent (in), and what those "
     "that ended well have for them, read or not (out).",
     "0.1.0"},
    {Metric::kTransferDuration, "gridclock_transfer_duration_seconds", kHistogram, "seconds",
     kDirectionDevice,
     "Time of a job's copies to the device's own memory, with inputs that it makes (in), and back "
     "(out).",
     "0.2.0", kRequestBounds},
    {Metric::kPhaseDuration, "gridclock_phase_duration_seconds", kHistogram, "seconds",
     kPhaseDevice,
     "Time of each phase of jobs that ran, as RunSummary tells it; phases that took none are left "
     "out.",
     "0.2.0", kRequestBounds},
    {Metric::kMeasurements, "gridclock_measurements_total", kCounter, "measurements", kDevice,
     "Jobs of the catalogue that asked for a measurement and returned one.", "0.1.0"},
    {Metric::kMeasurementsDoubtful, "gridclock_measurements_doubtful_total", kCounter,
     "measurements", kDevice,
     "Those of gridclock_measurements_total that carry SUSPECT, IMPOSSIBLE, THROTTLED or "
     "SHARED_DEVICE, however many of them.",
     "0.2.0"},
    {Metric::kMeasurementsFlagged, "gridclock_measurements_flagged_total", kCounter, "flags",
     kDeviceFlag,
     "Flags on the results of gridclock_measurements_total; a result may carry several.", "0.1.0"},
    {Metric::kWorkerUp, "gridclock_worker_up", kGauge, "workers", kDevice,
     "1 if the device's worker is ready or busy.", "0.1.0"},
    {Metric::kWorkerState, "gridclock_worker_state", kGauge, "workers", kDeviceState,
     "1 for the state that the device's worker is in, 0 for the others.", "0.1.0"},
    {Metric::kDeviceDrained, "gridclock_device_drained", kGauge, "devices", kDevice,
     "1 while an operator keeps new calls from the device.", "0.2.0"},
    {Metric::kWorkerRestarts, "gridclock_worker_restarts_total", kCounter, "workers", kDeviceReason,
     "Workers that were lost and had to be replaced, by reason.", "0.1.0"},
    {Metric::kWorkerStrayAnswers, "gridclock_worker_stray_answers_total", kCounter, "answers",
     kDevice,
     "Messages of the device's workers about an order that they did not hold. One is forgiven, at "
     "the "
     "second the worker is replaced.",
     "0.2.0"},
    {Metric::kGuestEnds, "gridclock_guest_ends_total", kCounter, "workers", kDeviceReason,
     "Processes for submitted code that ended, by reason.", "0.1.0"},
    {Metric::kDeviceInfo, "gridclock_device_info", kGauge, "info", kDeviceFacts,
     "Always 1; the labels tell what the device is.", "0.2.0"},
    {Metric::kDeviceMemory, "gridclock_device_memory_bytes", kGauge, "bytes", kDeviceState,
     "Memory of the device in all, and what all processes have of a GPU's. The latter is asked "
     "while the GPU waits for work: left out when it is older than a minute, and under "
     "--allow-submit.",
     "0.2.0"},
    {Metric::kDeviceExclusive, "gridclock_device_exclusive", kGauge, "devices", kDevice,
     "1 if no process of others computes on the GPU; left out where that cannot be told, and as "
     "used memory is.",
     "0.2.0"},
    {Metric::kDeviceTemperature, "gridclock_device_temperature_celsius", kGauge, "celsius", kDevice,
     "Of the GPU. This, power, clocks and what holds them down is asked at each measurement of "
     "the catalogue and, without --allow-submit, each second while the GPU waits for work; never "
     "beside a job. It is left out when it is older than a minute.",
     "0.2.0"},
    {Metric::kDevicePower, "gridclock_device_power_watts", kGauge, "watts", kDevice,
     "That the GPU draws.", "0.2.0"},
    {Metric::kDeviceClock, "gridclock_device_clock_hertz", kGauge, "hertz", kDeviceClockName,
     "What the GPU's multiprocessors and its memory run at.", "0.2.0"},
    {Metric::kDeviceClockReason, "gridclock_device_clock_held_down", kGauge, "reasons",
     kDeviceReason, "1 for each reason that keeps the GPU's clock from being higher.", "0.2.0"},
    {Metric::kDeviceBandwidth, "gridclock_device_bandwidth_bytes_per_second", kGauge,
     "bytes per second", kDevice, "Of its memory, measured when its worker started.", "0.2.0"},
    {Metric::kDeviceFlops, "gridclock_device_flops_per_second", kGauge, "flops per second",
     kDeviceDType, "What it computes at most in a dtype, by its data sheet.", "0.2.0"},
    {Metric::kCalibrationFloor, "gridclock_calibration_floor_seconds", kGauge, "seconds",
     kDeviceTiming, "What an empty launch costs by a method of timing.", "0.2.0"},
    {Metric::kCalibrationOffset, "gridclock_calibration_launch_offset_seconds", kGauge, "seconds",
     kDevice,
     "What the isolated method reads of an empty kernel beyond the device's own record of it.",
     "0.2.0"},
    {Metric::kCalibrationActivityOffset, "gridclock_calibration_activity_offset_seconds", kGauge,
     "seconds", kDeviceActivity,
     "The same for each further kernel or copy of one launch, less than 0 where records leave the "
     "larger gaps.",
     "0.2.0"},
    {Metric::kCalibrationSerialRecord, "gridclock_calibration_serial_record_offset_seconds", kGauge,
     "seconds", kDevice,
     "What a serial record of a kernel reads beyond a concurrent one, which is taken off device "
     "time.",
     "0.2.0"},
    {Metric::kCalibrationEventPair, "gridclock_calibration_empty_event_pair_seconds", kGauge,
     "seconds", kDevice, "Between two events with nothing between them.", "0.2.0"},
    {Metric::kCalibrationStep, "gridclock_calibration_timestamp_step_seconds", kGauge, "seconds",
     kDevice, "Smallest step of the clock that times launches.", "0.2.0"},
    {Metric::kCalibrationTimerStep, "gridclock_calibration_device_timer_step_seconds", kGauge,
     "seconds", kDevice, "Smallest step of the timer that kernels on the device can read.",
     "0.2.0"},
    {Metric::kCompiles, "gridclock_compiles_total", kCounter, "compiles", kKindOutcome,
     "Compiles of submitted code that ended, by what was compiled and how it ended.", "0.2.0"},
    {Metric::kCompileDuration, "gridclock_compile_duration_seconds", kHistogram, "seconds", kKind,
     "Time of one compile, without its wait for a turn.", "0.2.0", kRequestBounds},
    {Metric::kModuleAnswers, "gridclock_module_answers_total", kCounter, "requests", kOrigin,
     "Compile and Load calls that were answered with a module, by where it was from.", "0.2.0"},
    {Metric::kCompilerUp,
     "gridclock_compiler_up",
     kGauge,
     "processes",
     {},
     "1 if the compiler of submitted code is ready; left out without --allow-submit.",
     "0.2.0"},
    {Metric::kCompilerRestarts,
     "gridclock_compiler_restarts_total",
     kCounter,
     "processes",
     {},
     "Compiler processes that were lost and had to be replaced.",
     "0.2.0"},
    {Metric::kReloadSuccess, "gridclock_reload_success", kGauge, "reloads", kPart,
     "0 if what the last reload read could not be used, and what was read before stays in force.",
     "0.2.0"},
    {Metric::kReloadTime, "gridclock_reload_time_seconds", kGauge, "seconds", kPart,
     "When what is in force was read, since the Unix epoch.", "0.2.0"},
    {Metric::kCertificateExpiry,
     "gridclock_tls_certificate_expiry_time_seconds",
     kGauge,
     "seconds",
     {},
     "When the first of the certificates in the chain that new connections get expires, since the "
     "Unix epoch; left out without TLS.",
     "0.2.0"},
    {Metric::kLimit, "gridclock_limit", kGauge, "as the name says", kName,
     "A bound that the server keeps.", "0.1.0"},
    {Metric::kUsage, "gridclock_usage", kGauge, "as the name says", kName,
     "How much of the limit of the same name is in use; where it is one for each client, device or "
     "peer, by the one that uses most. rpc_bytes and streams are kept by gRPC, which tells no use "
     "of "
     "them: to count them beside it would cost each call. guest_bytes bounds each process for "
     "submitted code alone, and its use is not counted.",
     "0.1.0"},
    {Metric::kSeriesOverflow, "gridclock_metric_series_overflow_total", kCounter, "lookups",
     kMetric, "Times that a label set was counted as \"other\" because its metric has too many.",
     "0.1.0"},
    {Metric::kLogDropped,
     "gridclock_log_dropped_total",
     kCounter,
     "lines",
     {},
     "Log lines dropped because nobody read them fast enough.",
     "0.1.0"},
    {Metric::kProtobufComplaints,
     "gridclock_protobuf_complaints_total",
     kCounter,
     "lines",
     {},
     "Lines that protobuf wanted to log about messages it was given.",
     "0.1.0"},
    {Metric::kProcessCpu,
     "process_cpu_seconds_total",
     kCounter,
     "seconds",
     {},
     "User and system time of gridclock-server, without its workers.",
     "0.1.0"},
    {Metric::kProcessStart,
     "process_start_time_seconds",
     kGauge,
     "seconds",
     {},
     "When gridclock-server started, since the Unix epoch.",
     "0.1.0"},
    {Metric::kProcessResident,
     "process_resident_memory_bytes",
     kGauge,
     "bytes",
     {},
     "Memory of gridclock-server that is present, touched pages of the arena included.",
     "0.1.0"},
    {Metric::kProcessVirtual,
     "process_virtual_memory_bytes",
     kGauge,
     "bytes",
     {},
     "Address space of gridclock-server.",
     "0.1.0"},
    {Metric::kProcessOpenFds,
     "process_open_fds",
     kGauge,
     "descriptors",
     {},
     "File descriptors that are open.",
     "0.1.0"},
    {Metric::kProcessMaxFds,
     "process_max_fds",
     kGauge,
     "descriptors",
     {},
     "File descriptors that may be open.",
     "0.1.0"},
    {Metric::kProcessThreads,
     "process_threads",
     kGauge,
     "threads",
     {},
     "Threads of gridclock-server.",
     "0.1.0"},
}};

constexpr bool InOrder() {
  for (int i = 0; i < kMetricCount; ++i) {
    if (kTable[i].id != static_cast<Metric>(i)) return false;
  }
  return true;
}
static_assert(InOrder(), "the table must be in the order of enum Metric");

constexpr LabelSpec kLabels[] = {
    {"activity", "`kernel`, which fills count as, and `copy`"},
    {"arch", "`sm_90` of a GPU; the build in use on a CPU: `x86-64-v4`"},
    {"clock", "`sm`, `memory`"},
    {"code", "name of a gRPC status code: `OK`, `INVALID_ARGUMENT`, ..."},
    {"cuda", "version of the CUDA toolkit, or `none`"},
    {"device", "name of a device of this server: `cpu`, `cuda:0`"},
    {"direction", "`in`, `out`"},
    {"driver", "version of the GPU's driver, empty on a CPU"},
    {"dtype", "a dtype of the contract: `f32`"},
    {"flag",
     "the flags of the contract in lower case: `suspect`, `impossible`, `throttled`, "
     "`shared_device`, `noisy`, `interrupted`, `unverified`, `emulated`, "
     "`teaching_method`"},
    {"kernel", "a name that ListKernels shows, `user` for submitted code, else `other`"},
    {"kind", "what was submitted: `cuda`, `ptx`, `cubin`"},
    {"method", "a gRPC method of this server: `gridclock.v1.KernelService/Run`"},
    {"metric", "name of a metric"},
    {"model", "the device's own name: `NVIDIA H200`"},
    {"name", "name of a limit, as in GetServerInfo"},
    {"origin", "`compiled` for this call, or made before: `memory`, `disk`"},
    {"outcome",
     "of a job: `ok`, `mismatch` (ran, but failed its verification), `cancelled`, `deadline`, "
     "`time_limit`, `fault`, `worker_lost`, `unavailable`, `invalid`, `error`; of a compile: `ok`, "
     "`failed` (the source does not compile), `time`, `memory`, `crashed`, `output`, `cancelled`, "
     "`lost`"},
    {"part", "files that are read again on demand: `tokens`, `certificates`"},
    {"phase",
     "`received` (the request and its inputs), `queued`, `input_copied`, `launched` (first launch "
     "to the return of the last), `finished` (the device's work, first start to last end), "
     "`verified`, `output_copied`"},
    {"partition", "`mig`, `mps` where the device is a part of a GPU, else empty"},
    {"reason",
     "of a rejection: a reason or a status code of the contract in lower case, "
     "`queue_full`; of a restart: `exit`, `signal`, `hang`, `protocol`, "
     "`time_limit`, `deadline` (the call's own), `cancelled` (the call was, and its launch went "
     "on), `restart` (an operator asked), else `other`; of the end of a process for submitted code "
     "also `retired` (it was of no more use); of a clock: `gpu_idle`, `applications_clocks`, "
     "`sw_power_cap`, "
     "`hw_slowdown`, `sync_boost`, `sw_thermal_slowdown`, `hw_thermal_slowdown`, `hw_power_brake`, "
     "`display_clock`"},
    {"result",
     "`accepted`, `rejected_total` (the server has too many), `rejected_peer` (this peer "
     "has), `rejected_descriptors` (too few file descriptors are left), `cut_off_headers` "
     "(accepted, then closed for headers of a call that were far too long), `cut_off_calls` (the "
     "same, for calls that it began faster than they could be done with, or messages that it did "
     "not end)"},
    {"revision", "commit of the sources, empty if unknown"},
    {"state",
     "of a worker: `starting`, `ready`, `busy`, `dead`, `quarantined`; of memory: `total`, `used`"},
    {"timing",
     "a method of timing: `isolated`, `device_time`, `back_to_back`, `host_no_sync`, `host_sync`, "
     "`event_pair`"},
    {"uuid", "the GPU's own id, empty on a CPU"},
    {"variant", "a variant that GetKernel shows, else `other`"},
    {"version", "version of Gridclock"},
};

}  // namespace

std::span<const MetricSpec> MetricSpecs() {
  return kTable;
}
const MetricSpec& SpecOf(Metric metric) {
  return kTable[static_cast<int>(metric)];
}
std::span<const LabelSpec> LabelSpecs() {
  return kLabels;
}

absl::string_view TypeName(MetricType type) {
  switch (type) {
    case kCounter:
      return "counter";
    case kGauge:
      return "gauge";
    case kHistogram:
      return "histogram";
  }
  return "";
}

}  // namespace gridclock
