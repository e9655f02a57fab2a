// Copy: y = x, byte by byte. The yardstick for kernels that are bound by memory, and a way to send
// a tensor there and back.
//
//   naive     memcpy on one thread
//   threads   memcpy on every core
//
// On a GPU:
//   naive     one thread for each element
//   memcpy    the driver's own copy, device to device

#include "kernels/api/kernel.h"

#ifndef __CUDACC__  // The CPU.
#include <cstring>

#include "kernels/catalog/reference.h"

namespace gridclock {
namespace {

void Expected(const Binding&, ReferenceInput in, std::int64_t unit, std::size_t,
              std::span<double> result) {
  result[0] = in(0, unit);
}

std::int64_t ByteCount(const Call& call) {
  return Bytes(call.inputs[0].value->tensors[0]);
}

absl::Status Naive(const Call& call) {
  const std::int64_t bytes = ByteCount(call);
  // memcpy wants no null pointers, and an empty tensor may have no memory.
  if (bytes != 0) std::memcpy(call.Out<char>(0), call.In<char>(0), static_cast<std::size_t>(bytes));
  return absl::OkStatus();
}

absl::Status OnThreads(const Call& call) {
  constexpr std::int64_t kGrainBytes = 256 << 10;
  const char* from = call.In<char>(0);
  char* to = call.Out<char>(0);
  call.threads->ParallelFor(
      ByteCount(call), kGrainBytes, [&](std::int64_t begin, std::int64_t end) {
        std::memcpy(to + begin, from + begin, static_cast<std::size_t>(end - begin));
      });
  return absl::OkStatus();
}

}  // namespace
}  // namespace gridclock

GC_KERNEL(copy) {
  return {
      .words = "x: T[*] -> y: T[*]",
      .summary = "The same bytes in another tensor",
      .formula = "y = x",
      .diagnostic = true,
      .reference = EachElement(Expected, Roundings::kNone),
      .cpu = {{"naive", "memcpy on one thread", Naive},
              {"threads", "memcpy on every core", OnThreads}},
  };
}

#else  // The GPU.
#include "kernels/catalog/cuda_element.cuh"
#include "kernels/catalog/cuda_launch.cuh"

namespace gridclock {
namespace {

template <typename Raw>
__global__ void CopyKernel(Raw* to, const Raw* from, std::int64_t n) {
  for (std::int64_t i = cuda::GridThread(); i < n; i += cuda::GridThreads()) to[i] = from[i];
}

template <typename Raw>
absl::Status CopyElements(const Call& call) {
  const std::int64_t n = Elements(call.InShape(0));
  if (n == 0) return absl::OkStatus();
  constexpr std::int64_t kThreads = 256;
  return cuda::Launch(call, CopyKernel<Raw>,
                      {.grid = {cuda::Blocks(n, kThreads)}, .block = {kThreads}}, call.Out<Raw>(0),
                      call.In<Raw>(0), n);
}

absl::Status Naive(const Call& call) {
  switch (SizeOf(call.InType(0))) {
    case 1:
      return CopyElements<std::uint8_t>(call);
    case 2:
      return CopyElements<std::uint16_t>(call);
    case 4:
      return CopyElements<std::uint32_t>(call);
    default:
      return CopyElements<std::uint64_t>(call);
  }
}

absl::Status Memcpy(const Call& call) {
  const auto bytes = static_cast<std::size_t>(Bytes(call.inputs[0].value->tensors[0]));
  if (bytes == 0) return absl::OkStatus();
  cuda::CountLaunch(call);
  return cuda::ToStatus(
      cudaMemcpyAsync(call.Out<char>(0), call.In<char>(0), bytes, cudaMemcpyDeviceToDevice,
                      static_cast<cudaStream_t>(call.stream)),
      "copy");
}

}  // namespace
}  // namespace gridclock

GC_CUDA_VARIANTS(copy) {
  return {{"naive", "One thread for each element", Naive},
          {"memcpy", "The driver's copy, device to device", Memcpy}};
}

#endif  // __CUDACC__
