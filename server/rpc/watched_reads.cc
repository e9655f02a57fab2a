#include "server/rpc/watched_reads.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include <dlfcn.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "server/rpc/connection_calls.h"
#include "server/rpc/header_blocks.h"
#include "server/rpc/peer.h"

namespace gridclock {
namespace {

using Calls = std::shared_ptr<ConnectionCalls::Connection>;

struct Sender {
  Calls calls;
  std::string peer;
};

std::atomic<std::uint32_t> most_message_bytes{MessageBounds().most_bytes};
std::atomic<std::size_t> most_begun{MessageBounds().most_begun};

// What it sends, as frames.
struct Frames {
  explicit Frames(const Sender& of)
      : sender(of),
        blocks([calls = of.calls](
                   std::size_t fields) { return calls->Begin(fields, MonotonicClock().Now()); },
               MessageLengths(most_message_bytes, most_begun)) {}

  const Sender sender;
  HeaderBlocks blocks;
};

struct Watched {
  Sender sender;
  std::unique_ptr<Frames> frames;  // Null: the bytes are encrypted.
};

// By descriptor. gRPC reads a connection in one thread at a time.
std::array<std::atomic<Watched*>, kMostDescriptors> watched;

Mutex cut_off_mutex;
CutOff cut_off ABSL_GUARDED_BY(cut_off_mutex);

// It fails from now on; counted once.
void CutOffNow(const Sender& sender, CutOff::Connections CutOff::*kind) {
  if (!sender.calls->NoteClosed()) return;
  const MutexLock lock(cut_off_mutex);
  CutOff::Connections& connections = cut_off.*kind;
  ++connections.count;
  connections.last_peer = sender.peer;
}

// False: the connection fails.
bool Passes(Frames& frames, absl::Span<std::uint8_t> bytes) {
  if (frames.blocks.Feed(bytes)) return true;
  CutOffNow(frames.sender, frames.blocks.too_long() ? &CutOff::headers : &CutOff::calls);
  return false;
}

absl::StatusOr<Watched*> Watch(int fd, bool encrypted) {
  if (static_cast<std::size_t>(fd) >= kMostDescriptors) {
    return absl::ResourceExhaustedError(
        absl::StrCat("want a descriptor below ", kMostDescriptors, ", got ", fd));
  }
  sockaddr_storage from{};
  socklen_t size = sizeof(from);
  getpeername(fd, reinterpret_cast<sockaddr*>(&from),
              &size);  // Else it has left, and makes no calls.
  auto one =
      std::make_unique<Watched>(Watched{{CallsOfConnections().Add(from), SiteOf(from)}, nullptr});
  if (!encrypted) one->frames = std::make_unique<Frames>(one->sender);
  Watched* const watching = one.release();
  // gRPC closed the connection that had the descriptor before, so nobody reads it.
  delete watched[static_cast<std::size_t>(fd)].exchange(watching);
  return watching;
}

bool Passes(Watched& one, const msghdr& message, std::size_t size) {
  if (one.sender.calls->cut_off()) {
    CutOffNow(one.sender, &CutOff::calls);
    return false;
  }
  for (std::size_t i = 0; one.frames != nullptr && i < message.msg_iovlen && size > 0; ++i) {
    const iovec& part = message.msg_iov[i];
    const std::size_t taken = std::min(part.iov_len, size);
    if (!Passes(*one.frames, {static_cast<std::uint8_t*>(part.iov_base), taken})) return false;
    size -= taken;
  }
  return true;
}

// Where gRPC has the system tell how much more there is (TCP_INQ), it does not ask in vain.
bool WasAll(msghdr& message) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != IPPROTO_TCP || part->cmsg_type != TCP_CM_INQ) continue;
    int left = 0;
    std::memcpy(&left, CMSG_DATA(part), sizeof(left));
    return left == 0;
  }
  return false;
}

template <typename Function>
Function* Next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

// The connection that this thread gives to gRPC.
thread_local Watched* handed_over = nullptr;

