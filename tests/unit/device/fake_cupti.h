// A CUPTI that hands over what a test puts in. It is a library of its own, as the real one is.
#ifndef GRIDCLOCK_TESTS_UNIT_DEVICE_FAKE_CUPTI_H_
#define GRIDCLOCK_TESTS_UNIT_DEVICE_FAKE_CUPTI_H_

#include <cstdint>
#include <set>
#include <vector>

#include <cuda_runtime_api.h>
#include <cupti.h>

namespace gridclock {

struct FakeCupti {
  std::uint32_t version = CUPTI_API_VERSION;
  std::size_t dropped = 0;
  std::set<CUpti_ActivityKind> enabled;
  CUpti_ActivityKind refused = CUPTI_ACTIVITY_KIND_INVALID;  // Cannot be enabled.
  CUpti_ActivityKind kept = CUPTI_ACTIVITY_KIND_INVALID;     // Cannot be disabled.
  std::uint64_t id = 0;                                      // That calls are marked with now.
  std::uint32_t last_correlation = 0;

  // A call under the present mark, if there is one, that runs a kernel.
  void Kernel(const char* name, std::uint64_t start, std::uint64_t end,
              std::uint64_t completed = CUPTI_TIMESTAMP_UNKNOWN) {
    MarkCall();
    CUpti_ActivityKernel10 record = {};
    record.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    record.correlationId = last_correlation;
    record.name = name;
    record.start = start;
    record.end = end;
    record.completed = completed;
    record.gridX = record.gridY = record.gridZ = 1;
    record.blockX = 32;
    record.blockY = record.blockZ = 1;
    Add(record);
  }
  void Fill(std::uint64_t start, std::uint64_t end) {
    MarkCall();
    CUpti_ActivityMemset4 record = {};
    record.kind = CUPTI_ACTIVITY_KIND_MEMSET;
    record.correlationId = last_correlation;
    record.start = start;
    record.end = end;
    Add(record);
  }

  void Copy(std::uint64_t start, std::uint64_t end) {
    MarkCall();
    CUpti_ActivityMemcpy6 record = {};
    record.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
    record.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
    record.correlationId = last_correlation;
    record.start = start;
    record.end = end;
    Add(record);
  }

  std::vector<std::vector<std::uint8_t>> pending;
  CUpti_BuffersCallbackRequestFunc request = nullptr;
  CUpti_BuffersCallbackCompleteFunc complete = nullptr;

 private:
  void MarkCall() {
    ++last_correlation;
    if (id == 0) return;
    CUpti_ActivityExternalCorrelation mark = {};
    mark.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
    mark.externalKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;
    mark.externalId = id;
    mark.correlationId = last_correlation;
    Add(mark);
  }
  template <typename Record>
  void Add(const Record& record) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(&record);
    pending.emplace_back(bytes, bytes + sizeof(record));
  }
};

}  // namespace gridclock

// The one of the loaded library.
extern "C" gridclock::FakeCupti* TheFakeCupti();

#endif  // GRIDCLOCK_TESTS_UNIT_DEVICE_FAKE_CUPTI_H_
