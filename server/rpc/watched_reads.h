// Our own look at what gRPC reads, before gRPC has it: there is no hook for that, so this program's
// recvmsg() stands before the C library's, and its SSL_new() and SSL_read() before OpenSSL's. gRPC
// finds them as it finds the originals, by name.
#ifndef GRIDCLOCK_SERVER_RPC_WATCHED_READS_H_
#define GRIDCLOCK_SERVER_RPC_WATCHED_READS_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace gridclock {

inline constexpr std::uint64_t kMostDescriptors = 1 << 16;

// FAILED_PRECONDITION if gRPC reads past this program's functions.
absl::Status ReadsAreWatched();

// Of each connection that is watched from now on: the longest message that gRPC takes
// (MessageLengths), and how many of its streams may have one that is begun and not whole.
struct MessageBounds {
  std::uint32_t most_bytes = (std::uint32_t{1} << 31) - 1;
  std::size_t most_begun = 1024;
};
void SetMessageBounds(const MessageBounds& bounds);

// Reads of this connection, whose bytes are frames, fail from now on once a block of its headers is
// too long (HeaderBlocks), or it has too many calls (ConnectionCalls) or messages that are begun;
// gRPC then closes it. Call before gRPC gets the descriptor.
// RESOURCE_EXHAUSTED for a descriptor of kMostDescriptors or more. Holds until ForgetReads, or the
// next call for the same descriptor: what is no connection must not be read by recvmsg() in this
// process, as it may have the descriptor of one that was closed just now.
absl::Status WatchReads(int fd);

// The same of a connection with TLS, whose bytes look like anything: what they are decrypted to is
// watched. `hand_over` MUST give gRPC the descriptor, on this thread: its SSL_new() there is how we
// know which connection it decrypts; where there is none the connection is cut off.
absl::Status WatchEncryptedReads(int fd, absl::FunctionRef<void()> hand_over);

// gRPC has closed what had this descriptor.
void ForgetReads(int fd);

// Connections of this process that failed so since it was last asked.
struct CutOff {
  struct Connections {
    std::size_t count = 0;
    std::string last_peer;
  };
  Connections headers, calls;
};
CutOff TakeCutOff();

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_RPC_WATCHED_READS_H_
