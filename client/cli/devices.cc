#include "client/cli/devices.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/format.h"
#include "client/cli/names.h"
#include "client/cli/terminal.h"
#include "proto/types/dtype.h"

namespace gridclock::cli {
namespace {

std::string Capability(const v1::Device& device) {
  const std::int64_t sm = device.compute_capability();
  return sm > 0 ? absl::StrCat(sm / 10, ".", sm % 10) : "-";
}

// "isolated 2.1 µs, device_time 1.3 µs; no host_no_sync: why; device_time: a note".
std::string MethodsText(const v1::Device& device) {
  std::vector<std::string> has, remarks;
  for (const v1::Device::MethodFacts& method : device.methods()) {
    const std::string name = NameOf(method.method());
    if (method.missing().empty()) {
      has.push_back(absl::StrCat(name, " ", FormatNs(method.floor_ns())));
    } else {
      remarks.push_back(absl::StrCat("; no ", name, ": ", method.missing()));
    }
    if (!method.note().empty()) remarks.push_back(absl::StrCat("; ", name, ": ", method.note()));
  }
  return absl::StrCat(absl::StrJoin(has, ", "), absl::StrJoin(remarks, ""));
}

std::string RatesText(const v1::Device& device) {
  std::vector<std::string> rates;
  for (const v1::Device::FlopRate& rate : device.flop_rates()) {
    if (rate.dtype() < 1 || rate.dtype() > kDTypeCount) continue;  // Of a newer server.
    rates.push_back(absl::StrCat(std::string(Name(static_cast<DType>(rate.dtype()))), " ",
                                 FormatRate(rate.flops_per_second(), "FLOP/s")));
  }
  return absl::StrJoin(rates, ", ");
}

std::string Line(absl::string_view label, const std::string& text) {
  return absl::StrFormat("  %-10s%s\n", std::string(label), Escape(text));
}

// What submitted code meets there.
std::string GuestText(const v1::Device& d) {
  return absl::StrCat("sandbox ", d.sandbox(),
                      d.pageable_access() ? "; kernels reach host memory of their process" : "");
}

std::string GpuText(const v1::Device& d) {
  std::string out = absl::StrCat("\n", Escape(d.name()), "  ", Escape(d.uuid()), "\n");
  out += Line(
      "versions",
      absl::StrCat("compute capability ", Capability(d), ", driver ", d.driver(), ", CUDA ",
                   d.cuda(), d.partition().empty() ? "" : ", a part of a GPU: ", d.partition()));
  out += Line("memory", absl::StrCat("L2 ", FormatBytes(static_cast<double>(d.l2_bytes())), " at ",
                                     FormatRate(d.l2_bytes_per_second(), "B/s"), ", clocks ",
                                     FormatRate(d.sm_clock_hz(), "Hz"), " and ",
                                     FormatRate(d.memory_clock_hz(), "Hz")));
  out += Line("floors", MethodsText(d));
  out +=
      Line("offsets",
           absl::StrCat("launch ", FormatNs(d.launch_offset_ns()),
                        absl::StrFormat(", a further kernel %+.0f ns, a copy %+.0f ns",
                                        d.kernel_offset_ns(), d.copy_offset_ns()),
                        ", a serial record ", FormatNs(d.serial_record_offset_ns()),
                        ", empty event pair ", FormatNs(d.empty_event_pair_ns()), ", steps ",
                        FormatNs(d.clock_step_ns()), " and ", FormatNs(d.device_timer_step_ns())));
  out += Line("nominal", RatesText(d));
  if (!d.sandbox().empty()) out += Line("guests", GuestText(d));
  return out;
}

bool HasVariant(const KernelSpec& spec, const std::string& kind) {
  return std::any_of(spec.variants.begin(), spec.variants.end(),
                     [&](const VariantSpec& variant) { return variant.device_kind == kind; });
}

bool Means(const std::string& wanted, const v1::Device& device) {
  return wanted.empty() || wanted == device.name() || wanted == device.kind() ||
         wanted == device.uuid();
}

}  // namespace

std::string DevicesText(std::span<const v1::Device> devices) {
  Table table({"device", "state", "model", "level", "units", "memory", "bandwidth", "empty launch",
               "calls", "may wait", "restarts"});
  for (const v1::Device& d : devices) {
    const std::string level = d.compute_capability() > 0 ? Capability(d) : d.level();
    const std::string state = absl::StrCat(NameOf(d.state()), d.drained() ? ", drained" : "");
    table.Add({Escape(d.name()), state, Escape(d.model()), Escape(level), absl::StrCat(d.units()),
               FormatBytes(static_cast<double>(d.memory_bytes())),
               FormatRate(d.memory_bytes_per_second(), "B/s"), FormatNs(d.launch_floor_ns()),
               absl::StrCat(d.queue_depth()), absl::StrCat(d.queue_capacity()),
               absl::StrCat(d.restarts())});
  }
  std::string out = table.ToText();
  for (const v1::Device& d : devices) {
    if (d.own_memory()) out += GpuText(d);
  }
  return out;
}

std::string KindFor(const KernelSpec& spec, std::span<const v1::Device> devices,
                    const std::string& wanted) {
  const v1::Device* best = nullptr;
  const auto rank = [](const v1::Device& d) {  // As the server's choice.
    return std::tuple(d.drained(), d.state() == v1::Device::QUARANTINED, d.kind() != "cuda");
  };
  for (const v1::Device& device : devices) {
    if (!Means(wanted, device) || !HasVariant(spec, device.kind())) continue;
    if (best == nullptr || rank(device) < rank(*best)) best = &device;
  }
  return best == nullptr ? "" : best->kind();
}

std::vector<std::string> KindsOf(std::span<const v1::Device> devices) {
  std::vector<std::string> out;
  for (const v1::Device& device : devices) {
    if (std::find(out.begin(), out.end(), device.kind()) == out.end()) out.push_back(device.kind());
  }
  return out;
}

std::string VariantsText(const KernelSpec& spec, std::span<const std::string> kinds) {
  std::string out;
  for (const std::string& kind : kinds) {
    if (!HasVariant(spec, kind)) continue;
    absl::StrAppend(&out, out.empty() ? "" : "  ", kind, ":");
    for (const VariantSpec& variant : spec.variants) {
      if (variant.device_kind == kind) absl::StrAppend(&out, " ", variant.name);
    }
  }
  return out.empty() ? "-" : out;
}

}  // namespace gridclock::cli
