// How to measure, and what a measurement found. docs/timing.md explains each.
#ifndef GRIDCLOCK_PROTO_TYPES_MEASURE_H_
#define GRIDCLOCK_PROTO_TYPES_MEASURE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace gridclock {

// The numbers are those of gridclock.v1.Method.
enum class Method : std::uint8_t {
  kIsolated = 1,  // One launch at a time, from a quiet device to its end.
  kDeviceTime,    // The device's own record of the kernel (GPU only).
  kBackToBack,    // Slope over launches that follow each other without a gap (GPU only).
  kHostNoSync,    // Teaching: host clock around an asynchronous launch (GPU only).
  kHostSync,      // Teaching: host clock around launch and synchronise, first call included.
  kEventPair,     // Teaching: five warm-ups, plain timestamps, no check that anything is flat.
};
enum class L2State : std::uint8_t { kHot = 1, kColdClean, kColdDirty };
enum class StopReason : std::uint8_t {
  kSingleLaunch = 1,
  kInterval,
  kBudget,
  kMaxSamples,
  kSchedule,
  kInterrupted,
  kYielded
};
enum class Flag : std::uint8_t {
  kSuspect = 1,
  kImpossible,
  kThrottled,
  kSharedDevice,
  kNoisy,
  kInterrupted,
  kUnverified,
  kEmulated,
  kTeachingMethod
};
inline constexpr int kFlagCount = 9;

// wait, warmup, active, repeat: the schedule that users of profilers know. Replaces the stopping
// rule: `repeat` times (skip `wait` launches, run `warmup` uncounted, take `active` samples).
struct Schedule {
  std::int64_t wait = 0, warmup = 0, active = 0, repeat = 1;
  friend bool operator==(const Schedule&, const Schedule&) = default;
};

struct MeasureOptions {
  Method method = Method::kIsolated;
  L2State l2 = L2State::kHot;
  std::int64_t min_samples = 0;     // 0: as many as the device wants, at most max_samples.
  std::int64_t max_samples = 0;     // 1 .. 1,000,000. 0: see MostSamples.
  double relative_interval = 0.01;  // Stop when the median's interval is this narrow.
  double confidence = 0.95;
  absl::Duration budget = absl::Seconds(2);        // Of samples.
  absl::Duration warmup_limit = absl::Seconds(1);  // Warm-up ends when times are flat, or here.
  std::optional<Schedule> schedule;
  friend bool operator==(const MeasureOptions&, const MeasureOptions&) = default;
};
// max_samples, or where that is 0 1000, on a GPU 10,000, or min_samples if that is more.
std::int64_t MostSamples(const MeasureOptions& options, bool on_gpu);
// Of a request, before they become a Duration, which does not hold every number.
absl::Status CheckBudget(double seconds);
absl::Status CheckWarmupLimit(double seconds);
// INVALID_ARGUMENT that names the option, its bounds and what came.
absl::Status Validate(const MeasureOptions& options);

// Order statistics of the samples, in nanoseconds.
struct Statistics {
  double median = 0, min = 0, max = 0, q1 = 0, q3 = 0, mean = 0, stddev = 0;
  // Distribution-free confidence interval of the median; unset from too few samples.
  std::optional<double> ci_low, ci_high;
  std::optional<double> p99;  // From 459 samples on: fewer cannot tell it.
  friend bool operator==(const Statistics&, const Statistics&) = default;
};

// The median by another method, taken from the same kernel to hold the first one against it.
struct SecondOpinion {
  Method method = Method::kIsolated;
  double median_ns = 0;
  double slack_ns = 0;  // What several kernels or copies of a launch may have put between the two.
  friend bool operator==(const SecondOpinion&, const SecondOpinion&) = default;
};

