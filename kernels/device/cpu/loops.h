// The loops that find this machine's peaks, with the widest vectors it has.
#ifndef GRIDCLOCK_KERNELS_DEVICE_CPU_LOOPS_H_
#define GRIDCLOCK_KERNELS_DEVICE_CPU_LOOPS_H_

#include <cstdint>

namespace gridclock {

// `n` floats, a multiple of 256, aligned to 64 bytes.
float ReadLoop(const float* from, std::int64_t n);
void CopyLoop(const float* from, float* to, std::int64_t n);
// Stores that go past the caches.
void StreamLoop(const float* from, float* to, std::int64_t n);

// Fused multiply-adds of f32 in independent chains; returns how many floating operations they were.
// `sink` takes a result, so that none is left out.
std::int64_t FlopsLoop(std::int64_t rounds, float* sink);

// Products of bf16 by units that must be here (bf16_units.h): of tiles, and of vectors.
std::int64_t MatrixFlopsLoop(std::int64_t rounds);
std::int64_t DotFlopsLoop(std::int64_t rounds, float* sink);

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_DEVICE_CPU_LOOPS_H_
