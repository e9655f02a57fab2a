#include "proto/types/occupancy.h"

#include <gtest/gtest.h>

#if __has_include(<cuda_occupancy.h>)
#include <cuda_occupancy.h>
#endif

namespace gridclock {
namespace {

Occupancy On(const char* arch, const BlockNeeds& block) {
  const SmLimits* sm = SmLimitsOf(arch);
  EXPECT_NE(sm, nullptr) << arch;
  return TheoreticalOccupancy(*sm, block);
}

TEST(Occupancy, KnownArchitectures) {
  EXPECT_EQ(SmLimitsOf("sm_90a"), SmLimitsOf("sm_90"));
  EXPECT_EQ(SmLimitsOf("sm_100f"), SmLimitsOf("sm_100"));
  for (const char* arch : {"", "sm_", "sm_70", "90", "sm_90aa", "sm_-90", "compute_90"}) {
    EXPECT_EQ(SmLimitsOf(arch), nullptr) << arch;
  }
}

// By hand, from the tables of the programming guide.
TEST(Occupancy, EachLimitBinds) {
  const auto got = [](const char* arch, BlockNeeds block) {
    const Occupancy o = On(arch, block);
    return std::make_tuple(o.blocks, o.warps, o.limit);
  };
  using enum OccupancyLimit;
  EXPECT_EQ(got("sm_90a", {.threads = 256, .registers = 32}), std::make_tuple(8u, 64u, kThreads));
  EXPECT_EQ(got("sm_90a", {.threads = 32, .registers = 16}), std::make_tuple(32u, 32u, kBlocks));
  EXPECT_EQ(got("sm_90a", {.threads = 256, .registers = 64}), std::make_tuple(4u, 32u, kRegisters));
  EXPECT_EQ(got("sm_90a", {.threads = 256, .registers = 255}), std::make_tuple(1u, 8u, kRegisters));
  // 100 KiB and the 1 KiB that the system takes, of 228 KiB.
  EXPECT_EQ(got("sm_90a", {.threads = 128, .registers = 32, .shared_bytes = 100 * 1024}),
            std::make_tuple(2u, 8u, kSharedMemory));
  EXPECT_EQ(got("sm_75", {.threads = 1024, .registers = 32}), std::make_tuple(1u, 32u, kThreads));
}

// 132 multiprocessors of 2,048 threads; 512 bytes for the system, in pieces of 256.
TEST(Occupancy, LocalMemoryIsTakenForAllThreadsThatFitAtOnce) {
  const SmLimits& hopper = *SmLimitsOf("sm_90");
  constexpr std::uint64_t kThreads = 132 * 2048;
  EXPECT_EQ(LocalMemoryBytes(hopper, 132, 0), 0U);
  EXPECT_EQ(LocalMemoryBytes(hopper, 132, 1), kThreads * 768);
  EXPECT_EQ(LocalMemoryBytes(hopper, 132, 256), kThreads * 768);
  EXPECT_EQ(LocalMemoryBytes(hopper, 132, 512 * 1024), kThreads * (512 * 1024 + 512));
  EXPECT_EQ(LocalMemoryBytes(*SmLimitsOf("sm_89"), 128, 256), std::uint64_t{128} * 1536 * 768);
  // As a compiler's answer that is not true may say: no sum wraps around.
  EXPECT_EQ(LocalMemoryBytes(hopper, 132, ~std::uint64_t{0}),
            kThreads * ((std::uint64_t{1} << 32) + 512));
}

TEST(Occupancy, ABlockThatCannotBeLaunchedHasNone) {
  for (const BlockNeeds& block :
       {BlockNeeds{.threads = 1025}, BlockNeeds{.threads = 0},
        BlockNeeds{.threads = 256, .registers = 32, .shared_bytes = 228 * 1024},
        BlockNeeds{.threads = 1024, .registers = 128},
        BlockNeeds{.threads = 256, .registers = 32, .shared_bytes = 0, .most_threads = 128}}) {
    const Occupancy got = On("sm_90a", block);
    EXPECT_EQ(got.blocks, 0u) << block.threads;
    EXPECT_EQ(got.limit, OccupancyLimit::kBlockTooLarge);
    EXPECT_EQ(got.max_warps, 64u);
  }
}

#if __has_include(<cuda_occupancy.h>)
// NVIDIA's own calculator, over every architecture that both know.
int TheirBlocks(int number, const SmLimits& sm, const BlockNeeds& block) {
  cudaOccDeviceProp device;
  device.computeMajor = number / 10;
  device.computeMinor = number % 10;
  device.maxThreadsPerBlock = 1024;
  device.maxThreadsPerMultiprocessor = static_cast<int>(sm.warps) * 32;
  device.regsPerBlock = 65536;
  device.regsPerMultiprocessor = 65536;
  device.warpSize = 32;
  device.sharedMemPerBlock = 48 * 1024;
  device.sharedMemPerMultiprocessor = sm.shared_bytes;
  device.sharedMemPerBlockOptin = sm.block_shared_bytes;
  device.reservedSharedMemPerBlock = sm.reserved_shared_bytes;
  device.numSms = 1;
  cudaOccFuncAttributes kernel;
  kernel.maxThreadsPerBlock = 1024;
  kernel.numRegs = static_cast<int>(block.registers);
  kernel.sharedSizeBytes = 0;
  kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
  kernel.maxDynamicSharedSizeBytes = sm.block_shared_bytes;
  const cudaOccDeviceState state;
  cudaOccResult result{};
  EXPECT_EQ(
      cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &kernel, &state,
                                              static_cast<int>(block.threads), block.shared_bytes),
      CUDA_OCC_SUCCESS);
  return result.activeBlocksPerMultiprocessor;
}

TEST(Occupancy, AgreesWithTheToolkitsCalculator) {
  for (const int number : {75, 80, 86, 87, 89, 90, 100, 103, 110, 120, 121}) {
    const SmLimits& sm = *SmLimitsOf("sm_" + std::to_string(number));
    for (std::uint32_t threads = 32; threads <= 1024; threads += 96) {
      for (std::uint32_t registers = 16; registers <= 255; registers += 13) {
        for (std::uint64_t shared = 0; shared <= sm.block_shared_bytes; shared += 9973) {
          const BlockNeeds block{
              .threads = threads, .registers = registers, .shared_bytes = shared};
          ASSERT_EQ(static_cast<int>(TheoreticalOccupancy(sm, block).blocks),
                    TheirBlocks(number, sm, block))
              << number << " " << threads << " " << registers << " " << shared;
        }
      }
    }
  }
}
#endif

}  // namespace
}  // namespace gridclock
