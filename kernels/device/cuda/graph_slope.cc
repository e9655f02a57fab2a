#include "kernels/device/cuda/graph_slope.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/device/device.h"

namespace gridclock {
namespace {

// So long that the step of events is no thousandth of the difference.
constexpr double kShortGraphNs = 200e3;
constexpr double kSurelyLongNs = 8 * kShortGraphNs;  // No host holds a launch up for so long.
constexpr std::int64_t kProbeLaunches = 16;
constexpr int kSingles = 3;
constexpr int kLongOverShort = 4;
// One to see how long it is; each graph once that does not count, and once that does.
static_assert(kFirstSlopeLaunches == 1 + 2 * (1 + kLongOverShort));
// Whoever watches for endless kernels sees all tries of a sample as one.
constexpr double kTriesNs = 1e9;
constexpr std::size_t kMostNodes = 4096;  // Of the short graph: the long one takes time to build.

}  // namespace

absl::StatusOr<double> GraphSlope::Sample(cudaStream_t stream, GpuTimer& timer,
                                          GpuTimer::Launch launch, std::int64_t* launches) {
  ran_ = 0;
  const absl::Cleanup tell = [this, launches] { *launches = ran_; };
  if (n_ == 0) GC_RETURN_IF_ERROR(Build(stream, timer, launch));
  // Something else on the GPU may hold up the short graph for longer than the long one takes.
  constexpr int kTries = 5;
  double taken_ns = 0;
  int tries = 0;
  while (tries < kTries && taken_ns < kTriesNs) {
    ++tries;
    GC_ASSIGN_OR_RETURN(const double of_short, Run(stream, timer, short_));
    GC_ASSIGN_OR_RETURN(const double of_long, Run(stream, timer, long_));
    if (of_long > of_short) {
      return (of_long - of_short) / static_cast<double>(long_.launches - short_.launches);
    }
    taken_ns += of_short + of_long;
  }
  return absl::AbortedError(absl::StrCat("back_to_back: ", long_.launches,
                                         " launches took no longer than ", short_.launches, ", ",
                                         tries, " times: the device is disturbed; call again"));
}

absl::StatusOr<GraphSlope::Captured> GraphSlope::Capture(cudaStream_t stream,
                                                         GpuTimer::Launch launch,
                                                         std::int64_t times) {
  GC_RETURN_IF_CUDA_ERROR(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
                          "capture launches into a graph");
  absl::Status launched;
  for (std::int64_t i = 0; i < times && launched.ok(); ++i) launched = launch();
  cudaGraph_t raw = nullptr;
  // Also after an error: the stream would go on capturing.
  const cudaError_t ended = cudaStreamEndCapture(stream, &raw);
  const CudaGraph graph(raw);
  // What the launch says of itself tells less: what it did made the graph impossible.
  if (IsCaptureError(ended)) {
    return CudaStatus(ended, absl::StrCat("back_to_back captures launches into a graph",
                                          launched.ok() ? "" : "; this one said '",
                                          launched.message(), launched.ok() ? "" : "'"));
  }
  if (!launched.ok()) {
    return Annotate(launched, "back_to_back captures launches into a graph; this one");
  }
  GC_RETURN_IF_CUDA_ERROR(ended, "back_to_back captures launches into a graph");
  Captured captured;
  captured.launches = times;
  GC_RETURN_IF_CUDA_ERROR(cudaGraphGetNodes(graph.get(), nullptr, &captured.nodes),
                          "count a graph's nodes");
  if (captured.nodes == 0) {
    return WithReason(
        absl::FailedPreconditionError(
            "back_to_back: the launch puts nothing on the device, so there is no time"),
        "NOT_CAPTURABLE");
  }
  cudaGraphExec_t exec = nullptr;
  GC_RETURN_IF_CUDA_ERROR(cudaGraphInstantiate(&exec, graph.get(), 0), "make a graph ready");
  captured.exec = CudaGraphExec(exec);
  GC_RETURN_IF_CUDA_ERROR(cudaGraphUpload(exec, stream), "upload a graph");
  return captured;
}

absl::StatusOr<double> GraphSlope::Run(cudaStream_t stream, GpuTimer& timer,
                                       const Captured& graph) {
  ran_ += graph.launches;
  return timer.Isolated(
      [&] { return CudaStatus(cudaGraphLaunch(graph.exec.get(), stream), "launch a graph"); });
}

absl::StatusOr<std::int64_t> GraphSlope::ChooseLength(cudaStream_t stream, GpuTimer& timer,
                                                      GpuTimer::Launch launch) {
  // The host's pace is in each of these: one that it held up must not make the graph of a short
  // kernel too short.
  double single = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kSingles; ++i) {
    ++ran_;
    GC_ASSIGN_OR_RETURN(const double ns, timer.EventPair(launch));
    single = std::min(single, ns);
    if (single < kShortGraphNs || single > kSurelyLongNs) break;
  }
  if (single >= kShortGraphNs) return 1;
  GC_ASSIGN_OR_RETURN(const Captured probe, Capture(stream, launch, kProbeLaunches));
  GC_RETURN_IF_ERROR(Run(stream, timer, probe).status());  // The first run is slower.
  GC_ASSIGN_OR_RETURN(const double probed, Run(stream, timer, probe));
  const auto most = static_cast<std::int64_t>(
      std::max<std::size_t>(1, kMostNodes * kProbeLaunches / probe.nodes));
  const double wanted = std::ceil(kShortGraphNs * kProbeLaunches / std::max(probed, 1.0));
  return std::clamp(static_cast<std::int64_t>(wanted), std::int64_t{1}, most);
}

absl::Status GraphSlope::Build(cudaStream_t stream, GpuTimer& timer, GpuTimer::Launch launch) {
  GC_ASSIGN_OR_RETURN(const std::int64_t n, ChooseLength(stream, timer, launch));
  GC_ASSIGN_OR_RETURN(short_, Capture(stream, launch, n));
  GC_ASSIGN_OR_RETURN(long_, Capture(stream, launch, kLongOverShort * n));
  GC_RETURN_IF_ERROR(Run(stream, timer, short_).status());
  GC_RETURN_IF_ERROR(Run(stream, timer, long_).status());
  n_ = n;
  return absl::OkStatus();
}

}  // namespace gridclock
