// A device that does nothing but take the time it is told to, on a clock that stands still
// otherwise. Keeps a list of what was asked of it.
#ifndef GRIDCLOCK_TESTS_UNIT_TIMING_FAKE_DEVICE_H_
#define GRIDCLOCK_TESTS_UNIT_TIMING_FAKE_DEVICE_H_

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "kernels/device/device.h"
#include "tests/support/fake_clock.h"

namespace gridclock {

class FakeDevice final : public Device {
 public:
  explicit FakeDevice(FakeClock& clock) : clock_(clock) {}

  DeviceInfo facts;
  std::vector<Method> known = {Method::kIsolated, Method::kHostSync, Method::kEventPair};
  Conditions conditions;
  Roofline roofline;
  std::optional<Roofline> roofline_again;  // After a recheck; unset: the same.
  bool lazy = false;
  std::int64_t launches_each = 1;  // What one timing says that it launched.
  int new_launches = 0;
  // The clock when it is asked for time i.
  std::function<double(std::int64_t i)> clock_hz = [](auto) { return 0; };
  std::map<Method, absl::Status> refusals;  // What timing by a method fails with, after the launch.
  std::int64_t refuses_after = 0;           // So many launches by any method come first.
  std::int64_t refuses_times = std::numeric_limits<std::int64_t>::max();
  // How long launch number i (from 0) takes by a method.
  std::function<double(std::int64_t i, Method method)> duration_ns = [](auto, auto) { return 1e6; };
  std::vector<Launch> ran = {};  // What a record of a launch says that it ran.
  std::int64_t copies = 0;       // How many of those were copies.
  std::function<bool(Method)> provisional = [](Method) { return false; };
  std::vector<Method> launches;
  std::vector<L2State> prepared;

  const DeviceInfo& info() const override { return facts; }
  absl::StatusOr<std::unique_ptr<DeviceBuffer>> Allocate(std::uint64_t) override {
    return absl::UnimplementedError("not asked for");
  }
  bool uses_host_memory() const override { return true; }
  absl::Status CopyIn(void*, std::span<const std::byte>) override { return absl::OkStatus(); }
  absl::Status CopyOut(std::span<std::byte>, const void*) override { return absl::OkStatus(); }
  absl::Status Copy(void*, const void*, std::uint64_t) override { return absl::OkStatus(); }
  absl::Status Fill(void*, std::byte, std::uint64_t) override { return absl::OkStatus(); }
  absl::Status Generate(const Generator&, DType, std::int64_t, std::int64_t, void*) override {
    return absl::OkStatus();
  }
  absl::Status Synchronize() override { return absl::OkStatus(); }
  Threads* threads() override { return nullptr; }
  void* stream() override { return nullptr; }
  std::span<const Method> methods() const override { return known; }
  absl::StatusOr<TimedLaunch> Time(Method method,
                                   absl::FunctionRef<absl::Status()> launch) override {
    const double ns = duration_ns(static_cast<std::int64_t>(launches.size()), method);
    launches.push_back(method);
    TimedLaunch timed;
    timed.host_start_ns = absl::ToUnixNanos(clock_.Now());
    const absl::Status status = launch();
    if (!status.ok()) return status;
    if (refusals.count(method) != 0 && std::ssize(launches) > refuses_after && refuses_times > 0) {
      --refuses_times;
      return refusals[method];
    }
    timed.host_returned_ns = absl::ToUnixNanos(clock_.Now());
    clock_.Advance(absl::Nanoseconds(ns));
    timed.host_end_ns = absl::ToUnixNanos(clock_.Now());
    timed.duration_ns = ns;
    timed.launches = launches_each;
    timed.provisional = provisional(method);
    if (method == Method::kDeviceTime) {
      timed.kernels = ran;
      timed.copies = copies;
    }
    return timed;
  }
  absl::Status PrepareCache(L2State state) override {
    prepared.push_back(state);
    return absl::OkStatus();
  }
  Conditions Observe() override { return conditions; }
  double ClockHz() override { return clock_hz(clocks_asked_++); }
  void NewLaunch() override { ++new_launches; }
  bool loads_lazily() const override { return lazy; }
  Roofline RecheckRoofline(const Work&, L2State) override {
    return roofline_again.value_or(roofline);
  }
  Roofline RooflineOf(const Work&, L2State) const override { return roofline; }

 private:
  FakeClock& clock_;
  std::int64_t clocks_asked_ = 0;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_TESTS_UNIT_TIMING_FAKE_DEVICE_H_
