#include "proto/codec/vitals.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace gridclock {
namespace {

constexpr std::size_t kMostReasons = 64;
constexpr double kMostNumber = 1e15;

}  // namespace

void Encode(const DeviceState& in, v1::DeviceState* out) {
  out->set_sm_clock_hz(in.sm_clock_hz);
  out->set_memory_clock_hz(in.memory_clock_hz);
  out->set_power_watts(in.power_watts);
  out->set_temperature_celsius(in.temperature_celsius);
  out->set_memory_used_bytes(in.memory_used_bytes);
  out->set_memory_free_bytes(in.memory_free_bytes);
  for (const std::string& reason : in.clock_reasons) out->add_clock_reasons(reason);
}

DeviceState Decode(const v1::DeviceState& in) {
  return {.sm_clock_hz = in.sm_clock_hz(),
          .memory_clock_hz = in.memory_clock_hz(),
          .power_watts = in.power_watts(),
          .temperature_celsius = in.temperature_celsius(),
          .memory_used_bytes = in.memory_used_bytes(),
          .memory_free_bytes = in.memory_free_bytes(),
          .clock_reasons = {in.clock_reasons().begin(), in.clock_reasons().end()}};
}

bool IsState(const DeviceState& state) {
  const double numbers[] = {state.sm_clock_hz, state.memory_clock_hz, state.power_watts,
                            std::abs(state.temperature_celsius)};
  // No comparison holds for a NaN.
  return std::all_of(std::begin(numbers), std::end(numbers),
                     [](double n) { return n >= 0 && n <= kMostNumber; }) &&
         state.clock_reasons.size() <= kMostReasons;
}

void Encode(const DeviceVitals& in, worker::v1::Vitals* out) {
  Encode(in.state, out->mutable_state());
  if (in.exclusive) out->set_exclusive(*in.exclusive);
}

absl::StatusOr<DeviceVitals> Decode(const worker::v1::Vitals& in) {
  DeviceVitals out;
  out.state = Decode(in.state());
  if (!IsState(out.state)) {
    return absl::InvalidArgumentError("want a device's state in numbers, got some that are none");
  }
  if (in.has_exclusive()) out.exclusive = in.exclusive();
  return out;
}

}  // namespace gridclock
