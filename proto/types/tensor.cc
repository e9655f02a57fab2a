#include "proto/types/tensor.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status.h"

namespace gridclock {
namespace {

absl::StatusOr<std::int64_t> ParseDimension(absl::string_view text) {
  const absl::string_view whole = text;
  std::int64_t unit = 1;
  if (absl::ConsumeSuffix(&text, "K"))
    unit = std::int64_t{1} << 10;
  else if (absl::ConsumeSuffix(&text, "M"))
    unit = std::int64_t{1} << 20;
  else if (absl::ConsumeSuffix(&text, "G"))
    unit = std::int64_t{1} << 30;
  std::int64_t value = 0;
  if (!absl::SimpleAtoi(text, &value) || __builtin_mul_overflow(value, unit, &value)) {
    return absl::InvalidArgumentError(
        absl::StrCat("want a dimension like 1000 or 4M, got '", whole, "'"));
  }
  return value;
}

}  // namespace

absl::StatusOr<std::int64_t> CheckedElements(const Shape& shape) {
  if (shape.size() > kMaxRank) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", shape.size(), " is over the maximum of ", kMaxRank));
  }
  std::int64_t elements = 1;
  bool empty = false;
  bool overflow = false;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("dimension ", i, " is ", shape[i], "; want 0 or more"));
    }
    if (shape[i] == 0)
      empty = true;
    else if (__builtin_mul_overflow(elements, shape[i], &elements))
      overflow = true;
  }
  if (overflow && !empty) {
    return absl::InvalidArgumentError(
        absl::StrCat("element count overflows: ", ToText(shape), " has more than 2^63-1 elements"));
  }
  return empty ? 0 : elements;
}

absl::StatusOr<std::int64_t> CheckedBytes(const TensorSpec& spec) {
  GC_ASSIGN_OR_RETURN(std::int64_t bytes, CheckedElements(spec.shape));
  if (__builtin_mul_overflow(bytes, SizeOf(spec.dtype), &bytes)) {
    return absl::InvalidArgumentError(absl::StrCat("element count overflows: ", ToText(spec),
                                                   " of ", SizeOf(spec.dtype),
                                                   " bytes each is more than 2^63-1 bytes"));
  }
  return bytes;
}

std::int64_t Elements(const Shape& shape) {
  // An empty tensor may have dimensions whose product is beyond 64 bits: the zero comes first.
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  std::int64_t elements = 1;
  for (const std::int64_t dim : shape) elements *= dim;
  return elements;
}

std::int64_t Bytes(const TensorSpec& spec) {
  return Elements(spec.shape) * SizeOf(spec.dtype);
}

std::string ToText(const Shape& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ","), "]");
}

std::string ToText(const TensorSpec& spec) {
  return absl::StrCat(Name(spec.dtype), ToText(spec.shape));
}

absl::StatusOr<TensorSpec> ParseTensorSpec(absl::string_view text) {
  const absl::string_view whole = text;
  const auto open = text.find('[');
  const auto dtype = ParseDType(text.substr(0, open));
  if (open == absl::string_view::npos || !dtype || !absl::ConsumeSuffix(&text, "]")) {
    return absl::InvalidArgumentError(
        absl::StrCat("want a tensor like f32[1024,1M], got '", whole, "'"));
  }
  TensorSpec spec{.dtype = *dtype, .shape = {}};
  for (absl::string_view dim : absl::StrSplit(text.substr(open + 1), ',', absl::SkipEmpty())) {
    GC_ASSIGN_OR_RETURN(const std::int64_t value, ParseDimension(absl::StripAsciiWhitespace(dim)));
    spec.shape.push_back(value);
  }
  GC_RETURN_IF_ERROR(CheckedBytes(spec).status());
  return spec;
}

}  // namespace gridclock
