#include "server/metrics/state.h"

#include <algorithm>

#include "server/metrics/words.h"

namespace gridclock {
namespace {

bool IsUp(const DeviceStatus& device) {
  return device.state == WorkerState::kReady || device.state == WorkerState::kBusy;
}

void CollectDevices(const Sources& sources, ScrapeValues& values) {
  if (!sources.devices) return;
  for (const DeviceStatus& device : sources.devices()) {
    const std::string& name = device.info.name;
    values.Set(Metric::kWorkerUp, {name}, IsUp(device) ? 1 : 0);
    values.Set(Metric::kQueueCapacity, {name}, sources.limits.queue);
    for (const auto state : {WorkerState::kStarting, WorkerState::kReady, WorkerState::kBusy,
                             WorkerState::kDead, WorkerState::kQuarantined}) {
      values.Set(Metric::kWorkerState, {name, std::string(StateWord(state))},
                 device.state == state ? 1 : 0);
    }
  }
}

void CollectQueues(const Sources& sources, ScrapeValues& values) {
  if (!sources.queue_usage) return;
  for (const auto& [device, usage] : sources.queue_usage()) {
    values.Set(Metric::kQueueDepth, {device}, usage.queued);
    values.Set(Metric::kJobsRunning, {device}, usage.running);
  }
}

void CollectLimits(const Sources& sources, ScrapeValues& values) {
  for (const LimitSpec& spec : LimitSpecs()) {
    values.Set(Metric::kLimit, {std::string(spec.name)}, sources.limits.*spec.member);
  }
  if (!sources.limit_usage) return;
  for (const auto& [name, used] : sources.limit_usage()) values.Set(Metric::kUsage, {name}, used);
}

}  // namespace

void CollectState(const Sources& sources, ScrapeValues& values) {
  CollectDevices(sources, values);
  CollectQueues(sources, values);
  CollectLimits(sources, values);
  if (sources.open_connections) {
    values.Set(Metric::kConnectionsOpen, {}, static_cast<double>(sources.open_connections()));
  }
  if (sources.dropped_log_lines) {
    values.Set(Metric::kLogDropped, {}, static_cast<double>(sources.dropped_log_lines()));
  }
  if (sources.protobuf_complaints) {
    values.Set(Metric::kProtobufComplaints, {}, static_cast<double>(sources.protobuf_complaints()));
  }
}

bool IsReady(const Sources& sources) {
  if (sources.ready) return sources.ready();
  if (!sources.devices) return false;
  return std::ranges::any_of(sources.devices(), IsUp);
}

}  // namespace gridclock
