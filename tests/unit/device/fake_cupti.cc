#include "tests/unit/device/fake_cupti.h"

#include <cstring>

namespace {

gridclock::FakeCupti& Fake() {
  return *TheFakeCupti();
}

std::size_t SizeOf(const CUpti_Activity* record) {
  switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return sizeof(CUpti_ActivityKernel10);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return sizeof(CUpti_ActivityMemcpy6);
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return sizeof(CUpti_ActivityMemset4);
    default:
      return sizeof(CUpti_ActivityExternalCorrelation);
  }
}

}  // namespace

extern "C" {

gridclock::FakeCupti* TheFakeCupti() {
  static gridclock::FakeCupti fake;
  return &fake;
}

CUptiResult cuptiGetVersion(std::uint32_t* version) {
  *version = Fake().version;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetResultString(CUptiResult, const char** text) {
  *text = "refused by the fake";
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                           CUpti_BuffersCallbackCompleteFunc complete) {
  Fake().request = request;
  Fake().complete = complete;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
  if (kind == Fake().refused) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  Fake().enabled.insert(kind);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) {
  if (kind == Fake().kept) return CUPTI_ERROR_UNKNOWN;
  Fake().enabled.erase(kind);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityFlushAll(std::uint32_t) {
  if (Fake().pending.empty()) return CUPTI_SUCCESS;
  std::uint8_t* buffer = nullptr;
  std::size_t size = 0, most = 0, used = 0;
  Fake().request(&buffer, &size, &most);
  for (const auto& record : Fake().pending) {
    std::memcpy(buffer + used, record.data(), record.size());
    used += record.size();
  }
  Fake().pending.clear();
  Fake().complete(nullptr, 0, buffer, size, used);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t valid,
                                       CUpti_Activity** record) {
  auto* next =
      *record == nullptr ? buffer : reinterpret_cast<std::uint8_t*>(*record) + SizeOf(*record);
  if (next >= buffer + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(next);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, std::uint32_t, std::size_t* dropped) {
  *dropped = Fake().dropped;
  Fake().dropped = 0;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind,
                                                   std::uint64_t id) {
  Fake().id = id;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind, std::uint64_t*) {
  Fake().id = 0;
  return CUPTI_SUCCESS;
}

}  // extern "C"
