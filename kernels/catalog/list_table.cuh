// A table of a list's pointers and sizes in a GPU's memory, and how a block finds its place in it.
#ifndef GRIDCLOCK_KERNELS_CATALOG_LIST_TABLE_CUH_
#define GRIDCLOCK_KERNELS_CATALOG_LIST_TABLE_CUH_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include <cuda_runtime.h>

#include "absl/status/statusor.h"
#include "kernels/catalog/cuda_launch.cuh"

namespace gridclock::cuda::list {

inline constexpr int kListThreads = 256;

// In the memory of the GPU. Tensor i lies at `at[i * columns]` and behind it; its blocks are those
// from first[i] on.
struct Table {
  void* const* at = nullptr;
  const std::int64_t* size = nullptr;
  const int* first = nullptr;
  int count = 0;
};

inline std::int64_t ChunksOf(std::int64_t size, std::int64_t chunk) {
  return (size + chunk - 1) / chunk;
}

// The last of `count` ascending numbers that is not above `block`, the first of which is 0. All
// threads of a block ask together: each looks at one number, so that two looks are enough for
// 65,536 of them. Tensors without elements have the number of the next, and are passed over.
__device__ inline int LastNotAbove(const int* first, int count, int block) {
  int low = 0;
  while (count > 1) {
    const int stride = (count + kListThreads - 1) / kListThreads;
    const int mine = static_cast<int>(threadIdx.x) * stride;
    const int steps =
        __syncthreads_count(static_cast<int>(mine < count && first[low + mine] <= block)) - 1;
    low += steps * stride;
    count = min(stride, count - steps * stride);
  }
  return low;
}

// The same of numbers in a launch's arguments: constant memory is read an address at a time, so all
// threads look at one number, and halve what is left.
__device__ inline int LastNotAboveInArguments(const int* first, int count, int block) {
  int low = 0;
  while (count > 1) {
    const int half = count / 2;
    const bool above = first[low + half] > block;
    low += above ? 0 : half;
    count = above ? half : count - half;
  }
  return low;
}

// Page-locked memory from which tables are copied to the GPU. A copy from other memory would wait
// for the stream. One for the process, whose launches come from one thread.
class TableStaging {
 public:
  static TableStaging& Get() {
    static TableStaging& staging = *new TableStaging;  // Never destroyed: copies may be under way.
    return staging;
  }

  // Copies `bytes` to `to` on the stream of `call`.
  absl::Status Send(const Call& call, const std::vector<std::byte>& bytes, void* to) {
    const auto stream = static_cast<cudaStream_t>(call.stream);
    GC_RETURN_IF_ERROR(Write(bytes));
    GC_RETURN_IF_ERROR(
        ToStatus(cudaMemcpyAsync(to, memory_, bytes.size(), cudaMemcpyHostToDevice, stream),
                 "copy a table"));
    cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
    GC_RETURN_IF_ERROR(ToStatus(cudaStreamIsCapturing(stream, &capturing), "ask for a capture"));
    if (capturing != cudaStreamCaptureStatusNone) return absl::OkStatus();
    return ToStatus(cudaEventRecord(copied_, stream), "record an event");
  }

 private:
  // A repeated call finds its table here and changes nothing, so that a graph of such calls, which
  // copies when it is launched, copies what it was captured with.
  absl::Status Write(const std::vector<std::byte>& bytes) {
    if (used_ == bytes.size() && std::memcmp(memory_, bytes.data(), used_) == 0) {
      return absl::OkStatus();
    }
    if (copied_ == nullptr) {
      GC_RETURN_IF_ERROR(
          ToStatus(cudaEventCreateWithFlags(&copied_, cudaEventDisableTiming), "make an event"));
    }
    GC_RETURN_IF_ERROR(ToStatus(cudaEventSynchronize(copied_), "wait for a table's copy"));
    GC_RETURN_IF_ERROR(Reserve(bytes.size()));
    used_ = bytes.size();
    std::memcpy(memory_, bytes.data(), used_);
    return absl::OkStatus();
  }

  // What was there before is kept: to free it would wait for the whole device.
  absl::Status Reserve(std::size_t bytes) {
    if (bytes <= room_) return absl::OkStatus();
    constexpr std::size_t kLeast = std::size_t{1} << 20;
    const std::size_t want = std::max({bytes, 2 * room_, kLeast});
    void* memory = nullptr;
    GC_RETURN_IF_ERROR(ToStatus(cudaHostAlloc(&memory, want, cudaHostAllocDefault),
                                "page-locked memory for a table"));
    memory_ = static_cast<std::byte*>(memory);
    room_ = want;
    used_ = 0;
    return absl::OkStatus();
  }

  std::byte* memory_ = nullptr;
  std::size_t room_ = 0, used_ = 0;
  cudaEvent_t copied_ = nullptr;
};

// Makes the table of a list, tensor by tensor: all pointers, then all sizes, then all first blocks.
class TableBuilder {
 public:
  TableBuilder(std::int64_t count, int columns, std::int64_t chunk)
      : count_(static_cast<std::size_t>(count)),
        columns_(static_cast<std::size_t>(columns)),
        chunk_(chunk),
        bytes_(count_ * (columns_ * sizeof(void*) + sizeof(std::int64_t) + sizeof(int))) {}

  // at(k): where the next tensor lies in column k.
  template <typename At>
  void Add(std::int64_t size, At at) {
    for (std::size_t k = 0; k < columns_; ++k) {
      Put((added_ * columns_ + k) * sizeof(void*), at(static_cast<int>(k)));
    }
    Put(SizesBegin() + added_ * sizeof size, size);
    Put(FirstsBegin() + added_ * sizeof(int), static_cast<int>(blocks_));
    blocks_ += ChunksOf(size, chunk_);
    ++added_;
  }

  std::int64_t blocks() const { return blocks_; }

  // Copies the table to `to`, in the memory of the GPU.
  absl::StatusOr<Table> Send(const Call& call, void* to) const {
    GC_RETURN_IF_ERROR(TableStaging::Get().Send(call, bytes_, to));
    auto* const begin = static_cast<std::byte*>(to);
    return Table{.at = reinterpret_cast<void* const*>(begin),
                 .size = reinterpret_cast<const std::int64_t*>(begin + SizesBegin()),
                 .first = reinterpret_cast<const int*>(begin + FirstsBegin()),
                 .count = static_cast<int>(count_)};
  }

 private:
  std::size_t SizesBegin() const { return count_ * columns_ * sizeof(void*); }
  std::size_t FirstsBegin() const { return SizesBegin() + count_ * sizeof(std::int64_t); }
  template <typename V>
  void Put(std::size_t offset, V value) {
    std::memcpy(bytes_.data() + offset, &value, sizeof value);
  }

  std::size_t count_, columns_;
  std::int64_t chunk_;
  std::vector<std::byte> bytes_;
  std::size_t added_ = 0;
  std::int64_t blocks_ = 0;
};

}  // namespace gridclock::cuda::list

#endif  // GRIDCLOCK_KERNELS_CATALOG_LIST_TABLE_CUH_
