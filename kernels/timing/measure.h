// The timing engine: warm up until flat, sample until a rule says stop, tell what the numbers are
// worth. For any Device. docs/timing.md explains the rules.
#ifndef GRIDCLOCK_KERNELS_TIMING_MEASURE_H_
#define GRIDCLOCK_KERNELS_TIMING_MEASURE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "kernels/device/device.h"
#include "proto/types/measure.h"

namespace gridclock {

// Where it is written that a launch, or a batch that is timed as one, is under way, for whoever
// ends what never ends. Written outside of what is timed.
struct LaunchWatch {
  const Clock& clock;
  std::atomic<std::int64_t>& since_ns;  // By the clock; 0 between launches.
};

// Around each launch that becomes a sample, outside the timed window: `before` in place of
// Target::prepare.
struct SampleSteps {
  std::function<absl::Status()> before, after;
};

// What is measured, and what one launch of it moves and computes.
struct Target {
  // One launch. It may be asynchronous; the device waits for its end.
  absl::FunctionRef<absl::Status()> launch;
  // Before every launch, outside the timed window: in-place and inout buffers get the submitted
  // values back, outputs that will be checked are poisoned.
  absl::FunctionRef<absl::Status()> prepare;
  Work work = {};
  const LaunchWatch* watch = nullptr;  // Null: nobody watches.
  const SampleSteps* steps = nullptr;  // Null: samples are launches like others.
};

// What ends a measurement from outside, and who watches it.
struct Surroundings {
  const Clock& clock;
  absl::Time deadline = absl::InfiniteFuture();
  absl::Duration kernel_time_limit = absl::InfiniteDuration();  // Of all launches together.
  // Asked between launches: true ends the measurement. Must be cheap.
  absl::FunctionRef<bool()> cancelled;
  // Asked behind `cancelled`, which may be what hears of it: true ends sampling as its budget does,
  // for others wait. Once true it stays so.
  absl::FunctionRef<bool()> yields;
  // Samples as they are taken, each once and in order, about every 50 ms; `first` is the index of
  // the first. While warming up: one per window, its median.
  absl::FunctionRef<void(std::int64_t first, std::span<const double> samples, bool warmup)>
      on_samples;
};

struct Measurement {
  Timing timing;            // At least one sample.
  std::vector<Flag> flags;  // Ascending, each once.
  std::int64_t launches = 0;
  std::vector<Launch> kernels;  // What one launch ran on the device, where a method told it.
  std::int64_t copies = 0;      // How many of those were copies.
  // Of all launches, CLOCK_MONOTONIC.
  std::int64_t first_start_ns = 0, last_return_ns = 0, last_end_ns = 0;
  // Why it was interrupted: CANCELLED, or DEADLINE_EXCEEDED (reason KERNEL_TIME_LIMIT or
  // WORK_TIME_LIMIT where it was that). OK otherwise. The timing holds what was measured until
  // then.
  absl::Status interruption;
};

// One launch, timed by the isolated method: stop SINGLE_LAUNCH, no interval; NOISY and SUSPECT do
// not apply. The device's conditions are not observed: that takes longer than a small kernel. By
// plain events on a device that is used bare, under a profiler; by the host's clock where the
// launch waited for the device, which the first of a library's may: both are flagged
// TEACHING_METHOD.
absl::StatusOr<Measurement> LaunchOnce(Device& device, const Target& target);

// INVALID_ARGUMENT if the device does not have the method, or if back to back launches are asked to
// find a cold cache, which only the first of them could; the launch's own error if one fails.
absl::StatusOr<Measurement> Measure(Device& device, const MeasureOptions& options,
                                    const Target& target, const Surroundings& surroundings);

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_TIMING_MEASURE_H_
