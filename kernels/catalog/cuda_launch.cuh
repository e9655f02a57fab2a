// Launches of the catalogue's GPU kernels: refused before they reach the driver where the hardware
// cannot take them, and checked after.
#ifndef GRIDCLOCK_KERNELS_CATALOG_CUDA_LAUNCH_CUH_
#define GRIDCLOCK_KERNELS_CATALOG_CUDA_LAUNCH_CUH_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include <cuda_runtime.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "kernels/api/cuda_error.h"
#include "kernels/api/kernel.h"

namespace gridclock::cuda {

// Extents in 64 bits, so that none is cut off before it is checked.
struct Extent {
  std::int64_t x = 1, y = 1, z = 1;
};

struct Geometry {
  Extent grid = {}, block = {};
  std::int64_t shared_bytes = 0;  // Dynamic.
  std::int64_t cluster = 1;       // Blocks along x that share their memory; compute capability 9.0.
  // May start while the kernel before it ends, of which it reads nothing until WaitForKernelBefore.
  // Code for GPUs before compute capability 9.0 starts after that one, like any other.
  bool early = false;
};

// Until the kernel before has ended and its writes are seen. Every thread of a kernel that is
// launched `early` must come here before it reads or writes what that one may write or read.
__device__ inline void WaitForKernelBefore() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// As many blocks as `items` items need. More than the hardware takes in one launch are left to the
// kernel's own loop over the grid.
inline std::int64_t Blocks(std::int64_t items, std::int64_t items_of_a_block) {
  constexpr std::int64_t kMost = 0x7FFFFFFF;
  return std::clamp<std::int64_t>((items + items_of_a_block - 1) / items_of_a_block, 1, kMost);
}

// INTERNAL where no CUDA device takes the geometry: it is the variant's own, of a call that its
// words said it takes.
inline absl::Status Check(const Geometry& g) {
  constexpr std::int64_t kMostX = 0x7FFFFFFF, kMostYZ = 65535, kMostThreads = 1024;
  const auto in = [](std::int64_t value, std::int64_t most) { return value >= 1 && value <= most; };
  if (!in(g.grid.x, kMostX) || !in(g.grid.y, kMostYZ) || !in(g.grid.z, kMostYZ)) {
    return absl::InternalError(absl::StrCat("grid (", g.grid.x, ", ", g.grid.y, ", ", g.grid.z,
                                            "): want 1 to (", kMostX, ", ", kMostYZ, ", ", kMostYZ,
                                            ")"));
  }
  const Extent& b = g.block;
  if (!in(b.x, kMostThreads) || !in(b.y, kMostThreads) || !in(b.z, 64) ||
      b.x * b.y * b.z > kMostThreads) {
    return absl::InternalError(absl::StrCat("block (", b.x, ", ", b.y, ", ", b.z,
                                            "): want at most ", kMostThreads, " threads"));
  }
  return absl::OkStatus();
}

// What the runtime says of a call of the catalogue. An error of an earlier launch comes up here
// too; the device tells by its own check whether it is of the lasting kind.
inline absl::Status ToStatus(cudaError_t error, absl::string_view what) {
  if (error == cudaSuccess) return absl::OkStatus();
  cudaGetLastError();  // The runtime keeps an error until it is asked; the next call must not find
                       // it.
  return CudaStatus(error, what,
                    LacksImage(error) ? "; this build has no code for this GPU "
                                        "(GRIDCLOCK_CUDA_ARCHITECTURES)"
                                      : "");
}

// Lets `kernel` have so much dynamic shared memory, of which 48 KiB need no leave, and has its SMs
// give shared memory what the cache need not have.
template <typename... Params>
absl::Status AllowShared(void (*kernel)(Params...), std::int64_t bytes) {
  GC_RETURN_IF_ERROR(
      ToStatus(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(bytes)),
               "shared memory"));
  return ToStatus(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                       cudaSharedmemCarveoutMaxShared),
                  "shared memory");
}

