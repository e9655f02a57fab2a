#include "client/cli/compare.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "proto/types/convert.h"

namespace gridclock::cli {
namespace {

constexpr std::size_t kFirst = 5;

bool IsFloat(DType dtype) {
  return dtype <= DType::kF8E5M2;
}

std::uint64_t BitsAt(const std::byte* at, std::size_t size) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, at, size);
  return bits;
}

// Steps from one value of a float to another: its bits are a sign and a magnitude.
std::uint64_t Steps(std::uint64_t a, std::uint64_t b, std::size_t size) {
  const std::uint64_t sign = std::uint64_t{1} << (8 * size - 1);
  const std::uint64_t from = a & (sign - 1), to = b & (sign - 1);
  if (((a ^ b) & sign) != 0) return from + to;
  return std::max(from, to) - std::min(from, to);
}

std::string PlaceText(const Shape& shape, std::int64_t index) {
  std::vector<std::int64_t> place(shape.size());
  for (std::size_t i = shape.size(); i-- > 0;) {
    place[i] = index % shape[i];
    index /= shape[i];
  }
  return absl::StrCat("[", absl::StrJoin(place, ","), "]");
}

// The middle one of the finite magnitudes among the `count` values from `first` on; of long rows,
// of a sample.
double MedianMagnitude(DType dtype, std::span<const std::byte> bytes, std::int64_t first,
                       std::int64_t count) {
  constexpr std::int64_t kSample = 65536;
  const std::int64_t step = std::max<std::int64_t>(1, count / kSample);
  std::vector<double> magnitudes;
  for (std::int64_t i = first; i < first + count; i += step) {
    const double value = LoadAsDouble(dtype, bytes.data(), i);
    if (std::isfinite(value)) magnitudes.push_back(std::abs(value));
  }
  if (magnitudes.empty()) return 0;
  const auto middle = magnitudes.begin() + static_cast<std::ptrdiff_t>(magnitudes.size() / 2);
  std::nth_element(magnitudes.begin(), middle, magnitudes.end());
  return *middle;
}

class Comparison {
 public:
  Comparison(const TensorSpec& spec, std::span<const std::byte> got,
             std::span<const std::byte> want, double tolerance)
      : spec_(spec),
        got_(got),
        want_(want),
        tolerance_(tolerance),
        size_(static_cast<std::size_t>(SizeOf(spec.dtype))) {
    out_.values = Elements(spec.shape);
  }

  Difference Run() {
    const std::int64_t row = spec_.shape.empty() ? 1 : spec_.shape.back();
    for (std::int64_t i = 0; i < out_.values; ++i) {
      if (i % row == 0 && IsFloat(spec_.dtype)) {
        scale_ = MedianMagnitude(spec_.dtype, want_, i, row);
      }
      if (!Agrees(i)) Mismatch(i);
    }
    return out_;
  }

 private:
  bool Agrees(std::int64_t i) {
    const std::size_t at = static_cast<std::size_t>(i) * size_;
    const std::uint64_t got_bits = BitsAt(got_.data() + at, size_);
    const std::uint64_t want_bits = BitsAt(want_.data() + at, size_);
    if (got_bits == want_bits) return true;
    const double got = LoadAsDouble(spec_.dtype, got_.data(), i);
    const double want = LoadAsDouble(spec_.dtype, want_.data(), i);
    if (std::isnan(got) || std::isnan(want)) {
      const bool both = std::isnan(got) && std::isnan(want);
      out_.nan_mismatches += both ? 0 : 1;
      return both;
    }
    if (!std::isfinite(got) || !std::isfinite(want)) return got == want;
    const double apart = std::abs(got - want);
    out_.max_abs = std::max(out_.max_abs, apart);
    if (want != 0) out_.max_rel = std::max(out_.max_rel, apart / std::abs(want));
    if (!IsFloat(spec_.dtype)) return false;
    out_.max_ulp = std::max(out_.max_ulp, Steps(got_bits, want_bits, size_));
    return apart <= tolerance_ * std::max(std::abs(want), scale_);
  }

  void Mismatch(std::int64_t i) {
    if (out_.first.size() < kFirst) {
      out_.first.push_back(absl::StrFormat("%s: want %.9g, got %.9g", PlaceText(spec_.shape, i),
                                           LoadAsDouble(spec_.dtype, want_.data(), i),
                                           LoadAsDouble(spec_.dtype, got_.data(), i)));
    }
    ++out_.mismatches;
  }

  const TensorSpec& spec_;
  const std::span<const std::byte> got_, want_;
  const double tolerance_;
  const std::size_t size_;
  double scale_ = 0;  // Of the row at hand.
  Difference out_;
};

}  // namespace

void Difference::Add(const Difference& other) {
  values += other.values;
  mismatches += other.mismatches;
  nan_mismatches += other.nan_mismatches;
  max_abs = std::max(max_abs, other.max_abs);
  max_rel = std::max(max_rel, other.max_rel);
  max_ulp = std::max(max_ulp, other.max_ulp);
  for (const std::string& text : other.first) {
    if (first.size() < kFirst) first.push_back(text);
  }
}

double ToleranceOf(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return 1e-12;
    case DType::kF32:
      return 1e-5;
    case DType::kF16:
      return 2e-3;
    case DType::kBF16:
      return 1.6e-2;
    case DType::kF8E4M3:
      return 0.125;
    case DType::kF8E5M2:
      return 0.25;
    default:
      return 0;
  }
}

Difference Compare(const TensorSpec& spec, std::span<const std::byte> got,
                   std::span<const std::byte> want, double tolerance) {
  return Comparison(spec, got, want, tolerance).Run();
}

}  // namespace gridclock::cli
