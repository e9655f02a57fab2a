#include "kernels/api/bf16_units.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace gridclock::bf16_units {
namespace {

bool CpuHasMatrixUnits() {
  constexpr unsigned kBf16 = 1u << 22, kTile = 1u << 24;
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & (kBf16 | kTile)) == (kBf16 | kTile);
}

// A system that does not know of the registers does not know the question either.
bool SystemAgrees() {
  constexpr int kAskForState = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kAskForState, kTileData) == 0;
}

}  // namespace

bool HasMatrixUnits() {
  static const bool has = CpuHasMatrixUnits() && SystemAgrees();
  return has;
}

bool HasDotProducts() {
  return __builtin_cpu_supports("avx512bf16") != 0;
}

}  // namespace gridclock::bf16_units
