#include "kernels/device/cpu/calibration.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>

#include <time.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "kernels/device/cpu/loops.h"

namespace gridclock {
namespace {

constexpr std::uint64_t kFloat = sizeof(float);
constexpr double kMargin = 1.1;

double Now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Free {
  void operator()(void* data) const { std::free(data); }
};
using Floats = std::unique_ptr<float, Free>;

Floats MakeFloats(std::uint64_t bytes) {
  return Floats(static_cast<float*>(std::aligned_alloc(4096, bytes)));
}

// One thread's share of the buffers.
struct Share {
  const float* from;
  float* to;
  std::int64_t n;
};

// Bytes per second of `repeats` passes over all shares; `loop` moves `moved` bytes for each byte
// of n. Every thread repeats alone, so that its share stays in its own caches.
template <typename Loop>
double RateOf(Threads& threads, const std::vector<Share>& shares, int repeats, int moved,
              Loop loop) {
  const auto count = static_cast<std::int64_t>(shares.size());
  const double start = Now();
  threads.ParallelFor(count, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      for (int r = 0; r < repeats; ++r) loop(shares[static_cast<std::size_t>(i)]);
    }
  });
  const double seconds = std::max(Now() - start, 1e-9);
  return static_cast<double>(count * shares[0].n * static_cast<std::int64_t>(kFloat)) * repeats *
         moved / seconds;
}

// The best of read, copy and streaming copy within `seconds`, at least once each.
double BestRate(Threads& threads, const std::vector<Share>& shares, double seconds) {
  constexpr double kPassBytes = 8 << 20;  // So much per thread that dispatch does not count.
  const auto share_bytes = static_cast<double>(shares[0].n) * kFloat;
  const int repeats = std::max(1, static_cast<int>(kPassBytes / share_bytes));
  volatile float sink = 0;
  double best = 0;
  const double end = Now() + seconds;
  do {
    best = std::max(best, RateOf(threads, shares, repeats, 1,
                                 [&](const Share& s) { sink = ReadLoop(s.from, s.n); }));
    best = std::max(best, RateOf(threads, shares, repeats, 2,
                                 [](const Share& s) { CopyLoop(s.from, s.to, s.n); }));
    if (repeats > 1) continue;
    best = std::max(best, RateOf(threads, shares, repeats, 2,
                                 [](const Share& s) { StreamLoop(s.from, s.to, s.n); }));
  } while (Now() < end);
  return best;
}

// Shares of `bytes` from and as many to, per thread, beside each other.
std::vector<Share> MakeShares(float* buffer, std::uint64_t bytes, int threads) {
  const auto n = static_cast<std::int64_t>(bytes / kFloat);
  std::vector<Share> shares;
  for (int t = 0; t < threads; ++t) {
    float* base = buffer + 2 * n * t;
    shares.push_back({.from = base, .to = base + n, .n = n});
  }
  return shares;
}

double BestFlops(Threads& threads, double seconds) {
  constexpr std::int64_t kRounds = 50'000;
  double best = 0;
  const double end = Now() + seconds;
  do {
    std::vector<std::int64_t> done(static_cast<std::size_t>(threads.count()));
    const double start = Now();
    threads.ParallelFor(threads.count(), 1, [&](std::int64_t begin, std::int64_t last) {
      float sink = 1;
      for (std::int64_t i = begin; i < last; ++i) {
        done[static_cast<std::size_t>(i)] = FlopsLoop(kRounds, &sink);
      }
    });
    double sum = 0;
    for (const std::int64_t operations : done) sum += static_cast<double>(operations);
    best = std::max(best, sum / std::max(Now() - start, 1e-9));
  } while (Now() < end);
  return best;
}

}  // namespace

