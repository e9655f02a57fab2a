#include "kernels/device/cuda/gpu_device.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "kernels/device/cpu/host.h"
#include "kernels/device/cuda/calibrate.h"
#include "kernels/device/cuda/cuda_error.h"
#include "kernels/device/cuda/cuda_module.h"
#include "kernels/device/cuda/device_kernels.h"
#include "kernels/device/cuda/facts.h"
#include "kernels/device/cuda/generate.h"
#include "kernels/device/cuda/gpu_conditions.h"

namespace gridclock {
namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
constexpr Method kAllMethods[] = {Method::kIsolated,   Method::kDeviceTime, Method::kBackToBack,
                                  Method::kHostNoSync, Method::kHostSync,   Method::kEventPair};

bool IsFault(const absl::Status& status) {
  const std::string reason = DetailsOf(status).reason;
  return reason == "KERNEL_FAULT" || reason == "DEVICE_FAULT";
}

const absl::Status& StatusOf(const absl::Status& status) {
  return status;
}
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& value) {
  return value.status();
}

// A process that is held up, or a record that comes late, spoils one launch and says nothing of the
// device for as long as it is served: it is asked again. What has failed for good is not.
template <typename Ask>
auto WithPatience(Ask ask) {
  constexpr int kTries = 3;
  auto answer = ask();
  for (int i = 1; i < kTries && !StatusOf(answer).ok() && !IsFault(StatusOf(answer)); ++i) {
    answer = ask();
  }
  return answer;
}

PinnedRange::Driver PinDriver() {
  return {.pin =
              [](std::span<std::byte> piece) {
                return CudaStatus(
                    cudaHostRegister(piece.data(), piece.size(), cudaHostRegisterDefault),
                    absl::StrCat("pin ", piece.size(), " bytes of host memory"));
              },
          .unpin = [](std::byte* piece) { static_cast<void>(cudaHostUnregister(piece)); }};
}

// Room is left for contexts of other processes and for what libraries take for themselves.
// `held` is what this process has of it.
absl::StatusOr<std::uint64_t> MemoryLimit(std::uint64_t wanted, std::uint64_t held) {
  std::size_t free = 0, total = 0;
  GC_RETURN_IF_CUDA_ERROR(cudaMemGetInfo(&free, &total), "ask how much memory is free");
  const std::uint64_t ours = free + held;
  const std::uint64_t most = ours > 2 * kGiB ? ours - kGiB : ours / 2;
  return wanted == 0 ? most : std::min<std::uint64_t>(wanted, most);
}

}  // namespace

GpuDevice::GpuDevice(const CudaOptions& options, Parts parts)
    : options_(options),
      ordinal_(parts.ordinal),
      facts_(std::move(parts.facts)),
      stream_(std::move(parts.stream)),
      threads_(options.threads == 0 ? ReadHostFacts().cpus : options.threads),
      memory_(PoolOptions()),
      choice_(NewChoice()) {}

DevicePool::Options GpuDevice::PoolOptions() {
  return {.limit =
              [this](std::uint64_t held) {
                // A device that cannot be asked is lost, and gives nothing more.
                return MemoryLimit(options_.memory_limit, held).value_or(held);
              },
          .take = [this](std::uint64_t bytes) { return TakeMemory(bytes); },
          .give_back = [](void* data) { static_cast<void>(cudaFree(data)); },
          .exact = options_.exact_memory};
}

// Null where there is no such memory.
void* GpuDevice::TakeMemory(std::uint64_t bytes) {
  void* data = nullptr;
  // The pool says it better, but that the device is lost.
  if (!Note(cudaMalloc(&data, bytes), "take device memory").ok()) return nullptr;
  if (options_.clear_memory &&
      !Note(cudaMemsetAsync(data, 0, bytes, stream_.get()), "clear device memory").ok()) {
    static_cast<void>(cudaFree(data));
    return nullptr;
  }
  return data;
}

// Another process that serves this device gives back what it kept once it is idle.
bool GpuDevice::MayGetMemory(std::uint64_t bytes) const {
  const std::uint64_t all =
      options_.memory_limit == 0 ? facts_.memory_bytes : options_.memory_limit;
  return !options_.bare && bytes <= all - std::min(all, memory_.used());
}

