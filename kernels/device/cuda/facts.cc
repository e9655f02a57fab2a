#include "kernels/device/cuda/facts.h"

#include <cstdlib>

#include <cuda.h>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "base/status.h"
#include "kernels/device/cuda/cuda_error.h"

namespace gridclock {
namespace {

// Null if the driver has not got it. The driver's library is never linked.
template <typename Function>
Function* DriverFunction(const char* name, unsigned version) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult result{};
  const cudaError_t error =
      cudaGetDriverEntryPointByVersion(name, &function, version, cudaEnableDefault, &result);
  if (error != cudaSuccess || result != cudaDriverEntryPointSuccess) return nullptr;
  return reinterpret_cast<Function*>(function);
}

// "8e1c0d5c-...": in groups of 4, 2, 2, 2 and 6 bytes.
std::string UuidText(absl::string_view bytes) {
  const std::string hex = absl::BytesToHexString(bytes);
  const absl::string_view text(hex);
  return absl::StrCat(text.substr(0, 8), "-", text.substr(8, 4), "-", text.substr(12, 4), "-",
                      text.substr(16, 4), "-", text.substr(20));
}

// The runtime tells the UUID of the whole GPU, the driver that of the MIG instance, where it is
// one.
std::string Uuid(int ordinal, const cudaDeviceProp& properties) {
  const std::string whole = UuidText({properties.uuid.bytes, sizeof(properties.uuid.bytes)});
  const auto get_device = DriverFunction<CUresult(CUdevice*, int)>("cuDeviceGet", 2000);
  const auto get_uuid = DriverFunction<CUresult(CUuuid*, CUdevice)>("cuDeviceGetUuid", 11040);
  CUdevice device = 0;
  CUuuid own = {};
  if (get_device == nullptr || get_uuid == nullptr ||
      get_device(&device, ordinal) != CUDA_SUCCESS || get_uuid(&own, device) != CUDA_SUCCESS) {
    return "GPU-" + whole;
  }
  const std::string text = UuidText({own.bytes, sizeof(own.bytes)});
  return (text == whole ? "GPU-" : "MIG-") + text;
}

absl::Status NoDriver() {
  return WithReason(absl::FailedPreconditionError(
                        "this machine has no NVIDIA driver (libcuda.so.1 does not load)"),
                    "NO_DEVICE");
}

absl::Status NoDevice(absl::string_view wanted, const CudaDevices& there) {
  std::vector<std::string> names;
  for (const CudaDeviceFacts& device : there.devices) {
    names.push_back(
        absl::StrCat("cuda:", device.ordinal, " (", device.model, ", ", device.uuid, ")"));
  }
  return WithReason(absl::FailedPreconditionError(absl::StrCat(
                        "want ", wanted, ", there ",
                        names.empty() ? absl::StrCat("is no CUDA device: ", there.none.message())
                                      : absl::StrCat("is ", absl::StrJoin(names, ", ")))),
                    "NO_DEVICE");
}

// A kernel that is loaded when it is first launched waits for the device, which the blocking kernel
// may hold back just then. The driver reads this when it is first called.
void LoadEagerly() {
  setenv("CUDA_MODULE_LOADING", "EAGER", /*overwrite=*/1);
}

}  // namespace

int Attribute(cudaDeviceAttr attribute, int ordinal) {
  int value = 0;
  if (cudaDeviceGetAttribute(&value, attribute, ordinal) == cudaSuccess) return value;
  static_cast<void>(cudaGetLastError());  // Not an error of what is called next.
  return 0;
}

absl::StatusOr<CudaDeviceFacts> ReadFacts(int ordinal) {
  cudaDeviceProp properties;
  GC_RETURN_IF_CUDA_ERROR(cudaGetDeviceProperties(&properties, ordinal),
                          absl::StrCat("read the properties of cuda:", ordinal));
  return CudaDeviceFacts{.ordinal = ordinal,
                         .uuid = Uuid(ordinal, properties),
                         .model = properties.name,
                         .sm = 10 * properties.major + properties.minor,
                         .units = properties.multiProcessorCount,
                         .memory_bytes = properties.totalGlobalMem,
                         .l2_bytes = static_cast<std::uint64_t>(properties.l2CacheSize)};
}

CudaDevices ListCudaDevices() {
  LoadEagerly();
  if (DriverCuda().empty()) return {.devices = {}, .none = NoDriver()};
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  // Not an error of what is called next.
  static_cast<void>(cudaGetLastError());
  if (error != cudaSuccess) return {.devices = {}, .none = CudaStatus(error, "count CUDA devices")};
  CudaDevices result;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    auto facts = ReadFacts(ordinal);
    if (facts.ok()) {
      result.devices.push_back(*std::move(facts));
    } else {
      result.none = facts.status();
    }
  }
  if (result.devices.empty() && result.none.ok()) {
    result.none =
        WithReason(absl::FailedPreconditionError("the driver shows no device"), "NO_DEVICE");
  }
  return result;
}

absl::StatusOr<int> FindDevice(const CudaOptions& options) {
  const CudaDevices there = ListCudaDevices();
  for (const CudaDeviceFacts& device : there.devices) {
    if (options.uuid.empty() ? device.ordinal == options.ordinal : device.uuid == options.uuid) {
      return device.ordinal;
    }
  }
  return NoDevice(options.uuid.empty() ? absl::StrCat("cuda:", options.ordinal) : options.uuid,
                  there);
}

std::string DriverCuda() {
  int version = 0;
  if (cudaDriverGetVersion(&version) != cudaSuccess || version == 0) return "";
  return absl::StrCat(version / 1000, ".", version % 1000 / 10);
}

}  // namespace gridclock
