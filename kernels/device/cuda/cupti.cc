#include "kernels/device/cuda/cupti.h"

#include <algorithm>
#include <cstdlib>
#include <set>

#include <cuda_runtime_api.h>
#include <cupti.h>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "kernels/device/cuda/dynamic_library.h"

namespace gridclock {
namespace {

constexpr std::size_t kBufferBytes = 256 << 10;
constexpr CUpti_ExternalCorrelationKind kIdKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;
// Copies and fills, beside kernels; the calls that put them there; the marks that say by whom those
// were made.
constexpr CUpti_ActivityKind kKinds[] = {CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
                                         CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DRIVER,
                                         CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET};

CUpti_ActivityKind KindOf(KernelRecords kernels) {
  return kernels == KernelRecords::kSerial ? CUPTI_ACTIVITY_KIND_KERNEL
                                           : CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
}

struct Functions {
  decltype(&cuptiGetVersion) get_version = nullptr;
  decltype(&cuptiGetResultString) result_string = nullptr;
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks = nullptr;
  decltype(&cuptiActivityEnable) enable = nullptr;
  decltype(&cuptiActivityDisable) disable = nullptr;
  decltype(&cuptiActivityFlushAll) flush_all = nullptr;
  decltype(&cuptiActivityGetNextRecord) next_record = nullptr;
  decltype(&cuptiActivityGetNumDroppedRecords) dropped = nullptr;
  decltype(&cuptiActivityPushExternalCorrelationId) push_id = nullptr;
  decltype(&cuptiActivityPopExternalCorrelationId) pop_id = nullptr;

  bool complete() const {
    return get_version != nullptr && result_string != nullptr && register_callbacks != nullptr &&
           enable != nullptr && disable != nullptr && flush_all != nullptr &&
           next_record != nullptr && dropped != nullptr && push_id != nullptr && pop_id != nullptr;
  }
};

Functions FindFunctions(const DynamicLibrary& library) {
  Functions f;
  library.Find("cuptiGetVersion", &f.get_version);
  library.Find("cuptiGetResultString", &f.result_string);
  library.Find("cuptiActivityRegisterCallbacks", &f.register_callbacks);
  library.Find("cuptiActivityEnable", &f.enable);
  library.Find("cuptiActivityDisable", &f.disable);
  library.Find("cuptiActivityFlushAll", &f.flush_all);
  library.Find("cuptiActivityGetNextRecord", &f.next_record);
  library.Find("cuptiActivityGetNumDroppedRecords", &f.dropped);
  library.Find("cuptiActivityPushExternalCorrelationId", &f.push_id);
  library.Find("cuptiActivityPopExternalCorrelationId", &f.pop_id);
  return f;
}

struct Mark {
  std::uint64_t id = 0;
  std::uint32_t correlation = 0;
};

// What CUPTI handed over and nobody has taken yet. Its callbacks carry no pointer of ours, may run
// on a thread of its own, and the last may come when the process exits: hence the only global
// object here, which is never destroyed.
struct Sink {
  decltype(&cuptiActivityGetNextRecord) next_record = nullptr;  // Set before the first callback.
  Mutex mutex;
  std::vector<DeviceActivity> activities ABSL_GUARDED_BY(mutex);
  std::vector<Mark> marks ABSL_GUARDED_BY(mutex);
};

Sink& TheSink() {
  static Sink* const sink = new Sink;
  return *sink;
}

DeviceActivity FromKernel(const CUpti_ActivityKernel10& kernel) {
  DeviceActivity activity{.start_ns = kernel.start,
                          // Only this holds what the kernel itself launched; 0: not known.
                          .end_ns = std::max(kernel.end, kernel.completed),
                          .name = kernel.name == nullptr ? "" : kernel.name,
                          .correlation = kernel.correlationId};
  const std::int32_t grid[] = {kernel.gridX, kernel.gridY, kernel.gridZ};
  const std::int32_t block[] = {kernel.blockX, kernel.blockY, kernel.blockZ};
  for (int i = 0; i < 3; ++i) {
    activity.grid[i] = static_cast<std::uint32_t>(grid[i]);
    activity.block[i] = static_cast<std::uint32_t>(block[i]);
  }
  return activity;
}

template <typename Record>
DeviceActivity FromTransfer(const Record& record, ActivityKind kind, const char* name) {
  DeviceActivity activity{.start_ns = record.start,
                          .end_ns = record.end,
                          .name = name,
                          .correlation = record.correlationId};
  activity.kind = kind;
  return activity;
}

void Keep(Sink& sink, const CUpti_Activity* record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(sink.mutex) {
  switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      sink.activities.push_back(
          FromKernel(*reinterpret_cast<const CUpti_ActivityKernel10*>(record)));
      break;
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      sink.activities.push_back(FromTransfer(
          *reinterpret_cast<const CUpti_ActivityMemcpy6*>(record), ActivityKind::kCopy, "memcpy"));
      break;
    case CUPTI_ACTIVITY_KIND_MEMSET:
      sink.activities.push_back(FromTransfer(
          *reinterpret_cast<const CUpti_ActivityMemset4*>(record), ActivityKind::kFill, "memset"));
      break;
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: {
      const auto& mark = *reinterpret_cast<const CUpti_ActivityExternalCorrelation*>(record);
      if (mark.externalKind == kIdKind) sink.marks.push_back({mark.externalId, mark.correlationId});
      break;
    }
    default:
      break;
  }
}

void CUPTIAPI GiveBuffer(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records) {
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(ACTIVITY_RECORD_ALIGNMENT, kBufferBytes));
  *size = *buffer == nullptr ? 0 : kBufferBytes;
  *most_records = 0;
}

void CUPTIAPI TakeBuffer(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t,
                         std::size_t valid_bytes) {
  Sink& sink = TheSink();
  {
    MutexLock lock(sink.mutex);
    CUpti_Activity* record = nullptr;
    while (valid_bytes > 0 && sink.next_record(buffer, valid_bytes, &record) == CUPTI_SUCCESS) {
      Keep(sink, record);
    }
  }
  std::free(buffer);
}

absl::Status Lost(absl::string_view what) {
  return WithReason(absl::UnavailableError(what), "RECORD_LOST");
}

class LoadedCupti final : public Cupti {
 public:
  explicit LoadedCupti(const Functions& functions) : f_(functions) {}
  ~LoadedCupti() override { static_cast<void>(Disable()); }

