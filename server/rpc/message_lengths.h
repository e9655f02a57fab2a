// What gRPC is told of the length of a message that is too long. gRPC 1.51 collects a message until
// it is whole, whatever its first five bytes say of its length, and lets the peer send all of that;
// only then it finds that it is longer than SetMaxReceiveMessageSize() allows. So one call, of
// whose sender nobody has asked for a token, could fill the memory of all. Here the length of such
// a message becomes one byte more than the most: gRPC collects so much, and refuses it. Where a
// first byte is no flag gRPC ends the stream, and nothing is read of what it keeps then: all
// methods are streams of bytes to it (service.h).
#ifndef GRIDCLOCK_SERVER_RPC_MESSAGE_LENGTHS_H_
#define GRIDCLOCK_SERVER_RPC_MESSAGE_LENGTHS_H_

#include <cstddef>
#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"

namespace gridclock {

// Of one connection: the bytes of its DATA frames, as they come.
class MessageLengths {
 public:
  // `most`: the longest message that gRPC takes, less than 2^32 - 1. `most_begun`: so many streams
  // of a connection may have a message that is begun and not whole.
  MessageLengths(std::uint32_t most, std::size_t most_begun)
      : told_(most + 1), most_begun_(most_begun) {}

  // A frame of this stream begins, and ends; between them its bytes, which Feed() may change.
  void BeginFrame(std::uint32_t stream);
  void Feed(absl::Span<std::uint8_t> bytes);
  void EndFrame(bool ends_stream);
  // No more comes of this stream.
  void EndStream(std::uint32_t stream) { begun_.erase(stream); }

  bool too_many() const { return begun_.size() > most_begun_; }

 private:
  enum class Against { kSame, kLess, kMore };  // What is known of a length against told_.
  struct Message {
    int have = 0;  // Of the five bytes before it: one flag, four of its length.
    Against against = Against::kSame;
    std::uint32_t length = 0;
    std::uint32_t left = 0;  // Of its own bytes.
  };

  void FeedPrefix(std::uint8_t& byte);

  const std::uint32_t told_;
  const std::size_t most_begun_;
  absl::flat_hash_map<std::uint32_t, Message> begun_;
  std::uint32_t stream_ = 0;
  Message message_;  // Of stream_.
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_RPC_MESSAGE_LENGTHS_H_
