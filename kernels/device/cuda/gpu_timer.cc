#include "kernels/device/cuda/gpu_timer.h"

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace gridclock {

absl::StatusOr<GpuTimer> GpuTimer::Create(const Options& options) {
  GC_ASSIGN_OR_RETURN(CudaEvent start, MakeEvent());
  GC_ASSIGN_OR_RETURN(CudaEvent end, MakeEvent());
  GpuTimer timer(options, std::move(start), std::move(end));
  if (options.blocker) {
    GC_ASSIGN_OR_RETURN(timer.blocker_, Blocker::Create());
    // The first launch of a kernel may load it; the next must not.
    GC_RETURN_IF_ERROR(timer.RunBlocked([] { return absl::OkStatus(); }));
  }
  return timer;
}

absl::Status GpuTimer::Queue(Launch launch) {
  GC_RETURN_IF_CUDA_ERROR(cudaEventRecord(start_.get(), options_.stream), "record an event");
  GC_RETURN_IF_ERROR(launch());
  return CudaStatus(cudaEventRecord(end_.get(), options_.stream), "record an event");
}

absl::StatusOr<double> GpuTimer::ElapsedNs() {
  float milliseconds = 0;
  GC_RETURN_IF_CUDA_ERROR(cudaEventElapsedTime(&milliseconds, start_.get(), end_.get()),
                          "read the time between two events");
  return 1e6 * static_cast<double>(milliseconds);
}

absl::StatusOr<double> GpuTimer::EventPair(Launch launch) {
  const absl::Status queued = Queue(launch);
  GC_RETURN_IF_ERROR(WaitStatus(cudaStreamSynchronize(options_.stream), "wait for the launch"));
  GC_RETURN_IF_ERROR(queued);
  return ElapsedNs();
}

absl::StatusOr<double> GpuTimer::Isolated(Launch launch) {
  GC_RETURN_IF_ERROR(RunBlocked([&] { return Queue(launch); }));
  return ElapsedNs();
}

absl::Status GpuTimer::RunBlocked(Launch launch) {
  GC_RETURN_IF_ERROR(blocker_->Close(options_.stream, options_.block_limit_ns));
  absl::Cleanup open = [this] { blocker_->Open(); };
  const absl::Status queued = launch();
  std::move(open).Invoke();
  GC_RETURN_IF_ERROR(WaitStatus(cudaStreamSynchronize(options_.stream), "wait for the launch"));
  GC_RETURN_IF_ERROR(queued);
  if (!blocker_->TimedOut()) return absl::OkStatus();
  return WithReason(
      absl::AbortedError(absl::StrCat(
          "the launch was not queued within ", options_.block_limit_ns / 1'000'000,
          " ms: it waited for the device, which was held back until then, so it was not timed. The "
          "first launch of a library's kernel loads it; call again, or use method event_pair")),
      "LAUNCH_WAITED");
}

}  // namespace gridclock
