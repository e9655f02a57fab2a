#include "server/rpc/watched_reads.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <memory>

#include <dlfcn.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "server/rpc/frame_watch.h"

namespace gridclock {
namespace {

// By descriptor. gRPC reads a connection in one thread at a time.
std::array<std::atomic<FrameWatch*>, kMostDescriptors> watched;

std::unique_ptr<FrameWatch> NewWatch() {
  static Allowance shared(FrameWatch::kSharedMost, FrameWatch::kSharedMost,
                          FrameWatch::kSharedPerSecond);
  return std::make_unique<FrameWatch>(shared);
}

// gRPC closed the connection that had the descriptor before, so nobody reads it.
void Replace(int fd, std::unique_ptr<FrameWatch> watch) {
  delete watched[static_cast<std::size_t>(fd)].exchange(watch.release());
}

std::atomic<std::size_t> cut_off_headers{0}, cut_off_floods{0};

bool FeedOrCount(FrameWatch& watch, absl::Span<const std::uint8_t> bytes) {
  if (watch.fault() != FrameWatch::Fault::kNone) return false;
  const FrameWatch::Fault fault = watch.Feed(bytes, std::chrono::steady_clock::now());
  if (fault == FrameWatch::Fault::kNone) return true;
  ++(fault == FrameWatch::Fault::kHeaders ? cut_off_headers : cut_off_floods);
  return false;
}

bool FeedMessage(FrameWatch& watch, const msghdr& message, std::size_t size) {
  for (std::size_t i = 0; i < message.msg_iovlen && size > 0; ++i) {
    const iovec& part = message.msg_iov[i];
    const std::size_t taken = std::min(part.iov_len, size);
    if (!FeedOrCount(watch, {static_cast<const std::uint8_t*>(part.iov_base), taken})) {
      return false;
    }
    size -= taken;
  }
  return true;
}

template <typename Function>
Function* Next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

void FreeWatch(void*, void* watch, CRYPTO_EX_DATA*, int, long, void*) {
  delete static_cast<FrameWatch*>(watch);
}

// Null where OpenSSL has no memory for it.
FrameWatch* WatchOf(SSL* ssl) {
  static const int index = SSL_get_ex_new_index(0, nullptr, nullptr, nullptr, &FreeWatch);
  if (auto* known = static_cast<FrameWatch*>(SSL_get_ex_data(ssl, index))) return known;
  auto watch = NewWatch();
  return SSL_set_ex_data(ssl, index, watch.get()) == 1 ? watch.release() : nullptr;
}

}  // namespace

void LeaveReads(int fd) {
  if (static_cast<std::size_t>(fd) < kMostDescriptors) Replace(fd, nullptr);
}

absl::Status WatchReads(int fd) {
  if (static_cast<std::size_t>(fd) >= kMostDescriptors) {
    return absl::ResourceExhaustedError(
        absl::StrCat("want a descriptor below ", kMostDescriptors, ", got ", fd));
  }
  Replace(fd, NewWatch());
  return absl::OkStatus();
}

absl::Status ReadsAreWatched() {
  if (dlsym(RTLD_DEFAULT, "recvmsg") == reinterpret_cast<void*>(&recvmsg) &&
      dlsym(RTLD_DEFAULT, "SSL_read") == reinterpret_cast<void*>(&SSL_read)) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      "gRPC reads connections by another recvmsg() or SSL_read() than this program's, so nothing "
      "bounds what a stranger sends; preload no library that has one");
}

CutOff TakeCutOff() {
  return {.headers = cut_off_headers.exchange(0), .floods = cut_off_floods.exchange(0)};
}

}  // namespace gridclock

extern "C" {

__attribute__((visibility("default"))) ssize_t recvmsg(int fd, msghdr* message, int flags) {
  static const auto next = gridclock::Next<decltype(recvmsg)>("recvmsg");
  const ssize_t size = next(fd, message, flags);
  if (size <= 0 || (flags & (MSG_ERRQUEUE | MSG_PEEK)) != 0 ||
      static_cast<std::size_t>(fd) >= gridclock::kMostDescriptors) {
    return size;
  }
  gridclock::FrameWatch* watch = gridclock::watched[static_cast<std::size_t>(fd)].load();
  if (watch == nullptr ||
      gridclock::FeedMessage(*watch, *message, static_cast<std::size_t>(size))) {
    return size;
  }
  errno = ECONNRESET;
  return -1;
}

__attribute__((visibility("default"))) int SSL_read(SSL* ssl, void* buffer, int room) {
  static const auto next = gridclock::Next<decltype(SSL_read)>("SSL_read");
  const int size = next(ssl, buffer, room);
  if (size <= 0 || SSL_is_server(ssl) == 0) return size;
  auto* watch = gridclock::WatchOf(ssl);
  if (watch != nullptr && gridclock::FeedOrCount(*watch, {static_cast<const std::uint8_t*>(buffer),
                                                          static_cast<std::size_t>(size)})) {
    return size;
  }
  ERR_raise(ERR_LIB_SSL, SSL_R_EXCESSIVE_MESSAGE_SIZE);
  return -1;
}

}  // extern "C"
