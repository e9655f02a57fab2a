// What a worker needs of a device. One implementation per kind: device/cpu and device/cuda; the
// timing and verification rooms are written against this alone.
#ifndef GRIDCLOCK_KERNELS_DEVICE_DEVICE_H_
#define GRIDCLOCK_KERNELS_DEVICE_DEVICE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/api/kernel.h"
#include "kernels/device/module.h"
#include "proto/types/device.h"
#include "proto/types/generator.h"
#include "proto/types/measure.h"

namespace gridclock {

// Device memory, freed with the object. Must not outlive its device.
class DeviceBuffer {
 public:
  virtual ~DeviceBuffer() = default;
  virtual void* data() const = 0;
  virtual std::uint64_t size() const = 0;
};

// One timed launch. Host times are CLOCK_MONOTONIC nanoseconds.
struct TimedLaunch {
  double duration_ns = 0;  // By the method asked for.
  // Of a graph, which is launched many times, the last return is its end.
  std::int64_t host_start_ns = 0, host_returned_ns = 0, host_end_ns = 0;
  std::int64_t launches = 1;  // How often it was launched for this: a slope takes many.
  // The device learns from it how the launch is to be timed: no time to be kept.
  bool provisional = false;
  // What ran on the device for it, in the order of first starts; from kDeviceTime alone.
  std::vector<Launch> kernels = {};
  std::int64_t copies = 0;  // How many of those were copies, whatever their names.
};

// What the device said of itself since it was last asked.
struct Conditions {
  bool throttled = false;
  bool shared = false;           // Someone else computes on it.
  bool sharing_unknown = false;  // It cannot be told here whether someone else does.
  std::optional<DeviceState> state = {};
};

// What one launch moves and computes.
struct Work {
  std::int64_t bytes = 0, flops = 0;
  std::int64_t written = 0;         // Of the bytes, those of outputs.
  std::optional<DType> dtype = {};  // That it computes in; unset: the fastest of the device.
  double part_of_rate = 1;          // Of the rate of that dtype, which is all that it can have.

  // The least that moves between caches which hold so much together and what lies behind them. What
  // is written may stay in them when the launch ends, and be written back after it. Where they were
  // hot, what is read may have been in them; an operand that is worked on in place counts both ways
  // and stands there once, so the two do not share the room.
  std::int64_t BytesBeyond(std::uint64_t cached, L2State state) const {
    const auto beyond = [cached](std::int64_t moved) -> std::int64_t {
      return cached >= static_cast<std::uint64_t>(moved)
                 ? 0
                 : moved - static_cast<std::int64_t>(cached);
    };
    const std::int64_t out = std::min(written, bytes), in = bytes - out;
    return (state == L2State::kHot ? beyond(in) : in) + beyond(out);
  }
};

// Of a launch that takes longer than some milliseconds: what Time(Method::kBackToBack) runs of it
// when it is new.
inline constexpr int kFirstSlopeLaunches = 11;

// Calls come from one thread. Work is asynchronous until Synchronize unless a call says otherwise.
class Device {
 public:
  virtual ~Device() = default;

  virtual const DeviceInfo& info() const = 0;
  // RESOURCE_EXHAUSTED with the numbers if it does not fit.
  virtual absl::StatusOr<std::unique_ptr<DeviceBuffer>> Allocate(std::uint64_t bytes) = 0;
  // After Allocate refused: whether others may still give back so much, without anything done here.
  virtual bool MayGetMemory(std::uint64_t) const { return false; }
  // What was freed and not given back to the system: it is given out again faster. Whoever else
  // works with the device lacks it meanwhile.
  virtual std::uint64_t kept_bytes() const { return 0; }
  // Gives it back, but for so much.
  virtual void GiveBack(std::uint64_t) {}
  // True where kernels can work on host memory itself (the CPU): nothing is then copied in or out.
  virtual bool uses_host_memory() const = 0;
  // Pins host memory that copies will come from and go to, for the life of the device, so that they
  // run at full speed and asynchronously.
  virtual absl::Status RegisterHost(std::span<std::byte>) { return absl::OkStatus(); }
  // An error that it cannot recover from was met: every later call fails, the process must end.
  virtual bool poisoned() const { return false; }
  virtual absl::Status CopyIn(void* to, std::span<const std::byte> from) = 0;
  virtual absl::Status CopyOut(std::span<std::byte> to, const void* from) = 0;
  virtual absl::Status Copy(void* to, const void* from, std::uint64_t bytes) = 0;
  virtual absl::Status Fill(void* to, std::byte value, std::uint64_t bytes) = 0;
  // All words of the memory that threads of a block share, on all of the device: what launches left
  // there is gone. Asynchronous.
  virtual absl::Status FillShared(std::uint32_t) { return absl::OkStatus(); }
  // Elements `first` to `first` + `count` of an operand, at `to`, as docs/generators.md has them.
  virtual absl::Status Generate(const Generator& generator, DType dtype, std::int64_t first,
                                std::int64_t count, void* to) = 0;
  // When it returns nothing works on memory any more, also after an error; where that cannot be
  // known the device is poisoned.
  virtual absl::Status Synchronize() = 0;

  // For Call: the device's threads and stream.
  virtual Threads* threads() = 0;
  virtual void* stream() = 0;

  // `cubin` is copied. FAILED_PRECONDITION (NO_DEVICE) where no submitted code can run; else
  // (NO_KERNEL_IMAGE) if it is none for this device.
  virtual absl::StatusOr<std::unique_ptr<DeviceModule>> LoadModule(
      std::span<const std::byte> cubin);

  // What is timed from here on is another launch: what the device kept of the last one is stale.
  virtual void NewLaunch() {}
  // True where the first launch of a kernel may load it, which waits for the device: it cannot be
  // timed by a method that holds the device back meanwhile.
  virtual bool loads_lazily() const { return false; }
  // The methods by which this device can time, and one launch timed by one of them. Synchronous.
  virtual std::span<const Method> methods() const = 0;
  virtual absl::StatusOr<TimedLaunch> Time(Method method,
                                           absl::FunctionRef<absl::Status()> launch) = 0;
  // Brings the last-level cache into the state; outside any timed window. Synchronous.
  virtual absl::Status PrepareCache(L2State state) = 0;
  virtual Conditions Observe() = 0;
  // What the cores run at now, measured; 0 where it cannot be known. Synchronous.
  virtual double ClockHz() { return 0; }
  // The least time that this work can take, and why; 0 if unknown.
  struct Roofline {
    double ns = 0;
    std::string basis;
  };
  virtual Roofline RooflineOf(const Work& work, L2State state) const = 0;
  // The same after a launch that took less: the peak that counts is measured once more, as the
  // device may have been slower when it was measured first, and the better one is kept.
  virtual Roofline RecheckRoofline(const Work& work, L2State state) {
    return RooflineOf(work, state);
  }
};

inline absl::StatusOr<std::unique_ptr<DeviceModule>> Device::LoadModule(
    std::span<const std::byte>) {
  return WithReason(absl::FailedPreconditionError(absl::StrCat(
                        "device ", info().name, " runs no submitted code: want a GPU for a cubin")),
                    "NO_DEVICE");
}

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_DEVICE_DEVICE_H_
