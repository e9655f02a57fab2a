#include "client/cli/json.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "absl/strings/str_format.h"
#include "base/status.h"
#include "client/cli/names.h"

namespace gridclock::cli {
namespace {

Json OrNull(double value) {
  return value > 0 && std::isfinite(value) ? Json(value) : Json();
}

// Of something that may be less than 0 where it is known.
Json IfKnown(bool known, double value) {
  return known ? Json(value) : Json();
}

Json BytesOrNull(std::uint64_t bytes) {
  return bytes > 0 ? Json(bytes) : Json();
}

Json ToJson(const v1::Statistics& s) {
  return {{"median_ns", s.median_ns()},
          {"min_ns", s.min_ns()},
          {"max_ns", s.max_ns()},
          {"q1_ns", s.q1_ns()},
          {"q3_ns", s.q3_ns()},
          {"mean_ns", s.mean_ns()},
          {"stddev_ns", s.stddev_ns()},
          {"ci_low_ns", s.has_ci_low_ns() ? Json(s.ci_low_ns()) : Json()},
          {"ci_high_ns", s.has_ci_high_ns() ? Json(s.ci_high_ns()) : Json()},
          {"p99_ns", s.has_p99_ns() ? Json(s.p99_ns()) : Json()}};
}

Json ToJson(const v1::DeviceState& state) {
  return {{"sm_clock_hz", OrNull(state.sm_clock_hz())},
          {"memory_clock_hz", OrNull(state.memory_clock_hz())},
          {"power_watts", OrNull(state.power_watts())},
          {"temperature_celsius", OrNull(state.temperature_celsius())},
          {"memory_used_bytes", BytesOrNull(state.memory_used_bytes())},
          {"memory_free_bytes", BytesOrNull(state.memory_free_bytes())},
          {"clock_reasons", state.clock_reasons()}};
}

Json ToJson(const v1::Timing& t, bool with_samples) {
  Json out = {{"method", NameOf(t.method())},
              {"l2", NameOf(t.l2())},
              {"stop", NameOf(t.stop())},
              {"samples", t.samples_ns_size()},
              {"warmups", t.warmups()},
              {"warmup_flat", t.warmup_flat()},
              {"statistics", ToJson(t.statistics())},
              {"method_floor_ns", OrNull(t.method_floor_ns())},
              {"roofline_ns", OrNull(t.roofline_ns())},
              {"roofline_basis", t.roofline_basis()},
              {"roofline_fraction", OrNull(t.roofline_fraction())},
              {"bytes_per_second", OrNull(t.bytes_per_second())},
              {"flops_per_second", OrNull(t.flops_per_second())},
              {"sharing_unknown", t.sharing_unknown()},
              {"clock_before_hz", OrNull(t.clock_before_hz())},
              {"clock_after_hz", OrNull(t.clock_after_hz())}};
  if (t.second_method() != v1::METHOD_UNSPECIFIED) {
    out["second"] = {{"method", NameOf(t.second_method())},
                     {"median_ns", t.second_median_ns()},
                     {"slack_ns", t.second_slack_ns()}};
  }
  if (t.has_before()) out["before"] = ToJson(t.before());
  if (t.has_after()) out["after"] = ToJson(t.after());
  if (with_samples) out["samples_ns"] = t.samples_ns();
  return out;
}

Json ToJson(const v1::Verification& v) {
  return {{"checked", v.checked()},
          {"total", v.total()},
          {"mismatches", v.mismatches()},
          {"undecided", v.undecided()},
          {"max_error", std::min(v.max_error(), std::numeric_limits<double>::max())},
          {"first_mismatch", v.first_mismatch()},
          {"more_mismatches", v.more_mismatches()},
          {"max_abs", v.max_abs()},
          {"max_rel", v.max_rel()},
          {"max_ulp", v.max_ulp()},
          {"nan_mismatches", v.nan_mismatches()},
          {"launches", v.launches()},
          {"fresh_launches", v.fresh_launches()},
          {"violations", v.violations()},
          {"first_violation", v.first_violation()}};
}

Json Phases(const v1::RunSummary& summary) {
  Json out = Json::array();
  for (const v1::Phase& phase : summary.phases()) {
    out.push_back({{"phase", NameOf(phase.kind())},
                   {"start_ns", phase.start_ns()},
                   {"end_ns", phase.end_ns()}});
  }
  return out;
}

Json DeviceKernels(const v1::RunSummary& summary) {
  Json out = Json::array();
  for (const v1::DeviceKernel& kernel : summary.device_kernels()) {
    out.push_back({{"name", kernel.name()},
                   {"grid", kernel.grid()},
                   {"block", kernel.block()},
                   {"count", kernel.count()}});
  }
  return out;
}

}  // namespace

Json ToJson(const v1::RunSummary& summary, bool with_samples) {
  Json flags = Json::array();
  for (const int flag : summary.flags()) flags.push_back(NameOf(static_cast<v1::Flag>(flag)));
  return {{"kernel", summary.kernel()},
          {"variant", summary.variant()},
          {"device", summary.device()},
          {"timing", ToJson(summary.timing(), with_samples)},
          {"phases", Phases(summary)},
          {"flags", flags},
          {"device_kernels", DeviceKernels(summary)},
          {"verification", summary.has_verification() ? ToJson(summary.verification()) : Json()},
          {"flops", summary.flops()},
          {"bytes", summary.bytes()},
          {"peak_device_bytes", summary.peak_device_bytes()},
          {"unix_time_ns", summary.unix_time_ns()},
          {"printed", summary.printed()},
          {"printed_truncated", summary.printed_truncated()}};
}

Json ToJson(const CallOutput& output) {
  Json tensors = Json::array();
  for (const TensorSpec& tensor : output.value.tensors) {
    tensors.push_back({{"dtype", std::string(Name(tensor.dtype))}, {"shape", tensor.shape}});
  }
  Json out = {{"name", output.name}, {"tensors", tensors}};
  if (output.checksum.has_value()) {
    out["checksum"] = absl::StrFormat("%016x", *output.checksum);
  }
  return out;
}

namespace {

Json Methods(const v1::Device& device) {
  Json out = Json::array();
  for (const v1::Device::MethodFacts& method : device.methods()) {
    Json one = {{"method", NameOf(method.method())}, {"floor_ns", OrNull(method.floor_ns())}};
    if (!method.missing().empty()) one["missing"] = method.missing();
    if (!method.note().empty()) one["note"] = method.note();
    out.push_back(std::move(one));
  }
  return out;
}

Json FlopRates(const v1::Device& device) {
  Json out = Json::object();
  for (const v1::Device::FlopRate& rate : device.flop_rates()) {
    if (rate.dtype() < 1 || rate.dtype() > kDTypeCount) continue;  // Of a newer server.
    out[std::string(Name(static_cast<DType>(rate.dtype())))] = rate.flops_per_second();
  }
  return out;
}

}  // namespace

Json ToJson(const v1::Device& d) {
  const bool has_offsets = d.launch_offset_ns() > 0;
  return {{"name", d.name()},
          {"kind", d.kind()},
          {"model", d.model()},
          {"uuid", d.uuid()},
          {"state", NameOf(d.state())},
          {"level", d.level()},
          {"units", d.units()},
          {"memory_bytes", d.memory_bytes()},
          {"memory_bytes_per_second", OrNull(d.memory_bytes_per_second())},
          {"launch_floor_ns", OrNull(d.launch_floor_ns())},
          {"clock_step_ns", OrNull(d.clock_step_ns())},
          {"queue_depth", d.queue_depth()},
          {"queue_capacity", d.queue_capacity()},
          {"restarts", d.restarts()},
          {"compute_capability", d.compute_capability()},
          {"own_memory", d.own_memory()},
          {"partition", d.partition()},
          {"drained", d.drained()},
          {"sandbox", d.sandbox()},
          {"pageable_access", d.pageable_access()},
          {"l2_bytes", d.l2_bytes()},
          {"l2_bytes_per_second", OrNull(d.l2_bytes_per_second())},
          {"sm_clock_hz", OrNull(d.sm_clock_hz())},
          {"memory_clock_hz", OrNull(d.memory_clock_hz())},
          {"driver", d.driver()},
          {"cuda", d.cuda()},
          {"launch_offset_ns", OrNull(d.launch_offset_ns())},
          {"kernel_offset_ns", IfKnown(has_offsets, d.kernel_offset_ns())},
          {"copy_offset_ns", IfKnown(has_offsets, d.copy_offset_ns())},
          {"serial_record_offset_ns", OrNull(d.serial_record_offset_ns())},
          {"empty_event_pair_ns", OrNull(d.empty_event_pair_ns())},
          {"device_timer_step_ns", OrNull(d.device_timer_step_ns())},
          {"methods", Methods(d)},
          {"flop_rates", FlopRates(d)}};
}

Json ToJson(const v1::ServerInfo& info) {
  Json libraries = Json::object(), limits = Json::array();
  for (const auto& [name, version] : info.libraries()) libraries[name] = version;
  for (const v1::Limit& limit : info.limits()) {
    limits.push_back({{"name", limit.name()},
                      {"value", limit.value()},
                      {"usage", limit.usage()},
                      {"unit", limit.unit()},
                      {"flag", limit.flag()}});
  }
  return {{"version", info.version()},   {"revision", info.revision()},
          {"libraries", libraries},      {"uptime_seconds", info.uptime_seconds()},
          {"draining", info.draining()}, {"limits", limits}};
}

Json ToJson(const KernelSpec& spec) {
  Json variants = Json::array();
  for (const VariantSpec& variant : spec.variants) {
    variants.push_back({{"name", variant.name},
                        {"device_kind", variant.device_kind},
                        {"summary", variant.summary},
                        {"clauses", ToText(variant.clauses)}});
  }
  return {{"name", spec.name},   {"summary", spec.summary}, {"formula", spec.formula},
          {"notes", spec.notes}, {"words", ToText(spec)},   {"diagnostic", spec.diagnostic},
          {"variants", variants}};
}

Json ToJson(const absl::Status& error) {
  const ErrorDetails details = DetailsOf(error);
  Json out = {{"code", CodeName(error.code())}, {"message", std::string(error.message())}};
  if (!details.reason.empty()) out["reason"] = details.reason;
  if (!details.field.empty()) out["field"] = details.field;
  if (details.retry_after.has_value()) {
    out["retry_after_seconds"] = absl::ToDoubleSeconds(*details.retry_after);
  }
  if (!details.metadata.empty()) out["metadata"] = details.metadata;
  return {{"error", out}};
}

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

}  // namespace gridclock::cli
