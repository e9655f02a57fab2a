#include "server/core/kernel_table.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "proto/types/near_names.h"
#include "proto/types/quote.h"

namespace gridclock {
namespace {

// A device's kind stands before the colon of its name: "cuda:0".
std::string KindOf(absl::string_view device) {
  return std::string(device.substr(0, device.find(':')));
}

// `known` with the variants for `kind` replaced by those of `said`, in the place of the first of
// them: a restart does not change the order.
KernelSpec Merge(const KernelSpec& known, const KernelSpec& said, const std::string& kind) {
  const auto of_kind = [&](const VariantSpec& variant) { return variant.device_kind == kind; };
  KernelSpec merged = known;
  std::vector<VariantSpec>& variants = merged.variants;
  const auto place = std::find_if(variants.begin(), variants.end(), of_kind) - variants.begin();
  std::erase_if(variants, of_kind);
  std::vector<VariantSpec> fresh;
  std::copy_if(said.variants.begin(), said.variants.end(), std::back_inserter(fresh), of_kind);
  variants.insert(variants.begin() + place, fresh.begin(), fresh.end());
  return merged;
}

bool Matches(const DeviceStatus& device, absl::string_view wanted) {
  return wanted.empty() || wanted == device.info.name || wanted == device.info.traits.kind ||
         wanted == device.info.uuid;
}

}  // namespace

KernelTable::KernelTable(std::vector<std::string> devices) {
  for (std::string& name : devices) {
    DeviceStatus device;
    device.info.traits.kind = KindOf(name);
    device.info.name = std::move(name);
    devices_.push_back(std::move(device));
  }
}

absl::Status KernelTable::Learn(const DeviceInfo& info, const std::vector<KernelSpec>& kernels) {
  MutexLock lock(mutex_);
  DeviceStatus* device = Device(info.name);
  if (device == nullptr) {
    return absl::InternalError(
        absl::StrCat("a worker for ", Quote(info.name), " said hello; no such device is served"));
  }
  for (const KernelSpec& said : kernels) {
    const auto known = kernels_.find(said.name);
    if (known != kernels_.end() && !SameWords(*known->second, said)) {
      return absl::InternalError(absl::StrCat("device '", info.name, "' says '", ToText(said),
                                              "'; known is '", ToText(*known->second), "'"));
    }
  }
  for (const KernelSpec& said : kernels) {
    auto& known = kernels_[said.name];
    const KernelSpec merged = known == nullptr ? said : Merge(*known, said, info.traits.kind);
    // Kept as it is if nothing changed: calls in flight then share one spec.
    if (known == nullptr || *known != merged) known = std::make_shared<const KernelSpec>(merged);
  }
  device->info = info;
  device->met = true;
  return absl::OkStatus();
}

void KernelTable::LearnGuest(absl::string_view device, const std::string& sandbox,
                             const std::vector<std::string>& natives) {
  MutexLock lock(mutex_);
  natives_[std::string(device)] = natives;
  if (DeviceStatus* found = Device(device)) found->sandbox = sandbox;
}

std::optional<std::vector<std::string>> KernelTable::Natives() const {
  MutexLock lock(mutex_);
  if (natives_.empty()) return std::nullopt;
  std::set<std::string> all;
  for (const auto& [device, natives] : natives_) all.insert(natives.begin(), natives.end());
  return std::vector<std::string>(all.begin(), all.end());
}

void KernelTable::SetState(absl::string_view device, WorkerState state, const absl::Status& why) {
  MutexLock lock(mutex_);
  DeviceStatus* found = Device(device);
  if (found == nullptr) return;
  found->state = state;
  found->why_down = why;
}

void KernelTable::CountRestart(absl::string_view device) {
  MutexLock lock(mutex_);
  if (DeviceStatus* found = Device(device)) ++found->restarts;
}

void KernelTable::SetVitals(absl::string_view device, VitalsNow vitals) {
  MutexLock lock(mutex_);
  if (DeviceStatus* found = Device(device)) found->vitals = std::move(vitals);
}

bool KernelTable::SetDrained(absl::string_view device, bool drained) {
  MutexLock lock(mutex_);
  DeviceStatus* found = Device(device);
  return found != nullptr && std::exchange(found->drained, drained) != drained;
}

absl::Status KernelTable::NothingLearned() const {
  const auto is_down = [](const DeviceStatus& device) { return !device.why_down.ok(); };
  if (!devices_.empty() && std::all_of(devices_.begin(), devices_.end(), is_down))
    return devices_.front().why_down;
  return WithDetails(
      absl::UnavailableError("the first worker is starting; the kernels are not known yet"),
      {.reason = "WORKER_STARTING",
       .field = "",
       .retry_after = absl::Milliseconds(200),
       .metadata = {}});
}

absl::Status KernelTable::CheckLearned() const {
  MutexLock lock(mutex_);
  return kernels_.empty() ? NothingLearned() : absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const KernelSpec>> KernelTable::Find(
    absl::string_view kernel) const {
  MutexLock lock(mutex_);
  if (const auto found = kernels_.find(kernel); found != kernels_.end()) return found->second;
  return kernels_.empty() ? NothingLearned() : NoSuchKernel(kernel);
}

absl::Status KernelTable::NoSuchKernel(absl::string_view wanted) const {
  std::vector<absl::string_view> known;
  for (const auto& [name, spec] : kernels_) {
    if (!spec->diagnostic) known.push_back(name);
  }
  const std::string names = NearestNames(wanted, known);
  return UnknownName(
      "kernel",
      absl::StrCat("no kernel ", Quote(wanted), "; ",
                   names.empty() ? absl::StrCat("none of the ", known.size(),
                                                " that there are is near: ListKernels names them")
                                 : absl::StrCat("the nearest are ", names)));
}

std::vector<std::shared_ptr<const KernelSpec>> KernelTable::Kernels() const {
  MutexLock lock(mutex_);
  std::vector<std::shared_ptr<const KernelSpec>> all;
  for (const auto& [name, spec] : kernels_) all.push_back(spec);
  return all;
}

std::vector<DeviceStatus> KernelTable::Devices() const {
  MutexLock lock(mutex_);
  return devices_;
}

absl::StatusOr<DeviceChoices> KernelTable::Choices(absl::string_view wanted) const {
  MutexLock lock(mutex_);
  DeviceChoices found;
  for (const DeviceStatus& device : devices_) {
    if (Matches(device, wanted)) {
      found.push_back({.name = device.info.name,
                       .traits = device.info.traits,
                       .state = device.state,
                       .met = device.met,
                       .drained = device.drained,
                       .host_memory = device.info.host_memory,
                       .memory_bytes = device.info.memory_bytes,
                       .units = device.info.units,
                       .why_down = device.why_down});
    }
  }
  if (found.empty()) return NoSuchDevice(wanted);
  return found;
}

std::string KernelTable::WhyMissing(absl::string_view device, Method method) const {
  MutexLock lock(mutex_);
  for (const DeviceStatus& status : devices_) {
    if (status.info.name != device) continue;
    for (const MethodFacts& facts : status.info.methods) {
      if (facts.method == method) return facts.missing;
    }
  }
  return "";
}

absl::Status KernelTable::NoSuchDevice(absl::string_view wanted) const {
  const std::string names =
      absl::StrJoin(devices_, ", ", [](std::string* out, const DeviceStatus& device) {
        absl::StrAppend(out, "'", device.info.name, "'");
      });
  if (wanted == "cuda" || wanted == "cpu" || wanted.empty()) {
    return WithDetails(
        absl::FailedPreconditionError(
            absl::StrCat("no device of kind '", wanted, "' here; the devices are ", names)),
        {.reason = "NO_DEVICE", .field = "device", .retry_after = std::nullopt, .metadata = {}});
  }
  return UnknownName("device",
                     absl::StrCat("no device ", Quote(wanted), "; the devices are ", names));
}

DeviceStatus* KernelTable::Device(absl::string_view name) {
  for (DeviceStatus& device : devices_) {
    if (device.info.name == name) return &device;
  }
  return nullptr;
}

}  // namespace gridclock
