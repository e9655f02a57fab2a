#include "server/fleet/arena.h"

#include <algorithm>
#include <cerrno>
#include <stop_token>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace gridclock {
namespace {

absl::Status Refused(int error, absl::string_view what, std::uint64_t bytes) {
  return absl::ResourceExhaustedError(
      absl::StrCat("the arena of ", bytes,
                   " bytes cannot be had: ", gridclock::ErrnoToStatus(error, what).message()));
}

// In pieces, between which it can be stopped. Best effort: what this cannot have now comes, or is
// refused, when it is used.
void Warm(const std::stop_token& stop, std::span<std::byte> memory) {
  constexpr std::size_t kPiece = std::size_t{64} << 20;
  while (!memory.empty() && !stop.stop_requested()) {
    const std::span<std::byte> piece = memory.first(std::min(kPiece, memory.size()));
    if (madvise(piece.data(), piece.size(), MADV_POPULATE_WRITE) != 0) return;
    memory = memory.subspan(piece.size());
  }
}

}  // namespace

absl::StatusOr<Arena> Arena::Create(std::uint64_t bytes, std::uint64_t warm_bytes) {
  UniqueFd fd(memfd_create("gridclock-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return Refused(errno, "memfd_create", bytes);
  if (ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0)
    return Refused(errno, "ftruncate", bytes);
  // Neither side can then pull the memory from under the other: no SIGBUS.
  if (fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return Refused(errno, "seal", bytes);
  }
  void* data =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd.get(), 0);
  if (data == MAP_FAILED) return Refused(errno, "mmap", bytes);
  Arena arena(std::move(fd), static_cast<std::byte*>(data), bytes);
  if (const std::uint64_t warm = std::min(warm_bytes, bytes); warm > 0) {
    arena.warmer_ = std::jthread(&Warm, std::span(arena.data_, warm));
  }
  return arena;
}

Arena::Arena(UniqueFd fd, std::byte* data, std::uint64_t size)
    : fd_(std::move(fd)), data_(data), size_(size) {}

Arena::Arena(Arena&& other) noexcept
    : fd_(std::move(other.fd_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      warmer_(std::move(other.warmer_)) {}

Arena::~Arena() {
  warmer_ = std::jthread();  // Stops it.
  if (data_ != nullptr) munmap(data_, size_);
}

std::span<std::byte> Arena::At(const MemoryRange& range) const {
  return {data_ + range.offset, range.size};
}

}  // namespace gridclock
