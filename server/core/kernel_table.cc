#include "server/core/kernel_table.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"

namespace gridclock {
namespace {

constexpr std::size_t kNearest = 3;

// A device's kind stands before the colon of its name: "cuda:0".
std::string KindOf(absl::string_view device) {
  return std::string(device.substr(0, device.find(':')));
}

// Levenshtein's distance: how many letters to add, drop or change.
std::size_t EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({changed, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
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
    return absl::InternalError(absl::StrCat("a worker for '", absl::CHexEscape(info.name),
                                            "' said hello; no such device is served"));
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

void KernelTable::SetState(absl::string_view device, WorkerState state) {
  MutexLock lock(mutex_);
  if (DeviceStatus* found = Device(device)) found->state = state;
}

void KernelTable::CountRestart(absl::string_view device) {
  MutexLock lock(mutex_);
  if (DeviceStatus* found = Device(device)) ++found->restarts;
}

absl::StatusOr<std::shared_ptr<const KernelSpec>> KernelTable::Find(
    absl::string_view kernel) const {
  MutexLock lock(mutex_);
  if (const auto found = kernels_.find(kernel); found != kernels_.end()) return found->second;
  if (kernels_.empty()) {
    return WithDetails(
        absl::UnavailableError("the first worker is starting; the kernels are not known yet"),
        {.reason = "WORKER_STARTING",
         .field = "",
         .retry_after = absl::Milliseconds(200),
         .metadata = {}});
  }
  return NoSuchKernel(kernel);
}

absl::Status KernelTable::NoSuchKernel(absl::string_view wanted) const {
  const std::size_t most = std::max<std::size_t>(1, wanted.size() / 3);  // Beyond it is no typo.
  std::vector<std::pair<std::size_t, absl::string_view>> near;
  for (const auto& [name, spec] : kernels_) {
    const std::size_t distance = EditDistance(wanted, name);
    if (!spec->diagnostic && distance <= most) near.emplace_back(distance, name);
  }
  std::sort(near.begin(), near.end());
  near.resize(std::min(near.size(), kNearest));
  const std::string names = absl::StrJoin(near, ", ", [](std::string* out, const auto& entry) {
    absl::StrAppend(out, "'", entry.second, "'");
  });
  return WithField(
      absl::NotFoundError(absl::StrCat("no kernel '", absl::CHexEscape(wanted), "'",
                                       names.empty() ? "" : "; the nearest are ", names)),
      "kernel");
}

std::vector<std::shared_ptr<const KernelSpec>> KernelTable::Kernels() const {
  MutexLock lock(mutex_);
  std::vector<std::shared_ptr<const KernelSpec>> all;
  for (const auto& [name, spec] : kernels_) all.push_back(spec);
  return all;
}

bool KernelTable::learned() const {
  MutexLock lock(mutex_);
  return !kernels_.empty();
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
                       .host_memory = device.info.host_memory,
                       .memory_bytes = device.info.memory_bytes});
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
  return WithField(absl::NotFoundError(absl::StrCat("no device '", absl::CHexEscape(wanted),
                                                    "'; the devices are ", names)),
                   "device");
}

DeviceStatus* KernelTable::Device(absl::string_view name) {
  for (DeviceStatus& device : devices_) {
    if (device.info.name == name) return &device;
  }
  return nullptr;
}

}  // namespace gridclock
