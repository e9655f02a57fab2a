// Messages over a stream of bytes: each behind its length, four bytes, little-endian.
#ifndef GRIDCLOCK_BASE_FRAMES_H_
#define GRIDCLOCK_BASE_FRAMES_H_

#include <cstddef>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace gridclock {

void AppendFrame(absl::string_view message, std::string* out);

// What came so far, cut into messages.
class FrameReader {
 public:
  // A longer message is an error before any of it is kept.
  explicit FrameReader(std::size_t most) : most_(most) {}
  void Add(absl::string_view bytes) { buffer_.append(bytes.data(), bytes.size()); }
  // The next whole message; nullopt if there is none yet. RESOURCE_EXHAUSTED for one that is too
  // long: nothing behind it can be read.
  absl::StatusOr<std::optional<std::string>> Next();

 private:
  const std::size_t most_;
  std::string buffer_;
  std::size_t read_ = 0;  // Of buffer_.
};

enum class StreamRead { kBytes, kNothing, kEnd };
// Adds what `fd` has, without waiting.
StreamRead ReadSome(int fd, FrameReader& reader);
// Sends as much of `bytes` as `fd` takes without waiting, and takes that off. False: the other side
// is gone. Never raises SIGPIPE; `fd` is a socket.
bool SendSome(int fd, std::string& bytes);

}  // namespace gridclock

#endif  // GRIDCLOCK_BASE_FRAMES_H_
