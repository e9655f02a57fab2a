#include "proto/types/occupancy.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"

namespace gridclock {
namespace {

constexpr std::uint32_t kWarp = 32;
constexpr std::uint32_t kKiB = 1024;

// Of every architecture since 7.0: registers are given to a warp in pieces of 256, warps to the
// four parts of a multiprocessor, shared memory to a block in pieces of 128 bytes (256 on 7.x).
constexpr std::uint32_t kRegisterPiece = 256;
constexpr std::uint32_t kParts = 4;
constexpr std::uint64_t kSharedPiece = 128;
constexpr std::uint64_t kOldSharedPiece = 256;
constexpr std::uint32_t kMostRegisters = 255;

struct Architecture {
  int number;
  SmLimits limits;
};

constexpr Architecture kArchitectures[] = {
    {75, {32, 16, 65536, 64 * kKiB, 64 * kKiB, 0}},
    {80, {64, 32, 65536, 164 * kKiB, 163 * kKiB, kKiB}},
    {86, {48, 16, 65536, 100 * kKiB, 99 * kKiB, kKiB}},
    {87, {48, 16, 65536, 164 * kKiB, 163 * kKiB, kKiB}},
    {89, {48, 24, 65536, 100 * kKiB, 99 * kKiB, kKiB}},
    {90, {64, 32, 65536, 228 * kKiB, 227 * kKiB, kKiB}},
    {100, {64, 32, 65536, 228 * kKiB, 227 * kKiB, kKiB}},
    {103, {64, 32, 65536, 228 * kKiB, 227 * kKiB, kKiB}},
    {110, {48, 24, 65536, 228 * kKiB, 227 * kKiB, kKiB}},
    {120, {48, 24, 65536, 100 * kKiB, 99 * kKiB, kKiB}},
    {121, {48, 24, 65536, 100 * kKiB, 99 * kKiB, kKiB}},
};

template <typename T>
T RoundUp(T value, T piece) {
  return (value + piece - 1) / piece * piece;
}

std::uint32_t BlocksByRegisters(const SmLimits& sm, std::uint32_t registers, std::uint32_t warps) {
  if (registers == 0) return sm.blocks;
  const std::uint32_t per_warp = RoundUp(registers * kWarp, kRegisterPiece);
  // A launch is checked as if each part got as many warps as the one with the most.
  if (per_warp * RoundUp(warps, kParts) > sm.registers) return 0;
  return sm.registers / kParts / per_warp * kParts / warps;
}

std::uint32_t BlocksByShared(const SmLimits& sm, std::uint64_t bytes) {
  const std::uint64_t piece = sm.reserved_shared_bytes == 0 ? kOldSharedPiece : kSharedPiece;
  const std::uint64_t taken = RoundUp(bytes + sm.reserved_shared_bytes, piece);
  return taken == 0 ? sm.blocks : static_cast<std::uint32_t>(sm.shared_bytes / taken);
}

}  // namespace

const SmLimits* SmLimitsOf(absl::string_view arch) {
  if (!absl::ConsumePrefix(&arch, "sm_")) return nullptr;
  if (!absl::ConsumeSuffix(&arch, "a")) absl::ConsumeSuffix(&arch, "f");
  int number = 0;
  if (!absl::SimpleAtoi(arch, &number)) return nullptr;
  const auto* found = std::find_if(std::begin(kArchitectures), std::end(kArchitectures),
                                   [number](const Architecture& a) { return a.number == number; });
  return found == std::end(kArchitectures) ? nullptr : &found->limits;
}

Occupancy TheoreticalOccupancy(const SmLimits& sm, const BlockNeeds& block) {
  const std::uint32_t warps = RoundUp(block.threads, kWarp) / kWarp;
  Occupancy out{.max_warps = sm.warps, .limit = OccupancyLimit::kBlockTooLarge};
  if (warps == 0 || block.threads > block.most_threads || block.registers > kMostRegisters ||
      block.shared_bytes > sm.block_shared_bytes) {
    return out;
  }
  const std::pair<OccupancyLimit, std::uint32_t> bounds[] = {
      {OccupancyLimit::kThreads, sm.warps / warps},
      {OccupancyLimit::kBlocks, sm.blocks},
      {OccupancyLimit::kRegisters, BlocksByRegisters(sm, block.registers, warps)},
      {OccupancyLimit::kSharedMemory, BlocksByShared(sm, block.shared_bytes)}};
  const auto* least = std::min_element(std::begin(bounds), std::end(bounds),
                                       [](auto& a, auto& b) { return a.second < b.second; });
  if (least->second == 0) return out;
  out.blocks = least->second;
  out.warps = out.blocks * warps;
  out.limit = least->first;
  return out;
}

std::uint64_t LocalMemoryBytes(const SmLimits& sm, std::int64_t sms, std::uint64_t thread_bytes) {
  constexpr std::uint64_t kOfTheSystem = 512, kPiece = 256;
  constexpr std::uint64_t kMost = std::uint64_t{1} << 32;  // A cubin can state no more.
  if (thread_bytes == 0) return 0;
  const std::uint64_t each = RoundUp(std::min(thread_bytes, kMost) + kOfTheSystem, kPiece);
  return each * sm.warps * kWarp * static_cast<std::uint64_t>(sms);
}

}  // namespace gridclock