GpuDevice::~GpuDevice() {
  // Buffers must not be freed under work that uses them.
  static_cast<void>(cudaStreamSynchronize(stream_.get()));
}

absl::StatusOr<std::unique_ptr<GpuDevice>> GpuDevice::Make(const CudaOptions& options,
                                                           int ordinal) {
  GC_ASSIGN_OR_RETURN(CudaDeviceFacts facts, ReadFacts(ordinal));
  GC_RETURN_IF_ERROR(MemoryLimit(options.memory_limit, /*held=*/0).status());
  cudaStream_t stream = nullptr;
  GC_RETURN_IF_CUDA_ERROR(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
                          "create a stream");
  // No lines of the L2 are set aside for anybody. A GPU that has no such feature refuses.
  static_cast<void>(cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 0));
  static_cast<void>(cudaGetLastError());
  std::unique_ptr<GpuDevice> device(new GpuDevice(
      options, {.ordinal = ordinal, .facts = std::move(facts), .stream = CudaStream(stream)}));
  GC_RETURN_IF_ERROR(device->OpenTools());
  GC_RETURN_IF_ERROR(device->Settle(options.calibration));
  return device;
}

absl::Status GpuDevice::OpenTools() {
  auto nvml = OpenNvml(facts_.uuid);
  if (nvml.ok()) {
    nvml_ = *std::move(nvml);
    last_reading_ = nvml_->Read();
  }
  last_reading_ns_ = MonotonicNs();
  GC_ASSIGN_OR_RETURN(timer_,
                      GpuTimer::Create({.stream = stream_.get(), .blocker = !options_.bare}));
  OpenCupti();
  Describe();
  return absl::OkStatus();
}

void GpuDevice::OpenCupti() {
  if (options_.bare) return;
  auto cupti = Cupti::Load();
  if (!cupti.ok()) {
    no_cupti_ = absl::StrCat("no CUPTI: ", cupti.status().message());
    return;
  }
  cupti_ = *std::move(cupti);
  const auto proven = [this](KernelRecords records) {
    return WithPatience([&] { return ProveCupti(records); });
  };
  if (const absl::Status known = proven(KernelRecords::kConcurrent); !known.ok()) {
    DropCupti(known);
    return;
  }
  if (const absl::Status serial = proven(KernelRecords::kSerial); !serial.ok()) {
    RefuseSerial(serial.message());
  }
}

void GpuDevice::DropCupti(const absl::Status& why) {
  static_cast<void>(cupti_->Disable());
  cupti_ = nullptr;
  no_cupti_ = std::string(why.message());
  Log(LogLevel::kWarning, "no_device_time", {{"why", no_cupti_}});
}

// A record of a known launch must come back as that launch: then records are understood here.
absl::Status GpuDevice::ProveCupti(KernelRecords records) {
  GC_RETURN_IF_ERROR(cupti_->Enable(records));
  const absl::Cleanup disable = [this] { static_cast<void>(cupti_->Disable()); };
  const auto launch = [this] { return CudaStatus(LaunchMarker(stream_.get()), "launch"); };
  GC_ASSIGN_OR_RETURN(const auto activities, cupti_->Record(launch, [&](Cupti::Launch marked) {
    GC_RETURN_IF_ERROR(marked());
    return Synchronize();
  }));
  const DeviceActivity& first = activities.front();
  const bool known = activities.size() == 1 && absl::StrContains(first.name, "MarkerKernel") &&
                     first.grid[0] == 3 && first.grid[1] == 2 && first.block[0] == 32 &&
                     first.block[1] == 5 && SpanNs(activities) < 1e6;
  if (known) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("CUPTI recorded a known launch as ", activities.size(),
                                             " with '", first.name, "' of ", first.grid[0], "x",
                                             first.grid[1], " blocks first: not trusted"));
}

