// How the CUDA device times a launch.
#include <algorithm>
#include <array>

#include <time.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "kernels/device/cuda/cuda_error.h"
#include "kernels/device/cuda/gpu_device.h"

namespace gridclock {
namespace {

std::int64_t NowNs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
}

std::string Words(std::span<const Launch> kernels) {
  return absl::StrJoin(kernels, ", ", [](std::string* out, const Launch& kernel) {
    absl::StrAppend(out, kernel.count, " x '", kernel.name, "'");
  });
}

}  // namespace

void GpuDevice::NewLaunch() {
  slope_.Forget();
  ran_.clear();
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
  timed.host_start_ns = NowNs();
  // A launch that the runtime refused need not say so: its time would be that of nothing, and its
  // error that of the next one.
  const auto checked = [&]() -> absl::Status {
    const absl::Status launched = launch();
    timed.host_returned_ns = NowNs();
    const cudaError_t left = cudaGetLastError();
    return launched.ok() || IsSticky(left) ? CudaStatus(left, "launch") : launched;
  };
  const auto ns = TimeBy(method, checked, &timed);
  timed.host_end_ns = NowNs();
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
  const std::int64_t start = NowNs();
  const absl::Status launched = launch();
  const std::int64_t returned = NowNs();
  GC_RETURN_IF_ERROR(Synchronize());
  const std::int64_t end = NowNs();
  GC_RETURN_IF_ERROR(launched);
  return static_cast<double>((synchronise ? end : returned) - start);
}

// A launch of several kernels is queued behind the blocking kernel, or the host's pace between them
// would be in the span; one of a single kernel is not, as there is nothing between.
absl::StatusOr<double> GpuDevice::DeviceTime(absl::FunctionRef<absl::Status()> launch,
                                             TimedLaunch* timed) {
  const auto run = [&](Cupti::Launch marked) {
    const bool several = ran_.size() > 1 || (!ran_.empty() && ran_[0].count > 1);
    if (several) return timer_->RunBlocked(marked);
    const absl::Status launched = marked();
    GC_RETURN_IF_ERROR(Synchronize());
    return launched;
  };
  GC_ASSIGN_OR_RETURN(const std::vector<DeviceActivity> ran, cupti_->Record(launch, run));
  timed->kernels = SummariseActivities(ran);
  timed->copies = CopiesAmong(ran);
  if (!ran_.empty() && !SameLaunches(ran_, timed->kernels)) {
    return WithReason(absl::UnavailableError(absl::StrCat("CUPTI recorded ", Words(timed->kernels),
                                                          " of this launch, ", Words(ran_),
                                                          " of the one before: not trusted")),
                      "RECORD_LOST");
  }
  ran_ = timed->kernels;
  const double ns = choice_.TimeOf(ran);
  timed->provisional = !choice_.Take(ran);
  return ns;
}

absl::Status GpuDevice::SetRecording(std::optional<KernelRecords> wanted) {
  if (cupti_ == nullptr || (wanted && cupti_->enabled() == wanted)) return absl::OkStatus();
  GC_RETURN_IF_ERROR(cupti_->Disable());
  return wanted ? cupti_->Enable(*wanted) : absl::OkStatus();
}

}  // namespace gridclock
