#include "server/heap.h"

#include <algorithm>
#include <cstdint>
#include <sstream>

#include <malloc.h>
#include <unistd.h>

#include "base/system_files.h"

namespace gridclock {
namespace {

// Of pages that belong to no file and to no arena of tensors. 0 where the system does not say.
std::uint64_t PrivateBytes() {
  std::istringstream statm(ReadText("/proc/self/statm").value_or(""));
  std::uint64_t size = 0, resident = 0, shared = 0;
  if (!(statm >> size >> resident >> shared) || resident < shared) return 0;
  return (resident - shared) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

// malloc counts by walking all that is free, while others wait for it: so only where there may be
// something to give back.
std::uint64_t FreePages() {
  const std::uint64_t pages = PrivateBytes();
  if (pages < IdlePages::kKept) return 0;
  const struct mallinfo2 info = mallinfo2();
  const std::uint64_t used = info.uordblks + info.hblkhd;
  return std::min<std::uint64_t>(info.fordblks, pages - std::min(pages, used));
}

}  // namespace

void KeepPages() {
  mallopt(M_ARENA_MAX, 2);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
}

IdlePages::Heap HeapOfMalloc() {
  return {.free_bytes = FreePages, .trim = [] { malloc_trim(0); }};
}

}  // namespace gridclock
