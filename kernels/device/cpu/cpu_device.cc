#include "kernels/device/cpu/cpu_device.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <sched.h>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status.h"

namespace gridclock {
namespace {

constexpr int kMaxThreads = 1024;
constexpr std::int64_t kCopyGrain = 1 << 20;

double SmallestClockStep() {
  std::int64_t smallest = std::int64_t{1} << 30;
  for (int i = 0; i < 1000; ++i) {
    const std::int64_t start = MonotonicNs();
    std::int64_t next = start;
    while (next == start) next = MonotonicNs();
    smallest = std::min(smallest, next - start);
  }
  return static_cast<double>(smallest);
}

// Keeps the calling thread on one CPU, then lets it go where it could go before.
class PinnedTo {
 public:
  static absl::StatusOr<PinnedTo> Cpu(int cpu) {
    PinnedTo pinned;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(cpu), &one);
    if (sched_getaffinity(0, sizeof(cpu_set_t), &pinned.before_) != 0 ||
        sched_setaffinity(0, sizeof(one), &one) != 0) {
      return absl::UnavailableError(
          absl::StrCat("a cold cache needs to run on CPU ", cpu,
                       ", one of the affinity mask at the start: ", std::strerror(errno)));
    }
    pinned.holds_ = true;
    return pinned;
  }
  PinnedTo(PinnedTo&& from) noexcept
      : before_(from.before_), holds_(std::exchange(from.holds_, false)) {}
  PinnedTo& operator=(PinnedTo&&) = delete;
  ~PinnedTo() {
    if (holds_) sched_setaffinity(0, sizeof(before_), &before_);
  }

 private:
  PinnedTo() = default;
  cpu_set_t before_ = {};
  bool holds_ = false;
};

double MedianEmptyLaunch(Device& device) {
  constexpr std::size_t kLaunches = 301;
  std::vector<double> times;
  for (std::size_t i = 0; i < kLaunches; ++i) {
    const auto timed = device.Time(Method::kIsolated, [] { return absl::OkStatus(); });
    times.push_back(timed->duration_ns);
  }
  std::nth_element(times.begin(), times.begin() + kLaunches / 2, times.end());
  return times[kLaunches / 2];
}

}  // namespace

absl::StatusOr<std::unique_ptr<CpuDevice>> CpuDevice::Create(const Options& options) {
  if (options.threads < 0 || options.threads > kMaxThreads) {
    return absl::InvalidArgumentError(
        absl::StrCat("threads: want 0 to ", kMaxThreads, ", got ", options.threads));
  }
  const HostFacts host = ReadHostFacts();
  const int threads = options.threads == 0 ? host.cpus : options.threads;
  return std::unique_ptr<CpuDevice>(new CpuDevice(host, threads, options));
}

CpuDevice::CpuDevice(const HostFacts& host, int threads, const Options& options)
    : host_(host),
      threads_(threads),
      memory_({.limit = host.memory_bytes}),
      flush_plan_(PlanFlush(host_)),
      server_(options.server),
      counts_(ReadHostCounts(host_.mask, server_)) {
  if (options.calibration) {
    calibration_ = *options.calibration;
  } else if (options.calibrate) {
    calibration_ = Calibrate(host_, threads_);
  }
  info_.name = "cpu";
  info_.traits = {.kind = "cpu"};
  info_.model = host.model;
  info_.level = options.level;
  info_.units = threads;
  info_.memory_bytes = host.memory_bytes;
  info_.memory_bandwidth = MemoryBandwidth(calibration_);
  info_.launch_floor_ns = MedianEmptyLaunch(*this);
  info_.clock_step_ns = SmallestClockStep();
  for (const Method method : methods()) {
    info_.methods.push_back({.method = method, .floor_ns = info_.launch_floor_ns});
  }
}

absl::StatusOr<std::unique_ptr<DeviceBuffer>> CpuDevice::Allocate(std::uint64_t bytes) {
  return memory_.Allocate(bytes);
}

absl::Status CpuDevice::CopyIn(void* to, std::span<const std::byte> from) {
  return Copy(to, from.data(), from.size());
}

absl::Status CpuDevice::CopyOut(std::span<std::byte> to, const void* from) {
  return Copy(to.data(), from, to.size());
}

