// gRPC's buffers and slices met with spans.
#ifndef GRIDCLOCK_SERVER_RPC_BUFFER_H_
#define GRIDCLOCK_SERVER_RPC_BUFFER_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include "proto/codec/wire.h"

namespace gridclock {

// A received message as spans. Holds references to gRPC's slices, copies nothing. A buffer lets go
// of memory that counts against a quota as gRPC asks for it, a slice alone does not, and aborts.
class MessageView {
 public:
  explicit MessageView(const grpc::ByteBuffer& buffer);
  MessageView(const MessageView&) = delete;
  MessageView& operator=(const MessageView&) = delete;
  Slices slices() const { return spans_; }

 private:
  const grpc::ByteBuffer buffer_;  // First, so that it has the last reference to each slice.
  std::vector<grpc::Slice> held_;
  std::vector<std::span<const std::byte>> spans_;
};

// A slice of our own memory: `owner` is let go when gRPC has sent it.
grpc::Slice Borrow(std::span<const std::byte> bytes, std::shared_ptr<const void> owner);

// A message of one slice.
grpc::ByteBuffer ToBuffer(const std::string& text);

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_RPC_BUFFER_H_
