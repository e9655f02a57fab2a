#include "kernels/api/amx.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace gridclock::amx {
namespace {

bool CpuHasIt() {
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

bool IsHere() {
  static const bool is_here = CpuHasIt() && SystemAgrees();
  return is_here;
}

}  // namespace gridclock::amx