  absl::Status Start() {
    TheSink().next_record = f_.next_record;
    return ToStatus(f_.register_callbacks(&GiveBuffer, &TakeBuffer), "register its callbacks");
  }

  absl::Status Enable(KernelRecords kernels) override {
    enabled_ = kernels;
    for (const CUpti_ActivityKind kind : Kinds(kernels)) {
      const absl::Status enabled = ToStatus(f_.enable(kind), absl::StrCat("enable kind ", kind));
      if (!enabled.ok()) {
        static_cast<void>(Disable());
        return enabled;
      }
      on_.push_back(kind);
    }
    return absl::OkStatus();
  }

  absl::Status Disable() override {
    enabled_ = std::nullopt;
    absl::Status first;
    on_.erase(std::remove_if(on_.begin(), on_.end(),
                             [&](CUpti_ActivityKind kind) {
                               const absl::Status off =
                                   ToStatus(f_.disable(kind), absl::StrCat("disable kind ", kind));
                               first.Update(off);
                               return off.ok();
                             }),
              on_.end());
    return first;
  }

  std::optional<KernelRecords> enabled() const override { return enabled_; }

  absl::StatusOr<std::vector<DeviceActivity>> Record(
      Launch launch, absl::FunctionRef<absl::Status(Launch)> run) override {
    const std::uint64_t id = ++last_id_;
    GC_RETURN_IF_ERROR(ToStatus(f_.flush_all(0), "hand over older records"));
    Clear();
    GC_RETURN_IF_ERROR(run([&]() -> absl::Status {
      GC_RETURN_IF_ERROR(ToStatus(f_.push_id(kIdKind, id), "mark a launch"));
      const absl::Cleanup pop = [this] { f_.pop_id(kIdKind, nullptr); };
      return launch();
    }));
    return Collect(id);
  }

