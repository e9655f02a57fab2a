// The cost of waking a process on another CPU: the round trip of one byte over two pipes between
// two processes, each pinned to a CPU of its own. Prints JSON. usage: bench-pipe [ROUND_TRIPS]
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/rpc/measure.h"

namespace {

using namespace gridclock::bench;  // NOLINT(google-build-using-namespace): a program's own
                                   // namespace.

void Answer(int in, int out) {
  char byte = 0;
  while (read(in, &byte, 1) == 1) {
    if (write(out, &byte, 1) != 1) break;
  }
}

std::vector<std::int64_t> PingPong(int in, int out, int count) {
  std::vector<std::int64_t> times(count);
  char byte = 'x';
  for (std::int64_t& time : times) {
    const std::int64_t start = NowNs();
    WriteAll(out, &byte, 1, 1);
    ReadAll(in, &byte, 1, 1);
    time = NowNs() - start;
  }
  return times;
}

}  // namespace

int main(int argc, char** argv) {
  const int count = argc > 1 ? std::atoi(argv[1]) : 2000;
  int there[2];
  int back[2];
  if (pipe(there) != 0 || pipe(back) != 0) Fail("pipe");
  const pid_t child = fork();
  if (child < 0) Fail("fork");
  if (child == 0) {
    close(there[1]);
    PinTo(1);
    Answer(there[0], back[1]);
    _exit(0);
  }
  PinTo(0);
  PingPong(back[0], there[1], 100);
  const std::vector<std::int64_t> times = PingPong(back[0], there[1], count);
  close(there[1]);
  waitpid(child, nullptr, 0);
  std::printf("{\"round_trip_us\": %.3f, \"p99_us\": %.3f, \"count\": %d}\n",
              Quantile(times, 0.5) / 1e3, Quantile(times, 0.99) / 1e3, count);
  return 0;
}
