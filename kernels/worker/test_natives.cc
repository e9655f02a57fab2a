#include "kernels/worker/test_natives.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <span>
#include <string>
#include <utility>

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "kernels/worker/test_cheats.h"
#include "proto/types/status_page.h"

namespace gridclock {
namespace {

void Square(const NativeCall& call) {
  const auto* x = call.Pointer<float>(0);
  auto* y = call.Pointer<float>(1);
  for (int i = 0; i < call.Value<int>(2); ++i) y[i] = x[i] * x[i];
}

void Add(const NativeCall& call) {
  const auto *a = call.Pointer<float>(0), *b = call.Pointer<float>(1);
  auto* c = call.Pointer<float>(2);
  for (int i = 0; i < call.Value<int>(3); ++i) c[i] = a[i] + b[i];
}

void Print(const NativeCall& call) {
  const auto* x = call.Pointer<float>(0);
  for (int i = 0; i < call.Value<int>(1); ++i) {
    std::printf("x[%d] is %g\n", i, static_cast<double>(x[i]));
  }
}

// Past what catches the output of a run: into every pipe that is open, the server's among them.
void PrintPast(const NativeCall& call) {
  constexpr int kMostFds = 256;
  for (int fd = 0; fd < kMostFds; ++fd) {
    struct stat kind {};
    if (fstat(fd, &kind) != 0 || !S_ISFIFO(kind.st_mode)) continue;
    dprintf(fd, "x[0] is %g\n", static_cast<double>(*call.Pointer<float>(0)));
  }
}

void Leave(const NativeCall&) {}

float counter = 0;

void Count(const NativeCall& call) {
  *call.Pointer<float>(0) = counter++;
}

constexpr float kMark = 1e9F;

void Scribble(const NativeCall& call) {
  auto* y = call.Pointer<float>(0);
  const auto first = call.Value<std::int64_t>(1), count = call.Value<std::int64_t>(2);
  for (std::int64_t i = first; i < first + count; ++i) y[i] = kMark;
}

void Spin(const NativeCall& call) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(call.Value<int>(0));
  while (std::chrono::steady_clock::now() < end) {
  }
}

void Endless(const NativeCall&) {
  volatile bool on = true;
  while (on) {
  }
}

void Crash(const NativeCall&) {
  volatile int* volatile nowhere = nullptr;
  *nowhere = 1;  // NOLINT(clang-analyzer-core.NullDereference): that is what it is for.
}

void Pid(const NativeCall& call) {
  *call.Pointer<std::int32_t>(0) = getpid();
}

void Hunt(const NativeCall& call) {
  const auto* floats = call.Pointer<float>(0);
  const auto first = call.Value<std::int64_t>(1), count = call.Value<std::int64_t>(2);
  std::int32_t marks = 0;
  for (std::int64_t i = first; i < first + count; ++i) marks += floats[i] == kMark ? 1 : 0;
  *call.Pointer<std::int32_t>(0) = marks;
}

// All that the process shares with the server, as far as it may hold anything: the whole would be
// faulted in.
template <typename Take>
void ForEachShared(const Take& take) {
  constexpr unsigned long kMost = 64UL << 20;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0, end = 0;
    char writable = '-';
    const bool shared = line.find("memfd:gridclock") != std::string::npos;
    if (!shared || std::sscanf(line.c_str(), "%lx-%lx r%c", &begin, &end, &writable) != 3) continue;
    if (writable != 'w') continue;
    take(std::span(reinterpret_cast<float*>(begin), std::min(end - begin, kMost) / sizeof(float)));
  }
}

void HuntShared(const NativeCall& call) {
  std::int32_t marks = 0;
  ForEachShared([&](std::span<const float> floats) {
    marks += static_cast<std::int32_t>(std::count(floats.begin(), floats.end(), kMark));
  });
  *call.Pointer<std::int32_t>(0) = marks;
}

void ScribbleShared(const NativeCall& call) {
  std::int64_t written = 0;
  ForEachShared([&](std::span<float> floats) {
    std::memset(floats.data(), 0xFF, floats.size_bytes());
    written += static_cast<std::int64_t>(floats.size_bytes());
  });
  *call.Pointer<std::int64_t>(0) = written;
}

void BreakProtocol(const NativeCall&) {
  constexpr char kNonsense[] = "\xff\xff\xff";
  [[maybe_unused]] const auto sent = write(kLinkFd, kNonsense, sizeof(kNonsense));
}

int ErrnoOf(long result) {
  return result < 0 ? errno : 0;
}

int TryFork() {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  const int error = ErrnoOf(child);
  if (child > 0) waitpid(child, nullptr, 0);
  return error;
}

void Probe(const NativeCall& call) {
  const auto* path = call.Pointer<const char>(0);
  auto* y = call.Pointer<std::int32_t>(1);
  char program[] = "/bin/true";
  char* const arguments[] = {program, nullptr};
  char* const environment[] = {nullptr};
  y[0] = ErrnoOf(socket(AF_INET, SOCK_STREAM, 0));
  y[1] = ErrnoOf(execve(program, arguments, environment));
  y[2] = TryFork();
  y[3] = ErrnoOf(open(path, O_WRONLY));
  y[4] = ErrnoOf(truncate(path, 0));
  const int parent = call.Value<int>(2);
  cpu_set_t all;
  CPU_ZERO(&all);
  CPU_SET(0, &all);
  y[5] = ErrnoOf(kill(parent, 0));
  y[6] = ErrnoOf(open(path, O_RDONLY));
  y[7] = ErrnoOf(ftruncate(kStatusFd, 0));
  y[8] = ErrnoOf(fcntl(kLinkFd, F_SETOWN, parent));
  y[9] = ErrnoOf(sched_setaffinity(parent, sizeof(all), &all));
  y[10] = ErrnoOf(setpriority(PRIO_PROCESS, static_cast<id_t>(parent), 19));
  y[11] = ErrnoOf(memfd_create("more", 0));
}

}  // namespace

Natives TestNatives() {
  NativeFns functions = TestCheats();
  functions.merge(NativeFns{{"square", Square},
                            {"add", Add},
                            {"print", Print},
                            {"print_past", PrintPast},
                            {"leave", Leave},
                            {"count", Count},
                            {"spin", Spin},
                            {"endless", Endless},
                            {"scribble", Scribble},
                            {"crash", Crash},
                            {"pid", Pid},
                            {"hunt", Hunt},
                            {"hunt_shared", HuntShared},
                            {"scribble_shared", ScribbleShared},
                            {"break_protocol", BreakProtocol},
                            {"probe", Probe}});
  // Modules of their own: one that ends three guests is run no more.
  for (int i = 0; i < 50; ++i) {
    functions.emplace(absl::StrCat("crash_", i), Crash);
    functions.emplace(absl::StrCat("endless_", i), Endless);
  }
  return {.functions = std::move(functions),
          .variables = {{"counter", {.data = &counter, .size = sizeof(counter)}}}};
}

}  // namespace gridclock