absl::StatusOr<GpuCalibration> GpuDevice::Calibrate() {
  GC_ASSIGN_OR_RETURN(GpuCalibration result, CalibrateGpu(*this, *timer_));
  if (cupti_ == nullptr || only_records_) return result;
  // What one series refuses more of them may settle, together.
  RecordPairs pairs;
  const auto beyond = WithPatience([&]() -> absl::StatusOr<double> {
    GC_ASSIGN_OR_RETURN(const RecordPairs more, MeasureRecordPairs(*this, [&](KernelRecords kind) {
                          only_records_ = kind;
                        }));
    pairs.empty.insert(pairs.empty.end(), more.empty.begin(), more.empty.end());
    pairs.working.insert(pairs.working.end(), more.working.begin(), more.working.end());
    return SerialBeyond(pairs);
  });
  if (!beyond.ok()) {
    if (poisoned()) return beyond.status();
    // Where they could not be measured the next process may.
    if (!pairs.empty.empty()) result.serial = GpuCalibration::kSerialRefused;
    RefuseSerial(beyond.status().message());
    return result;
  }
  only_records_.reset();
  result.serial = GpuCalibration::kSerialTaken;
  result.serial_beyond_ns = *beyond;
  return result;
}

void GpuDevice::RefuseSerial(absl::string_view why) {
  only_records_ = KernelRecords::kConcurrent;
  no_serial_ = std::string(why);
  Log(LogLevel::kWarning, "no_serial_records", {{"why", no_serial_}});
}

absl::Status GpuDevice::Settle(const std::string& calibration) {
  if (options_.bare) return absl::OkStatus();
  absl::StatusOr<GpuCalibration> known = absl::NotFoundError("none was given");
  if (!calibration.empty()) known = GpuCalibrationFromText(calibration, facts_.uuid);
  // From a worker that had no CUPTI: its offsets would make every short time SUSPECT.
  if (known.ok() && cupti_ != nullptr && known->device_time_ns == 0) {
    known = absl::NotFoundError("without device time");
  }
  if (known.ok() && cupti_ != nullptr && !only_records_ && known->serial == 0) {
    known = absl::NotFoundError("without serial records");
  }
  if (known.ok() && cupti_ != nullptr && !only_records_ &&
      known->serial == GpuCalibration::kSerialRefused) {
    RefuseSerial("the process that calibrated this device could not trust them");
  }
  // From one that started on a crowded GPU.
  if (known.ok() && known->read_bandwidth == 0) {
    known = absl::NotFoundError("without the bandwidth of memory");
  }
  // Of another GPU, which had this name before: no use, and no reason to fail.
  if (absl::IsNotFound(known.status())) {
    Observe();  // The next one tells of the time from here on.
    known = WithPatience([this] { return Calibrate(); });
    if (!Note(known.status()).ok() && !poisoned() && cupti_ != nullptr) {
      // A device without its own record of time is better than none.
      DropCupti(known.status());
      Describe();
      known = WithPatience([this] { return Calibrate(); });
    }
    GC_RETURN_IF_ERROR(SetRecording(std::nullopt));
    doubt_ = CalibrationDoubt(Observe(), !known.ok() || known->steady);
    if (!doubt_.empty()) Log(LogLevel::kWarning, "doubtful_calibration", {{"why", doubt_}});
  }
  GC_ASSIGN_OR_RETURN(calibration_, std::move(known));
  NewLaunch();     // By these records.
  memory_.Trim();  // Measuring took much, and it may be long before a job does.
  Describe();
  return absl::OkStatus();
}