 private:
  static std::vector<CUpti_ActivityKind> Kinds(KernelRecords kernels) {
    std::vector<CUpti_ActivityKind> kinds(std::begin(kKinds), std::end(kKinds));
    kinds.push_back(KindOf(kernels));
    return kinds;
  }

  absl::Status ToStatus(CUptiResult result, absl::string_view what) const {
    if (result == CUPTI_SUCCESS) return absl::OkStatus();
    const char* text = nullptr;
    f_.result_string(result, &text);
    return Lost(absl::StrCat("CUPTI could not ", what, ": ", text == nullptr ? "" : text, " (",
                             static_cast<int>(result), ")"));
  }

  void Clear() {
    Sink& sink = TheSink();
    MutexLock lock(sink.mutex);
    sink.activities.clear();
    sink.marks.clear();
  }

  // What was called under the mark `id`, as far as it was handed over.
  std::vector<DeviceActivity> Marked(std::uint64_t id) {
    Sink& sink = TheSink();
    MutexLock lock(sink.mutex);
    std::set<std::uint32_t> calls;
    for (const Mark& mark : sink.marks) {
      if (mark.id == id) calls.insert(mark.correlation);
    }
    std::vector<DeviceActivity> ours;
    for (const DeviceActivity& activity : sink.activities) {
      if (calls.count(activity.correlation) != 0) ours.push_back(activity);
    }
    return ours;
  }

  absl::StatusOr<std::vector<DeviceActivity>> Collect(std::uint64_t id) {
    // The work is done, and so are its records, unless CUPTI's own thread has one in hand.
    constexpr int kTries = 4;
    std::vector<DeviceActivity> ours;
    for (int i = 0; i < kTries && ours.empty(); ++i) {
      if (i > 0) absl::SleepFor(absl::Milliseconds(1));
      GC_RETURN_IF_ERROR(ToStatus(f_.flush_all(0), "hand over records"));
      ours = Marked(id);
    }
    std::size_t dropped = 0;
    GC_RETURN_IF_ERROR(ToStatus(f_.dropped(nullptr, 0, &dropped), "count lost records"));
    if (dropped != 0) {
      return Lost(absl::StrCat("CUPTI lost ", dropped, " records"));
    }
    if (ours.empty()) {
      return WithReason(absl::NotFoundError("CUPTI has no record of anything that this launch ran"),
                        "NO_RECORD");
    }
    std::sort(ours.begin(), ours.end(), [](const DeviceActivity& a, const DeviceActivity& b) {
      return a.start_ns < b.start_ns;
    });
    for (const DeviceActivity& activity : ours) {
      if (activity.start_ns == 0 || activity.end_ns < activity.start_ns) {
        return Lost(absl::StrCat("CUPTI could not time '", activity.name, "' of this launch"));
      }
    }
    return ours;
  }

  const Functions f_;
  std::optional<KernelRecords> enabled_;
  std::vector<CUpti_ActivityKind> on_;
  std::uint64_t last_id_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Cupti>> Cupti::Load() {
  constexpr int kMajor = CUDART_VERSION / 1000;
  const std::string name = absl::StrCat("libcupti.so.", kMajor);
  auto library = DynamicLibrary::Open({ProgramFolder() + name, name,
                                       "/usr/local/cuda/extras/CUPTI/lib64/" + name,
                                       "/usr/local/cuda/lib64/" + name});
  GC_RETURN_IF_ERROR(library.status());
  const Functions functions = FindFunctions(*library);
  if (!functions.complete()) {
    return absl::FailedPreconditionError("CUPTI lacks functions of the activity interface");
  }
  // Records have the form of the header that this was compiled with in all versions of one major
  // number: what newer ones know more stands at their ends.
  std::uint32_t version = 0;
  if (functions.get_version(&version) != CUPTI_SUCCESS || version / 10000 != kMajor) {
    return absl::FailedPreconditionError(
        absl::StrCat("CUPTI has version ", version, ", want one of CUDA ", kMajor));
  }
  auto cupti = std::make_unique<LoadedCupti>(functions);
  GC_RETURN_IF_ERROR(cupti->Start());
  return cupti;
}

}  // namespace gridclock
