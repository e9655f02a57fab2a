// What a list of samples says.
#ifndef GRIDCLOCK_KERNELS_TIMING_STATISTICS_H_
#define GRIDCLOCK_KERNELS_TIMING_STATISTICS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "proto/types/measure.h"

namespace gridclock {

// Ranks (from 1) of the two order statistics of n samples that hold the median between them with
// at least this confidence, whatever the distribution; none if n samples cannot.
std::optional<std::pair<std::int64_t, std::int64_t>> MedianRanks(std::int64_t n, double confidence);

// So many independent samples would tell as much as these, in the order in which they were taken: 1
// to their number. By the correlation of neighbours' ranks, as noise that lasts from one sample to
// the next (a clock, heat) falls off from there.
std::int64_t EffectiveCount(std::span<const double> samples);

// `samples` MUST NOT be empty; their order tells the interval how many of them count. Quartiles lie
// between samples by linear interpolation; the standard deviation is that of a sample (n - 1), 0
// for one.
Statistics Summarise(std::span<const double> samples, double confidence);

double Median(std::span<const double> samples);

// Width of the median's interval over the median; none without an interval.
std::optional<double> RelativeInterval(const Statistics& statistics);

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_TIMING_STATISTICS_H_
