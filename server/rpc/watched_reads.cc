#include "server/rpc/watched_reads.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <utility>

#include <dlfcn.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/mutex.h"
#include "server/rpc/connection_calls.h"
#include "server/rpc/header_blocks.h"
#include "server/rpc/peer.h"

namespace gridclock {
namespace {

struct Watched {
  std::unique_ptr<HeaderBlocks> blocks;  // Null: the bytes are encrypted.
  std::shared_ptr<ConnectionCalls::Connection> calls;
  std::string peer;
  bool has_failed = false;
};

// By descriptor. gRPC reads a connection in one thread at a time.
std::array<std::atomic<Watched*>, kMostDescriptors> watched;

Mutex cut_off_mutex;
CutOff cut_off ABSL_GUARDED_BY(cut_off_mutex);

void CountCutOff(CutOff::Connections CutOff::*kind, const std::string& peer) {
  const MutexLock lock(cut_off_mutex);
  CutOff::Connections& connections = cut_off.*kind;
  ++connections.count;
  connections.last_peer = peer;
}

absl::Status Watch(int fd, std::unique_ptr<HeaderBlocks> blocks) {
  if (static_cast<std::size_t>(fd) >= kMostDescriptors) {
    return absl::ResourceExhaustedError(
        absl::StrCat("want a descriptor below ", kMostDescriptors, ", got ", fd));
  }
  sockaddr_storage from{};
  socklen_t size = sizeof(from);
  getpeername(fd, reinterpret_cast<sockaddr*>(&from),
              &size);  // Else it has left, and makes no calls.
  auto one = std::make_unique<Watched>(
      Watched{std::move(blocks), CallsOfConnections().Add(from), SiteOf(from)});
  // gRPC closed the connection that had the descriptor before, so nobody reads it.
  delete watched[static_cast<std::size_t>(fd)].exchange(one.release());
  return absl::OkStatus();
}

bool FeedOrCount(HeaderBlocks& blocks, absl::Span<const std::uint8_t> bytes,
                 const std::string& peer) {
  if (blocks.too_long()) return false;
  if (blocks.Feed(bytes)) return true;
  CountCutOff(&CutOff::headers, peer);
  return false;
}

bool HasTooManyCalls(Watched& one) {
  if (!one.calls->cut_off) return false;
  if (!one.has_failed) CountCutOff(&CutOff::calls, one.peer);
  one.has_failed = true;
  return true;
}

bool FeedMessage(HeaderBlocks& blocks, const std::string& peer, const msghdr& message,
                 std::size_t size) {
  for (std::size_t i = 0; i < message.msg_iovlen && size > 0; ++i) {
    const iovec& part = message.msg_iov[i];
    const std::size_t taken = std::min(part.iov_len, size);
    if (!FeedOrCount(blocks, {static_cast<const std::uint8_t*>(part.iov_base), taken}, peer)) {
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

absl::Status WatchEncryptedReads(int fd) {
  return Watch(fd, nullptr);
}

absl::Status WatchReads(int fd) {
  return Watch(fd, std::make_unique<HeaderBlocks>());
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
  const MutexLock lock(cut_off_mutex);
  return std::exchange(cut_off, {});
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
  gridclock::Watched* one = gridclock::watched[static_cast<std::size_t>(fd)].load();
  if (one == nullptr) return size;
  if (!gridclock::HasTooManyCalls(*one) &&
      (one->blocks == nullptr ||
       gridclock::FeedMessage(*one->blocks, one->peer, *message, static_cast<std::size_t>(size)))) {
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
          *blocks, {static_cast<const std::uint8_t*>(buffer), static_cast<std::size_t>(size)},
          "")) {
    return size;
  }
  ERR_raise(ERR_LIB_SSL, SSL_R_EXCESSIVE_MESSAGE_SIZE);
  return -1;
}

}  // extern "C"
