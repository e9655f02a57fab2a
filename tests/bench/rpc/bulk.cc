// Large tensors through the C++ client. Prints JSON.
// usage: bench-bulk ADDRESS in|back|whole|beside BYTES REPETITIONS [--read-delay-us N]
//   in      a tensor to the server by StreamRun, its checksum back
//   back    there and back by `copy`; with a delay, the client takes each chunk that much later
//   whole   as back, with all that the server does between: on a GPU, copies to it and from it
//   beside  small calls on their own, then while tensors move there and back
// Times, but those of whole, are those of the bytes: what the server spent between the last byte in
// and the first byte out (queue, kernel, checksum) is taken off.
#define XXH_INLINE_ALL
#include <atomic>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>

#include "client/cpp/client.h"
#include "tests/bench/rpc/measure.h"

namespace {

using namespace gridclock;  // NOLINT(google-build-using-namespace): a program's own namespace.
using namespace gridclock::bench;  // NOLINT(google-build-using-namespace)

[[noreturn]] void Quit(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::exit(1);
}

std::span<std::byte> WarmBytes(std::size_t size) {
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) Fail("mmap");
  auto* words = static_cast<std::uint32_t*>(memory);
  for (std::size_t i = 0; i < size / 4; ++i)
    words[i] = static_cast<std::uint32_t>(i * 2654435761U) & 0x3f7fffffU;
  return {static_cast<std::byte*>(memory), size};
}

OperandValue Floats(std::size_t bytes) {
  OperandValue value;
  value.tensors.push_back({.dtype = DType::kF32, .shape = {static_cast<std::int64_t>(bytes / 4)}});
  return value;
}

RunCall CallOf(const char* kernel, std::span<const std::byte> bytes, Sink sink) {
  RunCall call;
  call.kernel = kernel;
  call.inputs.push_back(
      {.name = "x", .value = Floats(bytes.size()), .bytes = {bytes}, .generator = {}});
  call.outputs.push_back({.name = "y", .sink = sink});
  return call;
}

RunResult MustRun(const Client& client, const RunCall& call, const RunEvents& events = {}) {
  absl::StatusOr<RunResult> result = client.Run(call, events);
  if (!result.ok()) Quit(result.status().ToString());
  return *std::move(result);
}

// From the last byte in to the first byte out, by the server's own clock.
std::int64_t ServerNs(const v1::RunSummary& summary) {
  std::int64_t received = 0;
  std::int64_t last = 0;
  for (const v1::Phase& phase : summary.phases()) {
    if (phase.kind() == v1::Phase::RECEIVED) received = phase.end_ns();
    last = std::max(last, phase.end_ns());
  }
  return std::max<std::int64_t>(0, last - received);
}

struct Mover {
  const Client& client;
  std::span<std::byte> sent;
  std::span<std::byte> got;
  int read_delay_us = 0;
  bool whole = false;  // Back's time is the whole call's.

  double In() const {
    RunCall call = CallOf("copy", sent, Sink::kChecksum);
    call.way = Way::kStream;
    const std::int64_t start = NowNs();
    const RunResult result = MustRun(client, call);
    const std::int64_t took = NowNs() - start;
    const std::uint64_t want = XXH3_64bits(sent.data(), sent.size());
    if (result.outputs.at(0).checksum != want) Quit("the checksum is another");
    return (took - ServerNs(result.summary)) / 1e9;
  }

  // `moving` is set while the call is on its way, and not while bytes are cleared and compared.
  double Back(std::atomic<bool>* moving = nullptr) const {
    RunCall call = CallOf("copy", sent, Sink::kReturn);
    call.way = Way::kStream;
    RunEvents events;
    events.place = [this](const std::string&, const OperandValue&) { return got; };
    events.moved = [this](std::uint64_t, std::uint64_t received) {
      if (received > 0 && read_delay_us > 0) usleep(read_delay_us);
    };
    std::memset(got.data(), 0, got.size());
    if (moving != nullptr) *moving = true;
    const std::int64_t start = NowNs();
    const RunResult result = MustRun(client, call, events);
    const std::int64_t took = NowNs() - start;
    if (moving != nullptr) *moving = false;
    if (std::memcmp(sent.data(), got.data(), sent.size()) != 0) Quit("other bytes came back");
    return (took - (whole ? 0 : ServerNs(result.summary))) / 1e9;
  }
};