void GpuDevice::Describe() {
  const double clock = nvml_ == nullptr ? 0 : nvml_->max_sm_clock_hz();
  const double memory_clock = nvml_ == nullptr ? 0 : nvml_->max_memory_clock_hz();
  info_ = {.name = options_.name.empty() ? absl::StrCat("cuda:", ordinal_) : options_.name,
           .traits = {.kind = "cuda", .sm = facts_.sm},
           .model = facts_.model,
           .uuid = facts_.uuid,
           .level = "",
           .units = facts_.units,
           .memory_bytes = facts_.memory_bytes,
           .memory_bandwidth = calibration_.copy_bandwidth,
           .launch_floor_ns = calibration_.isolated_ns,
           .clock_step_ns = calibration_.event_step_ns,
           .host_memory = false,
           .l2_bytes = facts_.l2_bytes,
           .sm_clock_hz = clock > 0 ? clock : 1e3 * Attribute(cudaDevAttrClockRate, ordinal_),
           .memory_clock_hz = memory_clock > 0
                                  ? memory_clock
                                  : 1e3 * Attribute(cudaDevAttrMemoryClockRate, ordinal_),
           .driver = nvml_ == nullptr ? "" : nvml_->driver(),
           .cuda = DriverCuda(),
           .launch_offset_ns = calibration_.LaunchOffsetNs(),
           .kernel_offset_ns = calibration_.KernelOffsetNs(),
           .copy_offset_ns = calibration_.CopyOffsetNs(),
           .serial_record_offset_ns =
               cupti_ != nullptr && !only_records_ ? calibration_.serial_beyond_ns : 0,
           .empty_event_pair_ns = calibration_.empty_event_pair_ns,
           .device_timer_step_ns = calibration_.device_timer_step_ns,
           .l2_bandwidth = calibration_.l2_bandwidth,
           .partition = nvml_ == nullptr ? "" : nvml_->partition(),
           .pageable_access = Attribute(cudaDevAttrPageableMemoryAccess, ordinal_) != 0};
  info_.flop_rates = NominalFlopRates(facts_.sm, facts_.units, info_.sm_clock_hz);
  methods_.clear();
  for (const Method method : kAllMethods) {
    const std::string missing = WhyMissing(method);
    if (missing.empty()) methods_.push_back(method);
    info_.methods.push_back({.method = method,
                             .floor_ns = calibration_.FloorOf(method),
                             .missing = missing,
                             .note = NoteOn(method)});
  }
}

// Empty: the device has it.
std::string GpuDevice::WhyMissing(Method method) const {
  switch (method) {
    case Method::kHostNoSync:
    case Method::kHostSync:
    case Method::kEventPair:
      return "";
    case Method::kIsolated:
    case Method::kBackToBack:
      return options_.bare ? "the device is used bare: nothing is launched but what is asked for"
                           : "";
    case Method::kDeviceTime:
      return options_.bare ? "the device is used bare: CUPTI is left to the profiler" : no_cupti_;
  }
  return "unknown method";
}

std::string GpuDevice::NoteOn(Method method) const {
  std::vector<std::string> notes;
  if (method == Method::kDeviceTime && !no_serial_.empty()) {
    notes.push_back(
        absl::StrCat("kernels of 2^12 blocks or more read too long, up to a tenth: ", no_serial_));
  }
  if (!doubt_.empty()) notes.push_back(doubt_);
  return absl::StrJoin(notes, "; ");
}

// Every status passes here once: after a fault all that follows is that fault.
absl::Status GpuDevice::Note(absl::Status status) {
  if (status.ok()) return status;
  // The runtime would report it again as the error of what is launched next.
  const cudaError_t last = cudaGetLastError();
  if (IsSticky(last) && !IsFault(status)) status = CudaStatus(last, "run a kernel");
  if (IsFault(status) && fault_.ok()) fault_ = status;
  return status;
}

absl::Status GpuDevice::Note(cudaError_t error, absl::string_view what) {
  return error == cudaSuccess ? absl::OkStatus() : Note(CudaStatus(error, what));
}

absl::StatusOr<std::unique_ptr<DeviceBuffer>> GpuDevice::Allocate(std::uint64_t bytes) {
  GC_RETURN_IF_ERROR(fault_);
  auto buffer = memory_.Allocate(bytes);
  if (!buffer.ok()) GC_RETURN_IF_ERROR(fault_);  // It may have shown here.
  if (buffer.ok() || flush_ == nullptr) return buffer;
  // What empties the cache is made anew when it is asked for; nothing works on it between its uses.
  flush_ = nullptr;
  return memory_.Allocate(bytes);
}

absl::Status GpuDevice::RegisterHost(std::span<std::byte> memory) {
  GC_RETURN_IF_ERROR(fault_);
  auto range = std::make_unique<PinnedRange>(memory, PinDriver());
  // The first piece at once, so that a system that does not let us pin says so at the start.
  if (!memory.empty()) {
    GC_RETURN_IF_ERROR(Note(range->ForEachPiece(
        memory.data(), 1, [](std::size_t, std::size_t) { return absl::OkStatus(); })));
  }
  pinned_.push_back(std::move(range));
  return absl::OkStatus();
}

