// Makes inputs from a seed on the device itself, to the bit as the host makes them.
#ifndef GRIDCLOCK_KERNELS_DEVICE_CUDA_GENERATE_H_
#define GRIDCLOCK_KERNELS_DEVICE_CUDA_GENERATE_H_

#include <cstdint>

#include <cuda_runtime_api.h>

#include "proto/types/generator.h"

namespace gridclock {

// `count` elements of `dtype` at `to`, the first of which is element `first` of the operand.
cudaError_t LaunchGenerate(const Generator& generator, DType dtype, std::int64_t first,
                           std::int64_t count, void* to, int sms, cudaStream_t stream);

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_DEVICE_CUDA_GENERATE_H_