// Of this process, in bytes: "VmRSS", "VmHWM".
std::int64_t MemoryOf(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word == key + ":" && status >> word) return std::stoll(word) * 1024;
  }
  Quit("no " + key);
}

void ForgetPeak() {
  std::ofstream refs("/proc/self/clear_refs");
  refs << "5" << std::flush;
  if (!refs) Fail("clear_refs");
}

// Of those that begin while `counted`.
std::vector<std::int64_t> SmallCalls(const Client& client, const std::atomic<bool>& go,
                                     const std::atomic<bool>& counted, std::size_t most) {
  const std::vector<float> values(16, 1.5F);
  const RunCall call = CallOf("square", std::as_bytes(std::span(values)), Sink::kReturn);
  std::vector<std::int64_t> times;
  while (go && times.size() < most) {
    const bool counts = counted;
    const std::int64_t start = NowNs();
    MustRun(client, call);
    if (counts) times.push_back(NowNs() - start);
  }
  return times;
}

void Beside(const Mover& mover, int repetitions) {
  std::atomic<bool> go{true}, moving{false};
  SmallCalls(mover.client, go, go, 200);
  const std::vector<std::int64_t> idle = SmallCalls(mover.client, go, go, 1000);
  mover.Back();
  std::thread bulk([&] {
    for (int i = 0; i < repetitions; ++i) mover.Back(&moving);
    go = false;
  });
  // One that ends behind the bytes was held up by them, and counts: only slow ones would be lost.
  const std::vector<std::int64_t> beside = SmallCalls(mover.client, go, moving, 1'000'000);
  bulk.join();
  if (beside.empty()) Quit("no small call began while bytes moved");
  std::printf(
      "{\"idle_p50_us\": %.1f, \"beside_p50_us\": %.1f, \"beside_p99_us\": %.1f, \"calls\": %zu}\n",
      Quantile(idle, 0.5) / 1e3, Quantile(beside, 0.5) / 1e3, Quantile(beside, 0.99) / 1e3,
      beside.size());
}

void Move(const Mover& mover, bool back, int repetitions, std::int64_t memory_before) {
  if (repetitions > 1) back ? mover.Back() : mover.In();
  std::vector<std::int64_t> times(static_cast<std::size_t>(repetitions));
  for (std::int64_t& time : times) {
    time = static_cast<std::int64_t>((back ? mover.Back() : mover.In()) * 1e9);
  }
  std::printf("{\"seconds\": %.6f, \"client_extra_bytes\": %lld}\n", Quantile(times, 0.5) / 1e9,
              static_cast<long long>(MemoryOf("VmHWM") - memory_before));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5)
    Quit("usage: bench-bulk ADDRESS in|back|whole|beside BYTES REPETITIONS [--read-delay-us N]");
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_ARENA_MAX, 2);
  const std::string what = argv[2];
  const std::size_t size = std::strtoull(argv[3], nullptr, 10);
  const int repetitions = std::atoi(argv[4]);
  const std::span<std::byte> sent = WarmBytes(size);
  const std::span<std::byte> got = WarmBytes(size);
  ForgetPeak();
  const std::int64_t before = MemoryOf("VmRSS");
  ClientOptions options;
  options.server = argv[1];
  const auto client = Client::Connect(options);
  if (!client.ok()) Quit(client.status().ToString());
  const int delay = argc == 7 && std::string(argv[5]) == "--read-delay-us" ? std::atoi(argv[6]) : 0;
  const bool whole = what == "whole";
  const Mover mover{
      .client = **client, .sent = sent, .got = got, .read_delay_us = delay, .whole = whole};
  if (what == "beside") {
    Beside(mover, repetitions);
  } else {
    Move(mover, whole || what == "back", repetitions, before);
  }
  return 0;
}
