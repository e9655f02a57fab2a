#include "base/copy.h"

#include <cstring>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace gridclock {
namespace {

#if defined(__SSE2__)
constexpr std::size_t kLine = 64;

// `to` MUST begin a line, `lines` are whole.
void StoreLines(std::byte* to, const std::byte* from, std::size_t lines) {
  for (std::size_t at = 0; at < lines; at += sizeof(__m128i)) {
    const __m128i value = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at));
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + at), value);
  }
  // Such stores are not ordered with the later ones that tell of them.
  _mm_sfence();
}

void CopyPastCaches(std::byte* to, const std::byte* from, std::size_t size) {
  const std::size_t head = -reinterpret_cast<std::uintptr_t>(to) % kLine;
  const std::size_t lines = (size - head) / kLine * kLine;
  std::memcpy(to, from, head);
  StoreLines(to + head, from + head, lines);
  std::memcpy(to + head + lines, from + head + lines, size - head - lines);
}
#else
void CopyPastCaches(std::byte* to, const std::byte* from, std::size_t size) {
  std::memcpy(to, from, size);
}
#endif

}  // namespace

void CopyBytes(std::byte* to, const std::byte* from, std::size_t size, Reuse reuse) {
  constexpr std::size_t kWorthAFence = 4096;
  if (reuse == Reuse::kLate && size >= kWorthAFence) return CopyPastCaches(to, from, size);
  std::memcpy(to, from, size);
}

}  // namespace gridclock
