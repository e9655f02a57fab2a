#include "base/frames.h"

#include <array>
#include <cerrno>
#include <cstdint>

#include <sys/socket.h>

#include "absl/strings/str_cat.h"

namespace gridclock {
namespace {

constexpr std::size_t kLength = 4;

std::uint32_t LengthAt(const char* bytes) {
  std::uint32_t length = 0;
  for (std::size_t i = kLength; i-- > 0;)
    length = length << 8 | static_cast<unsigned char>(bytes[i]);
  return length;
}

}  // namespace

void AppendFrame(absl::string_view message, std::string* out) {
  for (std::size_t i = 0; i < kLength; ++i) {
    out->push_back(static_cast<char>(message.size() >> (8 * i) & 0xff));
  }
  out->append(message.data(), message.size());
}

absl::StatusOr<std::optional<std::string>> FrameReader::Next() {
  if (buffer_.size() - read_ < kLength) return std::nullopt;
  const std::size_t length = LengthAt(buffer_.data() + read_);
  if (length > most_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("want a message of at most ", most_, " bytes, got one of ", length));
  }
  if (buffer_.size() - read_ - kLength < length) {
    buffer_.erase(0, read_);
    read_ = 0;
    return std::nullopt;
  }
  std::string message = buffer_.substr(read_ + kLength, length);
  read_ += kLength + length;
  if (read_ == buffer_.size()) {
    buffer_ = std::string();
    read_ = 0;
  }
  return message;
}

StreamRead ReadSome(int fd, FrameReader& reader) {
  std::array<char, 64 * 1024> buffer;
  while (true) {
    const ssize_t got = recv(fd, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got > 0) {
      reader.Add({buffer.data(), static_cast<std::size_t>(got)});
      return StreamRead::kBytes;
    }
    if (got == 0) return StreamRead::kEnd;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return StreamRead::kNothing;
    if (errno != EINTR) return StreamRead::kEnd;
  }
}

bool SendSome(int fd, std::string& bytes) {
  std::size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t now =
        send(fd, bytes.data() + sent, bytes.size() - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (now > 0) {
      sent += static_cast<std::size_t>(now);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      break;
    } else if (errno != EINTR) {
      return false;
    }
  }
  bytes.erase(0, sent);
  return true;
}

}  // namespace gridclock
