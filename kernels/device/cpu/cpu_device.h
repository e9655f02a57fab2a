// The cores of this machine as a device.
#ifndef GRIDCLOCK_KERNELS_DEVICE_CPU_CPU_DEVICE_H_
#define GRIDCLOCK_KERNELS_DEVICE_CPU_CPU_DEVICE_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/device/cpu/calibration.h"
#include "kernels/device/cpu/conditions.h"
#include "kernels/device/cpu/host.h"
#include "kernels/device/cpu/memory_pool.h"
#include "kernels/device/cpu/tbb_threads.h"
#include "kernels/device/device.h"

namespace gridclock {

// Every call returns when its work is done, so Synchronize has nothing to wait for.
class CpuDevice final : public Device {
 public:
  struct Options {
    int threads = 0;         // 0: every CPU of the affinity mask that the cgroup's quota pays for.
    std::string level = {};  // Of the catalogue in use, for info(): "x86-64-v3".
    bool calibrate = true;   // Costs 0.2 s; without it rooflines and bandwidth are unknown (0).
    int server = 0;  // The process that this one works for; 0: none. Its work is no sharing.
    std::optional<Calibration> calibration = {};  // If it is known: then nothing is measured.
  };
  // INVALID_ARGUMENT if threads is not in 0..1024.
  static absl::StatusOr<std::unique_ptr<CpuDevice>> Create(const Options& options);

  const DeviceInfo& info() const override { return info_; }
  const Calibration& calibration() const { return calibration_; }
  absl::StatusOr<std::unique_ptr<DeviceBuffer>> Allocate(std::uint64_t bytes) override;
  bool uses_host_memory() const override { return true; }
  absl::Status CopyIn(void* to, std::span<const std::byte> from) override;
  absl::Status CopyOut(std::span<std::byte> to, const void* from) override;
  absl::Status Copy(void* to, const void* from, std::uint64_t bytes) override;
  absl::Status Fill(void* to, std::byte value, std::uint64_t bytes) override;
  absl::Status Generate(const Generator& generator, DType dtype, std::int64_t first,
                        std::int64_t count, void* to) override;
  absl::Status Synchronize() override { return absl::OkStatus(); }
  Threads* threads() override { return &threads_; }
  void* stream() override { return nullptr; }
  std::span<const Method> methods() const override;
  absl::StatusOr<TimedLaunch> Time(Method method,
                                   absl::FunctionRef<absl::Status()> launch) override;
  // A cold state is brought about from every CPU of the affinity mask in turn, as PlanFlush says:
  // threads are free to move, and a cache is emptied only from where it stands. UNAVAILABLE if the
  // system no longer lets us run on one of them.
  absl::Status PrepareCache(L2State state) override;
  // Compares with the state at the last call, or at the device's creation.
  Conditions Observe() override;
  Roofline RooflineOf(const Work& work, L2State state) const override;
  Roofline RecheckRoofline(const Work& work, L2State state) override;

 private:
  CpuDevice(const HostFacts& host, int threads, const Options& options);
  absl::Status MakeFlushBuffer();
  absl::Status Flush(std::size_t share, bool write);

  HostFacts host_;
  TbbThreads threads_;
  MemoryPool memory_;
  const std::vector<FlushShare> flush_plan_;
  std::unique_ptr<DeviceBuffer> flush_;  // Made when a cold cache is first asked for.
  const int server_;
  HostCounts counts_;
  Calibration calibration_;
  DeviceInfo info_;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_DEVICE_CPU_CPU_DEVICE_H_
