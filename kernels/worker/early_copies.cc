#include "kernels/worker/early_copies.h"

#include <algorithm>
#include <utility>

#include "base/status.h"

namespace gridclock {

bool EarlyCopies::Note(const WorkerArrival& arrival) {
  if (device_.uses_host_memory()) return false;
  for (Copy& copy : copies_) {
    if (copy.arrival.id != arrival.id || copy.arrival.input != arrival.input) continue;
    const bool same = copy.arrival.generation == arrival.generation &&
                      copy.arrival.memory == arrival.memory && copy.arrival.bytes <= arrival.bytes;
    if (!same) copy = {};
    copy.arrival = arrival;
    return true;
  }
  copies_.push_back({.arrival = arrival, .buffer = nullptr, .bytes = 0});
  return true;
}

EarlyCopies::Copy* EarlyCopies::Behind() {
  for (Copy& copy : copies_) {
    if (copy.bytes < copy.arrival.bytes) return &copy;
  }
  return nullptr;
}

bool EarlyCopies::pending() const {
  return std::any_of(copies_.begin(), copies_.end(),
                     [](const Copy& copy) { return copy.bytes < copy.arrival.bytes; });
}

// Half of the device: the rest is never short because of what may never become an order.
bool EarlyCopies::HasRoomFor(std::uint64_t bytes) const {
  std::uint64_t left = device_.info().memory_bytes / 2;
  for (const Copy& copy : copies_) {
    if (copy.buffer != nullptr) left -= std::min(left, copy.buffer->size());
  }
  return bytes <= left;
}

// Whatever keeps a piece from being copied, the order will meet too, and say so. A lost device
// cannot wait for that.
absl::Status EarlyCopies::CopyPiece() {
  absl::Status status = Settle();
  if (Copy* const copy = Behind(); copy != nullptr && status.ok()) {
    status = CopyPieceOf(*copy);
    if (!status.ok()) Forget(copy->arrival.id);
  }
  return device_.poisoned() ? status : absl::OkStatus();
}

absl::Status EarlyCopies::CopyPieceOf(Copy& copy) {
  const WorkerArrival& arrival = copy.arrival;
  if (copy.buffer == nullptr) {
    if (!HasRoomFor(arrival.memory.size)) {
      return absl::ResourceExhaustedError("the device's part for early copies is full");
    }
    GC_ASSIGN_OR_RETURN(copy.buffer, device_.Allocate(arrival.memory.size));
  }
  const std::uint64_t size = std::min(kPiece, arrival.bytes - copy.bytes);
  under_way_ = true;
  GC_RETURN_IF_ERROR(device_.CopyIn(static_cast<std::byte*>(copy.buffer->data()) + copy.bytes,
                                    arena_.subspan(arrival.memory.offset + copy.bytes, size)));
  copy.bytes += size;
  return absl::OkStatus();
}

absl::Status EarlyCopies::Settle() {
  if (!std::exchange(under_way_, false)) return absl::OkStatus();
  absl::Status settled = device_.Synchronize();
  if (!settled.ok()) Clear();  // What came of the piece under way is not known.
  return settled;
}

absl::Status EarlyCopies::SettleBefore(const WorkerOrder& order) {
  const bool own = std::any_of(copies_.begin(), copies_.end(),
                               [&](const Copy& copy) { return copy.arrival.id == order.id; });
  if (own) return absl::OkStatus();
  absl::Status settled = Settle();
  return device_.poisoned() ? settled : absl::OkStatus();
}

EarlyCopies::Copied EarlyCopies::Take(const WorkerOrder& order, std::size_t input) {
  for (Copy& copy : copies_) {
    const WorkerArrival& arrival = copy.arrival;
    if (arrival.id != order.id || arrival.generation != order.generation) continue;
    if (arrival.input != input || arrival.memory != order.inputs[input].memory) continue;
    Copied copied = {.buffer = std::move(copy.buffer), .bytes = copy.bytes};
    copies_.erase(copies_.begin() + (&copy - copies_.data()));
    return copied;
  }
  return {};
}

void EarlyCopies::Forget(std::uint64_t id) {
  std::erase_if(copies_, [id](const Copy& copy) { return copy.arrival.id == id; });
}

bool EarlyCopies::Clear() {
  const bool some = std::any_of(copies_.begin(), copies_.end(),
                                [](const Copy& copy) { return copy.buffer != nullptr; });
  copies_.clear();
  return some;
}

}  // namespace gridclock
