#include "server/core/arena_allocator.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace gridclock {
namespace {

std::uint64_t WholePages(std::uint64_t bytes) {
  return (bytes + ArenaAllocator::kPage - 1) / ArenaAllocator::kPage * ArenaAllocator::kPage;
}

absl::Status TooLarge(std::uint64_t bytes, absl::string_view limit, std::uint64_t value) {
  return WithDetails(
      absl::ResourceExhaustedError(
          absl::StrCat("the tensors of this call need ", bytes, " bytes; ", limit, " is ", value)),
      {.reason = "TOO_LARGE",
       .field = "",
       .retry_after = std::nullopt,
       .metadata = {{"limit", std::string(limit)},
                    {"value", absl::StrCat(value)},
                    {"needed", absl::StrCat(bytes)}}});
}

absl::Status Full(std::uint64_t bytes, absl::string_view limit, std::uint64_t value,
                  std::uint64_t used) {
  return WithDetails(
      absl::ResourceExhaustedError(absl::StrCat("want ", bytes, " bytes for tensors; ", used,
                                                " of ", limit, " ", value, " are in use")),
      {.reason = "MEMORY_FULL",
       .field = "",
       .retry_after = absl::Milliseconds(100),
       .metadata = {{"limit", std::string(limit)}, {"value", absl::StrCat(value)}}});
}

}  // namespace

ArenaAllocator::Block::Block(ArenaAllocator& owner, MemoryRange range, std::string principal)
    : owner_(&owner), range_(range), principal_(std::move(principal)) {}

ArenaAllocator::Block::Block(Block&& other) noexcept
    : owner_(std::exchange(other.owner_, nullptr)),
      range_(std::exchange(other.range_, {})),
      principal_(std::move(other.principal_)) {}

ArenaAllocator::Block& ArenaAllocator::Block::operator=(Block&& other) noexcept {
  if (this == &other) return *this;
  if (owner_ != nullptr) owner_->Release(range_, principal_);
  owner_ = std::exchange(other.owner_, nullptr);
  range_ = std::exchange(other.range_, {});
  principal_ = std::move(other.principal_);
  return *this;
}

ArenaAllocator::Block::~Block() {
  if (owner_ != nullptr) owner_->Release(range_, principal_);
}

ArenaAllocator::ArenaAllocator(std::uint64_t bytes, std::uint64_t per_principal)
    : capacity_(bytes / kPage * kPage), per_principal_(per_principal) {
  if (capacity_ > 0) free_[0] = capacity_;
}

absl::StatusOr<ArenaAllocator::Block> ArenaAllocator::Reserve(std::uint64_t bytes,
                                                              absl::string_view principal) {
  if (bytes > capacity_) return TooLarge(bytes, "arena_bytes", capacity_);
  const std::uint64_t size = WholePages(bytes);
  if (size > per_principal_) return TooLarge(bytes, "client_arena_bytes", per_principal_);
  if (size == 0) return Block();

  MutexLock lock(mutex_);
  const auto held = held_.find(principal);
  const std::uint64_t before = held == held_.end() ? 0 : held->second;
  if (before + size > per_principal_) {
    return Full(bytes, "client_arena_bytes", per_principal_, before);
  }
  auto hole = free_.begin();
  while (hole != free_.end() && hole->second < size) ++hole;
  if (hole == free_.end()) return Full(bytes, "arena_bytes", capacity_, used_);
  return Take(hole, size, principal);
}

ArenaAllocator::Block ArenaAllocator::Take(Holes::iterator hole, std::uint64_t size,
                                           absl::string_view principal) {
  const MemoryRange range{.offset = hole->first, .size = size};
  const std::uint64_t rest = hole->second - size;
  if (rest == 0) {
    free_.erase(hole);
  } else {
    // The node moves on instead of being made anew: a small call allocates nothing here.
    auto node = free_.extract(hole);
    node.key() = range.offset + size;
    node.mapped() = rest;
    free_.insert(std::move(node));
  }
  const auto held = held_.find(principal);
  if (held != held_.end())
    held->second += size;
  else
    held_.emplace(std::string(principal), size);
  used_ += size;
  return Block(*this, range, std::string(principal));
}

void ArenaAllocator::Release(const MemoryRange& range, const std::string& principal) {
  MutexLock lock(mutex_);
  used_ -= range.size;
  if (const auto held = held_.find(principal); (held->second -= range.size) == 0) {
    // Principals come and go; one that holds nothing costs nothing, once there are many.
    if (held_.size() > kIdlePrincipals) held_.erase(held);
  }
  const auto next = free_.lower_bound(range.offset);
  const bool joins_next = next != free_.end() && range.offset + range.size == next->first;
  const auto before = next == free_.begin() ? free_.end() : std::prev(next);
  const bool joins_before = before != free_.end() && before->first + before->second == range.offset;
  if (joins_before) {
    before->second += range.size + (joins_next ? next->second : 0);
    if (joins_next) free_.erase(next);
  } else if (joins_next) {
    auto node = free_.extract(next);
    node.key() = range.offset;
    node.mapped() += range.size;
    free_.insert(std::move(node));
  } else {
    free_.emplace_hint(next, range.offset, range.size);
  }
}

std::uint64_t ArenaAllocator::used() const {
  MutexLock lock(mutex_);
  return used_;
}

std::uint64_t ArenaAllocator::most_of_one() const {
  MutexLock lock(mutex_);
  std::uint64_t most = 0;
  for (const auto& [principal, held] : held_) most = std::max(most, held);
  return most;
}

}  // namespace gridclock