// The geometry in the words of the runtime, which keeps to `attributes` by their address.
using Attributes = std::array<cudaLaunchAttribute, 2>;
inline cudaLaunchConfig_t ConfigOf(const Geometry& g, Attributes& attributes) {
  const auto to_dim = [](const Extent& e) {
    return dim3(static_cast<unsigned>(e.x), static_cast<unsigned>(e.y), static_cast<unsigned>(e.z));
  };
  cudaLaunchConfig_t config = {};
  config.gridDim = to_dim(g.grid);
  config.blockDim = to_dim(g.block);
  config.dynamicSmemBytes = static_cast<std::size_t>(g.shared_bytes);
  config.attrs = attributes.data();
  if (g.cluster > 1) {
    cudaLaunchAttribute& cluster = attributes[config.numAttrs++];
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim = {static_cast<unsigned>(g.cluster), 1, 1};
  }
  if (g.early) {
    cudaLaunchAttribute& early = attributes[config.numAttrs++];
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
  }
  return config;
}

// Lets `kernel` have clusters of more than the 8 blocks that every GPU with clusters takes.
template <typename... Params>
absl::Status AllowClusters(void (*kernel)(Params...)) {
  return ToStatus(cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1),
                  "clusters");
}

// How many clusters of so many threads and so much memory the GPU runs at once; 0 where it cannot.
template <typename... Params>
absl::StatusOr<std::int64_t> ClustersAtOnce(void (*kernel)(Params...), Geometry g) {
  int count = 0, device = 0, multiprocessors = 0;
  g.grid.x = g.cluster;
  Attributes attributes = {};
  const cudaLaunchConfig_t config = ConfigOf(g, attributes);
  if (g.cluster > 1) {
    GC_RETURN_IF_ERROR(
        ToStatus(cudaOccupancyMaxActiveClusters(&count, kernel, &config), "occupancy"));
    return count;
  }
  GC_RETURN_IF_ERROR(ToStatus(cudaGetDevice(&device), "device"));
  GC_RETURN_IF_ERROR(
      ToStatus(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device),
               "multiprocessors"));
  GC_RETURN_IF_ERROR(ToStatus(
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&count, kernel, static_cast<int>(g.block.x),
                                                    static_cast<std::size_t>(g.shared_bytes)),
      "occupancy"));
  return std::int64_t{count} * multiprocessors;
}

// Whether WaitForKernelBefore waits in the code of `kernel` that this GPU runs: code for older
// GPUs, which the driver translates for newer ones, has no wait in it.
template <typename... Params>
absl::StatusOr<bool> WaitsForKernelBefore(void (*kernel)(Params...)) {
  cudaFuncAttributes attributes = {};
  GC_RETURN_IF_ERROR(ToStatus(cudaFuncGetAttributes(&attributes, kernel), "code of a kernel"));
  return attributes.ptxVersion >= 90;
}

// Beside what Launch counts: of a call of a library, as one.
inline void CountLaunch(const Call& call) {
  if (call.launches != nullptr) ++*call.launches;
}

// Launches `kernel` on the stream of `call`.
template <typename... Params, typename... Args>
absl::Status Launch(const Call& call, void (*kernel)(Params...), Geometry g, Args... args) {
  GC_RETURN_IF_ERROR(Check(g));
  if (g.early) {
    GC_ASSIGN_OR_RETURN(g.early, WaitsForKernelBefore(kernel));
  }
  Attributes attributes = {};
  cudaLaunchConfig_t config = ConfigOf(g, attributes);
  config.stream = static_cast<cudaStream_t>(call.stream);
  CountLaunch(call);
  return ToStatus(cudaLaunchKernelEx(&config, kernel, static_cast<Params>(args)...), "launch");
}

}  // namespace gridclock::cuda

#endif  // GRIDCLOCK_KERNELS_CATALOG_CUDA_LAUNCH_CUH_
