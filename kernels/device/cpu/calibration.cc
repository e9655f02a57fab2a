#include "kernels/device/cpu/calibration.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

#include <sys/mman.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/clock.h"
#include "kernels/api/bf16_units.h"
#include "kernels/device/cpu/loops.h"

namespace gridclock {
namespace {

constexpr std::uint64_t kFloat = sizeof(float);
constexpr double kMargin = 1.1;
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
// What a thread moves between two looks at the clock: so much that dispatch does not count.
constexpr std::uint64_t kPassBytes = 8 * kMiB;

double Now() {
  return 1e-9 * static_cast<double>(MonotonicNs());
}

struct Free {
  void operator()(void* data) const { std::free(data); }
};
using Floats = std::unique_ptr<float, Free>;

// Null if the system has not got so much.
Floats MakeFloats(std::uint64_t bytes) {
  constexpr std::uint64_t kHugePage = 2 * kMiB;
  const std::uint64_t size = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  Floats floats(static_cast<float*>(std::aligned_alloc(kHugePage, size)));
  // Advice: without it faulting the pages in takes longer than measuring.
  if (floats != nullptr) madvise(floats.get(), size, MADV_HUGEPAGE);
  return floats;
}

// One thread's share of a set. A copy goes from its first half to its second, so that every loop
// touches all of it.
struct Share {
  float* data;
  std::int64_t n;
  std::int64_t half() const { return n / 2; }
};

// Bytes per second of `repeats` passes over all shares. Every thread repeats alone, so that its
// share stays in its own caches.
template <typename Loop>
double RateOf(Threads& threads, const std::vector<Share>& shares, int repeats, Loop loop) {
  const auto count = static_cast<std::int64_t>(shares.size());
  const double start = Now();
  threads.ParallelFor(count, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      for (int r = 0; r < repeats; ++r) loop(shares[static_cast<std::size_t>(i)]);
    }
  });
  const double seconds = std::max(Now() - start, 1e-9);
  return static_cast<double>(count * shares[0].n * static_cast<std::int64_t>(kFloat)) * repeats /
         seconds;
}

// The best rate over windows that are gone through one after the other. A window is short enough to
// pass undisturbed on a busy machine, and is met again only after all the rest of the set.
template <typename Loop>
double BestWindow(Threads& threads, const std::vector<Share>& shares, int repeats, Loop loop) {
  const std::int64_t window = std::min<std::int64_t>(shares[0].n, kPassBytes / kFloat);
  double best = 0;
  for (std::int64_t begin = 0; begin + window <= shares[0].n; begin += window) {
    std::vector<Share> part;
    part.reserve(shares.size());
    for (const Share& share : shares) part.push_back({share.data + begin, window});
    best = std::max(best, RateOf(threads, part, repeats, loop));
  }
  return best;
}

// The best of read, copy and streaming copy within `seconds`, at least once each.
double BestRate(Threads& threads, const std::vector<Share>& shares, double seconds) {
  const auto share_bytes = static_cast<std::uint64_t>(shares[0].n) * kFloat;
  const int repeats = static_cast<int>(std::max<std::uint64_t>(1, kPassBytes / share_bytes));
  const auto read = [](const Share& s) {
    volatile float sink = ReadLoop(s.data, s.n);
    static_cast<void>(sink);
  };
  const auto copy = [](const Share& s) { CopyLoop(s.data, s.data + s.half(), s.half()); };
  const auto stream = [](const Share& s) { StreamLoop(s.data, s.data + s.half(), s.half()); };
  double best = 0;
  const double end = Now() + seconds;
  do {
    best = std::max(best, BestWindow(threads, shares, repeats, read));
    best = std::max(best, BestWindow(threads, shares, repeats, copy));
    if (repeats == 1) best = std::max(best, BestWindow(threads, shares, repeats, stream));
  } while (Now() < end);
  return best;
}

