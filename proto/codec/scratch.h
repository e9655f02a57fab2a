// A message for as long as a scope lasts. Its parts lie beside it, on the stack as far as they fit,
// so that those of a small message are neither allocated nor freed.
#ifndef GRIDCLOCK_PROTO_CODEC_SCRATCH_H_
#define GRIDCLOCK_PROTO_CODEC_SCRATCH_H_

#include <cstddef>

#include <google/protobuf/arena.h>

namespace gridclock {

template <typename Message>
class Scratch {
 public:
  Scratch()
      : arena_(block_, sizeof(block_)),
        message_(*google::protobuf::Arena::CreateMessage<Message>(&arena_)) {}
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  Message& operator*() { return message_; }
  Message* operator->() { return &message_; }

 private:
  alignas(std::max_align_t) char block_[4096];
  google::protobuf::Arena arena_;
  Message& message_;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_PROTO_CODEC_SCRATCH_H_
