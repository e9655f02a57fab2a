// Copies of bytes that are read soon, and of those that are not.
#ifndef GRIDCLOCK_BASE_COPY_H_
#define GRIDCLOCK_BASE_COPY_H_

#include <cstddef>
#include <cstdint>

namespace gridclock {

// Late: more has come by then than caches keep.
enum class Reuse : std::uint8_t { kSoon, kLate };

constexpr Reuse ReuseOf(std::uint64_t bytes_in_all) {
  constexpr std::uint64_t kKeptByCaches = std::uint64_t{32} << 20;
  return bytes_in_all > kKeptByCaches ? Reuse::kLate : Reuse::kSoon;
}

// What is read late is stored past the caches, which need not fetch the lines that it overwrites:
// about half the time. Other threads see it as they see memcpy's. The two MUST NOT overlap.
void CopyBytes(std::byte* to, const std::byte* from, std::size_t size, Reuse reuse);

}  // namespace gridclock

#endif  // GRIDCLOCK_BASE_COPY_H_
