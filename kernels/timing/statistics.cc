#include "kernels/timing/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "proto/types/quantile.h"

namespace gridclock {
namespace {

// Above this many samples the normal law stands in for the binomial: the ranks differ by at most
// one of hundreds.
constexpr std::int64_t kExactUpTo = 2000;

// The largest l with P(Binomial(n, 1/2) < l) <= tail.
std::int64_t ExactRank(std::int64_t n, double tail) {
  const double log_half_n = static_cast<double>(n) * std::log(0.5);
  const double log_factorial_n = std::lgamma(static_cast<double>(n) + 1);
  double below = 0;
  for (std::int64_t k = 0; k < n; ++k) {
    const auto kd = static_cast<double>(k);
    below += std::exp(log_factorial_n - std::lgamma(kd + 1) -
                      std::lgamma(static_cast<double>(n) - kd + 1) + log_half_n);
    if (below > tail) return k;
  }
  return n;
}

// z with P(N(0,1) > z) = tail, by halving: erfc has no inverse in the library.
double NormalQuantile(double tail) {
  double low = 0, high = 10;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (0.5 * std::erfc(middle / std::sqrt(2.0)) > tail ? low : high) = middle;
  }
  return high;
}

std::int64_t NormalRank(std::int64_t n, double tail) {
  const auto nd = static_cast<double>(n);
  return static_cast<std::int64_t>(std::floor((nd - NormalQuantile(tail) * std::sqrt(nd)) / 2));
}

double Quantile(const std::vector<double>& sorted, double q) {
  const double place = q * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<std::size_t>(place);
  const std::size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (place - static_cast<double>(low)) * (sorted[high] - sorted[low]);
}

// Of each sample with the next, by their places among all: one far off counts no more than any.
double RankCorrelation(std::span<const double> samples, const std::vector<double>& sorted) {
  const double middle = static_cast<double>(samples.size() - 1) / 2;
  double squares = 0, products = 0, before = 0;
  for (const double x : samples) {
    const auto [first, last] = std::equal_range(sorted.begin(), sorted.end(), x);
    const double rank =
        static_cast<double>((first - sorted.begin()) + (last - sorted.begin()) - 1) / 2 - middle;
    squares += rank * rank;
    products += before * rank;
    before = rank;
  }
  return squares == 0 ? 0 : products / squares;
}

std::int64_t EffectiveCount(std::span<const double> samples, const std::vector<double>& sorted) {
  constexpr double kMost = 0.99;
  const auto n = static_cast<double>(samples.size());
  const double seen = RankCorrelation(samples, sorted);
  // So far the estimate lies too low, as the mean is that of the samples: F. H. C. Marriott and J.
  // A. Pope, Biometrika 41, 1954. Where all are equal there is nothing to correct.
  const double bias = sorted.front() == sorted.back() ? 0 : (1 + 4 * seen) / n;
  const double rho = std::clamp(seen + bias, 0.0, kMost);
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(n * (1 - rho) / (1 + rho)));
}

// Those of so many independent samples, as far from the middle of n as they are from theirs.
std::optional<std::pair<std::int64_t, std::int64_t>> SpreadRanks(std::int64_t n,
                                                                 std::int64_t effective,
                                                                 double confidence) {
  const auto ranks = MedianRanks(effective, confidence);
  if (!ranks || effective == n) return ranks;
  const auto count = static_cast<double>(n), few = static_cast<double>(effective);
  const double off = ((few + 1) / 2 - static_cast<double>(ranks->first)) * count / few;
  const auto low = static_cast<std::int64_t>(std::floor((count + 1) / 2 - off));
  if (low < 1) return std::nullopt;
  return std::pair(low, n + 1 - low);
}

double Deviation(const std::vector<double>& samples, double mean) {
  if (samples.size() < 2) return 0;
  double squares = 0;
  for (const double x : samples) squares += (x - mean) * (x - mean);
  return std::sqrt(squares / static_cast<double>(samples.size() - 1));
}

}  // namespace

std::optional<std::pair<std::int64_t, std::int64_t>> MedianRanks(std::int64_t n,
                                                                 double confidence) {
  const double tail = (1 - confidence) / 2;
  const std::int64_t low = n <= kExactUpTo ? ExactRank(n, tail) : NormalRank(n, tail);
  if (low < 1) return std::nullopt;
  return std::pair(low, n + 1 - low);
}

std::int64_t EffectiveCount(std::span<const double> samples) {
  std::vector<double> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  return EffectiveCount(samples, sorted);
}

Statistics Summarise(std::span<const double> samples, double confidence) {
  std::vector<double> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  Statistics out;
  out.median = Quantile(sorted, 0.5);
  out.min = sorted.front();
  out.max = sorted.back();
  out.q1 = Quantile(sorted, 0.25);
  out.q3 = Quantile(sorted, 0.75);
  out.mean =
      std::accumulate(sorted.begin(), sorted.end(), 0.0) / static_cast<double>(sorted.size());
  out.stddev = Deviation(sorted, out.mean);
  const std::int64_t effective = EffectiveCount(samples, sorted);
  if (const auto ranks = SpreadRanks(std::ssize(sorted), effective, confidence)) {
    out.ci_low = sorted[ranks->first - 1];
    out.ci_high = sorted[ranks->second - 1];
  }
  if (sorted.size() >= kSamplesForP99) out.p99 = Quantile(sorted, 0.99);
  return out;
}

double Median(std::span<const double> samples) {
  std::vector<double> copy(samples.begin(), samples.end());
  std::sort(copy.begin(), copy.end());
  return Quantile(copy, 0.5);
}

std::optional<double> RelativeInterval(const Statistics& statistics) {
  if (!statistics.ci_low || !statistics.ci_high || statistics.median <= 0) return std::nullopt;
  return (*statistics.ci_high - *statistics.ci_low) / statistics.median;
}

}  // namespace gridclock
