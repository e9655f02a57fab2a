#include "kernels/worker/bare.h"

#include <algorithm>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "kernels/worker/call_cache.h"
#include "kernels/worker/operands.h"
#include "kernels/worker/staging.h"

namespace gridclock {
namespace {

// Where a device works in the host's memory its operands need a place there.
absl::StatusOr<std::unique_ptr<DeviceBuffer>> HostMemory(Device& device, std::uint64_t bytes) {
  if (!device.uses_host_memory()) return nullptr;
  return device.Allocate(std::max(bytes, kTensorAlignment));
}

std::span<std::byte> Whole(const DeviceBuffer* buffer) {
  if (buffer == nullptr) return {};
  return {static_cast<std::byte*>(buffer->data()), static_cast<std::size_t>(buffer->size())};
}

absl::Status LaunchAndWait(const Variant& variant, const Call& call, Device& device) {
  absl::Status launched;
  try {
    launched = variant.launch(call);
  } catch (const std::bad_alloc&) {
    launched = absl::ResourceExhaustedError("out of memory");
  }
  const absl::Status ended = device.Synchronize();  // A fault shows here.
  return launched.ok() ? ended : launched;
}

absl::Status LaunchAll(const BoundCall& bound, Device& device, std::int64_t times) {
  const Call call{.binding = &bound.binding,
                  .inputs = bound.inputs,
                  .outputs = bound.outputs,
                  .scratch = bound.scratch,
                  .threads = device.threads(),
                  .stream = device.stream()};
  absl::Status status;
  for (std::int64_t i = 0; i < times && status.ok(); ++i) {
    status = LaunchAndWait(*bound.variant, call, device);
  }
  return Annotate(status, absl::StrCat("kernel '", bound.launch_name, "'"));
}

std::string SpecOf(const OperandValue& value) {
  return absl::StrJoin(value.tensors, " ", [](std::string* out, const TensorSpec& tensor) {
    out->append(ToText(tensor));
  });
}

// What ran, and what came of it.
struct Told {
  const Device& device;
  const BareOrder& order;
  std::string variant;
  std::vector<std::uint64_t> checksums;
  std::int64_t launches = 0;
};

std::string AsText(const Told& told) {
  std::string text = absl::StrCat(told.order.order.kernel, "/", told.variant, " on ",
                                  told.device.info().name, " (", told.device.info().model, "), ",
                                  told.launches, told.launches == 1 ? " launch" : " launches");
  for (std::size_t i = 0; i < told.checksums.size(); ++i) {
    absl::StrAppendFormat(&text, "; %s: %s, checksum %016x", told.order.output_names[i],
                          SpecOf(told.order.order.outputs[i].value), told.checksums[i]);
  }
  return text + "\n";
}

// Names of kernels, variants, devices and operands have nothing that JSON would escape.
std::string AsJson(const Told& told) {
  std::string outputs;
  for (std::size_t i = 0; i < told.checksums.size(); ++i) {
    absl::StrAppendFormat(&outputs, R"(%s{"name": "%s", "spec": "%s", "checksum": "%016x"})",
                          i == 0 ? "" : ", ", told.order.output_names[i],
                          SpecOf(told.order.order.outputs[i].value), told.checksums[i]);
  }
  return absl::StrFormat(
      R"({"kernel": "%s", "variant": "%s", "device": "%s", "launches": %d, "outputs": [%s]})"
      "\n",
      told.order.order.kernel, told.variant, told.device.info().name, told.launches, outputs);
}

}  // namespace

absl::StatusOr<std::string> RunBare(Device& device, const Registry& registry,
                                    const BareOptions& options) {
  GC_ASSIGN_OR_RETURN(const BareOrder order, MakeBareOrder(registry, options.call));
  CallCache cache(registry, device);
  GC_ASSIGN_OR_RETURN(BoundCall* const bound, cache.Find(order.order));
  GC_ASSIGN_OR_RETURN(const auto memory, HostMemory(device, order.bytes));
  Staging staging(device);
  EarlyCopies early(device, Whole(memory.get()));
  Operands operands({.device = device,
                     .staging = staging,
                     .early = early,
                     .arena = Whole(memory.get()),
                     .order = order.order,
                     .call = *bound});
  GC_RETURN_IF_ERROR(operands.Place());
  GC_RETURN_IF_ERROR(operands.Fill(0));
  GC_RETURN_IF_ERROR(LaunchAll(*bound, device, options.repeat));
  Told told{.device = device,
            .order = order,
            .variant = bound->variant->name,
            .checksums = {},
            .launches = options.repeat};
  for (std::size_t i = 0; i < order.order.outputs.size(); ++i) {
    GC_ASSIGN_OR_RETURN(told.checksums.emplace_back(), operands.Checksum(i));
  }
  return options.json ? AsJson(told) : AsText(told);
}

}  // namespace gridclock