// Calls `copy` with offset and size of each part that can be copied at once.
absl::Status GpuDevice::CopyHost(const std::byte* host, std::size_t bytes,
                                 absl::FunctionRef<cudaError_t(std::size_t, std::size_t)> copy) {
  GC_RETURN_IF_ERROR(fault_);
  if (bytes == 0) return absl::OkStatus();
  const auto part = [&](std::size_t offset, std::size_t size) {
    return CudaStatus(copy(offset, size), "copy between host and device");
  };
  for (const auto& range : pinned_) {
    if (range->Contains(host, bytes)) return Note(range->ForEachPiece(host, bytes, part));
  }
  return Note(part(0, bytes));
}

absl::Status GpuDevice::CopyIn(void* to, std::span<const std::byte> from) {
  return CopyHost(from.data(), from.size(), [&](std::size_t offset, std::size_t size) {
    return cudaMemcpyAsync(static_cast<std::byte*>(to) + offset, from.data() + offset, size,
                           cudaMemcpyHostToDevice, stream_.get());
  });
}

absl::Status GpuDevice::CopyOut(std::span<std::byte> to, const void* from) {
  return CopyHost(to.data(), to.size(), [&](std::size_t offset, std::size_t size) {
    return cudaMemcpyAsync(to.data() + offset, static_cast<const std::byte*>(from) + offset, size,
                           cudaMemcpyDeviceToHost, stream_.get());
  });
}

absl::Status GpuDevice::Copy(void* to, const void* from, std::uint64_t bytes) {
  GC_RETURN_IF_ERROR(fault_);
  if (bytes == 0) return absl::OkStatus();
  return Note(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_.get()),
              "copy on the device");
}

absl::Status GpuDevice::Fill(void* to, std::byte value, std::uint64_t bytes) {
  GC_RETURN_IF_ERROR(fault_);
  if (bytes == 0) return absl::OkStatus();
  return Note(cudaMemsetAsync(to, static_cast<int>(value), bytes, stream_.get()),
              "fill device memory");
}

absl::Status GpuDevice::FillShared(std::uint32_t word) {
  GC_RETURN_IF_ERROR(fault_);
  return Note(LaunchFillShared(word, Attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, ordinal_),
                               static_cast<int>(facts_.units), stream_.get()),
              "fill shared memory");
}

absl::Status GpuDevice::Generate(const Generator& generator, DType dtype, std::int64_t first,
                                 std::int64_t count, void* to) {
  GC_RETURN_IF_ERROR(fault_);
  if (options_.bare) return CopyGenerated(generator, dtype, first, count, to);
  return Note(LaunchGenerate(generator, dtype, first, count, to, static_cast<int>(facts_.units),
                             stream_.get()),
              "make values on the device");
}

// Where nothing is launched but what is asked for.
absl::Status GpuDevice::CopyGenerated(const Generator& generator, DType dtype, std::int64_t first,
                                      std::int64_t count, void* to) {
  constexpr std::int64_t kPiece = 1 << 20;
  const std::int64_t size = SizeOf(dtype);
  std::vector<std::byte> piece(static_cast<std::size_t>(std::min(count, kPiece) * size));
  for (std::int64_t at = 0; at < count; at += kPiece) {
    const auto part =
        std::span(piece).first(static_cast<std::size_t>(std::min(kPiece, count - at) * size));
    GenerateBy(threads_, generator, dtype, first + at, part);
    GC_RETURN_IF_ERROR(CopyIn(static_cast<std::byte*>(to) + at * size, part));
    GC_RETURN_IF_ERROR(Synchronize());
  }
  return absl::OkStatus();
}

absl::Status GpuDevice::Synchronize() {
  GC_RETURN_IF_ERROR(fault_);
  GC_RETURN_IF_ERROR(Note(WaitStatus(cudaStreamSynchronize(stream_.get()), "wait for the device")));
  // Of a launch that was refused and did not say so: it must not be the error of the next one.
  return Note(cudaGetLastError(), "launch");
}

