#include "server/rpc/watched_reads.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <memory>

#include <dlfcn.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "server/rpc/header_blocks.h"

namespace gridclock {
namespace {

// By descriptor. gRPC reads a connection in one thread at a time.
std::array<std::atomic<HeaderBlocks*>, kMostDescriptors> watched;

// gRPC closed the connection that had the descriptor before, so nobody reads it.
void Replace(int fd, std::unique_ptr<HeaderBlocks> blocks) {
  delete watched[static_cast<std::size_t>(fd)].exchange(blocks.release());
}

std::atomic<std::size_t> cut_off{0};

bool FeedOrCount(HeaderBlocks& blocks, absl::Span<const std::uint8_t> bytes) {
  if (blocks.too_long()) return false;
  if (blocks.Feed(bytes)) return true;
  ++cut_off;
  return false;
}

bool FeedMessage(HeaderBlocks& blocks, const msghdr& message, std::size_t size) {
  for (std::size_t i = 0; i < message.msg_iovlen && size > 0; ++i) {
    const iovec& part = message.msg_iov[i];
    const std::size_t taken = std::min(part.iov_len, size);
    if (!FeedOrCount(blocks, {static_cast<const std::uint8_t*>(part.iov_base), taken})) {
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

void FreeBlocks(void*, void* blocks, CRYPTO_EX_DATA*, int, long, void*) {
  delete static_cast<HeaderBlocks*>(blocks);
}

// Null where OpenSSL has no memory for it.
HeaderBlocks* BlocksOf(SSL* ssl) {
  static const int index = SSL_get_ex_new_index(0, nullptr, nullptr, nullptr, &FreeBlocks);
  if (auto* known = static_cast<HeaderBlocks*>(SSL_get_ex_data(ssl, index))) return known;
  auto blocks = std::make_unique<HeaderBlocks>();
  return SSL_set_ex_data(ssl, index, blocks.get()) == 1 ? blocks.release() : nullptr;
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
  Replace(fd, std::make_unique<HeaderBlocks>());
  return absl::OkStatus();
}

absl::Status ReadsAreWatched() {
  if (dlsym(RTLD_DEFAULT, "recvmsg") == reinterpret_cast<void*>(&recvmsg) &&
      dlsym(RTLD_DEFAULT, "SSL_read") == reinterpret_cast<void*>(&SSL_read)) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      "gRPC reads connections by another recvmsg() or SSL_read() than this program's, so nothing "
      "bounds the headers that a stranger sends; preload no library that has one");
}

std::size_t TakeCutOff() {
  return cut_off.exchange(0);
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
  gridclock::HeaderBlocks* blocks = gridclock::watched[static_cast<std::size_t>(fd)].load();
  if (blocks == nullptr ||
      gridclock::FeedMessage(*blocks, *message, static_cast<std::size_t>(size))) {
    return size;
  }
  errno = ECONNRESET;
  return -1;
}

__attribute__((visibility("default"))) int SSL_read(SSL* ssl, void* buffer, int room) {
  static const auto next = gridclock::Next<decltype(SSL_read)>("SSL_read");
  const int size = next(ssl, buffer, room);
  if (size <= 0 || SSL_is_server(ssl) == 0) return size;
  auto* blocks = gridclock::BlocksOf(ssl);
  if (blocks != nullptr &&
      gridclock::FeedOrCount(
          *blocks, {static_cast<const std::uint8_t*>(buffer), static_cast<std::size_t>(size)})) {
    return size;
  }
  ERR_raise(ERR_LIB_SSL, SSL_R_EXCESSIVE_MESSAGE_SIZE);
  return -1;
}

}  // extern "C"
