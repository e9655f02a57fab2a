#include "server/rpc/buffer.h"

#include <utility>

namespace gridclock {
namespace {

using Owner = std::shared_ptr<const void>;

void Release(void* owner) {
  delete static_cast<Owner*>(owner);
}

}  // namespace

MessageView::MessageView(const grpc::ByteBuffer& buffer) : buffer_(buffer) {
  // Fails only for a buffer without content, which is an empty message.
  if (!buffer_.Dump(&held_).ok()) held_.clear();
  spans_.reserve(held_.size());
  for (const grpc::Slice& slice : held_) {
    spans_.emplace_back(reinterpret_cast<const std::byte*>(slice.begin()), slice.size());
  }
}

grpc::Slice Borrow(std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  return grpc::Slice(const_cast<std::byte*>(bytes.data()), bytes.size(), &Release,
                     new Owner(std::move(owner)));
}

grpc::ByteBuffer ToBuffer(const std::string& text) {
  const grpc::Slice slice(text);
  return grpc::ByteBuffer(&slice, 1);
}

}  // namespace gridclock
