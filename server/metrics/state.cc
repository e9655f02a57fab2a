#include "server/metrics/state.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/metrics/words.h"

namespace gridclock {
namespace {

// A number that is not known is left out: 0 would be taken for a measurement.
void SetKnown(Metric metric, std::vector<std::string> labels, double value, ScrapeValues& values) {
  if (value > 0) values.Set(metric, std::move(labels), value);
}

// "x86-64-v4", "sm_90".
std::string ArchOf(const DeviceInfo& info) {
  return info.traits.sm > 0 ? absl::StrCat("sm_", info.traits.sm) : info.level;
}

void CollectFacts(const DeviceInfo& info, ScrapeValues& values) {
  const std::string& name = info.name;
  values.Set(Metric::kDeviceInfo,
             {name, info.uuid, info.model, ArchOf(info), info.driver, info.partition}, 1);
  SetKnown(Metric::kDeviceMemory, {name, "total"}, static_cast<double>(info.memory_bytes), values);
  SetKnown(Metric::kDeviceBandwidth, {name}, info.memory_bandwidth, values);
  for (const FlopRate& rate : info.flop_rates) {
    SetKnown(Metric::kDeviceFlops, {name, std::string(Name(rate.dtype))}, rate.flops_per_second,
             values);
  }
  for (const MethodFacts& method : info.methods) {
    SetKnown(Metric::kCalibrationFloor, {name, std::string(MethodWord(method.method))},
             method.floor_ns * 1e-9, values);
  }
  SetKnown(Metric::kCalibrationOffset, {name}, info.launch_offset_ns * 1e-9, values);
  if (info.launch_offset_ns > 0) {
    const Metric further = Metric::kCalibrationActivityOffset;
    values.Set(further, {name, "kernel"}, info.kernel_offset_ns * 1e-9);
    values.Set(further, {name, "copy"}, info.copy_offset_ns * 1e-9);
  }
  SetKnown(Metric::kCalibrationSerialRecord, {name}, info.serial_record_offset_ns * 1e-9, values);
  SetKnown(Metric::kCalibrationEventPair, {name}, info.empty_event_pair_ns * 1e-9, values);
  SetKnown(Metric::kCalibrationStep, {name}, info.clock_step_ns * 1e-9, values);
  SetKnown(Metric::kCalibrationTimerStep, {name}, info.device_timer_step_ns * 1e-9, values);
}

// What is older says nothing of now: the device works, and is not asked meanwhile.
constexpr absl::Duration kFresh = absl::Seconds(60);

void CollectReading(const std::string& name, const DeviceReading& reading, ScrapeValues& values) {
  if (absl::Now() - reading.at > kFresh) return;
  const DeviceState& state = reading.state;
  SetKnown(Metric::kDeviceTemperature, {name}, state.temperature_celsius, values);
  SetKnown(Metric::kDevicePower, {name}, state.power_watts, values);
  SetKnown(Metric::kDeviceClock, {name, "sm"}, state.sm_clock_hz, values);
  SetKnown(Metric::kDeviceClock, {name, "memory"}, state.memory_clock_hz, values);
  for (const absl::string_view reason : ClockReasonWords()) {
    const bool holds = std::ranges::find(state.clock_reasons, reason) != state.clock_reasons.end();
    values.Set(Metric::kDeviceClockReason, {name, std::string(reason)}, holds ? 1 : 0);
  }
}

// What a measurement does not tell.
void CollectVitals(const std::string& name, const VitalsNow& said, ScrapeValues& values) {
  if (absl::Now() - said.at > kFresh) return;
  const DeviceVitals& vitals = said.vitals;
  SetKnown(Metric::kDeviceMemory, {name, "used"},
           static_cast<double>(vitals.state.memory_used_bytes), values);
  if (vitals.exclusive) values.Set(Metric::kDeviceExclusive, {name}, *vitals.exclusive ? 1 : 0);
}

// The newest of what a device said of itself, between its jobs and when it measured.
std::map<std::string, DeviceReading> Newest(std::map<std::string, DeviceReading> readings,
                                            const std::vector<DeviceStatus>& devices) {
  for (const DeviceStatus& device : devices) {
    if (!device.vitals) continue;
    DeviceReading& reading = readings[device.info.name];
    if (device.vitals->at > reading.at) reading = {device.vitals->vitals.state, device.vitals->at};
  }
  return readings;
}

void CollectDevices(const Sources& sources, const std::map<std::string, DeviceReading>& measured,
                    ScrapeValues& values) {
  if (!sources.devices) return;
  const std::vector<DeviceStatus> devices = sources.devices();
  for (const auto& [name, reading] : Newest(measured, devices)) {
    CollectReading(name, reading, values);
  }
  for (const DeviceStatus& device : devices) {
    const std::string& name = device.info.name;
    values.Set(Metric::kWorkerUp, {name}, IsUp(device.state) ? 1 : 0);
    values.Set(Metric::kDeviceDrained, {name}, device.drained ? 1 : 0);
    if (device.met) CollectFacts(device.info, values);
    if (device.vitals) CollectVitals(name, *device.vitals, values);
    values.Set(Metric::kQueueCapacity, {name}, sources.limits.queue);
    for (const auto state : {WorkerState::kStarting, WorkerState::kReady, WorkerState::kBusy,
                             WorkerState::kDead, WorkerState::kQuarantined}) {
      values.Set(Metric::kWorkerState, {name, std::string(StateWord(state))},
                 device.state == state ? 1 : 0);
    }
  }
}

void CollectQueues(const std::map<std::string, Scheduler::Usage>& queues, ScrapeValues& values) {
  for (const auto& [device, usage] : queues) {
    values.Set(Metric::kQueueDepth, {device}, usage.fuller_queue);
    values.Set(Metric::kJobsRunning, {device}, usage.running);
  }
}

double UnixSeconds(absl::Time time) {
  return absl::ToDoubleSeconds(time - absl::UnixEpoch());
}

void CollectReloads(const Sources& sources, ScrapeValues& values) {
  if (!sources.reloads) return;
  for (const Reloader::Part& part : sources.reloads()) {
    values.Set(Metric::kReloadSuccess, {part.name}, part.last.ok() ? 1 : 0);
    values.Set(Metric::kReloadTime, {part.name}, UnixSeconds(part.read));
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

void CollectState(const Sources& sources, const std::map<std::string, Scheduler::Usage>& queues,
                  const std::map<std::string, DeviceReading>& readings, ScrapeValues& values) {
  CollectDevices(sources, readings, values);
  CollectQueues(queues, values);
  CollectLimits(sources, values);
  CollectReloads(sources, values);
  if (sources.compiler_up) {
    values.Set(Metric::kCompilerUp, {}, sources.compiler_up() ? 1 : 0);
  }
  if (sources.certificate_expiry) {
    values.Set(Metric::kCertificateExpiry, {}, UnixSeconds(sources.certificate_expiry()));
  }
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

void Fill(const Sources& sources, StatusView* view) {
  view->ready = WhyNotReady(sources).empty();
  view->limits = sources.limits;
  if (sources.devices) view->devices = sources.devices();
  view->activity.readings = Newest(std::move(view->activity.readings), view->devices);
  if (sources.queue_usage) view->queues = sources.queue_usage();
  if (sources.limit_usage) view->usage = sources.limit_usage();
  if (sources.compiler_up) view->compiler_up = sources.compiler_up();
}

std::string WhyNoneTakesCalls(const std::vector<DeviceStatus>& devices) {
  if (std::ranges::any_of(devices, TakesCalls)) return "";
  std::string why = "no device takes calls";
  absl::string_view before = ": ";
  for (const DeviceStatus& device : devices) {
    const bool up = IsUp(device.state);
    absl::StrAppend(&why, std::exchange(before, ", "), device.info.name, " is ",
                    up ? "drained" : StateWord(device.state));
  }
  return why;
}

std::string WhyNotReady(const Sources& sources) {
  if (sources.not_ready) return sources.not_ready();
  return sources.devices ? WhyNoneTakesCalls(sources.devices()) : "the server starts";
}

}  // namespace gridclock