absl::Status CpuDevice::Copy(void* to, const void* from, std::uint64_t bytes) {
  threads_.ParallelFor(
      static_cast<std::int64_t>(bytes), kCopyGrain, [&](std::int64_t begin, std::int64_t end) {
        std::memcpy(static_cast<char*>(to) + begin, static_cast<const char*>(from) + begin,
                    static_cast<std::size_t>(end - begin));
      });
  return absl::OkStatus();
}

absl::Status CpuDevice::Fill(void* to, std::byte value, std::uint64_t bytes) {
  threads_.ParallelFor(static_cast<std::int64_t>(bytes), kCopyGrain,
                       [&](std::int64_t begin, std::int64_t end) {
                         std::memset(static_cast<char*>(to) + begin, static_cast<int>(value),
                                     static_cast<std::size_t>(end - begin));
                       });
  return absl::OkStatus();
}

absl::Status CpuDevice::Generate(const Generator& generator, DType dtype, std::int64_t first,
                                 std::int64_t count, void* to) {
  GenerateBy(threads_, generator, dtype, first,
             {static_cast<std::byte*>(to), static_cast<std::size_t>(count * SizeOf(dtype))});
  return absl::OkStatus();
}

std::span<const Method> CpuDevice::methods() const {
  static constexpr std::array kMethods{Method::kIsolated, Method::kHostSync, Method::kEventPair};
  return kMethods;
}

// A launch here ends with its work, so the three methods read the same clock at the same places.
// What tells the teaching methods apart is what the caller does before: warm-ups, or none.
absl::StatusOr<TimedLaunch> CpuDevice::Time(Method method,
                                            absl::FunctionRef<absl::Status()> launch) {
  const auto known = methods();
  if (std::find(known.begin(), known.end(), method) == known.end()) {
    return absl::InvalidArgumentError(
        "method: the cpu device can time by isolated, host_sync and event_pair; the others need a "
        "GPU");
  }
  TimedLaunch timed;
  timed.host_start_ns = MonotonicNs();
  const absl::Status status = launch();
  timed.host_end_ns = timed.host_returned_ns = MonotonicNs();
  GC_RETURN_IF_ERROR(status);
  timed.duration_ns = static_cast<double>(timed.host_end_ns - timed.host_start_ns);
  return timed;
}

absl::Status CpuDevice::MakeFlushBuffer() {
  std::uint64_t bytes = 0;
  for (const FlushShare& share : flush_plan_) bytes += share.bytes;
  GC_ASSIGN_OR_RETURN(flush_, memory_.Allocate(bytes));
  // Written once: pages that were only ever read are all the same page of zeros.
  return Fill(flush_->data(), std::byte{1}, flush_->size());
}

absl::Status CpuDevice::Flush(std::size_t share, bool write) {
  GC_ASSIGN_OR_RETURN(const PinnedTo pinned, PinnedTo::Cpu(flush_plan_[share].cpu));
  constexpr std::uint64_t kLine = 64;
  auto* bytes = static_cast<volatile char*>(flush_->data());
  for (std::size_t i = 0; i < share; ++i) bytes += flush_plan_[i].bytes;
  for (std::uint64_t i = 0; i < flush_plan_[share].bytes; i += kLine) {
    const char was = bytes[i];
    if (write) bytes[i] = static_cast<char>(was + 1);
  }
  return absl::OkStatus();
}

absl::Status CpuDevice::PrepareCache(L2State state) {
  if (state == L2State::kHot) return absl::OkStatus();
  if (flush_ == nullptr) GC_RETURN_IF_ERROR(MakeFlushBuffer());
  std::vector<absl::Status> done(flush_plan_.size());
  threads_.ParallelFor(
      static_cast<std::int64_t>(done.size()), 1, [&](std::int64_t begin, std::int64_t end) {
        for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
          done[i] = Flush(i, state == L2State::kColdDirty);
        }
      });
  for (const absl::Status& status : done) GC_RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

Conditions CpuDevice::Observe() {
  const HostCounts now = ReadHostCounts(host_.mask, server_);
  const Conditions conditions = Compare(counts_, now);
  counts_ = now;
  return conditions;
}

Device::Roofline CpuDevice::RooflineOf(const Work& work, L2State state) const {
  return RooflineFrom(calibration_, work, state);
}

Device::Roofline CpuDevice::RecheckRoofline(const Work& work, L2State state) {
  Remeasure(work, state, threads_, &calibration_);
  info_.memory_bandwidth = MemoryBandwidth(calibration_);
  return RooflineOf(work, state);
}

}  // namespace gridclock