Calibration Calibrate(const HostFacts& host, Threads& threads) {
  constexpr std::uint64_t kLoopMultiple = 1024;
  constexpr std::uint64_t kMemoryShare = std::uint64_t{8} << 20;
  const auto count = static_cast<std::uint64_t>(threads.count());
  // Each thread's memory set is larger than its part of the last level, within reason.
  const std::uint64_t memory_share =
      std::clamp<std::uint64_t>(host.llc_bytes / count, kMemoryShare, 4 * kMemoryShare);
  const Floats buffer = MakeFloats(2 * memory_share * count);
  Calibration result;
  if (buffer == nullptr) return result;
  const auto add = [&](const char* name, std::uint64_t share, std::uint64_t fits, double seconds) {
    const auto shares =
        MakeShares(buffer.get(), share / kLoopMultiple * kLoopMultiple, static_cast<int>(count));
    threads.ParallelFor(
        static_cast<std::int64_t>(count), 1, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t i = begin; i < end;
               ++i) {  // Faults the pages in, by the thread that uses them.
            const Share& s = shares[static_cast<std::size_t>(i)];
            std::memset(const_cast<float*>(s.from), 0, 2 * static_cast<std::size_t>(s.n) * kFloat);
          }
        });
    result.levels.push_back({name, fits, BestRate(threads, shares, seconds)});
  };
  if (host.l1_bytes >= 8 * kLoopMultiple)
    add("L1", host.l1_bytes / 4, host.l1_bytes * count, 0.008);
  if (host.l2_bytes > host.l1_bytes) add("L2", host.l2_bytes / 4, host.l2_bytes * count, 0.012);
  if (host.llc_bytes > host.l2_bytes) {
    add("the last cache", std::min(host.llc_bytes / count / 8, memory_share), host.llc_bytes,
        0.015);
  }
  add("memory", memory_share, std::numeric_limits<std::uint64_t>::max(), 0.04);
  // A larger level is never faster; where it looks so, the machine was disturbed at the smaller
  // one.
  for (std::size_t i = result.levels.size() - 1; i-- > 0;) {
    result.levels[i].bytes_per_second =
        std::max(result.levels[i].bytes_per_second, result.levels[i + 1].bytes_per_second);
  }
  result.flops_per_second = BestFlops(threads, 0.005);
  return result;
}

std::string ToText(const Calibration& calibration) {
  std::string text;
  for (const LevelRate& level : calibration.levels) {
    absl::StrAppend(&text, level.name, "=", level.fits, "=",
                    absl::StrFormat("%.17g;", level.bytes_per_second));
  }
  return absl::StrCat(text, absl::StrFormat("%.17g", calibration.flops_per_second));
}

absl::StatusOr<Calibration> CalibrationFromText(absl::string_view text) {
  const absl::Status bad = absl::InvalidArgumentError(
      absl::StrCat("calibration: want NAME=BYTES=RATE;...;RATE, got '", text, "'"));
  const auto read_rate = [](absl::string_view word, double* rate) {
    return absl::SimpleAtod(word, rate) && std::isfinite(*rate) && *rate > 0;
  };
  std::vector<std::string> words = absl::StrSplit(text, ';');
  Calibration result;
  if (!read_rate(words.back(), &result.flops_per_second)) return bad;
  words.pop_back();
  for (const std::string& word : words) {
    const std::vector<std::string> parts = absl::StrSplit(word, '=');
    LevelRate level;
    if (parts.size() != 3 || parts[0].empty() || !absl::SimpleAtoi(parts[1], &level.fits) ||
        !read_rate(parts[2], &level.bytes_per_second)) {
      return bad;
    }
    level.name = parts[0];
    result.levels.push_back(std::move(level));
  }
  if (result.levels.empty()) return bad;
  return result;
}

Device::Roofline RooflineFrom(const Calibration& calibration, std::int64_t bytes,
                              std::int64_t flops, L2State state) {
  Device::Roofline roofline;
  if (calibration.levels.empty()) return roofline;
  const LevelRate* level = &calibration.levels.back();
  for (const LevelRate& candidate : calibration.levels) {
    if (state == L2State::kHot && static_cast<std::uint64_t>(bytes) / 2 <= candidate.fits) {
      level = &candidate;
      break;
    }
  }
  const double memory_ns = 1e9 * static_cast<double>(bytes) / (kMargin * level->bytes_per_second);
  const double flops_ns =
      1e9 * static_cast<double>(flops) / (kMargin * std::max(calibration.flops_per_second, 1.0));
  if (memory_ns >= flops_ns) {
    roofline = {memory_ns, absl::StrFormat("bytes over 1.1 x %.1f GB/s of %s, measured",
                                           level->bytes_per_second / 1e9, level->name)};
  } else {
    roofline = {flops_ns, absl::StrFormat("flops over 1.1 x %.1f GFLOP/s of f32, measured",
                                          calibration.flops_per_second / 1e9)};
  }
  return roofline;
}

}  // namespace gridclock
