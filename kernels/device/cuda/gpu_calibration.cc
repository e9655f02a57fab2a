#include "kernels/device/cuda/gpu_calibration.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace gridclock {
namespace {

constexpr double kMargin = 1.1;

struct Field {
  const char* name;
  double GpuCalibration::*value;
};
constexpr Field kFields[] = {
    {"empty_event_pair", &GpuCalibration::empty_event_pair_ns},
    {"isolated", &GpuCalibration::isolated_ns},
    {"device_time", &GpuCalibration::device_time_ns},
    {"back_to_back", &GpuCalibration::back_to_back_ns},
    {"host_no_sync", &GpuCalibration::host_no_sync_ns},
    {"host_sync", &GpuCalibration::host_sync_ns},
    {"event_pair", &GpuCalibration::event_pair_ns},
    {"serial_beyond", &GpuCalibration::serial_beyond_ns},
    {"serial", &GpuCalibration::serial},
    {"isolated_kernels", &GpuCalibration::isolated_kernels_ns},
    {"device_time_kernels", &GpuCalibration::device_time_kernels_ns},
    {"isolated_copy", &GpuCalibration::isolated_copy_ns},
    {"device_time_copy", &GpuCalibration::device_time_copy_ns},
    {"event_step", &GpuCalibration::event_step_ns},
    {"device_timer_step", &GpuCalibration::device_timer_step_ns},
    {"copy_bandwidth", &GpuCalibration::copy_bandwidth},
    {"read_bandwidth", &GpuCalibration::read_bandwidth},
    {"l2_bandwidth", &GpuCalibration::l2_bandwidth},
};

// Operations of one SM in one clock, a multiply-add counting as two, without sparsity. From the
// table of arithmetic throughput in the CUDA C++ Programming Guide and, for tensor cores, the peak
// rates in NVIDIA's architecture papers divided by SMs and boost clock of the full product. Where
// products of one capability differ (GeForce halves tensor rates that accumulate in f32) the higher
// one stands here, as a roofline must not be below what some device can do.
struct PerSm {
  std::int64_t sm;
  double f64, f32, f16, bf16, f8, i8;  // The best of plain and tensor cores; 0: not in hardware.
};
constexpr PerSm kPerSm[] = {
    {75, 4, 128, 1024, 0, 0, 2048},             // Turing.
    {80, 128, 128, 2048, 2048, 0, 4096},        // A100: f64 by tensor cores.
    {86, 4, 256, 1024, 1024, 0, 2048},          // Ampere, A10 and GeForce 30.
    {89, 4, 256, 1024, 1024, 2048, 2048},       // Ada.
    {90, 256, 256, 4096, 4096, 8192, 8192},     // H100, H200: f64 by tensor cores.
    {100, 128, 256, 8192, 8192, 16384, 16384},  // B200.
    {120, 4, 256, 1024, 1024, 2048, 2048},      // GeForce 50, RTX PRO.
};

// Of an even number the mean of the middle two: half may be off the one way, and half the other.
double MedianBeyond(std::span<const RecordPair> pairs) {
  std::vector<double> beyond;
  for (const RecordPair& pair : pairs) beyond.push_back(pair.beyond());
  std::sort(beyond.begin(), beyond.end());
  const std::size_t half = beyond.size() / 2;
  return beyond.size() % 2 == 1 ? beyond[half] : (beyond[half - 1] + beyond[half]) / 2;
}

std::optional<double> RateOf(std::span<const FlopRate> rates, std::optional<DType> dtype) {
  double best = 0;
  for (const FlopRate& rate : rates) {
    if (dtype && rate.dtype == *dtype) return rate.flops_per_second;
    best = std::max(best, rate.flops_per_second);
  }
  if (dtype || best == 0) return std::nullopt;
  return best;
}

Device::Roofline ByFlops(std::span<const FlopRate> rates, const Work& work) {
  const auto rate = RateOf(rates, work.dtype);
  if (!rate || work.flops <= 0) return {};
  const double reached = work.part_of_rate * *rate;
  const std::string part =
      work.part_of_rate == 1 ? "" : absl::StrFormat(", %g of that", work.part_of_rate);
  return {1e9 * static_cast<double>(work.flops) / reached,
          absl::StrFormat("flops over %.1f TFLOP/s%s of %s, by the data sheet", reached / 1e12,
                          part, work.dtype ? Name(*work.dtype) : "the fastest dtype")};
}

Device::Roofline ByBytes(const GpuCalibration& calibration, std::uint64_t l2_bytes,
                         const Work& work, L2State state) {
  const double memory = std::max(calibration.copy_bandwidth, calibration.read_bandwidth);
  const double l2 = std::max(calibration.l2_bandwidth, memory);
  const std::int64_t beyond = work.BytesBeyond(l2_bytes, state);
  if (work.bytes <= 0 || l2 <= 0 || (memory <= 0 && state != L2State::kHot)) return {};
  const auto least = [&](std::int64_t bytes, double rate, const char* of) -> Device::Roofline {
    const std::string part =
        bytes == work.bytes ? "" : absl::StrCat(bytes, " of ", work.bytes, " ");
    return {1e9 * static_cast<double>(bytes) / (kMargin * rate),
            absl::StrFormat("%sbytes over 1.1 x %.1f GB/s of %s, measured", part, rate / 1e9, of)};
  };
  // Hits and misses overlap: the slower of the two alone is sure.
  const Device::Roofline by_l2 = least(work.bytes, l2, "the L2 cache");
  if (beyond == 0 || memory <= 0) return by_l2;
  const Device::Roofline by_memory = least(beyond, memory, "memory");
  return by_memory.ns >= by_l2.ns ? by_memory : by_l2;
}

}  // namespace

