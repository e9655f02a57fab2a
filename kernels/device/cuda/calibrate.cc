#include "kernels/device/cuda/calibrate.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "kernels/device/cuda/device_kernels.h"
#include "kernels/device/cuda/handles.h"

namespace gridclock {
namespace {

constexpr int kLaunches = 101;
constexpr int kSlopes = 11;
constexpr int kPasses = 5;       // Of what the best is taken.
constexpr int kCopies = 9;       // Series of copies from the host, each of memory of its own.
constexpr int kRecordPairs = 6;  // Half of them with the serial ones first, should the clock move.
// Of a quarter of the L2, by 2^11 blocks, of which both kinds of records tell the same.
constexpr int kSweeps = 4, kSweepSms = 512;

cudaStream_t StreamOf(Device& device) {
  return static_cast<cudaStream_t>(device.stream());
}

double MedianOf(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// To a quarter of a per cent, as what is measured is never the same twice.
bool StandsStill(std::span<const double> clocks) {
  const auto [low, high] = std::minmax_element(clocks.begin(), clocks.end());
  return *high - *low <= 0.0025 * *low;
}

// Works until the clock stands still, and says whether it did within half a second; 0.1 s where the
// clock cannot be known.
absl::StatusOr<bool> SpinUp(Device& device, void* memory, std::uint64_t bytes, int sms) {
  constexpr std::int64_t kWindowNs = 20'000'000, kLimitNs = 500'000'000;
  const std::int64_t end = MonotonicNs() + kLimitNs;
  std::vector<double> clocks;
  while (MonotonicNs() < end) {
    const std::int64_t window_end = MonotonicNs() + kWindowNs;
    while (MonotonicNs() < window_end) {
      GC_RETURN_IF_CUDA_ERROR(LaunchSweepWrite(memory, bytes, sms, StreamOf(device)),
                              "warm the device up");
      GC_RETURN_IF_ERROR(device.Synchronize());
    }
    clocks.push_back(device.ClockHz());
    if (clocks.size() >= 5 && StandsStill(std::span(clocks).last(3))) return true;
  }
  return false;
}

// 0 where the device has no such method.
absl::StatusOr<double> MedianBy(Device& device, Method method,
                                absl::FunctionRef<absl::Status()> launch) {
  const auto methods = device.methods();
  if (std::find(methods.begin(), methods.end(), method) == methods.end()) return 0.0;
  device.NewLaunch();
  // Loads it, where that was not done before.
  GC_RETURN_IF_ERROR(device.Time(Method::kEventPair, launch).status());
  const int launches = method == Method::kBackToBack ? kSlopes : kLaunches;
  std::vector<double> times;
  for (int i = 0; i < launches; ++i) {
    GC_ASSIGN_OR_RETURN(const TimedLaunch timed, device.Time(method, launch));
    times.push_back(timed.duration_ns);
  }
  device.NewLaunch();
  return MedianOf(std::move(times));
}

absl::StatusOr<double> TimeEmpty(Device& device, Method method) {
  return MedianBy(device, method,
                  [&] { return CudaStatus(LaunchEmpty(StreamOf(device)), "launch"); });
}

absl::Status MeasureEmpty(Device& device, GpuCalibration* calibration) {
  const std::pair<Method, double*> floors[] = {{Method::kIsolated, &calibration->isolated_ns},
                                               {Method::kBackToBack, &calibration->back_to_back_ns},
                                               {Method::kHostNoSync, &calibration->host_no_sync_ns},
                                               {Method::kHostSync, &calibration->host_sync_ns},
                                               {Method::kEventPair, &calibration->event_pair_ns},
                                               {Method::kDeviceTime, &calibration->device_time_ns}};
  for (const auto& [method, floor] : floors) {
    GC_ASSIGN_OR_RETURN(*floor, TimeEmpty(device, method));
  }
  return absl::OkStatus();
}

absl::Status MeasureKernels(Device& device, GpuCalibration* calibration) {
  const auto few = [&]() -> absl::Status {
    for (int i = 0; i < GpuCalibration::kFewKernels; ++i) {
      GC_RETURN_IF_CUDA_ERROR(LaunchEmpty(StreamOf(device)), "launch");
    }
    return absl::OkStatus();
  };
  GC_ASSIGN_OR_RETURN(calibration->isolated_kernels_ns, MedianBy(device, Method::kIsolated, few));
  GC_ASSIGN_OR_RETURN(calibration->device_time_kernels_ns,
                      MedianBy(device, Method::kDeviceTime, few));
  return absl::OkStatus();
}

// As large as the table of a list of a thousand tensors, in memory that the device reads itself.
absl::StatusOr<CopyTimes> TimeCopy(Device& device) {
  constexpr std::size_t kBytes = 48 << 10;
  void* memory = nullptr;
  GC_RETURN_IF_CUDA_ERROR(cudaHostAlloc(&memory, kBytes, cudaHostAllocDefault),
                          "page-locked memory to calibrate with");
  const CudaHostMemory from(memory);
  GC_ASSIGN_OR_RETURN(const auto to, device.Allocate(kBytes));
  const auto copy = [&]() -> absl::Status {
    const cudaStream_t stream = StreamOf(device);
    GC_RETURN_IF_CUDA_ERROR(
        cudaMemcpyAsync(to->data(), from.get(), kBytes, cudaMemcpyHostToDevice, stream), "copy");
    return CudaStatus(LaunchEmpty(stream), "launch");
  };
  CopyTimes times;
  GC_ASSIGN_OR_RETURN(times.isolated_ns, MedianBy(device, Method::kIsolated, copy));
  GC_ASSIGN_OR_RETURN(times.device_time_ns, MedianBy(device, Method::kDeviceTime, copy));
  return times;
}

// Where host memory lies and what the bus did before make it another each time.
absl::Status MeasureCopy(Device& device, GpuCalibration* calibration) {
  std::vector<CopyTimes> series(kCopies);
  for (CopyTimes& times : series) {
    GC_ASSIGN_OR_RETURN(times, TimeCopy(device));
  }
  const CopyTimes far = SecondFarthest(std::move(series));
  calibration->isolated_copy_ns = far.isolated_ns;
  calibration->device_time_copy_ns = far.device_time_ns;
  return absl::OkStatus();
}

// Nothing between the events; and the smallest difference between such times.
absl::Status MeasureEvents(GpuTimer& timer, GpuCalibration* calibration) {
  std::vector<double> times;
  for (int i = 0; i < 2 * kLaunches; ++i) {
    GC_ASSIGN_OR_RETURN(times.emplace_back(), timer.Isolated([] { return absl::OkStatus(); }));
  }
  calibration->empty_event_pair_ns = MedianOf(times);
  std::sort(times.begin(), times.end());
  double step = 0;
  for (std::size_t i = 1; i < times.size(); ++i) {
    const double difference = times[i] - times[i - 1];
    // Below a nanosecond it is the rounding of a float.
    if (difference >= 1 && (step == 0 || difference < step)) step = difference;
  }
  calibration->event_step_ns = step;
  return absl::OkStatus();
}

absl::Status MeasureTimerStep(Device& device, GpuCalibration* calibration) {
  GC_ASSIGN_OR_RETURN(const auto result, device.Allocate(sizeof(std::uint64_t)));
  GC_RETURN_IF_CUDA_ERROR(
      LaunchTimerStep(static_cast<std::uint64_t*>(result->data()), StreamOf(device)),
      "measure the device's timer");
  std::uint64_t step = 0;
  GC_RETURN_IF_ERROR(device.CopyOut(std::as_writable_bytes(std::span(&step, 1)), result->data()));
  GC_RETURN_IF_ERROR(device.Synchronize());
  calibration->device_timer_step_ns = static_cast<double>(step);
  return absl::OkStatus();
}

// Bytes per second of the best of some launches that move `bytes`.
absl::StatusOr<double> BestBandwidth(GpuTimer& timer, double bytes,
                                     absl::FunctionRef<cudaError_t()> launch) {
  const auto queue = [&] { return CudaStatus(launch(), "measure bandwidth"); };
  GC_RETURN_IF_ERROR(timer.EventPair(queue).status());
  double best = 0;
  for (int i = 0; i < kPasses; ++i) {
    GC_ASSIGN_OR_RETURN(const double ns, timer.Isolated(queue));
    best = std::max(best, 1e9 * bytes / std::max(ns, 1.0));
  }
  return best;
}

// The largest buffer that is had, from 1 GiB down.
absl::StatusOr<std::unique_ptr<DeviceBuffer>> LargeBuffer(Device& device) {
  absl::StatusOr<std::unique_ptr<DeviceBuffer>> buffer =
      absl::ResourceExhaustedError("no memory to measure bandwidth with");
  for (std::uint64_t bytes = std::uint64_t{1} << 30; bytes >= std::uint64_t{64} << 20; bytes /= 2) {
    buffer = device.Allocate(bytes);
    if (buffer.ok() || device.poisoned()) break;
  }
  return buffer;
}

void Raise(double measured, double* known) {
  *known = std::max(*known, measured);
}

absl::Status MeasureMemory(Device& device, GpuTimer& timer, const DeviceBuffer& buffer,
                           GpuCalibration* calibration) {
  auto* const data = static_cast<std::byte*>(buffer.data());
  const std::uint64_t half = buffer.size() / 2;
  const cudaStream_t stream = StreamOf(device);
  const int sms = static_cast<int>(device.info().units);
  GC_ASSIGN_OR_RETURN(const double copy, BestBandwidth(timer, static_cast<double>(2 * half), [&] {
                        return cudaMemcpyAsync(data + half, data, half, cudaMemcpyDeviceToDevice,
                                               stream);
                      }));
  GC_ASSIGN_OR_RETURN(const double read, BestBandwidth(timer, static_cast<double>(2 * half), [&] {
                        return LaunchSweepRead(data, 2 * half, 1, sms, stream);
                      }));
  Raise(copy, &calibration->copy_bandwidth);
  Raise(read, &calibration->read_bandwidth);
  return absl::OkStatus();
}

// What the cache holds whatever else is there: a quarter of it.
std::uint64_t L2Set(Device& device) {
  constexpr std::uint64_t kMultiple = 1024;
  return device.info().l2_bytes / 4 / kMultiple * kMultiple;
}

// On what the cache holds. Reads and writes go through it on ways of their own, so either a
// kernel that reads or one that copies may move more.
absl::Status MeasureL2(Device& device, GpuTimer& timer, const DeviceBuffer& buffer,
                       GpuCalibration* calibration) {
  constexpr int kRounds = 32;
  const std::uint64_t set = L2Set(device);
  if (set == 0 || set > buffer.size()) return absl::OkStatus();
  const cudaStream_t stream = StreamOf(device);
  const int sms = static_cast<int>(device.info().units);
  const double bytes = static_cast<double>(set) * kRounds;
  GC_ASSIGN_OR_RETURN(const double read, BestBandwidth(timer, bytes, [&] {
                        return LaunchSweepRead(buffer.data(), set, kRounds, sms, stream);
                      }));
  GC_ASSIGN_OR_RETURN(const double copy, BestBandwidth(timer, bytes, [&] {
                        return LaunchSweepCopy(buffer.data(), set, kRounds, sms, stream);
                      }));
  Raise(std::max(read, copy), &calibration->l2_bandwidth);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RecordPairs> MeasureRecordPairs(Device& device,
                                               absl::FunctionRef<void(KernelRecords)> use) {
  const auto pair = [&](bool serial_first,
                        absl::FunctionRef<absl::Status()> launch) -> absl::StatusOr<RecordPair> {
    RecordPair both;
    for (const bool serial : {serial_first, !serial_first}) {
      use(serial ? KernelRecords::kSerial : KernelRecords::kConcurrent);
      double& ns = serial ? both.serial_ns : both.concurrent_ns;
      GC_ASSIGN_OR_RETURN(ns, MedianBy(device, Method::kDeviceTime, launch));
    }
    return both;
  };
  const std::uint64_t bytes = L2Set(device);
  GC_ASSIGN_OR_RETURN(const auto buffer, device.Allocate(bytes));
  GC_RETURN_IF_ERROR(device.Fill(buffer->data(), std::byte{1}, bytes));
  const auto empty = [&] { return CudaStatus(LaunchEmpty(StreamOf(device)), "launch"); };
  const auto working = [&] {
    return CudaStatus(LaunchSweepRead(buffer->data(), bytes, kSweeps, kSweepSms, StreamOf(device)),
                      "launch");
  };
  RecordPairs pairs;
  for (int i = 0; i < kRecordPairs; ++i) {
    GC_ASSIGN_OR_RETURN(pairs.empty.emplace_back(), pair(i % 2 == 1, empty));
    GC_ASSIGN_OR_RETURN(pairs.working.emplace_back(), pair(i % 2 == 1, working));
  }
  return pairs;
}

absl::Status MeasureBandwidths(Device& device, GpuTimer& timer, GpuCalibration* calibration) {
  GC_ASSIGN_OR_RETURN(const auto buffer, LargeBuffer(device));
  GC_RETURN_IF_ERROR(device.Fill(buffer->data(), std::byte{1}, buffer->size()));
  if (SweepsMemory(buffer->size(), device.info().l2_bytes)) {
    GC_RETURN_IF_ERROR(MeasureMemory(device, timer, *buffer, calibration));
  }
  return MeasureL2(device, timer, *buffer, calibration);
}

absl::StatusOr<GpuCalibration> CalibrateGpu(Device& device, GpuTimer& timer) {
  GpuCalibration result;
  {
    GC_ASSIGN_OR_RETURN(const auto buffer, LargeBuffer(device));
    GC_ASSIGN_OR_RETURN(result.steady, SpinUp(device, buffer->data(), buffer->size(),
                                              static_cast<int>(device.info().units)));
  }
  GC_RETURN_IF_ERROR(MeasureBandwidths(device, timer, &result));
  GC_RETURN_IF_ERROR(MeasureTimerStep(device, &result));
  GC_RETURN_IF_ERROR(MeasureEvents(timer, &result));
  GC_RETURN_IF_ERROR(MeasureEmpty(device, &result));
  GC_RETURN_IF_ERROR(MeasureKernels(device, &result));
  GC_RETURN_IF_ERROR(MeasureCopy(device, &result));
  return result;
}

}  // namespace gridclock
