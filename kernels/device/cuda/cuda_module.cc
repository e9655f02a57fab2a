#include "kernels/device/cuda/cuda_module.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "kernels/device/cuda/cuda_error.h"
#include "kernels/device/cuda/facts.h"
#include "kernels/device/cuda/handles.h"

namespace gridclock {
namespace {

using Library = UniqueCuda<cudaLibrary_t, &cudaLibraryUnload>;

// What a launch is refused for is of the client's words here.
absl::Status LaunchStatus(cudaError_t error, const std::string& entry) {
  const absl::Status status = CudaStatus(error, absl::StrCat("launch '", entry, "'"));
  if (DetailsOf(status).reason != "LAUNCH_SHAPE") return status;
  return WithReason(absl::InvalidArgumentError(status.message()), "LAUNCH_SHAPE");
}

class CudaLaunch final : public EntryLaunch {
 public:
  CudaLaunch(cudaKernel_t kernel, std::string entry, const BoundLaunch& launch, cudaStream_t stream)
      : kernel_(kernel), entry_(std::move(entry)) {
    config_.gridDim = {launch.grid[0], launch.grid[1], launch.grid[2]};
    config_.blockDim = {launch.block[0], launch.block[1], launch.block[2]};
    config_.dynamicSmemBytes = launch.shared_bytes;
    config_.stream = stream;
    config_.attrs = attributes_;
    if (launch.cooperative) Next(cudaLaunchAttributeCooperative).cooperative = 1;
    if (!launch.has_cluster()) return;
    Next(cudaLaunchAttributeClusterDimension).clusterDim = {launch.cluster[0], launch.cluster[1],
                                                            launch.cluster[2]};
  }
  CudaLaunch(const CudaLaunch&) = delete;  // The configuration points into it.
  CudaLaunch& operator=(const CudaLaunch&) = delete;

  absl::Status Launch(std::span<void* const> params) override {
    return LaunchStatus(cudaLaunchKernelExC(&config_, static_cast<const void*>(kernel_),
                                            const_cast<void**>(params.data())),
                        entry_);
  }

 private:
  cudaLaunchAttributeValue& Next(cudaLaunchAttributeID id) {
    cudaLaunchAttribute& attribute = attributes_[config_.numAttrs++];
    attribute.id = id;
    return attribute.val;
  }

  const cudaKernel_t kernel_;
  const std::string entry_;
  cudaLaunchAttribute attributes_[2] = {};
  cudaLaunchConfig_t config_ = {};
};

// How the compiler writes a variable that the source calls `name`: as it is, or, where it is of a
// namespace or of one file alone, in the words of the C++ ABI.
std::vector<std::string> SymbolsOf(const std::string& name) {
  const std::vector<std::string> parts = absl::StrSplit(name, "::");
  std::string scope;
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    absl::StrAppend(&scope, parts[i].size(), parts[i]);
  }
  const std::string last = absl::StrCat(parts.back().size(), parts.back());
  if (scope.empty()) return {name, absl::StrCat("_ZL", last)};
  return {absl::StrCat("_ZN", scope, last, "E"), absl::StrCat("_ZN", scope, "L", last, "E"), name};
}

class CudaModule final : public DeviceModule {
 public:
  CudaModule(Library library, int ordinal, cudaStream_t stream)
      : library_(std::move(library)), ordinal_(ordinal), stream_(stream) {}

  absl::StatusOr<std::unique_ptr<EntryLaunch>> Prepare(const std::string& entry,
                                                       const BoundLaunch& launch) override {
    cudaKernel_t kernel = nullptr;
    const cudaError_t found = cudaLibraryGetKernel(&kernel, library_.get(), entry.c_str());
    if (found == cudaErrorSymbolNotFound) {
      static_cast<void>(cudaGetLastError());
      return absl::NotFoundError(absl::StrCat("the module has no entry '", entry, "'"));
    }
    GC_RETURN_IF_CUDA_ERROR(found, absl::StrCat("find entry '", entry, "'"));
    GC_RETURN_IF_ERROR(LetHaveShared(kernel, entry, launch.shared_bytes));
    return std::make_unique<CudaLaunch>(kernel, entry, launch, stream_);
  }

  absl::StatusOr<Global> FindGlobal(const std::string& name) override {
    for (const std::string& symbol : SymbolsOf(name)) {
      Global global;
      std::size_t size = 0;
      const cudaError_t found =
          cudaLibraryGetGlobal(&global.data, &size, library_.get(), symbol.c_str());
      global.size = size;
      if (found == cudaSuccess) return global;
      static_cast<void>(cudaGetLastError());
      if (found != cudaErrorSymbolNotFound) return CudaStatus(found, "find a variable");
    }
    return absl::NotFoundError("one that no kernel uses is left out by the compiler");
  }

 private:
  // Beyond what a kernel has without asking. Calls with less keep what one with more was given.
  absl::Status LetHaveShared(cudaKernel_t kernel, const std::string& entry, std::uint64_t bytes) {
    std::uint64_t& most = shared_[entry];
    if (bytes <= most) return absl::OkStatus();
    const cudaError_t set = cudaKernelSetAttributeForDevice(
        kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes), ordinal_);
    if (set == cudaErrorInvalidValue) {
      static_cast<void>(cudaGetLastError());
      return absl::InvalidArgumentError(absl::StrCat(
          "entry '", entry, "': the device gives a block ",
          Attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, ordinal_),
          " bytes of shared memory at most, the entry's own included; the words want ", bytes));
    }
    GC_RETURN_IF_CUDA_ERROR(set, absl::StrCat("give '", entry, "' shared memory"));
    most = bytes;
    return absl::OkStatus();
  }

  const Library library_;
  const int ordinal_;
  const cudaStream_t stream_;
  std::map<std::string, std::uint64_t> shared_;  // Dynamic, that each entry may have.
};

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceModule>> LoadCudaModule(std::span<const std::byte> cubin,
                                                             int ordinal, cudaStream_t stream) {
  cudaLibrary_t library = nullptr;
  const cudaError_t loaded =
      cudaLibraryLoadData(&library, cubin.data(), nullptr, nullptr, 0, nullptr, nullptr, 0);
  if (loaded == cudaSuccess) {
    return std::make_unique<CudaModule>(Library(library), ordinal, stream);
  }
  const absl::Status status = CudaStatus(loaded, "load the code");
  if (status.code() != absl::StatusCode::kInternal) return status;
  return WithReason(absl::FailedPreconditionError(status.message()), "NO_KERNEL_IMAGE");
}

}  // namespace gridclock