absl::StatusOr<std::unique_ptr<DeviceModule>> GpuDevice::LoadModule(
    std::span<const std::byte> cubin) {
  GC_RETURN_IF_ERROR(fault_);
  auto module = LoadCudaModule(cubin, ordinal_, stream_.get());
  if (!module.ok()) return Note(module.status());
  return module;
}

absl::Status GpuDevice::PrepareCache(L2State state) {
  GC_RETURN_IF_ERROR(fault_);
  if (state == L2State::kHot) return absl::OkStatus();
  if (flush_ == nullptr) {
    const std::uint64_t bytes = std::max<std::uint64_t>(2 * facts_.l2_bytes, 1 << 20) & ~15ULL;
    GC_ASSIGN_OR_RETURN(flush_, memory_.Allocate(bytes));
    GC_RETURN_IF_ERROR(Fill(flush_->data(), std::byte{1}, flush_->size()));
  }
  const auto sms = static_cast<int>(facts_.units);
  const cudaError_t swept =
      state == L2State::kColdDirty
          ? LaunchSweepWrite(flush_->data(), flush_->size(), sms, stream_.get())
          : LaunchSweepRead(flush_->data(), flush_->size(), 1, sms, stream_.get());
  GC_RETURN_IF_ERROR(Note(swept, "empty the cache"));
  return Synchronize();
}

Conditions GpuDevice::Observe() {
  if (nvml_ == nullptr) return {.sharing_unknown = true};
  const NvmlReading reading = nvml_->Read();
  const std::int64_t now = MonotonicNs();
  const Conditions conditions = CompareReadings(
      last_reading_, reading, static_cast<std::uint64_t>(now - last_reading_ns_), OwnPids());
  last_reading_ = reading;
  last_reading_ns_ = now;
  return conditions;
}

// What NVML tells stands still while the clock moves by a per cent. A step of the timer, which may
// be a microsecond, is a thousandth of the span. The timer goes on while another process has its
// turn, and the cycles may not: the highest count is the clock.
double GpuDevice::ClockHz() {
  constexpr std::uint64_t kLeastNs = 50'000;
  constexpr int kCounts = 3;
  const auto step = static_cast<std::uint64_t>(calibration_.device_timer_step_ns);
  double hertz = 0;
  for (int i = 0; i < kCounts && !options_.bare && fault_.ok(); ++i) {
    ClockCount count;
    const cudaError_t counted = CountClock(std::max(kLeastNs, 1000 * step), &count, stream_.get());
    if (!Note(counted, "count the clock").ok() || !Synchronize().ok()) return 0;
    hertz =
        std::max(hertz, 1e9 * static_cast<double>(count.cycles) / static_cast<double>(count.ns));
  }
  return hertz;
}

Device::Roofline GpuDevice::RooflineOf(const Work& work, L2State state) const {
  return GpuRoofline(calibration_, info_.flop_rates, facts_.l2_bytes, work, state);
}

Device::Roofline GpuDevice::RecheckRoofline(const Work& work, L2State state) {
  if (options_.bare || !SetRecording(std::nullopt).ok()) return RooflineOf(work, state);
  // If it cannot be measured now, for want of memory, what is known stands.
  if (Note(MeasureBandwidths(*this, *timer_, &calibration_)).ok()) Describe();
  return RooflineOf(work, state);
}

std::string GpuDevice::CalibrationText() const {
  return options_.bare || !doubt_.empty() ? "" : ToText(calibration_, facts_.uuid);
}

absl::StatusOr<std::unique_ptr<CudaDevice>> CudaDevice::Create(const CudaOptions& options) {
  GC_ASSIGN_OR_RETURN(const int ordinal, FindDevice(options));
  GC_RETURN_IF_CUDA_ERROR(cudaSetDevice(ordinal), absl::StrCat("use cuda:", ordinal));
  GC_RETURN_IF_CUDA_ERROR(cudaFree(nullptr), absl::StrCat("make a context on cuda:", ordinal));
  return GpuDevice::Make(options, ordinal);
}

}  // namespace gridclock