int FramesIndex() {
  static const int index = SSL_get_ex_new_index(
      0, nullptr, nullptr, nullptr, [](void*, void* frames, CRYPTO_EX_DATA*, int, long, void*) {
        delete static_cast<Frames*>(frames);
      });
  return index;
}

}  // namespace

absl::Status WatchEncryptedReads(int fd, absl::FunctionRef<void()> hand_over) {
  GC_ASSIGN_OR_RETURN(handed_over, Watch(fd, /*encrypted=*/true));
  const std::shared_ptr<ConnectionCalls::Connection> calls = handed_over->sender.calls;
  hand_over();
  // Nothing would look at what it sends.
  if (std::exchange(handed_over, nullptr) != nullptr) calls->CutOff();
  return absl::OkStatus();
}

void SetMessageBounds(const MessageBounds& bounds) {
  most_message_bytes = bounds.most_bytes;
  most_begun = bounds.most_begun;
}

absl::Status WatchReads(int fd) {
  return Watch(fd, /*encrypted=*/false).status();
}

void ForgetReads(int fd) {
  if (static_cast<std::size_t>(fd) >= kMostDescriptors) return;
  delete watched[static_cast<std::size_t>(fd)].exchange(nullptr);
}

absl::Status ReadsAreWatched() {
  if (dlsym(RTLD_DEFAULT, "recvmsg") == reinterpret_cast<void*>(&recvmsg) &&
      dlsym(RTLD_DEFAULT, "SSL_new") == reinterpret_cast<void*>(&SSL_new) &&
      dlsym(RTLD_DEFAULT, "SSL_read") == reinterpret_cast<void*>(&SSL_read)) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      "gRPC reads connections by another recvmsg(), SSL_new() or SSL_read() than this program's, "
      "so "
      "nothing bounds what a stranger sends; preload no library that has one");
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
  if (size == 0 || (flags & (MSG_ERRQUEUE | MSG_PEEK)) != 0 ||
      static_cast<std::size_t>(fd) >= gridclock::kMostDescriptors) {
    return size;
  }
  const int error = errno;
  gridclock::Watched* one = gridclock::watched[static_cast<std::size_t>(fd)].load();
  if (one == nullptr || (size < 0 && error != EAGAIN)) return size;
  if (size > 0 && !gridclock::Passes(*one, *message, static_cast<std::size_t>(size))) {
    errno = ECONNRESET;
    return -1;
  }
  if (size < 0 || gridclock::WasAll(*message))
    one->sender.calls->NotePause(gridclock::MonotonicClock().Now());
  errno = error;
  return size;
}

__attribute__((visibility("default"))) SSL* SSL_new(SSL_CTX* context) {
  static const auto next = gridclock::Next<decltype(SSL_new)>("SSL_new");
  SSL* const ssl = next(context);
  if (ssl == nullptr || gridclock::handed_over == nullptr) return ssl;
  auto frames = std::make_unique<gridclock::Frames>(gridclock::handed_over->sender);
  if (SSL_set_ex_data(ssl, gridclock::FramesIndex(), frames.get()) == 1) {
    static_cast<void>(frames.release());
    gridclock::handed_over = nullptr;
    return ssl;
  }
  SSL_free(ssl);
  return nullptr;
}

__attribute__((visibility("default"))) int SSL_read(SSL* ssl, void* buffer, int room) {
  static const auto next = gridclock::Next<decltype(SSL_read)>("SSL_read");
  const int size = next(ssl, buffer, room);
  if (size <= 0) return size;
  auto* frames = static_cast<gridclock::Frames*>(SSL_get_ex_data(ssl, gridclock::FramesIndex()));
  if (frames == nullptr || gridclock::Passes(*frames, {static_cast<std::uint8_t*>(buffer),
                                                       static_cast<std::size_t>(size)})) {
    return size;
  }
  ERR_raise(ERR_LIB_SSL, SSL_R_EXCESSIVE_MESSAGE_SIZE);
  return -1;
}

}  // extern "C"
