#include "kernels/worker/device_factory.h"

#include <google/protobuf/util/json_util.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "gridclock/worker/v1/worker.pb.h"
#include "kernels/device/cpu/cpu_device.h"
#include "kernels/device/cuda/cuda_device.h"

namespace gridclock {
namespace {

absl::StatusOr<MadeDevice> MakeCpu(const DeviceRequest& request) {
  CpuDevice::Options options{.threads = request.threads,
                             .level = request.level,
                             .calibrate = !request.bare,
                             .server = request.server};
  if (!request.calibration.empty()) {
    GC_ASSIGN_OR_RETURN(options.calibration, CalibrationFromText(request.calibration));
  }
  GC_ASSIGN_OR_RETURN(auto device, CpuDevice::Create(options));
  // Without levels there was no memory to measure with.
  const Calibration& measured = device->calibration();
  std::string calibration = measured.levels.empty() ? "" : ToText(measured);
  return MadeDevice{.device = std::move(device), .calibration = std::move(calibration)};
}

absl::StatusOr<MadeDevice> MakeCuda(const DeviceRequest& request, int ordinal) {
  GC_ASSIGN_OR_RETURN(auto device, CudaDevice::Create({.ordinal = ordinal,
                                                       .uuid = request.uuid,
                                                       .name = request.name,
                                                       .threads = request.threads,
                                                       .clear_memory = request.guest,
                                                       .calibration = request.calibration,
                                                       .bare = request.bare,
                                                       .exact_memory = request.bare}));
  std::string calibration = static_cast<const CudaDevice&>(*device).CalibrationText();
  return MadeDevice{.device = std::move(device), .calibration = std::move(calibration)};
}

std::string Line(const std::string& name, const std::string& kind, const std::string& uuid,
                 const std::string& model) {
  worker::v1::DeviceFacts facts;
  facts.set_name(name);
  facts.set_kind(kind);
  facts.set_uuid(uuid);
  facts.set_model(model);
  std::string line;
  // Fails for unknown extensions alone, which there are none of.
  (void)google::protobuf::util::MessageToJsonString(facts, &line);
  return line;
}

}  // namespace

bool IsCpu(absl::string_view device) {
  return device == "cpu";
}

std::string FirstDevice() {
  return ListCudaDevices().devices.empty() ? "cpu" : "cuda:0";
}

absl::StatusOr<MadeDevice> MakeDevice(const DeviceRequest& request) {
  if (IsCpu(request.name)) return MakeCpu(request);
  absl::string_view number = request.name;
  int ordinal = 0;
  if (absl::ConsumePrefix(&number, "cuda:") && absl::SimpleAtoi(number, &ordinal) && ordinal >= 0) {
    return MakeCuda(request, ordinal);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--device: want cpu or cuda:N, got '", request.name, "'"));
}

std::string DeviceLines(std::string* why_no_gpu) {
  std::string lines;
  const CudaDevices gpus = ListCudaDevices();
  for (const CudaDeviceFacts& gpu : gpus.devices) {
    absl::StrAppend(&lines, Line(absl::StrCat("cuda:", gpu.ordinal), "cuda", gpu.uuid, gpu.model),
                    "\n");
  }
  if (gpus.devices.empty()) *why_no_gpu = std::string(gpus.none.message());
  absl::StrAppend(&lines, Line("cpu", "cpu", "", ReadHostFacts().model), "\n");
  return lines;
}

}  // namespace gridclock
