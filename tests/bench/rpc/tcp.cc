// What the loopback itself moves: N bytes from one process to another over TCP in writes and reads
// of 1 MiB between buffers that are already in memory, and back. Prints JSON. usage: bench-tcp
// BYTES [REPETITIONS]
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/rpc/measure.h"

namespace {

using namespace gridclock::bench;  // NOLINT(google-build-using-namespace): a program's own
                                   // namespace.

constexpr std::size_t kStep = 1 << 20;

struct Pair {
  int here = -1;
  int there = -1;
};

Pair ConnectedPair() {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* raw = reinterpret_cast<sockaddr*>(&address);
  if (bind(listener, raw, size) != 0 || listen(listener, 1) != 0) Fail("listen");
  if (getsockname(listener, raw, &size) != 0) Fail("getsockname");
  Pair pair;
  pair.here = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(pair.here, raw, size) != 0) Fail("connect");
  pair.there = accept(listener, nullptr, nullptr);
  close(listener);
  const int on = 1;
  for (const int fd : {pair.here, pair.there}) {
    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) Fail("TCP_NODELAY");
  }
  return pair;
}

char* WarmBuffer(std::size_t size, int fill) {
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) Fail("mmap");
  std::memset(memory, fill, size);
  return static_cast<char*>(memory);
}

// Takes the bytes, says so with one byte, waits for a byte, sends them back.
void Answer(int fd, std::size_t size, int repetitions) {
  char* const buffer = WarmBuffer(size, 0);
  char token = 'k';
  for (int i = 0; i < repetitions; ++i) {
    ReadAll(fd, buffer, size, kStep);
    WriteAll(fd, &token, 1, 1);
    ReadAll(fd, &token, 1, 1);
    WriteAll(fd, buffer, size, kStep);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t size = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 256 << 20;
  const int repetitions = argc > 2 ? std::atoi(argv[2]) : 1;
  const Pair pair = ConnectedPair();
  const pid_t child = fork();
  if (child < 0) Fail("fork");
  if (child == 0) {
    Answer(pair.there, size, repetitions + 1);
    _exit(0);
  }
  char* const sent = WarmBuffer(size, 42);
  char* const got = WarmBuffer(size, 0);
  char token = 'g';
  std::vector<std::int64_t> in;
  std::vector<std::int64_t> back;
  for (int i = 0; i <= repetitions; ++i) {  // The first is for warming up.
    const std::int64_t start = NowNs();
    WriteAll(pair.here, sent, size, kStep);
    ReadAll(pair.here, &token, 1, 1);
    const std::int64_t middle = NowNs();
    WriteAll(pair.here, &token, 1, 1);
    ReadAll(pair.here, got, size, kStep);
    if (i == 0) continue;
    in.push_back(middle - start);
    back.push_back(NowNs() - middle);
  }
  if (std::memcmp(sent, got, size) != 0) Fail("other bytes came back");
  waitpid(child, nullptr, 0);
  std::printf("{\"bytes\": %zu, \"in_seconds\": %.6f, \"back_seconds\": %.6f}\n", size,
              Quantile(in, 0.5) / 1e9, Quantile(back, 0.5) / 1e9);
  return 0;
}