// A set of about `bytes`, a share for each thread, measured for `seconds`; nothing if the system
// has not got the memory.
std::optional<LevelRate> MeasureLevel(const char* name, std::uint64_t bytes, std::uint64_t fits,
                                      double seconds, Threads& threads) {
  constexpr std::uint64_t kLoopMultiple = 2048;  // Of the bytes that the loops take, twice.
  const auto count = static_cast<std::uint64_t>(threads.count());
  const std::uint64_t share =
      std::max<std::uint64_t>(1, bytes / count / kLoopMultiple) * kLoopMultiple;
  const Floats buffer = MakeFloats(share * count);
  if (buffer == nullptr) return std::nullopt;
  const auto n = static_cast<std::int64_t>(share / kFloat);
  std::vector<Share> shares;
  shares.reserve(count);
  for (int t = 0; t < threads.count(); ++t) shares.push_back({buffer.get() + n * t, n});
  // Faults the pages in, by the thread that uses them.
  RateOf(threads, shares, 1, [&](const Share& s) { std::memset(s.data, 0, share); });
  return LevelRate{name, fits, share * count, BestRate(threads, shares, seconds)};
}

// Memory on the largest set that the system gives.
std::optional<LevelRate> MeasureMemory(const HostFacts& host, Threads& threads) {
  constexpr double kSeconds = 0.04;
  const std::uint64_t least = 2 * SpannedLlcBytes(host);
  for (std::uint64_t set = MemorySetBytes(host, threads.count()); set != 0 && set >= least;
       set /= 2) {
    auto level = MeasureLevel("memory", set, kEverything, kSeconds, threads);
    if (level) return level;
  }
  return std::nullopt;
}

// The caches, from the smallest.
std::vector<LevelRate> MeasureCaches(const HostFacts& host, Threads& threads) {
  constexpr std::uint64_t kLeastL1 = std::uint64_t{8} << 10;
  const auto count = static_cast<std::uint64_t>(threads.count());
  const std::uint64_t all_llc = SpannedLlcBytes(host);
  std::vector<LevelRate> levels;
  const auto add = [&](const char* name, std::uint64_t set, std::uint64_t fits, double seconds) {
    if (auto level = MeasureLevel(name, set, fits, seconds, threads)) levels.push_back(*level);
  };
  if (host.l1_bytes >= kLeastL1) add("L1", host.l1_bytes / 2 * count, host.l1_bytes * count, 0.008);
  if (host.l2_bytes > host.l1_bytes) {
    add("L2", host.l2_bytes / 2 * count, host.l2_bytes * count, 0.012);
  }
  if (!host.untold.empty()) {
    // Unknown caches are taken for as fast as the first level and as large as such caches are.
    add("caches of unknown size", kLeastL1 * count, all_llc, 0.008);
  } else if (host.llc_bytes > host.l2_bytes) {
    add("the last cache", all_llc / 4, all_llc, 0.015);
  }
  return levels;
}

// `loop` returns how many operations it did.
template <typename Loop>
double BestRateOf(Threads& threads, double seconds, Loop loop) {
  double best = 0;
  const double end = Now() + seconds;
  do {
    std::vector<std::int64_t> done(static_cast<std::size_t>(threads.count()));
    const double start = Now();
    threads.ParallelFor(threads.count(), 1, [&](std::int64_t begin, std::int64_t last) {
      for (std::int64_t i = begin; i < last; ++i) done[static_cast<std::size_t>(i)] = loop();
    });
    double sum = 0;
    for (const std::int64_t operations : done) sum += static_cast<double>(operations);
    best = std::max(best, sum / std::max(Now() - start, 1e-9));
  } while (Now() < end);
  return best;
}

