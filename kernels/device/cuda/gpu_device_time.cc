// How the CUDA device times a launch.
#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status.h"
#include "kernels/device/cuda/cuda_error.h"
#include "kernels/device/cuda/gpu_device.h"

namespace gridclock {

void GpuDevice::NewLaunch() {
  slope_.Forget();
  list_ = LaunchList();
  choice_ = NewChoice();
}

RecordsChoice GpuDevice::NewChoice() const {
  return only_records_ ? RecordsChoice(*only_records_)
                       : RecordsChoice(calibration_.serial_beyond_ns);
}

absl::StatusOr<TimedLaunch> GpuDevice::Time(Method method,
                                            absl::FunctionRef<absl::Status()> launch) {
  GC_RETURN_IF_ERROR(fault_);
  if (std::find(methods_.begin(), methods_.end(), method) == methods_.end()) {
    return absl::InvalidArgumentError(absl::StrCat("method ", static_cast<int>(method), " on '",
                                                   info_.name, "': ", WhyMissing(method)));
  }
  GC_RETURN_IF_ERROR(SetRecording(method == Method::kDeviceTime ? std::optional(choice_.records())
                                                                : std::nullopt));
  TimedLaunch timed;
  timed.host_start_ns = MonotonicNs();
  // A launch that the runtime refused need not say so: its time would be that of nothing, and its
  // error that of the next one.
  const auto checked = [&]() -> absl::Status {
    const absl::Status launched = launch();
    timed.host_returned_ns = MonotonicNs();
    const cudaError_t left = cudaGetLastError();
    return launched.ok() || IsSticky(left) ? CudaStatus(left, "launch") : launched;
  };
  const auto ns = TimeBy(method, checked, &timed);
  timed.host_end_ns = MonotonicNs();
  if (method == Method::kBackToBack) timed.host_returned_ns = timed.host_end_ns;
  if (!ns.ok()) return Note(ns.status());
  timed.duration_ns = *ns;
  return timed;
}

absl::StatusOr<double> GpuDevice::TimeBy(Method method, absl::FunctionRef<absl::Status()> launch,
                                         TimedLaunch* timed) {
  switch (method) {
    case Method::kIsolated:
      return timer_->Isolated(launch);
    case Method::kDeviceTime:
      return DeviceTime(launch, timed);
    case Method::kBackToBack:
      return slope_.Sample(stream_.get(), *timer_, launch, &timed->launches);
    case Method::kHostNoSync:
      return HostTime(launch, /*synchronise=*/false);
    case Method::kHostSync:
      return HostTime(launch, /*synchronise=*/true);
    case Method::kEventPair:
      return timer_->EventPair(launch);
  }
  return absl::InvalidArgumentError("unknown method");
}

absl::StatusOr<double> GpuDevice::HostTime(absl::FunctionRef<absl::Status()> launch,
                                           bool synchronise) {
  const std::int64_t start = MonotonicNs();
  const absl::Status launched = launch();
  const std::int64_t returned = MonotonicNs();
  GC_RETURN_IF_ERROR(Synchronize());
  const std::int64_t end = MonotonicNs();
  GC_RETURN_IF_ERROR(launched);
  return static_cast<double>((synchronise ? end : returned) - start);
}

// A launch of several kernels is queued behind the blocking kernel, or the host's pace between them
// would be in the span; one of a single kernel is not, as there is nothing between.
absl::StatusOr<double> GpuDevice::DeviceTime(absl::FunctionRef<absl::Status()> launch,
                                             TimedLaunch* timed) {
  const auto run = [&](Cupti::Launch marked) {
    if (list_.has_several()) return timer_->RunBlocked(marked);
    const absl::Status launched = marked();
    GC_RETURN_IF_ERROR(Synchronize());
    return launched;
  };
  GC_ASSIGN_OR_RETURN(const std::vector<DeviceActivity> ran, cupti_->Record(launch, run));
  timed->kernels = SummariseActivities(ran);
  timed->copies = CopiesAmong(ran);
  GC_ASSIGN_OR_RETURN(const bool known, list_.Take(timed->kernels));
  const double ns = choice_.TimeOf(ran);
  timed->provisional = !known || !choice_.Take(ran);
  return ns;
}

absl::Status GpuDevice::SetRecording(std::optional<KernelRecords> wanted) {
  if (cupti_ == nullptr || (wanted && cupti_->enabled() == wanted)) return absl::OkStatus();
  GC_RETURN_IF_ERROR(cupti_->Disable());
  return wanted ? cupti_->Enable(*wanted) : absl::OkStatus();
}

}  // namespace gridclock
