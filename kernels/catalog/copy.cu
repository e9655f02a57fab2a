// Copy: y = x, byte by byte. The yardstick for kernels that are bound by memory, and a way to send
// a tensor there and back.
//
//   naive     memcpy on one thread
//   threads   memcpy on every core

#include <cstring>

#include "kernels/api/kernel.h"
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
  using namespace gridclock;
  return {
      .words = "x: T[*] -> y: T[*]",
      .summary = "The same bytes in another tensor",
      .formula = "y = x",
      .diagnostic = true,
      .reference = EachElement(Expected),
      .cpu = {{"naive", "memcpy on one thread", Naive},
              {"threads", "memcpy on every core", OnThreads}},
  };
}