double BestFlops(Threads& threads, double seconds) {
  return BestRateOf(threads, seconds, [] {
    float sink = 1;
    return FlopsLoop(50'000, &sink);
  });
}

double BestBf16Flops(Threads& threads, double seconds) {
  if (bf16_units::HasMatrixUnits()) {
    return BestRateOf(threads, seconds, [] { return MatrixFlopsLoop(5'000); });
  }
  if (!bf16_units::HasDotProducts()) return 0;
  return BestRateOf(threads, seconds, [] {
    float sink = 1;
    return DotFlopsLoop(30'000, &sink);
  });
}

// Whether units for bf16 may do this work: in bf16, or in what nobody said.
bool MayUseBf16Units(const Calibration& calibration, const Work& work) {
  return calibration.bf16_per_second > 0 && work.dtype.value_or(DType::kBF16) == DType::kBF16;
}

// A larger level is never faster; where it looks so, the machine was disturbed at the smaller one.
void RaiseSmallerLevels(std::vector<LevelRate>& levels) {
  for (std::size_t i = levels.size(); i-- > 1;) {
    levels[i - 1].bytes_per_second =
        std::max(levels[i - 1].bytes_per_second, levels[i].bytes_per_second);
  }
}

// The least that each level moves, from the smallest; none if a level that moves some was not
// measured. Caches may hold different lines, so their sizes add up.
std::optional<std::vector<std::int64_t>> MovedByLevels(const Calibration& calibration,
                                                       const Work& work, L2State state) {
  std::vector<std::int64_t> moved;
  std::uint64_t cached = 0;
  std::int64_t beyond = work.bytes;
  for (const LevelRate& level : calibration.levels) {
    moved.push_back(beyond);
    cached = level.fits == kEverything ? kEverything : cached + level.fits;
    beyond = level.fits == kEverything ? 0 : work.BytesBeyond(cached, state);
  }
  if (beyond > 0) return std::nullopt;
  return moved;
}

}  // namespace

std::uint64_t MemorySetBytes(const HostFacts& host, int threads) {
  const std::uint64_t caches = SpannedLlcBytes(host);
  const std::uint64_t wanted = std::max(4 * caches, 8 * kMiB * static_cast<std::uint64_t>(threads));
  const std::uint64_t set =
      host.memory_bytes == 0 ? wanted : std::min(wanted, host.memory_bytes / 4);
  return set >= 2 * caches ? set : 0;
}

double MemoryBandwidth(const Calibration& calibration) {
  if (calibration.levels.empty() || calibration.levels.back().fits != kEverything) return 0;
  return calibration.levels.back().bytes_per_second;
}

Calibration Calibrate(const HostFacts& host, Threads& threads) {
  Calibration result;
  result.levels = MeasureCaches(host, threads);
  if (const auto memory = MeasureMemory(host, threads)) result.levels.push_back(*memory);
  RaiseSmallerLevels(result.levels);
  result.flops_per_second = BestFlops(threads, 0.005);
  result.bf16_per_second = BestBf16Flops(threads, 0.005);
  return result;
}

void Remeasure(const Work& work, L2State state, Threads& threads, Calibration* calibration) {
  constexpr double kSeconds = 0.02;
  const auto moved = MovedByLevels(*calibration, work, state);
  for (std::size_t i = 0; moved && i < moved->size(); ++i) {
    if ((*moved)[i] == 0) continue;
    LevelRate& level = calibration->levels[i];
    const auto again =
        MeasureLevel(level.name.c_str(), level.set_bytes, level.fits, kSeconds, threads);
    if (again) level.bytes_per_second = std::max(level.bytes_per_second, again->bytes_per_second);
  }
  RaiseSmallerLevels(calibration->levels);
  if (work.flops > 0 && MayUseBf16Units(*calibration, work)) {
    calibration->bf16_per_second =
        std::max(calibration->bf16_per_second, BestBf16Flops(threads, kSeconds));
  }
  if (work.flops > 0 && calibration->flops_per_second > 0) {
    calibration->flops_per_second =
        std::max(calibration->flops_per_second, BestFlops(threads, kSeconds));
  }
}

std::string ToText(const Calibration& calibration) {
  std::string text;
  for (const LevelRate& level : calibration.levels) {
    absl::StrAppend(&text, level.name, "=", level.fits, "=", level.set_bytes, "=",
                    absl::StrFormat("%.17g;", level.bytes_per_second));
  }
  absl::StrAppendFormat(&text, "%.17g", calibration.flops_per_second);
  if (calibration.bf16_per_second > 0) {
    absl::StrAppendFormat(&text, "=%.17g", calibration.bf16_per_second);
  }
  return text;
}

absl::StatusOr<Calibration> CalibrationFromText(absl::string_view text) {
  const absl::Status bad = absl::InvalidArgumentError(
      absl::StrCat("calibration: want NAME=FITS=SET=RATE;...;RATE[=RATE], got '", text, "'"));
  const auto read_rate = [](absl::string_view word, double* rate) {
    return absl::SimpleAtod(word, rate) && std::isfinite(*rate) && *rate > 0;
  };
  std::vector<std::string> words = absl::StrSplit(text, ';');
  Calibration result;
  const std::vector<std::string> rates = absl::StrSplit(words.back(), '=');
  if (rates.size() > 2 || !read_rate(rates[0], &result.flops_per_second) ||
      (rates.size() == 2 && !read_rate(rates[1], &result.bf16_per_second))) {
    return bad;
  }
  words.pop_back();
  for (const std::string& word : words) {
    const std::vector<std::string> parts = absl::StrSplit(word, '=');
    LevelRate level;
    if (parts.size() != 4 || parts[0].empty() || !absl::SimpleAtoi(parts[1], &level.fits) ||
        !absl::SimpleAtoi(parts[2], &level.set_bytes) ||
        !read_rate(parts[3], &level.bytes_per_second)) {
      return bad;
    }
    level.name = parts[0];
    result.levels.push_back(std::move(level));
  }
  if (result.levels.empty()) return bad;
  return result;
}

namespace {

std::string SizeText(std::uint64_t bytes) {
  return bytes < kMiB ? absl::StrCat(bytes >> 10, " KiB") : absl::StrCat(bytes / kMiB, " MiB");
}

// The slowest of the levels alone: they move their bytes at the same time.
Device::Roofline ByBytes(const Calibration& calibration, const Work& work, L2State state) {
  const auto moved = MovedByLevels(calibration, work, state);
  Device::Roofline slowest;
  for (std::size_t i = 0; moved && i < moved->size(); ++i) {
    const LevelRate& level = calibration.levels[i];
    const std::int64_t bytes = (*moved)[i];
    const double ns = 1e9 * static_cast<double>(bytes) / (kMargin * level.bytes_per_second);
    if (ns < slowest.ns || bytes == 0) continue;
    const std::string part =
        bytes == work.bytes ? "" : absl::StrCat(bytes, " of ", work.bytes, " ");
    slowest = {
        ns, absl::StrFormat("%sbytes over 1.1 x %.1f GB/s of %s, measured on %s", part,
                            level.bytes_per_second / 1e9, level.name, SizeText(level.set_bytes))};
  }
  return slowest;
}

}  // namespace

Device::Roofline RooflineFrom(const Calibration& calibration, const Work& work, L2State state) {
  const Device::Roofline by_bytes = ByBytes(calibration, work, state);
  // What may use the units need not: the faster way bounds it.
  const bool units = MayUseBf16Units(calibration, work) &&
                     calibration.bf16_per_second > calibration.flops_per_second;
  const double rate = units ? calibration.bf16_per_second : calibration.flops_per_second;
  Device::Roofline by_flops;
  if (work.flops > 0 && rate > 0) {
    by_flops = {1e9 * static_cast<double>(work.flops) / (kMargin * rate),
                absl::StrFormat("flops over 1.1 x %.1f GFLOP/s of %s, measured", rate / 1e9,
                                units ? "bf16" : "f32")};
  }
  return by_flops.ns > by_bytes.ns ? by_flops : by_bytes;
}

}  // namespace gridclock
