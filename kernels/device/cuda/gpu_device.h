// The CUDA device itself.
#ifndef GRIDCLOCK_KERNELS_DEVICE_CUDA_GPU_DEVICE_H_
#define GRIDCLOCK_KERNELS_DEVICE_CUDA_GPU_DEVICE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/device/cpu/tbb_threads.h"
#include "kernels/device/cuda/cuda_device.h"
#include "kernels/device/cuda/cupti.h"
#include "kernels/device/cuda/device_pool.h"
#include "kernels/device/cuda/gpu_calibration.h"
#include "kernels/device/cuda/gpu_timer.h"
#include "kernels/device/cuda/graph_slope.h"
#include "kernels/device/cuda/handles.h"
#include "kernels/device/cuda/nvml.h"
#include "kernels/device/cuda/pinned_range.h"

namespace gridclock {

class GpuDevice final : public CudaDevice {
 public:
  // The device `ordinal` is current and has a context.
  static absl::StatusOr<std::unique_ptr<GpuDevice>> Make(const CudaOptions& options, int ordinal);
  ~GpuDevice() override;

  const DeviceInfo& info() const override { return info_; }
  absl::StatusOr<std::unique_ptr<DeviceBuffer>> Allocate(std::uint64_t bytes) override;
  bool MayGetMemory(std::uint64_t bytes) const override;
  std::uint64_t kept_bytes() const override { return memory_.kept(); }
  void GiveBack(std::uint64_t keep) override { memory_.Trim(keep); }
  bool uses_host_memory() const override { return false; }
  absl::Status RegisterHost(std::span<std::byte> memory) override;
  bool poisoned() const override { return !fault_.ok(); }
  absl::Status CopyIn(void* to, std::span<const std::byte> from) override;
  absl::Status CopyOut(std::span<std::byte> to, const void* from) override;
  absl::Status Copy(void* to, const void* from, std::uint64_t bytes) override;
  absl::Status Fill(void* to, std::byte value, std::uint64_t bytes) override;
  absl::Status FillShared(std::uint32_t word) override;
  absl::Status Generate(const Generator& generator, DType dtype, std::int64_t first,
                        std::int64_t count, void* to) override;
  absl::Status Synchronize() override;
  Threads* threads() override { return &threads_; }
  void* stream() override { return stream_.get(); }
  absl::StatusOr<std::unique_ptr<DeviceModule>> LoadModule(
      std::span<const std::byte> cubin) override;
  void NewLaunch() override;
  bool loads_lazily() const override { return true; }
  std::span<const Method> methods() const override { return methods_; }
  absl::StatusOr<TimedLaunch> Time(Method method,
                                   absl::FunctionRef<absl::Status()> launch) override;
  absl::Status PrepareCache(L2State state) override;
  Conditions Observe() override;
  double ClockHz() override;
  Roofline RooflineOf(const Work& work, L2State state) const override;
  Roofline RecheckRoofline(const Work& work, L2State state) override;
  std::string CalibrationText() const override;

 private:
  struct Parts {
    int ordinal = 0;
    CudaDeviceFacts facts = {};
    CudaStream stream = {};
  };
  GpuDevice(const CudaOptions& options, Parts parts);
  DevicePool::Options PoolOptions();
  void* TakeMemory(std::uint64_t bytes);
  absl::Status OpenTools();
  void OpenCupti();
  absl::Status ProveCupti(KernelRecords records);
  RecordsChoice NewChoice() const;
  void DropCupti(const absl::Status& why);
  absl::StatusOr<GpuCalibration> Calibrate();
  void RefuseSerial(absl::string_view why);
  absl::Status Settle(const std::string& calibration);
  void Describe();

  absl::Status Note(absl::Status status);
  absl::Status Note(cudaError_t error, absl::string_view what);
  absl::Status SetRecording(std::optional<KernelRecords> wanted);
  absl::StatusOr<double> TimeBy(Method method, absl::FunctionRef<absl::Status()> launch,
                                TimedLaunch* timed);
  absl::StatusOr<double> HostTime(absl::FunctionRef<absl::Status()> launch, bool synchronise);
  absl::StatusOr<double> DeviceTime(absl::FunctionRef<absl::Status()> launch, TimedLaunch* timed);
  absl::Status CopyGenerated(const Generator& generator, DType dtype, std::int64_t first,
                             std::int64_t count, void* to);
  absl::Status CopyHost(const std::byte* host, std::size_t bytes,
                        absl::FunctionRef<cudaError_t(std::size_t, std::size_t)> copy);
  std::string WhyMissing(Method method) const;
  std::string NoteOn(Method method) const;

  const CudaOptions options_;
  const int ordinal_;
  const CudaDeviceFacts facts_;
  CudaStream stream_;
  TbbThreads threads_;
  DevicePool memory_;
  std::vector<std::unique_ptr<PinnedRange>> pinned_;
  std::optional<GpuTimer> timer_;
  GraphSlope slope_;
  std::unique_ptr<Nvml> nvml_;    // Null: clocks and sharing are unknown.
  std::unique_ptr<Cupti> cupti_;  // Null: no device time, because of no_cupti_.
  std::string no_cupti_;
  std::unique_ptr<DeviceBuffer> flush_;        // Made when a cold cache is first asked for.
  LaunchList list_;                            // Of the launch that is timed now.
  std::string no_serial_;                      // Why no serial records are taken; empty: they are.
  std::optional<KernelRecords> only_records_;  // All are to be of this kind; else choice_ tells.
  NvmlReading last_reading_;
  std::int64_t last_reading_ns_ = 0;
  GpuCalibration calibration_;
  std::string doubt_;     // Why that may be off; it is not handed on then.
  RecordsChoice choice_;  // For the next record of the launch that is timed now.
  std::vector<Method> methods_;
  DeviceInfo info_;
  absl::Status fault_;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_DEVICE_CUDA_GPU_DEVICE_H_
