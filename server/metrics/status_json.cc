#include <algorithm>

#include <nlohmann/json.hpp>

#include "server/metrics/status_page.h"
#include "server/metrics/words.h"

namespace gridclock {
namespace {

using Json = nlohmann::ordered_json;

Json KnownOrNull(double value) {
  return value > 0 ? Json(value) : Json();
}

std::string Line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json Text(absl::string_view text) {
  return std::string(text);
}

Json ToJson(const Statistics& statistics) {
  return {{"median_ns", KnownOrNull(statistics.median)},
          {"min_ns", KnownOrNull(statistics.min)},
          {"max_ns", KnownOrNull(statistics.max)},
          {"q1_ns", KnownOrNull(statistics.q1)},
          {"q3_ns", KnownOrNull(statistics.q3)},
          {"mean_ns", KnownOrNull(statistics.mean)},
          {"p99_ns", KnownOrNull(statistics.p99.value_or(0))}};
}

Json ToJson(const RunRecord& run) {
  Json out = {{"id", run.id},
              {"trace_id", TraceId(run.trace)},
              {"finished", absl::FormatTime(absl::RFC3339_full, run.finished, absl::UTCTimeZone())},
              {"kernel", run.kernel},
              {"variant", run.variant},
              {"device", run.device},
              {"outcome", Text(run.outcome)},
              {"measured", run.measured},
              {"samples", run.samples},
              {"statistics", ToJson(run.statistics)},
              {"flops", run.ran ? run.flops : 0},
              {"bytes", run.ran ? run.bytes : 0},
              {"phases", Json::array()},
              {"flags", Json::array()},
              {"launches", Json::array()}};
  if (run.samples > 0) {
    out["method"] = Text(MethodWord(run.method));
    out["stop"] = Text(StopWord(run.stop));
  }
  for (const Phase& phase : run.phases) {
    out["phases"].push_back({{"kind", Text(PhaseLabel(phase.kind))},
                             {"start_ns", phase.start_ns},
                             {"end_ns", phase.end_ns}});
  }
  for (const Flag flag : run.flags) out["flags"].push_back(Text(FlagWord(flag)));
  for (const Launch& launch : run.launches) {
    out["launches"].push_back({{"name", launch.name},
                               {"grid", launch.grid},
                               {"block", launch.block},
                               {"count", launch.count}});
  }
  return out;
}

Json ToJson(const KernelActivity& kernel) {
  Json slots = Json::array();
  for (const LatencySlot& slot : kernel.slots) {
    slots.push_back(slot.runs == 0 ? Json() : Json(slot.sum / slot.runs));
  }
  return {{"kernel", kernel.kernel},
          {"device", kernel.device},
          {"runs", kernel.runs},
          {"failed", kernel.failed},
          {"runs_per_second", kernel.runs_per_second},
          {"p50_ns", KnownOrNull(kernel.p50_ns)},
          {"p90_ns", KnownOrNull(kernel.p90_ns)},
          {"p99_ns", KnownOrNull(kernel.p99_ns)},
          {"mean_of_runs_ns", slots}};
}

Json ToJson(const StatusView& view, const DeviceStatus& device) {
  const DeviceInfo& info = device.info;
  const auto queue = view.queues.find(info.name);
  const Scheduler::Usage usage = queue == view.queues.end() ? Scheduler::Usage() : queue->second;
  Json out = {
      {"name", info.name},           {"model", info.model},
      {"uuid", info.uuid},           {"state", Text(StateWord(device.state))},
      {"drained", device.drained},   {"memory_bytes", info.memory_bytes},
      {"queue", usage.fuller_queue}, {"queue_limit", static_cast<std::int64_t>(view.limits.queue)},
      {"queued", usage.queued},      {"running", usage.running},
      {"restarts", device.restarts}};
  if (device.vitals && device.vitals->vitals.state.memory_used_bytes > 0) {
    out["memory_used_bytes"] = device.vitals->vitals.state.memory_used_bytes;
    out["memory_read_seconds_ago"] =
        std::max(0.0, absl::ToDoubleSeconds(view.now - device.vitals->at));
  }
  const auto reading = view.activity.readings.find(info.name);
  if (reading != view.activity.readings.end()) {
    const DeviceState& state = reading->second.state;
    out["temperature_celsius"] = KnownOrNull(state.temperature_celsius);
    out["power_watts"] = KnownOrNull(state.power_watts);
    out["read_seconds_ago"] = std::max(0.0, absl::ToDoubleSeconds(view.now - reading->second.at));
  }
  return out;
}

Json RunsOf(const StatusView& view) {
  Json out = Json::array();
  for (const RunRecord& run : view.activity.runs) out.push_back(ToJson(run));
  return out;
}

}  // namespace

std::string StatusJson(const StatusView& view) {
  Json out = {{"version", view.version},
              {"ready", view.ready},
              {"uptime_seconds", absl::ToDoubleSeconds(view.now - view.started)},
              {"devices", Json::array()},
              {"kernels", Json::array()},
              {"usage", view.usage}};
  for (const DeviceStatus& device : view.devices) out["devices"].push_back(ToJson(view, device));
  for (const KernelActivity& kernel : view.activity.kernels) {
    out["kernels"].push_back(ToJson(kernel));
  }
  return Line(out);
}

std::string RunsJson(const StatusView& view) {
  return Line(RunsOf(view));
}

std::string RunJson(const RunRecord& run) {
  return Line(ToJson(run));
}

}  // namespace gridclock