// What a GPU said of itself at one moment; 0: it does not tell.
struct DeviceState {
  double sm_clock_hz = 0, memory_clock_hz = 0, power_watts = 0, temperature_celsius = 0;
  std::uint64_t memory_used_bytes = 0, memory_free_bytes = 0;  // By all processes, and by none.
  std::vector<std::string> clock_reasons;  // Why its clock was not higher: "sw_power_cap".
  friend bool operator==(const DeviceState&, const DeviceState&) = default;
};

struct Timing {
  Method method = Method::kIsolated;
  L2State l2 = L2State::kHot;
  StopReason stop = StopReason::kSingleLaunch;
  std::int64_t warmups = 0;
  bool warmup_flat = false;        // False: the limit ended it, or there was none.
  std::vector<double> samples_ns;  // In the order taken.
  Statistics statistics;
  std::optional<SecondOpinion> second;  // Where one was asked; SUSPECT says that they disagree.
  double method_floor_ns = 0;           // What an empty launch costs by this method on this device.
  double roofline_ns = 0;  // Physics: no run of these bytes and flops can be faster; 0: unknown.
  std::string roofline_basis;                // "bytes over 24.1 GB/s of memory, measured".
  std::optional<DeviceState> before, after;  // Of the measurement, where the device tells.
  bool sharing_unknown = false;  // Whether others computed on the device could not be told.
  // Of the cores, measured before the first sample and after the last; 0: unknown.
  double clock_before_hz = 0, clock_after_hz = 0;
};

enum class PhaseKind : std::uint8_t {
  kReceived = 1,  // First byte of the request decoded .. last byte of its inputs in memory.
  kQueued,        // Ready .. handed to the worker.
  kInputCopied,   // To the device; empty on the CPU device, which works in place.
  kLaunched,      // First launch (warm-up included) .. last launch returned.
  kFinished,      // Device work of this call, first start .. last end.
  kVerified,
  kOutputCopied,  // From the device, checksums included.
};
// Nanoseconds of the host's monotonic clock since the request arrived.
struct Phase {
  PhaseKind kind = PhaseKind::kReceived;
  std::int64_t start_ns = 0, end_ns = 0;
  friend bool operator==(const Phase&, const Phase&) = default;
};

// One kind of device kernel that the call launched.
struct Launch {
  std::string name;  // Demangled; on the CPU device "square/simd".
  std::uint32_t grid[3] = {1, 1, 1};
  std::uint32_t block[3] = {1, 1, 1};
  std::int64_t count = 0;
};

// Of a verification: these are named one by one, first_mismatch and the rest behind it.
inline constexpr std::size_t kMostNamedMismatches = 5;

struct Verification {
  std::int64_t checked = 0, total = 0;  // Elements.
  std::int64_t mismatches = 0;
  // Elements that passed under a tolerance so wide that zero would have passed too, or differ where
  // the order of the terms decides whether their sum overflows.
  std::int64_t undecided = 0;
  bool undecided_output = false;  // They are most of one output, however many others there are.
  std::int64_t apart = 0;         // Elements farther than twice the tolerance from what is wanted.
  bool alike_output = false;      // They are fewer than half of one output.
  double max_error = 0;           // Largest |got - want| / tolerance of the element; <= 1 passes.
  std::string first_mismatch;     // "y[3]: want 0.25, got 0.5, tolerance 1e-7"; "" if none.
  double max_abs = 0, max_rel = 0, max_ulp = 0;  // Where both are finite.
  std::int64_t nan_mismatches = 0;
  std::int64_t launches = 0, fresh_launches = 0;
  std::int64_t violations = 0;  // Of submitted code: writes where it may not write.
  std::string first_violation = {};
  std::vector<std::string> more_mismatches = {};  // Behind the first, in order of position.

  // What is known of other launches too.
  void Add(const Verification& other);
  // Behind those that are named already, if there is room.
  void NameMismatch(std::string text);
};

}  // namespace gridclock

#endif  // GRIDCLOCK_PROTO_TYPES_MEASURE_H_