double GpuCalibration::FloorOf(Method method) const {
  switch (method) {
    case Method::kIsolated:
      return isolated_ns;
    case Method::kDeviceTime:
      return device_time_ns;
    case Method::kBackToBack:
      return back_to_back_ns;
    case Method::kHostNoSync:
      return host_no_sync_ns;
    case Method::kHostSync:
      return host_sync_ns;
    case Method::kEventPair:
      return event_pair_ns;
  }
  return 0;
}

CopyTimes SecondFarthest(std::vector<CopyTimes> series) {
  std::nth_element(series.begin(), series.begin() + 1, series.end(),
                   [](const CopyTimes& a, const CopyTimes& b) { return a.apart() > b.apart(); });
  return series[1];
}

absl::StatusOr<double> SerialBeyond(const RecordPairs& pairs) {
  const double beyond = MedianBeyond(pairs.empty), beyond_working = MedianBeyond(pairs.working);
  const bool same = std::abs(beyond_working - beyond) <= kSameBeyondWithinNs;
  if (beyond >= 0 && beyond <= kMostSerialBeyondNs && same) return beyond;
  return absl::UnavailableError(absl::StrFormat(
      "serial records are longer than concurrent ones by %.0f ns of an empty kernel and %.0f ns of "
      "one that works: want 0 to %.0f ns, and the same within %.0f ns",
      beyond, beyond_working, kMostSerialBeyondNs, kSameBeyondWithinNs));
}

std::string ToText(const GpuCalibration& calibration, absl::string_view uuid) {
  std::string text = absl::StrCat("uuid=", uuid);
  for (const Field& field : kFields) {
    absl::StrAppend(&text, ";", field.name, absl::StrFormat("=%.17g", calibration.*field.value));
  }
  return text;
}

absl::StatusOr<GpuCalibration> GpuCalibrationFromText(absl::string_view text,
                                                      absl::string_view uuid) {
  const absl::Status bad = absl::InvalidArgumentError(
      absl::StrCat("calibration: want uuid=", uuid, ";NAME=NUMBER;..., got '", text, "'"));
  std::map<std::string, std::string> words;
  for (const absl::string_view part : absl::StrSplit(text, ';')) {
    const std::pair<std::string, std::string> word = absl::StrSplit(part, absl::MaxSplits('=', 1));
    if (!words.insert(word).second) return bad;
  }
  if (words.size() != std::size(kFields) + 1 || words.count("uuid") == 0) return bad;
  if (words["uuid"] != uuid) {
    return absl::NotFoundError(
        absl::StrCat("calibration: want that of ", uuid, ", got that of ", words["uuid"]));
  }
  GpuCalibration result;
  for (const Field& field : kFields) {
    const auto word = words.find(field.name);
    double& value = result.*field.value;
    if (word == words.end() || !absl::SimpleAtod(word->second, &value) || !std::isfinite(value) ||
        value < 0) {
      return bad;
    }
  }
  return result;
}

std::vector<FlopRate> NominalFlopRates(std::int64_t sm, std::int64_t units, double clock_hz) {
  const auto row = std::find_if(std::begin(kPerSm), std::end(kPerSm),
                                [sm](const PerSm& known) { return known.sm == sm; });
  if (row == std::end(kPerSm) || clock_hz <= 0) return {};
  std::vector<FlopRate> rates;
  const auto add = [&](DType dtype, double per_clock) {
    if (per_clock > 0) {
      rates.push_back({dtype, per_clock * static_cast<double>(units) * clock_hz});
    }
  };
  add(DType::kF64, row->f64);
  add(DType::kF32, row->f32);
  add(DType::kF16, row->f16);
  add(DType::kBF16, row->bf16);
  add(DType::kF8E4M3, row->f8);
  add(DType::kF8E5M2, row->f8);
  add(DType::kI8, row->i8);
  return rates;
}

Device::Roofline GpuRoofline(const GpuCalibration& calibration, std::span<const FlopRate> rates,
                             std::uint64_t l2_bytes, const Work& work, L2State state) {
  const Device::Roofline by_bytes = ByBytes(calibration, l2_bytes, work, state);
  const Device::Roofline by_flops = ByFlops(rates, work);
  return by_flops.ns > by_bytes.ns ? by_flops : by_bytes;
}

}  // namespace gridclock
